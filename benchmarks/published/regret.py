"""UCB-N on similar arms (Qi and others, UAI 2024) and EXP3.G on fixed losses: the settings of published_regret.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import published_regret as settings

if TYPE_CHECKING:
    import numpy as np


def _joined(values: np.ndarray | list[float]) -> str:
    return " / ".join(f"{each:,.0f}" for each in values)


def rows() -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    theirs = {"width": 1.0, "delta": 1 / (math.sqrt(2) * 10_000**2), "unseen": 1.0}
    alike, shipped = (settings.ucb_n(**options).mean(axis=0) for options in (theirs, {}))
    setting = "UCB-N, 1,000 similar arms, regret at t = " + " / ".join(f"{t:,}" for t in settings.UCB_N)
    ours = f"{_joined(alike)}; as shipped {_joined(shipped)}"
    found = [("Qi and others, UAI 2024", setting, _joined([*settings.UCB_N.values()]), ours)]
    for kind, published in (("strong", settings.STRONG), ("weak", settings.WEAK)):
        both = [settings.exp3_g([*published], weak=kind == "weak", own=own) for own in (False, True)]
        alike, shipped = ([float(each.mean()) for each in regrets] for regrets in both)
        setting = f"EXP3.G, {kind}ly observable graph, regret after T = " + " / ".join(f"{t:,}" for t in published)
        ours = f"{_joined(alike)}; as shipped {_joined(shipped)}"
        found.append(("debrajk22, on Alon and others 2015", setting, _joined([*published.values()]), ours))
    return found
