"""Every interval and every certificate covers at least 95 % of 2,000 runs, with feedback lost in three ways.

Five settings are played by EXP3-SET in a kernel of its own. The certificate is looked at in every round, rounds that
wait included, and intervals at four moments: a run counts as missed if any look misses. At most 5 % of the runs may.
With the seeds below fewer than 1 % do, and if 1 % did, more than 100 of 2,000 would with a probability below 1e-30.
"""

import math
import re
from typing import NamedTuple

import numpy as np
import pytest

import sidelong as sl
from sidelong import evaluation
from sidelong._jit import kernel
from sidelong.evaluation import DecisionLog, weighing
from sidelong.evaluation.certificates import NOT_TOLD, TOLD, Standing, freeze, roots, settle
from sidelong.evaluation.intervals import interval
from sidelong.graphs.arrays import observe
from sidelong.numerics import exp, log

RUNS, T, MOST = 2000, 300, 100
BY_CHANCE, BY_LOSS, BY_ARM = 1, 2, 3  # how feedback is lost; 0: not at all


class Played(NamedTuple):
    """A run: rows are rounds."""

    p: np.ndarray
    P: np.ndarray
    mean: np.ndarray  # what the certificate froze
    losses: np.ndarray
    told: np.ndarray  # 0 or 1
    arm: np.ndarray


@kernel
def play(graph, means, watched, lost, late, u, made, standing, now, level, scratch):  # noqa: C901  # a round is one thing
    """Play EXP3-SET; return in how many rounds, looked at in each, some arm had lost less than the certificate says.

    `watched`: the arm that was drawn last has the loss 1. Round t is told before the draw of round t + late. `u` has
    2 + K uniform numbers for each round.
    """
    K = means.shape[1]
    L, told, truth, lower, work = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    scratch[:] = 0.0
    theta = np.float64(K)
    wrong = 0
    for t in range(u.shape[0]):
        s = t - late
        if s >= 0:
            first = graph.start[made.arm[s]]
            for e in range(first, graph.stop[made.arm[s]]):
                k = graph.targets[e]
                told[e - first] = made.losses[s, k]
                if made.told[s] == 1:
                    L[k] += made.losses[s, k] / made.P[s, k]
            how = TOLD if made.told[s] == 1 else NOT_TOLD
            settle(standing, graph, made.arm[s], made.p[s], made.mean[s], told, how, work)
        freeze(standing, made.mean[t])
        _draw(graph, means[t], watched, lost, u[t], made, t, L, theta)
        for k in range(K):
            theta += made.p[t, k] / made.P[t, k]
            truth[k] += made.losses[t, k]
        for k in range(K):
            for j in range(now.W.shape[1]):
                now.W[k, j] = standing.W[k, j]
        for s in range(max(t - late + 1, 0), t + 1):  # rounds that wait
            settle(now, graph, made.arm[s], made.p[s], made.mean[s], told, NOT_TOLD, work)
        if _may_be_wrong(now.W, level, truth):
            roots(now.W, level, lower)
            for k in range(K):
                if lower[k] > truth[k]:
                    wrong += 1
                    break
    return wrong


@kernel
def _may_be_wrong(W, level, truth):
    """Tell whether a bound can be above the truth: not if the largest of the terms there is below their mean's level.

    `roots` never passes where the mean of exp(terms) reaches exp(level), and that falls. It takes most of the time of a
    round, so that it is left out in rounds where it cannot be wrong.
    """
    for k in range(truth.size):
        s = 1.0
        for j in range(W.shape[1]):
            if W[k, j] - s * truth[k] >= level:
                return True
            s *= 0.5
    return False


@kernel
def _draw(graph, means, watched, lost, u, made, t, L, theta):
    K = means.size
    least = np.inf
    for k in range(K):
        least = min(least, L[k])
    sum_ = 0.0
    for k in range(K):
        made.p[t, k] = exp(-math.sqrt(log(np.float64(K)) / theta) * (L[k] - least))
        sum_ += made.p[t, k]
    arm, below = -1, 0.0
    for k in range(K):
        made.p[t, k] /= sum_
        below += made.p[t, k]
        if arm < 0 and (u[0] < below or k == K - 1):
            arm = k
        made.losses[t, k] = 1.0 if u[2 + k] < means[k] or (watched and t > 0 and made.arm[t - 1] == k) else 0.0
    observe(graph, made.p[t], made.P[t])
    made.arm[t] = arm
    chance = 0.15 if lost == BY_CHANCE else 0.0
    if lost == BY_LOSS:
        chance = 0.4 if made.losses[t, arm] > 0.5 else 0.05
    if lost == BY_ARM and arm == 0:
        chance = 0.8
    made.told[t] = 0 if u[1] < chance else 1


