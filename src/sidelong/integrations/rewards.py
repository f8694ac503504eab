"""Rewards, which others have: a scale whose best end is the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sidelong.checks import short
from sidelong.errors import LossError, OutcomeError
from sidelong.outcomes.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping


def scale_of(rewards: Any) -> Scale:
    """Return the scale of the smallest and the largest reward, as given, if they are such."""
    try:
        low, high = rewards
        scale = Scale(best=high, worst=low)  # which refuses the letters of a text
    except (TypeError, ValueError):
        scale = Scale(best=0, worst=1)
    if scale.worst > scale.best:
        raise LossError(f"rewards must be the smallest and the largest reward, as in (0, 1), not {short(rewards)}.")
    return scale


def losses_of(rewards: Mapping[Any, Any], scale: Scale) -> dict[Any, float]:
    """Return the losses of rewards, by arm: 0 for the largest of the scale, 1 for the smallest."""
    try:
        return scale.losses(rewards)  # type: ignore[no-any-return]
    except OutcomeError as error:
        raise LossError(f"{error} Give it with rewards=(smallest, largest).") from None
