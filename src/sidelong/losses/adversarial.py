"""Worlds between stochastic and adversarial: the gaps stay, or fail for a while only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.errors import WorldError
from sidelong.losses.world import World, arrays
from sidelong.losses.world_arguments import LAST_ROUND, best_and_second, describe, floats, means_of, number, whole
from sidelong.losses.world_kernels import CONSTRAINED, FLIPPED, SWAPPED
from sidelong.losses.world_makers import world

if TYPE_CHECKING:
    import numpy.typing as npt


@world(gaps="list", n_arms="n_arms", best="whole", stochastic=False)
def constrained(gaps: npt.ArrayLike, n_arms: int | None = None, best: int | None = None) -> World:
    """Make the stochastically constrained adversary: gaps are fixed, while all means jump together.

    Phases alternate between mean losses gaps[i] and 1 - max(gaps) + gaps[i]. With one gap D, the means of the best arm
    and of all others are (0, D) in one phase and (1 - D, 1) in the next. Each loss is 0 or 1. Phases have 1, 2, 4, 7,
    12, 20, ... rounds: each is 1.6 times as long as the one before, rounded up. Learners that average losses over time,
    such as UCB and Thompson sampling, compare arms across phases and fail.

    Source: Zimmert and Seldin, "Tsallis-INF: an optimal algorithm for stochastic and adversarial bandits",
    JMLR 22 (2021), experiments.

    Args:
        gaps: one number above 0 and at most 1, by which every arm but `best` is worse; or a number for each
            arm, of which exactly one is 0, for the best arm.
        n_arms: the number of arms; needed with one gap.
        best: the best arm; 0 if not given, with one gap.

    Raises:
        WorldError: a gap is outside (0, 1], or it is not clear how many arms there are or which is best.

    Example:
        >>> constrained(gaps=0.2, n_arms=10, best=3)
        <World constrained: 10 arms, best arm 3, smallest gap 0.2; means jump in rounds 2, 4, 8, 15, 27, ...>

    """
    g = _gaps(gaps, n_arms, best)
    length, end, odd, phase = 1, 0, 0, 0
    ends, odds = [], []
    while end <= LAST_ROUND:
        end += length
        odd += length * (phase % 2)
        ends.append(end)
        odds.append(odd)
        length = -(-8 * length // 5)  # 1.6 times, rounded up, in whole numbers
        phase += 1
    jumps = ", ".join(str(each + 1) for each in ends[:5])
    b = int(np.argmin(g))
    smallest = f", smallest gap {np.delete(g, b).min():g}" if g.size > 1 else ""
    return World(
        "constrained",
        g.size,
        arrays(CONSTRAINED, np.concatenate([g, (1.0 - g.max()) + g]), np.array(ends + odds)),
        f"{g.size} arms, best arm {b}{smallest}; means jump in rounds {jumps}, ...",
        binary=True,
    )


def _gaps(gaps: npt.ArrayLike, n_arms: int | None, best: int | None) -> npt.NDArray[np.float64]:
    g = floats("gaps", gaps)
    if g.ndim == 0:
        if n_arms is None:
            raise WorldError(
                f"gaps is one number, {float(g):g}: give n_arms too, or gaps as a list with a 0 for the best."
            )
        K = whole("n_arms", n_arms, 2, 2**32 - 1)
        g = np.full(K, number("gaps", float(g), above=0, most=1))
        g[whole("best", 0 if best is None else best, 0, K - 1)] = 0.0
        return g
    zeros = np.flatnonzero(g == 0.0)
    if g.ndim != 1 or g.size < 2:
        raise WorldError(f"gaps must be one number, or one for each of two or more arms; its shape is {g.shape}.")
    if zeros.size != 1:
        raise WorldError(
            f"gaps must have exactly one 0, for the best arm, and be above 0 elsewhere; {zeros.size} are 0."
        )
    for arm in range(g.size):
        if arm != zeros[0]:
            number(f"gaps[{arm}]", float(g[arm]), above=0, most=1)
    if n_arms is not None and n_arms != g.size:
        raise WorldError(f"n_arms is {n_arms!r}, while gaps has {g.size} numbers: leave n_arms out.")
    if best is not None and best != zeros[0]:
        raise WorldError(f"best is {best!r}, while the gap of arm {zeros[0]} is 0: leave best out.")
    return g


@world(means="means", budget="whole", attack="text", stochastic=False)
def corrupted(means: npt.ArrayLike, budget: int, attack: str = "flip") -> World:
    """Make a stochastic world whose first `budget` rounds an adversary has spoilt.

    Afterwards, and without an adversary, it has the very losses of `bernoulli(means)` with the same seed.
    `mean` and the regret count what happens, the corruption included.

    Source: Lykouris, Mirrokni and Paes Leme, "Stochastic bandits robust to adversarial corruptions", STOC
    2018. To flip all losses of the first sqrt(T) rounds is the experiment of Zimmert and Seldin (2021).

    Args:
        means: the expected loss of each arm, from 0 to 1.
        budget: how many rounds are corrupted, 0 or more.
        attack: "flip", where every loss l becomes 1 - l; or "swap", where the best arm and the second best
            exchange their losses.

    Raises:
        WorldError: a mean is outside [0, 1], the budget is negative, or the attack is unknown.

    Example:
        >>> corrupted([0.4, 0.6], budget=1_000)
        <World corrupted: 2 arms, best arm 0 with mean 0.4, next 0.6; all flipped in the first 1000 rounds>

    """
    m = means_of(means)
    rounds = whole("budget", budget, 0, LAST_ROUND)
    if attack == "flip":
        laid_out, how = arrays(FLIPPED, m, [rounds]), "all flipped"
    elif attack == "swap":
        if m.size == 1:
            raise WorldError("attack 'swap' exchanges two arms; means has 1. Take attack 'flip'.")
        first, second = best_and_second(m)
        laid_out, how = arrays(SWAPPED, m, [rounds, first, second]), f"arms {first} and {second} swapped"
    else:
        raise WorldError(f"attack must be 'flip' or 'swap', not {attack!r}.")
    return World("corrupted", m.size, laid_out, f"{describe(m)}; {how} in the first {rounds} rounds", binary=True)
