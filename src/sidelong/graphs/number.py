"""A number of a graph: an interval, and certificates of both ends that can be checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from sidelong.errors import GraphError
from sidelong.graphs import certificates
from sidelong.graphs.certificates import Cover, Shares

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.graphs.arrays import Integers, Reals
    from sidelong.graphs.graph import FeedbackGraph


_CLOSE = 2e-6  # what HiGHS leaves open, of a number that need not be whole

_CHECKS: dict[str, tuple[Callable[[FeedbackGraph, Integers], bool], certificates.Joined]] = {
    "independence": (certificates.is_independent, "either"),
    "acyclic": (certificates.is_acyclic, "mutual"),
    "strong_independence": (certificates.is_strongly_independent, "mutual"),
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
            cover_holds = certificates.covers(graph, self.dual, joined, cycles=self.kind == "acyclic")
            size, holds = self.lower, cover_holds and is_one(graph, self.certificate)
        elif isinstance(self.dual, Shares):
            targets = graph.observability.weak_arms if self.kind == "weak_domination" else None
            packing_holds = certificates.packs(graph, self.dual, targets)
            size, holds = self.upper, packing_holds and certificates.dominates(graph, self.certificate, targets)
        else:
            set_holds = certificates.is_strongly_independent(graph, self.dual)
            size, holds = self.upper, set_holds and certificates.is_clique_cover(graph, self.certificate)
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
            return self.certificate.bound <= Fraction(self.upper) and certificates.covers(
                graph, self.certificate, "mutual"
            )
        if isinstance(self.certificate, Shares):
            return (
                isinstance(self.dual, Shares)
                and self.certificate.total <= Fraction(self.upper)
                and self.dual.total >= Fraction(self.lower)
                and certificates.dominates_in_shares(graph, self.certificate)
                and certificates.packs(graph, self.dual)
            )
        return (
            isinstance(self.dual, Cover)
            and self.weights is not None
            and certificates.is_strongly_independent(graph, self.certificate)
            and sum(map(Fraction, self.weights[self.certificate].tolist())) >= Fraction(self.lower)
            and at_least(self.dual.bound) >= self.upper
            and certificates.covers(graph, self.dual, "mutual", weights=self.weights)
        )

    def __str__(self) -> str:
        return f"{self.value:.6g}" if self.exact else f"{self.lower:.6g} to {self.upper:.6g}"


def at_least(exact: Fraction) -> float:
    """Return the least float that is not below."""
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


def at_most(exact: Fraction) -> float:
    """Return the greatest float that is not above."""
    return -at_least(-exact)
