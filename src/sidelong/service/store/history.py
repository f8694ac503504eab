"""What the journal says of decisions that are not pending any more."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from sidelong.errors import ServiceError
from sidelong.service.store.journal import DECIDED_SLOT, LATE_SLOT, SETTLED_SLOT, SLOTS, SPAN, read_draws, read_settled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Cut, Reading
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.journal import Draws, Event, Settlement

_PAGE = 500  # events that are read at once, to find what settled a decision


class History:
    """What the journal says of decisions that are not pending: each event is read once, however many are looked for.

    Args:
        reading: where the journal is read.
        experiment: whose it is.
        fresh: events that are not written yet.
    """

    def __init__(self, reading: Reading, experiment: LiveExperiment, fresh: Iterable[Event] = ()) -> None:
        self._reading = reading
        self._experiment = experiment
        self._fresh = fresh
        self._made: dict[int, tuple[Event, Draws]] = {}  # by number
        self._settled: dict[int, dict[int, tuple[Event, Settlement, int]]] = {SETTLED_SLOT: {}, LATE_SLOT: {}}
        self._read: dict[int, list[range]] = {SETTLED_SLOT: [], LATE_SLOT: []}  # rounds whose events were read

    def settled(self, number: int) -> tuple[Event, Settlement, int]:
        """Return the event that settled a decision, its columns, and the place of the decision there."""
        self.check(number)
        found = self.found(number, SETTLED_SLOT)
        if found is None:
            raise RuntimeError(f"decision {number} is neither pending nor settled")
        return found

    def check(self, number: int) -> None:
        """Refuse a number that no decision has, and one of which the journal says nothing any more."""
        id_ = f"{self._experiment.identity.key}-{number}"
        if not 1 <= number <= self._experiment.round:
            raise ServiceError("There is no such decision.", status=404, code="not_found", path="path.id", value=id_)
        if number not in self._experiment.pending and number <= self._cut.round:
            text = "The decision was settled before the journal was cut, and is not known any more. Nothing changed."
            raise ServiceError(text, status=410, code="cut", path="path.id", value=id_)

    @cached_property
    def _cut(self) -> Cut:
        return self._reading.cut(self._experiment.identity.id)

    def carried_out(self, number: int) -> int:
        """Return the arm that a settled decision was carried out with: one that was overridden is settled alone."""
        arm = self.settled(number)[1].arm
        if arm is not None:
            return arm
        event, draws = self.draws(number)
        return draws.arms[number - event.round]

    def round_of(self, number: int) -> int:
        """Return which round of its key a decision was."""
        event, draws = self.draws(number)
        return draws.rounds[number - event.round]

    def draws(self, number: int) -> tuple[Event, Draws]:
        """Return the event that a decision was made with, and its columns."""
        if number not in self._made:
            fresh = [each for each in self._fresh if SLOTS[each.kind] == DECIDED_SLOT and each.round > 0]
            found = next((each for each in fresh if each.round <= number <= each.last), None)
            if found is None:
                (found,) = self._reading.spanning(self._experiment.identity.id, DECIDED_SLOT, 1, number, 1)
            made = found, read_draws(found)
            self._made |= dict.fromkeys(range(found.round, found.last + 1), made)
        return self._made[number]

    def graph(self, number: int, find: Callable[[str | None], FeedbackGraph]) -> FeedbackGraph:
        """Return the graph that a decision was drawn for; `find` finds that of an event."""
        event, draws = self.draws(number)
        return draws.graph(number - event.round, find(event.graph))

    def found(self, number: int, slot: int) -> tuple[Event, Settlement, int] | None:
        """Return the event of a slot that is about a decision, its columns, and the place of the decision there.

        An event is read with those beside it, so that many decisions are found with few queries.
        """
        known = self._settled[slot]
        if number in known:
            return known[number]
        for event in self._fresh:
            if SLOTS[event.kind] == slot and event.round <= number <= event.last:
                self._note(event, known)
        last, least, most = number, max(number - SPAN, 1), 1  # most are settled by an event of their own
        while number not in known and last >= least:
            before = next((each for each in self._read[slot] if each.start <= last < each.stop), None)
            if before is not None:
                last = before.start - 1
                continue
            page = self._reading.spanning(self._experiment.identity.id, slot, least, last, most)
            for event in page:
                self._note(event, known)
            first = page[-1].round if len(page) == most else least
            self._read[slot].append(range(first, last + 1))
            last, most = first - 1, _PAGE
        return known.get(number)

    @staticmethod
    def _note(event: Event, known: dict[int, tuple[Event, Settlement, int]]) -> None:
        settlement = read_settled(event)
        for place, each in enumerate(settlement.numbers.tolist()):
            known.setdefault(each, (event, settlement, place))
