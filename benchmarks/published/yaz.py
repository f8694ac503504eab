"""Orders of a restaurant from sales alone, beside methods that see all demand.

d3group, structured newsvendor evaluation, 2022: seven dishes of the Yaz restaurant (data in ddop), the first 28 days
dropped, trained on the first 75 % of the others, tested on the last 185 days. A missing unit costs 7.5, one left over
2.5. The published methods see the demand of every day. `sl.Newsvendor` sees sales only, from the first day on.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

TESTED, SHORTAGE, HOLDING = 185, 7.5, 2.5
NEIGHBOURS, FOREST = "nearest neighbours, calendar", "random forest weights, all features"


def published() -> dict[str, dict[str, float]]:
    """Return the published cost of each dish, by method."""
    found: dict[str, dict[str, float]] = {}
    with Path(__file__).with_name("yaz_published.csv").open(newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            found.setdefault(row["method"], {})[row["dish"]] = float(row["cost"])
    return found


def cost(orders: np.ndarray, demand: np.ndarray) -> np.ndarray:
    """Return the mean cost per day of each dish over the tested days."""
    paid = HOLDING * np.maximum(orders - demand, 0) + SHORTAGE * np.maximum(demand - orders, 0)
    return np.asarray(paid[-TESTED:].mean(axis=0))


def play() -> dict[str, Any]:
    """Return mean costs per day and dish: published by method, and ours of the sample average and of a newsvendor."""
    import shops  # noqa: PLC0415  # needs pandas

    shop = shops.restaurant()
    dishes, demand = shop.products, shop.demand.T
    known = published()
    train = demand[28:-TESTED]
    average = np.quantile(train, SHORTAGE / (SHORTAGE + HOLDING), axis=0, method="inverted_cdf")
    ours = cost(np.tile(average, (len(demand), 1)), demand)
    theirs = np.array([known["sample average"][dish] for dish in dishes])
    paid, _ = shops.play(shop, HOLDING, SHORTAGE, "newsvendor")
    return {
        "published": {name: float(np.mean(list(each.values()))) for name, each in known.items()},
        "sample average": float(ours.mean()),
        "dishes differ by": float(np.abs(ours - theirs).max()),
        "newsvendor": float(paid[:, -TESTED:].mean()),
    }


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    source, setting = "d3group 2022, Yaz", "seven dishes, service level 0.75, cost per day and dish"
    others = dict(found["published"])
    average = f"{others.pop('sample average'):.2f}"
    agree = f"{found['sample average']:.2f} (each dish within {found['dishes differ by']:.4f})"
    listed = ", ".join(f"{name} {mean:.2f}" for name, mean in others.items())
    orders = f"{setting}: with all demand, and `sl.Newsvendor` from sales"
    return [
        (source, f"{setting}: sample average", average, agree),
        (source, orders, listed, f"{found['newsvendor']:.2f}"),
    ]


def brief(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the rows of the README."""
    neighbours, forest = (found["published"][name] for name in (NEIGHBOURS, FOREST))
    theirs = f"{neighbours:.2f} by neighbours, {forest:.2f} by forests, which see demand"
    return [("Daily cost per dish (d3group, 2022)", theirs, f"{found['newsvendor']:.2f} from sales alone")]


def repeated(found: dict[str, Any]) -> dict[str, str]:
    """Return the cost that other pages show."""
    return {"restaurant newsvendor": f"{found['newsvendor']:.2f}"}
