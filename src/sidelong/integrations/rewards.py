"""Rewards, which others have, and losses, which learners are told."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from sidelong.errors import LossError

__all__ = ["check_range", "to_loss"]


def check_range(rewards: Any) -> tuple[float, float]:
    """Return the smallest and the largest reward, as given, if they are such."""
    try:
        low, high = map(float, () if isinstance(rewards, str) else rewards)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (low < high and math.isfinite(high - low)):
        raise LossError(f"rewards must be the smallest and the largest reward, as in (0, 1), not {rewards!r}.")
    return low, high


def to_loss(reward: Any, rewards: tuple[float, float], arm: Any) -> float:
    """Return the loss of a reward: 0 for the largest, 1 for the smallest."""
    low, high = rewards
    number = isinstance(reward, Real) or getattr(reward, "ndim", None) == 0
    value = float(reward) if number else math.nan
    if not low <= value <= high:
        raise LossError(
            f"The reward of arm {arm} must be a number from {low:g} to {high:g}, not {reward!r}. "
            f"Give the true range with rewards=(smallest, largest); nothing is ever clipped."
        )
    return (high - value) / (high - low)
