"""What `glance` knows of arms, and the bold half that plays by it: lines 3, 4 and 16 to 25 of its pseudo-code.

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
from sidelong.learners.glance_cautious import WIDE_ARMS
from sidelong.numerics import exp, log, smallest, total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.glance import State
    from sidelong.numerics import Whole

SHARPNESS = 4.0  # in the first rounds
SETTLED = 1.0  # the sharpness after many rounds
PATIENCE = 4_000.0  # rounds, half-way between the two
CURIOSITY = 30.0  # the same for an arm that stands for others
UNSURE = 200.0  # from this round on a wide arm may be played because nobody knows whether it is dear
TAILS = 2.0  # added to the power; and how many observations of a gap may be chance
PRIOR = 0.1  # a variance
SHARED = 4.0  # observations that the pooled variance counts for
RECENT = 30.0  # observations over which an arm's errors are averaged
ALARM = 36.0 / (2.0 * RECENT)  # six standard deviations of such an average, squared, over the variance of one error
LEFT = 5.0  # observations that are left of each arm after an alarm
FORGETS = (0.0, 1.0 / 32.0, 1.0 / 4.0)  # the least weight of the last round in each of the three levels
TRIAL = 1.0 / 20.0  # the same in the errors by which a level is judged
FIRM = 50.0  # rounds after which what one arm shows alone does not move the level of longest memory
BETTER = 0.9  # of the squared error of a level with a longer memory
FADING = 2.0  # each of t rounds takes 2/t off what was seen before: the last half of the rounds counts most

# In `known`: b; how many rounds were told; R and M; A, A', B, B' of line 17;
# whether a graph was ever told that is not the one asked with.
LEVEL, TOLD, POOLED, FREEDOM, WITHIN, WITHIN_FREEDOM, BETWEEN, BETWEEN_INVERSE, WEIGHED = range(9)
N_KNOWN = 9


@kernel
def estimate_variances(state: State) -> None:
    """Write into `v` the variance of what each arm's losses differ from their prediction by."""
    prior = PRIOR + SHARED * _pooled(state)
    for i in range(state.v.size):
        state.v[i] = (state.V[i] + prior) / (state.N[i] + (1.0 + SHARED))  # 3


@kernel
def _pooled(state: State) -> float:
    return (PRIOR + state.known[POOLED]) / (1.0 + state.known[FREEDOM])  # type: ignore[no-any-return]


@kernel
def play_boldly(state: State, graph: GraphArrays, t: int, D: np.ndarray) -> None:
    """Write into `D` how likely each arm is the cheapest, on the arm from which that is found out cheaply."""
    least = smallest(state.o)
    prior = PRIOR + SHARED * _pooled(state)
    sharp = SETTLED + (SHARPNESS - SETTLED) / (1.0 + t / PATIENCE)
    more = 0.0
    if state.known[WEIGHED] == 0.0:
        more = SETTLED + (SHARPNESS - SETTLED) / (1.0 + t / CURIOSITY) - sharp
    for i in range(D.size):
        gap = state.o[i] - least
        N = state.N[i]
        gaps = N * (gap * gap)
        noise = (N + TAILS) * (state.V[i] + prior) + TAILS * gaps
        x = (sharp + more * state.wide[i]) * gaps * (N + (1.0 + SHARED))
        # Not below e^-700, where numbers lose digits and sums slow down.
        D[i] = exp(max(-700.0, -2.0 * (N + TAILS) * x / (2.0 * noise + x)))
    scale = 1.0 / total(D)
    for i in range(D.size):
        D[i] *= scale  # 4
    if state.known[WEIGHED] == 0.0:
        _look_from_others(state, graph, t, least, D)


@kernel
def _look_from_others(state: State, graph: GraphArrays, t: int, least: float, D: np.ndarray) -> None:
    """Let the leader be played for what it reveals, and arms of the cover for their cells."""
    lead: Whole = 0
    while lead < D.size - 1 and state.o[lead] != least:  # NaN equals nothing
        lead += 1
    own = D[lead]
    for e in range(graph.start[lead], graph.stop[lead]):
        shown = np.uint64(graph.targets[e])
        own += D[shown] if shown != lead else 0.0
        D[shown] = 0.0
    D[lead] = own  # 4
    if state.marks[WIDE_ARMS] > 0:
        _look_from_wide_arms(state, t, least, D, lead)


