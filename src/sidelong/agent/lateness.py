"""How late feedback was, and what that leaves of the bound on the regret: docs/late.md has the theorems."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.learners import exp3gpp, exp3set
from sidelong.theory import delay

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

#: What is summed of each told round, from the names of what a learner traces.
_ETA, _THETA, _MASS = "learning_rate", "theta", "exploration_mass"
_COUNTS = ("told", "late", "cancelled", "lost", "total", "most", "since", "absent", "logged")
_SUMS = ("rate", "theta", "rated_theta", "rated_delay", "exploration", "prior")


class Lateness(NamedTuple):
    """What an agent knows about the delay of its feedback.

    The initial rounds of a learner are not counted, but in `initial`: what they show enters no weights.
    """

    told: int  #: how many decisions were told
    late: int  #: of these, how many were told after a later one was drawn
    outstanding: int  #: how many wait
    cancelled: int  #: how many were cancelled, because they were never carried out
    lost: int  #: how many were carried out and given up: each costs at most 1
    initial: int  #: how many initial rounds were asked for
    sum: int  #: D: over all decisions, how many others were outstanding when it was drawn
    most: int  #: the largest number that was ever outstanding when one was drawn
    rate: float  #: the smallest learning rate of a told decision; NaN if the learner does not trace it
    theta_sum: float  #: the sum of theta over the told decisions; NaN if the learner does not trace it
    rated_theta: float  #: the sum of theta times the learning rate
    rated_delay: float  #: the sum, over the told decisions, of those outstanding before times the learning rate
    exploration: float  #: the sum of the rates of exploration over the told decisions
    #: The regret so far is, in the mean, at most this, if delays depend on neither draws nor losses. None if no such
    #: bound is proved for the learner with its options, or if the agent was saved before delays were counted.
    bound: float | None


class Waiting:
    """Counts what is outstanding whenever a decision is drawn."""

    def __init__(self, module: ModuleType, params: Any, options: Mapping[str, Any], n_arms: int) -> None:
        self._learner = str(module.NAME)
        self._n_arms = n_arms
        self._proved = options.get("estimator", "plain") == "plain" and options.get("track") is None
        self.first = int(getattr(params, "initial", np.empty(0)).size)  #: how many initial rounds there are
        names = (_ETA, _THETA, _MASS)
        self._at = [module.TRACES.index(name) if name in module.TRACES else -1 for name in names]
        #: Of each decision that waits, but the initial ones: how many others did when it was drawn. `ask` writes it.
        self.sigma: dict[int, int] = {}
        self.told = self.late = self.cancelled = self.lost = self.total = self.most = 0
        self.absent = 0  #: whether some arm was not there in some round
        self.logged = 0  #: how many rounds of logs were learned, about which the bound says nothing
        self.prior = 0.0  #: what a prior adds to the bound at most
        self.since = 0  #: how many rounds there had been when counting began
        traced = min(self._at[:2]) >= 0
        self.rate = math.inf if traced else math.nan
        self.theta = self.rated_theta = self.rated_delay = 0.0 if traced else math.nan
        self.exploration = 0.0

    def grew(self) -> None:
        """Take notice of one more arm: the bound has the number of arms by the end."""
        self._n_arms += 1
        if self.sigma:
            self.absent = 1  # in the decisions that wait

    def learned(self, t: int, trace: np.ndarray, last: int) -> None:
        """Count the feedback of a decision, with what the learner traced; `last` is the last that was drawn."""
        sigma = self._settled(t)
        if sigma is None:
            return
        self.told += 1
        self.late += t < last
        eta, theta, mass = (float(trace[at]) if at >= 0 else 0.0 for at in self._at)
        if eta != 0.0:  # of a single arm it is 0, and nothing can be lost
            self.rate = min(self.rate, eta)
        self.theta += theta
        self.rated_theta += eta * theta
        self.rated_delay += eta * sigma
        self.exploration += mass

    def dropped(self, t: int, *, lost: bool) -> None:
        """Count a decision that will never be told; `lost` says that it was carried out."""
        if self._settled(t) is None:
            return
        if lost:
            self.lost += 1
        else:
            self.cancelled += 1

    def _settled(self, t: int) -> int | None:
        """Return how many were outstanding when a decision was drawn that is not any more; None for an initial one."""
        sigma = self.sigma.pop(t, None)
        if sigma is not None:
            self.total += sigma
            self.most = max(self.most, sigma)
        return sigma

    def summary(self, rounds: int) -> Lateness:
        """Return all that is known after this many rounds."""
        initial = min(self.first, rounds)
        outstanding = len(self.sigma)
        return Lateness(
            told=self.told,
            late=self.late,
            outstanding=outstanding,
            cancelled=self.cancelled,
            lost=self.lost,
            initial=initial,
            sum=self.total + sum(self.sigma.values()),
            most=max([self.most, *self.sigma.values()]),
            rate=self.rate,
            theta_sum=self.theta,
            rated_theta=self.rated_theta,
            rated_delay=self.rated_delay,
            exploration=self.exploration,
            bound=self._bound(initial, outstanding + self.lost),
        )

    def _bound(self, initial: int, untold: int) -> float | None:
        is_late = self.total or any(self.sigma.values())
        if self.logged or (self.absent and is_late):  # nothing is proved where arms are absent and feedback is late
            return None
        proved = self._proved and self._n_arms > 1
        if not proved or self.since or self._learner not in {exp3gpp.NAME, exp3set.NAME}:
            return None
        if not self.told or self.rate == math.inf:
            return float(initial + untold)
        sums = {"rate": self.rate, "rated_theta": self.rated_theta, "rated_delay": self.rated_delay}
        if self._learner == exp3set.NAME:
            return self.prior + delay.exp3_set_so_far(K=self._n_arms, untold=untold, **sums)
        return delay.exp3_gpp_so_far(
            K=self._n_arms, exploration=self.exploration, initial=initial, untold=untold, **sums
        )

    def contents(self) -> dict[str, np.ndarray]:
        """Return everything, as arrays of a state file."""
        return {
            "late.outstanding": np.array(list(self.sigma.values()), np.int32),  # of those after the initial ones
            "late.counts": np.array([getattr(self, name) for name in _COUNTS], np.int64),
            "late.sums": np.array([getattr(self, name) for name in _SUMS], np.float64),
        }

    def resume(self, rounds: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from what `contents` returned, after this many rounds; older files have no such arrays."""
        waiting = [t for t in arrays["pending.round"].tolist() if t > self.first]
        if "late.outstanding" not in arrays:
            self.since = rounds
            self.sigma = dict.fromkeys(waiting, 0)  # nobody knows, and there will be no bound
            return
        self.sigma = dict(zip(waiting, arrays["late.outstanding"].tolist(), strict=True))
        for names, values in ((_COUNTS, arrays["late.counts"]), (_SUMS, arrays["late.sums"])):
            for name, value in zip(names, values.tolist(), strict=False):  # older files count fewer
                setattr(self, name, value)
