"""ELP against its oracle, fractional domination numbers and the inequalities behind its bound."""

import math

import numpy as np
import pytest
from scipy import optimize

import naive
import sidelong as sl
from learners.stepping import Stepper, follow, random_digraph
from sidelong.errors import LearnerError
from sidelong.learners import elp


@pytest.mark.parametrize(
    ("graph", "v"),
    [
        (sl.graphs.self_loops(6), 1 / 6),
        (sl.graphs.complete(6), 1),
        (sl.graphs.star(6, hub=2), 1),
        (sl.graphs.nested(6), 1),
        (sl.graphs.cycle(7), 3 / 7),
        (sl.graphs.directed_cycle(7), 2 / 7),
        (sl.graphs.petersen(), 4 / 10),
        (sl.graphs.cliques([4, 3, 3]), 1 / 3),
        (sl.graphs.complete(1), 1),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_value_of_the_linear_program_is_known(graph, v):
    params = elp.configure(graph)
    assert params.v == pytest.approx(v, rel=1e-9)
    assert params.s.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_the_linear_program_is_solved(seed):
    """s has the value v, and by the dual program no distribution has a larger one."""
    rng = np.random.default_rng(seed)
    A = random_digraph(rng, int(rng.integers(2, 12)))
    params = elp.configure(sl.FeedbackGraph.from_matrix(A))
    assert (params.s >= 0).all()
    assert min(naive.observation(params.s, A)) == pytest.approx(params.v, rel=1e-12)
    dual = optimize.linprog(-np.ones(len(A)), A_ub=A, b_ub=np.ones(len(A)), method="highs-ipm")
    assert 1 / params.v == pytest.approx(-dual.fun, rel=1e-6)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_agrees_with_the_oracle_in_every_round(seed, late, constant):
    rng = np.random.default_rng(seed)
    A = random_digraph(rng, int(rng.integers(2, 9)))
    graph = sl.FeedbackGraph.from_matrix(A)
    params = elp.configure(graph)
    b = {"b": params.v / 5} if constant else {}
    agent = sl.Agent("elp", graph, seed=seed, **b)
    follow(agent, naive.Elp(A, params.s, **b), [A], late=late, seed=seed)


def test_a_star_by_hand():
    """All exploration is on the hub: v = 1, C = 4 (e - 2) + 1 at first."""
    stepper = Stepper("elp", sl.graphs.star(4, hub=1))
    assert stepper.params.s.tolist() == [0, 1, 0, 0]
    b = math.sqrt(math.log(4) / (2 * (4 * (math.e - 2) + 1)))
    p = (1 - b) / 4 + b * np.eye(4)[1]
    assert stepper.distribution() == pytest.approx(p)
    assert stepper.traced("learning_rate") == stepper.traced("exploration_mass") == pytest.approx(b)
    stepper.update(1, [1, 0.5, 0.25, 0])
    P = np.full(4, p[0] + p[1])
    P[1] = 1
    np.testing.assert_allclose(stepper.state.Ghat, np.array([0, 0.5, 0.75, 1]) / P)
    assert stepper.state.C[0] == pytest.approx(5 * (math.e - 2) + 2 + (math.e - 2) * ((p / P).sum() - 1))
    assert stepper.distribution()[3] > stepper.p[2] > stepper.p[0]


@pytest.mark.parametrize("seed", range(4))
def test_the_inequalities_of_its_proof_hold_on_every_path(seed):
    """With ghat for the gains, q for the weights and c_t for what C grows by, whatever was drawn:

    max_k sum ghat_k - sum <q, ghat> <= ln K / b_t + (e - 2) sum b <q, ghat^2>; b does not grow, b ghat <= 1, g <= 1/2;
    and sum b_t c_t <= sqrt(2 C_T ln K), with sum b_t g_t c_t <= log2(T + 1) ln K / (2 v).
    """
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 7))
    A = random_digraph(rng, K)
    stepper = Stepper("elp", sl.FeedbackGraph.from_matrix(A))
    s, v = stepper.params.s, stepper.params.v
    gained = spread = first = second = 0.0
    last = math.inf
    for t in range(1, 401):
        p = stepper.distribution().copy()
        b, g, C = stepper.traced("learning_rate"), stepper.traced("exploration_mass"), stepper.state.C[0]
        q, before = (p - g * s) / (1 - g), stepper.state.Ghat.copy()
        losses = (p == p.max()) if seed % 2 else rng.random(K)
        stepper.update(int(rng.choice(K, p=p)), losses)
        ghat = stepper.state.Ghat - before
        assert b <= last
        assert g <= 0.5
        assert (b * ghat <= 1 + 1e-9).all()
        last = b
        gained += q @ ghat
        spread += (math.e - 2) * b * q @ ghat**2
        first += b * (stepper.state.C[0] - C)
        second += b * g * (stepper.state.C[0] - C)
        assert stepper.state.Ghat.max() - gained <= math.log(K) / b + spread + 1e-9
        assert first <= math.sqrt(2 * C * math.log(K)) + 1e-9
        assert second <= math.log2(t + 1) * math.log(K) / (2 * v) + 1e-9
        assert stepper.state.C[0] - C <= (math.e - 2) * naive.maximum_acyclic(A) + 1 / v + 1e-9


def test_a_graph_with_too_many_edges_is_refused():
    with pytest.raises(LearnerError, match=r"for at most 1,000,000 edges, and .* has more"):
        sl.Agent("elp", sl.graphs.nested(1500))
