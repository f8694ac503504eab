"""How soon glance pays, for the page "Is it for me?": `python benchmarks/pays.py`.

The first table has owners' problems that nothing was tuned on. A *share* is regret, divided by the regret of random
play: 0 is the best fixed arm, 1 is random. The second one takes 24 orders with Poisson demand, a missing unit three
times as dear as one left over, and changes one thing at a time; regret is in percent of what the best order costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import owners
import rules
from shares import charge, least
from suites import CONTESTANTS

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Callable

    from contests import Contestant
    from owners import Floats, Rng

GROUPS = {
    "stock orders": ("stock, ",),
    "early exits, cascades": ("early exits", "short cascades"),
    "nightly training": ("nightly training",),
    "bids": ("bids",),
    "rare events: clicks, errors, landing pages": ("clicks", "errors", "landing pages"),
    "posted prices": ("posted prices",),
    "routing among models": ("model routing", "one arm shows all"),
    "scores": ("scores",),
}
K, MISSING, MEAN, RUNS = 24, 3.0, 9.0, 48
SHORT = (52, 365, 3_000)


def main() -> None:
    """Print both tables."""
    horizons = owners.HORIZONS
    played = list(owners.problems(owners.STAYING, half=1))
    ours, random = (_of(name) for name in ("glance", "uniform"))
    shares = np.array([
        [(charge(ours, each) - least(each)) / (charge(random, each) - least(each)) for each in played],
        [
            (rules.play("root bonus", each, 7) - least(each)) / (charge(random, each) - least(each))
            for each in played
        ],
    ])  # fmt: skip
    print(f"| decisions | arms | {' | '.join(f'{horizon:,}' for horizon in horizons)} |")
    print(f"|---|---|{'---:|' * len(horizons)}")
    for group, kinds in GROUPS.items():
        inside = np.array([each.kind.startswith(kinds) for each in played])
        arms = [each.losses.shape[2] for each in played if each.kind.startswith(kinds)]
        cells = []
        for horizon in horizons:
            at = inside & np.array([each.rounds == horizon for each in played])
            mine, rule = shares[:, at].mean(1)
            cells.append(f"{mine:.2f} ({rule:.2f})")
        print(f"| {group} | {min(arms)} to {max(arms)} | {' | '.join(cells)} |")
    print(f"\n| 24 orders | {' | '.join(f'{rounds:,}' for rounds in SHORT)} |\n|---|{'---:|' * len(SHORT)}")
    for name, (make, delay) in CHANGES.items():
        print(f"| {name} | {' | '.join(f'{_percent(make, rounds, delay):.0f} %' for rounds in SHORT)} |")


def _of(name: str) -> Contestant:
    return next(each for each in CONTESTANTS if each.learner == name)


# 24 orders, and what may happen to them


def _plain(rng: Rng, rounds: int) -> Floats:
    return owners.cost_of_orders(rng.poisson(MEAN, (RUNS, rounds)), K, MISSING)


def _seasonal(rng: Rng, rounds: int) -> Floats:
    week = 1 + 0.3 * np.sin(2 * np.pi * np.arange(rounds) / 7)
    return owners.cost_of_orders(rng.poisson(MEAN * week * np.ones((RUNS, rounds))), K, MISSING)


def _promoted(rng: Rng, rounds: int) -> Floats:
    demand = np.where(rng.random((RUNS, rounds)) < 0.1, 2 * MEAN, MEAN)
    return owners.cost_of_orders(rng.poisson(demand), K, MISSING)


def _mistaken(rng: Rng, rounds: int) -> Floats:
    losses = _plain(rng, rounds)
    wrong = rng.random(losses.shape) < 0.02
    return np.where(wrong, 1.0, losses)


def _squeezed(rng: Rng, rounds: int) -> Floats:
    return 0.1 * _plain(rng, rounds)


def _turned(rng: Rng, rounds: int) -> Floats:
    demand = np.where(np.arange(rounds) < rounds // 2, MEAN, 1.8 * MEAN)
    return owners.cost_of_orders(rng.poisson(demand * np.ones((RUNS, rounds))), K, MISSING)


CHANGES: dict[str, tuple[Callable[[Rng, int], Floats], int]] = {
    "nothing else happens": (_plain, 0),
    "demand rises and falls by 30 % within a week": (_seasonal, 0),
    "a promotion doubles demand on one day in ten": (_promoted, 0),
    "one loss in fifty is recorded as the worst": (_mistaken, 0),
    "feedback comes 7 rounds late": (_plain, 7),
    "the scale is ten times too wide": (_squeezed, 0),
    "demand grows by 80 % half-way": (_turned, 0),
}


def _percent(make: Callable[[Rng, int], Floats], rounds: int, delay: int) -> float:
    """Return the regret against the best fixed order, in percent of what that costs: 0 if demand were foreseen."""
    losses = make(np.random.default_rng([11, rounds]), rounds)
    graph = sl.graphs.nested(K)
    paid = [
        sl.simulate(
            "glance", graph, sl.losses.table(table), rounds, seed=run, checkpoints=1, threads=1, delay=delay
        ).loss[0, -1]
        for run, table in enumerate(losses)
    ]
    fixed = losses.sum(1).mean(0).min()
    foreseen = losses.min(2).sum(1).mean()
    return float(100 * (np.mean(paid) - fixed) / (fixed - foreseen))


if __name__ == "__main__":
    main()
