"""Intervals that hold at every moment at once, made of evidence that is summed over rounds.

Each round costs a candidate, an arm or a distribution, some c in [0, 1], and C is the sum of these over n rounds. For a
rate s, *evidence* that C is large is the logarithm of a product with one factor for each round. A factor is positive,
and given everything before the round its mean is at most exp(s c). So

    exp(evidence - s C)

is a nonnegative supermartingale that begins at 1, and so is its mean over several rates. It ever reaches 1 / risk
with a probability of at most `risk` (Ville 1939). Every C at which it has done so is ruled out: that is the lower
limit. Evidence that n - C is large gives the upper limit in the same way.

If both limits hold, the lower one is not above the upper one. Where they cross, one of them has failed, which happens
with a probability of at most `risk` if the assumptions behind the evidence are true: the assumptions are rejected.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


class Evidence(NamedTuple):
    """Of what candidates cost: a row for each rate, and a column for each candidate."""

    rates: Floats
    dear: Floats  #: that the cost is large
    cheap: Floats  #: that the number of rounds, less the cost, is large


class Interval(NamedTuple):
    """For the mean cost of each candidate."""

    lower: Floats
    upper: Floats
    rejected: npt.NDArray[np.bool_]  #: where the limits cross


class Best(NamedTuple):
    """For the mean cost of the cheapest candidate, whichever that is. All limits together hold with the confidence."""

    lower: float
    upper: float
    most: (
        Floats  #: what each candidate costs at most; may be more than 1, and a little more than the limit of `Interval`
    )
    rejected: bool  #: whether the limits of some candidate cross


def interval(evidence: Evidence, n: int, risk: float, found: Floats) -> Interval:
    """Return an interval for each candidate, which misses with the given risk.

    `found` are the estimates. An interval that holds also holds when it is stretched to its estimate.
    """
    lower = _least(evidence.dear, evidence.rates, n, risk / 2)
    upper = 1.0 - _least(evidence.cheap, evidence.rates, n, risk / 2)
    crossed = lower > upper
    stretched = np.fmin(lower, found), np.fmax(upper, found)
    return Interval(np.where(crossed, lower, stretched[0]), np.where(crossed, upper, stretched[1]), crossed)


def interval_of_best(evidence: Evidence, n: int, risk: float) -> Best:
    """Return an interval for the cheapest candidate: the risk is divided among all of them."""
    rates, each = evidence.rates, risk / evidence.dear.shape[1] / 2
    low, high = _bracket(evidence.dear, rates, n, each)
    spared, most_spared = _bracket(evidence.cheap, rates, n, each)
    # Roots are found where they can matter: of a hundred thousand arms, for a few.
    cheapest, sure, crossing = low <= high.min(), most_spared >= spared.max(), high + most_spared > 1.0
    lower = _least(evidence.dear[:, cheapest], rates, n, each).min()
    upper = 1.0 - _least(evidence.cheap[:, sure], rates, n, each).max()
    both = _least(evidence.dear[:, crossing], rates, n, each) + _least(evidence.cheap[:, crossing], rates, n, each)
    return Best(float(lower), float(upper), 1.0 - spared, bool((both > 1.0).any()))


def _least(evidence: Floats, rates: Floats, n: int, risk: float) -> Floats:
    """Return a lower limit for each mean cost: where the mean over the rates reaches 1 / risk, which halving finds."""
    limit = np.zeros(evidence.shape[1])
    if n == 0:
        return limit
    low, high = _bracket(evidence, rates, n, risk)
    above = high > 0.0  # of a hundred thousand arms most may be below, and exp takes long
    low, high, evidence = low[above], high[above], evidence[:, above] + math.log(risk)
    for _ in range(25):
        middle = (low + high) / 2
        exponents = evidence - np.multiply.outer(rates, n * middle)
        rich = np.exp(exponents).mean(axis=0) >= 1.0  # no exponent is above the logarithm of the number of rates
        low, high = np.where(rich, middle, low), np.where(rich, high, middle)
    limit[above] = np.maximum(low, 0.0)  # above 1, which no cost is, the assumptions are rejected
    return limit


def _bracket(evidence: Floats, rates: Floats, n: int, risk: float) -> tuple[Floats, Floats]:
    """Return what encloses the limit: the mean over the rates is at most the largest, and at least its share of it."""
    single = (evidence + math.log(risk)) / rates[:, None]
    return (single - math.log(rates.size) / rates[:, None]).max(axis=0) / n, single.max(axis=0) / n
