r"""Ridge regression, one loss at a time: the regressor of `sidelong.ContextualAgent`.

It minimises, over the weights w, h |w|^2 + sum over what was learned of (l - <w, x>)^2, by rank-one updates of the
inverse of h + sum x x^T, so that a loss costs O(d^2) for d features, and nothing is solved. In infinite precision the
order in which losses are learned makes no difference, so that they may come late.

::

    B = 1 / h,  w = 0
    learn (x, l):   g = B x,   s = rho + <x, g>                                               1
                    w += (l - <w, x>) g / s                                                   2
                    B = (B - g g^T / s) / rho                                                 3

Forgetting is rho < 1: what was learned n losses ago counts rho^n. Directions that no x has had for long would then
let B grow without limit. So rho is 1 for a loss for which the trace of B would come above that of the beginning.

There is either one such model for each arm, all with the same x, or one model for all arms, whose x are the rows of a
table with the features of each arm. Sums have a fixed order, by which the loops over features fill vector registers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel

if TYPE_CHECKING:
    from sidelong.numerics import Whole


class State(NamedTuple):
    """What was learned, of M models with d features."""

    w: np.ndarray  #: (d, M)
    B: np.ndarray  #: (M, d, d)
    g: np.ndarray  #: (d,), room
    limit: np.ndarray  #: (1,), the trace of B in the beginning


def init(models: int, features: int, penalty: float) -> State:
    """Return the state before anything was learned; h is the penalty."""
    B = np.zeros((models, features, features))
    B[:, np.arange(features), np.arange(features)] = 1.0 / penalty
    return State(np.zeros((features, models)), B, np.zeros(features), np.array([features / penalty]))


@kernel
def predict(state: State, x: np.ndarray, f: np.ndarray) -> None:
    """Write into `f` the predicted loss of each arm, from 0 to 1; `x` is one row for all arms or a row for each."""
    for i in range(f.size):
        f[i] = 0.0
    for k in range(x.shape[1]):
        if x.shape[0] == 1:
            a = x[0, k]
            if a != 0.0:
                for i in range(f.size):
                    f[i] += state.w[k, i] * a
        else:
            b = state.w[k, 0]
            for i in range(f.size):
                f[i] += b * x[i, k]
    for i in range(f.size):
        f[i] = 0.0 if f[i] < 0.0 else (1.0 if f[i] > 1.0 else f[i])


@kernel
def learn(state: State, x: np.ndarray, arms: np.ndarray, losses: np.ndarray, rho: float) -> None:
    """Learn the losses of some arms, ``losses[k]`` being that of ``arms[k]``."""
    for k in range(arms.size):
        arm = np.int64(arms[k])
        one = x.shape[0] == 1
        _learn_one(state, arm if one else np.int64(0), x[np.int64(0) if one else arm], losses[k], rho)


@kernel
def _learn_one(state: State, m: Whole, x: np.ndarray, l: float, rho: float) -> None:
    """Let model m learn one loss."""
    d, g, B = x.size, state.g, state.B[m]
    for i in range(d):
        g[i] = 0.0
    for k in range(d):
        a = x[k]
        if a != 0.0:
            row = B[k]
            for i in range(d):
                g[i] += a * row[i]
    predicted = 0.0
    xg = 0.0
    trace = 0.0
    for k in range(d):
        predicted += state.w[k, m] * x[k]
        xg += x[k] * g[k]
        trace += B[k, k]
    if rho < 1.0 and trace > rho * state.limit[0]:
        rho = 1.0
    s = rho + xg  # 1
    error = (l - predicted) / s
    root = math.sqrt(s)
    for k in range(d):
        state.w[k, m] += error * g[k]  # 2
        g[k] /= root  # so that B stays symmetric to the bit
    inverse = 1.0 / rho
    for k in range(d):
        row = B[k]
        a = g[k]
        for i in range(d):
            row[i] = (row[i] - a * g[i]) * inverse  # 3
