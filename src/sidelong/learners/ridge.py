r"""Ridge regression, one loss at a time: the regressor of `sidelong.ContextualAgent` and of families with features.

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


class Scratch(NamedTuple):
    """What is computed while some models learn."""

    g: np.ndarray  #: (M, d), of each group
    s: np.ndarray  #: (M,), of each group
    rho: np.ndarray  #: (M,), of each group
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


def make_room(state: State) -> Scratch:
    """Return room for the models of a state."""
    d, M = state.w.shape
    s, rho, error = np.zeros((3, M))
    learning, counts = np.zeros((2, M), np.int64)
    return Scratch(np.zeros((M, d)), s, rho, error, learning, counts, np.zeros(1, np.int32))


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
    room: Scratch,
    rows: np.ndarray,
    x: np.ndarray,
    offsets: np.ndarray,
    arms: np.ndarray,
    losses: np.ndarray,
    rho: float,
) -> None:
    """Let the state in row ``rows[i]`` learn, for ``x[i]``, the losses of some arms from ``offsets[i]`` on."""
    for i in range(rows.size):
        first, last = offsets[i], offsets[i + 1]
        learn(row_of(states, rows[i]), room, x[i], arms[first:last], losses[first:last], rho)


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
def learn(state: State, room: Scratch, x: np.ndarray, arms: np.ndarray, losses: np.ndarray, rho: float) -> None:
    """Learn the losses of some arms, ``losses[k]`` being that of ``arms[k]``."""
    if x.shape[0] == 1:
        _learn(state, room, x[0], arms, losses, rho)
    else:
        for k in range(arms.size):
            _learn(state, room, x[np.int64(arms[k])], room.only, losses[k : k + 1], rho)


@kernel
def _learn(state: State, room: Scratch, x: np.ndarray, models: np.ndarray, losses: np.ndarray, rho: float) -> None:
    """Let some models learn a loss each, all with the same x."""
    groups = _part(state, room, models)
    for k in range(groups):
        _weigh(state, room, room.learning[k], x, rho)
    first = 0
    while first < models.size:  # as far as models of one group follow each other, in one loop
        n = state.group[models[first]]
        last = first + 1
        while last < models.size and models[last] == models[last - 1] + 1 and state.group[models[last]] == n:
            last += 1
        _correct(state, room, n, np.int64(models[first]), x, losses[first:last])
        first = last
    for k in range(groups):
        _narrow(state, room, room.learning[k])


@kernel
def _part(state: State, room: Scratch, models: np.ndarray) -> int:
    """Let those that learn while others of their group do not be a group of their own; return how many groups learn."""
    counts, size, learning = room.counts, state.size, room.learning
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
def _weigh(state: State, room: Scratch, n: Whole, x: np.ndarray, rho: float) -> None:
    """Compute g and s of a group."""
    d, g, B = x.size, room.g[n], state.B[n]
    for i in range(d):
        g[i] = 0.0
    for k in range(d):
        a = x[k]
        if a != 0.0:
            row = B[k]
            for i in range(d):
                g[i] += a * row[i]
    xg = 0.0
    trace = 0.0
    for k in range(d):
        xg += x[k] * g[k]
        trace += B[k, k]
    room.rho[n] = 1.0 if rho < 1.0 and trace > rho * state.limit[0] else rho
    room.s[n] = room.rho[n] + max(xg, 0.0)  # 1; rounding must not make <x, g> negative


@kernel
def _correct(state: State, room: Scratch, n: Whole, m: Whole, x: np.ndarray, losses: np.ndarray) -> None:
    """Correct the weights of the models from m on, all of group n, by a loss each."""
    g, s, error = room.g[n], room.s[n], room.error
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
def _narrow(state: State, room: Scratch, n: Whole) -> None:
    """Take the direction that a group has learned out of its B."""
    g, B = room.g[n], state.B[n]
    root, inverse = math.sqrt(room.s[n]), 1.0 / room.rho[n]
    for k in range(g.size):
        g[k] /= root  # so that B stays symmetric to the bit
    for k in range(g.size):
        row = B[k]
        a = g[k]
        for i in range(g.size):
            row[i] = (row[i] - a * g[i]) * inverse  # 3
