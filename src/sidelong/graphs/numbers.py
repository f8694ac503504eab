"""Numbers of a graph on which regret depends. Most are NP-hard, so each comes as an interval with certificates.

=============================  ==============================================================================
independence                   the most arms with no edge between any two
acyclic                        the most arms with no directed cycle among them
strong_independence            the most arms no two of which reveal each other
weighted_strong_independence   the same with a weight for each arm: the largest sum
domination                     the fewest arms that together reveal all
weak_domination                the fewest arms that together reveal all that are only weakly observable
clique_cover                   the fewest groups, in each of which all arms reveal each other
fractional_domination          the same as domination in fractions of arms: a lower bound on it
fractional_clique_cover        the same as clique_cover in fractions of groups: a lower bound on it
=============================  ==============================================================================

Self-loops count for the two kinds of domination only. Always independence <= acyclic <= strong_independence <=
fractional_clique_cover <= clique_cover. Where edges go both ways the first three are equal, and domination <=
independence if every arm reveals itself too.

Each has a budget in seconds, ten if not given. When it ends, the interval found so far is the answer. To compile, at
the first call on a machine, and to load do not count. Intervals are computed exactly, without listing an edge, where
that is possible: always for independence and domination; for the others if both ends ascend with the arm, or if all
edges go both ways. Other graphs may have up to five million edges.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from sidelong.errors import GraphError
from sidelong.graphs import checkers, solvers
from sidelong.graphs.checkers import Cover, Shares
from sidelong.graphs.solvers.budget import Budget
from sidelong.graphs.solvers.groups import Found, Groups

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sidelong.graphs.arrays import Integers, Reals
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.graphs.solvers.groups import WeightedGroups


__all__ = ["GraphNumber", "GraphNumbers", "RealGraphNumber"]

_MOST_EDGES = 5_000_000
_UNIT = 2**32  # of covers in parts
_CLOSE = 2e-6  # what HiGHS leaves open, of a number that need not be whole

_CHECKS: dict[str, tuple[Callable[[FeedbackGraph, Integers], bool], checkers.Joined]] = {
    "independence": (checkers.is_independent, "either"),
    "acyclic": (checkers.is_acyclic, "mutual"),
    "strong_independence": (checkers.is_strongly_independent, "mutual"),
}

Kind = Literal["independence", "acyclic", "strong_independence", "domination", "weak_domination", "clique_cover"]
RealKind = Literal["weighted_strong_independence", "fractional_domination", "fractional_clique_cover"]


@dataclass(frozen=True, eq=False)
class GraphNumber:
    """A number of a graph, known to lie from `lower` to `upper`.

    The certificate of a largest set is the set, ascending, and proves `lower`; that of a smallest one proves `upper`.
    Of the clique cover it is the number of each arm's group. The dual proves a bound on the other side: a cover for
    largest sets, a packing for domination, and a strongly independent set for the clique cover. That bound may be
    weaker than the number's own, where a search has closed the gap.
    """

    lower: int
    upper: int
    certificate: Integers
    kind: Kind = "independence"
    dual: Cover | Shares | Integers | None = None
    seconds: float = 0.0  #: the time spent, without compilation

    @property
    def value(self) -> int | None:
        """The number, where it is known exactly."""
        return self.lower if self.exact else None

    @property
    def exact(self) -> bool:
        """Whether the number is known exactly."""
        return self.lower == self.upper

    @property
    def proved(self) -> tuple[int, int]:
        """What the certificate and the dual alone prove: a lower and an upper value."""
        if self.dual is None:
            raise GraphError("This number has no dual.")
        if isinstance(self.dual, Cover):
            return self.lower, math.floor(self.dual.bound)
        if isinstance(self.dual, Shares):
            return math.ceil(self.dual.total), self.upper
        return self.dual.size, self.upper

    def holds_for(self, graph: FeedbackGraph) -> bool:
        """Check the certificate and the dual; tell whether they prove what they should, for this graph."""
        if self.dual is None:
            return False
        if isinstance(self.dual, Cover):
            is_one, joined = _CHECKS[self.kind]
            cover_holds = checkers.covers(graph, self.dual, joined, cycles=self.kind == "acyclic")
            size, holds = self.lower, cover_holds and is_one(graph, self.certificate)
        elif isinstance(self.dual, Shares):
            targets = graph.observability.weak_arms if self.kind == "weak_domination" else None
            packing_holds = checkers.packs(graph, self.dual, targets)
            size, holds = self.upper, packing_holds and checkers.dominates(graph, self.certificate, targets)
        else:
            set_holds = checkers.is_strongly_independent(graph, self.dual)
            size, holds = self.upper, set_holds and checkers.is_clique_cover(graph, self.certificate)
        return (
            holds
            and np.unique(self.certificate).size == size
            and self.proved[0] <= self.lower <= self.upper <= self.proved[1]
        )

    def __str__(self) -> str:
        return str(self.value) if self.exact else f"{self.lower} to {self.upper}"


@dataclass(frozen=True, eq=False)
class RealGraphNumber:
    """A number of a graph that need not be whole, known to lie from `lower` to `upper`.

    Of weighted strong independence, the certificate is a set of arms whose weights sum to `lower`, and the dual a
    cover. Of fractional domination, the certificate is a share of each arm, and the dual a packing. Of the fractional
    clique cover the certificate is a cover; its lower bound rests on a search, and there is no dual.
    """

    lower: float
    upper: float
    certificate: Integers | Shares | Cover
    kind: RealKind
    dual: Cover | Shares | None
    seconds: float  #: the time spent, without compilation
    weights: Reals | None = None  #: of the arms

    @property
    def value(self) -> float | None:
        """The number, where it is known to within two millionths: the side that the certificate proves."""
        if not self.exact:
            return None
        return self.lower if self.kind == "weighted_strong_independence" else self.upper

    @property
    def exact(self) -> bool:
        """Whether the number is known to within two millionths."""
        return self.upper - self.lower <= _CLOSE * self.upper

    def holds_for(self, graph: FeedbackGraph) -> bool:
        """Check the certificate and the dual; tell whether they prove what they should, for this graph."""
        if not self.lower <= self.upper:
            return False
        if isinstance(self.certificate, Cover):
            return self.certificate.bound <= Fraction(self.upper) and checkers.covers(graph, self.certificate, "mutual")
        if isinstance(self.certificate, Shares):
            return (
                isinstance(self.dual, Shares)
                and self.certificate.total <= Fraction(self.upper)
                and self.dual.total >= Fraction(self.lower)
                and checkers.dominates_in_shares(graph, self.certificate)
                and checkers.packs(graph, self.dual)
            )
        return (
            isinstance(self.dual, Cover)
            and self.weights is not None
            and checkers.is_strongly_independent(graph, self.certificate)
            and sum(map(Fraction, self.weights[self.certificate].tolist())) >= Fraction(self.lower)
            and _at_least(self.dual.bound) >= self.upper
            and checkers.covers(graph, self.dual, "mutual", weights=self.weights)
        )

    def __str__(self) -> str:
        return f"{self.value:.6g}" if self.exact else f"{self.lower:.6g} to {self.upper:.6g}"


class GraphNumbers:
    """The numbers of a graph, each computed when it is first asked for, with a budget of its own.

    Of numbers that are equal by theory one is computed, and stands for the others.
    """

    def __init__(self, graph: FeedbackGraph, budget: float = 10.0) -> None:
        self._graph = graph
        self._budget = budget
        Budget(budget)  # to refuse it now, if it is none

    @functools.cached_property
    def independence(self) -> GraphNumber:
        """The most arms with no edge between any two."""
        graph, time = self._graph, Budget(self._budget)
        if checkers.on_intervals(graph):
            return _largest("independence", solvers.on_intervals.largest_independent(graph.arrays, _UNIT), time)
        _refuse_many_edges(graph, "The independence number")
        found = solvers.packing.heaviest_set(solvers.conflicts.either(graph), np.full(graph.n_arms, _UNIT), time)
        return _largest("independence", found, time)

    @functools.cached_property
    def acyclic(self) -> GraphNumber:
        """The most arms with no directed cycle among them."""
        graph = self._graph
        if _every_cycle_has_a_pair(graph):
            return replace(self.strong_independence, kind="acyclic")
        _refuse_many_edges(graph, "The largest acyclic set")
        time = Budget(self._budget)
        return _largest("acyclic", solvers.acyclic.largest_acyclic(graph.to_scipy(), _UNIT, time), time)

    @functools.cached_property
    def strong_independence(self) -> GraphNumber:
        """The most arms no two of which reveal each other."""
        graph, time = self._graph, Budget(self._budget)
        if graph.is_undirected:
            return replace(self.independence, kind="strong_independence")
        if _ascends(graph):
            found = solvers.on_intervals.heaviest_on_ascending(graph.arrays, np.full(graph.n_arms, _UNIT))
            return _largest("strong_independence", found, time)
        _refuse_many_edges(graph, "The strong independence number")
        found = solvers.packing.heaviest_set(solvers.conflicts.mutual(graph), np.full(graph.n_arms, _UNIT), time)
        return _largest("strong_independence", found, time)

    def weighted_strong_independence(self, weights: npt.ArrayLike) -> RealGraphNumber:
        """Return the largest sum of weights over sets of arms no two of which reveal each other.

        With 1 / gap as the weight of each arm that is not the best, it is the leading term of EXP3.G++'s bound in
        stochastic worlds.

        Args:
            weights: one for each arm, none negative.
        """
        graph = self._graph
        try:
            w = np.array(weights, np.float64)
        except (TypeError, ValueError) as error:
            raise GraphError(f"weights cannot be read as numbers: {error}.") from error
        if w.shape != (graph.n_arms,) or not ((w >= 0) & (w < np.inf)).all():
            raise GraphError(f"weights are {graph.n_arms} numbers, one for each arm, finite and none negative.")
        w.setflags(write=False)
        time = Budget(self._budget)
        # In whole numbers, rounded up: no set weighs more than the whole numbers say.
        bits = 44 - math.frexp(w.max())[1]
        unit = 2**bits if bits >= 0 else 2.0**bits
        whole = np.ceil(np.ldexp(w, bits)).astype(np.int64)
        some = np.flatnonzero(whole)
        if _ascends(graph):
            found = solvers.on_intervals.heaviest_on_ascending(graph.arrays, whole)
        elif not some.size:
            found = Found(some, 0, 0, Groups(np.zeros(1, np.int64), some).weighing(some))
        else:
            _refuse_many_edges(graph, "The weighted strong independence number")
            conflicts = solvers.conflicts.mutual(graph).induced(some)
            found = solvers.packing.heaviest_set(conflicts, whole[some], time).among(some)
        least = sum(map(Fraction, w[found.arms].tolist()), Fraction(0))
        most = max(least, Fraction(found.upper) / Fraction(unit))
        return RealGraphNumber(
            _at_most(least),
            _at_least(most),
            found.arms,
            "weighted_strong_independence",
            _cover(found.cover, unit),
            time.spent,
            w,
        )

    @functools.cached_property
    def domination(self) -> GraphNumber:
        """The fewest arms that together reveal all."""
        return self._smallest_dominating("domination", np.arange(self._graph.n_arms))

    @functools.cached_property
    def weak_domination(self) -> GraphNumber:
        """The fewest arms that together reveal all that are only weakly observable.

        It is 0 in a strongly observable graph, as one is in which every arm reveals itself. Alon, Cesa-Bianchi, Dekel
        and Koren (2015) show that regret on a weakly observable graph grows with its third root.
        """
        weak = self._graph.observability.weak_arms
        if weak.size == self._graph.n_arms:
            return replace(self.domination, kind="weak_domination")
        return self._smallest_dominating("weak_domination", weak)

    def _smallest_dominating(self, kind: Literal["domination", "weak_domination"], targets: Integers) -> GraphNumber:
        graph = self._graph
        _refuse_undominated(graph, "The domination number")
        time = Budget(self._budget)
        if not targets.size:
            return GraphNumber(0, 0, targets, kind, Shares(np.zeros(graph.n_arms, np.int64), 1), time.spent)
        arms, lower, packing = solvers.covering.fewest_arms(graph.arrays, targets, time)
        return GraphNumber(lower, arms.size, arms, kind, packing, time.spent)

    @functools.cached_property
    def fractional_domination(self) -> RealGraphNumber:
        """The least sum of shares of arms such that those that reveal it sum to 1 or more, for every arm."""
        graph = self._graph
        _refuse_undominated(graph, "The fractional domination number")
        time = Budget(self._budget)
        shares, packing = solvers.covering.relax(graph.arrays, np.arange(graph.n_arms), time)
        lower, upper = _at_most(packing.total), _at_least(shares.total)
        return RealGraphNumber(lower, upper, shares, "fractional_domination", packing, time.spent)

    @functools.cached_property
    def clique_cover(self) -> GraphNumber:
        """The fewest groups, in each of which all arms reveal each other."""
        time = Budget(self._budget)
        found = self._fewest_cliques(time, "The clique cover number", whole=True)
        size = np.diff(found.cover.start)
        group = np.empty(self._graph.n_arms, np.int64)
        group[found.cover.arms] = np.repeat(np.arange(size.size), size)
        return GraphNumber(found.lower // _UNIT, size.size, group, "clique_cover", found.arms, time.spent)

    @functools.cached_property
    def fractional_clique_cover(self) -> RealGraphNumber:
        """The least sum of shares of groups in which all arms reveal each other, such that each arm is in 1 or more.

        It lies between the strong independence number and the clique cover number.
        """
        time = Budget(self._budget)
        found = self._fewest_cliques(time, "The fractional clique cover number", whole=False)
        certificate = _cover(found.cover, _UNIT)
        lower, upper = _at_most(Fraction(found.lower, _UNIT)), _at_least(certificate.bound)
        return RealGraphNumber(lower, upper, certificate, "fractional_clique_cover", None, time.spent)

    def _fewest_cliques(self, time: Budget, what: str, *, whole: bool) -> Found:
        graph = self._graph
        # On these intervals there is a cover with as many cliques as a largest set has arms.
        if _ascends(graph):
            return solvers.on_intervals.heaviest_on_ascending(graph.arrays, np.full(graph.n_arms, _UNIT))
        if checkers.on_intervals(graph) and graph.is_undirected:
            return solvers.on_intervals.largest_independent(graph.arrays, _UNIT)
        _refuse_many_edges(graph, what)
        return solvers.clique_cover.fewest_cliques(solvers.conflicts.mutual(graph), _UNIT, time, whole=whole)

    def __repr__(self) -> str:
        return f"<GraphNumbers of {self._graph!r}, {self._budget:g} seconds each>"


def _ascends(graph: FeedbackGraph) -> bool:
    """Tell whether every arm reveals an interval that it is in, both ends of which ascend with the arm."""
    return checkers.on_intervals(graph) and solvers.on_intervals.ascend(graph.arrays)


def _every_cycle_has_a_pair(graph: FeedbackGraph) -> bool:
    """Tell whether two arms of every directed cycle are known to reveal each other."""
    if graph.is_undirected or checkers.on_intervals(graph):  # of intervals, see checkers.is_acyclic
        return True
    return graph.n_edges <= _MOST_EDGES and solvers.acyclic.every_cycle_has_a_pair(graph.to_scipy())


def _refuse_many_edges(graph: FeedbackGraph, what: str) -> None:
    if graph.n_edges > _MOST_EDGES:
        raise GraphError(f"{what} is computed for at most {_MOST_EDGES:,} edges, and {graph!r} has more.")


def _refuse_undominated(graph: FeedbackGraph, what: str) -> None:
    lacking = graph.observability.unobservable_arms
    if lacking.size:
        raise GraphError(f"No set of arms dominates {graph!r}: no arm reveals arm {lacking[0]}.")
    if not graph.arrays.contiguous:
        _refuse_many_edges(graph, what)


def _largest(kind: Kind, found: Found, time: Budget) -> GraphNumber:
    return GraphNumber(found.arms.size, found.upper // _UNIT, found.arms, kind, _cover(found.cover, _UNIT), time.spent)


def _cover(groups: WeightedGroups, unit: float) -> Cover:
    return Cover(groups.start, groups.arms, groups.most > 1, groups.weight, unit)


def _at_least(exact: Fraction) -> float:
    """Return the least float that is not below."""
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


def _at_most(exact: Fraction) -> float:
    """Return the greatest float that is not above."""
    return -_at_least(-exact)
