"""Which decisions an agent has made, which of them wait, and what the last ones were told."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.decision import Decision
from sidelong.agent.feedback import fingerprint, same
from sidelong.agent.lateness import Waiting
from sidelong.checks import short
from sidelong.errors import ConflictError, DecisionError, UnknownDecisionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.agent.running import RunningLearner
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.outcomes.revealed import Losses

#: Up to so many losses are kept as they are: to hash them takes longer than to learn them.
_FEW = 64


class Ledger:
    """The decisions of an agent, by their rounds."""

    def __init__(self, running: RunningLearner, options: dict[str, Any], graph: FeedbackGraph) -> None:
        module = running.module
        identity = json.dumps([module.name, options, int(running.seed), graph.content_hash], sort_keys=True)
        self.tag = hashlib.sha256(identity.encode()).hexdigest()[:8]  #: what the names of all of them end with
        self.round = 0  #: how many were made
        self.pending: dict[int, Decision] = {}
        self.names: dict[str, int] = {}  #: the rounds of decisions that a service made, by the names it gave them
        self.waiting = Waiting(module, running.params, options, graph.n_arms)  #: how late feedback was
        self._told: OrderedDict[int, Any] = OrderedDict()  # fingerprints, or what they are made from

    def remember(self, t: int, arms: np.ndarray, losses: bytes, graph_key: int, remembers: int) -> None:
        """Write down what the decision of round t was told, and forget what is older than it is to remember."""
        told = self._told
        told[t] = (arms, losses, graph_key) if len(arms) <= _FEW else _mark((arms, losses, graph_key))
        if len(told) > remembers:
            told.popitem(last=False)

    def cancel(self, decision: Decision | str, *, lost: bool) -> Decision:
        """Strike out a decision that waits, and return it. `lost` says that it was carried out."""
        t = self.round_of(decision)
        if t not in self.pending:
            raise DecisionError(
                f"Decision {t}-{self.tag} was told or cancelled before; only a pending one can be cancelled."
            )
        self.waiting.dropped(t, lost=lost)
        return self.pending.pop(t)

    def round_of(self, decision: Decision | str) -> int:
        """Return the round of a decision, or of the name of one, if this agent made it."""
        if isinstance(decision, Decision):
            number, tag = decision._round, decision._tag  # noqa: SLF001  # quicker than what users see
            if self.pending.get(number) is decision:  # as most are
                return number
        elif str(decision) in self.names:
            return self.names[str(decision)]
        else:
            digits, _, tag = str(decision).partition("-")
            number = int(digits) if digits.isdecimal() and len(digits) < 19 else 0
        made = self.pending.get(number, decision)
        # An agent alike names its decisions alike, but has drawn others as soon as it was told something else.
        foreign = made is not decision and isinstance(decision, Decision) and not _alike(made, decision)
        if tag != self.tag or not 1 <= number <= self.round or foreign:
            raise UnknownDecisionError(
                f"This agent made no decision {short(getattr(decision, 'id', decision))}. It has made {self.round}, "
                f"named like 1-{self.tag}. Tell the agent that was asked, or load its saved state."
            )
        return number

    def compare(self, t: int, losses: Losses, graph_key: int, remembers: int) -> None:
        """Let a repetition pass, and refuse anything else about a decision that is not pending."""
        told = self._told.get(t)
        if told is None:
            raise DecisionError(
                f"Decision {t}-{self.tag} was cancelled, or told so long ago that the agent does not remember what: "
                f"it remembers the last {remembers:,}. Nothing was learned."
            )
        if not same(_mark(told), losses, graph_key):
            raise ConflictError(
                f"Decision {t}-{self.tag} was told before, with other losses or another graph. The first ones stay; "
                f"losses cannot be corrected after they were learned."
            )

    def told(self) -> dict[str, np.ndarray]:
        """Return what was told, and how late, as arrays of a state file."""
        marks = b"".join(map(_mark, self._told.values()))
        return {
            "told.round": np.array(list(self._told), np.int64),
            "told.fingerprint": np.frombuffer(marks, np.uint8).reshape(-1, 16),
            **self.waiting.contents(),
        }

    def resume(self, round_: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on, with the decisions that were added, from what a state file holds."""
        self.round = round_
        self.waiting.resume(round_, arrays)
        rounds, marks = arrays["told.round"], arrays["told.fingerprint"]
        self._told.update((int(t), mark.tobytes()) for t, mark in zip(rounds, marks, strict=True))


def _mark(told: Any) -> bytes:
    if isinstance(told, bytes):
        return told
    arms, losses, graph_key = told
    return fingerprint(arms, np.frombuffer(losses), graph_key)


def _alike(one: Any, other: Decision) -> bool:
    size = other._p.size  # noqa: SLF001  # arms may have come since, with a probability of 0
    return one.arm == other.arm and np.array_equal(one._p[:size], other._p, equal_nan=True)  # noqa: SLF001
