"""A graph, its numbers and the gaps of a world: what the bounds of learners are made of.

A number of a graph may be known only as an interval. A bound on the regret then uses the upper end, and a lower bound
the lower one, so that both stay true.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.errors import GraphError, TheoryError
from sidelong.graphs.cover import greedy_cover
from sidelong.graphs.domination import greedy_dominating_set, loopless_cover, weak_cover
from sidelong.graphs.observability import self_loop_subgraph
from sidelong.theory.checks import Gaps, at_least_two, read_gaps

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph


class NumberRange(NamedTuple):
    """Where a number of a graph lies."""

    lower: int
    upper: int


class Setting:
    """A graph with self-loops or without, its numbers, and the gaps of a stochastic world if they are given."""

    def __init__(
        self, graph: FeedbackGraph, gaps: npt.ArrayLike | None = None, *, budget: float = 10.0, as_printed: bool = False
    ) -> None:
        self.graph = graph
        self.K = at_least_two(graph.n_arms)
        self._gaps = None if gaps is None else read_gaps(gaps)
        if self._gaps is not None and self._gaps.K != self.K:
            raise TheoryError(f"There is one gap for each arm: {self.K} arms, and {self._gaps.K} gaps.")
        self.as_printed = as_printed
        self.intervals: dict[str, tuple[float, float]] = {}  #: the numbers used that are not known exactly
        self._budget = budget
        self._numbers = graph.numbers(budget)

    @property
    def best_arms(self) -> int:
        """How many arms have gap 0; 0 if no gaps are given."""
        return 0 if self._gaps is None else self.K - len(self._gaps.positive)

    @property
    def gaps(self) -> Gaps:
        """The gaps of all arms."""
        if self._gaps is None:
            raise TheoryError("A bound in a stochastic world needs gaps: one for each arm, 0 for the best.")
        return self._gaps

    @cached_property
    def independence(self) -> NumberRange:
        """The independence number."""
        return self._known("independence", 1, self.K)

    @cached_property
    def acyclic(self) -> int:
        """The size of the largest acyclic set, or more."""
        return self._known("acyclic", self.independence.lower, self.strong_independence).upper

    @cached_property
    def strong_independence(self) -> int:
        """The strong independence number, or more."""
        return self._known("strong_independence", self.independence.lower, self.K).upper

    @cached_property
    def fractional_domination(self) -> float:
        """The fractional domination number, or more."""
        try:
            found = self._numbers.fractional_domination
        except GraphError:
            self.intervals["fractional domination"] = (1.0, float(self.cover))
            return float(self.cover)
        if not found.exact:
            self.intervals["fractional domination"] = (found.lower, found.upper)
        return max(1.0, found.upper)

    @cached_property
    def cover(self) -> int:
        """The size of the greedy cover."""
        return greedy_cover(self.graph).size

    @cached_property
    def loopless_cover(self) -> int:
        """How many arms luo-2023 takes to reveal those that do not reveal themselves."""
        return loopless_cover(self.graph).size

    @cached_property
    def weak_cover(self) -> int:
        """How many arms exp3.g takes to reveal the weakly observable ones."""
        return weak_cover(self.graph).size

    @cached_property
    def loop_independence(self) -> NumberRange:
        """The independence number among the arms that reveal themselves."""
        part = self_loop_subgraph(self.graph)
        if part is None:
            return NumberRange(0, 0)
        try:
            found = part.numbers(self._budget).independence
        except GraphError:  # the graph is too large for it
            return NumberRange(1, part.n_arms)
        return NumberRange(found.lower, found.upper)

    @cached_property
    def revealed(self) -> int:
        """The largest number of arms that a play reveals."""
        return int((self.graph.arrays.stop - self.graph.arrays.start).max())

    @cached_property
    def dominating(self) -> int:
        """The size of the greedy dominating set of EXP3-DOM."""
        return greedy_dominating_set(self.graph).size

    @cached_property
    def groups(self) -> npt.NDArray[np.int64]:
        """Groups in which all arms reveal each other: a clique cover, the smallest if there was time to find it."""
        try:
            return self._numbers.clique_cover.certificate
        except GraphError:
            return np.arange(self.K)

    @cached_property
    def inverse_gap_sum(self) -> float:
        """The largest sum of 1 / gap over strongly independent sets, or more."""
        gaps = self.gaps
        weights = np.divide(1.0, gaps.all, out=np.zeros(self.K), where=gaps.all > 0)
        try:
            found = self._numbers.weighted_strong_independence(weights)
        except GraphError:
            self.intervals["sum of 1 / gap"] = (1 / gaps.least, gaps.inverse_sum)
            return gaps.inverse_sum
        if not found.exact:
            self.intervals["sum of 1 / gap"] = (found.lower, found.upper)
        return min(found.upper, gaps.inverse_sum)

    def _known(self, name: str, least: int, most: int) -> NumberRange:
        try:
            found = getattr(self._numbers, name)
        except GraphError:  # the graph is too large for it
            lower, upper = least, most
        else:
            lower, upper = max(found.lower, least), min(found.upper, most)
        if lower < upper:
            self.intervals[name.replace("_", " ")] = (lower, upper)
        return NumberRange(lower, upper)
