import numpy as np
import pytest

import sidelong as sl
from learners.stepping import Stepper
from sidelong.learners.weights import weigh
from sidelong.numerics import exp

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("n_arms", [*range(1, 27), 100])
def test_the_weight_of_an_arm_does_not_depend_on_the_vector_that_it_is_in(n_arms):
    L = np.random.default_rng(n_arms).random(n_arms) * 100
    w = np.full(n_arms, np.nan)
    weigh(L, L.min(), 0.3, w)
    assert w.tolist() == [exp(-0.3 * (l - L.min())) for l in L]


BAND = sl.graphs.banded(4, 1)


@pytest.mark.parametrize(
    ("learner", "graph"),
    [("exp3-set", BAND), ("exp3-set", BAND.as_arcs()), ("exp3-set", sl.graphs.nested(4)), ("ito-2022", BAND)],
)
def test_probabilities_that_underflow_leave_theta_finite(learner, graph):
    stepper = Stepper(learner, graph, **({"horizon": 100} if learner == "ito-2022" else {}))
    stepper.state.Lhat[:] = [0, 1e9, 1e9, 1e9]
    assert stepper.distribution().tolist() == [1, 0, 0, 0]
    stepper.update(0, [0.5] * 4)
    assert stepper.traced("theta") == 1
    assert stepper.state.Lhat[0] == 0.5


@pytest.mark.parametrize("loss", [0.0, 1.0])
@pytest.mark.parametrize(("learner", "options"), [("exp3-set", {}), ("ito-2022", {"horizon": 100})])
def test_a_probability_that_rounding_has_lost_is_not_divided_by(learner, options, loss):
    """Arm 5 is played by a miracle. Arms 6 and 7, which it alone reveals, have P = 0 on these intervals."""
    stepper = Stepper(learner, sl.graphs.banded(8, 2), **options)
    stepper.distribution()
    stepper.p[:] = [0.3, 0.6, 0.1, 0, 0, 1e-300, 0, 0]
    assert stepper.graph.observe_probabilities(stepper.p)[7] == 0
    stepper.update(5, [loss] * 8)
    assert stepper.state.Lhat == pytest.approx(np.array([0, 0, 0, 1 / 0.7, 1 / 0.1, 1e300, 1e300, 1e300]) * loss)
