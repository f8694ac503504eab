import math

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import WorldError
from sidelong.losses import (
    bernoulli,
    beta,
    breaker,
    constrained,
    corrupted,
    drifting,
    function,
    lower_bound,
    switching,
    table,
)

STAR = sl.graphs.star(4)
M = [0.2, 0.5]

BAD = [
    (lambda: bernoulli([]), r"means must be a list with one number for each arm; its shape is \(0,\)"),
    (lambda: bernoulli(0.5), r"its shape is \(\)"),
    (lambda: bernoulli([10**400]), r"means must be numbers, not \[1000"),
    (lambda: table([[10**400]]), r"a table must hold numbers: "),
    (lambda: bernoulli([[0.5]]), r"its shape is \(1, 1\)"),
    (lambda: bernoulli([0.5, 1.5]), r"means must lie from 0 to 1; arm 1 has 1\.5\. .*rescale yours"),
    (lambda: bernoulli([-0.1]), r"arm 0 has -0\.1"),
    (lambda: bernoulli([0.5, math.nan]), r"means must be finite numbers; entry \[1\] is nan"),
    (lambda: bernoulli(["x"]), r"means must be numbers, not \['x'\]"),
    (lambda: bernoulli([[0.5], [0.5, 0.5]]), r"means must be numbers"),
    (lambda: bernoulli(None), r"means must be"),
    (lambda: beta([0.5], 0.0), r"concentration must lie from 1e-09 to 1e\+09, not 0\.0"),
    (lambda: beta([0.5], 1e10), r"not 10000000000\.0"),
    (lambda: beta([0.5], math.inf), r"concentration must be finite"),
    (lambda: beta([0.5], [1.0, 2.0]), r"one number, or one for each of the 1 arms; its shape is \(2,\)"),
    (lambda: beta([2.0], 1.0), r"means must lie from 0 to 1"),
    (lambda: constrained(0.2), r"gaps is one number, 0\.2: give n_arms too"),
    (lambda: constrained(0.0, 3), r"gaps must be a number above 0 and at most 1, not 0\.0"),
    (lambda: constrained(1.5, 3), r"not 1\.5"),
    (lambda: constrained(math.nan, 3), r"gaps must be finite"),
    (lambda: constrained(0.2, 1), r"n_arms must be a whole number from 2"),
    (lambda: constrained(0.2, 2.5), r"n_arms must be a whole number .* not 2\.5"),
    (lambda: constrained(0.2, 3, best=3), r"best must be a whole number from 0 to 2, not 3"),
    (lambda: constrained([0.2, 0.3]), r"exactly one 0, for the best arm, and be above 0 elsewhere; 0 are 0"),
    (lambda: constrained([0.0, 0.0, 0.1]), r"2 are 0"),
    (lambda: constrained([0.0, -0.1]), r"gaps\[1\] must be a number above 0 and at most 1, not -0\.1"),
    (lambda: constrained([0.0]), r"two or more arms; its shape is \(1,\)"),
    (lambda: constrained([[0.0, 0.1]]), r"its shape is \(1, 2\)"),
    (lambda: constrained([0.0, 0.1], n_arms=3), r"n_arms is 3, while gaps has 2 numbers: leave n_arms out"),
    (lambda: constrained([0.0, 0.1], best=1), r"best is 1, while the gap of arm 0 is 0: leave best out"),
    (lambda: corrupted(M, -1), r"budget must be a whole number from 0 to 2\*\*48 - 1, not -1"),
    (lambda: corrupted(M, 1.5), r"not 1\.5"),
    (lambda: corrupted(M, True), r"not True"),  # noqa: FBT003  # the mistake that is tested
    (lambda: corrupted(M, 5, "shuffle"), r"attack must be 'flip' or 'swap', not 'shuffle'"),
    (lambda: corrupted([0.5], 5, "swap"), r"exchanges two arms; means has 1"),
    (lambda: switching(M), r"give either at or every, not both or none; at is None and every is None"),
    (lambda: switching(M, at=3, every=3), r"give either at or every"),
    (lambda: switching(M, at=0), r"at\[0\] must be a whole number from 1"),
    (lambda: switching(M, at=[3, 5]), r"at must be 1 ascending rounds.*it is \[3, 5\]"),
    (lambda: switching([M, M, M], at=[5, 5]), r"at must be 2 ascending rounds"),
    (lambda: switching([M, M], at=[]), r"at must be 1 ascending rounds"),
    (lambda: switching([0.5], at=3), r"two or more arms.*shape is \(1,\)"),
    (lambda: switching([M, [0.5, 1.1]], at=3), r"row 1, arm 1 has 1\.1"),
    (lambda: switching(M, every=0), r"every must be a whole number from 1"),
    (lambda: drifting(M, every=0), r"every must be a whole number from 1"),
    (lambda: drifting([M], every=5), r"two or more such lists.*shape is \(1, 2\)"),
    (lambda: lower_bound([[1]], gap=0.1), r"graph must be a FeedbackGraph, not list.*from_matrix"),
    (lambda: lower_bound(STAR), r"give either horizon or gap"),
    (lambda: lower_bound(STAR, horizon=100, gap=0.1), r"give either horizon or gap"),
    (lambda: lower_bound(STAR, gap=0.6), r"gap must be a number above 0 and at most 0\.5, not 0\.6"),
    (lambda: lower_bound(STAR, gap="x"), r"not 'x'"),
    (lambda: lower_bound(STAR, horizon=2), r"horizon must be a whole number from 3"),
    (lambda: lower_bound(STAR, gap=0.1, independent_set=[]), r"one or more different arms, not \[\]"),
    (lambda: lower_bound(STAR, gap=0.1, independent_set=[1, 1]), r"different arms, not \[1, 1\]"),
    (lambda: lower_bound(STAR, gap=0.1, independent_set=[4]), r"whole number from 0 to 3, not 4"),
    (
        lambda: lower_bound(STAR, gap=0.1, independent_set=[1, 0]),
        r"arm 1 reveals arm 0. Leave one of them out",
    ),
    (lambda: breaker(STAR, 0), r"rounds must be a whole number from 1"),
    (lambda: breaker("star", 5), r"graph must be a FeedbackGraph, not str"),
    (lambda: table([]), r"a row for each round and a column for each arm; its shape is \(0,\)"),
    (lambda: table([0.5]), r"its shape is \(1,\)"),
    (lambda: table(np.zeros((0, 3))), r"its shape is \(0, 3\)"),
    (lambda: table([["x"]]), r"a table must hold numbers"),
    (lambda: table([[0.5, 1.5]]), r"round 1, arm 1 has 1\.5"),
    (lambda: function(3, n_arms=2), r"f must be a function of \(seed, run, t, arm\), not 3"),
    (lambda: function(lambda t, arm: 0.5, n_arms=2), r"f must take the four arguments"),  # noqa: ARG005
    (lambda: function(lambda *_: 0.5), r"n_arms is needed"),
    (lambda: function(lambda *_: 0.5, n_arms=0), r"n_arms must be a whole number from 1"),
    (lambda: function(lambda *_: 0.5, M, n_arms=3), r"n_arms is 3, while means has 2 numbers"),
    (lambda: function(lambda *_: 0.5, [1.5]), r"means must lie from 0 to 1"),
    (lambda: function(lambda *_: 0.5, lambda: 0.5, n_arms=2), r"means must take the four arguments"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
@pytest.mark.interpreted
def test_what_no_world_can_be_made_from(make, message):
    with pytest.raises(WorldError, match=f"(?s){message}"):
        make()


def test_a_plain_mean_of_a_compiled_function():
    compiled = sl.losses.compiled(lambda seed, run, t, arm: 0.5)  # noqa: ARG005
    with pytest.raises(WorldError, match="both compiled or both plain"):
        function(compiled, lambda *_: 0.5, n_arms=2)
