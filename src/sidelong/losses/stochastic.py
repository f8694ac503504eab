"""Stochastic worlds: the losses of an arm are independent draws from one law."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.errors import WorldError
from sidelong.losses.world import World, arrays
from sidelong.losses.world_arguments import describe, floats, means_of
from sidelong.losses.world_kernels import BERNOULLI, BETA
from sidelong.losses.world_makers import world
from sidelong.numerics import beta_power, log

if TYPE_CHECKING:
    import numpy.typing as npt

# Between these, rounding does not show in the law of a loss.
_LEAST, _MOST = 1e-9, 1e9


@world(means="means", stochastic=True)
def bernoulli(means: npt.ArrayLike) -> World:
    """Make the standard stochastic world: the loss of arm i is 1 with probability means[i], else 0.

    Source: Lai and Robbins, "Asymptotically efficient adaptive allocation rules", Advances in Applied
    Mathematics 6 (1985); with side observations, Caron, Kveton, Lelarge and Bhagat, "Leveraging side
    observations in stochastic bandits", UAI 2012.

    Args:
        means: the expected loss of each arm, from 0 to 1.

    Raises:
        WorldError: a mean is missing, not a number or outside [0, 1].

    Example:
        >>> bernoulli([0.4, 0.6, 0.6])
        <World bernoulli: 3 arms, best arm 0 with mean 0.4, next 0.6>

    """
    m = means_of(means)
    return World("bernoulli", m.size, arrays(BERNOULLI, m), describe(m), binary=True)


@world(means="means", concentration="list", stochastic=True)
def beta(means: npt.ArrayLike, concentration: npt.ArrayLike = 10.0) -> World:
    """Make a stochastic world of losses anywhere from 0 to 1: arm i has a Beta distribution with mean means[i].

    Its parameters are a = means[i] c and b = (1 - means[i]) c, where c is the concentration, and the variance is
    means[i] (1 - means[i]) / (c + 1). Draws are by rejection (Cheng 1978, Algorithm BA). They are exact, and their
    arithmetic is the same on every machine, which that of an inverse distribution function would not be.

    Args:
        means: the expected loss of each arm, from 0 to 1. An arm of mean 0 or 1 always has that loss.
        concentration: how close losses are to their mean: one number, or one for each arm; from 1e-9 to 1e9.

    Raises:
        WorldError: a mean is outside [0, 1], or a concentration is not a number in its range.

    Example:
        >>> beta([0.4, 0.6], concentration=20)
        <World beta: 2 arms, best arm 0 with mean 0.4, next 0.6; concentration 20>

    """
    m = means_of(means)
    c = floats("concentration", concentration)
    if c.ndim > 1 or (c.ndim == 1 and c.size != m.size):
        raise WorldError(
            f"concentration must be one number, or one for each of the {m.size} arms; its shape is {c.shape}."
        )
    if not ((c >= _LEAST) & (c <= _MOST)).all():
        raise WorldError(
            f"concentration must lie from {_LEAST:g} to {_MOST:g}, not {concentration!r}. Losses "
            f"of a smaller one are 0 or 1, those of a larger one are their mean: take bernoulli or table."
        )
    a = m * c
    b = (1.0 - m) * c
    # What the draws need, worked out once.
    power = [beta_power(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    log_sum = [log(float(each)) for each in a + b]
    spread = f"{c.min():g}" if c.min() == c.max() else f"{c.min():g} to {c.max():g}"
    return World(
        "beta",
        m.size,
        arrays(BETA, m, table=np.array([a, b, power, log_sum])),
        f"{describe(m)}; concentration {spread}",
        binary=bool(((m == 0.0) | (m == 1.0)).all()),
    )
