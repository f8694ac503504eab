"""Stopping times of track-and-stop (Russo, Song, Pacchiano, AISTATS 2025): the settings of benchmarks/stopping.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import stopping

RUNS = 50


def play() -> dict[str, Any]:
    """Return for delta = e^-1 and e^-7 the mean rounds with their standard errors, and the share of right answers."""
    found = {}
    for name, (graph, rewards, *published) in stopping.CASES.items():
        runs = np.array([stopping.stopping_times(graph, rewards, (1.0, 7.0), seed) for seed in range(RUNS)])
        means, right = runs.mean(axis=0).T
        errors = runs[:, :, 0].std(axis=0, ddof=1) / math.sqrt(RUNS)
        ours = np.column_stack([means, errors]).tolist()
        found[name] = {"published": [list(each) for each in published], "ours": ours, "right": right.tolist()}
    return found


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    made = []
    for name, of in found.items():
        published, ours = (
            " / ".join(f"{mean:,.0f} ± {error:,.0f}" for mean, error in of[whose]) for whose in ("published", "ours")
        )
        right = " / ".join(f"{share:.0%}".replace("%", " %") for share in of["right"])
        setting = f"TaS-FG, {name}, five arms, rounds until it stops with δ = e⁻¹ / e⁻⁷"
        made.append(("Russo and others, AISTATS 2025", setting, published, f"{ours}; right answers {right}"))
    return made
