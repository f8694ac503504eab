"""Worlds whose means change: at once, or little by little."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sidelong.checks import is_whole
from sidelong.errors import WorldError
from sidelong.losses.world import World, arrays
from sidelong.losses.world_arguments import LAST_ROUND, rows_of, whole
from sidelong.losses.world_kernels import CYCLING, DRIFTING, SWITCHING
from sidelong.losses.world_makers import world

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


@world(means="means", at="list", every="whole", stochastic=False)
def switching(means: npt.ArrayLike, at: int | Sequence[int] | None = None, every: int | None = None) -> World:
    """Make a world where the best arm changes: its means are those of one row after the other. Each loss is 0 or 1.

    Give either `at` or `every`.

    Source: Seldin and Slivkins, "One practical algorithm for both stochastic and adversarial bandits", ICML
    2014, experiments: a stochastic world whose best arm changes after 2,500 rounds.

    Args:
        means: the expected loss of each arm, from 0 to 1, as two or more rows, such as [before, after]. With one row,
            the second is the same with the best arm and the second best exchanged.
        at: the last round of each row but the last, which stays for ever: one number, or an ascending list.
        every: for how many rounds each row is used. After the last row the first one is used again.

    Raises:
        WorldError: a mean is outside [0, 1], or the changes do not fit the rows.

    Example:
        >>> switching([[0.4, 0.6], [0.6, 0.3]], at=2_500)
        <World switching: 2 arms, best arm 0, 1; changes after round 2500>

    """
    rows = rows_of(means)
    S = len(rows)
    summary = f"{rows.shape[1]} arms, best arm {_best_arms(rows)}"
    if (at is None) == (every is None):
        raise WorldError(f"give either at or every, not both or none; at is {at!r} and every is {every!r}.")
    if every is not None:
        n = whole("every", every, 1, LAST_ROUND)
        laid_out = arrays(CYCLING, (), [n, S], np.concatenate([rows, _before(rows, np.full(S, n))]))
        return World("switching", rows.shape[1], laid_out, f"{summary}; changes every {n} rounds", binary=True)
    ends = [at] if is_whole(at) else list(at or ())
    ends = [whole(f"at[{s}]", end, 1, LAST_ROUND) for s, end in enumerate(ends)]
    if len(ends) != S - 1 or any(b <= a for a, b in pairwise(ends)):
        raise WorldError(f"at must be {S - 1} ascending rounds, the last of each row of means but one; it is {at!r}.")
    lengths = np.diff([0, *ends, ends[-1]])
    laid_out = arrays(SWITCHING, (), ends, np.concatenate([rows, _before(rows, lengths)[:S]]))
    summary += f"; changes after round {_listed(ends)}"
    return World("switching", rows.shape[1], laid_out, summary, binary=True)


@world(means="means", every="whole", stochastic=False)
def drifting(means: npt.ArrayLike, every: int) -> World:
    """Make a world whose means move in straight lines from row to row, and back to the first.

    Each loss is 0 or 1. In round 1 the means are the first row; `every` rounds later they are the second row;
    and so on. With two rows each mean is a triangular wave of period 2 `every`.

    Source: Besbes, Gur and Zeevi, "Stochastic multi-armed-bandit problem with non-stationary rewards", NIPS
    2014, whose variation budget is max_i |rows[s + 1][i] - rows[s][i]| for each `every` rounds here.

    Args:
        means: the expected loss of each arm, from 0 to 1, as two or more rows, such as [start, turn]. With one row, the
            second is the same with the best arm and the second best exchanged.
        every: how many rounds it takes from one row to the next.

    Raises:
        WorldError: a mean is outside [0, 1], or `every` is not a whole number above 0.

    Example:
        >>> drifting([0.4, 0.6], every=10_000)
        <World drifting: 2 arms, best arm 0, 1; from one to the next in 10000 rounds>

    """
    rows = rows_of(means)
    n = whole("every", every, 1, LAST_ROUND)
    to_next = np.roll(rows, -1, axis=0) - rows
    # Steps 0, 1, ..., n - 1 of n on each way: on average (n - 1) / (2 n) of it.
    totals = _before(rows + to_next * (0.5 * (n - 1.0) / n), np.full(len(rows), n))
    return World(
        "drifting",
        rows.shape[1],
        arrays(DRIFTING, (), [n, len(rows)], np.concatenate([rows, totals])),
        f"{rows.shape[1]} arms, best arm {_best_arms(rows)}; from one to the next in {n} rounds",
        binary=True,
    )


def _best_arms(rows: npt.NDArray[np.float64]) -> str:
    return _listed([int(arm) for arm in np.argmin(rows, axis=1)])


def _listed(numbers: list[int]) -> str:
    return ", ".join(str(each) for each in numbers[:6]) + ", ..." * (len(numbers) > 6)


def _before(rows: npt.NDArray[np.float64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return what each arm loses before each row, and in all rows."""
    totals = np.zeros((len(rows) + 1, rows.shape[1]))
    for s, row in enumerate(rows):
        totals[s + 1] = totals[s] + lengths[s] * row
    return totals
