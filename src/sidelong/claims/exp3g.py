"""Beyond the paper: EXP3.G without a horizon, on graphs that change (learners/exp3g_adaptive.py)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.claims.algorithm import ROUNDING, largest
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.graphs import FeedbackGraph
from sidelong.graphs.domination import weak_cover
from sidelong.learners.interface import Asked, Told, trace_size
from sidelong.theory import exp3_g

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

_PAGE = "docs/bounds.md, 7"


@dataclass(frozen=True)
class _HandPlayed:
    """A game that was played by hand, and what the proof says of it."""

    ftrl: float  #: left / right of the inequality of exponential weights
    costs: list[float]  #: of each round, what it may cost / what b grew by
    rates: list[float]  #: after each round, what b allows / the closed bound


@claim("exp3g-ftrl", "regret of the weights, with the estimate of a rarely seen arm taken away", _PAGE)
def ftrl(trial: Trial) -> Outcome:
    """sum <q_t, x_t> - min_i sum x_(t,i) <= ln K / eta_T + sum eta_t S_t on every path.

    S_t is half of <q_t, x_t^2>, or <q_t, (x_t - x_(t,j))^2> in a round with an arm j as in line 3. With expectations on
    both sides it is the first step of the bound on the regret.
    """
    worst = largest([walk.ftrl for walk in _walks(trial)])
    return Outcome(worst, 1 + ROUNDING, f"left / right up to {worst:.4g} on {len(_walks(trial))} walks", "1")


@claim("exp3g-costs", "what a round may cost is what b grows by", _PAGE)
def costs(trial: Trial) -> Outcome:
    """max_l <p_t - q_t, l> + eta_t E S_t <= ln K (b_(t+1) - b_t) in every round.

    The expectation is over the draw, enumerated, with the largest losses.
    """
    worst = largest([each for walk in _walks(trial) for each in walk.costs])
    return Outcome(worst, 1 + ROUNDING, f"cost / growth up to {worst:.4g}", "1")


@claim("exp3g-rate", "b stays below what the closed bound allows", _PAGE)
def rate(trial: Trial) -> Outcome:
    """ln K (2 b_(T+1) - 8) <= `theory.exp3_g.adaptive` for every T, on every path."""
    worst = largest([each for walk in _walks(trial) for each in walk.rates])
    return Outcome(worst, 1 + ROUNDING, f"ln K (2 b - 8) / bound up to {worst:.4g}", "1")


def _walks(trial: Trial) -> list[_HandPlayed]:
    if "exp3g" not in trial.shared:
        rng = trial.rng("exp3g")
        found = []
        for k in range(trial.size(18, 8)):
            K = int(rng.integers(2, 7))
            kinds = [("clique", "any"), ("clique",), ("any",), ("loops", "any"), ("loops",)][k % 5]
            bank = [_graph(kind, K, rng) for kind in kinds]
            found.append(_walk(trial, bank, trial.size(600, 300), rng, cruel=k % 2 == 0))
        trial.shared["exp3g"] = found
    return trial.shared["exp3g"]  # type: ignore[no-any-return]


def _graph(kind: str, K: int, rng: np.random.Generator) -> FeedbackGraph:
    """Return a clique without self-loops, or a random graph in which every arm is revealed by some arm."""
    if kind == "clique":
        return FeedbackGraph.from_matrix(~np.eye(K, dtype=bool))
    A = rng.random((K, K)) < 0.3
    A[np.diag_indices(K)] |= kind == "loops"
    A[rng.integers(K, size=K), np.arange(K)] |= ~A.any(axis=0)
    return FeedbackGraph.from_matrix(A)


def _walk(trial: Trial, bank: list[FeedbackGraph], T: int, rng: np.random.Generator, *, cruel: bool) -> _HandPlayed:
    """Play on graphs of a bank; where it is cruel, one arm costs nothing and all others 1: weights become uneven."""
    learner, K = trial.exp3_g, bank[0].n_arms
    params = learner.configure(bank[0])
    state: Any = learner.init(params, bank[0])
    best, log_K, X = int(rng.integers(K)), math.log(K), np.zeros(K)
    paid, spread, eta, costs_, rates = 0.0, 0.0, math.inf, list[float](), list[float]()
    for t in range(1, T + 1):
        graph = bank[int(rng.integers(len(bank)))]
        A, p, trace = graph.matrix(), np.zeros(K), np.zeros(trace_size(learner, K))
        learner.distribution(params, state, graph.arrays, Asked.new(t, p, trace))
        b = float(state.b[0])
        step = float(trace[learner.traces.index("learning_rate")])
        eta = step if step <= eta else math.nan  # it must never grow
        q = np.exp(-eta * (X - X.min()))
        q /= q.sum()
        losses = (np.arange(K) != best).astype(float) if cruel else rng.random(K)
        arm, P = int(rng.choice(K, p=p / p.sum())), np.maximum(p @ A, 1e-300)
        reveals = graph.out_neighbors(arm)
        told = np.append(losses[reveals], np.zeros(K - reveals.size))
        learner.update(params, state, graph.arrays, Told.new(t, arm, p, told, trace))
        x = np.where(A[arm], losses / P, 0.0)
        paid, spread, X = paid + float(q @ x), spread + eta * _spread(q, x, A), X + x
        mean = float(p @ [_spread(q, A[i] / P, A) for i in range(K)])
        costs_.append((float(np.maximum(p - q, 0).sum()) + eta * mean) / (log_K * (float(state.b[0]) - b)))
        rates.append(log_K * (2 * float(state.b[0]) - 8) / _bound(bank, t))
    return _HandPlayed((paid - float(X.min())) / (log_K / eta + spread), costs_, rates)


def _spread(q: Floats, x: Floats, A: npt.NDArray[np.bool_]) -> float:
    """Return S of a round: the second moment of the estimates, less that of an arm j as in line 3 if there is one."""
    alone = (q > 0.5) & ~A.diagonal() & (A.sum(axis=0) == q.size - 1)
    return float(q @ (x - x[alone]) ** 2) if alone.any() else float(q @ x**2) / 2


def _bound(bank: list[FeedbackGraph], T: int) -> float:
    K = bank[0].n_arms
    loops = [~np.isin(np.arange(K), graph.arms_without_self_loop) for graph in bank]
    special = any(
        (~each & (graph.matrix().sum(axis=0) == K - 1)).any() for graph, each in zip(bank, loops, strict=True)
    )
    mas = max(int(each.sum()) for each in loops)  # an acyclic set has at most all of them
    d = max(weak_cover(graph).size for graph in bank)
    return exp3_g.adaptive(K=K, T=T, domination=d, acyclic=mas, independence=mas, all_loops=not special)
