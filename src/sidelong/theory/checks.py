"""What a bound takes: whole numbers of arms, horizons, gaps. Each refusal gives the rule and the value."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from sidelong.errors import TheoryError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Gaps", "at_least_two", "horizon", "number", "positive_gap", "read_gaps", "whole"]

LEAST_GAP = 1e-30


def number(
    name: str, value: object, *, least: float = -math.inf, most: float = math.inf, above: float = -math.inf
) -> float:
    """Return `value` as a float, if it is a finite number within these limits."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or not math.isfinite(value):
        raise TheoryError(f"{name} is a finite number, not {value!r}.")
    read = float(value)
    if not (least <= read <= most and read > above):
        limits = [f"at least {least:g}"] * (least > -math.inf) + [f"above {above:g}"] * (above > -math.inf)
        limits += [f"at most {most:g}"] * (most < math.inf)
        raise TheoryError(f"{name} is {' and '.join(limits)}; it is {value!r}.")
    return read


def whole(name: str, value: object, *, least: int = 1) -> int:
    """Return `value` as an int, if it is a whole number that is large enough."""
    try:
        integer = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TheoryError(f"{name} is a whole number, not {value!r}.") from None
    if integer < least:
        raise TheoryError(f"{name} is at least {least}; it is {integer}.")
    return integer


def horizon(T: object) -> float:
    """Return T, which need not be whole, if it is a number of rounds that floats have room for."""
    return number("T", T, least=1, most=1e100)


def positive_gap(gap: object) -> float:
    """Return the gap of an arm that is not best, if floats have room for its fourth power."""
    return number("gap", gap, least=LEAST_GAP, most=1)


def at_least_two(K: object) -> int:
    """Return K, if there are arms to choose from."""
    arms = whole("K", K)
    if arms == 1:
        raise TheoryError("K is the number of arms and at least 2: with one arm there is nothing to regret.")
    return arms


class Gaps:
    """The gaps of all arms: by how much the mean loss of each is above that of the best one."""

    def __init__(self, all_gaps: npt.NDArray[np.float64]) -> None:
        self.all = all_gaps
        self.K = all_gaps.size
        self.positive: list[float] = np.sort(all_gaps[all_gaps > 0]).tolist()
        self.least: float = self.positive[0]
        self._sums: dict[int, float] = {}

    @property
    def inverse_sum(self) -> float:
        """The sum of 1 / gap over the arms that are not best."""
        return self.largest_inverses(self.K)

    def largest_inverses(self, count: int) -> float:
        """Return the largest sum of 1 / gap over `count` arms that are not best: over the smallest gaps."""
        if count not in self._sums:
            self._sums[count] = math.fsum(1.0 / gap for gap in self.positive[:count])
        return self._sums[count]


def read_gaps(gaps: npt.ArrayLike | Gaps) -> Gaps:
    """Return the gaps, if they are numbers from 0 to 1, 0 for some arm and more for another."""
    if isinstance(gaps, Gaps):
        return gaps
    try:
        read = np.array(gaps, np.float64)
    except (TypeError, ValueError) as error:
        raise TheoryError(f"gaps cannot be read as numbers: {error}.") from error
    if read.ndim != 1:
        raise TheoryError(f"gaps are a list with one number for each arm; their shape is {read.shape}.")
    wrong = read[~((read >= 0) & (read <= 1))]
    if wrong.size:
        raise TheoryError(f"A gap is a number from 0 to 1, because losses are; {wrong[0]:g} is not.")
    if ((read > 0) & (read < LEAST_GAP)).any():
        raise TheoryError(f"A gap is 0 or at least {LEAST_GAP:g}; {read[read > 0].min():g} is neither.")
    if not (read == 0).any():
        raise TheoryError("The best arm has gap 0, and no gap here is 0: list the gaps of all arms, the best one too.")
    if not (read > 0).any():
        raise TheoryError("Every gap is 0: all arms are best, and no learner regrets anything.")
    return Gaps(read)
