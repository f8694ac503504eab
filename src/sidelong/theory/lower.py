r"""What no learner can do better than: lower bounds.

Against an adversary, S. Mannor, O. Shamir, "From Bandits to Experts: On the Value of Side-Observations", NIPS 2011,
Theorem 4. In a stochastic world, S. Buccapatnam, A. Eryilmaz, N. Shroff, "Stochastic Bandits with Side Observations on
Networks", SIGMETRICS 2014: the regret of any learner that is good in every such world, over ln T, tends to c* or more.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.errors import TheoryError
from sidelong.theory.checks import horizon, number

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

_MOST_EDGES = 1_000_000


def adversarial_floor(*, T: float, independence: float) -> float | None:
    """Return 0.06 sqrt(alpha T): for any learner there is an adversary that makes it regret this much.

    None where the theorem is silent: for T below 374 alpha^3, and where alpha is 1. `independence` may be any number
    up to alpha.
    """
    T, alpha = horizon(T), number("independence", independence, least=1)
    if alpha < 2 or adversarial_floor_from(independence=alpha) > T:
        return None
    return 0.06 * math.sqrt(alpha * T)


def adversarial_floor_from(*, independence: float) -> float:
    """Return 374 alpha^3, the number of rounds from which `adversarial_floor` holds."""
    return 374 * number("independence", independence, least=1) ** 3


def relative_entropy(p: float, q: float) -> float:
    """Return the relative entropy of two Bernoulli distributions: p ln(p/q) + (1-p) ln((1-p)/(1-q))."""
    p, q = number("p", p, least=0, most=1), number("q", q, least=0, most=1)
    if q in {0.0, 1.0}:
        return 0.0 if p == q else math.inf
    return _term(p, q) + _term(1 - p, 1 - q)


class StochasticConstant(NamedTuple):
    """The constant c* of the lower bound, between two certified values."""

    value: float  #: what `prices` prove: c* is not below it
    upper: float  #: what `plays` prove: c* is not above it
    plays: npt.NDArray[np.float64]  #: how often to play each arm that is not best, over ln T
    prices: npt.NDArray[np.float64]  #: what an observation of each arm is worth


def c_star(graph: FeedbackGraph, means: npt.ArrayLike) -> StochasticConstant:
    """Return c*: in the world of Bernoulli losses with these means, no good learner's regret stays below c* ln T.

    The linear program: minimise sum_i gap_i w_i over w >= 0, such that for each arm i that is not best the arms that
    reveal it have a sum of w of at least 1 / KL(mean_i, mean of the best). Playing a best arm is free, so c* is 0 if
    the best arms reveal all others. Solved by HiGHS; its solution and its dual are scaled until they prove the values.

    Args:
        graph: the graph of all rounds.
        means: the mean loss of each arm.

    """
    mu = np.array(means, np.float64)
    if mu.shape != (graph.n_arms,) or not ((mu >= 0) & (mu <= 1)).all():
        raise TheoryError(f"means are {graph.n_arms} numbers from 0 to 1, one for each arm.")
    if graph.observability.kind == "none":
        raise TheoryError(f"c* is for graphs whose arms can all be learned about. {graph.observability}")
    if graph.n_edges > _MOST_EDGES:
        raise TheoryError(f"c* is computed for at most {_MOST_EDGES:,} edges, and {graph!r} has more.")
    gap = mu - mu.min()
    reveals = graph.to_scipy().astype(np.float64)
    seen_for_free = np.asarray(reveals[gap == 0].sum(axis=0)).ravel() > 0
    need = np.array([0.0 if g == 0 else 1 / relative_entropy(m, mu.min()) for m, g in zip(mu, gap, strict=True)])
    need[seen_for_free] = 0.0
    plays, prices = np.zeros(mu.size), np.zeros(mu.size)
    rows, columns = np.flatnonzero(gap > 0), np.flatnonzero(need > 0)
    if not columns.size:
        return StochasticConstant(0.0, 0.0, plays, prices)
    A, unit = reveals[rows][:, columns].tocsc(), float(need.max())  # HiGHS works to absolute tolerances
    cost = gap[rows] / gap.max()
    from scipy import optimize  # noqa: PLC0415  # it takes a while to load

    found = optimize.linprog(cost, A_ub=-A.T, b_ub=-need[columns] / unit, bounds=(0, None), method="highs")
    if found.x is None:
        raise TheoryError(f"The linear program of c* was not solved: {found.message}")
    w, y = np.maximum(found.x, 0.0) * unit, np.maximum(-found.ineqlin.marginals, 0.0) * gap.max()
    plays[rows] = w / (A.T @ w / need[columns]).min()
    prices[columns] = y / max(1.0, float((A @ y / gap[rows]).max()))
    value, upper = float(prices @ need), float(plays @ gap)
    return StochasticConstant(min(value, upper), upper, plays, prices)


def _term(a: float, b: float) -> float:
    """Return a ln(a/b) - a + b, also where the two are close, in which case its leading terms cancel."""
    if a == 0.0 or abs(b - a) > 0.1 * a:
        return (a * math.log(a / b) if a > 0 else 0.0) - a + b
    x = (b - a) / a
    total, power, k = 0.0, x * x, 2  # x - ln(1 + x) = x^2/2 - x^3/3 + ...
    while abs(power) > 1e-18 * abs(total):
        total += power / k
        power, k = -power * x, k + 1
    return a * total
