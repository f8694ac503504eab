"""How much more the rounds of a log cost than the best arm would have in the same rounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.evaluation import offpolicy
from sidelong.evaluation.intervals import interval_of_best

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.evaluation.decision_log import DecisionLog
    from sidelong.evaluation.intervals import Evidence


class Regret(NamedTuple):
    """What was paid, less what the best single arm would have cost in the same rounds, in total."""

    value: float  #: NaN if no loss was revealed, or where a round with feedback hides what the arm played has cost
    lower: float  #: the interval, for whichever arm is best
    upper: float
    best: int  #: the arm with the lowest upper end, or else with the lowest estimate; -1 if no loss was revealed
    rejected: bool  #: whether the limits of some arm cross, at the given confidence for all arms together

    def row(self) -> dict[str, Any]:
        """Return a dictionary, with None for what is not known and for crossed limits."""
        return offpolicy.plain(self._asdict()) | {"best": self.best if self.best >= 0 else None}


def regret(log: DecisionLog, confidence: float = 0.95) -> Regret:
    """Estimate the regret: what was paid, less what the best single arm would have cost in the same rounds."""
    unknown = np.isnan(log.cost)
    paid, risk = float(log.cost[~unknown].sum()), offpolicy.risk(confidence)
    costs, evidence = offpolicy.costs(log), offpolicy.evidence(log)
    found = compare(costs, evidence, log.n_rounds, paid, int(unknown.sum()), risk)
    return found._replace(value=math.nan) if (unknown & log.told).any() else found


def compare(
    costs: npt.NDArray[np.float64], evidence: Evidence, n: int, paid: float, unknown: int, risk: float
) -> Regret:
    """Return the regret of n rounds from the estimates of all arms, their evidence, and what was paid.

    In `unknown` rounds the loss of the arm that was played is not known. In the interval it may be any; the estimate
    takes it for the mean of the others.
    """
    if n == 0 or np.isnan(costs).all():
        return Regret(math.nan, -float(n), float(n), -1, rejected=False)
    ends = interval_of_best(evidence, n, risk)
    # Of many estimates the lowest is one that errs. Best is what is surely cheap; while nothing is, the lowest.
    best = int(np.lexsort((costs, np.clip(ends.most, 0.0, 1.0)))[0])
    lower, upper = min(ends.lower, costs[best]), max(ends.upper, costs[best])
    estimate = n * (paid / (n - unknown) - costs[best]) if unknown < n else math.nan
    return Regret(float(estimate), float(paid - n * upper), float(paid + unknown - n * lower), best, ends.rejected)
