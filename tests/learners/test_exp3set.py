"""EXP3-SET against its oracle, closed forms and the inequalities behind its bound."""

import math

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import Stepper, random_digraph


@pytest.mark.interpreted
def test_a_path_by_hand():
    stepper = Stepper("exp3-set", sl.graphs.path(3))
    assert stepper.distribution() == pytest.approx([1 / 3] * 3)
    assert stepper.traced("learning_rate") == pytest.approx(math.sqrt(math.log(3) / 3))
    stepper.update(0, [1, 0.5, 1])
    assert stepper.state.Lhat == pytest.approx([1.5, 0.5, 0])  # P = (2/3, 1, 2/3)
    assert stepper.traced("theta") == pytest.approx(4 / 3)
    p = stepper.distribution()
    eta = math.sqrt(math.log(3) / (3 + 4 / 3))
    assert stepper.traced("learning_rate") == pytest.approx(eta)
    assert p / p[2] == pytest.approx([math.exp(-1.5 * eta), math.exp(-0.5 * eta), 1])


@pytest.mark.interpreted
def test_on_self_loops_it_is_exp3_bit_for_bit():
    a, b = Stepper("exp3-set", sl.graphs.self_loops(6)), Stepper("exp3", sl.graphs.self_loops(6))
    rng = np.random.default_rng(1)
    for _ in range(300):
        assert a.distribution().tolist() == b.distribution().tolist()
        arm, losses = int(rng.choice(6, p=a.p)), rng.random(6)
        a.update(arm, losses)
        b.update(arm, losses)
        assert a.traced("theta") == 6


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(6))
def test_the_inequalities_of_its_proof_hold_on_every_path(seed):
    """With lhat for the losses, for every t and whatever was drawn:

    sum <p, lhat> - min_k sum lhat_k <= ln K / eta_t + sum (eta / 2) <p, lhat^2>, and 1 <= theta <= mas.
    """
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 7))
    A = random_digraph(rng, K)
    mas = naive.maximum_acyclic(A)
    stepper = Stepper("exp3-set", sl.FeedbackGraph.from_matrix(A))
    suffered = spread = 0.0
    for t in range(1, 401):
        p = stepper.distribution().copy()
        eta, before = stepper.traced("learning_rate"), stepper.state.Lhat.copy()
        # The loss is 1 where it hurts most, or anything.
        losses = (p == p.max()) if seed % 2 else rng.random(K)
        stepper.update(int(rng.choice(K, p=p)), losses)
        lhat = stepper.state.Lhat - before
        suffered += p @ lhat
        spread += eta / 2 * p @ lhat**2
        assert suffered - stepper.state.Lhat.min() <= math.log(K) / eta + spread + 1e-9
        assert 1 - 1e-12 <= stepper.traced("theta") <= mas + 1e-12
        assert stepper.state.Theta[0] <= K + t * mas + 1e-9


@pytest.mark.interpreted
@pytest.mark.parametrize("graph", [sl.graphs.banded(4, 1), sl.graphs.banded(4, 1).as_arcs(), sl.graphs.nested(4)])
def test_probabilities_that_underflow_leave_theta_finite(graph):
    stepper = Stepper("exp3-set", graph)
    stepper.state.Lhat[:] = [0, 1e9, 1e9, 1e9]
    assert stepper.distribution().tolist() == [1, 0, 0, 0]
    stepper.update(0, [0.5] * 4)
    assert stepper.traced("theta") == 1
    assert stepper.state.Lhat[0] == 0.5


@pytest.mark.interpreted
@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_a_probability_that_rounding_has_lost_is_not_divided_by(loss):
    """Arm 5 is played by a miracle. Arms 6 and 7, which it alone reveals, have P = 0 on these intervals."""
    stepper = Stepper("exp3-set", sl.graphs.banded(8, 2))
    stepper.distribution()
    stepper.p[:] = [0.3, 0.6, 0.1, 0, 0, 1e-300, 0, 0]
    assert stepper.graph.observe_probabilities(stepper.p)[7] == 0
    stepper.update(5, [loss] * 8)
    assert stepper.state.Lhat == pytest.approx(np.array([0, 0, 0, 1 / 0.7, 1 / 0.1, 1e300, 1e300, 1e300]) * loss)


def test_the_graph_may_be_shown_after_the_draw():
    """Theta is that of the graph that was shown: 1 on the complete graph, 4 on self-loops."""
    sequence = sl.graphs.alternating([sl.graphs.complete(4), sl.graphs.self_loops(4)], shown="after")
    world = sl.losses.bernoulli([0.2, 0.5, 0.5, 0.5])
    result = sl.simulate("exp3-set", sequence, world, rounds=1000, checkpoints=[1000])
    assert result.traces["theta"][0, 0] == pytest.approx((1 + 4) / 2)
