"""Trust that the keys of a family learn together: a hundred products tell two forecasts apart sooner than one can.

AdaHedge over the bold half and the advisers, on what all keys of a `tell` would have lost with each::

    T_k ~ exp(-H_k / y), y = (S + 10^-6) / ln(M + 1)
    told: c_k = what each would have lost, summed over the keys that are told, in their order
          S += max(0, <T, c> - mix), mix = -y ln sum T_k exp(-c_k / y);  H_k += c_k

    a key gives e_k times the weight that its own losses give, e_k ~ (1 - FLOOR) T_k + FLOOR / (M + 1)

So a key begins with what the others know, and goes its own way where its own losses say so. Without the floor it could
not: the sums of all keys grow faster than its own, and whoever is worse for most would be worse for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sidelong.numerics import exp, log, total

FLOOR = 0.01  # a key that differs pays for about ln(1 / FLOOR) times its own scale until it has found out


class PooledTrust(NamedTuple):
    """What is known of the bold half and of each adviser over all keys."""

    lost: np.ndarray  #: (M + 1,), H
    gap: np.ndarray  #: (1,), S

    @classmethod
    def new(cls, advisers: int) -> PooledTrust:
        """Return one that knows nothing."""
        return cls(np.zeros(advisers + 1), np.zeros(1))

    def with_advisers(self, n: int) -> PooledTrust:
        """Return it with so many advisers more, of whom the best is expected."""
        return PooledTrust(np.append(self.lost, np.full(n, self.lost.min())), self.gap)

    @property
    def _rate(self) -> float:
        return (float(self.gap[0]) + 1e-6) / log(max(float(self.lost.size), 2.0))

    def log_weights(self) -> np.ndarray:
        """Return the logarithms of the weights, of which the largest is 0."""
        T = (1.0 - FLOOR) * _weigh(self.lost, self._rate)[1] + FLOOR / self.lost.size
        return np.array([log(float(each)) for each in T / T.max()])

    def after(self, c: np.ndarray) -> PooledTrust:
        """Return what is known once it is told what each would have lost with some keys."""
        y = self._rate
        before, T = _weigh(self.lost, y)
        mix = _weigh(self.lost + c, y)[0] - before
        return PooledTrust(self.lost + c, self.gap + max(0.0, float(total(T * c)) - mix))


def _weigh(lost: np.ndarray, y: float) -> tuple[float, np.ndarray]:
    """Return -y ln of the sum of the weights, and the weights."""
    least = float(lost.min())
    w = np.array([exp(max(-700.0, -(float(each) - least) / y)) for each in lost])
    sum_ = float(total(w))
    return least - y * log(sum_), w / sum_
