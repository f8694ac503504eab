"""When the best arm is known: a rule that is valid at every moment, whichever learner has chosen what to look at.

In a stochastic world the told losses of arm k have the same mean mu_k, given everything before, whatever decided that
they were revealed. So S - n mu_k, with S the sum of n of them, is a martingale whose steps are in an interval of length
1, and for every rate r exp(r (S - n mu_k) - r^2 V / 2) with V = n / 4 is a supermartingale that begins at 1
(Hoeffding 1963). So is its mean over r from a normal law of variance 1 / rho, which is::

    sqrt(rho / (V + rho)) exp((S - n mu_k)^2 / (2 (V + rho)))

It ever reaches K / risk with a probability of at most risk / K (Ville 1939). So with a probability of at least
1 - risk, for all K arms and at all times together (Robbins 1970; Howard, Ramdas, McAuliffe, Sekhon 2021)::

    |S / n - mu_k| < sqrt((V + rho) ln((V + rho) K^2 / (rho risk^2))) / n

An arm whose upper limit is below the lower limits of all others is then the best. Losses that are revealed in the same
round may depend on each other in any way, because each arm has a limit of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.evaluation.offpolicy import risk

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

RHO = 16.0  #: the limits are nearly the narrowest possible around n = 500


def limits(counts: npt.NDArray[np.int64], means: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return a lower and an upper limit for the mean of each arm, all of which hold together at every moment."""
    n = np.asarray(counts, np.float64)
    V = n / 4 + RHO
    level = risk(confidence) / n.size
    with np.errstate(divide="ignore"):  # nothing is known of an arm without a loss
        radius = np.sqrt(V * np.log(V / (RHO * level**2))) / n
    return means - radius, means + radius


def best_arm(
    counts: npt.NDArray[np.int64], means: Floats, confidence: float, retired: Sequence[int] = ()
) -> int | None:
    """Return the arm with the least mean, if that is known; else None.

    Args:
        counts: how many losses of each arm were told.
        means: their means.
        confidence: the probability that no answer is ever wrong.
        retired: arms that are not compared.
    """
    lower, upper = limits(counts, means, confidence)
    lower[list(retired)] = upper[list(retired)] = np.inf
    best = int(np.argmin(upper))
    return best if upper[best] < np.delete(lower, best).min(initial=np.inf) else None
