"""One round with each of the others, as their own documentation plays it.

Those without a graph are told a constant reward: they draw no losses, which is in their favour. Each function
returns the seconds that a round takes, beginning with a learner that knows nothing.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from measure import seconds

if TYPE_CHECKING:
    import sidelong as sl

__all__ = ["mabwiser_ucb1", "river_exp3", "vowpal_wabbit"]


def river_exp3(n_arms: int, rounds: int = 5_000) -> float:
    """`pull` and `update` of river's Exp3."""
    from river import bandit  # noqa: PLC0415  # it may not be installed

    policy = bandit.Exp3(gamma=0.1, seed=1)
    arms = list(range(n_arms))

    def play() -> None:
        for _ in range(rounds):
            policy.update(policy.pull(arms), 0.3)

    return seconds(play) / rounds


def mabwiser_ucb1(n_arms: int, rounds: int = 500) -> float:
    """`predict` and `partial_fit` of MABWiser's UCB1."""
    from mabwiser.mab import MAB, LearningPolicy  # noqa: PLC0415  # it may not be installed

    arms = list(range(n_arms))
    learner = MAB(arms, LearningPolicy.UCB1(alpha=1.25), seed=1)
    learner.fit(arms, [0.3] * n_arms)

    def play() -> None:
        for _ in range(rounds):
            learner.partial_fit([learner.predict()], [0.3])

    return seconds(play) / rounds


def vowpal_wabbit(graph: sl.FeedbackGraph, means: list[float], rounds: int = 3) -> float:
    """`predict` and `learn` of Vowpal Wabbit with a feedback graph, without a context."""
    import vowpalwabbit  # noqa: PLC0415  # it may not be installed

    workspace = vowpalwabbit.Workspace("--cb_explore_adf --graph_feedback --random_seed 1 --quiet")
    arms = range(graph.n_arms)
    edges = " ".join(f"{i},{j},1" for i in arms for j in graph.out_neighbors(i))
    shared = f"shared graph {edges} | one"
    world = random.Random(1)  # noqa: S311

    def play() -> None:
        for _ in range(rounds):
            p = workspace.predict([shared, *(f"| arm{i}" for i in arms)])
            arm = world.choices(arms, p)[0]
            labels = {j: f"{j}:{float(world.random() < means[j])}:{p[arm]} " for j in graph.out_neighbors(arm)}
            workspace.learn([shared, *(f"{labels.get(i, '')}| arm{i}" for i in arms)])

    try:
        return seconds(play) / rounds
    finally:
        workspace.finish()
