"""Every bound against its formula, typed again with fifty digits: they agree to 1e-12."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from sidelong import theory
from sidelong.errors import TheoryError
from sidelong.theory import exp3_g, lower, rivals
from theory import formulas

CLOSE = 1e-12


def agree(found, want):
    """Tell whether two numbers agree to 1e-12 of their size."""
    return abs(mpf(found) - want) <= CLOSE * abs(want)


arms = st.integers(2, 3000)
horizons = st.one_of(st.integers(1, 10**7), st.floats(1, 1e18))
positive = st.floats(1e-4, 1)
betas = st.floats(320, 1e5)


@st.composite
def games(draw):
    """Draw K, T, and three numbers in the order of independence, acyclic and strong independence."""
    K = draw(arms)
    numbers = sorted(draw(st.lists(st.integers(1, K), min_size=3, max_size=3)))
    return K, draw(horizons), *numbers


@st.composite
def worlds(draw):
    """Draw the gaps of up to 30 arms with one best arm, and a strong independence number."""
    gaps = draw(st.lists(positive, min_size=1, max_size=29))
    gaps.insert(draw(st.integers(0, len(gaps))), 0.0)
    return gaps, draw(st.integers(1, len(gaps)))


def some_sum(gaps, size):
    """Return a sum of 1 / gap that could be the largest: over the `size` smallest gaps."""
    return math.fsum(1 / gap for gap in sorted(gap for gap in gaps if gap > 0)[:size])


@given(games(), positive, betas, st.floats(1, 1e6))
def test_the_paper_against_any_adversary(game, gap, beta, total):
    K, T, alpha, mas, strong = game
    assert agree(theory.theorem_2(K=K, T=T, strong_independence=strong), formulas.theorem_2(K, T, strong))
    orders = theory.theorem_1(K=K, T=T, strong_independence=strong, inverse_gap_sum=total)
    assert all(map(agree, orders, formulas.theorem_1(K, T, strong, total)))
    found = theory.theorem_4_adversarial(K=K, T=T, independence_sum=alpha * T)
    assert agree(found, formulas.theorem_4_adversarial(K, T, alpha * T))
    found = theory.theorem_4_theta(K=K, T=T, theta_sum=mas * T)
    assert agree(found, formulas.theorem_4_theta(K, T, mas * T))
    found = theory.t_min(K=K, gap=gap, lambda_=strong, beta=beta)
    assert agree(found, formulas.t_min(K, gap, strong, beta))
    found = theory.R_tmin(K=K, gap=gap, strong_independence=mas, lambda_=strong, beta=beta)
    assert agree(found, formulas.theorem_2(K, formulas.t_min(K, gap, strong, beta), mas))
    found = theory.proposition_6(K=K, gap=gap, strong_independence=mas, lambda_=strong, beta=beta)
    assert agree(found, formulas.proposition_6(K, gap, mas, strong, beta))


@given(worlds(), horizons, betas, st.booleans())
def test_the_paper_in_a_stochastic_world(world, T, beta, printed):
    gaps, strong = world
    W = some_sum(gaps, strong)
    arguments = {"T": T, "gaps": gaps, "strong_independence": strong, "beta": beta}
    found = theory.theorem_3(**arguments, inverse_gap_sum=W, as_printed=printed)
    assert agree(found, formulas.theorem_3(T, gaps, strong, W, beta, printed=printed))
    found = theory.proposition_2(**arguments, as_printed=printed)
    assert agree(found, formulas.proposition_2(T, gaps, strong, beta, printed=printed))
    found = theory.proposition_3(K=len(gaps), T=T, strong_independence=strong, inverse_gap_sum=W, beta=beta)
    assert agree(found, formulas.proposition_3(len(gaps), T, strong, W, beta))


@given(worlds(), st.lists(st.integers(1, 30), min_size=1, max_size=40), betas, st.booleans())
def test_theorem_4_tries_every_number_of_rounds_to_strike_out(world, numbers, beta, printed):
    gaps, _ = world
    rounds = {}
    for number in numbers:
        a = min(number, len(gaps))
        rounds[a] = rounds.get(a, 0) + 1
    found = theory.theorem_4_stochastic(
        T=len(numbers), gaps=gaps, strong_independence=rounds, beta=beta, as_printed=printed
    )
    assert agree(found, formulas.theorem_4_stochastic(len(numbers), gaps, rounds, beta, printed=printed))


def test_theorem_4_leaves_out_a_few_dense_rounds():
    """In 10 of a million rounds all arms are strongly independent: better to count these as lost."""
    gaps = [0.0] + [0.5] * 19
    common = {"T": 10**6, "gaps": gaps}
    most = theory.theorem_4_stochastic(strong_independence={1: 10**6 - 10, 20: 10}, **common)
    only = theory.theorem_4_stochastic(strong_independence=1, **common)
    assert most == pytest.approx(only + 10, rel=1e-12)


@given(arms, st.floats(10, 1e15), positive, st.floats(3, 8), st.booleans())
def test_the_lemmas_on_gaps(K, t, gap, gamma, printed):
    beta = 64 * (gamma + 1)
    found = theory.lemma_1_upper(K=K, t=t, gamma=gamma, as_printed=printed)
    assert agree(found, formulas.lemma_1_upper(K, t, gamma, printed=printed))
    assert agree(theory.lemma_8(K=K, t=t, gamma=gamma), formulas.lemma_1_upper(K, t, gamma, printed=True))
    found = theory.o_t(K=K, t=t, gap_estimate=gap, lambda_=K, beta=beta)
    assert agree(found, formulas.o_t(K, t, gap, K, beta))
    assert agree(theory.o_t(K=K, t=t, gap_estimate=0, lambda_=1), formulas.o_t(K, t, 0, 1, 320))
    found = theory.proposition_7(K=K, t=t, gap=gap, learning_rate=1 / t, lambda_=K, beta=beta + 320)
    assert agree(found, formulas.proposition_7(K, t, gap, 1 / t, K, beta + 320))
    if t * gap**2 < 1.0001 * math.log(t):
        return
    found = theory.lemma_9(t=t, gap=gap, gamma=gamma, as_printed=printed)
    assert agree(found, formulas.lemma_9(t, gap, gamma, printed=printed))
    found = theory.lemma_1_lower(K=K, t=t, gap=gap, gamma=gamma, beta=beta, as_printed=printed)
    assert agree(found, formulas.lemma_1_lower(K, t, gap, gamma, beta, printed=printed))


@given(st.floats(2, 9), st.floats(1, 1e9), st.floats(0.01, 0.99), st.floats(7.5, 1e30), st.booleans())
def test_series_and_inequalities(gamma, m, part, c, printed):
    found = theory.lemma_2(gamma=gamma, m=m, as_printed=printed)
    assert agree(found, formulas.lemma_2(gamma, m, printed=printed))
    assert agree(theory.lemma_3(total=m, power=part), mpf(m) ** (1 - mpf(part)) / (1 - mpf(part)))
    assert agree(theory.lemma_4(total=m, K=gamma), 2 * mpf(m) ** 0.5 + mpf(gamma) ** 0.5)
    assert agree(theory.lemma_5_root(c=c), 2 / mpf(c) ** 2)
    assert agree(theory.lemma_5_linear(c=c), 1 / mpf(c))
    found = theory.lemma_10(K=100, independence=gamma, floor=part / 2)
    assert agree(found, formulas.lemma_10(100, gamma, part / 2))
    assert agree(theory.proposition_5(c=c), formulas.proposition_5(c))
    assert agree(theory.theorem_5(n=int(m) % 1000 + 1, rate=part), formulas.theorem_5(int(m) % 1000 + 1, part))
    assert agree(theory.theorem_6(variance=m, largest=gamma, delta=part), formulas.theorem_6(m, gamma, part))


@given(games(), st.floats(0, 1))
def test_the_rivals_against_any_adversary(game, part):
    K, T, alpha, mas, strong = game
    spread = 1 + part * (alpha - 1)
    pairs = (
        (rivals.exp3(K=K, T=T), formulas.exp3(K, T)),
        (rivals.exp3_plus_plus(K=K, T=T), 2 * formulas.exp3(K, T)),
        (rivals.exp3_set(K=K, T=T, acyclic=mas), formulas.exp3_set(K, T, mas)),
        (rivals.exp3_dom(K=K, T=T, cover=alpha, acyclic=mas), formulas.exp3_dom(K, T, alpha, mas)),
        (rivals.exp3_g(K=K, T=T, independence=alpha, acyclic=mas), formulas.exp3_g(K, T, alpha, mas)),
        (rivals.exp3_ix(K=K, T=T, independence=alpha), formulas.exp3_ix(K, T, alpha)),
        (rivals.elp(K=K, T=T, acyclic=mas, fractional_domination=spread), formulas.elp(K, T, mas, spread)),
        (rivals.hedge(K=K, T=T), formulas.hedge(K, T)),
        (rivals.tsallis_inf(K=K, T=T), formulas.tsallis_inf(K, T)),
        (rivals.tsallis_inf_rv(K=K, T=T), formulas.tsallis_inf_rv(K, T, printed=False)),
        (rivals.tsallis_inf_rv(K=K, T=T, as_printed=True), formulas.tsallis_inf_rv(K, T, printed=True)),
        (rivals.ito_2022(K=K, T=T, strong_independence=strong), formulas.ito_2022(K, T, strong)),
        (rivals.spm_2024(K=K, T=T, independence=alpha), formulas.spm_2024(K, T, alpha)),
        (rivals.q_tsallis(K=K, T=T, independence=alpha), formulas.q_tsallis(K, T, alpha)),
        (theory.theorem_4_epochs(K=K, T=T, theta_sum=mas * T, growth=part), formulas.epochs(K, T, mas, part, K)),
        *(
            (
                theory.theorem_4_epochs(K=K, T=T, theta_sum=mas * T, growth=part, initial=initial),
                formulas.epochs(K, T, mas, part, initial),
            )
            for initial in (0, 1, alpha)
        ),
        (rivals.uniform(K=K, T=T), mpf(T) * (K - 1) / K),
    )
    for number, (found, want) in enumerate(pairs):
        assert agree(found, want), number


@given(games(), st.booleans())
def test_exp3_g_without_a_horizon(game, all_loops):
    K, T, alpha, mas, d = game
    for numbers in ((d, mas, alpha), (0, mas, alpha), (d, 0, 0)):
        about = dict(zip(("domination", "acyclic", "independence"), numbers, strict=True))
        found = exp3_g.adaptive(K=K, T=T, **about, all_loops=all_loops)
        assert agree(found, formulas.exp3_g_adaptive(K, T, *numbers, all_loops))
    with pytest.raises(TheoryError, match=r"both 0 or neither; they are 1 and 0"):
        exp3_g.adaptive(K=K, T=T, domination=d, acyclic=1, independence=0)


@given(games(), st.floats(1e-9, 1), st.floats(1e-9, 0.5))
def test_the_rivals_with_high_probability(game, failure, delta):
    K, T, alpha, d, _ = game
    found = rivals.luo_2023(K=K, T=T, independence=alpha, failure=failure, delta=delta)
    assert agree(found, formulas.luo_2023(K, T, alpha, failure, delta))
    for a in (0, alpha):
        found = rivals.luo_2023_weak(K=K, T=T, domination=d, loop_independence=a, failure=failure, delta=delta)
        assert agree(found, formulas.luo_2023_weak(K, T, d, a, failure, delta))


@given(worlds(), horizons, st.data())
def test_the_rivals_in_a_stochastic_world(world, T, data):
    gaps, strong = world
    groups = data.draw(st.lists(st.integers(-3, 5), min_size=len(gaps), max_size=len(gaps)))
    found = rivals.ucb_n_stochastic(T=T, gaps=gaps, groups=groups)
    assert agree(found, formulas.ucb_n_stochastic(T, gaps, groups))
    assert agree(rivals.hedge_stochastic(gaps=gaps), formulas.hedge_stochastic(gaps))
    assert agree(rivals.tsallis_inf_rv_stochastic(T=T, gaps=gaps), formulas.tsallis_inf_rv_stochastic(T, gaps))
    found = rivals.ito_2022_stochastic(T=T, gaps=gaps, strong_independence=strong)
    assert agree(found, formulas.ito_2022_stochastic(T, gaps, strong))
    found = rivals.spm_2024_stochastic(T=T, gaps=gaps, independence=strong)
    assert agree(found, formulas.spm_2024_stochastic(T, gaps, strong))
    assert agree(rivals.uniform_stochastic(T=T, gaps=gaps), mpf(T) * sum(map(mpf, gaps)) / len(gaps))


@given(games(), positive, st.floats(0, 1e6))
def test_the_theorems_of_glance(game, gap, corruption):
    K, T, revealed, mas, first = game
    graph = {"acyclic": mas, "revealed": revealed, "first": first}
    found = theory.glance.adversarial(K=K, T=T, **graph)
    assert agree(found, formulas.glance_adversarial(K, T, mas, revealed, first))
    found = theory.glance.stochastic(K=K, T=T, gap=gap, corruption=corruption, **graph)
    assert agree(found, formulas.glance_stochastic(K, T, gap, mas, revealed, first, corruption))


@given(st.floats(0, 1), st.floats(0.001, 0.999), st.floats(-1e-3, 1e-3))
def test_the_relative_entropy_also_of_means_that_are_close(p, q, difference):
    assert agree(lower.relative_entropy(p, q), formulas.relative_entropy(p, q)) or abs(p - q) < 1e-9
    near = min(1.0, max(0.0, q + difference))
    if abs(near - q) > 1e-6:
        # 1 - p is rounded to a float, which shifts it by up to 1e-16 beside a difference of 1e-6
        assert abs(lower.relative_entropy(near, q) / formulas.relative_entropy(near, q) - 1) < 1e-9
