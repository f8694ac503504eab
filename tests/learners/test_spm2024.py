"""SPM against its oracle, golden values, its special cases and the lemmas behind its bound."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import sidelong as sl
from learners.stepping import Stepper
from sidelong import theory
from sidelong.learners import spm2024


def random_graph(rng, K):
    A = rng.random((K, K)) < rng.uniform(0.05, 0.6)
    return A | A.T | np.eye(K, dtype=bool)


def weights(L, b, a, b_other, u=0.0, log_p=None):
    L = np.array(L, float)
    stepper = Stepper("spm-2024", sl.graphs.self_loops(L.size))
    stepper.params = spm2024.Params(a, b, b_other)
    stepper.state.L[:] = L
    stepper.state.b[0] = b
    stepper.state.u[0] = u
    if log_p is not None:
        stepper.state.log_p[:] = log_p
    return stepper.distribution()


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("b", "a", "b_other", "golden"),
    [
        (math.sqrt(10), 0.5, 0, [0.52294041, 0.34639802, 0.11382770, 0.01683387]),  # Tsallis-INF with eta = 2 / b
        (0.75 / 0.25 / 0.5, 0.75, 0, [0.58981316, 0.34189051, 0.06580145, 0.00249488]),  # q-Tsallis with eta = 1/2
        (3, 0.7, 2, [0.4504685093, 0.3479036570, 0.1626019251, 0.0390259086]),
    ],
)
def test_golden_weights(b, a, b_other, golden):
    assert weights([0, 1, 5, 20], b, a, b_other) == pytest.approx(golden, abs=1e-8)


@pytest.mark.interpreted
def test_one_power_is_the_step_of_tsallis_inf_and_of_q_tsallis():
    L = [0, 1, 5, 20, 3]
    tsallis, _ = naive.tsallis_weights(L, 0.3)
    np.testing.assert_allclose(weights(L, 2 / 0.3, 0.5, 0), tsallis, rtol=1e-10)
    q_tsallis, _ = naive.q_tsallis_weights(L, 0.3, 0.8)
    np.testing.assert_allclose(weights(L, 0.8 / (0.2 * 0.3), 0.8, 0), q_tsallis, rtol=1e-10)


@given(
    st.lists(st.one_of(st.floats(0, 3), st.floats(0, 1e6)), min_size=2, max_size=12),
    st.floats(1, 1e4),
    st.floats(0.05, 0.95),
    st.one_of(st.just(0.0), st.floats(0.5, 200)),
    st.one_of(st.floats(-10, 10), st.floats(-1e12, 1e12)),
    st.floats(-300, 0),
)
def test_weights_solve_their_equation_wherever_newton_begins(L, b, a, b_other, u, log_p):
    p = weights(L, b, a, b_other, u, log_p)
    assert math.fsum(p) == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(p, naive.two_power_weights(L, b, a, b_other), rtol=1e-8)
    level = b * p ** (a - 1) + b_other * p**-a - np.array(L)  # the condition of line 2: the same for all arms
    np.testing.assert_allclose(level, level[0], rtol=1e-7, atol=1e-7 * max(L))


PATH5 = {
    2: (60.4888629118, [0.1989712986, 0.1989712986, 0.1979616623, 0.2020478703, 0.2020478703]),
    10: (60.9327786614, [0.2044961363, 0.2023619848, 0.1924155548, 0.2109412161, 0.1897851080]),
    50: (63.0869212923, [0.2189495984, 0.2065573166, 0.1640684346, 0.2567394502, 0.1536852001]),
}
STAR6 = {
    2: (56.7779526773, [0.1665696627, 0.1630682084, *[0.1675905322] * 4]),
    10: (56.9904437878, [0.1640014441, 0.1634538593, 0.1604988886, 0.1743710397, 0.1664981876, 0.1711765808]),
    50: (58.0557967330, [0.1584693050, 0.1505209916, 0.1546794037, 0.2174850527, 0.1608824097, 0.1579628373]),
}


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("graph", "constants", "golden"),
    [
        (sl.graphs.path(5), (0.669055123149378, 60.43302495063963, 24.17320998025585), PATH5),
        (sl.graphs.star(6), (0.577103202485941, 56.75143472610982, 18.917144908703275), STAR6),
    ],
    ids=["path", "star"],
)
def test_golden_rounds(graph, constants, golden):
    """Losses ((t (i + 2)) mod 5) / 4, and arm t mod K is played in round t."""
    K, stepper = graph.n_arms, Stepper("spm-2024", graph)
    assert stepper.params == pytest.approx(constants, rel=1e-12)
    for t in range(1, 51):
        p = stepper.distribution()
        if t == 1:
            assert p == pytest.approx(np.full(K, 1 / K), abs=1e-12)
        if t in golden:
            assert stepper.state.b[0] == pytest.approx(golden[t][0], abs=1e-9)
            assert p == pytest.approx(golden[t][1], abs=1e-9)
        stepper.update(t % K, [(t * (i + 2)) % 5 / 4 for i in range(K)])
        if t == 1 and graph.name == "path(5)":
            assert stepper.traced("stability") == pytest.approx(3.5477563922, abs=1e-9)
            assert stepper.traced("penalty") == pytest.approx(1.0513562618, abs=1e-9)


@pytest.mark.interpreted
def test_on_self_loops_the_power_is_one_half_and_stability_twice_the_sum_of_roots():
    stepper = Stepper("spm-2024", sl.graphs.self_loops(4))
    assert stepper.params == (0.5, 32.0, 0.0)
    stepper.state.L[:] = [0, 10, 50, 200]
    p = stepper.distribution()
    tsallis, _ = naive.tsallis_weights([0, 10, 50, 200], 2 / 32)
    np.testing.assert_allclose(p, tsallis, rtol=1e-10)
    m = min(p.max(), 1 - p.max())
    stepper.update(1, [0.5] * 4)
    assert stepper.traced("stability") == pytest.approx(2 * np.sum(np.minimum(p, m) ** 1.5 / p), rel=1e-12)


@pytest.mark.interpreted
def test_on_a_complete_graph_the_estimates_are_the_losses():
    stepper = Stepper("spm-2024", sl.graphs.complete(3))
    for t in range(10):
        stepper.distribution()
        stepper.update(t % 3, [0.2, 1.0, 0.4])
    np.testing.assert_allclose(stepper.state.L, [2, 10, 4], rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_no_probability_and_no_penalty_grows_more_than_fourfold(seed):
    """What the bound rests on, for any arm that is drawn, also against losses that favour one arm."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 12))
    stepper = Stepper("spm-2024", sl.FeedbackGraph.from_matrix(random_graph(rng, K)))
    before, b, h = np.full(K, 1.0), 0.0, math.inf
    for _ in range(300):
        p = stepper.distribution().copy()
        assert (p <= 4 * before).all()
        stepper.update(int(rng.integers(K)), rng.random(K) ** 3 * (np.arange(K) > 0))
        assert stepper.state.b[0] > b
        assert stepper.traced("penalty") <= 4 * h
        before, b, h = p, stepper.state.b[0], stepper.traced("penalty")


