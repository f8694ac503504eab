"""Beyond the paper: SquareCB.G without its convex program (learners/squarecb.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.claims.algorithm import ROUNDING, largest
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.walks import digraphs
from sidelong.graphs import nested
from sidelong.learners.interface import Asked, trace_size
from sidelong.theory import squarecb as bounds

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph

    Floats = npt.NDArray[np.float64]

_FILE = "learners/squarecb.py"


class Predicted(NamedTuple):
    """One round: what was predicted, with what gamma, what is played and what value that is said to have."""

    graph: FeedbackGraph
    f: Floats
    gamma: float
    p: Floats
    value: float


@claim("squarecb-value", "what is played nearly solves the program of the paper", _FILE)
def value(trial: Trial) -> Outcome:
    """dec(p) <= (|S| + 1) / gamma, and <= (2 + ln(1 + gamma gap)) / gamma on nested graphs, from the program itself.

    On directed graphs with self-loops and on nested ones, for predictions that are spread, near each other, and equal.
    """
    ratios = []
    for walk, _ in _walks(trial):
        for each in walk:
            A, f, gap = each.graph.matrix(), each.f, each.f - each.f.min()
            top = float(gap[-1]) if each.graph.name == f"nested({f.size})" else None
            bound = bounds.value(size=_size(f, A), gamma=each.gamma, nested_gap=top)
            ratios += [float(_program(each).max()) / bound, abs(each.p.sum() - 1.0) / ROUNDING]
    worst = largest(ratios)
    return Outcome(worst, 1 + ROUNDING, f"dec / bound up to {worst:.4g} in {len(ratios) // 2:,} rounds", "1")


@claim("squarecb-regret", "what the policy loses, given what the regressor errs", _FILE)
def regret(trial: Trial) -> Outcome:
    """Regret <= (2 / m) sqrt(sum V) + (m R / 4) sqrt(K + 1 + sum V), if the squared errors of revealed arms sum to R.

    Against the best arm of each round, where the true means are the worst that there are for what is played, or draws.
    In each round V / gamma is dec(p).
    """
    rng, ratios, said = trial.rng("squarecb-regret"), [], []
    for number, (walk, m) in enumerate(_walks(trial)):
        lost, errors, values = 0.0, 0.0, 0.0
        for each in walk:
            P, K = each.p @ each.graph.matrix(), each.f.size
            if number % 2:
                true = rng.random(K)
                arm = int(true.argmin())
            else:
                arm = int(_program(each).argmax())
                true = each.f + 2 * (each.p - np.eye(K)[arm]) / (each.gamma * P)
            lost += float(each.p @ true - true[arm])
            errors += float(P @ (each.f - true) ** 2)
            values += each.gamma * each.value
            said.append(1.0 + each.gamma * (float(_program(each).max()) - each.value))
        ratios.append(lost / bounds.regret(K=K, errors=errors, value_sum=values, gamma_scale=m))
    worst = max(largest(ratios), largest(said) - ROUNDING)
    return Outcome(worst, 1 + ROUNDING, f"regret / bound up to {largest(ratios):.4g} on {len(ratios)} walks", "1")


def _walks(trial: Trial) -> Iterator[tuple[list[Predicted], float]]:
    """Play, by hand, with predictions that are drawn: yield the rounds, and the factor on gamma."""
    rng, learner = trial.rng("squarecb"), trial.squarecb
    graphs = [*digraphs(rng, trial.size(40, 6), largest=8), *(nested(K) for K in (2, 4, 7))]
    for number, graph in enumerate(graphs):
        K, m = graph.n_arms, float(10 ** rng.uniform(-0.5, 3))
        params = learner.configure(graph, gamma_scale=m)
        state: Any = learner.init(params, graph)
        walk = []
        for t in range(1, trial.size(60, 10) + 1):
            spread = (1.0, 0.1, 0.01)[(number + t) % 3]
            f = (rng.random(K) * spread).round(3)
            p, trace = np.zeros(K), np.zeros(trace_size(learner, K))
            trace[-K:] = f
            learner.distribution(params, state, graph.arrays, Asked.new(t, p, trace))
            gamma, said = (float(trace[learner.traces.index(name)]) for name in ("gamma", "value"))
            walk.append(Predicted(graph, f, gamma, p, said))
        yield walk, m


def _program(each: Predicted) -> Floats:
    """Return what p can lose beyond each arm, less gamma / 4 times the expected squared errors, at the worst means."""
    K = each.f.size
    P = np.maximum(each.p @ each.graph.matrix(), 1e-300)
    off = np.eye(K) - each.p
    return each.p @ each.f - each.f + (off**2 / P).sum(axis=1) / each.gamma  # type: ignore[no-any-return]


def _size(f: Floats, A: npt.NDArray[np.bool_]) -> int:
    """Return how many arms are chosen by ascending prediction, each that no chosen one reveals."""
    chosen: list[int] = []
    for i in np.argsort(f, kind="stable").tolist():
        if not A[chosen, i].any():
            chosen.append(i)
    return len(chosen)
