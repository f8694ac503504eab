"""Routing among three models on the prompts of ParetoBandit (arXiv 2604.00136): the games of benchmarks/routing.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import routing

SEEDS = 20


def _regret(**how: Any) -> str:
    games = [routing.ours(seed, **how).regret for seed in range(SEEDS)]
    return f"{np.mean(games):.1f} ± {np.std(games, ddof=1) / math.sqrt(SEEDS):.1f}"


def rows() -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    advice = routing.predicted(*routing.encode())
    prompts = f"{len(routing.TEST.texts):,} prompts, three models, regret to the best of each prompt"
    cold = f"`glance` {_regret()}; with 5 % shadow runs {_regret(shadow=0.05)}"
    advised = _regret(warm=True, advice=advice)
    warm = f"`glance` {_regret(warm=True)}; with a ridge regression on prompts as adviser {advised}"
    return [
        ("ParetoBandit 0.1.1", f"{prompts}; cold", routing.PUBLISHED["cold"], cold),
        (
            "ParetoBandit 0.1.1",
            f"{prompts}; after {len(routing.TRAIN.texts):,} others",
            routing.PUBLISHED["warm"],
            warm,
        ),
    ]
