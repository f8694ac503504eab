"""EXP3.G against its oracle, on graphs with and without self-loops, and the growth of its regret."""

import itertools
import math

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import Stepper, follow, random_digraph
from nightly import share
from sidelong.learners import catalogue, exp3g

K = 5
RING = np.roll(np.eye(K, dtype=bool), 1, axis=1)  # every arm reveals the next one alone
REVEALING = np.arange(K)[:, None].repeat(K, axis=1) == 0  # arm 0 reveals all arms, the others nothing
LOOPLESS = ~np.eye(K, dtype=bool)  # every arm reveals all others


def graph_of(A):
    return sl.FeedbackGraph.from_matrix(A)


@pytest.mark.interpreted
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("seed", share(range(4), 2))
def test_agrees_with_the_oracle_in_every_round(seed, loops, late):
    rng = np.random.default_rng([seed, loops])
    A = random_digraph(rng, int(rng.integers(2, 9)), loops=loops)
    horizon = [100, 1000, 10**5, 10**7][seed]
    agent = sl.Agent("exp3.g", graph_of(A), seed=seed, horizon=horizon)
    follow(agent, naive.Exp3G(A, horizon), [A], late=late, seed=seed)


#: With T = 500 and alpha = 3: a student's code for strongly observable graphs, and for weakly observable ones.
STRONG = {"eta": 1 / math.sqrt(1500), "gamma": 1 / math.sqrt(1500)}
WEAK = {"eta": (math.log(5) / (500 * math.sqrt(2))) ** (2 / 3), "gamma": (2 * math.log(5) / 500) ** (1 / 3)}


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("A", "options"),
    [
        (LOOPLESS, STRONG),
        (RING, WEAK | {"explored": [0]}),
        (RING, {"horizon": 100, "gamma": 0.3, "eta_power": 0.5}),
        (REVEALING, {"eta": 0.2, "gamma": 0.4, "eta_power": 0.5, "gamma_power": 1 / 3, "explored": [0, 3]}),
    ],
)
def test_constants_of_others_agree_with_the_oracle_and_have_no_theorem(A, options):
    agent = sl.Agent("exp3.g", graph_of(A), seed=1, **options)
    follow(agent, naive.Exp3G(A, **{"horizon": 100, **options}), [A], seed=1)
    assert catalogue.proved(exp3g.LEARNER, options) == ()
    assert catalogue.proved(exp3g.LEARNER, {"horizon": 100, "independence": 2}) == ("adversarial",)


@pytest.mark.interpreted
@pytest.mark.parametrize("A", [RING, REVEALING, LOOPLESS], ids=["ring", "revealing", "loopless"])
def test_agrees_with_the_oracle_on_graphs_without_self_loops(A):
    agent = sl.Agent("exp3.g", graph_of(A), seed=1, horizon=5000)
    follow(agent, naive.Exp3G(A, 5000), [A], seed=1)


@pytest.mark.interpreted
def test_the_constants_of_the_strongly_observable_case():
    params = exp3g.configure(sl.graphs.cycle(7), horizon=1200)
    assert (params.gamma, params.eta) == pytest.approx((1 / 60, 1 / 30), rel=1e-14)  # alpha = 3
    assert params.u.tolist() == [1 / 7] * 7
    assert exp3g.configure(sl.graphs.cycle(7), horizon=1200, independence=4).gamma == pytest.approx(1 / math.sqrt(4800))
    assert exp3g.configure(sl.graphs.complete(7), horizon=1).gamma == 0.5
    assert exp3g.configure(graph_of(LOOPLESS), horizon=100).gamma == pytest.approx(1 / 10)  # alpha = 1


@pytest.mark.interpreted
def test_the_constants_of_the_weakly_observable_case():
    params = exp3g.configure(graph_of(REVEALING), horizon=10**6)
    assert params.gamma == pytest.approx((math.log(5) / 1e6) ** (1 / 3), rel=1e-14)
    assert params.eta == pytest.approx(params.gamma**2)
    assert params.u.tolist() == [1, 0, 0, 0, 0]
    params = exp3g.configure(graph_of(RING), horizon=10**6)
    assert params.gamma == pytest.approx((5 * math.log(5) / 1e6) ** (1 / 3), rel=1e-14)
    assert params.eta == pytest.approx(params.gamma**2 / 5)
    assert params.u.tolist() == [1 / 5] * 5
    assert exp3g.configure(graph_of(RING), horizon=1).gamma == 0.5


