"""Costs and scores of one's own, as losses in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import plain, short
from sidelong.errors import LearnerError, OutcomeError
from sidelong.outcomes.revealed import number
from sidelong.tables import in_order

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Scale:
    """The range of your own numbers: `best` becomes a loss of 0, and `worst` becomes a loss of 1.

    Give it to an agent, and `tell` takes your numbers. The agent keeps the scale, also in its file, and refuses numbers
    outside of it. A scale that followed the data would change the meaning of what was learned. The losses of
    `StockOrders` and `FirstPrice` are in [0, 1] already: an agent that is told these has no scale.

    Args:
        best: the smallest cost, or the highest score, that can come.
        worst: the largest cost, or the lowest score, that can come.

    Example:
        >>> import sidelong as sl
        >>> euros = sl.outcomes.Scale(best=0, worst=250)
        >>> agent = sl.Agent("glance", sl.graphs.self_loops(3), scale=euros)
        >>> decision = agent.ask()
        >>> agent.tell(decision, {decision.arm: 80.0})  # a loss of 0.32
        True
        >>> points = sl.outcomes.Scale(best=100, worst=0)  # of a score, more is better
        >>> points.losses([100, 75, 0])
        [0.0, 0.25, 1.0]
    """

    best: float
    worst: float

    def __post_init__(self) -> None:
        for name, value in (("best", self.best), ("worst", self.worst)):
            object.__setattr__(self, name, number(name, value))
        if self.best == self.worst or not np.isfinite(self.worst - self.best):
            raise OutcomeError(f"A scale needs two ends some way apart, not best={self.best!r}, worst={self.worst!r}.")

    def losses(self, values: Any) -> Any:
        """Return the losses of one's own numbers, by arm or in their order, as they were given.

        Raises:
            OutcomeError: if one of them is not a number of the scale; it names the arm, or the place in the list.
        """
        if isinstance(values, Mapping):
            return {arm: self._loss(f"of arm {arm}", value) for arm, value in values.items()}
        if in_order(values):
            return [self._loss(f"at place {place}", value) for place, value in enumerate(values)]
        raise OutcomeError(f"Values must be given by arm, or as a list, not {values!r}.")

    def values(self, losses: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return losses as one's own numbers, such as those of `Agent.estimates`."""
        return self.best + np.asarray(losses, np.float64) * (self.worst - self.best)

    def _loss(self, where: str, value: Any) -> float:
        low, high = min(self.best, self.worst), max(self.best, self.worst)
        if not low <= plain(value) <= high:
            raise OutcomeError(
                f"The value {where} must be a number from {low:g} to {high:g}, the ends of its scale, not "
                f"{short(value)}. It is not clipped. If such values do come, start again with a wider scale."
            )
        return (float(value) - self.best) / (self.worst - self.best) + 0.0  # not -0.0


def ends_of(scale: Scale | None) -> tuple[float, float]:
    """Return the best and the worst number that can be told: those of losses, if there is no scale."""
    return (0.0, 1.0) if scale is None else (scale.best, scale.worst)


def checked_scale(scale: Any) -> Scale | None:
    """Return what an agent was given as its scale, if it is one or None."""
    if scale is not None and not isinstance(scale, Scale):
        raise LearnerError(f"scale must be a sidelong.outcomes.Scale, not {scale!r}.")
    return scale
