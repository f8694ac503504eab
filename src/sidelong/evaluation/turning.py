"""An alarm: the guaranteed intervals of two windows of rounds that do not meet say that the world has turned.

Rounds are cut into windows of 32, 64, 128, ... rounds, by their numbers. For each arm and window there are limits for
the expected loss, from the inequality of `sidelong.evaluation.weighing` with b = 1/2: for X >= 0 with mean mu,

    E exp(s (X - mu) - psi(s) (X - 1/2)^2) <= 1,    psi(s) = -ln(1 - s) - s,

where X = [revealed] l / P, and for the upper limit [revealed] (1 - l) / P. Here l may itself be random. If the expected
loss of the arm, given all that came before, is the same number mu in every round, then by Ville's inequality mu is
above

    max over s of (s sum of X - psi(s) sum of (X - 1/2)^2 - ln(1 / risk)) / (s n)

after any number n of rounds of the window, but for the given risk. That is divided among 16 rates, the arms, both
limits, and the windows, of which the i-th from 0 gets 1 / ((i + 1) (i + 2)). So as long as nothing turns, limits that
cross are seen with a probability of at most LEVEL, for all arms, at all times together. As all intervals of an arm meet
if and only if the largest lower limit is not above the least upper one, six numbers for each arm are enough.

A round without feedback, for whatever reason, counts with X = 0 at both ends, which only makes the interval wider. So
does one whose feedback comes when its window is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.numerics import log, log1p

if TYPE_CHECKING:
    import numpy.typing as npt

LEVEL = 0.01  #: the chance of any false alarm, ever
FIRST = 32  #: the length of the first window
_RATES = 16  # 1/2, ..., 2^-16
LOWER, UPPER = range(4, 6)


class Turning(NamedTuple):
    """What is kept of all windows."""

    #: Of each arm: of the open window the sums of X and of (X - 1/2)^2, without the 1/4 of each round, for the lower
    #: and for the upper limit; and of all closed ones the largest lower and the least upper limit.
    arms: np.ndarray  #: (6, K)
    window: np.ndarray  #: int64: the first round of the open one, its last round, and its number from 0

    @classmethod
    def new(cls, n_arms: int, first: int = 1) -> Turning:
        """Return one that begins with this round."""
        arms = np.zeros((6, n_arms))
        arms[UPPER] = 1.0
        return cls(arms, np.array([first, first + FIRST - 1, 0]))


@kernel
def watch(
    turning: Turning, graph: GraphArrays, arm: int, p: np.ndarray, losses: np.ndarray, t: int, P: np.ndarray
) -> None:
    """Count that round t, in which `arm` was drawn from `p`, revealed `losses`; `P` is scratch."""
    observe(graph, p, P)
    first = graph.start[arm]
    arms = graph.targets[first : graph.stop[arm]]
    for e in range(arms.size):
        P[e] = P[arms[e]]  # arms ascend, so that none is overwritten before it is read
    look(turning, arms, P, losses, t)


@kernel
def look(turning: Turning, arms: np.ndarray, P: np.ndarray, losses: np.ndarray, t: int) -> None:
    """Do the same, where P holds the probabilities of observing these arms, one after the other."""
    while t > turning.window[1]:
        _close(turning)
    if t < turning.window[0]:
        return
    for e in range(arms.size):
        k = arms[e]
        w = 1.0 / max(P[e], 1e-140)
        x = losses[e] * w
        y = (1.0 - losses[e]) * w
        turning.arms[0, k] += x
        turning.arms[1, k] += x * (x - 1.0)
        turning.arms[2, k] += y
        turning.arms[3, k] += y * (y - 1.0)


@kernel
def _close(turning: Turning) -> None:
    """Keep the limits of the open window, and open the next one."""
    arms, window = turning.arms, turning.window
    length = window[1] - window[0] + 1
    limits(turning, window[1], arms[LOWER], arms[UPPER])
    arms[:4] = 0.0
    window[0] = window[1] + 1
    window[1] += 2 * length
    window[2] += 1


@kernel
def limits(turning: Turning, last: int, lower: np.ndarray, upper: np.ndarray) -> None:
    """Raise `lower` and bring down `upper` to the limits of the open window, of which the rounds up to `last` count."""
    arms = turning.arms
    n = min(last, turning.window[1]) - turning.window[0] + 1
    if n < 1:
        return
    i = np.float64(turning.window[2])
    risk = LEVEL / ((i + 1.0) * (i + 2.0)) / (2.0 * lower.size * _RATES)
    most = -log(risk)
    for k in range(lower.size):
        s = 1.0
        for _ in range(_RATES):
            s *= 0.5
            psi = -log1p(-s) - s
            least = (s * arms[0, k] - psi * (arms[1, k] + 0.25 * n) - most) / (s * n)
            spared = (s * arms[2, k] - psi * (arms[3, k] + 0.25 * n) - most) / (s * n)
            lower[k] = max(lower[k], least)
            upper[k] = min(upper[k], 1.0 - spared)


class WorldHealth(NamedTuple):
    """Whether the world has turned since the beginning: whether an arm's expected loss is another one now."""

    turned: bool  #: whether the intervals of two windows do not meet, for some arm
    arm: int | None  #: the arm for which they are farthest apart
    above: float | None  #: what its expected loss was at least in one window
    below: float | None  #: and at most in another
    since: int  #: the first round of the open window
    level: float  #: the chance that this is ever said though nothing turned, however often one looks
    unknown: str = ""  #: why nothing can be said, if so
    overridden: int = 0  #: how many decisions were carried out with another arm: nothing is said about these rounds

    def __str__(self) -> str:
        """Return a sentence for people."""
        said, n = self._said(), self.overridden
        if n == 1:
            said += " 1 decision was carried out with another arm, and does not count."
        elif n > 1:
            said += f" {n:,} decisions were carried out with other arms, and do not count."
        return said

    def _said(self) -> str:
        if self.unknown:
            return f"Whether the world has turned is not known: {self.unknown}."
        if not self.turned:
            return "Nothing says that the world has turned."
        return (
            f"The world has turned: in some window of rounds arm {self.arm} cost at least {self.above:.3f} per round, "
            f"and in another at most {self.below:.3f}. If nothing had, this would be said with a probability of at "
            f"most {100 * self.level:g} %."
        )


def health(turning: Turning, last: int) -> WorldHealth:
    """Return what is known after the draw of round `last`."""
    lower, upper = turning.arms[LOWER].copy(), turning.arms[UPPER].copy()
    limits(turning, last, lower, upper)
    apart: npt.NDArray[np.float64] = lower - upper
    arm, since = int(np.argmax(apart)), int(turning.window[0])
    if not apart[arm] > 0.0:
        return WorldHealth(turned=False, arm=None, above=None, below=None, since=since, level=LEVEL)
    found = float(lower[arm]), float(upper[arm])
    return WorldHealth(turned=True, arm=arm, above=found[0], below=found[1], since=since, level=LEVEL)
