"""EXP3-SET against its oracle, closed forms and the inequalities behind its bound."""

import math

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import Stepper, play_alike, random_digraph


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
    play_alike(a, b, rounds=300)
    assert a.state.Theta[0] == 6 + 300 * 6  # theta is 6 in each round


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


def test_the_graph_may_be_shown_after_the_draw():
    """Theta is that of the graph that was shown: 1 on the complete graph, 4 on self-loops."""
    sequence = sl.graphs.alternating([sl.graphs.complete(4), sl.graphs.self_loops(4)], shown="after")
    world = sl.losses.bernoulli([0.2, 0.5, 0.5, 0.5])
    result = sl.simulate("exp3-set", sequence, world, rounds=1000, checkpoints=[1000])
    assert result.traces["theta"][0, 0] == pytest.approx((1 + 4) / 2)
