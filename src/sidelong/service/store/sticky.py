"""Sticky decisions: each is for a subject, who gets the same one until it ends, and then a new one.

Its losses may come several times. Each report is an event with an Idempotency-Key of its own. When the decision ends,
which is when it would expire, the mean of its reports is told to the learner, and the journal says so as of any other
decision. One without a report expires as others do.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.errors import LossError, ServiceError
from sidelong.service.store.feedback import Settled, check_arm, checked_costs, refused
from sidelong.service.store.history import History
from sidelong.service.store.journal import Kind, read_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sidelong.service.store.feedback import ToldItem
    from sidelong.service.store.journal import Event, Floats
    from sidelong.service.store.rules import Turn

#: Bytes of a subject beside its text: its places in two indexes, and the sum of its reports but for their losses.
_SUBJECT_BYTES = 600


class StickyDecisions:
    """The subjects of pending decisions, and what was reported of these so far."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}  # by the row of the key, and the subject
        self._subjects: dict[int, tuple[int, str]] = {}  # by the number of the decision
        self._reports: dict[int, tuple[int, Floats]] = {}  # how many there are, and the sum of their losses and costs
        self.bytes = 0  #: that all this takes in memory at most, but for the losses of reports

    def find(self, row: int, subject: str) -> int | None:
        """Return the number of the decision that a subject has, which may be due."""
        return self._numbers.get((row, subject))

    def subject(self, number: int) -> str | None:
        """Return the subject of a pending decision."""
        return self._subjects[number][1] if number in self._subjects else None

    def add(self, number: int, row: int, subject: str) -> None:
        """Let a decision be that of a subject."""
        self._numbers[row, subject] = number
        self._subjects[number] = row, subject
        self.bytes += _bytes(subject)

    def remove(self, numbers: Iterable[int]) -> None:
        """Forget decisions that are settled."""
        for number in numbers:
            row, subject = self._subjects.pop(number)
            del self._numbers[row, subject]
            self._reports.pop(number, None)
            self.bytes -= _bytes(subject)

    def report(self, number: int, told: Floats) -> None:
        """Add the losses of a report, and the costs in a second row, if there is a ceiling."""
        count, total = self._reports.get(number, (0, np.zeros(told.shape)))
        self._reports[number] = count + 1, total + told

    def count(self, number: int) -> int:
        """Return how many reports there are of a decision."""
        return self._reports[number][0] if number in self._reports else 0

    def mean(self, number: int) -> Floats:
        """Return the mean of the reports of a decision that has some: a row of losses, and one of costs."""
        count, total = self._reports[number]
        return np.asarray(total / count)

    def parts(self, numbers: list[int]) -> list[list[int]]:
        """Return numbers in two lists: of decisions without a report, and of those with some."""
        if not self._reports:
            return [numbers]
        return [[each for each in numbers if (each in self._reports) is reported] for reported in (False, True)]

    def contents(self) -> tuple[list[Any], dict[str, np.ndarray]]:
        """Return everything, for a snapshot: subjects for its header, and arrays."""
        subjects = [[number, *self._subjects[number]] for number in sorted(self._subjects)]
        numbers = sorted(self._reports)
        sums = [self._reports[number][1] for number in numbers]
        rows = [[number, self._reports[number][0], *total.shape] for number, total in zip(numbers, sums, strict=True)]
        table = np.array(rows, np.int64).reshape(-1, 4)
        return subjects, {"sticky": table, "sticky.sums": np.concatenate([np.empty(0), *map(np.ravel, sums)])}

    def resume(self, subjects: list[Any], arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `contents` returned."""
        for number, row, subject in subjects:
            self.add(number, row, subject)
        at = 0
        for number, count, *shape in arrays["sticky"].tolist():
            size = math.prod(shape)
            self._reports[number] = count, arrays["sticky.sums"][at : at + size].reshape(shape).copy()
            at += size


def _bytes(subject: str) -> int:
    return _SUBJECT_BYTES + sys.getsizeof(subject)


def check_subject(turn: Turn, subject: str | None, *, single: bool) -> None:
    """Refuse a subject where decisions are not sticky, and the other way round."""
    name, is_sticky = turn.experiment.identity.name, turn.experiment.identity.spec.sticky is not None
    if subject is not None and not is_sticky:
        text = f"{name!r} is not sticky, so that no decision is for a subject. Leave subject out, or make an experiment"
        raise _invalid(f'{text} with "sticky": {{"seconds": 1800}}.', "body.subject", subject)
    if is_sticky and (subject is None or not single):
        text = f"{name!r} is sticky: every decision is for a subject. Ask for one decision, and send its subject."
        raise _invalid(text, "body.subject", subject)


def found(turn: Turn, row: int, subject: str) -> int | None:
    """Return the number of the decision that a subject has; one whose time is over ends now."""
    experiment = turn.experiment
    number = experiment.sticky.find(row, subject)
    if number is not None and experiment.is_due(number, turn.moment.clock):
        turn.expire([number])
        number = None
    return number


def asked_before(turn: Turn, repeated: Event) -> Event:
    """Return the event of the decision that was asked for again; refuse one that the journal does not have any more."""
    (number,) = read_columns(repeated)["decision"].tolist()
    history = History(turn.writing, turn.experiment, turn.events)
    history.check(number)
    return history.draws(number)[0]


def refuse_batch(turn: Turn) -> None:
    """Refuse feedback without Idempotency-Keys: nobody could tell a repetition from a further report."""
    if turn.experiment.identity.spec.sticky is not None:
        raise _invalid(
            "Decisions of a sticky experiment may be told several times. Tell each one alone, with an Idempotency-Key "
            "of its own for each report: POST /v1/decisions/{id}/feedback.",
            "body",
        )


def report(turn: Turn, item: ToldItem, key: str | None) -> Settled | None:
    """Keep a report until its decision ends; return None if the decision was cancelled, or expired without a report."""
    if key is None:
        raise _invalid(
            "Losses of a sticky decision may come several times: send an Idempotency-Key with each report, so that a "
            "repetition is not taken for another one.",
            "header.idempotency-key",
        )
    if item.graph is not None:
        raise _invalid("A sticky decision is told without a graph: its reports are averaged arm by arm.", "body.graph")
    experiment, number = turn.experiment, item.number
    before = turn.made_under(key)
    turn.prepare([number])
    history = History(turn.writing, experiment, turn.events)
    history.check(number)
    is_pending = number in experiment.pending
    arm = experiment.pending.arm(number) if is_pending else history.carried_out(number)
    check_arm(experiment.arm_called(item.arm), arm)
    losses, shown = experiment.by_number(item), history.graph(number, turn.find)
    try:
        values = experiment.losses_of(losses, shown, arm)
    except LossError as error:
        raise refused(error, losses, shown.row(arm).tolist()) from error
    costs = checked_costs(experiment, experiment.costs_by_number(item), shown, arm)
    if before is not None:
        columns = read_columns(before)
        is_same = before.kind is Kind.REPORTED and columns["decision"].tolist() == [number]
        both: list[tuple[Any, Any]] = [(columns.get("loss"), values), (columns.get("cost"), costs)]
        if not is_same or not all(np.array_equal(*each) for each in both):
            text = "This Idempotency-Key was used before, with another request."
            raise ServiceError(text, status=409, code="key_reused", path="header.idempotency-key", value=key)
        return Settled(history.round_of(number), duplicate=True)
    if is_pending:
        turn.events.append(experiment.report(number, values, costs, turn.moment, key))
        return Settled(history.round_of(number), duplicate=False)
    if history.settled(number)[0].kind is Kind.TOLD:
        text = "The decision has ended, and the mean of what was told before was learned. This was not."
        raise turn.refusal(410, "expired", text, number)
    return None


def refuse_reported(turn: Turn, number: int, what: str) -> None:
    """Refuse to cancel or override a decision of which something was reported."""
    if turn.experiment.sticky.count(number):
        text = f"Losses of this decision were told, so that it can no longer be {what}. They are learned when it ends."
        raise turn.refusal(409, "told", text, number)


def _invalid(message: str, path: str, value: object = None) -> ServiceError:
    return ServiceError(message, status=422, code="invalid", path=path, value=value)