STAY, RISE = [0.2, 0.3, 0.4, 0.5, 0.6], [0.3, 0.5, 0.5, 0.5, 0.7]
#: The graph, the means in both halves, whether somebody watches, how feedback is lost, and when a round is told.
SETTINGS = {
    "loops, all told": (sl.graphs.self_loops(5), RISE, RISE, False, 0, 1),
    "path, watched, lost by chance": (sl.graphs.path(5), [0.2] * 5, [0.2] * 5, True, BY_CHANCE, 1),
    "nested, late, lost by the loss": (sl.graphs.nested(4), RISE[:4], RISE[:4], False, BY_LOSS, 4),
    "path, lost by the arm": (sl.graphs.path(5), STAY, STAY, False, BY_ARM, 1),
    "loops, turning, late, lost by the loss": (
        sl.graphs.self_loops(3),
        [0.1, 0.5, 0.9],
        [0.9, 0.5, 0.1],
        False,
        BY_LOSS,
        6,
    ),
}


BY_DAY = {"nested, late, lost by the loss", "path, lost by the arm"}
NAMED = [
    pytest.param(name, id=re.sub(r"\W+", "_", name), marks=() if name in BY_DAY else pytest.mark.nightly)
    for name in SETTINGS
]


@pytest.fixture(scope="module", params=NAMED)
def runs(request):
    """The rounds of all runs, in how many the certificate was ever wrong, and when feedback comes."""
    graph, before, after, watched, lost, late = SETTINGS[request.param]
    K, rng = graph.n_arms, np.random.default_rng([5, list(SETTINGS).index(request.param)])
    means = np.repeat(np.array([before, after]), T // 2, axis=0)
    scratch, now = np.zeros((5, K)), Standing.new(K)
    made, wrong = [], 0
    for _ in range(RUNS):
        numbers = np.empty((2, T), np.int64)
        each = Played(*np.empty((4, T, K)), *numbers)
        level = math.log(K / 0.05)
        args = (
            graph.arrays,
            means,
            watched,
            lost,
            late,
            rng.random((T, 2 + K)),
            each,
            Standing.new(K),
            now,
            level,
            scratch,
        )
        wrong += play(*args) > 0
        made.append(each)
    A = graph.matrix().astype(bool)
    stacked = Played(*(np.stack(parts) for parts in zip(*made, strict=True)))
    return stacked, A[stacked.arm] & (stacked.told == 1)[:, :, None], wrong, late


@pytest.mark.long
def test_certificates_hold_at_every_moment_of_a_run(runs):
    assert runs[2] <= MOST


@pytest.mark.long
def test_intervals_from_the_log_hold(runs):
    """The runs are the arms of one log; an arm of a run misses if any of four looks does."""
    made, seen, _, _ = runs
    missed = np.zeros(seen.shape[::2], bool)
    for n in (T // 8, T // 4, T // 2, T):
        truth = made.losses[:, :n].mean(axis=1)
        t, run, arm = np.nonzero(seen[:, :n].swapaxes(0, 1))
        about = made.losses[run, t, arm], made.P[run, t, arm]
        K = seen.shape[2]
        log = DecisionLog(RUNS * K, np.ones(n, bool), np.full(n, np.nan), t, run * K + arm, *about)
        found = evaluation.evaluate_arms(log)
        lower, upper = found.lower.reshape(truth.shape), found.upper.reshape(truth.shape)
        missed |= (truth < lower) | (truth > upper)
    assert (missed.sum(axis=0) <= MOST).all(), missed.sum(axis=0)


@pytest.mark.long
def test_intervals_of_the_state_page_hold(runs):
    """The same for what the service keeps, fed as late as the rounds are told."""
    made, seen, _, late = runs
    K = seen.shape[2]
    sums, frozen = np.zeros((weighing.ROWS, RUNS * K)), []
    missed = np.zeros((RUNS, K), bool)
    for t in range(T):
        frozen.append(weighing.baselines(sums))
        if (s := t - late + 1) >= 0:
            at = np.flatnonzero(seen[:, s])
            losses, P = made.losses[:, s].ravel()[at], made.P[:, s].ravel()[at]
            weighing.add_losses(sums, at, losses, P, frozen[s][at], t + 1)
        if t + 1 in (T // 8, T // 4, T // 2, T):
            truth = made.losses[:, : t + 1].mean(axis=1)
            found = interval(weighing.evidence(sums, t + 1), t + 1, 0.05, weighing.costs(sums, t + 1, t + 1))
            missed |= (truth < found.lower.reshape(truth.shape)) | (truth > found.upper.reshape(truth.shape))
    assert (missed.sum(axis=0) <= MOST).all(), missed.sum(axis=0)
