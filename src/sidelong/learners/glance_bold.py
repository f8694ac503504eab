"""What `glance` knows of arms, and the bold half that plays by it: lines 3, 4 and 16 to 24 of its pseudo-code.

A loss is taken as a level of the world, an effect of the round, an effect o_i of the arm and noise. Losses that one
play reveals share the effect of the round, which the others of the same play tell. The level may jump, and the one of
three memories that foretells it best stands for it.

Nothing here is needed for the theorems of `glance`: they hold for any bold half and any predictions. So each line is a
kernel of its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel
from sidelong.numerics import exp, log_normal, smallest, total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.glance import State

SHARPNESS = 4.0
PRIOR = 0.1  # a variance
SHARED = 2.0  # observations that the pooled variance counts for
MEMORIES = (math.inf, 32.0, 4.0)  # in rounds, of the three levels
TRIAL = 20.0  # rounds over which a level is judged
FADING = 2.0  # each of t rounds takes 2/t off what was seen before: the last half of the rounds counts most
BETTER = 0.9  # of the squared error of a level with a longer memory

# In `known`: b; how many rounds were told; sum V and sum (N - 1), of arms that were seen; A, A', B, B' of line 16;
# whether a graph was ever told that is not the one asked with.
LEVEL, TOLD, POOLED, FREEDOM, WITHIN, WITHIN_FREEDOM, BETWEEN, BETWEEN_INVERSE, WEIGHED = range(9)
N_KNOWN = 9


@kernel
def estimate_variances(state: State) -> None:
    """Write into `v` the variance of what each arm's losses differ from their prediction by."""
    pooled = (PRIOR + state.known[POOLED]) / (1.0 + state.known[FREEDOM])
    prior = PRIOR + SHARED * pooled
    for i in range(state.v.size):
        state.v[i] = (state.V[i] + prior) / (state.N[i] + (1.0 + SHARED))  # 3


@kernel
def play_boldly(state: State, D: np.ndarray) -> None:
    """Write into `D` how likely each arm is the cheapest: Maillard sampling with the tails of Student's t."""
    least = smallest(state.o)
    for i in range(D.size):
        gap = state.o[i] - least
        more = state.N[i] + SHARED
        D[i] = 1.0 + SHARPNESS * state.N[i] * (gap * gap) / (more * state.v[i])
    for i in range(D.size):
        # Not below e^-700, where numbers lose digits and sums slow down; the cautious half plays far more than that.
        power = -(state.N[i] + SHARED) * log_normal(D[i])
        D[i] = exp(power if power > -700.0 else -700.0)
    sum_ = total(D)
    for i in range(D.size):
        D[i] /= sum_  # 4


@kernel
def know(state: State, graph: GraphArrays, arm: int, losses: np.ndarray) -> None:
    """Learn of the arms that `arm` revealed, and of the level."""
    first = graph.start[arm]
    count = graph.stop[arm] - first
    sum_ = 0.0
    for k in range(count):
        state.e[k] = losses[k] - state.o[np.uint64(graph.targets[first + k])]
        sum_ += state.e[k]
    mean = sum_ / count
    if state.known[TOLD] == 0.0:
        state.known[LEVEL] = mean
        state.level[:] = mean
    surprise = mean - state.known[LEVEL]
    tau = _share_of_the_round(state, count)
    part = tau / max(1.0, count - 1.0)
    level = state.known[LEVEL]
    squares, pooled, freedom = 0.0, 0.0, 0.0
    for k in range(count):
        i = np.uint64(graph.targets[first + k])
        e = state.e[k] - level
        squares += (e - surprise) * (e - surprise)
        e -= part * (count * surprise - e)  # 17
        freedom += 1.0 if state.N[i] > 0.0 else 0.0
        state.N[i] += 1.0
        state.F[i] += 1.0
        state.F2[i] += 1.0
        step = e / state.N[i]
        state.o[i] += step
        state.V[i] += e * (e - step)  # 18
        pooled += e * (e - step)
    state.known[POOLED] += pooled
    state.known[FREEDOM] += freedom
    _follow_rounds(state, count, surprise, squares)
    _follow_level(state, mean)


@kernel
def know_by_weights(state: State, graph: GraphArrays, arm: int, p: np.ndarray, losses: np.ndarray) -> None:
    """Learn the same where the outcome may decide what is revealed; `state.P` is that of the graph of the round."""
    first = graph.start[arm]
    level = state.known[LEVEL]
    kept = 1.0 - min(0.5, FADING / (1.0 + state.known[TOLD]))  # 21
    for j in range(p.size):
        state.F[j] *= kept
        state.F2[j] *= kept
    own = 0.0
    for k in range(graph.stop[arm] - first):
        i = np.uint64(graph.targets[first + k])
        own = losses[k] - state.o[i] if i == arm else own
        e = losses[k] - state.o[i] - level
        w = p[i] / max(state.P[i], p[arm])
        state.F[i] += w
        share = w / state.F[i]
        step = e * share
        state.o[i] += step  # 22
        state.V[i] += share * (state.N[i] * (e * (e - step)) - state.V[i])
    pooled, freedom = 0.0, 0.0
    for j in range(p.size):
        state.F2[j] += p[j] * p[j] / max(state.P[j], p[j])
        N = state.F[j] * state.F[j] / state.F2[j]  # 23
        state.V[j] *= N / state.N[j] if state.N[j] > 0.0 else 0.0
        state.N[j] = N
        pooled += state.V[j]
        freedom += max(0.0, N - 1.0)
    state.known[POOLED] = pooled
    state.known[FREEDOM] = freedom
    state.known[TOLD] += 1.0
    _follow_level(state, own)  # 24


@kernel
def _share_of_the_round(state: State, count: int) -> float:
    """Return how much of what a play's other losses show belongs to the round, and not to noise."""
    rounds = state.known[TOLD] - 1.0
    if count == 1 or rounds < 0.0:
        return 0.0
    noise = state.known[WITHIN] + (state.known[BETWEEN] + PRIOR) / (1.0 + rounds)
    noise /= 1.0 + state.known[WITHIN_FREEDOM]
    shift = max(0.0, (state.known[BETWEEN] - noise * state.known[BETWEEN_INVERSE]) / max(1.0, rounds))
    return shift / (shift + noise / (count - 1.0))  # type: ignore[no-any-return]  # 16


@kernel
def _follow_rounds(state: State, count: int, surprise: float, squares: float) -> None:
    """Add a round to the sums of line 16, unless it is the first, which has made the level."""
    if state.known[TOLD] > 0.0:
        state.known[WITHIN] += squares
        state.known[WITHIN_FREEDOM] += count - 1.0
        state.known[BETWEEN] += surprise * surprise
        state.known[BETWEEN_INVERSE] += 1.0 / count
    state.known[TOLD] += 1.0


@kernel
def _follow_level(state: State, mean: float) -> None:
    rounds = state.known[TOLD] + 1.0
    best = 0
    for j in range(len(MEMORIES)):
        error = mean - state.level[j]
        state.error[j] += (error * error - state.error[j]) / min(TRIAL, rounds)
        state.level[j] += error / min(MEMORIES[j], rounds)  # 19
        if state.error[j] < BETTER * state.error[best]:
            best = j
    state.known[LEVEL] = state.level[best]  # 20
