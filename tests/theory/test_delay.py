"""The bounds with late feedback: their formulas, their limits, and the inequalities that they are made of."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelong import theory
from sidelong.errors import TheoryError
from sidelong.theory import delay, rivals
from theory import formulas
from theory.test_formulas import agree

sums = st.floats(0, 1e9)


@given(st.integers(2, 1000), st.floats(1e-9, 10), sums, sums, sums, st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_happened(K, rate, theta, late, exploration, initial, untold):
    found = delay.exp3_set_so_far(K=K, rate=rate, rated_theta=theta, rated_delay=late, untold=untold)
    assert agree(found, formulas.delay_set_so_far(K, rate, theta, late, untold))
    found = delay.exp3_gpp_so_far(
        K=K,
        rate=rate,
        rated_theta=theta,
        rated_delay=late,
        exploration=exploration,
        initial=initial,
        untold=untold,
    )
    assert agree(found, formulas.delay_gpp_so_far(K, rate, theta, late, exploration, initial + untold))


@given(st.integers(2, 1000), st.integers(1, 10**9), st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 10))
def test_the_closed_bounds(K, T, theta, late, m):
    theta_sum, D = theta * K * T, late * T * T / 2
    about = {"K": K, "T": T, "theta_sum": theta_sum, "delay_sum": D, "given_up": 3, "eta_scale": m}
    assert agree(delay.exp3_set_guarded(**about), formulas.delay_set_guarded(K, T, theta_sum, D, 3, m))
    found = delay.exp3_gpp_guarded(**about, exploration=K)
    assert agree(found, formulas.delay_gpp_guarded(K, T, theta_sum, D, 3, m, K))


def test_without_delay_they_are_the_bounds_without_delay():
    found = delay.exp3_set_guarded(K=6, T=1000, theta_sum=3000, delay_sum=0)
    assert found == pytest.approx(rivals.exp3_set(K=6, T=1000, acyclic=3))
    found = delay.exp3_gpp_guarded(K=6, T=1000, theta_sum=3000, delay_sum=0)
    assert found <= theory.theorem_4_theta(K=6, T=1000, theta_sum=3000)  # which has the first Theta outside of the root


@pytest.mark.parametrize("bound", [delay.exp3_set_guarded, delay.exp3_gpp_guarded])
def test_more_delay_promises_less_and_nothing_wrong_is_taken(bound):
    less, more = (bound(K=4, T=1000, theta_sum=2000, delay_sum=D) for D in (100, 200))
    assert less < more
    with pytest.raises(TheoryError, match="delay_sum"):
        bound(K=4, T=1000, theta_sum=2000, delay_sum=-1)
    with pytest.raises(TheoryError, match="K is the number of arms"):
        bound(K=1, T=1000, theta_sum=1, delay_sum=0)


@pytest.mark.parametrize("weights", ["heavy", "small"])
def test_the_lemma_holds_on_every_path(weights):
    """sum <q, x> - X_k <= ln K / eta_T + sum eta_t sum_i q_i x_i (x_i / 2 + m_i), whatever x >= 0 and the delays."""
    rng = np.random.default_rng(5 if weights == "heavy" else 6)
    for _ in range(400):
        K, T = int(rng.integers(2, 7)), int(rng.integers(1, 60))
        x = rng.pareto(0.8, (T, K)) if weights == "heavy" else rng.random((T, K))
        x *= rng.random((T, K)) < rng.uniform(0.1, 1)
        eta = np.minimum.accumulate(10 ** rng.uniform(-3, 1, T))
        due = np.arange(T) + 1 + np.where(rng.random(T) < 0.3, 10**6, rng.integers(0, 20, T))  # some never come
        suffered = right = 0.0
        for t in range(T):
            told = x[:t][due[:t] <= t].sum(axis=0)
            m = x[:t][due[:t] > t].sum(axis=0)
            w = np.exp(-eta[t] * (told - told.min()))
            q = w / w.sum()
            suffered += q @ x[t]
            right += eta[t] * (q * x[t]) @ (x[t] / 2 + m)
        regret, bound = suffered - x.sum(axis=0).min(), math.log(K) / eta[-1] + right
        assert regret <= bound * (1 + 1e-12) + 1e-9
