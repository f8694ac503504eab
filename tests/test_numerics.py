"""The numbers are right, and so is what is said of their errors."""

import functools
import itertools
import math
import operator
import time

import mpmath
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sidelong import numerics

pytestmark = pytest.mark.compiled

# The largest errors, in units in the last place of the true value. A search of 7e9 arguments where exp is hardest
# found .7900, and .8320 where the result is subnormal; one of 4e9 arguments of log found .8859.
EXP_ULPS = 0.8
SUBNORMAL_EXP_ULPS = 0.85
LOG_ULPS = 0.9

# The hardest arguments that were found, for these and for other orders of the operations.
HARD_FOR_EXP = [
    "0x1.ed2cbd4557ccep+8",
    "0x1.5138aa4cbeeb5p+8",
    "-0x1.6dfb24b3d30a7p+3",
    "-0x1.05a958f708b97p+8",
    "0x1.229a24a1e6d03p+9",
    "-0x1.3c6babec6cd30p+8",
]
HARD_FOR_SUBNORMAL_EXP = ["-0x1.625f7a7f5f64bp+9", "-0x1.626179b2e9abbp+9", "-0x1.62805433c29c9p+9"]
HARD_FOR_LOG = ["0x1.6a04fcc76dbbbp-1", "0x1.67d0c8112bfa3p-1", "0x1.6994df2c6b893p-1", "0x1.6a00bc3a7a833p+0"]

LARGEST_EXPONENT = float.fromhex("0x1.62e42fefa39efp+9")  # the last x where e**x is finite
SMALLEST_EXPONENT = -745.1332191019411  # the last x where e**x is above half the smallest number

# A right generator fails a test of randomness for one seed in a million; ours are fixed.
FAILURE = 1e-6

probabilities = st.floats(0, 1, exclude_max=True)


def ulps(function, exact, x):
    """Return the error of function(x)."""
    with mpmath.workprec(120):
        truth = exact(mpmath.mpf(x))
        _, exponent = mpmath.frexp(truth)
        unit = mpmath.ldexp(1, max(exponent - 53, -1074))
        return float(abs(mpmath.mpf(float(function(x))) - truth) / unit)


def largest_error(function, exact, arguments):
    return max(ulps(function, exact, float(x)) for x in arguments)


@pytest.mark.interpreted
def test_error_of_exp():
    rng = np.random.default_rng(1)
    whole_range = np.linspace(-708.39, LARGEST_EXPONENT, 4001)
    near_zero = np.exp2(rng.uniform(-1074, 1, 1000)) * rng.choice([-1, 1], 1000)
    between_powers_of_two = math.log(2) * (np.arange(-1021, 1023) + 0.5) * (1 + 1e-6 * rng.uniform(-1, 1, 2044))
    hard = map(float.fromhex, HARD_FOR_EXP)
    for arguments in (whole_range, near_zero, between_powers_of_two, hard):
        assert largest_error(numerics.exp, mpmath.exp, arguments) <= EXP_ULPS


@pytest.mark.interpreted
def test_error_of_exp_where_the_result_is_subnormal():
    arguments = [*np.linspace(-746.0, -708.4, 2001), *map(float.fromhex, HARD_FOR_SUBNORMAL_EXP)]
    assert largest_error(numerics.exp, mpmath.exp, arguments) <= SUBNORMAL_EXP_ULPS


@pytest.mark.interpreted
def test_exp_at_the_ends():
    assert numerics.exp(0.0) == numerics.exp(-0.0) == numerics.exp(5e-324) == 1.0
    assert numerics.exp(SMALLEST_EXPONENT) == 5e-324
    for x in (-745.14, -746.0, -1e6, -1.7e308, -math.inf):
        assert numerics.exp(x) == 0.0
    assert math.isfinite(numerics.exp(LARGEST_EXPONENT))
    with np.errstate(over="ignore"):  # NumPy warns where plain Python runs on its floats
        for x in (math.nextafter(LARGEST_EXPONENT, math.inf), 710.0, 711.0, 1e6, 1.7e308, math.inf):
            assert numerics.exp(x) == math.inf
    assert math.isnan(numerics.exp(math.nan))


