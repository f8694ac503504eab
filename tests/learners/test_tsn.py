"""TS-N against its oracle, the law of its draws, and what is known of how it fares."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import naive
import sidelong as sl
from learners.stepping import follow, random_digraph
from sidelong._jit import compiled
from sidelong.learners import catalogue, tsn
from sidelong.learners.interface import Asked, Told
from sidelong.numerics import DRAWS, beta, beta_power, log


def draws(a, b, n, seed=0):
    known = float(a), float(b), beta_power(float(a), float(b)), log(float(a + b)), np.uint64(seed), DRAWS, 0
    draw = compiled(beta, *known, 1, 1, 3)
    return np.array([draw(*known, t, 1, 3) for t in range(1, n + 1)])


SHAPES = [
    (1, 1),
    (1, 2),
    (2, 1),
    (2, 3),
    (40, 1),
    (1, 2000),
    (600, 400),
    (3, 50_000),
    (1e6, 3e6),
    (0.5, 0.5),
    (0.01, 3),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_draws_have_the_law_of_the_posterior(shape):
    """Kolmogorov and Smirnov with 40,000 draws; each of the 11 fails with probability 1e-6 if all is right."""
    assert stats.kstest(draws(*shape, 40_000), stats.beta(*shape).cdf).pvalue > 1e-6


@pytest.mark.interpreted
def test_a_uniform_prior_gives_back_the_random_number():
    """Beta(1, 1): the first attempt is accepted, and is u itself, the first one of its pair."""
    u = [sl.numerics.uniform(np.uint64(0), DRAWS, 0, t, 2) for t in range(1, 100)]
    assert draws(1, 1, 99).tolist() == pytest.approx(u)


def seeds_posterior(L, O, prior=1.0):
    """Return the state of a learner after so many losses, as if told in rounds of one arm."""
    graph = sl.graphs.self_loops(len(L))
    params = tsn.configure(graph, prior=prior)
    state = tsn.init(params, graph)
    for arm, (ones, n) in enumerate(zip(L, O, strict=True)):
        for k in range(n):
            l = np.array([float(k < ones)])
            tsn.update(params, state, graph.arrays, Told.new(1, arm, np.zeros(len(L)), l, np.zeros(0)))
    return graph, params, state


def test_arms_are_drawn_as_often_as_they_are_best_under_the_posterior():
    """A chi-squared test of 40,000 draws fails with probability 1e-6 if all is right."""
    L, O = [3, 10, 1, 5], [6, 25, 2, 5]
    graph, params, state = seeds_posterior(L, O)
    known, asked = (params, state, graph.arrays), Asked.new(1, np.zeros(4), np.zeros(0), seed=5)
    draw, counts = compiled(tsn.draw, *known, asked), np.zeros(4)
    for t in range(1, 40_001):
        counts[draw(*known, asked._replace(t=t))] += 1
    laws = [stats.beta(1 + ones, 1 + n - ones) for ones, n in zip(L, O, strict=True)]
    best = [
        integrate.quad(
            lambda x, i=i: laws[i].pdf(x) * math.prod(law.sf(x) for law in laws if law is not laws[i]), 0, 1
        )[0]
        for i in range(4)
    ]
    assert sum(best) == pytest.approx(1)
    assert stats.chisquare(counts, np.array(best) * 40_000).pvalue > 1e-6


@pytest.mark.interpreted
@pytest.mark.parametrize("prior", [1.0, 0.5])
def test_the_smallest_draw_is_played(prior):
    L, O = [2, 0, 5], [4, 1, 7]
    graph, params, state = seeds_posterior(L, O, prior)
    p = np.zeros(3)
    for t in range(1, 40):
        thetas = []
        for i in range(3):
            a, b = prior + L[i], prior + O[i] - L[i]
            thetas.append(beta(a, b, beta_power(a, b), log(a + b), np.uint64(9), DRAWS, 2, t, i, 3))
        asked = Asked.new(t, p, np.zeros(0), seed=9, run=2)
        assert tsn.draw(params, state, graph.arrays, asked) == np.argmin(thetas)
        assert np.isnan(p).all()


@pytest.mark.interpreted
@pytest.mark.parametrize(("late", "after"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("seed", [1, 3])  # odd: losses are 0 or 1
def test_the_posterior_is_that_of_the_oracle(seed, late, after):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 9))
    bank = [random_digraph(rng, K) for _ in range(3)]
    agent = sl.Agent("ts-n", sl.FeedbackGraph.from_matrix(bank[0]), seed=seed)
    oracle = naive.TsN(K)
    follow(agent, oracle, bank, late=late, after=after, seed=seed)
    state = agent._state
    assert list(zip(state.a, state.b, strict=True)) == [oracle.posterior(i) for i in range(K)]
    assert state.power.tolist() == [beta_power(a, b) for a, b in zip(state.a, state.b, strict=True)]
    assert state.log_sum.tolist() == [log(a + b) for a, b in zip(state.a, state.b, strict=True)]
    assert state.O.tolist() == oracle.O


@pytest.mark.interpreted
@pytest.mark.parametrize("prior", [0.5, [2, 5], [[1, 2], [3, 4], [0.5, 0.25]]], ids=str)
def test_a_prior_is_for_both_parameters_or_a_pair_or_a_pair_for_each_arm(prior):
    agent, oracle = sl.Agent("ts-n", sl.graphs.nested(3), seed=1, prior=prior), naive.TsN(3)
    follow(agent, oracle, [np.tri(3, dtype=bool)], rounds=40, seed=1)
    pairs = np.broadcast_to(prior, (3, 2)).tolist()
    state = agent._state
    assert list(zip(state.a, state.b, strict=True)) == [oracle.posterior(i, *pairs[i]) for i in range(3)]
    assert catalogue.proved(tsn.LEARNER, {"prior": prior}) == ()
    assert catalogue.proved(tsn.LEARNER, {"prior": [1, 1]}) == ("stochastic",)


@pytest.mark.interpreted
def test_probabilities_are_not_known():
    agent = sl.Agent("ts-n", sl.graphs.path(3), seed=1)
    decision = agent.ask()
    assert math.isnan(decision.probability)
    assert np.isnan(decision.probabilities).all()
    assert np.isnan(decision.observe_probabilities).all()


def test_runs_and_seeds_draw_differently():
    world = sl.losses.bernoulli([0.5] * 6)
    setting = {"graph": sl.graphs.self_loops(6), "losses": world, "rounds": 500}
    plays = [sl.simulate("ts-n", runs=2, seed=seed, **setting).plays for seed in (0, 1)]
    assert len({tuple(row) for each in plays for row in each.tolist()}) == 4
