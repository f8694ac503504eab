"""Whether arms come as often as their probabilities say."""

import numpy as np

from sidelong.evaluation import sample_ratio

P = np.array([0.4, 0.3, 0.2, 0.09, 0.008, 0.002])


def test_the_sample_ratio_check_is_calibrated_and_finds_feedback_that_is_lost_for_one_arm():
    """5,000 counts of 500 draws: below 0.01 come 50, give or take 7, and 36 at most too many or too few with 3e-7."""
    rng = np.random.default_rng(8)
    low = sum(sample_ratio(plays, 500 * P) < 0.01 for plays in rng.multinomial(500, P, 5000))
    assert 14 <= low <= 86
    told = (rng.multinomial(5000, P) * [1, 0.7, 1, 1, 1, 1]).astype(int)
    assert sample_ratio(told, told.sum() * P) < 0.001


def test_too_little_is_not_compared():
    assert sample_ratio(np.array([3, 4]), np.array([3.5, 3.5])) is None
    assert sample_ratio(np.array([0, 0]), np.zeros(2)) is None
