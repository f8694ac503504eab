"""Routing among three models on the prompts of ParetoBandit (arXiv 2604.00136): the games of benchmarks/routing.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SEEDS = 40


def play() -> dict[str, Any]:
    """Return mean regrets with their standard errors. The adviser is chosen without the prompts that are played."""
    import routing  # noqa: PLC0415  # reads its package

    def regret(**how: Any) -> list[float]:
        games = [routing.ours(seed, **how).regret for seed in range(SEEDS)]
        return [float(np.mean(games)), float(np.std(games, ddof=1) / math.sqrt(SEEDS))]

    found = routing.chosen()
    n = len(routing.TEST.texts)
    return {
        "prompts": n,
        "others": len(routing.TRAIN.texts),
        "published": routing.PUBLISHED,
        "adviser": " and ".join(map(str, found.settings)),
        "validation regret": found.regret[found.settings],
        "adviser alone": float(routing.played(routing.TEST, found.advice(1)).regret),
        "always the best model": float(routing.played(routing.TEST, np.full(n, 2)).regret),
        "their router, cold": routing.theirs(0, warm=False, **routing.COLD).regret,
        "their router, warm": routing.theirs(0, warm=True, **routing.WARM).regret,
        "cold": regret(),
        "cold, features": regret(features=True),
        "cold, 5 % shadow": regret(shadow=0.05),
        "warm": regret(warm="learn"),
        "warm, adviser": regret(warm="play", advised=True),
        "warm, adviser, features": regret(warm="play", advised=True, features=True),
    }


def _plus_minus(found: list[float]) -> str:
    return f"{found[0]:.1f} ± {found[1]:.1f}"


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    prompts = f"{found['prompts']:,} prompts, three models, regret to the best of each prompt"
    cold = f"`glance` {_plus_minus(found['cold'])}; with 5 % shadow runs {_plus_minus(found['cold, 5 % shadow'])}"
    cold += f"; with 25 features of the prompt {_plus_minus(found['cold, features'])}"
    cold += f"; their router with these features {found['their router, cold']:.1f}"
    adviser, features = _plus_minus(found["warm, adviser"]), _plus_minus(found["warm, adviser, features"])
    warm = f"`glance` {_plus_minus(found['warm'])}; with a regression on prompts as adviser {adviser}"
    warm += f"; with features too {features}; that adviser alone {found['adviser alone']:.1f}"
    warm += (
        f"; their router {found['their router, warm']:.1f}; always the best model {found['always the best model']:.1f}"
    )
    return [
        ("ParetoBandit 0.1.1", f"{prompts}; cold", found["published"]["cold"], cold),
        ("ParetoBandit 0.1.1", f"{prompts}; after {found['others']:,} others", found["published"]["warm"], warm),
    ]


def brief(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the rows of the README."""
    names = ("cold", "cold, features", "warm", "warm, adviser, features")
    published, (cold, seeing, warm, advised) = found["published"], (_plus_minus(found[name]) for name in names)
    ours = [f"their router as we ran it {found[f'their router, {how}']:.1f}" for how in ("cold", "warm")]
    return [
        (
            f"Regret of routing {found['prompts']:,} prompts (ParetoBandit, 2026)",
            f"{published['cold']}; {ours[0]}",
            f"{cold}, with features {seeing}",
        ),
        (
            f"The same after {found['others']:,} other prompts",
            f"{published['warm']}; {ours[1]}",
            f"{warm}, with an adviser and features {advised}",
        ),
    ]
