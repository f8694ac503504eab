"""What many outcomes revealed, in columns, and checks of the columns that it is made from."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sidelong.batches import BatchColumns
from sidelong.checks import plain, short
from sidelong.errors import OutcomeError
from sidelong.outcomes.revealed import Revealed

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

F = TypeVar("F", bound="Callable[..., RevealedColumns]")


@dataclass(frozen=True, eq=False)
class RevealedColumns:
    """What many outcomes revealed, for a family to take whole: ``family.tell(batch, revealed)``.

    Outcomes that were made from the batch itself, ``helper.outcomes(batch, ...)``, are told in its order only.

    Its `graph` is also a good guess of what the next round of each key reveals: ``family.ask(keys, revealed.graph)``.
    """

    arms: npt.NDArray[np.int64]  #: that were played
    losses: npt.NDArray[np.float64]  #: of the arms that were revealed, in their order, outcome after outcome
    offsets: npt.NDArray[np.int64]  #: those of outcome i are ``losses[offsets[i]:offsets[i + 1]]``
    reveals: npt.NDArray[np.int64]  #: the arm of each loss
    graph: tuple[tuple[FeedbackGraph, ...], npt.NDArray[np.int64]]  #: graphs, and which of them each round had
    foreseen: bool = False  #: whether the graphs were known before the draw, so that `tell` takes no other ones
    batch: BatchColumns | None = None  #: whose outcomes they are, if they were made from a batch

    @classmethod
    def of_one(cls, revealed: Revealed) -> RevealedColumns:
        """Return what one outcome revealed, in columns."""
        arms = revealed.graph.out_neighbors(revealed.arm).astype(np.int64)
        one = np.array([revealed.arm], np.int64)
        graph = ((revealed.graph,), np.zeros(1, np.int64))
        return cls(one, revealed.losses, np.array([0, arms.size]), arms, graph, revealed.foreseen)

    @classmethod
    def of_ranges(
        cls,
        arms: npt.NDArray[np.int64],
        first: npt.NDArray[np.int64],
        last: npt.NDArray[np.int64],
        losses: npt.NDArray[np.float64],
        graph: tuple[tuple[FeedbackGraph, ...], npt.NDArray[np.int64]],
        *,
        foreseen: bool = False,
    ) -> RevealedColumns:
        """Make it from a table of the losses of all arms, a row for each outcome, of which a range is revealed."""
        shown = (np.arange(losses.shape[1]) >= first[:, None]) & (np.arange(losses.shape[1]) < last[:, None])
        return cls(arms, losses[shown], np.append(0, np.cumsum(last - first)), np.nonzero(shown)[1], graph, foreseen)

    def alone(self) -> Revealed:
        """Return the only outcome."""
        graphs, index = self.graph
        return Revealed(int(self.arms[0]), self.losses, graphs[index[0]], self.foreseen)


def graphs_by_mark(
    marks: npt.NDArray[np.int64], make: Callable[[int], FeedbackGraph]
) -> tuple[tuple[FeedbackGraph, ...], npt.NDArray[np.int64]]:
    """Return the different graphs that are made from a number for each outcome, and which of them each has."""
    if marks.size == 1:  # to sort takes a while
        return (make(int(marks[0])),), np.zeros(1, np.int64)
    different, index = np.unique(marks, return_inverse=True)
    return tuple(make(mark) for mark in different.tolist()), index.reshape(-1)


def columns(n: int, **given: Any) -> dict[str, npt.NDArray[Any]]:
    """Return columns of n numbers or flags as arrays; one value stands for all.

    Raises:
        OutcomeError: a column has another length.
    """
    made = {name: _column(values) for name, values in given.items()}
    for name, array in made.items():
        if array.shape not in {(), (n,)}:
            raise OutcomeError(f"{name} must have one value for each of the {n} arms, not the shape {array.shape}.")
    return {name: array if array.ndim else np.broadcast_to(array, n) for name, array in made.items()}


def _column(values: Any) -> npt.NDArray[Any]:
    """Return values as an array, with each as it was given where they are of several kinds."""
    several = isinstance(values, list | tuple) and len(set(map(type, values))) > 1
    return np.asarray(values, object) if several else np.asarray(values)


class _OutcomeAtError(OutcomeError):
    """Something is wrong with the outcome at one place."""

    def __init__(self, at: int, message: str, *, several: bool) -> None:
        super().__init__(f"Outcome {at}: {message}" if several else message)
        self.at, self.message = at, message


def takes_batch(method: F) -> F:
    """Let `outcomes` of a helper take a batch in place of its arms: messages then name the key."""

    @functools.wraps(method)
    def outcomes(self: Any, arms: Any, *others: Any, **named: Any) -> RevealedColumns:
        if not isinstance(arms, BatchColumns):
            return method(self, arms, *others, **named)
        try:
            return replace(method(self, arms.arms, *others, **named), batch=arms)
        except _OutcomeAtError as error:
            key, name = short(arms.keys[error.at]), arms.ids[error.at]
            raise OutcomeError(f"The outcome of the key {key}, decision {name}: {error.message}") from None

    return outcomes  # type: ignore[return-value]


def refuse_first(wrong: npt.NDArray[np.bool_], message: Callable[[int], str]) -> None:
    """Raise with the message for the first outcome that is wrong, if there is one; of several it is named."""
    if wrong.any():
        at = int(np.argmax(wrong))
        raise _OutcomeAtError(at, message(at), several=wrong.size > 1)


def checked_arms(arms: Any, n_arms: int) -> npt.NDArray[np.int64]:
    """Return a column of arms."""
    array = np.asarray(arms)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise OutcomeError(f"arms must be whole numbers, one after the other, such as batch.arms, not {short(arms)}.")
    refuse_first(
        (array < 0) | (array >= n_arms),
        lambda at: f"arm must be a whole number from 0 to {n_arms - 1}, not {array[at]}.",
    )
    return array.astype(np.int64)


def checked_numbers(name: str, values: npt.NDArray[Any], low: Any, high: Any) -> npt.NDArray[np.float64]:
    """Return a column of numbers between the columns `low` and `high`, which `name` may mention as "{high:g}"."""
    known = values.dtype.kind in "iuf"
    array = values.astype(np.float64) if known else np.array([_real(value) for value in values.tolist()], np.float64)

    def say(at: int) -> str:
        least, most = np.broadcast_to(low, array.shape)[at], np.broadcast_to(high, array.shape)[at]
        limits = f"a number from {least:g} to {most:g}" if most < np.inf else f"a finite number of at least {least:g}"
        return f"{name.format(high=most)} must be {limits}, not {short(values[at])}."

    refuse_first(~((array >= low) & (array <= high) & np.isfinite(array)), say)
    return array


def _real(value: Any) -> float:
    """Return a value as a float: NaN if it is no number, infinite if it is too large."""
    try:
        return float(plain(value))
    except OverflowError:
        return np.inf


def checked_flags(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a column of True and False."""
    if values.dtype.kind != "b":
        kinds = np.array([isinstance(value, bool | np.bool_) for value in values.tolist()], np.bool_)
        refuse_first(~kinds, lambda at: f"{name} must be True or False, not {short(values[at])}.")
    return values.astype(np.bool_)
