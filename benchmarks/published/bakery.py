"""Orders of a bakery chain from sales alone: ddop 0.7.6 has 35 shops with 3 products each, 2016 to 2019.

A unit that is missing costs three times one that is left over. No cost of this chain is published for those who see
sales only, so what stands beside ours is what others would write: rules of ten lines, and LightGBM with weather and
promotions, fitted again to what its own orders sold every 28 days in the first year and every 84 later. Intervals are
of 95 %, from weeks that are drawn again. The games are those of benchmarks/shops.py.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

HOLDING, SHORTAGE = 1.0, 3.0
LEVEL = SHORTAGE / (HOLDING + SHORTAGE)
EVERY = 7  # so many products are one that is also played without pooled trust
RULES, MODEL = ("quantile", "quantile by weekday", "Kaplan-Meier by weekday", "ratio"), "LightGBM"


def play() -> dict[str, Any]:
    """Return what a day of the chain costs each, with its interval, and the latter as shares of others' costs."""
    import shops  # noqa: PLC0415  # needs pandas

    chain = shops.bakery()
    game = partial(shops.play, chain, HOLDING, SHORTAGE)
    costs = {who: game(who)[0] for who in RULES}
    costs |= {MODEL: game("model", shops.Boosted(LEVEL, 28))[0], "newsvendor": game("newsvendor")[0]}
    costs["with LightGBM"] = game("newsvendor", shops.Boosted(LEVEL, 28))[0]
    best = min(RULES, key=lambda who: costs[who].sum())
    few = np.arange(0, len(chain.products), EVERY)
    alone = shops.apart(shops.Shop(chain.days, *(each[few] for each in chain[1:])), HOLDING, SHORTAGE)
    return {
        "products": len(chain.products),
        "days": len(chain.days),
        "best rule": best,
        "costs": {who: shops.interval(each) for who, each in costs.items()},
        "beside the best rule": shops.interval(costs["newsvendor"], costs[best]),
        "beside LightGBM": shops.interval(costs["with LightGBM"], costs[MODEL]),
        "not pooled": len(few),
        "not pooled beside pooled": shops.interval(alone, costs["newsvendor"][few]),
    }


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    source = "ddop 0.7.6, bakery"
    setting = f"{found['products']} products of 35 shops, {found['days']:,} days, 3 : 1, sales alone, cost per day"
    costs = found["costs"]
    rules = ", ".join(f"{who} {costs[who]}" for who in RULES)
    pooled = f"{costs['newsvendor']}, {found['beside the best rule']} of the best rule"
    alone = f"{found['not pooled']} of the products without pooled trust {found['not pooled beside pooled']} of that"
    advised = f"{costs['with LightGBM']}, {found['beside LightGBM']} of LightGBM alone"
    return [
        (source, f"{setting}: rules", rules, f"`sl.Newsvendor` {pooled}; {alone}"),
        (source, f"{setting}: a model", f"LightGBM {costs[MODEL]}", f"`sl.Newsvendor` with it as adviser {advised}"),
    ]


def repeated(found: dict[str, Any]) -> dict[str, str]:
    """Return the costs per day that other pages show, without intervals."""
    return {f"bakery {who}": cost.partition(" ")[0] for who, cost in found["costs"].items()}
