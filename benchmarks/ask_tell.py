"""`ask` + `tell` of an agent against `pull` + `update` of river's Exp3, side by side in one run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from river import bandit

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Callable

ARMS = 10
ROUNDS = 20_000
REPEATS = 5


def sidelong_round(graph: sl.FeedbackGraph) -> Callable[[], None]:
    """Return a function that plays one round with our agent."""
    agent = sl.Agent("exp3.g++", graph, seed=1)

    def play() -> None:
        decision = agent.ask()
        agent.tell(decision, dict.fromkeys(decision.reveals.tolist(), 0.3))

    return play


def river_round() -> Callable[[], None]:
    """Return a function that plays one round with river's Exp3."""
    policy = bandit.Exp3(gamma=0.1, seed=1)
    arms = list(range(ARMS))

    def play() -> None:
        policy.update(policy.pull(arms), 0.3)

    return play


def microseconds(play: Callable[[], None]) -> float:
    """Return the time of one round."""
    begun = time.perf_counter()
    for _ in range(ROUNDS):
        play()
    return (time.perf_counter() - begun) / ROUNDS * 1e6


def main() -> None:
    """Measure in turns, so that a slow moment of the machine falls on all, and print the best of each."""
    rivals = {
        "sidelong exp3.g++, self-loops": sidelong_round(sl.graphs.self_loops(ARMS)),
        "sidelong exp3.g++, cliques of 5": sidelong_round(sl.graphs.cliques([5, 5])),
        "river Exp3": river_round(),
    }
    best = dict.fromkeys(rivals, float("inf"))
    for _ in range(REPEATS):
        for name, play in rivals.items():
            best[name] = min(best[name], microseconds(play))
    print(f"One round of asking and telling at K = {ARMS}, best of {REPEATS} x {ROUNDS:,} rounds")
    for name, time_ in best.items():
        print(f"  {name:<34} {time_:6.1f} us   {time_ / best['river Exp3']:5.2f} x river")


if __name__ == "__main__":
    main()
