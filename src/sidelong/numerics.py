"""Numbers that are the same everywhere: exp, log, sums, draws, orders and counter-based random numbers.

Everything here is additions, multiplications, divisions, comparisons and bit operations in IEEE 754 double
precision, in one fixed order. No call goes to the C library, whose exp and log differ between machines. So each
function gives the same bits on every machine, compiled or not. `tests/test_numerics.py` states the errors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sidelong._jit import kernel, rare_kernel

#: A whole number as kernels take it: NumPy's scalars keep their width, where a plain one would be guessed.
Whole = int | np.integer[Any]

_LOG2_E = 1.4426950408889634
# ln 2 in two parts: the first has 21 trailing zero bits, so that its product with an exponent is exact.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# Adding 1.5 * 2**52 rounds to an integer, and leaves that integer in the low bits.
_ROUND = 6755399441055744.0
_BITS_ROUND = np.float64(_ROUND).view(np.int64)
_BIAS = np.int64(1023)
_MANTISSA = np.int64(52)
_BITS_HALF_SQRT2 = np.float64(0.7071067811865476).view(np.int64)
_SMALLEST_NORMAL = 2.2250738585072014e-308
_2_TO_54 = 18014398509481984.0
_ALL_BUT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


@kernel
def to_bits(x: float) -> Whole:
    """Return the bits of a number as a whole number: those of numbers from 0 on are in order, and others below 0."""
    return np.float64(x).view(np.int64)


@kernel
def from_bits(bits: Whole) -> float:
    """Return the number that has these bits."""
    return np.int64(bits).view(np.float64)


@kernel
def ordered_bits(bits: Whole) -> Whole:
    """Turn over the bits of a number below 0, all but the sign, or turn them back: so those of all are in order."""
    return np.int64(bits ^ ((bits >> np.int64(63)) & _ALL_BUT_SIGN))


@kernel
def ordered(x: float) -> Whole:
    """Return a whole number for each number, in the same order. The least of whole numbers is found in vectors."""
    return ordered_bits(to_bits(x))


@kernel
def _power_of_two(k: Whole) -> float:
    """Return 2**k for -1022 <= k <= 1023. Of k only the last twelve bits count."""
    return from_bits((k + _BIAS) << _MANTISSA)


@kernel
def exp(x: float) -> float:
    """Return e**x, within one unit in the last place."""
    x = min(max(x, -746.0), 710.0)
    rounded = x * _LOG2_E + _ROUND
    k = rounded - _ROUND
    high = x - k * _LN2_HIGH
    low = k * _LN2_LOW
    r = high - low  # |r| <= ln(2) / 2
    # 1/2! + r/3! + ... + r**11/13!, in pairs: the chain of operations that wait for each other is short.
    r2 = r * r
    r4 = r2 * r2
    a = (0.5 + r * (1.0 / 6.0)) + r2 * (1.0 / 24.0 + r * (1.0 / 120.0))
    b = (1.0 / 720.0 + r * (1.0 / 5040.0)) + r2 * (1.0 / 40320.0 + r * (1.0 / 362880.0))
    c = (1.0 / 3628800.0 + r * (1.0 / 39916800.0)) + r2 * (1.0 / 479001600.0 + r * (1.0 / 6227020800.0))
    near = 1.0 + r
    lost = ((1.0 - near) + r) + ((high - r) - low)  # by the two roundings in it
    mantissa = near + (lost + r2 * ((a + r4 * b) + (r4 * r4) * c))
    # Two steps, so that 2**k may leave the range of normal numbers while each step does not.
    bits = to_bits(rounded)  # k, and far above it bits of _ROUND
    half = bits >> np.int64(1)
    return mantissa * _power_of_two(half) * _power_of_two(bits - half)


@kernel
def log(x: float) -> float:
    """Return the natural logarithm, within one unit in the last place."""
    if not 0.0 < x < math.inf:
        return x if x > 0.0 else (-math.inf if x == 0.0 else math.nan)
    lift = 0.0
    if x < _SMALLEST_NORMAL:
        x *= _2_TO_54
        lift = 54.0
    return _log(x, lift)


@kernel
def log_normal(x: float) -> float:
    """Return the natural logarithm of a number that is normal, positive and finite, in a loop that is to vectorise."""
    return _log(x, 0.0)


@kernel
def _log(x: float, lift: float) -> float:
    """Return ln x - lift ln 2."""
    # x = 2**e m with m from sqrt(1/2) to sqrt(2), by its bits: taking off those of sqrt(1/2) carries into the exponent
    # where m would be less.
    bits = to_bits(x)
    exponent = (bits - _BITS_HALF_SQRT2) >> _MANTISSA
    m = from_bits(bits - (exponent << _MANTISSA))
    # The whole number as a double, by adding it to the low bits of one: a conversion would not vectorise.
    e = (from_bits(exponent + _BITS_ROUND) - _ROUND) - lift
    f = m - 1.0
    s = f / (2.0 + f)  # ln(1 + f) = 2 artanh(s) = 2 s + 2/3 s**3 + ...
    z = s * s  # <= 0.0295
    z2 = z * z
    z4 = z2 * z2
    a = (2.0 / 3.0 + z * (2.0 / 5.0)) + z2 * (2.0 / 7.0 + z * (2.0 / 9.0))
    b = (2.0 / 11.0 + z * (2.0 / 13.0)) + z2 * (2.0 / 15.0 + z * (2.0 / 17.0))
    c = (2.0 / 19.0 + z * (2.0 / 21.0)) + z2 * (2.0 / 23.0 + z * (2.0 / 25.0))
    r = z * ((a + z4 * b) + (z4 * z4) * c)
    # 2 s = f - s f, and s f = f**2/2 - s f**2/2: the large part f stays free of rounding.
    half = 0.5 * f * f
    return e * _LN2_HIGH - ((half - (s * (half + r) + e * _LN2_LOW)) - f)


@kernel
def expm1(x: float) -> float:
    """Return e**x - 1, within a few units in the last place also where that is small (Kahan's device)."""
    u = exp(x)
    if u == 1.0:
        return x
    less = u - 1.0
    if less == -1.0:
        return -1.0
    return less if u > 1e16 else less * x / log(u)


@kernel
def log1p(x: float) -> float:
    """Return ln(1 + x), within a few units in the last place also where x is small (Kahan's device)."""
    u = 1.0 + x
    if u == 1.0:
        return x
    return log(u) if u > 1e16 else log(u) * x / (u - 1.0)


@kernel
def total(a: np.ndarray) -> float:
    """Return the sum, in eight interleaved parts: a fixed order that fills the vector registers."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    whole = a.size - a.size % 8
    for i in range(0, whole, 8):
        s0 += a[i]
        s1 += a[i + 1]
        s2 += a[i + 2]
        s3 += a[i + 3]
        s4 += a[i + 4]
        s5 += a[i + 5]
        s6 += a[i + 6]
        s7 += a[i + 7]
    for i in range(whole, a.size):
        s0 += a[i]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@kernel
def smallest(a: np.ndarray) -> float:
    """Return the smallest element."""
    least = ordered(a[0])
    for i in range(a.size):
        least = min(least, ordered(a[i]))
    return from_bits(ordered_bits(least))


@kernel
def sample(p: np.ndarray, u: float) -> int:
    """Return the arm on which `u` in [0, 1) falls when the probabilities `p` are laid end to end.

    Never an arm of probability 0, even where rounding leaves the sum of p below u.
    """
    below = 0.0
    first = 0
    # Skip blocks by their sums, which are quick to form, and walk through the last one.
    while first + 64 < p.size:
        block = total(p[first : first + 64])
        if below + block > u:
            break
        below += block
        first += 64
    for i in range(first, p.size):
        below += p[np.uint64(i)]
        if below > u:  # for the first time, so that p[i] is not 0
            return i
    last = p.size - 1
    while last > 0 and p[last] == 0.0:
        last -= 1
    return last


@kernel
def _precedes(key: np.ndarray, a: int, b: int) -> bool:
    return key[a] < key[b] or (key[a] == key[b] and a < b)


@kernel
def reorder(order: np.ndarray, key: np.ndarray, spare: np.ndarray) -> bool:
    """Sort the arms in `order`, at least one, by key, equal ones by index; return whether anything moved.

    Arms are unsigned, as is `spare`: a signed index might count from the end, and would be checked for that.

    One pass over an order that still holds. Else few arms are inserted where they belong; of many, those that still
    follow each other stay, the others are sorted by themselves, and both are merged.
    """
    n = order.size
    k = 1
    before = order[0]
    lowest = key[before]
    while k < n:
        arm = order[k]
        if key[arm] < lowest or (key[arm] == lowest and arm < before):
            break
        before = arm
        lowest = key[arm]
        k += 1
    if k == n:
        return False
    if n > _FEW:
        _mend(order, key, spare, k)
        return True
    while k < n:
        arm = order[k]
        j = k
        while j > 0 and _precedes(key, arm, order[j - 1]):
            order[j] = order[j - 1]
            j -= 1
        order[j] = arm
        k += 1
    return True


_FEW = 64


@rare_kernel
def _mend(order: np.ndarray, key: np.ndarray, spare: np.ndarray, k: Whole) -> None:
    """Sort, where the first k arms are in order."""
    kept = _split(order, key, spare, k)
    moved, free = spare[: order.size - kept], order[kept:]
    # Those that moved have mostly done so together, and follow each other still.
    kept_again = _split(moved, key, free, np.int64(1))
    rest = free[: moved.size - kept_again]
    _merge_sort(rest, key, moved[kept_again:])
    _merge(moved, key, kept_again, rest)
    _merge(order, key, kept, moved)


@kernel
def _split(order: np.ndarray, key: np.ndarray, moved: np.ndarray, k: Whole) -> Whole:
    """Leave arms that follow each other, with the first k, and write the others into `moved`; return how many stay."""
    kept: Any = k
    out = 0
    for j in range(k, order.size):
        arm = order[j]
        last = order[kept - 1]
        if not _precedes(key, arm, last):
            order[kept] = arm
            kept += 1
        elif kept == 1 or not _precedes(key, arm, order[kept - 2]):  # it is the last one that does not fit
            moved[out] = last
            order[kept - 1] = arm
            out += 1
        else:
            moved[out] = arm
            out += 1
    return kept  # type: ignore[no-any-return]


@kernel
def _merge(order: np.ndarray, key: np.ndarray, kept: Whole, others: np.ndarray) -> None:
    """Merge the first arms of an order with others, which are sorted too, from behind."""
    a: Any = kept
    b = others.size
    j = order.size
    while b > 0:
        j -= 1
        if a > 0 and _precedes(key, others[b - 1], order[a - 1]):
            a -= 1
            order[j] = order[a]
        else:
            b -= 1
            order[j] = others[b]


@rare_kernel
def _merge_sort(order: np.ndarray, key: np.ndarray, spare: np.ndarray) -> None:
    n = order.size
    width = 1
    while width < n:
        for left in range(0, n, 2 * width):
            middle = min(left + width, n)
            right = min(left + 2 * width, n)
            a = left
            b = middle
            for k in range(left, right):
                if b >= right or (a < middle and _precedes(key, order[a], order[b])):
                    spare[k] = order[a]
                    a += 1
                else:
                    spare[k] = order[b]
                    b += 1
        for k in range(n):
            order[k] = spare[k]
        width *= 2


# Philox4x32-7: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Seven rounds are the
# fewest that pass all tests of BigCrush.
# Words of 32 bits are kept in 64, so that no product or sum overflows.
_WORD = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)


@kernel
def philox(c0: Whole, c1: Whole, c2: Whole, c3: Whole, k0: Whole, k1: Whole) -> tuple[Whole, Whole, Whole, Whole]:
    """Return the four words of Philox4x32-7 for a counter of four words and a key of two; all are np.uint64."""
    for _ in range(7):  # a number that is known here, so that the loop is unrolled and a row of arms vectorised
        c0, c1, c2, c3, k0, k1 = _round(c0, c1, c2, c3, k0, k1)
    return c0, c1, c2, c3


@kernel
def _round(
    c0: Whole, c1: Whole, c2: Whole, c3: Whole, k0: Whole, k1: Whole
) -> tuple[Whole, Whole, Whole, Whole, Whole, Whole]:
    a = _MULTIPLIER_0 * c0
    b = _MULTIPLIER_1 * c2
    counter = (b >> _SHIFT) ^ c1 ^ k0, b & _WORD, (a >> _SHIFT) ^ c3 ^ k1, a & _WORD
    return (*counter, (k0 + _WEYL_0) & _WORD, (k1 + _WEYL_1) & _WORD)


# What a random number is for: the stream of `uniform`. Typed, since a plain constant would be a type of its own.
DRAWS = np.int64(0)  # a learner's choice of an arm
LOSSES = np.int64(1)  # the loss of an arm in a round
SCENES = np.int64(2)  # what a world draws once a run, or once a round for all arms
GRAPHS = np.int64(3)  # the graph of a round
DELAYS = np.int64(4)  # how late the feedback of a round comes

_ROUND_HIGH = np.uint64(0xFFFF)
_STREAM = np.uint64(16)
_26_BITS = np.uint64(6)
_27_BITS = np.uint64(5)


@kernel
def uniform(seed: Whole, stream: Whole, run: Whole, t: Whole, arm: Whole) -> float:
    """Return a number in [0, 1) of 53 random bits that depends on the five arguments and nothing else.

    `stream` tells apart what the number is for. The seed is an np.uint64; seed < 2**64, stream < 2**16, run < 2**32,
    t < 2**48, arm < 2**32. Worlds and graphs ask for many numbers per round: `uniform_pair` gives two at a time.
    """
    even, odd = uniform_pair(seed, stream, run, t, np.int64(arm) // 2)
    return odd if np.int64(arm) % 2 == 1 else even


@kernel
def uniform_pair(seed: Whole, stream: Whole, run: Whole, t: Whole, pair: Whole) -> tuple[float, float]:
    """Return what `uniform` gives for the arms 2 pair and 2 pair + 1: the two halves of one block of Philox."""
    w0, w1, w2, w3 = philox(np.uint64(pair), *_counter_and_key(seed, stream, run, t))
    return _from_bits(w0, w1), _from_bits(w2, w3)


@kernel
def _counter_and_key(seed: Whole, stream: Whole, run: Whole, t: Whole) -> tuple[Whole, Whole, Whole, Whole, Whole]:
    """Return the last three words of the counter and the two of the key."""
    s = np.uint64(seed)
    r = np.uint64(t)
    high = ((r >> _SHIFT) & _ROUND_HIGH) | (np.uint64(stream) << _STREAM)
    return r & _WORD, high, np.uint64(run), s & _WORD, s >> _SHIFT


@kernel
def _from_bits(high: Whole, low: Whole) -> float:
    """Return a number in [0, 1) of 27 bits of one word and 26 of another."""
    return float((high >> _27_BITS) * 67108864.0 + (low >> _26_BITS)) * (1.0 / 9007199254740992.0)


@kernel
def beta_power(a: float, b: float) -> float:
    """Return lambda, the constant that `beta` is to be given for a and b."""
    power = min(a, b)
    if power > 1.0:  # else the root might divide by 0
        power = min(power, math.sqrt((2.0 * a * b - (a + b)) / (a + b - 2.0)))
    return power


_LOG_4 = 1.3862943611198906
_1_PLUS_LOG_5 = 2.6094379124341003


@kernel
def beta(
    a: float,
    b: float,
    power: float,
    log_sum: float,
    seed: Whole,
    stream: Whole,
    run: Whole,
    t: Whole,
    arm: Whole,
    n_arms: Whole,
) -> float:
    """Draw from Beta(a, b), where `power` is beta_power(a, b) and `log_sum` is ln(a + b).

    Cheng, "Generating beta variates with nonintegral shape parameters", CACM 21 (1978). Algorithm BA serves
    all a, b > 0 by rejection from a log-logistic law, and accepts at least one attempt in four; if a, b > 1, two in
    three. It is exact, and takes exp, log and sqrt only. With V = ln(U1 / (1 - U1)) / lambda and W = a e^V it accepts
    X = W / (b + W) iff

        (a + b) ln((a + b) / (b + W)) + (a + lambda) V - ln 4 >= ln(U1^2 U2).

    Where V > 0, b + W is written as e^V (a + b e^-V), so that nothing overflows. A quick test comes first, as
    in his Algorithm BB: ln x >= 1 - 1/x bounds the left side, and ln z <= 5z - 1 - ln 5 the right one.
    """
    attempt = np.int64(0)
    while attempt < 1000:  # which takes all of them once in 10^124 draws, or if a, b or power is none
        u1, u2 = uniform_pair(seed, stream, run, t, arm + attempt * n_arms)
        attempt += np.int64(1)
        z = u1 * u1 * u2
        v = log(u1 / (1.0 - u1)) / power
        e = exp(-abs(v))
        w = a * e if v <= 0.0 else a  # conditionals, not branches: which one is taken is the toss of a coin
        denominator = b + w if v <= 0.0 else a + b * e
        tail = (a + power if v <= 0.0 else power - b) * v - _LOG_4
        if (a + b - denominator) + tail + _1_PLUS_LOG_5 >= 5.0 * z:
            return w / denominator
        if (a + b) * (log_sum - log(denominator)) + tail >= log(z):
            return w / denominator
    return a / (a + b)
