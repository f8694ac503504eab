import math

import pytest

from sidelong.errors import TheoryError
from sidelong.theory import squarecb


def test_the_value_of_what_is_played():
    assert squarecb.value(size=4, gamma=10) == 0.5
    assert squarecb.value(size=9, gamma=10, nested_gap=0.9) == pytest.approx((2 + math.log(10)) / 10)
    assert squarecb.value(size=1, gamma=10, nested_gap=0.9) == 0.2


def test_the_regret_is_least_for_the_factor_that_is_named():
    args = {"K": 3, "errors": 5.0, "value_sum": 10_000.0}
    best = squarecb.regret(**args)
    assert best == squarecb.regret(**args, gamma_scale=math.sqrt(8 / 5.0))
    assert best <= math.sqrt(2 * 5 * (4 + 10_000))
    assert best < min(squarecb.regret(**args, gamma_scale=m) for m in (1.0, 1.2, 1.35, 2.0))


def test_what_cannot_be_evaluated():
    with pytest.raises(TheoryError, match="errors must be a finite number above 0"):
        squarecb.regret(K=3, errors=0, value_sum=1)
    with pytest.raises(TheoryError, match="size must be a whole number"):
        squarecb.value(size=0, gamma=1)
