"""Many learners on many instances: what each lost, next to the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Scoreboard:
    """The mean regret of each contestant on each instance; NaN where it cannot play."""

    contestants: tuple[str, ...]
    instances: tuple[str, ...]
    regret: npt.NDArray[np.float64]  #: (contestants, instances)
    error: npt.NDArray[np.float64]  #: one standard error of each
    arms: npt.NDArray[np.int64]  #: K of each instance

    @property
    def ratio(self) -> npt.NDArray[np.float64]:
        """(regret + K) / (the smallest regret of any contestant + K): K is the price of playing each arm once.

        A world without means can let a learner beat the best arm by K or more: then there is no price to compare
        with, the smallest counts as 1 - K, and a ratio is at least 0.
        """
        least = np.fmin.reduce(self.regret, axis=0)  # NaN only where no contestant can play
        ratio: npt.NDArray[np.float64] = np.maximum(self.regret + self.arms, 0.0) / np.maximum(least + self.arms, 1.0)
        return ratio

    @property
    def worst(self) -> npt.NDArray[np.float64]:
        """The largest ratio of each contestant, over the instances that it can play; NaN if it can play none."""
        worst: npt.NDArray[np.float64] = np.fmax.reduce(self.ratio, axis=1)
        return worst

    @property
    def standing(self) -> list[int]:
        """The contestants, best first: by their worst ratio, those that cannot play everywhere last."""
        missing = np.isnan(self.regret).sum(axis=1)
        worst = np.nan_to_num(self.worst, nan=np.inf)
        return sorted(range(len(self.contestants)), key=lambda k: (bool(missing[k]), float(worst[k])))


def mean_and_error(regret: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean over runs, and its standard error: NaN for one run, which says nothing of others."""
    runs = regret.size
    return float(regret.mean()), float(regret.std(ddof=1) / np.sqrt(runs)) if runs > 1 else np.nan
