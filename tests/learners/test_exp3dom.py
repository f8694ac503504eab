"""EXP3-DOM against its oracle, closed forms and the inequalities behind its bound."""

import math

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import Stepper, follow, random_digraph
from nightly import share


@pytest.mark.interpreted
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", share(range(3), 2))
def test_agrees_with_the_oracle_in_every_round(seed, late):
    """The dominating sets of the graphs have sizes from 1 to K, so that several learners play, and begin anew."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(4, 9))
    bank = [random_digraph(rng, K) for _ in range(3)] + [np.eye(K, dtype=bool), np.ones((K, K), bool)]
    agent = sl.Agent("exp3-dom", sl.FeedbackGraph.from_matrix(bank[0]), seed=seed)
    oracle = naive.Exp3Dom(K)
    follow(agent, oracle, bank, rounds=500, late=late, seed=seed)
    played = [b for b, learner in oracle.learners.items() if learner["L"].any()]
    assert len(played) >= 2
    assert oracle.begun >= 8


@pytest.mark.interpreted
def test_a_star_by_hand():
    """The hub is the dominating set, so that b = 0; M begins with 2, the first power of two above ln 5."""
    stepper = Stepper("exp3-dom", sl.graphs.star(5, hub=3))
    g = math.sqrt(math.log(5) / 2)
    p = (1 - g) / 5 + g * np.eye(5)[3]
    assert stepper.distribution() == pytest.approx(p)
    assert stepper.traced("exploration_set") == 1
    assert stepper.traced("exploration_mass") == pytest.approx(g)
    P = np.full(5, p[0] + p[3])
    P[3] = 1
    stepper.update(0, [1, 0, 0, 0.5, 0])
    assert stepper.state.Lhat[0] == pytest.approx([1 / P[0], 0, 0, 0.5, 0])
    theta = stepper.traced("theta")
    assert theta == pytest.approx((p / P).sum())
    assert stepper.state.Q[0] == pytest.approx(1 + theta / 2)
    w = np.exp(-g * stepper.state.Lhat[0])
    assert stepper.distribution() == pytest.approx((1 - g) * w / w.sum() + g * np.eye(5)[3])
    stepper.update(3, [0] * 5)  # Q is above 2
    assert stepper.state.M[0] == 4
    assert stepper.state.Q[0] == 0
    assert not stepper.state.Lhat.any()
    assert stepper.distribution() == pytest.approx((1 - g / math.sqrt(2)) / 5 + g / math.sqrt(2) * np.eye(5)[3])


@pytest.mark.interpreted
def test_each_learner_has_rounds_of_its_own():
    stepper = Stepper("exp3-dom", sl.graphs.self_loops(7))
    assert stepper.state.M.tolist() == [2, 4, 8]  # not below 2^b ln 7
    stepper.distribution()
    assert stepper.traced("exploration_mass") == pytest.approx(math.sqrt(4 * math.log(7) / 8))
    stepper.update(2, [1] * 7)
    stepper.graph = sl.graphs.complete(7)
    stepper.distribution()
    assert stepper.traced("exploration_mass") == pytest.approx(math.sqrt(math.log(7) / 2))
    stepper.update(2, [0.5] * 7)
    assert stepper.state.Lhat[2].tolist() == pytest.approx(np.eye(7)[2] * 7)
    assert stepper.state.Lhat[1].tolist() == [0] * 7
    assert stepper.state.Lhat[0].tolist() == pytest.approx([0.5] * 7)


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(4))
def test_the_inequality_of_its_theorem_holds_on_every_path(seed):
    """While a learner's g stands, with lhat for the losses and q for the weights, whatever was drawn:

    sum <q, lhat> - min_k sum lhat_k <= 2^b ln K / g + g / 2^(b+1) sum <q, lhat^2>, and (1 - g) q_i <= p_i.
    """
    rng = np.random.default_rng(seed)
    K = int(rng.integers(3, 8))
    A = random_digraph(rng, K)
    stepper = Stepper("exp3-dom", sl.FeedbackGraph.from_matrix(A))
    R = naive.greedy_dominating_set(A)
    b = int(math.log2(len(R)))
    phases = 0
    suffered = spread = 0.0
    for _ in range(600):
        p = stepper.distribution().copy()
        g, before = stepper.traced("exploration_mass"), stepper.state.Lhat[b].copy()
        assert g <= 1
        q = (p - g * np.isin(np.arange(K), R) / len(R)) / (1 - g)
        arm = int(rng.choice(K, p=p))
        losses = (p == p.max()) if seed % 2 else rng.random(K)
        stepper.update(arm, losses)
        P = naive.observation(p, A)
        lhat = A[arm] * losses / P
        suffered += q @ lhat
        spread += g / 2 ** (b + 1) * q @ lhat**2
        total = before + lhat
        assert suffered - total.min() <= 2**b * math.log(K) / g + spread + 1e-9
        assert (g / len(R) * (1 - 1e-12) <= P).all()
        if not stepper.state.Q[b]:
            assert not stepper.state.Lhat[b].any()
            phases += 1
            suffered = spread = 0.0
        else:
            np.testing.assert_allclose(stepper.state.Lhat[b], total, rtol=1e-9)
    assert phases >= 3
