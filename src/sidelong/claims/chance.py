"""Confidence limits that hold for every sample size: none of them takes a sum for a normal variable."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, stats

from sidelong.errors import TheoryError

#: The shares of the wealth that are bet, one bettor each.
_STAKES = np.array([0.02, 0.1, 0.3, 0.6, 1.0])


def least_probability(hits: int, trials: int, risk: float) -> float:
    """Return the lower limit of Clopper and Pearson for the probability of a hit."""
    return float(stats.beta.ppf(risk, hits, trials - hits + 1)) if hits else 0.0


def most_probability(hits: int, trials: int, risk: float) -> float:
    """Return the upper limit of Clopper and Pearson for the probability of a hit."""
    return float(stats.beta.ppf(1.0 - risk, hits + 1, trials - hits)) if hits < trials else 1.0


def probability_fails_from(trials: int, bound: float, risk: float) -> float:
    """Return how many times `bound` a frequency must be, for its lower limit to be above; inf if that cannot be."""
    if least_probability(trials, trials, risk) <= bound:
        return math.inf
    low, high = 0, trials  # the limit is above the bound from some number of hits in (low, high] on
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if least_probability(middle, trials, risk) > bound else (middle, high)
    return high / trials / bound


def mean_fails_from(size: int, risk: float) -> float:
    """Return how many times a bound each of so many numbers must be, for the lower limit of their mean to be above."""
    return 1.0 / least_mean(np.ones(size), risk)


def least_mean(sample: np.ndarray, risk: float) -> float:
    """Return a lower limit for the mean of a variable that is never negative, whatever its law.

    If the mean is at most m, then 1 - s + s x / m has a mean of at most 1, and so has its product over independent
    x: it is the wealth of one who stakes the share s of all he has on each x being above m. By Markov's inequality
    the wealth reaches 1 / risk with a probability of at most `risk`. So each m that makes some bettors that rich is
    ruled out.
    """
    x = np.asarray(sample, np.float64)
    if (x < 0).any():
        raise TheoryError(f"A limit for a mean takes numbers that are not negative, not {x.min():g}.")
    top = float(x.mean())
    if top == 0.0:
        return 0.0

    def wealth(log_m: float) -> float:
        """Return the logarithm of the bettors' mean wealth, over what rules m out."""
        each = np.log1p(_STAKES[:, None] * (x / math.exp(log_m) - 1.0)[None, :]).sum(axis=1)
        return float(np.logaddexp.reduce(each) - math.log(_STAKES.size) + math.log(risk))

    with np.errstate(divide="ignore"):  # one who staked all on an x that was 0 has nothing
        low = math.log(top) + math.log(risk) - 1.0
        return math.exp(optimize.brentq(wealth, low, math.log(top))) if wealth(low) > 0 else 0.0
