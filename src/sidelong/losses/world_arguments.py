"""Checks of what worlds are made from: each returns the value, or says what is wrong with it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sidelong.checks import check_number, check_whole, short
from sidelong.errors import WorldError

if TYPE_CHECKING:
    import numpy.typing as npt

LAST_ROUND = 2**48 - 1  # random numbers are counted by rounds of 48 bits

whole = partial(check_whole, WorldError)
number = partial(check_number, WorldError)


def floats(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return a copy of `values` as an array of finite floats."""
    try:
        array = np.array(values, np.float64, order="C")
    except (OverflowError, TypeError, ValueError) as error:
        raise WorldError(f"{name} must be numbers, not {short(values)}: {error}.") from None
    if not np.isfinite(array).all():
        where = ", ".join(str(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise WorldError(f"{name} must be finite numbers; entry [{where}] is {array[~np.isfinite(array)][0]}.")
    return array


def means_of(values: npt.ArrayLike, name: str = "means") -> npt.NDArray[np.float64]:
    """Return one mean loss an arm."""
    means = floats(name, values)
    if means.ndim != 1 or means.size == 0:
        raise WorldError(f"{name} must be a list with one number for each arm; its shape is {means.shape}.")
    _within_unit(name, means)
    return means


def rows_of(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return rows of means; one row is followed by itself with the two best arms exchanged."""
    means = floats("means", values)
    if means.ndim == 1 and means.size > 1:
        best, second = best_and_second(means)
        exchanged = means.copy()
        exchanged[best], exchanged[second] = means[second], means[best]
        means = np.array([means, exchanged])
    if means.ndim != 2 or means.shape[0] < 2 or means.shape[1] == 0:
        raise WorldError(
            f"means must be a list with one number for each of two or more arms, or two or more such lists, "
            f"as in [before, after]; its shape is {means.shape}."
        )
    _within_unit("means", means)
    return means


def _within_unit(name: str, array: npt.NDArray[np.float64]) -> None:
    outside = (array < 0.0) | (array > 1.0)
    if outside.any():
        first = np.argwhere(outside)[0]
        row = f"row {first[0]}, " if array.ndim == 2 else ""
        raise WorldError(
            f"{name} must lie from 0 to 1; {row}arm {first[-1]} has {float(array[tuple(first)])!r}. "
            f"A loss is a cost between 0 (best) and 1 (worst): rescale yours."
        )


def best_and_second(means: npt.NDArray[np.float64]) -> tuple[int, int]:
    """Return the arms of the two smallest means; between equal ones, the lower index goes first."""
    order = np.argsort(means, kind="stable")
    return int(order[0]), int(order[1])


def describe(means: npt.NDArray[np.float64]) -> str:
    """Say which arm is best, and by how much."""
    if means.size == 1:
        return f"1 arm, mean {means[0]:g}"
    best, second = best_and_second(means)
    return f"{means.size} arms, best arm {best} with mean {means[best]:g}, next {means[second]:g}"