@kernel
def _look_from_wide_arms(state: State, t: int, least: float, D: np.ndarray, lead: Whole) -> None:
    """Let an arm of the cover be played for its cell where that may cost less, and in the place of the leader."""
    mass, cost, own = state.a, state.e, D[lead]
    mass[:] = 0.0
    cost[:] = 0.0
    here, sum_, lost = state.cell[0], 0.0, 0.0  # of the cell of the last arm: to add in memory would take far longer
    for i in range(D.size):
        if state.cell[i] != here:
            mass[here], cost[here] = sum_, lost
            here = state.cell[i]
            sum_, lost = mass[here], cost[here]
        if i != lead:
            sum_ += D[i]
            lost += D[i] * (state.o[i] - least)
    mass[here], cost[here] = sum_, lost
    home = np.uint64(state.cell[lead])
    for i in range(D.size):
        if state.wide[i] > 0.0:
            gap = state.o[i] - least - _doubt(state, i, t)
            cost[i] = 1.0 if mass[i] * max(0.0, gap) < cost[i] else 0.0
            if i == home and i != lead and gap < 0.0:
                own *= 0.5
    for i in range(D.size):
        c = np.uint64(state.cell[i])
        if i != lead and cost[c] == 1.0:
            D[i] = mass[c] if i == c else 0.0  # 4
    D[home] += D[lead] - own
    D[lead] = own  # 4


@kernel
def _doubt(state: State, c: int, t: int) -> float:
    """Return by how much an arm may look dearer than it is."""
    v = (state.V[c] + PRIOR + SHARED * _pooled(state)) / (state.N[c] + (1.0 + SHARED))
    return math.sqrt(log(max(1.0, t / UNSURE)) * v / max(1.0, state.N[c]))


@kernel
def know(state: State, graph: GraphArrays, arm: int, losses: np.ndarray) -> None:
    """Learn of the arms that `arm` revealed, and of the level."""
    first = graph.start[arm]
    count = graph.stop[arm] - first
    level, pooled = state.known[LEVEL], _pooled(state)
    sum_, alarm = 0.0, False
    for k in range(count):
        i = np.uint64(graph.targets[first + k])
        e = losses[k] - state.o[i]
        state.e[k] = e
        sum_ += e
        if state.N[i] > TAILS:
            state.f[i] += (e - level - state.f[i]) / RECENT
            v = (state.V[i] + PRIOR + SHARED * pooled) / (state.N[i] + (1.0 + SHARED))
            alarm |= state.N[i] > RECENT and state.f[i] * state.f[i] > ALARM * max(v, pooled)
    if alarm:
        _forget(state)  # 16
    mean = sum_ / count
    if state.known[TOLD] == 0.0:
        level = mean
        state.level[:] = mean
    _know_effects(state, graph, arm, level, mean - level)
    _follow_level(state, mean, firm=count == 1 and state.known[TOLD] + 1.0 >= FIRM)


@kernel
def _know_effects(state: State, graph: GraphArrays, arm: int, level: float, surprise: float) -> None:
    """Learn the effects of the arms that were revealed, less what the others say of the round; `e` is l - o."""
    first = graph.start[arm]
    count = graph.stop[arm] - first
    shift, noise = _parts(state) if count > 1 else (0.0, 1.0)
    W, W2, We, squares = 0.0, 0.0, 0.0, 0.0
    for k in range(count):
        N = state.N[np.uint64(graph.targets[first + k])]
        e = state.e[k] - level
        squares += (e - surprise) * (e - surprise)
        W += N
        W2 += N * N
        We += N * e
    raw, freedom = 0.0, 0.0
    for k in range(count):
        i = np.uint64(graph.targets[first + k])
        e = state.e[k] - level
        N = state.N[i]
        raw += e * e * (N / (N + 1.0))
        others = W - N
        if shift > 0.0 and others > 0.0:
            mean = (We - N * e) / others
            e -= mean * (shift / (shift + noise * ((W2 - N * N) / (others * others))))  # 18
        freedom += 1.0 if N > 0.0 else 0.0
        state.N[i] = N + 1.0
        state.F[i] += 1.0
        state.F2[i] += 1.0
        step = e / state.N[i]
        state.o[i] += step
        state.V[i] += e * (e - step)  # 19
    state.known[POOLED] += raw
    state.known[FREEDOM] += freedom
    _follow_rounds(state, count, surprise, squares)


