"""What docs/learners.md says that learners lost: `python research/learners.py`, a minute or two on two cores."""

from __future__ import annotations

import sidelong as sl

ARMS, BEST, SEED = 10, 3, 5


def stochastic(gap: float) -> sl.losses.World:
    """Return Bernoulli losses, around 1/2."""
    return sl.losses.bernoulli([0.5 + gap / 2 - gap * (arm == BEST) for arm in range(ARMS)])


def constrained(gap: float) -> sl.losses.World:
    """Return the stochastically constrained adversary."""
    return sl.losses.constrained(gaps=gap, n_arms=ARMS, best=BEST)


OURS = [("exp3.g++", {}), ("glance", {})]
BLIND = [("exp3-dom", {}), ("ito-2022", {}), ("spm-2024", {}), ("exp3", {})]
RIVALS = [("ucb-n", {}), ("ucb-n", {"width": 0.5}), ("ts-n", {})]

#: What is played: the name of the world, the graph, the world, the rounds, the runs and the learners. On self-loops,
#: where some have heavy tails, runs are more.
TABLES = [
    ("two cliques of five, stochastic, gap 0.2", sl.graphs.cliques([5, 5]), stochastic(0.2), 50_000, 16, BLIND + OURS),
    *(
        (
            f"self-loops, {world.__name__}, gap {gap}",
            sl.graphs.self_loops(ARMS),
            world(gap),
            100_000,
            128,
            RIVALS + OURS,
        )
        for world in (stochastic, constrained)
        for gap in (0.2, 0.5)
    ),
]


def main() -> None:
    """Print the mean regret of each learner, and its standard error."""
    for title, graph, world, rounds, runs, learners in TABLES:
        print(f"\n{title}, {rounds:,} rounds, {runs} runs")
        for learner, options in learners:
            last = sl.simulate(learner, graph, world, rounds, runs, SEED, checkpoints=[rounds], **options).regret[:, -1]
            name = " ".join([learner, *(f"{key}={value}" for key, value in options.items())])
            print(f"{name:36} {last.mean():8,.0f} +- {last.std(ddof=1) / runs**0.5:,.0f}", flush=True)


if __name__ == "__main__":
    main()
