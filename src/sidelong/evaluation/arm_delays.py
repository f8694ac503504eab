"""Whether the feedback of some arms comes later than that of others: a test that may be looked at after every decision.

The bounds with late feedback need delays that do not depend on the arm that was drawn. If they do not, then at the time
when a decision is told its arm still has the law p that it was drawn with, given its delay and all that was told
before. So a bettor who stakes a share s on arm i, for or against it as the delay is long or short, has a wealth that
is multiplied by 1 + s h (1[arm = i] - p_i), where h in [-1, 1] is the rank of the delay among those before: the mean of
that factor is 1. There are four bettors for each arm. Their mean wealth W is a martingale from 1 on, and by Ville's
inequality it ever reaches 1 / level with a probability of at most `level`, however often one looks.

The delay of a decision is how many others were drawn before it was told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import bind, kernel
from sidelong.numerics import total

if TYPE_CHECKING:
    from collections.abc import Callable

#: The chance that the test ever says that delays depend on the arm, if they do not.
LEVEL = 0.001
_STAKES = (0.5, 0.125, -0.125, -0.5)
_MOST = 1e300  # a bettor who has that much stops
_CLASSES = 64  # of delays, by their number of binary digits


class ArmDelays:
    """The wealth of the bettors, and the delays so far."""

    def __init__(self, n_arms: int) -> None:
        self.wealth = np.ones((len(_STAKES), n_arms))
        self.seen = np.zeros(_CLASSES, np.int64)  #: how many told decisions had a delay of so many binary digits
        self.peak = np.ones(1)  #: the largest W so far
        known, none = (self.wealth, self.seen, self.peak), np.empty(0, np.int64)
        self._bet: Callable[..., None]
        self._bet_many: Callable[..., None]
        bind(self, "_bet", bet, *known, 0, np.empty(0), 0)
        bind(self, "_bet_many", bet_many, *known, none, np.empty((0, n_arms)), none)

    def add_arm(self) -> None:
        """Let four more bettors begin with the mean of the others, which leaves the mean of all as it is."""
        self.wealth = np.concatenate([self.wealth, self.wealth.mean(axis=1, keepdims=True)], axis=1)

    def told(self, arm: int, p: np.ndarray, delay: int) -> None:
        """Bet on the delay of a decision that was drawn with the probabilities p."""
        self._bet(self.wealth, self.seen, self.peak, arm, p, delay.bit_length())

    def told_many(self, arms: np.ndarray, p: np.ndarray, digits: np.ndarray) -> None:
        """Bet on the delays of decisions, one after the other; `digits` are how many binary digits each delay has."""
        self._bet_many(self.wealth, self.seen, self.peak, arms, p, digits)

    @property
    def p_value(self) -> float:
        """A p-value that holds at every moment at once."""
        return min(1.0, 1.0 / float(self.peak[0]))


@kernel
def bet(wealth: np.ndarray, seen: np.ndarray, peak: np.ndarray, arm: int, p: np.ndarray, digits: int) -> None:
    """Let all bettors bet on a delay of so many binary digits."""
    below, n = 0, 0
    for k in range(seen.size):
        n += seen[k]
        below += seen[k] if k < digits else 0
    if n > 0:
        h = (2.0 * below + seen[digits]) / n - 1.0
        mean = 0.0
        for j in range(len(_STAKES)):
            for i in range(p.size):
                gain = (1.0 if i == arm else 0.0) - p[i]
                wealth[j, i] = min(wealth[j, i] * (1.0 + _STAKES[j] * h * gain), _MOST)
            mean += total(wealth[j]) / (wealth.shape[0] * p.size)
        peak[0] = max(peak[0], mean)
    seen[digits] += 1


@kernel
def bet_many(
    wealth: np.ndarray, seen: np.ndarray, peak: np.ndarray, arms: np.ndarray, p: np.ndarray, digits: np.ndarray
) -> None:
    """Let all bettors bet on several delays."""
    for k in range(arms.size):
        bet(wealth, seen, peak, arms[k], p[k], digits[k])
