"""Stopping times of track-and-stop (Russo, Song, Pacchiano, AISTATS 2025): the settings of benchmarks/stopping.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import stopping

RUNS = 20


def play() -> dict[str, Any]:
    """Return mean rounds until it stops with their standard errors, published and ours, by graph."""
    found = {}
    for name, (graph, rewards, published, _) in stopping.CASES.items():
        times = [stopping.stopping_times(graph, rewards, (1.0,), seed)[0][0] for seed in range(RUNS)]
        ours = [float(np.mean(times)), float(np.std(times, ddof=1) / math.sqrt(RUNS))]
        found[name] = {"published": list(published), "ours": ours}
    return found


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    made = []
    for name, of in found.items():
        published, ours = (f"{mean:,.0f} ± {error:,.0f}" for mean, error in (of["published"], of["ours"]))
        setting = f"TaS-FG, {name}, five arms, δ = 1/e: rounds until it stops"
        made.append(("Russo and others, AISTATS 2025", setting, published, ours))
    return made
