"""Confidence limits: against closed forms, and how often they miss."""

import numpy as np
import pytest
from scipy import stats

from sidelong.claims.chance import (
    least_mean,
    least_probability,
    mean_fails_from,
    most_probability,
    probability_fails_from,
)
from sidelong.errors import TheoryError


@pytest.mark.interpreted
def test_limits_of_clopper_and_pearson_in_closed_form():
    """Where all or none of n trials hit, the limit solves p^n = risk."""
    for n in (1, 10, 1000):
        assert most_probability(0, n, 0.01) == pytest.approx(1 - 0.01 ** (1 / n), rel=1e-9)
        assert least_probability(n, n, 0.01) == pytest.approx(0.01 ** (1 / n), rel=1e-9)
        assert least_probability(0, n, 0.01) == 0
        assert most_probability(n, n, 0.01) == 1


@pytest.mark.interpreted
def test_limits_of_clopper_and_pearson_are_where_the_binomial_tail_is_the_risk():
    for hits, n in ((3, 20), (50, 100), (1, 5000)):
        assert stats.binom.sf(hits - 1, n, least_probability(hits, n, 1e-4)) == pytest.approx(1e-4, rel=1e-6)
        assert stats.binom.cdf(hits, n, most_probability(hits, n, 1e-4)) == pytest.approx(1e-4, rel=1e-6)


@pytest.mark.interpreted
@pytest.mark.parametrize(("trials", "bound"), [(150, 0.000943), (150, 0.3), (20, 0.99)])
def test_a_check_fails_from_the_first_number_of_hits_whose_limit_is_above_the_bound(trials, bound):
    above = [hits for hits in range(trials + 1) if least_probability(hits, trials, 1e-6) > bound]
    expected = above[0] / trials / bound if above else float("inf")
    assert probability_fails_from(trials, bound, 1e-6) == expected
    assert least_mean(np.full(trials, mean_fails_from(trials, 1e-6)), 1e-6) == pytest.approx(1.0)


@pytest.mark.parametrize("law", ["exponential", "rare", "constant"])
def test_the_limit_for_a_mean_misses_no_more_often_than_it_says(law):
    """With risk 0.1, 2,000 times. More than 290 misses have a chance below 1e-9 if the limit is valid."""
    rng = np.random.default_rng(1)
    draw = {
        "exponential": lambda: rng.exponential(1.0, 30),
        "rare": lambda: 100.0 * (rng.random(30) < 0.01),
        "constant": lambda: np.ones(30),
    }[law]
    misses = sum(least_mean(draw(), 0.1) > 1.0 for _ in range(2000))
    assert misses <= 290
    assert stats.binom.sf(290, 2000, 0.1) < 1e-9


def test_the_limit_for_a_mean_comes_near_to_it():
    rng = np.random.default_rng(2)
    assert 0.8 < least_mean(rng.uniform(0.9, 1.1, 200), 1e-6) < 1.0
    assert least_mean(np.zeros(5), 1e-6) == 0


def test_the_limit_for_a_mean_refuses_what_may_be_negative():
    with pytest.raises(TheoryError, match="not negative, not -1"):
        least_mean(np.array([1.0, -1.0]), 0.1)
