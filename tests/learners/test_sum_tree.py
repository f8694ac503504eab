"""The sum tree: right after any history, to the bit, with sums that are as exact as its docstring says."""

import math

import numpy as np
import pytest

from sidelong.learners.sum_tree import first_leaf, locate, new_tree, plant, range_sum, resum

pytestmark = [pytest.mark.interpreted, pytest.mark.compiled]

SIZES = [1, 2, 7, 8, 9, 63, 64, 65, 200, 513]
ROUNDING = 2.0**-53


def planted(leaves):
    tree = new_tree(len(leaves))
    plant(tree, leaves)
    return tree


def wild(rng, n):
    """Numbers from 1e-300 to 1, some of them 0."""
    return rng.random(n) * 10.0 ** rng.integers(-300, 1, n) * (rng.random(n) < 0.9)


def levels(n):
    return math.ceil(math.log(n, 8) - 1e-9) if n > 1 else 0


@pytest.mark.parametrize("n", SIZES)
def test_no_error_builds_up(n):
    """After 2,000 changes the tree has the bits of one that was just planted."""
    rng = np.random.default_rng(n)
    leaves = wild(rng, n)
    tree, base = planted(leaves), first_leaf(n)
    for _ in range(1000):
        low = int(rng.integers(n))
        high = min(n, low + int(rng.integers(1, 4)))
        leaves[low:high] = wild(rng, high - low)
        tree[base + low : base + high] = leaves[low:high]
        resum(tree, base + low, base + high - 1)
    assert tree.tobytes() == planted(leaves).tobytes()


@pytest.mark.parametrize("n", SIZES)
def test_sums_are_exact_to_within_a_few_roundings_a_level(n):
    """Three in a node, and in a range at most seven on each side of each level and 16 at the top."""
    rng = np.random.default_rng(n)
    leaves = wild(rng, n)
    tree, base = planted(leaves), first_leaf(n)
    assert tree[0] == pytest.approx(math.fsum(leaves), rel=3 * levels(n) * ROUNDING, abs=0)
    for _ in range(100):
        low, high = sorted(map(int, rng.integers(0, n + 1, 2)))
        near = (17 * levels(n) + 16) * ROUNDING
        exact = math.fsum(leaves[low:high])
        assert range_sum(tree, base + low, base + high) == pytest.approx(exact, rel=near, abs=0)


@pytest.mark.parametrize("n", SIZES)
def test_a_number_falls_on_the_leaf_that_covers_it(n):
    rng = np.random.default_rng(n)
    leaves, others = rng.random(n), rng.random(n) * (rng.random(n) < 0.5)
    ends = np.cumsum(0.25 * leaves + others)
    tree, other, base = planted(leaves), planted(others), first_leaf(n)
    for u in rng.random(200) * ends[-1]:
        assert locate(tree, other, 0.25, u, base) == np.searchsorted(ends, u, side="right")


@pytest.mark.parametrize("n", SIZES)
def test_a_leaf_without_a_share_is_never_drawn(n):
    """Not even where rounding leaves the sum of all below u."""
    rng = np.random.default_rng(n)
    leaves = wild(rng, n)
    leaves[rng.integers(n)] = 1.0
    tree, none, base = planted(leaves), new_tree(n), first_leaf(n)
    for u in [0.0, *rng.random(100), 1 - 2.0**-53, 1.0, 1.5]:
        assert leaves[locate(tree, none, 1.0 / tree[0], u, base)] > 0
