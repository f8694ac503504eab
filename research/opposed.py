"""What a shop pays whose products need different advisers, beside orders of the right one: python research/opposed.py.

Demand is Poisson, with a mean that only the advisers know and that changes every day, so that no rule does well. One
adviser orders what is best of products with even numbers and a part of it of the others; the second does the reverse.
Printed are the cost as a multiple of that of the right orders, and how often these were made.
"""

from __future__ import annotations

import numpy as np

import sidelong as sl

DAYS, PRODUCTS = 400, 10
HOLDING, SHORTAGE = 1, 3
MARGIN = 0.67  # of a normal distribution, a quantile of .75


def cost(orders: np.ndarray, demand: np.ndarray) -> float:
    """Return the cost of a day."""
    return float((HOLDING * np.maximum(orders - demand, 0) + SHORTAGE * np.maximum(demand - orders, 0)).sum())


def play(part: float, seed: int = 1) -> np.ndarray:
    """Return the cost of each day, that of the right orders, and the share of these that were made."""
    rng, shop = np.random.default_rng(seed), sl.Newsvendor(holding=HOLDING, shortage=SHORTAGE, seed=seed, cycle=1)
    odd, days = np.arange(PRODUCTS) % 2 == 1, np.zeros((DAYS, 3))
    for t in range(DAYS):
        mean = rng.uniform(20, 60, PRODUCTS)
        right = mean + MARGIN * np.sqrt(mean)
        advice = {"even": np.where(odd, part * right, right), "odd": np.where(odd, right, part * right)}
        orders, demand = shop.order(t, range(PRODUCTS), advice), rng.poisson(mean)
        shop.sold(t, np.minimum(orders, demand))
        right = np.rint(right)
        days[t] = cost(orders, demand), cost(right, demand), (orders == right).mean()
    return days


def main() -> None:
    """Print a row for each part and stretch of days."""
    for part in (0.5, 0.75):
        days = play(part)
        for first, end in ((0, 100), (100, 200), (200, DAYS)):
            paid, least, made = days[first:end].T
            print(f"{part:4} days {first:3} to {end}: {paid.sum() / least.sum():.2f} times, made in {made.mean():.2f}")


if __name__ == "__main__":
    main()