@pytest.mark.interpreted
def test_error_of_log():
    rng = np.random.default_rng(2)
    whole_range = np.exp2(np.linspace(-1074, 1023.999, 4001))
    around_one = 1 + np.exp2(rng.uniform(-53, -0.5, 2000)) * rng.choice([-1, 1], 2000)
    integers = np.arange(2, 1000)
    cancellation = rng.uniform(0.69, 0.72, 1000)
    hard = map(float.fromhex, HARD_FOR_LOG)
    for arguments in (whole_range, around_one[around_one != 1], integers, cancellation, hard):
        assert largest_error(numerics.log, mpmath.log, arguments) <= LOG_ULPS


@pytest.mark.interpreted
def test_log_at_the_ends():
    assert numerics.log(1.0) == 0.0
    assert numerics.log(0.0) == numerics.log(-0.0) == -math.inf
    assert numerics.log(math.inf) == math.inf
    for x in (-5e-324, -1.0, -math.inf, math.nan):
        assert math.isnan(numerics.log(x))
    for x in (5e-324, 1.7976931348623157e308):
        assert numerics.log(x) == math.log(x)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("counter_and_key", "expected"),
    [
        # the published ones, of Random123
        ("00000000 00000000 00000000 00000000 00000000 00000000", "5f6fb709 0d893f64 4f121f81 4f730a48"),
        ("ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff", "5207ddc2 45165e59 4d8ee751 8c52f662"),
        ("243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0", "4dfccaba 190a87f0 c47362ba b6b5242a"),
    ],
)
def test_philox_gives_the_published_words(counter_and_key, expected):
    words = numerics.philox(*(np.uint64(int(word, 16)) for word in counter_and_key.split()))
    assert " ".join(f"{int(word):08x}" for word in words) == expected


@pytest.mark.interpreted
def test_uniform_depends_on_every_part_of_every_argument():
    seeds = [np.uint64(seed) for seed in (0, 1, 2**32, 2**63, 2**64 - 1)]
    streams = (numerics.DRAWS, numerics.LOSSES, numerics.SCENES, numerics.GRAPHS, 2**16 - 1)
    runs = (0, 1, 2**32 - 1)
    rounds = (0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**47)
    arms = (0, 1, 2**32 - 1)
    arguments = list(itertools.product(seeds, streams, runs, rounds, arms))
    numbers = {numerics.uniform(*each) for each in arguments}
    assert len(numbers) == len(arguments)
    assert all(0.0 <= u < 1.0 for u in numbers)


# From an implementation of Philox in integers of any size.
@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0, 0, 0, 0, 0), "0x1.7dbedc06c49fap-2"),
        ((np.uint64(2**64 - 1), 0, 7, 2**40 + 5, 9), "0x1.9b88d7db9ee42p-2"),
        ((1, 1, 2, 3, 4), "0x1.36f4eb94c3c2ap-2"),
        ((1, 1, 2, 3, 5), "0x1.8dfcfc072e1a0p-5"),
        ((1, 2, 2, 3, 4), "0x1.226fdcf1da0c0p-1"),
        ((np.uint64(2**64 - 1), 3, 7, 2**40 + 5, 9), "0x1.c84098c88b42cp-3"),
        ((np.uint64(2**64 - 1), 3, 7, 2**40 + 5, 2**32 - 1), "0x1.c007925267ac0p-2"),
        ((3, 4, 5, 6, 0), "0x1.321205bbd0b88p-2"),
    ],
)
def test_uniform_never_changes(arguments, expected):
    assert float(numerics.uniform(*arguments)).hex() == expected


def is_uniform(cells, n_cells):
    observed = np.bincount(cells, minlength=n_cells)
    statistic = float(np.sum((observed - cells.size / n_cells) ** 2) / (cells.size / n_cells))
    tails = stats.chi2.ppf([FAILURE / 2, 1 - FAILURE / 2], n_cells - 1)
    return tails[0] < statistic < tails[1]


STREAMS = {name: getattr(numerics, name) for name in ("DRAWS", "LOSSES", "SCENES", "GRAPHS")}


