"""What the literature says about the learners shows, with fixed seeds: bounds, who gains, and unbiased estimates.

Each comparison is of means over runs that share their losses. The failure probability is that of a normal mean at the
distance, in standard errors, that the assertion leaves: below 1e-6 for all but those that state their own.
"""

import functools
import itertools
import math

import numpy as np
import pytest

import sidelong as sl
from learners.stepping import Stepper, random_digraph
from sidelong.learners import exp3g_adaptive

K, GAP, BEST, T, RUNS = 10, 0.2, 3, 50_000, 16
CLIQUES, LOOPS, COMPLETE = sl.graphs.cliques([5, 5]), sl.graphs.self_loops(K), sl.graphs.complete(K)
STOCHASTIC = sl.losses.bernoulli([0.5 + GAP / 2 - GAP * (arm == BEST) for arm in range(K)])
CONSTRAINED = sl.losses.constrained(gaps=GAP, n_arms=K, best=BEST)


@functools.cache
def regrets(learner, graph, world, **options):
    return sl.simulate(learner, graph, world, T, RUNS, seed=5, checkpoints=[T], **options).regret[:, -1]


@pytest.mark.parametrize(
    ("with_graph", "without"),
    [("exp3-set", "exp3"), ("exp3.g++", "exp3++"), ("exp3.g++", "exp3"), ("elp", "exp3"), ("exp3-ix", "exp3++")],
)
@pytest.mark.parametrize("world", [STOCHASTIC, CONSTRAINED], ids=["stochastic", "constrained"])
def test_on_cliques_those_that_use_the_graph_beat_those_that_do_not(with_graph, without, world):
    """Five arms are seen for one, and the regret falls by more than a third; six standard errors are less than that."""
    ours, theirs = regrets(with_graph, CLIQUES, world), regrets(without, CLIQUES, world)
    assert ours.mean() + 6 * ours.std() / RUNS**0.5 < theirs.mean() - 6 * theirs.std() / RUNS**0.5


@pytest.mark.parametrize("learner", ["exp3-set", "exp3-ix", "exp3.g++", "ucb-n", "ts-n"])
def test_the_same_learner_gains_from_the_graph(learner):
    seen, blind = regrets(learner, CLIQUES, STOCHASTIC), regrets(learner, LOOPS, STOCHASTIC)
    assert seen.mean() + 6 * seen.std() / RUNS**0.5 < blind.mean() - 6 * blind.std() / RUNS**0.5


ALPHA = 2  # of the two cliques: the independence number, the strong one, mas and the clique cover number
LOG_K, LOG_T = math.log(K), math.log(T)


def ix_bound():
    H = [math.log(1 + (math.ceil(K**2 * math.sqrt(t * K / LOG_K)) + K) / ALPHA) for t in range(1, T + 1)]
    return 4 * math.sqrt((K + 2 * (ALPHA * math.fsum(H) + T)) * LOG_K)


#: learner, options, graph, and the bound that its file states, for ALPHA and T
ADVERSARIAL = [
    ("exp3.g++", {}, CLIQUES, 3.83 * math.sqrt(ALPHA * T * LOG_K) + K + 2.13 * math.sqrt(K * LOG_K)),
    ("exp3.g++", {"rate": "fixed"}, CLIQUES, 4 * math.sqrt(ALPHA * T * LOG_K) + K),
    ("exp3-set", {}, CLIQUES, 2 * math.sqrt(ALPHA * T * LOG_K) + math.sqrt(K * LOG_K)),
    ("exp3-ix", {}, CLIQUES, ix_bound()),
    ("elp", {}, CLIQUES, 3.71 * math.sqrt(ALPHA * T * LOG_K) + (2 + math.log2(T + 1)) * LOG_K * ALPHA),
    ("exp3", {}, CLIQUES, 2 * math.sqrt(K * T * LOG_K)),
    ("exp3++", {}, CLIQUES, 4 * math.sqrt(K * T * LOG_K)),
    ("tsallis-inf", {}, CLIQUES, 4 * math.sqrt(K * T) + 1),
    ("tsallis-inf", {"estimator": "rv"}, CLIQUES, 2 * math.sqrt(K * T) + 14 * K * LOG_T + 16),
    ("hedge", {}, COMPLETE, math.sqrt(T * LOG_K)),
    ("ito-2022", {}, CLIQUES, 2 * math.sqrt(ALPHA * T * LOG_K * (1 + LOG_T))),
    ("q-tsallis", {}, CLIQUES, 2 * math.sqrt(math.e * ALPHA * T * (2 + math.log(K / ALPHA)))),
]


