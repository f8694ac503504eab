"""The rules of `tell`, `cancel` and `override`: every check, with its message, for one decision and for many.

`check` is what the losses of one decision must be. An agent calls it in the kernel that learns; a family lets it look
at all decisions of a batch before anything is learned. `FeedbackCheck` then says what is wrong, and is the whole of
`tell` for all that an agent does not take the short way: a batch, a repetition, losses of odd types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.agent.ceiling import in_order
from sidelong.agent.feedback import LossColumns, of_one, read_floats
from sidelong.agent.graphs import Bank
from sidelong.checks import short
from sidelong.errors import ConflictError, DecisionError, GraphError, LossError, OutcomeError
from sidelong.graphs.presence import arm_of
from sidelong.learners.interface import Need

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sidelong.agent.ceiling import Ceiling
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner
    from sidelong.outcomes.revealed_columns import RevealedColumns

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

#: What `check` returns: FITS, or ``place * CODES + code``. A kernel that learns may also find nothing pending.
FITS, NOT_PENDING, CODES = -1, -2, 4
COUNT, OUTSIDE, NOT_BINARY = range(3)


@kernel
def check(
    values: np.ndarray,
    first: int,
    given: int,
    due: int,
    best: float,
    worst: float,
    binary: bool,  # noqa: FBT001  # kernels have no names
) -> int:
    """Turn the `given` values of a decision, from `first` on, into losses, if they fit; `due` are revealed.

    The loss of `best` is 0, and that of `worst` is 1.
    """
    if given != due:
        return COUNT
    low, high = min(best, worst), max(best, worst)
    for k in range(due):
        value = values[first + k]
        if not low <= value <= high:
            return k * CODES + OUTSIDE
        if binary and value not in (low, high):
            return k * CODES + NOT_BINARY
    for k in range(due):
        values[first + k] = (values[first + k] - best) / (worst - best) + 0.0  # not -0.0
    return FITS


_plain_check: Callable[..., int] = getattr(check, "py_func", check)


@kernel
def check_many(
    values: np.ndarray,
    offsets: np.ndarray,
    due: np.ndarray,
    ends: np.ndarray,
    binary: bool,  # noqa: FBT001
    found: np.ndarray,
) -> None:
    """Do the same for many decisions, up to the first one whose values do not fit, and write what was found of each."""
    for i in range(due.size):
        found[i] = check(values, offsets[i], offsets[i + 1] - offsets[i], due[i], ends[i, 0], ends[i, 1], binary)
        if found[i] != FITS:
            return


class NamedDecisions(NamedTuple):
    """The decisions that a call names, with what is known of each."""

    names: Callable[[int], str]  #: what messages call each: its id
    whose: Callable[[int], str]  #: and what they add to an arm: " of the key 'a', decision 3-...," or nothing
    round: Integers
    is_pending: npt.NDArray[np.bool_]
    arm: Integers  #: that was carried out; 0 where nothing is pending
    asked: Integers  #: the place of the graph that it was asked with, in the bank
    before: Integers  #: (n, 4): what it was told, as `marks_of` has it, where it is not pending; zeros if forgotten
    ends: Floats  #: (n, 2): the best and the worst of its scale


class Accepted(NamedTuple):
    """What is to be learned: of all named decisions, also of those that were told before."""

    shown: Integers  #: the place of the graph of each round, in the bank
    offsets: Integers  #: the losses of decision i lie from offsets[i] to offsets[i + 1]
    losses: Floats
    marks: Integers  #: (n, 4): what is remembered of each
    foreseen: bool  #: whether the graphs were known before the draw
    costs: Floats  #: as losses; of size 0 without a ceiling


#: The columns of what is remembered: round, how many losses were given, hashes of them and of their arms.
ROUND, SIZE, LOSSES, ARMS = range(4)
_SHORT = 64  # losses
CANCELLED_SIZE = -1  #: stands for the number of losses of a decision that was cancelled


def marks_of(round_: Integers, losses: Floats, arms: Integers, offsets: Integers, graph: Integers) -> Integers:
    """Return for each decision what is remembered of what it was told, to recognise a repetition.

    That is 63 bits of the losses and the graph, which is 0 where `tell` was given none, and 63 bits of the arms, -1
    where nobody knows. They are those of what was given: an arm that was absent is not learned, but what an outcome
    revealed may name it.
    """
    marks = np.empty((round_.size, 4), np.int64)
    marks[:, ROUND], marks[:, SIZE] = round_, np.diff(offsets)
    hash_many(np.ascontiguousarray(losses).view(np.uint64), np.asarray(arms, np.int64), offsets, graph, marks)
    return marks


@kernel
def hash_many(losses: np.ndarray, arms: np.ndarray, offsets: np.ndarray, graph: np.ndarray, marks: np.ndarray) -> None:
    """Write into the marks of each decision a hash of its losses and the graph, and one of its arms."""
    for i in range(marks.shape[0]):
        marks[i, LOSSES], marks[i, ARMS] = hash_one(losses, arms, offsets[i], offsets[i + 1], graph[i])


@kernel
def hash_one(losses: np.ndarray, arms: np.ndarray, first: int, last: int, graph: int) -> tuple[Any, Any]:
    """Return the same of one decision, whose losses, as words of 64 bits, and arms lie from `first` to `last`."""
    of_losses, of_arms = mix_bits(np.uint64(graph)), np.uint64(0)
    for k in range(first, last):
        loss = losses[k] if losses[k] != _MINUS_ZERO else _ZERO
        of_losses ^= mix_bits(loss ^ mix_bits(np.uint64(k - first)))
        of_arms ^= mix_bits(np.uint64(arms[k] + 1))
    return np.int64(of_losses >> _ONE_BIT), np.int64(of_arms >> _ONE_BIT)


_ZERO, _MINUS_ZERO = np.uint64(0), np.uint64(1 << 63)
_ONE_BIT, _HALF, _LOW = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
_FACTOR, _KEY = np.uint64(0xD256D193), np.uint64(0x9E3779B9)


@kernel
def mix_bits(x: Any) -> Any:
    """Mix bits: four rounds of Philox2x32 (Salmon et al. 2011), in which nothing wraps around in plain Python."""
    low, high = x & _LOW, x >> _HALF
    for _ in range(4):
        product = low * _FACTOR
        low, high = (product >> _HALF) ^ _KEY ^ high, product & _LOW
    return (high << _HALF) | low


def refuse_outcome(learner: Learner, *, foreseen: bool, name: str, key: str) -> None:
    """Refuse a graph that came with an outcome and is another one than that of `ask`, if it must not be."""
    if learner.is_sparing:
        raise DecisionError(
            "A learner that does not look at every arm must know at `ask` what its decision reveals: "
            "tell without graph=..., or take refresh='round'."
        )
    if foreseen:
        raise LossError(
            f"The outcome{key} is of a round with another graph than the one that decision {name} was asked with. "
            f"Here graphs are known before the draw: ask with them, and keep their values for the outcomes. Nothing "
            f"was learned."
        )


def check_alone(graph: Any, *, scaled: bool) -> None:
    """Refuse what comes beside an outcome that has it already."""
    if graph is not None or scaled:
        what = "its graph" if graph is not None else "losses in [0, 1], so that it needs no scale"
        raise LossError(f"What was revealed has {what}: tell it alone.")


class FeedbackCheck:
    """One call of `tell`: its decisions, what they reveal, and what is wrong with it."""

    def __init__(
        self,
        learner: Learner,
        bank: Bank,
        named: NamedDecisions,
        heard: LossColumns,
        remembers: int,
        ceiling: Ceiling | None = None,
    ) -> None:
        self._learner = learner
        self._ceiling = ceiling
        self._bank = bank
        self._named = named
        self._heard = heard
        self._remembers = remembers
        self._outcome: RevealedColumns | None = None  # with arms that were absent
        self._settled = np.flatnonzero(~named.is_pending)

    def accept(self, graph: Any, revealed: RevealedColumns | None = None, costs: LossColumns | None = None) -> Accepted:
        """Return what is to be learned, from losses and the graphs that came with them, or from what was revealed.

        Raises:
            LossError: a loss is missing, outside its range, or of an arm that was not revealed.
            CostError: a cost is, or is above its bound.
            DecisionError: a decision was cancelled, told long ago, or told something else.
        """
        if revealed is not None:
            graph = self._open(revealed, graph)
        named, bank = self._named, self._bank
        shown, key = named.asked, np.zeros(named.round.size, np.int64)
        foreseen = graph is None or (revealed is not None and revealed.foreseen)
        if graph is not None:
            key = bank.keys(graph, named.round.size)
            shown = bank.told(graph, named.asked, named.is_pending)
            other = shown != named.asked
            if other.any():
                at = int(np.argmax(other))
                refuse_outcome(self._learner, foreseen=foreseen, name=named.names(at), key=self._of_key(at))
        reveals, ends = bank.reveals(shown[named.is_pending], named.arm[named.is_pending])
        due = self._due(np.diff(ends))
        values, given, arms = self._in_order(due, reveals)
        offsets = np.append(0, np.cumsum(due))
        losses = self._checked(values, given, arms, due, offsets)
        spent = np.empty(0)
        if self._ceiling is not None and costs is not None:
            played = np.where(named.is_pending, named.arm, -1)
            spent = in_order(self._ceiling, costs, due, arms, played, named.whose)
            key = (
                key
                ^ marks_of(named.round, spent, np.zeros(spent.size, np.int64), offsets, np.zeros_like(key))[:, LOSSES]
            )
        if self._outcome is None:
            marks = marks_of(named.round, losses, arms, offsets, key)
        else:
            marks = marks_of(named.round, self._outcome.losses, self._outcome.reveals, self._outcome.offsets, key)
        self._compare(marks)
        return Accepted(shown, offsets, losses, marks, foreseen, spent)

    def _open(self, revealed: RevealedColumns, graph: Any) -> Any:
        """Return the graph of what was revealed, if it is of these decisions; absent arms are left out of it."""
        named, n = self._named, self._named.round.size
        check_alone(graph, scaled=bool((named.ends != (0.0, 1.0)).any()))
        if revealed.arms.size != n:
            raise LossError(f"This is what {revealed.arms.size:,} plays revealed, of {n:,} decisions.")
        other = (revealed.arms != named.arm) & named.is_pending
        if other.any():
            at = int(np.argmax(other))
            raise LossError(
                f"This is what arm {self._name(revealed.arms[at])} revealed{self._of_key(at, ' for')}, and decision "
                f"{named.names(at)} plays arm {self._name(named.arm[at])}. Each decision is told its own outcome: give "
                f"them in the order of the decisions. For old ones there is `learn`."
            )
        self._outcome = revealed
        of = np.repeat(np.arange(n), np.diff(revealed.offsets))
        values = revealed.losses[~self._bank.hides(named.asked, of, revealed.reveals)]
        self._heard = self._heard._replace(values=values.copy(), given=values)
        return revealed.graph

    def _due(self, pending: Integers) -> Integers:
        """Return how many losses each decision has: what it reveals, or what it was told before."""
        named, settled = self._named, self._settled
        due = np.zeros(named.round.size, np.int64)
        due[named.is_pending] = pending
        unknown = settled[named.before[settled, ROUND] != named.round[settled]]
        if unknown.size:
            raise forgotten(named.names(int(unknown[0])), self._remembers)
        due[settled] = named.before[settled, SIZE]
        if self._outcome is not None and (other := due[settled] != np.diff(self._outcome.offsets)[settled]).any():
            self._conflict(int(settled[np.argmax(other)]))
        return due

    def _in_order(self, due: Integers, reveals: np.ndarray) -> tuple[Floats, np.ndarray, Integers]:
        """Return the values and what was given, decision after decision, with their arms, -1 where nobody knows."""
        heard, total = self._heard, int(due.sum())
        pending = np.repeat(self._named.is_pending, due)
        arms = reveals.astype(np.int64)
        if self._settled.size:
            arms = np.full(total, -1, np.int64)
            arms[pending] = reveals
        if heard.arms is None or heard.of is None:
            if heard.values.size != total:
                self._refuse_count(total, reveals)
            return heard.values, heard.given, arms
        order = np.lexsort((heard.arms, heard.of))
        of, listed = heard.of[order], heard.arms[order]
        wrong = np.bincount(of, minlength=due.size) != due
        if not wrong.any():
            wrong[of[pending & (arms != listed)]] = True
        if wrong.any():
            at = int(np.argmax(wrong))
            first = int(due[:at].sum())
            self._refuse_arms(at, heard.arms[heard.of == at], arms[first : first + int(due[at])])
        return heard.values[order], heard.given[order], listed

    def _refuse_count(self, total: int, reveals: np.ndarray) -> None:
        n, given = self._named.round.size, self._heard.values.size
        if n == 1 and self._settled.size:
            self._conflict(0)
        of, order = ("", "their order") if n == 1 else (f" of these {n:,} decisions", "the order of batch.reveals")
        known = f" The arms are {listed(reveals.tolist(), self._bank.own)}." if n == 1 else ""
        raise LossError(
            f"Losses must be one for each of the {total:,} revealed arms{of}, in {order}; {given:,} were given.{known}"
        )

    def _refuse_arms(self, at: int, told: Integers, due: Integers) -> None:
        if not self._named.is_pending[at]:
            self._conflict(at)
        whose, known = self._named.whose(at), listed(due.tolist(), self._bank.own)
        for arm in told[~np.isin(told, due)].tolist():
            raise LossError(
                f"Arm {arm}{whose} was not revealed, and a loss was told for it. The revealed arms are {known}. If "
                f"only the outcome shows what is revealed, tell it with graph=...",
                arm=arm,
            )
        for arm in np.setdiff1d(due, told).tolist():
            raise LossError(
                f"The loss of arm {self._name(arm)}{whose} was revealed and is missing. Tell all of {known}.", arm=arm
            )
        raise LossError(f"An arm{whose} has two losses.")

    def _checked(self, values: Floats, given: np.ndarray, arms: Integers, due: Integers, offsets: Integers) -> Floats:
        """Return values as losses, and refuse what is none."""
        binary, losses = Need.BINARY_LOSSES in self._learner.needs, np.array(values, np.float64)
        found = np.full(due.size, FITS, np.int64)
        check_many(losses, offsets, due, np.ascontiguousarray(self._named.ends), binary, found)
        if (found == FITS).all():
            return losses
        at = int(np.argmax(found != FITS))
        if not self._named.is_pending[at]:
            self._conflict(at)
        place, code = divmod(int(found[at]), CODES)
        if code == COUNT:  # which was checked before, but a rule of one's own may say so too
            self._refuse_count(int(due.sum()), arms)
        place += int(offsets[at])
        low, high = sorted(self._named.ends[at].tolist())
        in_unit = (low, high) == (0.0, 1.0)
        if code == NOT_BINARY:
            rule = f"{low:g} or {high:g} for {self._learner.name}"
        else:
            rule = "a number in [0, 1]" if in_unit else f"a number from {low:g} to {high:g}, the ends of its scale"
        what = f"{'loss' if in_unit else 'value'} of arm {self._name(arms[place])}{self._named.whose(at)}"
        where = "" if in_unit or self._heard.arms is not None or due.size > 1 else f", at place {place},"
        advice = "Scale losses before you tell them" if in_unit else "If such values do come, begin with a wider scale"
        if code == NOT_BINARY:
            advice = "Another learner takes all values between them"
        raise (LossError if in_unit or code == NOT_BINARY else OutcomeError)(
            f"The {what}{where} must be {rule}, not {short(given[place])}. {advice}; they are never clipped, and "
            f"nothing was learned.",
            arm=int(arms[place]),
        )

    def _compare(self, marks: Integers) -> None:
        """Let repetitions pass, and refuse anything else about a decision that is not pending."""
        settled, before = self._settled, self._named.before[self._settled]
        other = before[:, LOSSES] != marks[settled, LOSSES]
        if self._heard.arms is not None:
            other |= before[:, ARMS] != marks[settled, ARMS]
        if other.any():
            self._conflict(int(settled[np.argmax(other)]))

    def _conflict(self, at: int) -> None:
        raise conflict(self._named.names(at))

    def _name(self, arm: int) -> str:
        return self._bank.own.arm_name(int(arm)) if arm >= 0 else "unknown"

    def _of_key(self, at: int, before: str = " of") -> str:
        key = self._named.whose(at).partition(", decision")[0]
        return key.replace(" of", before, 1)


# For whoever writes down what is told before it is learned, as the service does in its journal.


def losses_of_one(learner: Learner, told: Any, graph: FeedbackGraph, arm: int, ends: tuple[float, float]) -> Floats:
    """Return what is told of a decision that has played `arm`, as losses in the order of what that reveals.

    `ends` are the best and the worst that can be told.

    Raises:
        LossError: it cannot be told.
    """
    reveals = graph.row_list(arm)
    n = len(reveals)
    if n <= _SHORT and type(told) in {dict, list}:  # quicker in plain Python than a call of machine code
        slots = [0.0] * n
        is_read, binary = read_floats(told, reveals, slots) == n, Need.BINARY_LOSSES in learner.needs
        if is_read and _plain_check(slots, 0, n, n, *ends, binary) == FITS:
            return np.array(slots)
    else:
        values = np.empty(n)
        losses = (
            losses_of_many(learner, values, np.array([n]), ends) if read_floats(told, reveals, values) == n else None
        )
        if losses is not None:
            return losses
    round_, played, asked = np.array([[1], [arm], [0]], np.int64)
    pending, before = np.ones(1, np.bool_), np.zeros((1, 4), np.int64)
    named = NamedDecisions(lambda _: "", lambda _: "", round_, pending, played, asked, before, np.array([ends]))
    return FeedbackCheck(learner, Bank(learner, {}, [graph]), named, of_one(told), 0).accept(None).losses


def losses_of_many(learner: Learner, told: Floats, sizes: Integers, ends: tuple[float, float]) -> Floats | None:
    """Return what is told of decisions, of so many arms for each, as losses; None if some of it cannot be told."""
    losses, found = np.array(told, np.float64), np.full(sizes.size, FITS, np.int64)
    each, offsets = np.empty((sizes.size, 2)), np.zeros(sizes.size + 1, np.int64)
    each[:] = ends
    np.cumsum(sizes, out=offsets[1:])
    check_many(losses, offsets, sizes, each, Need.BINARY_LOSSES in learner.needs, found)
    return losses if (found == FITS).all() else None


def conflict(name: str) -> ConflictError:
    """Return the error for a decision that was told something else before."""
    return ConflictError(
        f"Decision {name} was told before, with other losses or another graph. The first ones stay; losses cannot be "
        f"corrected after they were learned. Nothing was learned."
    )


def forgotten(name: str, remembers: int) -> DecisionError:
    """Return the error for a decision that is not pending, and of which nothing is remembered."""
    return DecisionError(
        f"Decision {name} was cancelled, or told so long ago that what it was told is forgotten: who made it remembers "
        f"the last {remembers:,}. Nothing was learned."
    )


def read_one(losses: Any, named: NamedDecisions, remembers: int, labels: tuple[str, ...] | None) -> LossColumns:
    """Return the losses of the one decision that is named; what is no losses at all is no repetition either."""
    try:
        return of_one(losses, labels)
    except LossError:
        if named.is_pending[0]:
            raise
        name = named.names(0)
        raise (conflict(name) if named.before[0, ROUND] == named.round[0] else forgotten(name, remembers)) from None


def cancelled_mark(round_: int, *, lost: bool) -> Integers:
    """Return what is remembered of a cancelled decision, in place of what it was told."""
    return np.array([round_, CANCELLED_SIZE, lost, 0], np.int64)


def not_pending(name: str, what: str) -> DecisionError:
    """Return the error for a decision that must be pending to be cancelled, say."""
    return DecisionError(f"Decision {name} was told or cancelled before; only a pending one can {what}.")


def carried_arm(graph: FeedbackGraph, arm: Any, name: str) -> int:
    """Return the number of the arm that a decision was carried out with, if that could be."""
    try:
        number = arm_of(graph, arm)
    except GraphError as error:
        raise GraphError(f"Decision {name} cannot have been carried out so: {error}") from error
    if not graph.row(number).size:
        raise DecisionError(
            f"Arm {graph.arm_name(number)} was absent in the round of decision {name}, or reveals nothing in its "
            f"graph. Cancel the decision, with lost=True if it was carried out."
        )
    return number


def overriding_arm(graph: FeedbackGraph, arm: Any, name: str, drawn: int, carried: int) -> int:
    """Return the arm that a decision was carried out with in place of the drawn one; what was said of it before stays.

    Raises:
        ConflictError: it was said to be another arm.
    """
    number = carried_arm(graph, arm, name)
    if carried not in {drawn, number}:
        raise ConflictError(
            f"Decision {name} was carried out with arm {graph.arm_name(carried)}, as was said before. That stays."
        )
    return number


def check_cancelled(name: str, *, overridden: bool, lost: bool) -> None:
    """Refuse to cancel a decision that was carried out as one that was not."""
    if overridden and not lost:
        raise DecisionError(
            f"Decision {name} was carried out with another arm. Tell what that arm has revealed, or cancel it with "
            f"lost=True."
        )


def listed(arms: list[int], graph: FeedbackGraph | None = None) -> str:
    """Return arms for a message, a few of them if they are many, with the labels of the graph."""
    shown = arms if len(arms) <= 12 else [*arms[:2], arms[-1]]
    names = [str(arm) if graph is None else graph.arm_name(arm) for arm in shown]
    return ", ".join(names if shown is arms else [*names[:2], "...", names[2]])
