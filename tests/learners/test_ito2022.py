"""Ito, Tsuchiya and Honda's learner against its oracle, closed forms and the inequalities behind its bound."""

import math

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import Stepper, random_digraph
from sidelong.learners import ito2022


@pytest.mark.interpreted
def test_the_constants():
    params = ito2022.configure(sl.graphs.cycle(7), horizon=1000)
    assert params.c == pytest.approx(0.5 * math.sqrt(3 * (1 + math.log(1000)) / math.log(7)))
    assert params.beta_1 == params.c
    params = ito2022.configure(sl.graphs.cycle(7), horizon=1, strong_independence=1)
    assert (params.c, params.beta_1) == (pytest.approx(0.5 / math.sqrt(math.log(7))), 1.0)


@pytest.mark.interpreted
def test_two_rounds_by_hand():
    stepper = Stepper("ito-2022", sl.graphs.complete(2), horizon=math.e, strong_independence=2)
    c = 0.5 * math.sqrt(2 * 2 / math.log(2))
    assert stepper.distribution() == pytest.approx([0.5, 0.5])
    assert stepper.traced("entropy") == pytest.approx(math.log(2))
    assert stepper.traced("learning_rate") == pytest.approx(1 / c)
    stepper.update(0, [1, 0])
    assert stepper.traced("theta") == pytest.approx(1)
    beta = c + c / math.sqrt(2)  # B = H = ln K
    p = stepper.distribution()
    assert p == pytest.approx([1 / (1 + math.exp(1 / beta)), 1 / (1 + math.exp(-1 / beta))])
    assert stepper.traced("entropy") == pytest.approx(-p @ np.log(p))
    stepper.update(1, [1, 0])
    assert stepper.state.beta[0] == pytest.approx(beta + c / math.sqrt(2 - p @ np.log(p) / math.log(2)))


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(4))
def test_the_inequalities_of_its_proof_hold_on_every_path(seed):
    """With lhat for the losses, whatever was drawn:

    sum <p, lhat> - min_k sum lhat_k <= sum <p, lhat^2> / (2 beta_t) + sum (beta_{t+1} - beta_t) H_{t+1} + beta_1 ln K;
    and with B = sum H, both sum Z / (2 beta_t) and the second sum on the right are
    at most sqrt(Z (1 + ln T) (ln K + B)).
    """
    rng = np.random.default_rng(seed)
    K, T = int(rng.integers(2, 7)), 400
    A = random_digraph(rng, K)
    Z = naive.strong_independence(A)
    stepper = Stepper("ito-2022", sl.FeedbackGraph.from_matrix(A), horizon=T)
    suffered = spread = penalty = stability = B = last = 0.0
    for _ in range(T):
        p = stepper.distribution().copy()
        beta, H = 1 / stepper.traced("learning_rate"), stepper.traced("entropy")
        penalty += (beta - last) * H  # from beta_1 ln K on
        last, before = beta, stepper.state.Lhat.copy()
        losses = (p == p.max()) if seed % 2 else rng.random(K)
        stepper.update(int(rng.choice(K, p=p)), losses)
        lhat = stepper.state.Lhat - before
        suffered += p @ lhat
        spread += p @ lhat**2 / (2 * beta)
        stability += Z / (2 * beta)
        B += H
        assert suffered - stepper.state.Lhat.min() <= spread + penalty + 1e-9
        assert 1 - 1e-12 <= stepper.traced("theta") <= Z + 1e-12
        most = math.sqrt(Z * (1 + math.log(T)) * (math.log(K) + B))
        assert stability <= most
        assert penalty - stepper.params.beta_1 * math.log(K) <= most


def test_the_strong_independence_number_is_given_or_computed():
    graph = sl.graphs.transitive_tournament(5)
    computed = ito2022.configure(graph, horizon=100)
    assert computed == ito2022.configure(graph, horizon=100, strong_independence=5)
    assert computed.c > ito2022.configure(graph, horizon=100, strong_independence=1).c
