"""`ask` and `tell` of an agent against `pull` and `update` of river's Exp3."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import rivals
from measure import Row, best_within, print_table, seconds

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Iterator

ARMS = 10
ROUNDS = 5_000


def rows() -> Iterator[Row]:
    """Measure a bandit, which is all that river has, and a graph."""
    graphs = {"self-loops": sl.graphs.self_loops(ARMS), "cliques of 5": sl.graphs.cliques([5, 5])}
    ours = [lambda graph=graph: a_round(graph) for graph in graphs.values()]
    installed = importlib.util.find_spec("river") is not None
    *mine, theirs = best_within(3.0, *ours, lambda: rivals.river_exp3(ARMS) if installed else float("nan"))
    for family, time in zip(graphs, mine, strict=True):
        what = f"ask + tell, {family}, K = {ARMS}"
        if installed:
            yield Row(what, time, "river Exp3", theirs, at_least=1 / 0.9)
        else:
            yield Row(what, time, "river Exp3: not installed")


def a_round(graph: sl.FeedbackGraph) -> float:
    """Return the seconds of one round with an agent."""
    agent = sl.Agent("exp3.g++", graph, seed=1)

    def play() -> None:
        for _ in range(ROUNDS):
            decision = agent.ask()
            agent.tell(decision, dict.fromkeys(decision.reveals.tolist(), 0.3))

    return seconds(play) / ROUNDS


if __name__ == "__main__":
    print_table(rows())
