"""What a bound takes: whole numbers of arms, horizons, gaps. Each refusal gives the rule and the value."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sidelong.checks import check_number, check_whole
from sidelong.errors import TheoryError

if TYPE_CHECKING:
    import numpy.typing as npt

LEAST_GAP = 1e-30

number = partial(check_number, TheoryError)
whole = partial(check_whole, TheoryError, least=1)


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
