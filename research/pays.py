"""How soon glance pays, for the page "Is it for me?": `python research/pays.py [shares|orders]`.

The first table has owners' problems that nothing was tuned on. A *share* is regret, divided by the regret of random
play: 0 is the best fixed arm, 1 is random. The second one has the setting of docs/notebooks/many-products.ipynb, 500
products whose demand is Poisson, and changes one thing at a time: it shows in percent what was paid beyond the best
fixed order of each product. Both are written into the page, and what other pages repeat into docs/numbers.json.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import owners
import rules
from shares import charge, least
from suites import CONTESTANTS

import sidelong as sl

sys.path.append(str(Path(__file__).parents[1] / "docs" / "_ext"))

import numbers_of_pages as numbers

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
PRODUCTS, SHORT = 500, (52, 365, 3_000)
ORDERS = sl.outcomes.StockOrders(24, holding=1, shortage=4)


def main(which: str = "") -> None:
    """Print the tables, and write them into the page."""
    if which in {"", "shares"}:
        print(made := shares_of_groups())
        numbers.write_table("for-me.md", "shares", made)
    if which in {"", "orders"}:
        head = " | ".join(f"{rounds:,}" for rounds in SHORT)
        lines = [f"| after so many orders | {head} |", f"|---|{'---:|' * len(SHORT)}"]
        year = ""
        for name, (demand, harm) in CHANGES.items():
            cells = [f"{beyond(demand, rounds, harm):.0f} %" for rounds in SHORT]
            cells = [cell.replace("-", "\N{MINUS SIGN}").replace(" ", "\N{NO-BREAK SPACE}") for cell in cells]
            lines.append(f"| {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
            year = year or cells[0]
        numbers.write_table("for-me.md", "orders", "\n".join(lines))
        numbers.record(weekly_orders_in_a_year=year)


def shares_of_groups() -> str:
    """Return the first table."""
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
    lines = [
        f"| decisions | arms | {' | '.join(f'{horizon:,}' for horizon in horizons)} |",
        f"|---|---|{'---:|' * len(horizons)}",
    ]
    for group, kinds in GROUPS.items():
        inside = np.array([each.kind.startswith(kinds) for each in played])
        arms = [each.losses.shape[2] for each in played if each.kind.startswith(kinds)]
        cells = []
        for horizon in horizons:
            at = inside & np.array([each.rounds == horizon for each in played])
            mine, rule = shares[:, at].mean(1)
            cells.append(f"{mine:.2f} ({rule:.2f})")
        lines.append(f"| {group} | {min(arms)} to {max(arms)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _of(name: str) -> Contestant:
    return next(each for each in CONTESTANTS if each.learner == name)


# 24 orders, and what may happen to them


def _plain(rng: Rng, mean: Floats, rounds: int) -> Floats:
    return rng.poisson(mean, (rounds, mean.size))


def _seasonal(rng: Rng, mean: Floats, rounds: int) -> Floats:
    return rng.poisson(mean * (1 + 0.3 * np.sin(2 * np.pi * np.arange(rounds) / 7))[:, None])


def _promoted(rng: Rng, mean: Floats, rounds: int) -> Floats:
    return rng.poisson(np.where(rng.random((rounds, 1)) < 0.1, 2 * mean, mean))


def _turned(rng: Rng, mean: Floats, rounds: int) -> Floats:
    return rng.poisson(np.where(np.arange(rounds)[:, None] < rounds // 2, mean, 1.8 * mean))


def _mistaken(rng: Rng, losses: Floats) -> Floats:
    return np.where(rng.random(losses.size) < 0.02, 1.0, losses)


def _squeezed(_: Rng, losses: Floats) -> Floats:
    return 0.1 * losses


def _unharmed(_: Rng, losses: Floats) -> Floats:
    return losses


#: The demand, and what becomes of the losses that are told, or after how many rounds they are.
CHANGES: dict[str, tuple[Callable[[Rng, Floats, int], Floats], Callable[[Rng, Floats], Floats] | int]] = {
    "nothing else happens": (_plain, 0),
    "demand rises and falls by 30 % within a week": (_seasonal, 0),
    "a promotion doubles demand on one day in ten": (_promoted, 0),
    "one loss in fifty is recorded as the worst": (_plain, _mistaken),
    "feedback comes 7 rounds late": (_plain, 7),
    "the scale is ten times too wide": (_plain, _squeezed),
    "demand grows by 80 % half-way": (_turned, 0),
}


def beyond(
    demand: Callable[[Rng, Floats, int], Floats], rounds: int, harm: Callable[[Rng, Floats], Floats] | int
) -> float:
    """Return what was paid beyond the best fixed order of each product, in percent of what that costs."""
    rng, other = np.random.default_rng(7), np.random.default_rng(8)
    mean = rng.uniform(2, 14, size=PRODUCTS)
    wanted = demand(rng, mean, rounds)
    n = PRODUCTS if rounds < 1_000 else 50
    wanted, keys = wanted[:, :n], [f"sku-{number:03d}" for number in range(n)]
    shop, waiting, paid = sl.Family("glance", ORDERS.graph, seed=7), [], 0.0
    late, told = (harm, _unharmed) if isinstance(harm, int) else (0, harm)
    for today in wanted:
        plan = shop.ask(keys)
        seen = ORDERS.outcomes(plan, np.minimum(plan.arms, today))
        waiting.append((plan, dataclasses.replace(seen, losses=told(other, seen.losses))))
        if len(waiting) > late:
            shop.tell(*waiting.pop(0))
        paid += float(_cost(plan.arms, today).sum())
    fixed = np.min([_cost(np.full(n, order), wanted).sum(axis=0) for order in range(25)], axis=0).sum()
    return 100 * (paid / float(fixed) - 1)


def _cost(order: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.maximum(order - wanted, 0) + 4 * np.maximum(wanted - order, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
