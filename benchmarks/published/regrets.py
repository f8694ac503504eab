"""Mean regrets of a published algorithm: with the constants of its source, and as our learner is shipped."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def summary(published: dict[int, float], alike: np.ndarray, shipped: np.ndarray) -> dict[str, Any]:
    """Return what to keep of two arrays with a row for each run, and a column for each published figure."""
    made: dict[str, Any] = {"at": [*published], "published": [*published.values()]}
    for name, regrets in (("alike", alike), ("shipped", shipped)):
        made[name] = regrets.mean(axis=0).tolist()
        made[f"last error, {name}"] = float(regrets[:, -1].std(ddof=1) / math.sqrt(len(regrets)))
    return made


def joined(of: dict[str, Any]) -> tuple[str, str]:
    """Return what is published and what is ours, as a row of the table says it."""
    said = {name: " / ".join(f"{each:,.0f}" for each in of[name]) for name in ("published", "alike", "shipped")}
    alike, shipped = (f"{said[who]} ± {of[f'last error, {who}']:.1f}" for who in ("alike", "shipped"))
    return said["published"], f"{alike}; as shipped {shipped}"
