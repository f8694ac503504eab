"""q-Tsallis against its oracle, golden values, Tsallis-INF and the lemma behind its bound."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import sidelong as sl
from learners.stepping import Stepper
from sidelong.learners import qtsallis


def random_graph(rng, K):
    A = rng.random((K, K)) < rng.uniform(0.05, 0.6)
    return A | A.T | np.eye(K, dtype=bool)


def weights(L, eta, q, u=0.0):
    L = np.array(L, float)
    stepper = Stepper("q-tsallis", sl.graphs.self_loops(L.size), horizon=1)
    stepper.params = qtsallis.Params(q, eta)
    stepper.state.Lhat[:] = L
    stepper.state.u[0] = u
    return stepper.distribution()


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("q", "golden"),
    [(0.5, [0.60765127, 0.31461167, 0.06988176, 0.00785531]), (0.75, [0.58981316, 0.34189051, 0.06580145, 0.00249488])],
)
def test_golden_weights(q, golden):
    assert weights([0, 1, 5, 20], 0.5, q) == pytest.approx(golden, abs=1e-8)


@given(
    st.lists(st.one_of(st.floats(0, 3), st.floats(0, 1e6)), min_size=1, max_size=30),
    st.floats(1e-4, 1),
    st.floats(0.5, 0.93),
    st.one_of(st.floats(-10, 10), st.floats(-1e12, 1e12)),
)
def test_weights_solve_their_equation_wherever_newton_begins(L, eta, q, u):
    p = weights(L, eta, q, u)
    assert math.fsum(p) == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(p, naive.q_tsallis_weights(L, eta, q)[0], rtol=1e-8)


@pytest.mark.interpreted
@pytest.mark.parametrize("u", [-1e9, 30.0, 1e9])
def test_a_tangent_that_points_below_zero_does_no_harm(u):
    """From far above the root, Newton's method would land where the best arm has a negative share."""
    L = [0] + [40] * 199
    np.testing.assert_allclose(weights(L, 1.0, 0.5, u), naive.q_tsallis_weights(L, 1.0, 0.5)[0], rtol=1e-10)


@pytest.mark.interpreted
def test_on_self_loops_it_has_the_weights_of_tsallis_inf():
    """q = 1/2 and eta = sqrt(2 / T); Tsallis-INF's 2 / sqrt(t) is twice that in round t = T / 2."""
    ours = Stepper("q-tsallis", sl.graphs.self_loops(4), horizon=20)
    theirs = Stepper("tsallis-inf", sl.graphs.self_loops(4))
    assert ours.params.q == 0.5
    assert ours.params.eta == pytest.approx(math.sqrt(0.1))
    ours.state.Lhat[:] = theirs.state.L[:] = [0, 1, 5, 20]
    theirs.t = 9
    np.testing.assert_allclose(ours.distribution(), theirs.distribution(), rtol=1e-12)
    assert ours.p == pytest.approx([0.52294041, 0.34639802, 0.11382770, 0.01683387], abs=1e-8)


@pytest.mark.interpreted
@pytest.mark.parametrize(("K", "alpha"), [(2, 1), (10, 3), (1000, 1), (1000, 999)])
def test_q_minimises_the_bound_which_stays_below_the_stated_one(K, alpha):
    def bound(q):
        return 2 * K ** (1 - q) * alpha**q / (q * (1 - q))

    params = qtsallis.configure(sl.graphs.self_loops(K), horizon=1, independence=alpha)
    assert bound(params.q) <= min(bound(q) for q in np.linspace(0.01, 0.99, 981)) + 1e-9
    assert math.sqrt(bound(params.q)) <= 2 * math.sqrt(math.e * alpha * (2 + math.log(K / alpha)))
    assert (params.q, params.eta) == pytest.approx(naive.q_tsallis_constants(K, alpha, 1), rel=1e-12)
    # The two parts of the regret are equal at this eta, and make up the bound.
    parts = K ** (1 - params.q) / (params.eta * (1 - params.q)), params.eta / (2 * params.q) * alpha**params.q
    assert parts == pytest.approx([math.sqrt(bound(params.q)) / 2] * 2)


@pytest.mark.parametrize("seed", range(20))
def test_the_lemma_behind_its_bound(seed):
    """sum_i p_i^(2 - q) / P_i <= alpha^q for every distribution."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 9))
    A = random_graph(rng, K)
    alpha = naive.independence(A)
    for _ in range(50):
        q = rng.random()
        p = rng.dirichlet(np.full(K, 10 ** rng.uniform(-1, 1))) + 1e-12
        p /= p.sum()
        assert (p ** (2 - q) / naive.observation(p, A)).sum() <= alpha**q + 1e-9


def test_the_same_state_has_the_same_distribution_again():
    stepper = Stepper("q-tsallis", sl.graphs.cycle(5), horizon=50)
    for arm in range(5):
        p = stepper.distribution().tolist()
        stepper.t -= 1
        assert stepper.distribution().tolist() == p
        stepper.update(arm, [0.3, 0.9, 0.1, 0.7, 1])


def test_the_independence_number_is_given_or_computed():
    graph = sl.graphs.cycle(7)
    assert qtsallis.configure(graph, horizon=100) == qtsallis.configure(graph, horizon=100, independence=3)
    assert qtsallis.configure(sl.graphs.self_loops(5000), horizon=100).q == 0.5