@pytest.mark.interpreted
@pytest.mark.parametrize("varied", ["seed", "run", "t", "arm"])
@pytest.mark.parametrize("stream", STREAMS)
def test_uniform_is_uniform_along_each_argument(stream, varied):
    fixed = {"seed": 12345, "stream": STREAMS[stream], "run": 6, "t": 789, "arm": 10}
    arguments = ({**fixed, varied: value} for value in range(4097))
    u = np.array([numerics.uniform(*each.values()) for each in arguments])
    assert is_uniform((64 * u).astype(int), 64)
    assert is_uniform((64 * (2**20 * u % 1)).astype(int), 64)  # the lower bits as well
    neighbours = 8 * (8 * u[:-1]).astype(int) + (8 * u[1:]).astype(int)
    assert is_uniform(neighbours, 64)


@pytest.mark.interpreted
@pytest.mark.parametrize("pair", [*itertools.combinations(["seed", "run", "t", "arm"], 2)], ids="-".join)
def test_numbers_of_worlds_are_independent_across_any_two_arguments(pair):
    fixed = {"seed": 987, "stream": numerics.LOSSES, "run": 6, "t": 1000, "arm": 10}
    steps = [[{**fixed, pair[0]: a, pair[1]: b} for b in range(65)] for a in range(65)]
    u = np.array([[numerics.uniform(*each.values()) for each in row] for row in steps])
    # A number beside its neighbours along either argument and along both: triples in 4 x 4 x 4 cells.
    cells = (4 * u).astype(int)
    assert is_uniform((16 * cells[:-1, :-1] + 4 * cells[1:, :-1] + cells[:-1, 1:]).ravel(), 64)
    assert is_uniform((16 * cells[:-1, :-1] + 4 * cells[1:, 1:] + cells[:-1, 1:]).ravel(), 64)
    # Every bit is a fair coin, and differs from its neighbour's as a fair coin does.
    bits = (u[..., None] * 2.0 ** np.arange(1, 54)).astype(np.uint64) & np.uint64(1)
    for coins in (bits, bits[1:] ^ bits[:-1], bits[:, 1:] ^ bits[:, :-1]):
        n, ones = coins.size // 53, coins.reshape(-1, 53).sum(axis=0)
        assert stats.binomtest(int(abs(ones - n / 2).max() + n / 2), n, alternative="greater").pvalue > FAILURE


@pytest.mark.interpreted
@pytest.mark.parametrize("varied", ["seed", "run", "t", "pair"])
def test_the_two_numbers_of_one_block_have_nothing_in_common(varied):
    fixed = {"seed": 543, "stream": numerics.LOSSES, "run": 6, "t": 1000, "pair": 10}
    arguments = [[*{**fixed, varied: value}.values()] for value in range(4097)]
    u = np.array([numerics.uniform_pair(*each) for each in arguments])
    *place, pair = arguments[7]
    assert u[7].tolist() == [numerics.uniform(*place, 2 * pair), numerics.uniform(*place, 2 * pair + 1)]
    for shift in (1, 2**20):  # the upper and the lower bits
        even, odd = (8 * (shift * u.T % 1)).astype(int)
        assert is_uniform(8 * even + odd, 64)
        assert is_uniform(8 * odd[:-1] + even[1:], 64)
        assert is_uniform(8 * even[:-1] + odd[1:], 64)
    bits = (u[..., None] * 2.0 ** np.arange(1, 54)).astype(np.uint64) & np.uint64(1)
    differ = bits[:, 0, :, None] ^ bits[:, 1, None, :]  # each bit of one and each of the other
    n, ones = len(u), differ.reshape(len(u), -1).sum(axis=0, dtype=np.int64)
    farthest = int(abs(ones - n / 2).max() + n / 2)
    assert stats.binomtest(farthest, n, alternative="greater").pvalue > FAILURE / ones.size


@pytest.mark.interpreted
def test_streams_of_one_seed_have_nothing_in_common():
    u = {
        name: np.array([numerics.uniform(5, stream, 0, t, 0) for t in range(4096)]) for name, stream in STREAMS.items()
    }
    for a, b in itertools.combinations(u.values(), 2):
        assert is_uniform(8 * (8 * a).astype(int) + (8 * b).astype(int), 64)


