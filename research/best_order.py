"""Which order is the best, as `estimates().best` says after sales alone, beside plain means, D and Kaplan-Meier.

PYTHONPATH=src python research/best_order.py [games]

Orders of 0 to 20 pieces, a negative binomial demand with another mean in each game, and 1,000 days. "exact" is how
often the truly best order is named; "costs" how much more the named one loses per day than the best, on average. D is
what the agent would play most. Kaplan-Meier (1958) is ten lines that estimate how demand is distributed from sales that
may have run out, and order by that.
"""

from __future__ import annotations

import sys

import numpy as np

import sidelong as sl

DAYS, MOST = 1000, 20
HOLDING, SHORTAGE = 1, 3


def kaplan_meier(orders: list[int], demands: list[int]) -> int:
    """Return the best order by the distribution of demand, of which is known what `orders` have shown."""
    order, demand = np.array(orders), np.array(demands)
    above, cost, costs = 1.0, 0.0, [0.0]  # the probability of a demand above q
    for q in range(MOST):
        at_risk = np.count_nonzero((demand >= q) & (order > q))
        gone = np.count_nonzero((demand == q) & (order > q))
        above *= 1.0 - gone / at_risk if at_risk else 0.0
        cost += HOLDING * (1.0 - above) - SHORTAGE * above
        costs.append(cost)
    return int(np.argmin(costs))


def game(learner: str, seed: int) -> list[tuple[bool, float]]:
    """Return of each way to name an order whether it is the best, and how much more it loses."""
    orders = sl.outcomes.StockOrders(MOST, holding=HOLDING, shortage=SHORTAGE)
    rng = np.random.default_rng(seed)
    mean = rng.uniform(3, 12)
    demand = rng.negative_binomial(4, 4 / (4 + mean), DAYS).clip(0, MOST)
    truth = np.mean([orders.outcome(MOST, sales=int(each)).losses for each in demand], axis=0)
    agent, counts, sums = sl.Agent(learner, orders.graph, seed=seed), np.zeros(MOST + 1), np.zeros(MOST + 1)
    made = []
    for each in demand.tolist():
        decision = agent.ask()
        made.append(decision.arm)
        told = orders.outcome(decision.arm, sales=min(decision.arm, each), ran_out=each > decision.arm or None)
        arms = told.graph.out_neighbors(decision.arm)
        counts[arms] += 1
        sums[arms] += told.losses
        agent.tell(decision, told)
    known = agent.estimates()
    plain = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    named = known.best, int(plain.argmin()), int(np.nanargmax(known.weights)), kaplan_meier(made, demand.tolist())
    return [(order == truth.argmin(), truth[order] - truth.min()) for order in named]


if __name__ == "__main__":
    games = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    for learner in ("glance", "exp3-set", "ucb-n"):
        found = np.array([game(learner, seed) for seed in range(games)])
        names = "estimates().best", "plain means", "D", "Kaplan-Meier"
        for name, (exact, costs) in zip(names, found.mean(axis=0), strict=True):
            print(f"{learner:9} {name:17} exact {exact * games:2.0f} of {games}, costs {costs:.4f}")