@kernel
def _forget(state: State) -> None:
    for i in range(state.N.size):
        if state.N[i] > LEFT:
            state.V[i] *= LEFT / state.N[i]
            state.N[i] = LEFT
            state.F[i] = LEFT
            state.F2[i] = LEFT
        state.f[i] = 0.0


@kernel
def know_by_weights(
    state: State, graph: GraphArrays, arm: int, p: np.ndarray, P: np.ndarray, losses: np.ndarray
) -> None:
    """Learn the same where the outcome may decide what is revealed; `P` is that of the graph of the round."""
    first = graph.start[arm]
    level = state.known[LEVEL]
    kept = 1.0 - min(0.5, FADING / (1.0 + state.known[TOLD]))  # 22
    for j in range(p.size):
        state.F[j] *= kept
        state.F2[j] *= kept
    own = 0.0
    for k in range(graph.stop[arm] - first):
        i = np.uint64(graph.targets[first + k])
        own = losses[k] - state.o[i] if i == arm else own
        e = losses[k] - state.o[i] - level
        w = p[i] / max(P[i], p[arm])
        state.F[i] += w
        share = w / state.F[i]
        step = e * share
        state.o[i] += step  # 23
        state.V[i] += share * (state.N[i] * (e * (e - step)) - state.V[i])
    pooled, freedom = 0.0, 0.0
    for j in range(p.size):
        state.F2[j] += p[j] * p[j] / max(P[j], p[j])
        N = state.F[j] * state.F[j] / state.F2[j]  # 24
        state.V[j] *= N / state.N[j] if state.N[j] > 0.0 else 0.0
        state.N[j] = N
        pooled += state.V[j]
        freedom += max(0.0, N - 1.0)
    state.known[POOLED] = pooled
    state.known[FREEDOM] = freedom
    state.known[TOLD] += 1.0
    _follow_level(state, own, firm=False)  # 25


@kernel
def _parts(state: State) -> tuple[float, float]:
    """Return the variance of the effects of rounds, and that of noise, as far as earlier rounds tell."""
    rounds = state.known[TOLD] - 1.0
    if rounds < 0.0:
        return 0.0, 1.0
    noise = state.known[WITHIN] + (state.known[BETWEEN] + PRIOR) / (1.0 + rounds)
    noise /= 1.0 + state.known[WITHIN_FREEDOM]
    shift = max(0.0, (state.known[BETWEEN] - noise * state.known[BETWEEN_INVERSE]) / max(1.0, rounds))
    return shift, noise  # 17


@kernel
def _follow_rounds(state: State, count: int, surprise: float, squares: float) -> None:
    """Add a round to the sums of line 17, unless it is the first, which has made the level."""
    if state.known[TOLD] > 0.0:
        state.known[WITHIN] += squares
        state.known[WITHIN_FREEDOM] += count - 1.0
        state.known[BETWEEN] += surprise * surprise
        state.known[BETWEEN_INVERSE] += 1.0 / count
    state.known[TOLD] += 1.0


@kernel
def _follow_level(state: State, mean: float, firm: bool) -> None:
    """Let the levels follow the last round; if `firm`, not the one that lasts."""
    rate = 1.0 / (state.known[TOLD] + 1.0)
    best = 0
    for j in range(len(FORGETS)):
        error = mean - state.level[j]
        state.error[j] += (error * error - state.error[j]) * max(rate, TRIAL)
        if j > 0 or not firm:
            state.level[j] += error * max(rate, FORGETS[j])  # 20
        if state.error[j] < BETTER * state.error[best]:
            best = j
    state.known[LEVEL] = state.level[best]  # 21
