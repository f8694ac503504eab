"""Stopping times of track-and-stop (Russo, Song, Pacchiano, AISTATS 2025): the settings of benchmarks/stopping.py."""

from __future__ import annotations

import math

import numpy as np
import stopping

RUNS = 20


def rows() -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    found = []
    for name, (graph, rewards, (mean, error), _) in stopping.CASES.items():
        times = [stopping.stopping_times(graph, rewards, (1.0,), seed)[0][0] for seed in range(RUNS)]
        ours = f"{np.mean(times):,.0f} ± {np.std(times, ddof=1) / math.sqrt(RUNS):,.0f}"
        setting = f"TaS-FG, {name}, five arms, δ = 1/e: rounds until it stops"
        found.append(("Russo and others, AISTATS 2025", setting, f"{mean:,} ± {error}", ours))
    return found
