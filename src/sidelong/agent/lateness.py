"""How late feedback was, and what that leaves of the bound on the regret: docs/late.md has the theorems."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.learners.interface import Learner

#: What is summed of each told round, from the names of what a learner traces.
_ETA, _THETA, _MASS = "learning_rate", "theta", "exploration_mass"
#: In the order of a state file.
_COUNTS = ("told", "late", "cancelled", "lost", "total", "most", "since", "absent", "logged")
_SUMS = ("rate", "theta", "rated_theta", "rated_delay", "exploration", "prior")
#: What is counted as a decision is told, in this order in one array, where the kernel that learns adds to it.
_TALLY = ("told", "late", "total", "most", "rate", "theta", "rated_theta", "rated_delay", "exploration")
TOLD, LATE, TOTAL, MOST, RATE, THETA_SUM, RATED_THETA, RATED_DELAY, EXPLORATION = range(9)


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

    def __init__(self, module: Learner, params: Any, options: Mapping[str, Any], n_arms: int) -> None:
        self._learner = str(module.name)
        self._n_arms = n_arms
        self._proved = options.get("estimator", "plain") == "plain" and options.get("track") is None
        self.first = int(getattr(params, "initial", np.empty(0)).size)  #: how many initial rounds there are
        #: Of each decision that waits, but the initial ones: how many others did when it was drawn. `ask` writes it.
        self.sigma: dict[int, int] = {}
        self.cancelled = self.lost = 0
        self.absent = 0  #: whether some arm was not there in some round
        self.logged = 0  #: how many rounds of logs were learned, about which the bound says nothing
        self.prior = 0.0  #: what a prior adds to the bound at most
        self.since = 0  #: how many rounds there had been when counting began
        self.tally = np.zeros(len(_TALLY))  #: counts are whole numbers there too
        traced = {_ETA, _THETA} <= {*module.traces}
        self.tally[RATE] = math.inf if traced else math.nan
        self.tally[[THETA_SUM, RATED_THETA, RATED_DELAY]] = 0.0 if traced else math.nan

    def grew(self) -> None:
        """Take notice of one more arm: the bound has the number of arms by the end."""
        self._n_arms += 1
        if self.sigma:
            self.absent = 1  # in the decisions that wait

    def dropped(self, t: int, *, lost: bool) -> None:
        """Count a decision that will never be told; `lost` says that it was carried out."""
        sigma = self.sigma.pop(t, None)
        if sigma is None:  # an initial one
            return
        self.tally[TOTAL] += sigma
        self.tally[MOST] = max(self.tally[MOST], sigma)
        if lost:
            self.lost += 1
        else:
            self.cancelled += 1

    def _counted(self) -> dict[str, Any]:
        """Return all counts and sums by name."""
        tally = dict(zip(_TALLY, self.tally.tolist(), strict=True))
        tally |= {name: int(tally[name]) for name in _COUNTS if name in tally}
        return {name: tally[name] if name in tally else getattr(self, name) for name in (*_COUNTS, *_SUMS)}

    def summary(self, rounds: int) -> Lateness:
        """Return all that is known after this many rounds."""
        initial = min(self.first, rounds)
        outstanding = len(self.sigma)
        counted = self._counted()
        return Lateness(
            told=counted["told"],
            late=counted["late"],
            outstanding=outstanding,
            cancelled=self.cancelled,
            lost=self.lost,
            initial=initial,
            sum=counted["total"] + sum(self.sigma.values()),
            most=max([counted["most"], *self.sigma.values()]),
            rate=counted["rate"],
            theta_sum=counted["theta"],
            rated_theta=counted["rated_theta"],
            rated_delay=counted["rated_delay"],
            exploration=counted["exploration"],
            bound=self._bound(initial, outstanding + self.lost, counted),
        )

    def _bound(self, initial: int, untold: int, counted: Mapping[str, Any]) -> float | None:
        from sidelong.learners import exp3gpp, exp3set  # noqa: PLC0415  # with the theory of all learners, which
        from sidelong.theory import delay  # noqa: PLC0415  # takes a while to load

        is_late = counted["total"] or any(self.sigma.values())
        if self.logged or (self.absent and is_late):  # nothing is proved where arms are absent and feedback is late
            return None
        proved = self._proved and self._n_arms > 1
        if not proved or self.since or self._learner not in {exp3gpp.LEARNER.name, exp3set.LEARNER.name}:
            return None
        if not counted["told"] or counted["rate"] == math.inf:
            return float(initial + untold)
        sums = {name: counted[name] for name in ("rate", "rated_theta", "rated_delay")}
        if self._learner == exp3set.LEARNER.name:
            return self.prior + delay.exp3_set_so_far(K=self._n_arms, untold=untold, **sums)
        return delay.exp3_gpp_so_far(
            K=self._n_arms, exploration=counted["exploration"], initial=initial, untold=untold, **sums
        )

    def contents(self) -> dict[str, np.ndarray]:
        """Return everything, as arrays of a state file."""
        counted = self._counted()
        return {
            "late.outstanding": np.array(list(self.sigma.values()), np.int32),  # of those after the initial ones
            "late.counts": np.array([counted[name] for name in _COUNTS], np.int64),
            "late.sums": np.array([counted[name] for name in _SUMS], np.float64),
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
                if name in _TALLY:
                    self.tally[_TALLY.index(name)] = value
                else:
                    setattr(self, name, value)


def places(learner: Learner) -> tuple[int, ...]:
    """Return where in its trace a learner has what is summed: learning rate, theta, exploration; -1 if nowhere."""
    return tuple(learner.traces.index(name) if name in learner.traces else -1 for name in (_ETA, _THETA, _MASS))


@kernel
def settle(tally: np.ndarray, late: bool, sigma: float, eta: float, theta: float, mass: float) -> None:  # noqa: FBT001
    """Count the feedback of a decision, with what the learner traced; sigma others were outstanding at its draw."""
    tally[TOTAL] += sigma
    if sigma > tally[MOST]:
        tally[MOST] = sigma
    tally[TOLD] += 1.0
    tally[LATE] += 1.0 if late else 0.0
    if eta != 0.0 and eta < tally[RATE]:  # of a single arm it is 0, and nothing can be lost
        tally[RATE] = eta
    tally[THETA_SUM] += theta
    tally[RATED_THETA] += eta * theta
    tally[RATED_DELAY] += eta * sigma
    tally[EXPLORATION] += mass