@pytest.mark.parametrize("seed", range(30))
def test_what_it_explores_reveals_all_weakly_observable_arms_and_is_small(seed):
    rng = np.random.default_rng(seed)
    A = random_digraph(rng, int(rng.integers(3, 9)), loops=False)
    if seed % 2:
        A[0, 0] = A[1, 1] = True
    weak = naive.weakly_observable(A)
    u = exp3g.configure(graph_of(A), horizon=1000).u
    if not weak:
        assert u.tolist() == [1 / len(A)] * len(A)
        return
    U = np.flatnonzero(u)
    assert A[np.ix_(U, weak)].any(axis=0).all()
    assert sorted(naive.weak_dominating_set(A, weak)) == U.tolist()
    smallest = min(
        size
        for size in range(1, len(A) + 1)
        for arms in itertools.combinations(range(len(A)), size)
        if A[np.ix_(arms, weak)].any(axis=0).all()
    )
    assert U.size <= (1 + math.log(len(A))) * smallest


def test_what_it_explores_on_a_large_ring_is_found_in_time():
    """Each of 30,000 arms is revealed by one other, so that all are needed: to compare all for each would take long."""
    n = 30_000
    arms = np.arange(n)
    graph = sl.FeedbackGraph.from_edges(np.stack([arms, (arms + 1) % n], axis=1), n)
    assert exp3g.configure(graph, horizon=10**9).u.min() == 1 / n


@pytest.mark.interpreted
def test_every_arm_it_explores_keeps_its_share():
    stepper = Stepper("exp3.g", graph_of(RING), horizon=1000)
    stepper.state.Lhat[:] = [0, 1e9, 1e9, 1e9, 1e9]
    gamma = stepper.params.gamma
    assert stepper.distribution() == pytest.approx([1 - gamma * 4 / 5] + [gamma / 5] * 4)
    assert stepper.traced("exploration_mass") == gamma
    assert stepper.traced("learning_rate") == stepper.params.eta


# The worlds: arm 3 is best by .2. In that of the revealing arm, which costs 1, exploration is what hurts.
@pytest.mark.parametrize(
    ("A", "revealing_loss", "least", "most"),
    [(RING, 0.6, 0.6, 0.75), (REVEALING, 1.0, 0.6, 0.75), (LOOPLESS, 0.6, 0.4, 0.56)],
    ids=["ring", "revealing", "loopless"],
)
def test_the_regret_grows_as_the_observability_of_the_graph_says(A, revealing_loss, least, most):
    """T^(2/3) if weakly observable, T^(1/2) if strongly: the exponent between T = 10^4 and 64 times as many rounds.

    Over 8 runs it has a standard error below .011, and is 6 of them or more from the nearest end of its range: the
    probability of failure is below 1e-8.
    """
    world = sl.losses.bernoulli([revealing_loss, 0.6, 0.6, 0.4, 0.6])
    short, long = (
        sl.simulate("exp3.g", graph_of(A), world, rounds=T, runs=8, seed=1, checkpoints=[T]).regret.mean()
        for T in (10_000, 640_000)
    )
    assert least < math.log(long / short) / math.log(64) < most


@pytest.mark.parametrize(("A", "delta", "strong"), [(RING, 5, 0), (REVEALING, 1, 1)], ids=["ring", "revealing"])
def test_the_regret_on_a_weakly_observable_graph_stays_below_its_bound(A, delta, strong):
    """The proof of Theorem 2: gamma T + ln K / eta + (eta / 2) sum q_i / P_i, where the sum is at most
    delta / gamma over weakly observable arms and 2 for each arm that reveals itself.

    The mean of 8 runs is at most half of the bound, its standard error 3 % of it: failure probability below 1e-9.
    """
    T = 100_000
    world = sl.losses.constrained(0.2, n_arms=K, best=3)
    regret = sl.simulate("exp3.g", graph_of(A), world, rounds=T, runs=8, seed=2, checkpoints=[T]).regret.mean()
    gamma = (delta * math.log(K) / T) ** (1 / 3)
    eta = gamma**2 / delta
    assert regret < gamma * T + math.log(K) / eta + eta / 2 * T * (delta / gamma + 2 * strong)
