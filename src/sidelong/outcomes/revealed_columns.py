"""What many outcomes revealed, in columns, and checks of the columns that it is made from."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sidelong.batches import BatchColumns
from sidelong.checks import as_float, short
from sidelong.errors import OutcomeError
from sidelong.outcomes.revealed import Revealed
from sidelong.tables import as_array, objects

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

F = TypeVar("F", bound="Callable[..., RevealedColumns]")
T = TypeVar("T", bound="Hashable")

#: Graphs of more arms are kept by nobody. All that one maker keeps take 50 MB at most.
_MOST_ARMS = 2**12


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


def kept_if_small(make: Callable[[int, T], FeedbackGraph]) -> Callable[[int, T], FeedbackGraph]:
    """Keep the last graphs, if they have few arms: to check and hash one anew takes longer than to learn.

    Args:
        make: returns the graph of a number of arms, and of something else.
    """
    kept = functools.lru_cache(maxsize=256)(make)

    @functools.wraps(make)
    def graph_of(n: int, what: T) -> FeedbackGraph:
        return (kept if n <= _MOST_ARMS else make)(n, what)

    return graph_of


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
    made = {name: column_of(values) for name, values in given.items()}
    for name, array in made.items():
        if array.shape not in {(), (n,)}:
            each = "one value" if n == 1 else f"one value for each of the {n} arms"
            raise OutcomeError(f"{name} must have {each}, not the shape {array.shape}.")
    return {name: array if array.ndim else np.broadcast_to(array, n) for name, array in made.items()}


def column_of(values: Any) -> npt.NDArray[Any]:
    """Return values as an array, with each as it was given where they are of several kinds; times are text."""
    if isinstance(values, list | tuple) and len(set(map(type, values))) > 1:
        return objects(values)
    array = as_array(values)
    return array.astype(str) if array.dtype.kind in "mM" else array  # Python has some times as numbers


def takes_batch(method: F) -> F:
    """Let `outcomes` of a helper take a batch in place of its arms: messages then name the key."""

    @functools.wraps(method)
    def outcomes(self: Any, arms: Any, *others: Any, **named: Any) -> RevealedColumns:
        if not isinstance(arms, BatchColumns):
            return method(self, arms, *others, **named)
        try:
            return replace(method(self, arms.arms, *others, **named), batch=arms)
        except OutcomeError as error:
            if error.place is None:
                raise
            key, name = short(arms.keys[error.place]), arms.ids[error.place]
            rule = str(error).removeprefix(_where(error.place))
            raise OutcomeError(f"The outcome of the key {key}, decision {name}: {rule}", place=error.place) from None

    return outcomes  # type: ignore[return-value]


def refuse_first(wrong: npt.NDArray[np.bool_], message: Callable[[int], str]) -> None:
    """Raise with the message for the first outcome that is wrong, if there is one; of several it is named."""
    if wrong.any():
        at = int(np.argmax(wrong))
        raise OutcomeError((_where(at) if wrong.size > 1 else "") + message(at), place=at)


def _where(place: int) -> str:
    """Return what is put before the message about one of several outcomes, where no key is known."""
    return f"Outcome {place}: "


def checked_arms(arms: Any, n_arms: int) -> npt.NDArray[np.int64]:
    """Return a column of arms."""
    array = as_array(arms)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise OutcomeError(f"arms must be whole numbers, one after the other, such as batch.arms, not {short(arms)}.")
    refuse_first(
        (array < 0) | (array >= n_arms),
        lambda at: f"arm must be a whole number from 0 to {n_arms - 1}, not {array[at]}.",
    )
    return array.astype(np.int64)


def checked_numbers(name: str, values: npt.NDArray[Any], low: Any, high: Any) -> npt.NDArray[np.float64]:
    """Return a column of numbers between the columns `low` and `high`, which `name` may mention as "{high:g}"."""
    array = _floats(values)

    def say(at: int) -> str:
        least, most = np.broadcast_to(low, array.shape)[at], np.broadcast_to(high, array.shape)[at]
        limits = f"a number from {least:g} to {most:g}" if most < np.inf else f"a finite number of at least {least:g}"
        return f"{name.format(high=most)} must be {limits}, not {short(values[at])}."

    refuse_first(~((array >= low) & (array <= high) & np.isfinite(array)), say)
    return array


def numbers_where_known(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return a column of numbers, NaN where there is none: where it has None or NaN."""
    array = _floats(values)
    if values.dtype.kind not in "iuf":
        none = [each is None or (isinstance(each, float) and math.isnan(each)) for each in values.tolist()]
        refuse_first(
            np.isnan(array) & ~np.array(none, np.bool_),
            lambda at: f"{name} must be a number, or None or NaN where there is none, not {short(values[at])}.",
        )
    return array


def _floats(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return a column as numbers: NaN where something is none, infinite where it is too large."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    return np.array([as_float(value) for value in values.tolist()], np.float64)


def checked_flags(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a column of True and False."""
    if values.dtype.kind != "b":
        kinds = np.array([isinstance(value, bool | np.bool_) for value in values.tolist()], np.bool_)
        refuse_first(~kinds, lambda at: f"{name} must be True or False, not {short(values[at])}.")
    return values.astype(np.bool_)
