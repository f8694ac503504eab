r"""What `glance` knows of arms, and the bold half that plays by it. No theorem of `glance` depends on any of this.

A loss is taken as a level b of the world, an effect o_i of the arm, and noise which the arms of a round may share. Of
arm i, F_i and F2_i are the sums of weights and of squared weights, V_i is the weighted variance, N_i = F_i^2 / F2_i.

::

    at an ask, with a the leader, the arm of least o, and g_i = o_i - o_a; h the arm of the cover that a belongs to
    a  prior = 0.05 max(0.03, 1 - (C + 0.1)^2 / ((X + 0.1) (Y + 0.1))), or 0.05 if no play shows two arms
       v = (prior + sum of squared e_i - r) / (1 + their number);  v_i = (N_i V_i + prior + v) / (N_i + 2)
    b  D_i ~ exp(-2 (N_i + 2) u_i / (2 + u_i)),  u_i = 4 N_i g_i^2 / ((N_i + 2) v_i + 2 N_i g_i^2 / (N_i + 2))
    c  a takes the D of all that it reveals; an arm c of the cover that of each i of its cell with o_c < o_i; and
       h half of a's, if a does not show h and g_h^2 N_h < 2 v_h ln(t / 50)
    d  but D = e_i if some (paid - was_i) (rounds since i was seen) > 0.25 n_i max(bad_i - paid, 0.01); n_i += 1
    told, with e_i = l_i - b - o_i for the arms that were seen
    e  f_i follows over 30 rounds by how much e_i exceeds the mean of all e_j; or k e_i if i was seen alone, and then
       k (l_i - b_0 - o_i) too. If f_i^2 > 0.6 v_i, N_i > 30: was_i = o_i + b_0, n_i = 1, N_j = min(5, N_j) for all j
    f  where n_i > 0: bad_i = l_i; but if l_i < (was_i + bad_i) / 2, i is as it was, n_i = 0, N_i = min(5, N_i)
    g  r = clip(C / (X + 0.001), 0, 1) e_a if a and another arm were seen; s the best of the others: C += e_s e_a,
       X += e_a^2, Y += e_s^2;  F_i += w_i, o_i += w_i (e_i - r) / F_i;  F2_i += w_i^2, or P_i min(c, 1 / P_i)^2
    h  levels over all, 32 and 4 rounds follow the mean of l_i - o_i; b is the one that foretold best, b_0 the first
    i  if the last arm revealed is the one played, j, and there are arms beyond: a line through the losses of j and of
       the arm before it foretells all, in the place of b + o_i, as long as it foretold l_j with smaller squared errors

w_i = 1, until a graph is told that is not the one asked with, and then min(c, 1 / P_i), c = 20 + t / 12. A shop that
sold out sees nothing of larger orders, and sees them on days on which little was wanted. With these weights each round
counts as much as it would have without the outcome's say, and an arm that could hardly be seen is uncertain. From then
on d, f and b_0 in e are left out, and the levels follow the arm that was played; if a told graph hid what the asked one
showed, c is left out. Only then is there a line i: a prediction matters in rounds in which the arm may be hidden, and
then a larger order loses less than it does on average, because smaller ones were sold to the last unit.

If i was seen alone, but with others in some earlier round, most of e_i may be noise that others would have shared. Then
w_i is multiplied by k = max(0.05, 1 - C / (X + 0.001)), and else k = 1. Of more than 32 arms, and after 1,000 rounds, D
is kept for three more rounds, unless another leads. `research/glance/README.md` says what single lines are worth.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.cover import CoverScratch, cover_largest_first
from sidelong.numerics import exp, log, smallest, total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.glance import State
    from sidelong.learners.interface import Asked, Told
    from sidelong.numerics import Whole

PRIOR = 0.05  # a variance: that of losses in [0, 1] is a quarter at most
LEAST_PRIOR = 0.03  # of it, however alike the arms of a round are
SHARP = 4.0  # how sure the bold half is: 1 is Maillard sampling, which loses more in short games
TAILS = 2.0  # added to the power; and how many observations of a gap may be chance
RECENT = 30.0  # observations over which an arm's errors are averaged
ALARM = 36.0 / (2.0 * RECENT)  # six standard deviations of such an average, squared, over the variance of one error
LEFT = 5.0  # observations that are left of each arm after an alarm
FORGETS = (0.0, 1.0 / 32.0, 1.0 / 4.0)  # the least weight of the last round in each of the three levels
TRIAL = 1.0 / 20.0  # the same in the errors by which a level is judged, and in what is paid
BETTER = 0.9  # of the squared error of a level with a longer memory
MOST = 20.0  # weight of what is seen in the first rounds: more is too noisy while little is known
GROWTH = 1.0 / 12.0  # of it with each round: what is hidden on most days would stay judged by the other days else
LEAST_PART = 0.05  # weight of an arm that is seen alone, however alike arms are when they are seen together
PAUSE, MANY, LONG = 3, 32, 1_000  # D is kept for so many more rounds, of more arms or in later rounds than this

# In `known`: b; how many rounds were told; the squares of line b and their number; C, X and Y; what was paid lately;
# whether a play has shown two arms; whether a graph was told that was not asked with, and whether it hid an arm; and of
# line i the loss of arm 0, the slope, whether there is one, and by how much its sum of squared errors is smaller.
LEVEL, TOLD, SQUARES, FREEDOM, COV, LEAD2, OTHER2, PAID, PAIRED, WEIGHED, HID, LINE, SLOPE, DRAWN, AHEAD = range(15)
# In `marks`: the key of the graph of the cover, how many arms are neither seen nor about to be, how many arms are
# not of the cover, the leader, whether an alarm was ever raised, and for how many rounds D will do.
GRAPH, UNSEEN, COVERED, LEADER, ALARMED, KEEPS = range(6)
N_KNOWN, N_MARKS = 15, 6


@kernel
def _variances(state: State) -> tuple[float, float]:
    """Return the prior variance and v."""
    prior = PRIOR
    if state.known[PAIRED] > 0.0:
        C, X, Y = state.known[COV] + 0.1, state.known[LEAD2] + 0.1, state.known[OTHER2] + 0.1
        prior = PRIOR * max(LEAST_PRIOR, 1.0 - C * C / (X * Y))
    return prior, (prior + state.known[SQUARES]) / (1.0 + state.known[FREEDOM])  # a


@kernel
def play_boldly(state: State, graph: GraphArrays, asked: Asked, D: np.ndarray) -> Whole:
    """Write into `D` how likely each arm is the cheapest, where that is found out cheaply; return an arm to look at.

    That is -1 if there is none, as mostly.
    """
    if state.marks[ALARMED] > 0 and state.known[WEIGHED] == 0.0:
        back = _look_back(state, asked)
        if back >= 0:
            return back
    if state.marks[KEEPS] > 0 and asked.absent == 0 and state.marks[GRAPH] == graph.key:
        state.marks[KEEPS] -= 1
        _copy(state.D, D)
        return -1
    state.marks[KEEPS] = PAUSE if asked.absent == 0 and (D.size > MANY or asked.t > LONG) else 0
    if state.marks[GRAPH] != graph.key:
        _make_cells(state, graph)
    lead = state.marks[LEADER] if asked.absent == 0 else _leader_of(state, asked.present)
    prior, pooled = _variances(state)
    for i in range(D.size):
        gap, N = state.o[i] - state.o[lead], observations(state, i)
        gaps = N * (gap * gap)
        noise = (N + TAILS) * (N * state.V[i] + prior + pooled) + TAILS * gaps
        u = SHARP * gaps * (N + 2.0)
        # Not below e^-700, where numbers lose digits and sums slow down.
        D[i] = exp(max(-700.0, -2.0 * (N + TAILS) * u / (2.0 * noise + u)))  # b
    if asked.absent > 0:
        for i in range(D.size):
            D[i] = D[i] if asked.present[i] else 0.0
    scale = 1.0 / total(D)
    for i in range(D.size):
        D[i] *= scale
    if state.known[HID] == 0.0:
        _look_from_others(state, graph, asked.t, lead, prior + pooled, D)
    _copy(D, state.D)
    return -1


@kernel
def _copy(numbers: np.ndarray, to: np.ndarray) -> None:
    for i in range(numbers.size):
        to[i] = numbers[i]


@kernel
def _leader_of(state: State, present: np.ndarray) -> Whole:
    best = -1
    for i in range(present.size):
        if present[i] and (best < 0 or state.o[i] < state.o[best]):
            best = i
    return best


@kernel
def observations(state: State, i: Whole) -> float:
    """Return N, how many observations of equal weight are worth as much as those of an arm."""
    return state.F[i] * state.F[i] / state.F2[i] if state.F2[i] > 0.0 else 0.0


@kernel
def _look_from_others(state: State, graph: GraphArrays, t: int, lead: Whole, more: float, D: np.ndarray) -> None:
    """Let the leader be played for what it reveals, and arms of the cover for their cells and for the leader."""
    home = state.cell[lead]
    own, shown = 0.0, False
    for e in range(graph.start[lead], graph.stop[lead]):
        j = np.uint64(graph.targets[e])
        own += D[j]
        D[j] = 0.0
        shown |= j == home
    D[lead] = own  # c
    if state.marks[COVERED] == 0:
        return
    for i in range(D.size):
        c = np.uint64(state.cell[i])
        if c != i and i != lead and state.o[c] < state.o[i]:  # noqa: PLR1714  # a kernel
            D[c] += D[i]
            D[i] = 0.0
    gap, N = state.o[home] - state.o[lead], observations(state, home)
    if not shown and t > 50 and gap * gap * N * (N + 2.0) < 2.0 * (N * state.V[home] + more) * log(t / 50.0):
        D[home] += 0.5 * D[lead]
        D[lead] *= 0.5


@kernel
def _look_back(state: State, asked: Asked) -> Whole:
    """Return an arm that was cheaper before an alarm and is worth another look."""
    paid = state.known[PAID]
    for i in range(state.o.size):
        if state.looks[i] > 0.0 and i != state.marks[LEADER] and asked.present[i]:
            hope = (paid - state.was[i]) * (asked.t - np.float64(state.last[i]))
            if hope > 0.25 * np.float64(state.looks[i]) * max(np.float64(state.bad[i]) - paid, 0.01):
                state.looks[i] += 1.0
                state.last[i] = asked.t
                return i  # d
    return -1


@rare_kernel
def _make_cells(state: State, graph: GraphArrays) -> None:
    """Give each arm to the first arm of a cover that reveals it, and each arm of the cover to itself."""
    cover_largest_first(graph, state.order, state.zeros, state.chosen, CoverScratch(state.free, state.heap))
    K = state.cell.size
    state.cell[:] = K
    for c in range(K):
        if state.chosen[c]:
            for e in range(graph.start[c], graph.stop[c]):
                i = graph.targets[e]
                state.cell[i] = min(state.cell[i], c)
    state.marks[COVERED] = 0
    for i in range(K):
        if state.chosen[i]:
            state.cell[i] = i
        else:
            state.marks[COVERED] += 1
    state.marks[GRAPH] = graph.key


@kernel
def know(state: State, graph: GraphArrays, told: Told, P: np.ndarray) -> None:
    """Learn of the arms that were revealed, and of the level."""
    arm, first = told.arm, graph.start[told.arm]
    count = graph.stop[arm] - first
    lead, weighed = state.marks[LEADER], state.known[WEIGHED] > 0.0
    sum_, own, of_lead, of_other, least, shown = 0.0, 0.0, 0.0, 0.0, math.inf, False
    for k in range(count):
        i = np.uint64(graph.targets[first + k])
        e = told.losses[k] - state.o[i]
        state.e[k] = e
        sum_ += e
        own = e if i == arm else own
        if i == lead:
            of_lead, shown = e, True
        elif state.o[i] < least:
            of_other, least = e, state.o[i]
    mean = own if weighed else sum_ / count
    if state.known[TOLD] == 0.0:
        state.level[:] = mean
        state.known[LEVEL] = mean
    level = state.known[LEVEL]
    state.known[PAID] += (own + state.o[arm] - state.known[PAID]) * max(TRIAL, 1.0 / (1.0 + state.known[TOLD]))
    shared = min(1.0, max(0.0, state.known[COV] / (state.known[LEAD2] + 0.001)))
    part = max(LEAST_PART, 1.0 - shared) if count == 1 and state.pairs[arm] else 1.0
    _watch(state, graph, told, level if count == 1 else mean, part)
    r = 0.0
    if shown and count > 1:
        of_lead, of_other = of_lead - level, of_other - level
        r = shared * of_lead  # g
        state.known[COV] += of_other * of_lead
        state.known[LEAD2] += of_lead * of_lead
        state.known[OTHER2] += of_other * of_other
    state.known[PAIRED] = 1.0 if count > 1 else state.known[PAIRED]
    if weighed and count > 1:
        _draw_line(state, graph, told)
    _know_arms(state, graph, told, level + r, P, part)
    state.known[TOLD] += 1.0
    _follow_level(state, mean)
    least, lead = smallest(state.o), 0
    while state.o[lead] != least and lead < state.o.size - 1:  # NaN is not even itself
        lead += 1
    if lead != state.marks[LEADER]:
        state.marks[LEADER] = lead
        state.marks[KEEPS] = 0


@kernel
def _watch(state: State, graph: GraphArrays, told: Told, common: float, part: float) -> None:
    """Raise an alarm, or judge arms that are looked at again; `e` is l - o.

    What all arms of a round have in `common` is noise that v has no part of, or a change of the level. Alarms that it
    raises would be false, and harmful: after each, the arms that are seen become cheaper or dearer than those that are
    hidden, and only the second is ever noticed. Of an arm that was seen alone, a `part` of the error is its own.
    """
    first = graph.start[told.arm]
    count = graph.stop[told.arm] - first
    alone, weighed = count == 1, state.known[WEIGHED] > 0.0
    prior, pooled = _variances(state)
    alarm = -1
    for k in range(count):
        i = np.uint64(graph.targets[first + k])
        state.last[i] = told.t
        N = observations(state, i)
        if N > TAILS:
            f = state.f[i] + (part * (state.e[k] - common) - state.f[i]) / RECENT
            state.f[i] = f
            v = (N * state.V[i] + prior + pooled) / (N + 2.0)
            raised = N > RECENT and f * f > ALARM * max(v, pooled)
            if alone and not weighed:
                f = state.slow[i] + (part * (state.e[k] - state.level[0]) - state.slow[i]) / RECENT
                state.slow[i] = f
                raised |= N > RECENT and f > 0.0 and f * f > ALARM * v
            alarm = k if raised else alarm  # e
    if alarm >= 0:
        _forget(state, np.uint64(graph.targets[first + alarm]), told.losses[alarm], alone)
    elif state.marks[ALARMED] > 0 and not weighed:
        for k in range(count):
            _judge(state, np.uint64(graph.targets[first + k]), told.losses[k])


@kernel
def _forget(state: State, i: Whole, loss: float, alone: bool) -> None:
    if state.looks[i] == 0.0:
        state.was[i] = state.o[i] + state.level[0]
        state.bad[i] = loss
        state.looks[i] = 1.0
        state.marks[ALARMED] = 1
    if alone:
        state.level[0] = state.known[LEVEL]
    for j in range(state.o.size):
        _keep_some(state, j)
        state.f[j] = 0.0
        state.slow[j] = 0.0  # e


@kernel
def _keep_some(state: State, i: Whole) -> None:
    if observations(state, i) > LEFT:
        state.F[i] = LEFT
        state.F2[i] = LEFT


@kernel
def _judge(state: State, i: Whole, loss: float) -> None:
    if state.looks[i] > 0.0 and i != state.marks[LEADER]:
        if loss < 0.5 * (state.was[i] + np.float64(state.bad[i])):
            state.o[i] = state.was[i] - state.known[LEVEL]
            _keep_some(state, i)
            state.V[i] = 0.0
            state.looks[i] = 0.0
        else:
            state.bad[i] = loss  # f


@kernel
def _know_arms(state: State, graph: GraphArrays, told: Told, level: float, P: np.ndarray, part: float) -> None:
    """Learn the effects of the arms that were revealed; `level` has the effect of the round."""
    first, weighed = graph.start[told.arm], state.known[WEIGHED] > 0.0
    count, most = graph.stop[told.arm] - first, MOST + GROWTH * told.t
    for k in range(count):
        i = np.uint64(graph.targets[first + k])
        e = told.losses[k] - state.o[i] - level
        w = part * min(most, 1.0 / max(P[i], told.p[told.arm])) if weighed else part
        N = observations(state, i)
        state.known[SQUARES] += w * (e * e) * (N / (N + 1.0))
        state.known[FREEDOM] += w if N > 0.0 else 0.0
        state.F[i] += w
        share = w / state.F[i]
        step = e * share
        state.o[i] += step
        state.V[i] += share * (e * (e - step) - state.V[i])
        if not weighed:
            state.F2[i] += w * w
        state.pairs[i] |= count > 1  # g
    if weighed:
        for j in range(state.o.size):
            w = min(most, 1.0 / P[j]) if P[j] > 0.0 else 0.0
            state.F2[j] += P[j] * (w * w)


@kernel
def foretell(state: State, i: Whole) -> float:
    """Return the prediction of a loss, for rounds in which the arm may be hidden."""
    loss = state.known[LEVEL] + state.o[i]
    if state.known[AHEAD] > 0.0:
        loss = state.known[LINE] + state.known[SLOPE] * i
    return min(1.0, max(0.0, loss))  # type: ignore[no-any-return]


@kernel
def _draw_line(state: State, graph: GraphArrays, told: Told) -> None:
    """Judge the line by the arm that was played, if it hid the arms beyond it, and draw it anew."""
    last = graph.stop[told.arm] - 1
    arm, count = told.arm, graph.stop[told.arm] - graph.start[told.arm]
    if graph.targets[last] != arm or arm == state.o.size - 1:
        return
    loss, line = told.losses[count - 1], state.known[LINE] + state.known[SLOPE] * arm
    if state.known[DRAWN] > 0.0:
        away = loss - min(1.0, max(0.0, state.known[LEVEL] + state.o[arm]))
        missed = loss - min(1.0, max(0.0, line))
        state.known[AHEAD] += away * away - missed * missed
    slope = (loss - told.losses[count - 2]) / (arm - np.int64(graph.targets[last - 1]))
    state.known[LINE], state.known[SLOPE] = loss - slope * arm, slope
    state.known[DRAWN] = 1.0  # i


@kernel
def _follow_level(state: State, mean: float) -> None:
    rate = 1.0 / (state.known[TOLD] + 1.0)
    best = 0
    for j in range(len(FORGETS)):
        error = mean - state.level[j]
        state.error[j] += (error * error - state.error[j]) * max(rate, TRIAL)
        state.level[j] += error * max(rate, FORGETS[j])
        if state.error[j] < BETTER * state.error[best]:
            best = j
    state.known[LEVEL] = state.level[best]  # h
