"""Which order is the best, as `estimates().best` says after sales alone: by weighted means, plain means, and D.

PYTHONPATH=src python research/best_order.py [games]

Orders of 0 to 20 pieces, a negative binomial demand with another mean in each game, and 1,000 days. "exact" is how
often the truly best order is named; "costs" how much more the named one loses per day than the best, on average.
"""

from __future__ import annotations

import sys

import numpy as np

import sidelong as sl

DAYS, MOST = 1000, 20


def game(learner: str, seed: int) -> list[tuple[bool, float]]:
    """Return of each way to name an order whether it is the best, and how much more it loses."""
    orders = sl.outcomes.StockOrders(MOST, holding=1, shortage=3)
    rng = np.random.default_rng(seed)
    mean = rng.uniform(3, 12)
    demand = rng.negative_binomial(4, 4 / (4 + mean), DAYS).clip(0, MOST)
    truth = np.mean([orders.outcome(MOST, sales=int(each)).losses for each in demand], axis=0)
    agent, counts, sums = sl.Agent(learner, orders.graph, seed=seed), np.zeros(MOST + 1), np.zeros(MOST + 1)
    for each in demand.tolist():
        decision = agent.ask()
        told = orders.outcome(decision.arm, sales=min(decision.arm, each), ran_out=each > decision.arm or None)
        arms = told.graph.out_neighbors(decision.arm)
        counts[arms] += 1
        sums[arms] += told.losses
        agent.tell(decision, told)
    known = agent.estimates()
    plain = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    named = known.best, int(plain.argmin()), int(np.nanargmax(known.weights))
    return [(order == truth.argmin(), truth[order] - truth.min()) for order in named]


if __name__ == "__main__":
    games = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    for learner in ("glance", "exp3-set", "ucb-n"):
        found = np.array([game(learner, seed) for seed in range(games)])
        for name, (exact, costs) in zip(("weighted means", "plain means", "D"), found.mean(axis=0), strict=True):
            print(f"{learner:9} {name:15} exact {exact * games:2.0f} of {games}, costs {costs:.4f}")
