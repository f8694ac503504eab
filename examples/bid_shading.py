"""Bid shading: what share of its worth to bid for something in a first-price auction.

Each round something comes up that is worth v to us; the highest bid wins, and pays what it bid. An arm bids a fixed
share of v. What the outcome reveals depends on the exchange: three in ten always report the least bid that wins, six in
ten show it to those who lost, and one in ten never does. Half-way many competitors leave.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import comparison
import sidelong as sl

if TYPE_CHECKING:
    from comparison import Comparison, Contestant, Floats

ROUNDS, STREAMS = 3000, 8
# What a test checks: the share that looking to the side saves, and the rival's loss after the turn over ours.
SAVES, FACTOR = 0.25, 4.0
FIGURE = {
    "title": "What share of the value to bid",
    "x": "auctions",
    "y": "gain missed beyond the best share of each half",
    "turn": "from here on, fewer competitors",
}
SHARES = 40
AUCTION = sl.outcomes.FirstPrice(np.arange(1, SHARES + 1) / SHARES)


class Auction(NamedTuple):
    """What comes up: its value, the least bid that wins, and to whom the exchange shows it."""

    value: float
    price: float
    shown: str


def auctions(rounds: int, stream: int) -> list[Auction]:
    """Return a stream of auctions: the bids of others are log-normal, around 0.4 at first and 0.15 later."""
    rng = np.random.default_rng(stream)
    middle = np.where(np.arange(rounds) < rounds // 2, 0.4, 0.15)
    values = rng.uniform(0.3, 1.0, rounds)
    prices = middle * np.exp(0.4 * rng.standard_normal(rounds))
    shown = rng.choice(["always", "lost", "never"], rounds, p=[0.3, 0.6, 0.1])
    return [Auction(*each) for each in zip(values.tolist(), prices.tolist(), shown.tolist(), strict=True)]


def play(who: Contestant, rounds: int, stream: int) -> Floats:
    """Ask for a share, bid it, and tell what the outcome reveals."""
    graph = AUCTION.graph() if who.looks else sl.graphs.self_loops(SHARES)
    agent = sl.Agent(who.learner, graph, seed=stream)
    suffered = []
    for value, price, shown in auctions(rounds, stream):
        decision = agent.ask(AUCTION.graph(shown) if who.looks else None)  # another graph in every round
        won = AUCTION.fractions[decision.arm] * value >= price
        sees = shown == "always" or (shown == "lost" and not won)
        seen = AUCTION.outcome(decision.arm, value=value, won=won, price=price if sees else None, shown=shown)
        own = seen.losses[seen.graph.out_neighbors(decision.arm) == decision.arm]
        suffered.append(own[0])
        if who.looks:
            agent.tell(decision, seen)
        else:
            agent.tell(decision, own)
    return comparison.in_all(suffered)


def compare(rounds: int = ROUNDS, streams: int = STREAMS) -> Comparison:
    """Let the three contestants play the same auctions."""
    return comparison.compare(
        lambda stream: np.array([AUCTION.losses(each.value, each.price) for each in auctions(rounds, stream)]),
        lambda who, stream: play(who, rounds, stream),
        streams,
        AUCTION.unit,
    )


if __name__ == "__main__":
    comparison.main(sys.modules[__name__])
