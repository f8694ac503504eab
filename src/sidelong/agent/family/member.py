"""One key of a family, asked and told like an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.decision import Decision, SparingDecision
from sidelong.agent.family.alone import missing
from sidelong.agent.feedback import opened
from sidelong.agent.running import revealed
from sidelong.agent.seen import Seen
from sidelong.checks import short
from sidelong.errors import FamilyError, UnknownDecisionError
from sidelong.learners.interface import is_sparing
from sidelong.outcomes.revealed import Revealed
from sidelong.outcomes.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sidelong.agent.family.family import Family
    from sidelong.estimates import Estimates
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.keys import Key
    from sidelong.outcomes.revealed import Losses


class Member:
    """One key of a family: ``family[key]``. It keeps nothing of its own."""

    def __init__(self, family: Family, key: Key) -> None:
        self._family = family
        self.key = key

    @property
    def seed(self) -> int:
        """The seed of the agent that plays as this key does."""
        return self._family.seed_of(self.key)

    @property
    def round(self) -> int:
        """How many decisions were asked for."""
        row = self._store.keys.row(self.key)
        return 0 if row < 0 else int(self._store.rows.round[row])

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions that were neither told nor cancelled, oldest first."""
        return tuple(map(self._decision, self._slots()))

    def ask(self, graph: FeedbackGraph | None = None, available: Iterable[int | str | bool] | None = None) -> Decision:
        """Draw an arm, as `Agent.ask` does."""
        self._family.ask([self.key], graph, available)
        return self._decision(self._slots()[-1])

    def tell(self, decision: Decision | str, losses: Losses | Revealed, graph: FeedbackGraph | None = None) -> bool:
        """Learn the losses that a decision revealed, as `Agent.tell` does."""
        name = self._name(decision)
        made = next((each for each in self.pending if each.id == name), None)
        given: Any = losses
        if isinstance(losses, Revealed):
            given, graph = opened(losses, graph, made or decision, self._scale())
        if hasattr(given, "keys"):
            table = {"decision": [name] * len(given), "arm": list(given), "loss": list(given.values())}
            return bool(self._family.tell([name], table, graph))
        return bool(self._family.tell([name], given, graph))

    def _scale(self) -> Scale | None:
        """Return the scale of this key, which may have one of its own."""
        row, own = self._store.keys.row(self.key), self._store.rows.scale
        if row < 0 or not own.shape[1]:
            return self._family.scale
        best, worst = own[row].tolist()
        return None if (best, worst) == (0.0, 1.0) else Scale(best, worst)

    def cancel(self, decision: Decision | str) -> None:
        """Give up a decision that was never carried out: nothing is learned from it."""
        self._family.cancel([self._name(decision)])

    def _name(self, decision: Decision | str) -> str:
        """Return the id of a decision, if it is one of this key."""
        name = str(getattr(decision, "id", decision))
        if name.split("-", 2)[2:] not in ([], [str(self.key)]):
            raise UnknownDecisionError(
                f"Decision {name} is not of the key {short(self.key)}. Tell the key that it is of, or the family."
            )
        return name

    def estimates(self) -> Estimates:
        """Return what is known about each arm, as `Agent.estimates` does."""
        row = self._store.keys.row(self.key)
        if row < 0:
            raise FamilyError(f"This family has no key {short(self.key)}. Ask for it first.")
        p, state = self._store.outlook(np.array([row]))
        rows = self._store.rows
        seen = Seen(rows.counts[row], rows.means[row], rows.squares[row])
        gaps = state.gap.copy() if hasattr(state, "gap") else np.full(p.shape[1], np.nan)
        return seen.estimates(gaps, p[0], self._family.graph)

    @property
    def _store(self) -> Any:
        return self._family._store  # noqa: SLF001  # a part of the family

    def _slots(self) -> list[int]:
        row = self._store.keys.row(self.key)
        slots = []
        at = -1 if row < 0 else int(self._store.rows.first[row])
        while at >= 0:
            slots.append(at)
            at = int(self._store.waiting.next[at])
        return slots

    def _decision(self, slot: int) -> Decision:
        """Return a decision that waits as an agent would."""
        waiting, bank = self._store.waiting, self._store.bank
        graph, arm = bank.graphs[waiting.graph[slot]], int(waiting.arm[slot])
        known = (f"{self._family._tag}-{self.key}", int(waiting.round[slot]), arm, graph)  # noqa: SLF001
        p, trace = waiting.p[slot].copy(), waiting.trace[slot].copy()
        if not is_sparing(self._store.learner):
            return Decision(*known, p, trace)
        return SparingDecision(*known, p[: revealed(graph, arm).size], trace, float(waiting.probability[slot]), None)

    if not TYPE_CHECKING:  # for which every name would be there

        def __getattr__(self, name: str) -> Any:
            raise missing(self, name)

    def __repr__(self) -> str:
        return f"<{self.key!r} of {self._family!r}: {self.round} decisions>"
