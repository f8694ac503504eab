r"""Ridge regression, one loss at a time: the regressor of `sidelong.ContextualAgent` and of families with features.

It minimises, over the weights w, h |w|^2 + sum over what was learned of (l - <w, x>)^2, by rank-one updates of the
inverse of h + sum x x^T, so that a loss costs O(d^2) for d features, and nothing is solved. In infinite precision the
order in which losses are learned makes no difference, so that they may come late.

::

    B = 1 / h,  w = 0
    learn (x, l):   g = B x,   r = <x, g>                                                     1
                    w += (l - <w, x>) g / (1 + r)                                             2
                    B -= e / (1 + e r) g g^T,   e = rho - (1 - rho) / r                       3

Forgetting is rho < 1, and only along x (R. Kulhavy, M. Karny, "Tracking of slowly varying parameters by directional
forgetting", IFAC 1984): of what was learned for this x, n losses ago, rho^n is left, and a Monday makes no Saturday be
forgotten. Line 3 is (B - g g^T / (1 + r)) / rho along g, and leaves the other directions as they are. If <x, B x> would
come above that of the beginning, e is at least 0. A loss of weight v is learned as that of sqrt(v) x and sqrt(v) l.

There is either one such model for each arm, all with the same x, or one model for all arms, whose x are the rows of a
table with the features of each arm. B depends on the x that were learned, and not on the losses. So models that always
learned together share one B, and part when only some of them learn: on a nested graph, all arms between two that were
ever played have one B. Sums have a fixed order, by which the loops over features and models fill vector registers.

The states of many keys are one `State` whose arrays have a row for each key; `predict_many` and `learn_many` take the
rows of some of them.
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
    B: np.ndarray  #: (M, d, d), of each group of models; there is room for as many groups as models
    group: np.ndarray  #: (M,), that of each model
    size: np.ndarray  #: (M,), how many models each group has
    groups: np.ndarray  #: (1,), how many groups there are
    limit: np.ndarray  #: (1,), the trace of B in the beginning


class RidgeScratch(NamedTuple):
    """What is computed while some models learn."""

    g: np.ndarray  #: (M, d), of each group
    s: np.ndarray  #: (M,), 1 + r of each group
    e: np.ndarray  #: (M,), e / (1 + e r) of each group
    x: np.ndarray  #: (d,), of a loss that has another weight than 1
    scaled: np.ndarray  #: (M,), losses of such a weight
    error: np.ndarray  #: (M,), of each loss
    learning: np.ndarray  #: (M,), the groups that learn
    counts: np.ndarray  #: (M,), how many models of each group learn; 0 before and after
    only: np.ndarray  #: (1,), the model that all arms share


def init(models: int, features: int, penalty: float) -> State:
    """Return the state before anything was learned; h is the penalty."""
    B = np.zeros((models, features, features))
    B[0, np.arange(features), np.arange(features)] = 1.0 / penalty
    group, size = np.zeros((2, models), np.int64)
    size[0] = models
    return State(np.zeros((features, models)), B, group, size, np.ones(1, np.int64), np.array([features / penalty]))


def new_scratch(state: State) -> RidgeScratch:
    """Return scratch for the models of a state."""
    d, M = state.w.shape
    s, e, scaled, error = np.zeros((4, M))
    learning, counts = np.zeros((2, M), np.int64)
    return RidgeScratch(np.zeros((M, d)), s, e, np.zeros(d), scaled, error, learning, counts, np.zeros(1, np.int32))


@kernel
def row_of(states: State, n: Whole) -> State:
    """Return the state in a row of those of many keys, as views."""
    return State(states.w[n], states.B[n], states.group[n], states.size[n], states.groups[n], states.limit[n])


@kernel
def predict_many(states: State, rows: np.ndarray, x: np.ndarray, f: np.ndarray) -> None:
    """Write into ``f[i]`` what the state in row ``rows[i]`` predicts for ``x[i]``."""
    for i in range(rows.size):
        predict(row_of(states, rows[i]), x[i], f[i])


@kernel
def learn_many(
    states: State,
    scratch: RidgeScratch,
    rows: np.ndarray,
    x: np.ndarray,
    offsets: np.ndarray,
    arms: np.ndarray,
    losses: np.ndarray,
    weights: np.ndarray,
    rho: float,
) -> None:
    """Let the state in row ``rows[i]`` learn, for ``x[i]``, the losses of some arms from ``offsets[i]`` on."""
    for i in range(rows.size):
        first, last = offsets[i], offsets[i + 1]
        arms_, losses_, weights_ = arms[first:last], losses[first:last], weights[first:last]
        learn(row_of(states, rows[i]), scratch, x[i], arms_, losses_, weights_, rho)


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
def learn(
    state: State,
    scratch: RidgeScratch,
    x: np.ndarray,
    arms: np.ndarray,
    losses: np.ndarray,
    weights: np.ndarray,
    rho: float,
) -> None:
    """Learn the losses of some arms, ``losses[k]`` being that of ``arms[k]``, with the weight ``weights[k]``."""
    first = 0
    while first < arms.size:  # those of one weight together, as far as they have the same x
        last = first + 1
        while x.shape[0] == 1 and last < arms.size and weights[last] == weights[first]:
            last += 1
        row = x[0 if x.shape[0] == 1 else np.int64(arms[first])]
        models = arms[first:last] if x.shape[0] == 1 else scratch.only
        root = math.sqrt(weights[first])
        if root == 1.0:
            _learn(state, scratch, row, models, losses[first:last], rho)
        else:
            for k in range(row.size):
                scratch.x[k] = root * row[k]
            for k in range(last - first):
                scratch.scaled[k] = root * losses[first + k]
            _learn(state, scratch, scratch.x, models, scratch.scaled[: last - first], rho)
        first = last


@kernel
def _learn(
    state: State, scratch: RidgeScratch, x: np.ndarray, models: np.ndarray, losses: np.ndarray, rho: float
) -> None:
    """Let some models learn a loss each, all with the same x."""
    groups = _part(state, scratch, models)
    for k in range(groups):
        _weigh(state, scratch, scratch.learning[k], x, rho)
    first = 0
    while first < models.size:  # as far as models of one group follow each other, in one loop
        n = state.group[models[first]]
        last = first + 1
        while last < models.size and models[last] == models[last - 1] + 1 and state.group[models[last]] == n:
            last += 1
        _correct(state, scratch, n, np.int64(models[first]), x, losses[first:last])
        first = last
    for k in range(groups):
        _narrow(state, scratch, scratch.learning[k])


@kernel
def _part(state: State, scratch: RidgeScratch, models: np.ndarray) -> int:
    """Let those that learn while others of their group do not be a group of their own; return how many groups learn."""
    counts, size, learning = scratch.counts, state.size, scratch.learning
    groups = 0
    for i in range(models.size):
        n = state.group[models[i]]
        if counts[n] == 0:
            learning[groups] = n
            groups += 1
        counts[n] += 1
    for k in range(groups):
        n = learning[k]
        if counts[n] < size[n]:
            new = state.groups[0]
            state.groups[0] += 1
            size[new] = counts[n]
            size[n] -= counts[n]
            for i in range(state.w.shape[0]):
                for j in range(state.w.shape[0]):
                    state.B[new, i, j] = state.B[n, i, j]
            counts[n] = -new  # where they go
    for i in range(models.size):
        n = state.group[models[i]]
        if counts[n] < 0:
            state.group[models[i]] = -counts[n]
    for k in range(groups):
        n = learning[k]
        learning[k] = -counts[n] if counts[n] < 0 else n
        counts[n] = 0
    return groups


@kernel
def _weigh(state: State, scratch: RidgeScratch, n: Whole, x: np.ndarray, rho: float) -> None:
    """Compute g and s of a group."""
    d, g, B = x.size, scratch.g[n], state.B[n]
    for i in range(d):
        g[i] = 0.0
    for k in range(d):
        a = x[k]
        if a != 0.0:
            row = B[k]
            for i in range(d):
                g[i] += a * row[i]
    r, squares = 0.0, 0.0
    for k in range(d):
        r += x[k] * g[k]
        squares += x[k] * x[k]
    r = max(r, 0.0)  # 1; rounding must not make it negative
    scratch.s[n] = 1.0 + r
    scratch.e[n] = 1.0 / (1.0 + r)
    if rho < 1.0:
        e = rho - (1.0 - rho) / max(r, 1e-300)
        if r > rho * (1.0 + r) * squares * (state.limit[0] / d):
            e = max(e, 0.0)
        scratch.e[n] = e / (1.0 + e * r)


@kernel
def _correct(state: State, scratch: RidgeScratch, n: Whole, m: Whole, x: np.ndarray, losses: np.ndarray) -> None:
    """Correct the weights of the models from m on, all of group n, by a loss each."""
    g, s, error = scratch.g[n], scratch.s[n], scratch.error
    for i in range(losses.size):
        error[i] = 0.0
    for k in range(x.size):
        row = state.w[k]
        for i in range(losses.size):
            error[i] += row[m + i] * x[k]
    for i in range(losses.size):
        error[i] = (losses[i] - error[i]) / s
    for k in range(x.size):
        row = state.w[k]
        for i in range(losses.size):
            row[m + i] += error[i] * g[k]  # 2


@kernel
def _narrow(state: State, scratch: RidgeScratch, n: Whole) -> None:
    """Narrow the B of a group along what it has learned, or widen it where more is forgotten than was learned."""
    g, B, e = scratch.g[n], state.B[n], scratch.e[n]
    root = math.sqrt(abs(e))
    for k in range(g.size):
        g[k] *= root  # so that B stays symmetric to the bit
    for k in range(g.size):
        row = B[k]
        a = g[k] if e >= 0.0 else -g[k]
        for i in range(g.size):
            row[i] -= a * g[i]  # 3
