"""Routing among three models on the prompts of ParetoBandit (arXiv 2604.00136): the games of benchmarks/routing.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SEEDS = 20


def play() -> dict[str, Any]:
    """Return mean regrets with their standard errors. The adviser is chosen without the prompts that are played."""
    import routing  # noqa: PLC0415  # reads its package

    def regret(**how: Any) -> list[float]:
        games = [routing.ours(seed, **how).regret for seed in range(SEEDS)]
        return [float(np.mean(games)), float(np.std(games, ddof=1) / math.sqrt(SEEDS))]

    setting, validated = routing.chosen()
    advice = routing.advised(setting)
    n = len(routing.TEST.texts)
    return {
        "prompts": n,
        "others": len(routing.TRAIN.texts),
        "published": routing.PUBLISHED,
        "adviser": setting._asdict() | {"validation regret": float(validated[setting])},
        "adviser alone": float(routing.played(routing.TEST, range(n), advice).regret),
        "always the best model": float(routing.played(routing.TEST, range(n), np.full(n, 2)).regret),
        "cold": regret(),
        "cold, 5 % shadow": regret(shadow=0.05),
        "warm": regret(warm=True),
        "warm, adviser": regret(warm=True, advice=advice),
    }


def _plus_minus(found: list[float]) -> str:
    return f"{found[0]:.1f} ± {found[1]:.1f}"


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    prompts = f"{found['prompts']:,} prompts, three models, regret to the best of each prompt"
    cold = f"`glance` {_plus_minus(found['cold'])}; with 5 % shadow runs {_plus_minus(found['cold, 5 % shadow'])}"
    setting = "{components} components, penalty {alpha:g}".format(**found["adviser"])
    advised = f"with a ridge regression on prompts ({setting}) as adviser {_plus_minus(found['warm, adviser'])}"
    alone = (
        f"that adviser alone {found['adviser alone']:.1f}, always the best model {found['always the best model']:.1f}"
    )
    warm = f"`glance` {_plus_minus(found['warm'])}; {advised}; {alone}"
    return [
        ("ParetoBandit 0.1.1", f"{prompts}; cold", found["published"]["cold"], cold),
        ("ParetoBandit 0.1.1", f"{prompts}; after {found['others']:,} others", found["published"]["warm"], warm),
    ]


def brief(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the rows of the README."""
    published, (alone, advised) = found["published"], (_plus_minus(found[name]) for name in ("warm", "warm, adviser"))
    cold = f"Regret of routing {found['prompts']:,} prompts (ParetoBandit, 2026)"
    warm = f"The same after {found['others']:,} other prompts"
    return [
        (cold, published["cold"], _plus_minus(found["cold"])),
        (warm, published["warm"], f"{alone}, with an adviser {advised}"),
    ]
