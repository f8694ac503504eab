"""Several decisions of an experiment, or feedback for several of them, as one command: all of it, or nothing.

A batch is one turn, and so one transaction and one flush. Its decisions are ordinary ones, round after round. Whoever
sends a batch again with the same Idempotency-Key gets the same decisions: the first one has the key, and the last one a
mark of it, which no client can send.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sidelong.errors import DecisionError, GraphError, LossError, ServiceError
from sidelong.service.store.absent import as_decided
from sidelong.service.store.commands import (
    MANY,
    Command,
    Decide,
    Decided,
    Tell,
    check_present,
    mark_of,
    settled_before,
)
from sidelong.service.store.journal import DRAWN_BY, EXPIRED
from sidelong.service.store.keyed import rules as keyed
from sidelong.service.store.keyed.experiment import KeyedExperiment
from sidelong.service.store.settled import ToldItem, check_arm, placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.commands import Turn
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.graphs import KnownGraph
    from sidelong.service.store.settled import Settled


class DecideMany(Command):
    """Draw an arm for each of several rounds of one graph, of which the first says how many there are."""

    def __init__(self, first: Decide) -> None:
        self.first, self.of, self.key = first, first.of, first.key

    def run(self, turn: Turn) -> list[Decided]:
        """Draw, or find what was drawn under the same key."""
        first = self.first
        made = first.run(turn)
        if made.duplicate:
            return self._before(turn, made)
        keys = [None] * (first.count - 2) + [mark_of(self.key)] * (first.count > 1)
        return [made, *(Decide(self.of, made.event.graph, first.context, key).run(turn) for key in keys)]

    def takes_long(self, experiment: LiveExperiment) -> bool:  # noqa: ARG002
        """Tell whether there are many."""
        return self.first.count >= MANY

    def _before(self, turn: Turn, first: Decided) -> list[Decided]:
        rounds = range(first.event.round, first.event.round + self.first.count)
        found = turn.writing.rounds(turn.experiment.identity.id, rounds[0], rounds[-1]) + turn.events
        decided = {event.round: event for event in found if event.kind in DRAWN_BY}
        return [Decide.reply(turn, decided[number], duplicate=True) for number in rounds]


@dataclass
class TellMany(Command):
    """Tell the losses that several decisions revealed."""

    of: str
    items: list[ToldItem]
    partial: bool = False  #: whether to learn the others where one is wrong

    def run(self, turn: Turn) -> list[Settled | ServiceError]:
        """Learn, and return for each item what became of it; unless `partial`, raise what is wrong with the first one.

        The error has the place of its item in front of its path.
        """
        check_present(turn.experiment)
        if isinstance(turn.experiment, KeyedExperiment):
            return keyed.tell(turn, self.items, partial=self.partial)
        tells = [Tell(self.of, *item) for item in self.items]
        if not self.partial:
            self._check(turn, tells)
        outcomes: list[Settled | ServiceError] = []
        for tell in tells:
            try:
                outcomes.append(tell.run(turn))
            except ServiceError as error:
                if not self.partial:  # which the check should have found: nothing of it may stay
                    raise RuntimeError(f"checked, and refused: {error}") from error
                outcomes.append(error)
        return outcomes

    def takes_long(self, experiment: LiveExperiment) -> bool:
        """Tell whether there are many, or some keys have to be read first."""
        return len(self.items) >= MANY or keyed.is_asleep(experiment, [item.number for item in self.items])

    def _check(self, turn: Turn, tells: list[Tell]) -> None:
        charged, seen = turn.charged.copy(), set()
        for place, tell in enumerate(tells):
            try:
                if tell.number in seen:
                    raise _refused("A decision stands twice in this batch. Tell it once.", "path.id", 422, "invalid")
                seen.add(tell.number)
                _check(turn, tell)
            except ServiceError as error:
                turn.charged = charged
                raise placed(error, place, f"{turn.experiment.identity.key}-{tell.number}") from error


@dataclass
class TellColumns(Command):
    """Tell the losses that several decisions revealed, one after the other in the order of what each reveals."""

    of: str
    numbers: list[int]
    sizes: np.ndarray  #: how many losses each decision has
    losses: np.ndarray
    graphs: Sequence[FeedbackGraph | KnownGraph | str] = ()
    graph_of: list[int] | None = None  #: for each decision, which graph came with its outcome
    arms: list[int] | None = None  #: that were played, if whoever tells it says so
    partial: bool = False
    plain: bool = False  #: as in `ToldItem`

    def run(self, turn: Turn) -> Sequence[Settled | ServiceError]:
        """Learn, and return for each decision what became of it, as `TellMany` does."""
        check_present(turn.experiment)
        scale = turn.experiment.scale
        turn.experiment.losses_of([], plain=self.plain)
        if not isinstance(turn.experiment, KeyedExperiment):
            return TellMany(self.of, self._items(), self.partial).run(turn)
        losses = self.losses if scale is None else (self.losses - scale.best) / (scale.worst - scale.best) + 0.0
        if ((losses >= 0.0) & (losses <= 1.0)).all():
            graphs = [turn.graph(each) for each in self.graphs]
            told = keyed.tell_at_once(turn, self.numbers, self.sizes, losses, graphs, self.graph_of, self.arms)
            if told is not None:
                return told
        return keyed.tell(turn, self._items(), partial=self.partial)

    def _items(self) -> list[ToldItem]:
        each = np.split(self.losses, np.cumsum(self.sizes)[:-1])
        which, arms = self.graph_of, self.arms
        return [
            ToldItem(
                number,
                each[place].tolist(),
                None if which is None else self.graphs[which[place]],
                None if arms is None else arms[place],
            )
            for place, number in enumerate(self.numbers)
        ]

    def takes_long(self, experiment: LiveExperiment) -> bool:
        """Tell whether there are many, or some keys have to be read first."""
        return len(self.numbers) >= MANY or keyed.is_asleep(experiment, self.numbers)


def _check(turn: Turn, tell: Tell) -> None:
    """Refuse what `Tell` would refuse, and learn nothing."""
    if turn.is_outstanding(tell.number):
        made, _ = turn.experiment.outstanding[tell.number]
        check_arm(turn.experiment.arm_called(tell.arm), made.arm)
        losses = turn.experiment.losses_of(tell.losses, plain=tell.plain)
        graph, losses = as_decided(turn, turn.graph(tell.graph), losses, made.graph, made.arm)
        turn.charge(graph)
        try:
            turn.experiment.check(tell.number, losses, None if graph is None else graph.graph)
        except LossError as error:
            raise _refused(str(error), "body.losses", 422, "invalid") from error
        except (GraphError, DecisionError) as error:
            raise _refused(str(error), "body.graph", 422, "invalid") from error
    elif settled_before(turn, tell)[1].kind in EXPIRED:
        raise _refused("The decision has expired, and nothing of this batch is kept.", "path.id", 410, "expired")
    else:
        tell.run(turn)  # a repetition, or a conflict


def _refused(text: str, path: str, status: int, code: str) -> ServiceError:
    return ServiceError(text, status=status, code=code, path=path)
