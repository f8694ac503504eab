"""Which differences are more than chance: tests on pairs of runs that met the same losses."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from sidelong.studies.curves import Curve

LEVEL = 0.01


class Duel(NamedTuple):
    """Two learners on an instance: `chance` that they are the same, or None where too few runs could tell."""

    chance: float | None
    ranks: float  #: below 0 if the first has less regret in most runs, by the ranks of the differences
    difference: float  #: of the mean regret, the first minus the second

    @property
    def verdict(self) -> str:
        """What can be said of the regret of the first: `less`, `more`, `same`, `untested`; or `split`.

        It is split where runs and means point in opposite directions: mostly better, and sometimes ruinous.
        """
        if self.chance is None:
            return "untested"
        if self.chance >= LEVEL:
            return "same"
        if self.ranks * self.difference < 0:
            return "split"
        return "less" if self.ranks < 0 else "more"


def least_runs(tests: int) -> int:
    """Return how many runs a learner needs for one of so many tests to be able to tell: p is at least 2 / 2^runs."""
    return int(np.floor(np.log2(2 * max(tests, 1) / LEVEL))) + 1


def chance_of_no_difference(one: Curve, other: Curve) -> float | None:
    """Return the p-value of Wilcoxon's signed rank test on the final regret, run by run; None below 6 pairs."""
    differences = _differences(one, other)
    if differences.size < 6:
        return None
    return signed_rank(differences)


def signed_rank(differences: npt.NDArray[np.float64]) -> float:
    """Return the two-sided p-value of the signed ranks, without differences of 0; exact up to 50, with ties or without.

    SciPy's own test is exact with ties only up to 13, and then tries all 2^13 signs one by one.
    """
    differences = differences[differences != 0]
    if differences.size > 50:
        return float(stats.wilcoxon(differences).pvalue)
    ranks = np.rint(2 * stats.rankdata(np.abs(differences))).astype(int)  # of ties these are halves
    chances = np.ones(1)  # of each sum of the ranks above 0, if every sign is a coin
    for rank in ranks.tolist():
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    above = int(ranks[differences > 0].sum())
    return float(min(1.0, 2 * min(chances[: above + 1].sum(), chances[above:].sum())))


def _differences(one: Curve, other: Curve) -> npt.NDArray[np.float64]:
    """Return the final regret of one minus that of the other, for each run that both have played."""
    rows = {name: row for row, name in enumerate(other.runs)}
    mine = [row for row, name in enumerate(one.runs) if name in rows]
    theirs = [rows[one.runs[row]] for row in mine]
    differences: npt.NDArray[np.float64] = one.final[mine] - other.final[theirs]
    return differences


def duels(curves: Mapping[str, Curve]) -> dict[tuple[str, str], Duel]:
    """Test all pairs of learners on an instance, with Holm's correction for their number."""
    pairs = [*itertools.combinations(curves, 2)]
    chances = [chance_of_no_difference(curves[one], curves[other]) for one, other in pairs]
    if any(min(len(curves[one].runs), len(curves[other].runs)) < least_runs(len(pairs)) for one, other in pairs):
        chances = [None] * len(pairs)
    adjusted = _holm(chances)
    found = {}
    for (one, other), chance in zip(pairs, adjusted, strict=True):
        runs = _differences(curves[one], curves[other])
        ranks = float((np.sign(runs) * stats.rankdata(np.abs(runs))).sum()) if runs.size else 0.0
        difference = float(curves[one].final.mean() - curves[other].final.mean())
        found[one, other] = Duel(chance, ranks, difference)
        found[other, one] = Duel(chance, -ranks, -difference)
    return found


def _holm(chances: list[float | None]) -> list[float | None]:
    """Return p-values of which none is below the level, with a chance of one minus it, if nothing differs."""
    known = sorted((chance, k) for k, chance in enumerate(chances) if chance is not None)
    adjusted: list[float | None] = [None] * len(chances)
    largest = 0.0
    for rank, (chance, k) in enumerate(known):
        largest = max(largest, min(1.0, chance * (len(known) - rank)))
        adjusted[k] = largest
    return adjusted