def add_in_the_stated_order(values):
    whole = len(values) - len(values) % 8
    parts = [[*values[i:whole:8]] for i in range(8)]
    parts[0] += values[whole:]
    # Not the built-in sum, which compensates from Python 3.12 on.
    s = [functools.reduce(operator.add, part, 0.0) for part in parts]
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))


@pytest.mark.interpreted
def test_total_adds_in_the_stated_order():
    rng = np.random.default_rng(4)
    for n in [*range(40), 1000, 1001]:
        a = rng.normal(size=n) * np.exp2(rng.uniform(-30, 30, n))
        assert float(numerics.total(a)).hex() == float(add_in_the_stated_order(a.tolist())).hex()


@pytest.mark.interpreted
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 64, 1000, 10_007])
def test_total_is_close_to_the_exact_sum(n):
    a = np.random.default_rng(n).normal(size=n)
    additions = n // 8 + 10  # that one term goes through
    bound = additions * 2.0**-53 * math.fsum(abs(a)) * (1 + 1e-12)
    assert abs(numerics.total(a) - math.fsum(a)) <= bound


@pytest.mark.interpreted
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_smallest(values):
    assert numerics.smallest(np.array(values)) == min(values)


@pytest.mark.interpreted
def test_smallest_looks_everywhere():
    for n in range(1, 14):
        for i in range(n):
            a = np.ones(n)
            a[i] = 0.5
            assert numerics.smallest(a) == 0.5


BLOCKS = [1, 2, 3, 63, 64, 65, 66, 127, 128, 129, 191, 192, 193, 300]  # sample works in blocks of 64


@pytest.mark.interpreted
@pytest.mark.parametrize("n", BLOCKS)
def test_sample_agrees_with_cumulative_sums_where_they_are_exact(n):
    rng = np.random.default_rng(n)
    for sparsity in (0.0, 0.5, 0.99):
        weights = rng.random(n) * (rng.random(n) >= sparsity)
        weights[rng.integers(n)] += 0.01
        p = rng.multinomial(2**20, weights / weights.sum()) / 2**20
        ends = np.cumsum(p)
        for u in {0.0, *ends[:-1], *np.nextafter(ends, 0), *rng.random(20)}:
            if u < 1.0:
                assert numerics.sample(p, u) == np.searchsorted(ends, u, side="right")


@pytest.mark.interpreted
def test_sample_at_the_boundaries():
    p = np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    assert numerics.sample(p, 0.0) == 1
    assert numerics.sample(p, math.nextafter(0.25, 0)) == 1
    assert numerics.sample(p, 0.25) == 3
    assert numerics.sample(p, math.nextafter(0.75, 0)) == 3
    assert numerics.sample(p, 0.75) == 4
    assert numerics.sample(p, math.nextafter(1.0, 0)) == 4


@pytest.mark.interpreted
@pytest.mark.parametrize("zeros", [0, 1, 30, 63, 64, 65, 128, 200])
@pytest.mark.parametrize("n", [10, 63, 64, 65, 128, 129])
def test_sample_takes_the_last_possible_arm_where_the_sum_stays_below(n, zeros):
    p = np.zeros(n + zeros)
    p[:n] = (1 - 1e-12) / n
    assert numerics.sample(p, math.nextafter(1.0, 0)) == n - 1


@pytest.mark.interpreted
@given(
    st.lists(st.sampled_from([0.0, 0.0, 1e-300, 0.1, 1 / 3, 1.0]), min_size=1, max_size=140), probabilities, st.data()
)
def test_sample_is_where_u_falls_and_never_an_impossible_arm(weights, u, data):
    weights[data.draw(st.integers(0, len(weights) - 1))] = 0.7
    p = np.array(weights) / math.fsum(weights)
    # Draw some of the u from where a block ends, up to rounding.
    if data.draw(st.booleans()):
        end = float(np.sum(p[: data.draw(st.integers(0, p.size))]))
        u = min(data.draw(st.sampled_from([math.nextafter(end, 0), end, math.nextafter(end, 2)])), 1 - 2.0**-53)
    arm = numerics.sample(p, u)
    assert p[arm] > 0.0
    assert math.fsum(p[:arm]) <= u + 1e-14
    assert math.fsum(p[: arm + 1]) >= u - 1e-14


