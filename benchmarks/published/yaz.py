"""Orders of a restaurant from sales alone, beside methods that see all demand.

d3group, structured newsvendor evaluation, 2022: seven dishes of the Yaz restaurant (data in ddop), the first 28 days
dropped, trained on the first 75 % of the others, tested on the last 185 days. A missing unit costs 7.5, one left over
2.5. The published methods see the demand of every day. `sl.Newsvendor` sees sales only, from the first day on.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from packages import package

import sidelong as sl

TESTED, SHORTAGE, HOLDING = 185, 7.5, 2.5


def table(name: str) -> list[dict[str, str]]:
    """Return a table of the package."""
    path = package("ddop", "0.7.6") / "ddop-0.7.6" / "ddop" / "datasets" / "data" / name
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


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


def rows() -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    target = table("yaz_target.csv")
    dishes = list(target[0])
    demand = np.array([[int(row[dish]) for dish in dishes] for row in target])
    dates = [row["date"] for row in table("yaz_data.csv")]
    known = published()
    train = demand[28:-TESTED]
    average = np.quantile(train, SHORTAGE / (SHORTAGE + HOLDING), axis=0, method="inverted_cdf")
    ours = cost(np.tile(average, (len(demand), 1)), demand)
    theirs = np.array([known["sample average"][dish] for dish in dishes])
    source, setting = "d3group 2022, Yaz", "seven dishes, service level 0.75, cost per day and dish"
    agree = f"{ours.mean():.2f} (each dish within {np.abs(ours - theirs).max():.4f})"
    found = [(source, f"{setting}: sample average", f"{theirs.mean():.2f}", agree)]
    shop = sl.Newsvendor(holding=HOLDING, shortage=SHORTAGE, seed=7)
    orders = []
    for date, wanted in zip(dates, demand, strict=True):
        made = np.asarray(shop.order(date, dishes, first=30))
        shop.sold(date, np.minimum(made, wanted))
        orders.append(made)
    own = cost(np.array(orders), demand).mean()
    others = {name: np.mean(list(each.values())) for name, each in known.items() if name != "sample average"}
    listed = ", ".join(f"{name} {mean:.2f}" for name, mean in others.items())
    return [*found, (source, f"{setting}: with all demand, and `sl.Newsvendor` from sales", listed, f"{own:.2f}")]