@pytest.mark.parametrize("seed", range(10))
def test_stability_is_at_most_what_the_bound_has(seed):
    """z <= (1 + alpha^a) (1 - max p)^(1 - a) / (1 - a) for every distribution."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 9))
    A = random_graph(rng, K)
    alpha = naive.independence(A)
    for _ in range(50):
        a = rng.uniform(0.05, 0.95)
        p = rng.dirichlet(np.full(K, 10 ** rng.uniform(-1, 1))) + 1e-12
        p /= p.sum()
        z = naive.Spm2024(K, a).stability(p, naive.observation(p, A))
        assert z <= (1 + alpha**a) / (1 - a) * (1 - p.max()) ** (1 - a) + 1e-9


@pytest.mark.interpreted
def test_penalty_and_rate_keep_their_digits_where_one_arm_has_nearly_all():
    oracle, stepper = naive.Spm2024(3, 0.8), Stepper("spm-2024", sl.graphs.path(3), a=0.8)
    oracle.L[:] = stepper.state.L[:] = [0, 1e17, 3e17]
    told = oracle.distribution(sl.graphs.path(3).matrix())
    p = stepper.distribution()
    assert 0 < 1 - told.p[0] < 1e-15
    np.testing.assert_allclose(p[1:], told.p[1:], rtol=1e-9)
    stepper.update(0, [0, 0, 0])
    assert stepper.traced("penalty") == pytest.approx(oracle.penalty(told.p), rel=1e-9)
    assert stepper.traced("stability") == pytest.approx(oracle.stability(told.p, told.P), rel=1e-9)


def test_the_same_state_has_the_same_distribution_again():
    stepper = Stepper("spm-2024", sl.graphs.cycle(5))
    for arm in range(5):
        p = stepper.distribution().tolist()
        stepper.t -= 1
        assert stepper.distribution().tolist() == p
        stepper.update(arm, [0.3, 0.9, 0.1, 0.7, 1])


@pytest.mark.interpreted
def test_the_bounds_are_those_that_were_computed_apart():
    assert theory.rivals.spm_2024(K=5, T=8000, independence=3) == pytest.approx(4527, abs=0.5)
    assert theory.rivals.spm_2024(K=5, T=10**6, independence=3) == pytest.approx(48487, abs=0.5)
    found = theory.rivals.spm_2024_stochastic(T=10**6, gaps=[0.4, 0, 0.4, 0.4, 0.4], independence=3)
    assert found == pytest.approx(96914, abs=0.5)


@pytest.mark.parametrize("world", [sl.losses.bernoulli([0.7, 0.3, 0.7, 0.7, 0.7]), sl.losses.constrained(0.4, 5, 1)])
def test_the_regret_stays_below_the_bound(world):
    """The mean of 8 runs is 265, its standard error 5, the bound 8,571: failure probability below 1e-9."""
    T = 30_000
    result = sl.simulate("spm-2024", sl.graphs.path(5), world, rounds=T, runs=8, seed=5, checkpoints=[T])
    assert 0 < result.regret.mean() < theory.rivals.spm_2024(K=5, T=T, independence=3)


def test_in_a_stochastic_world_the_regret_stops_growing():
    """From T to 4 T it grew by 10 %, with a standard error of 0.5 %; the root of T doubles: failure below 1e-9."""
    T, world = 20_000, sl.losses.bernoulli([0.7, 0.3, 0.7, 0.7, 0.7])
    result = sl.simulate("spm-2024", sl.graphs.path(5), world, rounds=4 * T, runs=16, seed=5, checkpoints=[T, 4 * T])
    early, late = result.regret.mean(axis=0)
    assert late < 1.2 * early


def test_the_independence_number_is_given_or_computed():
    graph = sl.graphs.cycle(7)
    assert spm2024.configure(graph) == spm2024.configure(graph, independence=3)
    assert spm2024.configure(sl.graphs.self_loops(5000)).a == 0.5
    assert spm2024.configure(graph, a=0.3) == (0.3, 40.0, 0.0)
