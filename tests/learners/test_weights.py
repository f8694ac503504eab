import numpy as np
import pytest

from sidelong.learners.weights import weigh
from sidelong.numerics import exp

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("n_arms", [*range(1, 27), 100])
def test_the_weight_of_an_arm_does_not_depend_on_the_vector_that_it_is_in(n_arms):
    L = np.random.default_rng(n_arms).random(n_arms) * 100
    w = np.full(n_arms, np.nan)
    weigh(L, L.min(), 0.3, w)
    assert w.tolist() == [exp(-0.3 * (l - L.min())) for l in L]
