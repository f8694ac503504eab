"""What each learner promises on a graph: its bounds as functions of T, put together from the numbers of the graph."""

from __future__ import annotations

import inspect
import itertools
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.theory import exp3_g, exp3_set, glance, rivals
from sidelong.theory.bounds import (
    theorem_2,
    theorem_3,
    theorem_4_adversarial,
    theorem_4_epochs,
    theorem_4_stochastic,
    theorem_4_theta,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sidelong.theory.setting import Setting


@dataclass(frozen=True)
class Promise:
    """What a learner promises, against any adversary and in a stochastic world; None where no constants are known."""

    learner: str
    adversarial: Callable[[Setting, float], float] | None
    stochastic: Callable[[Setting, float], float] | None
    adversarial_source: str = ""
    stochastic_source: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    likely: Callable[[Setting, float, float], float] | None = None  #: what a share `failure` of the runs may exceed
    needs_self_loops: bool = False  #: for the bound: the learner plays without
    needs_one_best_arm: bool = False  #: for the stochastic bound

    @property
    def title(self) -> str:
        """The learner's name, and what sets it apart from others of that name."""
        # "fixed" says what it is, and "unknown" does not.
        said = [f"{name} {value}" if value == "unknown" else str(value) for name, value in self.options.items()]
        return " ".join([self.learner, *said])


def promises(setting: Setting, learners: Iterable[str]) -> list[Promise]:
    """Return what these learners promise, in this order; a bound that the setting does not allow is None."""
    loops = not setting.graph.arms_without_self_loop.size
    found = []
    of = {name: [row for row in _ROWS if row.learner == name] or [Promise(name, None, None)] for name in learners}
    for row in itertools.chain.from_iterable(of.values()):
        kept = row
        if row.needs_self_loops and not loops:
            kept = replace(kept, adversarial=None)
        if not setting.best_arms or (row.needs_one_best_arm and setting.best_arms > 1):
            kept = replace(kept, stochastic=None)
        found.append(kept)
    return found


def crossing(setting: Setting, promise: Promise) -> float | None:
    """Return the T from which the learner's stochastic bound is below its adversarial one and stays there.

    None if it has not both, or if that is beyond 10^60 rounds.
    """
    adversarial, stochastic = promise.adversarial, promise.stochastic
    if adversarial is None or stochastic is None:
        return None

    return _last(lambda T: stochastic(setting, T) > adversarial(setting, T))


def worth_from(setting: Setting, promise: Promise) -> float | None:
    """Return the T from which a learner's adversarial bound is below what drawing arms at random loses at most.

    None if it has no such bound, or if that is beyond 10^60 rounds.
    """
    adversarial = promise.adversarial
    if adversarial is None:
        return None
    return _last(lambda T: adversarial(setting, T) >= rivals.uniform(K=setting.K, T=T))


def _last(holds: Callable[[float], bool]) -> float | None:
    """Return the T up to which something holds, at most 10^60; 1 if it never does, None if it does there."""

    def above(log_T: float) -> bool:
        return holds(math.exp(log_T))

    grid = np.linspace(0.0, 60 * math.log(10), 1000).tolist()
    last = next((k for k in range(len(grid) - 1, -1, -1) if above(grid[k])), -1)
    if last in {-1, len(grid) - 1}:
        return 1.0 if last == -1 else None
    low, high = grid[last], grid[last + 1]
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return math.exp(high)


def _adaptive(s: Setting, T: float) -> float:
    """Return the smaller of what Theorem 4 states and of what its proof gives with theta <= mas."""
    in_alpha = theorem_4_adversarial(K=s.K, T=T, independence_sum=s.independence.upper * T)
    return min(in_alpha, theorem_4_theta(K=s.K, T=T, theta_sum=s.acyclic * T))


def _possible(s: Setting) -> range:
    """Return the independence numbers that are possible: of some learners the bound may grow with it or fall."""
    return range(s.independence.lower, s.independence.upper + 1)


def _bound(formula: Callable[..., float]) -> Callable[[Setting, float], float]:
    """Return a formula as a bound: its arguments are T and what a setting has by their names.

    Of a formula in the independence number it is the largest value for the numbers that are possible.
    """
    takes = {*inspect.signature(formula).parameters} - {"beta"}  # which has the paper's value

    def bound(s: Setting, T: float) -> float:
        known = {name: getattr(s, name) for name in takes - {"T", "independence"}} | ({"T": T} if "T" in takes else {})
        if "independence" not in takes:
            return formula(**known)
        return max(formula(independence=alpha, **known) for alpha in _possible(s))

    return bound


def _luo(s: Setting, T: float, failure: float) -> float:
    """Return what the regret of luo-2023 as it comes exceeds with probability `failure` at most."""
    if s.graph.observability.kind == "strong":
        return max(rivals.luo_2023(K=s.K, T=T, independence=alpha, failure=failure) for alpha in _possible(s))
    among_loops = range(s.loop_independence.lower, s.loop_independence.upper + 1)
    return max(
        rivals.luo_2023_weak(K=s.K, T=T, domination=s.loopless_cover, loop_independence=a, failure=failure)
        for a in among_loops
    )


def _exp3_g(s: Setting, T: float) -> float:
    """Return the bound of exp3.g without a horizon, with mas of the whole graph for that of the arms with loops."""
    loops = s.loop_independence.upper > 0
    return exp3_g.adaptive(
        K=s.K,
        T=T,
        domination=s.weak_cover,
        acyclic=s.acyclic if loops else 0,
        independence=s.loop_independence.upper,
        all_loops=not s.graph.arms_without_self_loop.size,
    )


def _ucb_n(s: Setting, T: float) -> float:
    """Return the smaller of the bounds with the groups and without them."""
    covers = (s.groups, np.arange(s.K))
    return min(rivals.ucb_n_stochastic(T=T, gaps=s.gaps, groups=groups) for groups in covers)


def _glance(s: Setting, T: float) -> float:
    return glance.adversarial(K=s.K, T=T, acyclic=s.acyclic, revealed=s.revealed, first=s.K)


def _glance_stochastic(s: Setting, T: float) -> float:
    gap = s.gaps.least
    return glance.stochastic(K=s.K, T=T, gap=gap, acyclic=s.acyclic, revealed=s.revealed, first=s.K)


#: A learner that has no row promises nothing with known constants.
_ROWS = (
    Promise("glance", _glance, _glance_stochastic, "derived", "derived", needs_one_best_arm=True),
    Promise(
        "exp3.g++",
        _adaptive,
        _bound(theorem_4_stochastic),
        "Theorem 4",
        "Theorem 4",
    ),
    Promise("exp3.g++", _bound(theorem_2), _bound(theorem_3), "Theorem 2", "Theorem 3", {"rate": "fixed"}),
    Promise(
        "exp3.g++",
        lambda s, T: theorem_4_epochs(K=s.K, T=T, theta_sum=s.acyclic * T),
        None,
        "derived",
        options={"refresh": "epoch"},
    ),
    Promise("exp3.g", _bound(rivals.exp3_g), None, "derived", needs_self_loops=True),
    Promise("exp3.g", _exp3_g, None, "derived", options={"rate": "adaptive"}),
    Promise("exp3-set", _bound(rivals.exp3_set), None, "derived"),
    Promise(
        "exp3-set",
        lambda s, T: exp3_set.tracking(K=s.K, T=T, switches=0, theta_sum=s.acyclic * T),
        None,
        "derived",
        options={"track": "unknown"},
    ),
    Promise(
        "exp3-dom", lambda s, T: rivals.exp3_dom(K=s.K, T=T, cover=s.dominating, acyclic=s.acyclic), None, "derived"
    ),
    Promise("exp3-ix", _bound(rivals.exp3_ix), None, "its paper"),
    Promise("elp", _bound(rivals.elp), None, "derived"),
    Promise("exp3", _bound(rivals.exp3), None, "its paper"),
    Promise("exp3++", _bound(rivals.exp3_plus_plus), None, "its paper"),
    Promise("tsallis-inf", _bound(rivals.tsallis_inf), None, "its paper"),
    Promise(
        "tsallis-inf",
        _bound(rivals.tsallis_inf_rv),
        _bound(rivals.tsallis_inf_rv_stochastic),
        "its paper",
        "its paper",
        {"estimator": "rv"},
        needs_one_best_arm=True,
    ),
    Promise("hedge", _bound(rivals.hedge), _bound(rivals.hedge_stochastic), "derived", "its paper"),
    Promise("ucb-n", None, _ucb_n, "", "its paper"),
    Promise(
        "ito-2022",
        _bound(rivals.ito_2022),
        _bound(rivals.ito_2022_stochastic),
        "derived",
        "derived",
        needs_one_best_arm=True,
    ),
    Promise("q-tsallis", _bound(rivals.q_tsallis), None, "its paper"),
    Promise(
        "spm-2024",
        _bound(rivals.spm_2024),
        _bound(rivals.spm_2024_stochastic),
        "derived",
        "derived",
        needs_one_best_arm=True,
    ),
    Promise(
        "luo-2023",
        lambda s, T: _luo(s, T, 1 / T) + 1,  # in the mean, as no run loses more than T
        None,
        "derived",
        likely=_luo,
    ),
    Promise("uniform", _bound(rivals.uniform), _bound(rivals.uniform_stochastic), "exact", "exact"),
)