@pytest.mark.interpreted
@given(st.lists(st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 0.5, math.inf]), min_size=1, max_size=100), st.data())
def test_reorder_sorts_by_key_and_index(keys, data):
    before = data.draw(st.permutations(range(len(keys))))
    order = np.array(before, dtype=np.uint32)
    moved = numerics.reorder(order, np.array(keys), np.empty_like(order))
    expected = sorted(before, key=lambda i: (keys[i], i))
    assert order.tolist() == expected
    assert bool(moved) == (before != expected)


@pytest.mark.interpreted
@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=60), st.data())
def test_reorder_mends_an_order_that_nearly_holds(keys, data):
    order = np.array(sorted(range(len(keys)), key=lambda i: (keys[i], i)), dtype=np.uint32)
    spare = np.empty_like(order)
    assert not numerics.reorder(order, np.array(keys), spare)
    for _ in range(3):
        changed = data.draw(st.integers(0, len(keys) - 1))
        keys[changed] = data.draw(st.floats(allow_nan=False))
        numerics.reorder(order, np.array(keys), spare)
        assert order.tolist() == sorted(range(len(keys)), key=lambda i: (keys[i], i))


@pytest.mark.interpreted
def test_reorder_of_some_of_the_arms():
    order = np.array([0, 7, 5, 2], dtype=np.uint32)
    assert numerics.reorder(order, np.array([3.0, 9, 1, 9, 9, 1, 9, 0]), np.empty_like(order))
    assert order.tolist() == [7, 2, 5, 0]


@pytest.mark.interpreted
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("n", [63, 64, 65, 66, 500])
def test_reorder_of_many_arms_of_which_some_have_moved(n, share):
    """Some up, some down, some together with their neighbours; with and without equal keys."""
    rng = np.random.default_rng(n)
    for distinct in (3, 20, 10**9):
        key = rng.integers(0, distinct, n).astype(float)
        order = np.lexsort((np.arange(n), key)).astype(np.uint32)
        for _ in range(6):
            moved = rng.random(n) < share
            key[moved] += rng.choice([-1, 1, 5]) * rng.integers(0, distinct, moved.sum()) * rng.choice([0.1, 1.0])
            if share > 0:
                together = rng.integers(n)
                key[order[together : together + 7]] += rng.choice([-1.0, 1.0]) * distinct
            expected = np.lexsort((np.arange(n), key))
            changed = (expected != order).any()
            assert bool(numerics.reorder(order, key, np.empty_like(order))) == changed
            assert order.tolist() == expected.tolist()


# Insertions alone would take a minute.
@pytest.mark.interpreted
@pytest.mark.parametrize("worst", ["reversed", "random"])
def test_reorder_is_fast_at_worst(worst):
    n = 5_000 if numba.config.DISABLE_JIT else 500_000
    key = np.arange(n, 0.0, -1.0) if worst == "reversed" else np.random.default_rng(3).random(n)
    order = np.arange(n, dtype=np.uint32)
    began = time.process_time()
    assert numerics.reorder(order, key, np.empty_like(order))
    assert time.process_time() - began < 5.0
    assert all(order == np.argsort(key, kind="stable"))


@pytest.mark.interpreted
def test_expm1_and_log1p_are_exact_where_exp_and_log_are_not():
    """A few units in the last place, from the smallest numbers on: what a certificate adds up may be that small."""
    small = np.geomspace(1e-300, 0.5, 400)
    for x in (*small, *-small, 0.0, 1.0, 5.0, 30.0):
        assert numerics.expm1(x) == pytest.approx(math.expm1(x), rel=2e-15, abs=0)
        assert numerics.log1p(x) == pytest.approx(math.log1p(x), rel=2e-15, abs=0)
    assert numerics.expm1(-800.0) == -1.0
    assert numerics.log1p(1e140) == pytest.approx(math.log(1e140), rel=1e-15)
