"""What must hold between the statements of the paper, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelong import theory
from sidelong.errors import TheoryError

gaps_lists = st.lists(st.floats(1e-3, 1), min_size=1, max_size=60).map(lambda gaps: [0.0, *gaps])


@given(gaps_lists, st.floats(1, 1e30), st.floats(0, 1))
def test_theorems_3_and_4_hold_as_printed_because_their_constants_leave_room(gaps, T, part):
    """The slip of the proof (E10) makes a term too small, and 81 for 80, or 181 for 180, pays for it."""
    K = len(gaps)
    strong = 1 + int(part * (K - 1))
    W = math.fsum(1 / gap for gap in sorted(gaps)[1 : strong + 1])
    common = {"T": T, "gaps": gaps, "strong_independence": strong}
    printed = theory.theorem_3(**common, inverse_gap_sum=W, as_printed=True)
    assert printed >= theory.theorem_3(**common, inverse_gap_sum=W)
    d = min(gaps[1:])
    room = 320 * K**1.5 / d**2 * math.log(20 * 320**2 * K**2.5 / d**4) ** 2  # from 180 to 181
    lacking = theory.theorem_4_stochastic(**common) - theory.theorem_4_stochastic(**common, as_printed=True)
    assert lacking + 14 * K + 3 <= room


@given(st.integers(2, 500), st.floats(1e-3, 1), st.floats(0, 1), st.floats(320, 1e4))
def test_t_min_is_where_the_two_rates_meet(K, gap, part, beta):
    lambda_ = 1 + part * (K - 1)
    t = theory.t_min(K=K, gap=gap, lambda_=lambda_, beta=beta)
    cap = math.sqrt(lambda_ * math.log(K) / (t * K**2)) / 2
    assert cap == pytest.approx(beta * math.log(t) / (t * gap**2), rel=1e-9)
    for later in (1.01 * t, 2 * t, 100 * t):
        assert math.sqrt(lambda_ * math.log(K) / (later * K**2)) / 2 > beta * math.log(later) / (later * gap**2)
    c = 4 * beta**2 * K**2 / (lambda_ * math.log(K) * gap**4)
    assert t <= theory.proposition_5(c=c)
    assert theory.R_tmin(K=K, gap=gap, strong_independence=lambda_, lambda_=lambda_, beta=beta) <= theory.proposition_6(
        K=K, gap=gap, strong_independence=lambda_, lambda_=lambda_, beta=beta
    )


def test_the_earliest_round_in_which_exploration_leaves_its_cap():
    """The smallest t_min over all K, lambda and gaps: as the benchmark `cap` sees it happen."""
    earliest = min((theory.t_min(K=K, gap=1, lambda_=K), K) for K in range(2, 60))
    assert earliest[1] == 3
    assert earliest[0] == pytest.approx(4.4338e8, rel=1e-4)
    assert f"{theory.t_min(K=10, gap=1, lambda_=10):.1e}" == "7.4e+08"
    assert f"{theory.t_min(K=10, gap=0.1, lambda_=10):.1e}" == "1.6e+13"


def test_t_min_is_0_where_exploration_never_is_at_its_cap():
    assert theory.t_min(K=2, gap=1, lambda_=2, beta=0.01) == 0


def test_t_min_as_the_paper_defines_it_in_whole_numbers():
    """For a beta so small that all t can be tried."""
    for K, gap, beta in ((3, 0.9, 3.0), (5, 1.0, 2.0), (2, 0.7, 2.5)):
        lambda_ = 1.0
        tried = [
            t
            for t in range(2, 200_000)
            if 0.5 * math.sqrt(lambda_ * math.log(K) / (t * K**2)) <= beta * math.log(t) / (t * gap**2)
        ]
        assert max(tried) == math.floor(theory.t_min(K=K, gap=gap, lambda_=lambda_, beta=beta))


def test_the_printed_lemma_2_is_false_and_the_mended_one_is_not():
    for gamma in (2.0, 3.0, 4.0):
        for m in (1, 2, 10, 100):
            total = sum(k**-gamma for k in range(m, 200_000))
            assert total <= theory.lemma_2(gamma=gamma, m=m)
            if gamma < 4:
                assert total > theory.lemma_2(gamma=gamma, m=m, as_printed=True)


def test_the_series_lemmas_hold_for_their_series():
    rng = np.random.default_rng(0)
    for _ in range(50):
        K = int(rng.integers(1, 30))
        a = rng.uniform(1, K, 300) if K > 1 else np.ones(300)
        sums = np.cumsum(a)
        for power in (0.3, 0.5, 0.9):
            assert (a / sums**power).sum() <= theory.lemma_3(total=sums[-1], power=power)
        assert (a / np.sqrt(K + sums - a)).sum() <= theory.lemma_4(total=sums[-1], K=K)
    t = np.arange(1, 10**6)
    for c in (0.05, 0.3, 2.0):
        assert np.exp(-c * np.sqrt(t)).sum() <= theory.lemma_5_root(c=c)
        assert np.exp(-c * t).sum() <= theory.lemma_5_linear(c=c)


def test_lemma_6_bounds_exponential_weights():
    rng = np.random.default_rng(1)
    for _ in range(20):
        K, T = 5, 200
        X = rng.exponential(1, (T, K)) * rng.integers(0, 2, (T, K))
        eta = np.sort(rng.uniform(0.01, 0.5, T))[::-1]
        L, paid, moments = np.zeros(K), 0.0, []
        for t in range(T):
            q = np.exp(-eta[t] * (L - L.min()))
            q /= q.sum()
            paid += q @ X[t]
            moments.append(float(q @ X[t] ** 2))
            L += X[t]
        assert paid - L.min() <= theory.lemma_6(K=K, learning_rates=eta.tolist(), second_moments=moments)


def test_lemma_10_bounds_theta():
    rng = np.random.default_rng(2)
    from sidelong import graphs  # noqa: PLC0415

    for seed in range(30):
        graph = graphs.erdos_renyi(12, 0.3, seed, directed=True)
        p = rng.dirichlet(np.full(12, 0.1)) * 0.9 + 0.1 / 12
        theta = float((p / graph.observe_probabilities(p)).sum())
        alpha = graph.numbers().independence.value
        assert theta <= theory.lemma_10(K=12, independence=alpha, floor=float(p.min()))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: theory.theorem_2(K=1, T=10, strong_independence=1), "with one arm there is nothing to regret"),
        (
            lambda: theory.theorem_2(K=2.5, T=10, strong_independence=1),
            "K must be a whole number of at least 1, not 2.5",
        ),
        (lambda: theory.theorem_2(K=5, T=0, strong_independence=1), "T must be a number from 1 to 1e[+]100, not 0"),
        (lambda: theory.theorem_2(K=5, T=math.nan, strong_independence=1), "T must be a number from 1 to .*, not nan"),
        (lambda: theory.theorem_2(K=5, T=1e200, strong_independence=1), "to 1e[+]100, not 1e[+]200"),
        (
            lambda: theory.theorem_2(K=5, T=10, strong_independence=6),
            "strong_independence must be a number from 1 to 5, not 6",
        ),
        (lambda: theory.theorem_2(K=5, T=True, strong_independence=1), "T must be a number .* not True"),
        (lambda: theory.t_min(K=5, gap=0, lambda_=1), "gap must be a number from 1e-30 to 1, not 0"),
        (lambda: theory.lemma_3(total=1, power=1), "below 1"),
        (lambda: theory.lemma_10(K=3, independence=1, floor=0.5), "floor is below 1/2"),
        (lambda: theory.lemma_6(K=2, learning_rates=[1, 2], second_moments=[0, 0]), "never grow"),
        (lambda: theory.lemma_6(K=2, learning_rates=[1], second_moments=[]), "there are 1 and 0"),
        (lambda: theory.lemma_9(t=100, gap=0.1), "after t_min"),
        (
            lambda: theory.theorem_6(variance=1, largest=1, delta=0),
            "delta must be a number above 0 and at most 1, not 0",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, says):
    with pytest.raises(TheoryError, match=says):
        call()


@pytest.mark.parametrize(
    ("gaps", "says"),
    [
        ([0.1, 0.2], "no gap here is 0"),
        ([0, 0], "all arms are best"),
        ([0, 1.5], "from 0 to 1.*1.5 is not"),
        ([0, -0.1], "-0.1 is not"),
        ([0, math.nan], "nan is not"),
        ([[0, 1]], "their shape is"),
        (["a"], "cannot be read as numbers"),
        ([0, 1e-40], "0 or at least 1e-30"),
    ],
)
def test_gaps_are_those_of_all_arms(gaps, says):
    with pytest.raises(TheoryError, match=says):
        theory.theorem_3(T=10, gaps=gaps, strong_independence=1, inverse_gap_sum=1)


def test_the_leading_sum_is_one_of_inverse_gaps():
    for W in (1.0, 16.0):
        with pytest.raises(TheoryError, match="from that of the smallest gap, 5, to that of all, 15"):
            theory.theorem_3(T=10, gaps=[0, 0.2, 0.2, 0.2], strong_independence=1, inverse_gap_sum=W)


def test_the_strong_independence_numbers_are_those_of_all_rounds():
    with pytest.raises(TheoryError, match="of 9, and T is 10"):
        theory.theorem_4_stochastic(T=10, gaps=[0, 1], strong_independence={1: 9})
    with pytest.raises(TheoryError, match="from 1 to 2, not 3"):
        theory.theorem_4_stochastic(T=10, gaps=[0, 1], strong_independence=3)
