"""Lemma 1 and Appendix C of the paper: what the gap estimates are worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong import graphs, losses
from sidelong.claims.algorithm import confidence
from sidelong.claims.chance import least_probability, most_probability
from sidelong.claims.claim import Outcome, Setting, claim
from sidelong.claims.games import looks
from sidelong.theory import t_min

if TYPE_CHECKING:
    from sidelong.claims.games import Look
    from sidelong.graphs import FeedbackGraph

__all__ = ["lemma_1_lower", "lemma_1_upper", "lemma_8", "lemma_9", "theorem_5", "theorem_6"]

_MEANS = np.array([0.3, 0.5, 0.9])
_TIMES = [4, 8, 20, 100]


def worst_frequency(counts: list[tuple[str, int, int, float]], risk: float) -> Outcome:
    """Return the event that comes nearest to the bound on its probability; each is (name, hits, trials, bound)."""
    each = risk / len(counts)

    def excess(count: tuple[str, int, int, float]) -> tuple[float, float]:
        _, hits, trials, bound = count
        return least_probability(hits, trials, each) - bound, hits / trials - bound

    name, hits, trials, bound = max(counts, key=excess)
    most = most_probability(hits, trials, each)
    shown = f"{hits:,} of {trials:,} ({name}): at most {most:.2g}; {len(counts)} events"
    return Outcome(least_probability(hits, trials, each), bound, shown, allowed=f"{bound:.3g}")


def _seen(setting: Setting, graph: FeedbackGraph, gamma: float) -> list[list[Look]]:
    """Return what is seen of the gaps in runs of a three-armed world; both lemmas look at the same runs."""
    key = f"gaps {graph!r} {gamma}"
    if key not in setting.shared:
        world, runs = losses.bernoulli(_MEANS), setting.size(1500, 50)
        setting.shared[key] = list(looks(setting, graph, world, _TIMES, runs, gamma=gamma))
    return setting.shared[key]  # type: ignore[no-any-return]


#: The paper's gamma, under which a gap estimate is hardly ever wrong, and ones for which Hoeffding's inequality can be
#: seen at work. The proof of the upper half asks for nothing but gamma > 1, or its bound says nothing.
_GAMMAS = (4.0, 1.5, 1.1)


@claim("lem-1-upper", "gap estimates are hardly ever too large", "Lemma 1, first part; Appendix C.1", random=True)
def lemma_1_upper(setting: Setting) -> Outcome:
    """P[gap_i > Dbar_i] <= 1 / t^(gamma - 1), where Dbar_i is the gap, and the smallest one for a best arm.

    Printed with a K in the denominator and with >= (E6, E8). Also checked for smaller gamma, which this part allows.
    """
    gap = np.maximum(_MEANS - _MEANS.min(), np.diff(np.sort(_MEANS))[0])
    counts = []
    for graph in (graphs.self_loops(3), graphs.star(3, hub=1)):
        for gamma in _GAMMAS:
            runs = _seen(setting, graph, gamma)
            for k, t in enumerate(_TIMES):
                for i in range(3):
                    hits = sum(run[k].state.gap[i] > gap[i] for run in runs)
                    counts.append((f"gamma = {gamma}, t = {t}", int(hits), len(runs), t ** (1 - gamma)))
    return worst_frequency(counts, setting.risk)


@claim("lem-8", "the confidence bounds hold", "Lemma 8; Appendix C.1", random=True)
def lemma_8(setting: Setting) -> Outcome:
    """P[UCB_i < mu_i] and P[LCB_i > mu_i] are at most 1 / (K t^(gamma - 1)), for the bounds before and after they are cut.

    Printed with T for t (E7) and with <= and >= (E8).
    """
    counts = []
    for graph in (graphs.self_loops(3), graphs.star(3, hub=1)):
        for gamma in _GAMMAS:
            runs = _seen(setting, graph, gamma)
            for k, t in enumerate(_TIMES):
                bounds = [confidence(run[k].state.Lhat, run[k].state.O, t, gamma) for run in runs]
                for i in range(3):
                    low, high = (sum(each) for each in zip(*((l[i] > _MEANS[i], u[i] < _MEANS[i]) for l, u in bounds)))
                    name, bound = f"gamma = {gamma}, t = {t}", t ** (1 - gamma) / 3
                    counts += [(name, int(low), len(runs), bound), (name, int(high), len(runs), bound)]
    return worst_frequency(counts, setting.risk)
