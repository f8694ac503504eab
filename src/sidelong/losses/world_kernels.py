"""What kernels know of a world: its arrays, and the loss of an arm in a round.

All built-in worlds share one type and one set of kernels, a switch on `kind`, so that a loop over rounds is
compiled once for all of them. Every kernel is a pure function. It may be asked in any order, in any process,
and computes only what was asked for. Rounds count from 1.

Losses that are 0 or 1 come from one random number: the loss is 1 iff the number is below the mean. So two
worlds with one seed share their luck, and differ only where their means do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.numerics import LOSSES, SCENES, beta, uniform, uniform_pair


class WorldArrays(NamedTuple):
    """A world as kernels see it; what each array holds depends on the kind, as the list of kinds says.

    The arrays are read-only, C-contiguous and aligned, so that one compiled signature serves a memory map
    too.
    """

    kind: int
    numbers: np.ndarray  #: float64, 1-D
    integers: np.ndarray  #: int64, 1-D
    table: np.ndarray  #: float64, 2-D; (0, 0) where it is not used


# The kinds, and what their arrays hold. K is the number of arms.
BERNOULLI = 0  # numbers: K means
BETA = 1  # numbers: K means; table: rows a, b, lambda, ln(a + b)
# Numbers: K means of even phases, K of odd ones; integers: last rounds of the phases, odd rounds up to each.
CONSTRAINED = 2
FLIPPED = 3  # numbers: K means; integers: how many rounds are corrupted
SWAPPED = 4  # the same; integers go on with the two arms that are exchanged
# Table: S rows of means, S rows of totals before each; integers: last rounds of the first S - 1 rows.
SWITCHING = 5
CYCLING = 6  # table: S rows of means, S + 1 rows of totals before each; integers: rounds a row, S
DRIFTING = 7  # the same
LOWER_BOUND = 8  # numbers: the gap; integers: each arm's place in the set or -1, and the size of the set
BREAKER = 9  # integers: the arm of loss 1 in each round
TABLE = 10  # table: a row of losses for each round
FUNCTION = 11  # numbers: K means, or none


@kernel
def loss(world: WorldArrays, seed: int, run: int, t: int, arm: int) -> float:
    """Return the loss of an arm in round t; NaN beyond the last round of a world that has one."""
    kind = world.kind
    if kind == TABLE:
        return world.table[t - 1, arm] if t <= world.table.shape[0] else math.nan
    if kind == BREAKER:
        if t > world.integers.size:
            return math.nan
        return 1.0 if world.integers[t - 1] == arm else 0.0
    if kind == BETA:
        return _beta(world.numbers, world.table, seed, run, t, arm)
    u = uniform(seed, LOSSES, run, t, _swapped(world, t, arm) if kind == SWAPPED else arm)
    if kind == FLIPPED:
        # The very losses of the clean world turned over, not fresh ones with the mean turned over.
        return 1.0 if (u < world.numbers[arm]) != _is_spoilt(world, t) else 0.0
    return 1.0 if u < mean(world, seed, run, t, arm) else 0.0


@kernel
def has_range(world: WorldArrays) -> bool:
    """Tell whether `losses_of` serves this world: one whose means in a round lie in a row of `numbers`."""
    return world.kind in (BERNOULLI, CONSTRAINED)


@kernel
def _first_mean(world: WorldArrays, t: int) -> int:
    """Return where in `numbers` the means of a round begin, where `has_range`."""
    if world.kind == CONSTRAINED:
        return (_segment(world.integers, world.integers.size // 2, t) % 2) * (world.numbers.size // 2)
    return 0


@kernel
def loss_range(world: WorldArrays, seed: int, run: int, t: int, first: int, last: int, wide: np.ndarray) -> None:
    """Write the losses of the arms from `first` to before `last` into wide[1], wide[2], ...: what `loss` gives.

    One block of random numbers serves the arms 2n and 2n + 1. Where the first or the last block serves one arm alone,
    its other number is written too: before the losses, or behind them, where `wide` must have room.
    """
    row = _first_mean(world, t)
    pair = first // 2
    numbers = wide[1 - first % 2 :]
    for n in range((last + 1) // 2 - pair):
        numbers[2 * n], numbers[2 * n + 1] = uniform_pair(seed, LOSSES, run, t, pair + n)
    losses, means = wide[1:], world.numbers[row + first :]
    for k in range(last - first):
        losses[k] = 1.0 if losses[k] < means[k] else 0.0


@kernel
def losses_of(
    world: WorldArrays,
    seed: int,
    run: int,
    t: int,
    arms: np.ndarray,
    first: int,
    count: int,
    in_a_row: bool,  # noqa: FBT001  # kernels take no names
    wide: np.ndarray,
    luck: np.ndarray,
) -> None:
    """Write what `loss` gives for `count` arms of a list, from `first` on, into wide[1], wide[2], ...

    It serves worlds that `has_range` knows. `in_a_row` says that the list is 0, 1, 2, ... There must be room for `FEW`
    numbers in `luck`.
    """
    losses = wide[1:-1]
    if count > _SOME and losses.size <= FEW:
        _losses_of_all(world, seed, run, t, luck)
        for k in range(count):
            losses[np.uint64(k)] = luck[np.uint64(arms[np.uint64(first + k)])]
    elif in_a_row and count > 1:
        loss_range(world, seed, run, t, first, first + count, wide)
    else:
        means = np.uint64(_first_mean(world, t))
        for k in range(count):
            i = np.uint64(arms[np.uint64(first + k)])
            u = uniform(seed, LOSSES, run, t, np.int64(i))
            losses[np.uint64(k)] = 1.0 if u < world.numbers[means + i] else 0.0


#: So many arms have room in eight blocks of random numbers, which fill vectors, and take as long as three or four.
FEW = 16
_SOME = 3


@kernel
def _losses_of_all(world: WorldArrays, seed: int, run: int, t: int, losses: np.ndarray) -> None:
    """Write the losses of all arms, at most `FEW`."""
    for n in range(losses.size // 2):
        losses[2 * n], losses[2 * n + 1] = uniform_pair(seed, LOSSES, run, t, n)
    means = world.numbers[_first_mean(world, t) :]
    for k in range(min(means.size, losses.size)):
        losses[k] = 1.0 if losses[k] < means[k] else 0.0


@kernel
def mean(world: WorldArrays, seed: int, run: int, t: int, arm: int) -> float:  # noqa: PLR0911  # one a kind
    """Return the expected loss of an arm in round t, given what the run fixed; NaN where there is none."""
    kind = world.kind
    if kind in (BERNOULLI, BETA):
        return world.numbers[arm]  # type: ignore[no-any-return]
    if kind == CONSTRAINED:
        phases = world.integers.size // 2
        odd = _segment(world.integers, phases, t) % 2
        return world.numbers[arm + odd * (world.numbers.size // 2)]  # type: ignore[no-any-return]
    if kind == FLIPPED:
        m = world.numbers[arm]
        return 1.0 - m if _is_spoilt(world, t) else m  # type: ignore[no-any-return]
    if kind == SWAPPED:
        return world.numbers[_swapped(world, t, arm)]  # type: ignore[no-any-return]
    if kind == SWITCHING:
        return world.table[_segment(world.integers, world.integers.size, t), arm]  # type: ignore[no-any-return]
    if kind == CYCLING:
        each, rows = world.integers[0], world.integers[1]
        return world.table[(t - 1) // each % rows, arm]  # type: ignore[no-any-return]
    if kind == DRIFTING:
        return _drifting(world, t, arm)
    if kind == LOWER_BOUND:
        return _lower_bound(world, seed, run, arm)
    if kind == FUNCTION and world.numbers.size > 0:
        return world.numbers[arm]  # type: ignore[no-any-return]
    return math.nan


@kernel
def cumulative(world: WorldArrays, seed: int, run: int, t: int, arm: int) -> float:
    """Return the sum of the means of an arm over rounds 1 to t, in closed form; NaN where there are none."""
    kind = world.kind
    if t == 0:
        return 0.0
    if kind == CONSTRAINED:
        phases = world.integers.size // 2
        s = _segment(world.integers, phases, t)
        odd = 0
        if s > 0:
            odd = world.integers[phases + s - 1]
            if s % 2 == 1:
                odd += t - world.integers[s - 1]
        K = world.numbers.size // 2
        return (t - odd) * world.numbers[arm] + odd * world.numbers[arm + K]  # type: ignore[no-any-return]
    if kind in (FLIPPED, SWAPPED):
        budget = world.integers[0]
        corrupted = min(t, budget)
        spoilt = mean(world, seed, run, corrupted, arm) if corrupted > 0 else 0.0
        return corrupted * spoilt + (t - corrupted) * world.numbers[arm]  # type: ignore[no-any-return]
    if kind == SWITCHING:
        s = _segment(world.integers, world.integers.size, t)
        before = world.integers[s - 1] if s > 0 else 0
        S = world.integers.size + 1
        return world.table[S + s, arm] + (t - before) * world.table[s, arm]  # type: ignore[no-any-return]
    if kind in (CYCLING, DRIFTING):
        return _cycles(world, t, arm)
    return t * mean(world, seed, run, t, arm)  # the same in all rounds


@kernel
def _segment(ends: np.ndarray, count: int, t: int) -> int:
    """Return how many of the first `count` ends, which ascend, lie before t."""
    low = 0
    high = count
    while low < high:
        middle = (low + high) // 2
        if ends[middle] < t:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _is_spoilt(world: WorldArrays, t: int) -> bool:
    """Tell whether an adversary has spoilt round t."""
    budget = world.integers[0]
    return t <= budget  # type: ignore[no-any-return]


@kernel
def _swapped(world: WorldArrays, t: int, arm: int) -> int:
    """Return the arm whose losses `arm` has in round t."""
    one, other = world.integers[1], world.integers[2]
    if _is_spoilt(world, t):
        if arm == one:
            return other  # type: ignore[no-any-return]
        if arm == other:
            return one  # type: ignore[no-any-return]
    return arm


@kernel
def _drifting(world: WorldArrays, t: int, arm: int) -> float:
    """Return a mean on the line from one row to the next."""
    n = world.integers[0]
    S = world.integers[1]
    done = (t - 1) // n
    s = done % S
    a = world.table[s, arm]
    b = world.table[(s + 1) % S, arm]
    m = a + (b - a) * ((t - 1 - done * n) / n)
    return min(max(m, 0.0), 1.0)  # type: ignore[no-any-return]


@kernel
def _cycles(world: WorldArrays, t: int, arm: int) -> float:
    """Sum rows of means that are gone through again and again."""
    n = world.integers[0]
    S = world.integers[1]
    done = t // n
    s = done % S
    rest = t - done * n
    a = world.table[s, arm]
    part = rest * a
    if world.kind == DRIFTING:
        # Steps 0, 1, ..., rest - 1 of n towards the next row; in floats, since 64 bits may be too few.
        part += (world.table[(s + 1) % S, arm] - a) * (0.5 * rest * (rest - 1.0) / n)
    return (done // S) * world.table[2 * S, arm] + world.table[S + s, arm] + part  # type: ignore[no-any-return]


@kernel
def _lower_bound(world: WorldArrays, seed: int, run: int, arm: int) -> float:
    place = world.integers[arm]
    if place < 0:
        return 1.0
    size = world.integers[world.integers.size - 1]
    # One number a run, not of any round: rounds count from 1.
    best = math.floor(uniform(seed, SCENES, run, np.int64(0), np.int64(0)) * size)
    return 0.5 - world.numbers[0] if place == best else 0.5


@kernel
def _beta(means: np.ndarray, shapes: np.ndarray, seed: int, run: int, t: int, arm: int) -> float:
    a = shapes[0, arm]
    b = shapes[1, arm]
    if a < 1e-300 or b < 1e-300:  # the mean is 0 or 1, or next to it; and 1 / lambda must not overflow
        return means[arm]  # type: ignore[no-any-return]
    return beta(a, b, shapes[2, arm], shapes[3, arm], seed, LOSSES, run, t, arm, means.size)