@pytest.mark.parametrize(("learner", "options", "graph", "bound"), ADVERSARIAL)
@pytest.mark.parametrize("world", [STOCHASTIC, CONSTRAINED], ids=["stochastic", "constrained"])
def test_regret_stays_below_the_adversarial_bound(learner, options, graph, bound, world):
    regret = regrets(learner, graph, world, **options)
    assert regret.mean() + 5 * regret.std() / RUNS**0.5 < bound


#: learner and the stochastic bound for two cliques of five, one of which holds the best arm; that of AlphaSample, with
#: the constants of its phases, is above any possible regret here
IN_THE_STOCHASTIC_WORLD = [
    ("ucb-n", 2 * 8 * LOG_T / GAP + (1 + math.pi**2 / 3) * K * GAP),
    ("ucb-maxn", 2 * 8 * LOG_T / GAP + (1 + math.pi**2 / 3) * K * GAP),
    ("ts-n", ALPHA * math.log(K * T) * LOG_T / GAP),
]


@pytest.mark.parametrize(("learner", "bound"), IN_THE_STOCHASTIC_WORLD)
def test_regret_stays_below_the_stochastic_bound(learner, bound):
    regret = regrets(learner, CLIQUES, STOCHASTIC)
    assert regret.mean() + 5 * regret.std() / RUNS**0.5 < bound


LONG = 1_000_000
LOG_LONG = math.log(LONG)

#: learner, options, graph, and the bound for K arms with one gap over LONG rounds, below the adversarial one there
SELF_BOUNDING = [
    ("ito-2022", {}, CLIQUES, 4 * ALPHA * (1 + LOG_LONG) * math.log(math.e * K * LONG) / GAP),
    (
        "tsallis-inf",
        {"estimator": "rv"},
        LOOPS,
        (K - 1) * (LOG_LONG + 3) / GAP + 2 / GAP + 28 * K * LOG_LONG + 1.5 * math.sqrt(K) + 32,
    ),
    ("hedge", {}, COMPLETE, (4 * LOG_K + 25) / GAP),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("learner", "options", "graph", "bound"), SELF_BOUNDING)
@pytest.mark.parametrize("world", [STOCHASTIC, CONSTRAINED], ids=["stochastic", "constrained"])
def test_regret_stays_below_the_logarithmic_bound(learner, options, graph, bound, world):
    """Of those for which it is known with its constants. The proofs use the gap in every round and not the means, so
    that it holds in both worlds. What is left to the bound is more than 50 standard errors.

    The bounds of EXP3++ and EXP3.G++ are not tested: their constants, 4 beta with beta above 250, make them larger than
    any regret that is possible in fewer than about 10^9 rounds, and such a test could not fail.
    """
    regret = sl.simulate(learner, graph, world, LONG, 4, seed=5, checkpoints=[LONG], **options).regret[:, -1]
    assert regret.mean() + 5 * regret.std() / 4**0.5 < bound


FAR, LARGE_GAP = 100_000, 0.5
EASY = sl.losses.bernoulli([0.5 + LARGE_GAP / 2 - LARGE_GAP * (arm == BEST) for arm in range(K)])


