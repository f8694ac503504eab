"""One key of a family, asked and told like an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import naming, rules
from sidelong.agent.advice import read_one
from sidelong.agent.ceiling import costs_of_one
from sidelong.agent.estimates import estimates_of
from sidelong.agent.key import OneKey
from sidelong.checks import short
from sidelong.errors import FamilyError, UnknownDecisionError
from sidelong.outcomes.revealed import Revealed
from sidelong.outcomes.revealed_columns import RevealedColumns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sidelong.agent.decision import Decision
    from sidelong.agent.family import Family
    from sidelong.agent.rounds import Rounds
    from sidelong.estimates import Estimates
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.keys import Key
    from sidelong.outcomes.revealed import Losses


class Member(OneKey):
    """One key of a family: ``family[key]``. It keeps nothing of its own."""

    def __init__(self, family: Family, key: Key) -> None:
        self._family = family
        self.key = key

    @property
    def _rounds(self) -> Rounds:  # type: ignore[override]  # that of the family, which changes when an arm comes
        return self._family._rounds  # noqa: SLF001  # a part of the family

    @property
    def seed(self) -> int:
        """The seed of the agent that plays as this key does."""
        return self._family.seed_of(self.key)

    @property
    def round(self) -> int:
        """How many decisions were asked for."""
        row = self._rounds.keys.row(self.key)
        return 0 if row < 0 else int(self._rounds.rows.round[row])

    def ask(
        self,
        graph: FeedbackGraph | None = None,
        available: Iterable[int | str | bool] | None = None,
        advice: Any = None,
        *,
        x: Any = None,
    ) -> Decision:
        """Draw an arm, as `Agent.ask` does, or `ContextualAgent.ask` with the features `x`."""
        self._family.ask([self.key], graph, available, self._read_advice(advice), x=None if x is None else [x])
        return self._decision(self._slots()[-1])

    def _read_advice(self, advice: Any) -> dict[str, np.ndarray | None] | None:
        """Return advice, as `Agent.ask` takes it, as `Family.ask` does."""
        if advice is None:
            return None
        rows = read_one(advice, self._family.graph)
        return {name: row[None] if row.any() else None for name, row in rows.items()}

    def predict(self, x: Any) -> np.ndarray:
        """Return the predicted loss of each arm, as `ContextualAgent.predict` does."""
        return np.asarray(self._family.predict([self.key], [x])[0])

    def tell(
        self,
        decision: Decision | str,
        losses: Losses | Revealed,
        graph: FeedbackGraph | None = None,
        costs: Losses | None = None,
    ) -> bool:
        """Learn the losses that a decision revealed, as `Agent.tell` does."""
        name = self._name(decision)
        labels = self._family.graph.labels
        spent = None if costs is None else costs_of_one(costs, labels)
        if isinstance(losses, Revealed):
            return bool(self._family.tell([name], RevealedColumns.of_one(losses), graph, spent))
        row, round_ = naming.find(self._rounds, [name])
        heard = rules.read_one(losses, self._rounds.named(row, round_)[1], self._family.remembers, labels)
        return bool(self._rounds.learn(row, round_, heard, graph, None, self._family.threads, spent))

    def _name(self, decision: Decision | str) -> str:
        """Return the id of a decision, if it is one of this key."""
        name = str(getattr(decision, "id", decision))
        if name.split("-", 2)[2:] not in ([], [str(self.key)]):
            raise UnknownDecisionError(
                f"Decision {name} is not of the key {short(self.key)}. Tell the key that it is of, or the family."
            )
        return name

    def _round_of(self, decision: Decision | str) -> int:
        return int(naming.find(self._rounds, [self._name(decision)]).round[0])

    def outlook(self, graph: FeedbackGraph | None = None, advice: Any = None) -> np.ndarray:
        """Return the probability of each arm in the key's next round, which is not drawn, as `Agent.outlook` does."""
        return np.asarray(self._family.outlook([self.key], graph, self._read_advice(advice))[0])

    def estimates(self) -> Estimates:
        """Return what is known about each arm, as `Agent.estimates` does."""
        row = self._row()
        p, state = self._rounds.outlook(np.array([row]))
        gaps = self._rounds.setup.gaps(state)
        return estimates_of(self._observers, gaps, p[0], self._family.graph)

    def learn(self, log: Any, *, trusted: bool = False) -> int:
        """Learn the rounds of a log, as `Agent.learn` does; return how many had losses."""
        if self.key not in self._family:
            self._family.add([self.key])
        return super().learn(log, trusted=trusted)

    def _row(self) -> int:
        row = self._rounds.keys.row(self.key)
        if row < 0:
            raise FamilyError(f"This family has no key {short(self.key)}. Ask for it first.")
        return row

    def _slots(self) -> list[int]:
        row = self._rounds.keys.row(self.key)
        return [] if row < 0 else self._rounds.of_row(row)

    def __repr__(self) -> str:
        return f"<{self.key!r} of {self._family!r}: {self.round} decisions>"
