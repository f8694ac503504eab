"""Stock orders with lost sales, on real counts: how many appointments to hold for a patient.

An appointment that is held and not used costs 1. If a patient needs more than were held, each of those costs 4: he goes
elsewhere, and nobody learns how often he would have come. The counts are real: how often a person saw a doctor in a
year, 20,190 times, from the RAND health insurance experiment. The first half of the patients are in good health, and
the second in poor health.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from statsmodels.datasets import randhie

import comparison
import sidelong as sl

if TYPE_CHECKING:
    from comparison import Comparison, Contestant, Floats

ROUNDS, STREAMS = 3000, 8
# What a test checks: the share that looking to the side saves, and the rival's loss after the turn over ours.
SAVES, FACTOR = 0.3, 4.0
FIGURE = {
    "title": "How many appointments to hold for a patient",
    "x": "patients",
    "y": "cost beyond the best number of each half",
    "turn": "from here on, patients in poor health",
}
ORDERS = sl.outcomes.StockOrders(12, holding=1, shortage=4)  # the arms are 0, 1, ..., 12 appointments


@cache
def visits() -> tuple[Floats, Floats]:
    """Return how often people in good and in poor health saw a doctor in a year."""
    data = randhie.load_pandas().data
    poor, fair = data.hlthp == 1, data.hlthf == 1
    return data.mdvis[~poor & ~fair].to_numpy(), data.mdvis[poor].to_numpy()


def demand(rounds: int, stream: int) -> list[float]:
    """Return what each patient needs: half of them drawn from those in good health, then half from those in poor."""
    rng = np.random.default_rng(stream)
    good, poor = visits()
    return np.append(rng.choice(good, rounds // 2), rng.choice(poor, rounds - rounds // 2)).tolist()


def play(who: Contestant, rounds: int, stream: int) -> Floats:
    """Ask how many to hold, see how many were used, and tell what that reveals."""
    agent = sl.Agent(who.learner, ORDERS.graph if who.looks else sl.graphs.self_loops(13), seed=stream)
    suffered = []
    for needed in demand(rounds, stream):
        decision = agent.ask()
        held = decision.arm
        seen = ORDERS.outcome(held, sales=min(held, needed))
        suffered.append(seen.losses[held])
        if who.looks:
            agent.tell(decision, seen)  # which has the graph of this round: only the outcome shows what was revealed
        else:
            agent.tell(decision, [seen.losses[held]])
    return comparison.in_all(suffered)


def compare(rounds: int = ROUNDS, streams: int = STREAMS) -> Comparison:
    """Let the three contestants play the same patients."""
    return comparison.compare(
        lambda stream: np.array([ORDERS.losses(needed) for needed in demand(rounds, stream)]),
        lambda who, stream: play(who, rounds, stream),
        streams,
        ORDERS.unit,
    )


if __name__ == "__main__":
    comparison.main(sys.modules[__name__])