@functools.cache
def mean_and_error(learner, world, runs, **options):
    regret = sl.simulate(learner, LOOPS, world, FAR, runs, seed=5, checkpoints=[FAR], **options).regret[:, -1]
    return regret.mean(), regret.std(ddof=1) / runs**0.5


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("theirs", "ours", "world"),
    [
        (("ts-n", {}), "exp3.g++", STOCHASTIC),
        (("ts-n", {}), "exp3.g++", EASY),
        (("ucb-n", {}), "exp3.g++", EASY),
        (("ucb-n", {"width": 0.5}), "exp3.g++", STOCHASTIC),
        (("ucb-n", {"width": 0.5}), "exp3.g++", EASY),
        (("glance", {}), "exp3.g++", STOCHASTIC),
        (("glance", {}), "exp3.g++", EASY),
        (("glance", {}), "ucb-n", STOCHASTIC),
        (("glance", {}), "ucb-n", EASY),
    ],
)
def test_who_wins_on_self_loops_in_a_stochastic_world(theirs, ours, world):
    """At T = 10^5, with 10 arms, TS-N always beats EXP3.G++ with the paper's constants. UCB-N does so only in part.

    With a gap of 0.2 UCB-N, as published, loses to it: about 910 to 720. It beats it where the gap is 0.5 (388 to 462),
    or with the narrower interval of width 1/2 (239). `glance` beats both. The differences that are tested are of more
    than 4 standard errors: failure probability below 1e-4 for another seed.
    """
    their_mean, their_error = mean_and_error(theirs[0], world, 24, **theirs[1])
    our_mean, our_error = mean_and_error(ours, world, 24)
    assert their_mean + 4 * math.hypot(their_error, our_error) < our_mean


@pytest.mark.nightly
@pytest.mark.parametrize("ours", ["exp3.g++", "glance"])
@pytest.mark.parametrize(("learner", "runs"), [("ucb-n", 256), ("ts-n", 64)])
def test_what_a_stochastic_learner_loses_to_an_adversary(learner, runs, ours):
    """On self-loops at T = 10^5 with a gap of 0.2, EXP3.G++ loses a fifth of what UCB-N and TS-N do, or less.

    Their regrets have heavy tails, with deviations larger than the mean. For `glance` the ratios are far above 5. For
    EXP3.G++ they are 7.3 +- 0.9 for UCB-N (128 runs), of which 5 is left with 256 runs by some 3 standard errors; and
    5.7 +- 0.9 for TS-N (48 runs), so that 5 is marginal there, and 3 is what is asserted: another seed might fail with
    a probability of about 1e-3.
    """
    theirs, _ = mean_and_error(learner, CONSTRAINED, runs)
    lost, _ = mean_and_error(ours, CONSTRAINED, 16)
    assert theirs > (3 if (learner, ours) == ("ts-n", "exp3.g++") else 5) * lost


RING = np.roll(np.eye(5, dtype=bool), 1, axis=1)  # every arm reveals the next one alone
REVEALING = np.arange(5)[:, None].repeat(5, axis=1) == 0  # arm 0 reveals all arms, the others nothing
LOOPLESS = ~np.eye(5, dtype=bool)  # every arm reveals all others
DIGRAPH = random_digraph(np.random.default_rng(3), 5)

#: learner, options, which of its arrays is the estimate, graphs, and the round
UNBIASED = [
    ("exp3", {}, "Lhat", [np.ones((5, 5), bool)], 1),
    ("exp3-set", {}, "Lhat", [DIGRAPH], 1),
    ("exp3.g", {"horizon": 1000}, "Lhat", [RING, REVEALING, LOOPLESS], 1),
    (exp3g_adaptive, {}, "L", [RING, REVEALING, LOOPLESS], 1),
    *[
        ("tsallis-inf", {"estimator": estimator, "feedback": feedback}, "L", [DIGRAPH], t)
        for estimator, feedback, t in itertools.product(("iw", "rv"), ("bandit", "graph"), (1, 100))
    ],  # in round 100 every B is 1/2
]


@pytest.mark.parametrize(("learner", "options", "estimate", "graphs", "t"), UNBIASED)
def test_the_estimate_is_unbiased(learner, options, estimate, graphs, t):
    """Over the draw, enumerated, each arm's estimate grows by its loss."""
    losses, before = np.linspace(0, 1, 5), np.arange(5.0) / 4
    for A in graphs:
        expected = np.zeros(5)
        for arm in range(5):
            stepper = Stepper(learner, sl.FeedbackGraph.from_matrix(A), **options)
            estimates = getattr(stepper.state, estimate)
            estimates[:] = before
            stepper.t = t - 1
            stepper.distribution()
            stepper.update(arm, losses)
            expected += stepper.p[arm] * (estimates - before)
        np.testing.assert_allclose(expected, losses, rtol=1e-11, atol=1e-14)
