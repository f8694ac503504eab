"""Problems whose graph only the outcome shows: `python research/told.py [SEED]`.

Orders that sell out hide the demand, a bid that loses or wins hides the price, and some graphs are told late for no
reason at all. Each problem stays as it is, or turns half-way. A number is a share: what a learner lost beyond the best
arm of that half, over what random play would lose. Another seed draws other problems of the same kinds.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

ROUNDS, RUNS = 1500, 4
#: A learner, and whether it is told all that its play revealed, or its own loss alone.
CONTESTANTS = [("glance", True), ("glance", False), ("exp3.g++", True), ("exp3-set", True), ("ucb-n", True)]


class Problem(NamedTuple):
    """What would have been lost, and where each round divides the arms."""

    name: str
    kind: str  #: "below": arms above the mark reveal all, others the smaller ones. "above": the other way round.
    losses: Floats  #: (runs, rounds, arms)
    mark: Integers  #: (runs, rounds)
    hidden: bool  #: whether a play on the wrong side of the mark does not see the mark itself

    @property
    def first(self) -> sl.FeedbackGraph:
        """What is known before the first round: what each arm reveals at least."""
        return shown(self.kind, self.losses.shape[2], self.losses.shape[2] if self.kind == "below" else 0)

    def told(self, run: int, t: int, arm: int) -> sl.FeedbackGraph:
        """Return the graph of a round, as far as its outcome shows it."""
        mark = int(self.mark[run, t])
        if self.hidden:
            mark = min(mark, arm) if self.kind == "below" else max(mark, arm)
        return shown(self.kind, self.losses.shape[2], mark)


@functools.cache
def shown(kind: str, K: int, mark: int) -> sl.FeedbackGraph:
    """Return the graph of an outcome."""
    arms = np.arange(K)
    if kind == "below":
        return sl.FeedbackGraph.from_intervals(np.zeros(K, int), np.where(arms > mark, K, arms + 1))
    return sl.FeedbackGraph.from_intervals(np.where(arms < mark, 0, arms), np.full(K, K))


def before_and_after(first: float, second: float, turns: str) -> Floats:
    """Return a number for each round."""
    return np.where(np.arange(ROUNDS) < (ROUNDS // 2 if turns else ROUNDS), first, second)


def orders(rng: np.random.Generator, law: str, turns: str) -> Problem:
    """Order stock: a missing unit is dearer than one left over, and a shop that sold out does not see the demand."""
    K, shortage = int(rng.integers(8, 25)), float(rng.choice([2, 3, 4, 6]))
    low, high = np.sort(rng.uniform(0.1, 0.7, 2) * K)
    mean = np.tile(before_and_after(*((high, low) if turns == "down" else (low, high)), turns), (RUNS, 1))
    demand = {
        "poisson": lambda: rng.poisson(mean),
        "geometric": lambda: rng.negative_binomial(1.0, 1 / (1 + mean)),
        "heavy": lambda: (0.8 * mean * rng.pareto(2.2, mean.shape)).astype(int),
    }[law]()
    order = np.arange(K)
    sold = np.minimum(order, demand[..., None])
    losses = (order - sold + shortage * (K - 1 - sold)) / ((1 + shortage) * (K - 1))
    return Problem(f"orders, {law}, {turns or 'still'}", "below", losses, demand, hidden=True)


def bids(rng: np.random.Generator, whom: str, turns: str) -> Problem:
    """Bid, where the least bid that wins is shown to those who lost, or to those who won and pay no more than it."""
    K = int(rng.integers(10, 31))
    fraction = np.arange(1, K + 1) / K
    middle = before_and_after(*((0.15, 0.4) if turns == "up" else (0.4, 0.15)), turns)
    value = rng.uniform(0.3, 1, (RUNS, ROUNDS))
    price = middle * np.exp(rng.uniform(0.2, 0.6) * rng.standard_normal((RUNS, ROUNDS)))
    wins = fraction * value[..., None] >= price[..., None]
    mark = (~wins).sum(axis=2)
    if whom == "losers":
        losses = 1 - (1 - fraction) * value[..., None] * wins
        return Problem(f"bids, shown to losers, {turns or 'still'}", "above", losses, mark, hidden=True)
    losses = np.clip(1 - wins * (value - price)[..., None] * (1 - 0.6 * fraction), 0, 1)  # a bid has a fee
    return Problem(f"bids, shown to winners, {turns or 'still'}", "below", losses, mark - 1, hidden=True)


def late(rng: np.random.Generator, turns: str) -> Problem:
    """Draw graphs that have nothing to do with the losses, and are known late all the same."""
    K = int(rng.integers(6, 15))
    means = np.where(before_and_after(1, 0, turns)[:, None] == 1, *rng.uniform(0.2, 0.8, (2, K)))
    losses = np.clip(means + 0.2 * rng.standard_normal((RUNS, ROUNDS, K)), 0, 1)
    return Problem(f"late graph, {turns or 'still'}", "below", losses, rng.integers(0, K, (RUNS, ROUNDS)), hidden=False)


def problems(seed: int) -> Iterator[Problem]:
    """Yield three problems of each kind: one that stays as it is, and two that turn."""
    kinds = [(orders, law) for law in ("poisson", "geometric", "heavy")]
    kinds += [(bids, whom) for whom in ("losers", "winners")]
    for number, (make, kind) in enumerate(kinds):
        for turn, turns in enumerate(("", "up", "down")):
            yield make(np.random.default_rng([seed, number, turn]), kind, turns)
    for turn, turns in enumerate(("", "turns")):
        yield late(np.random.default_rng([seed, 9, turn]), turns)


def play(problem: Problem, learner: str, *, looks: bool) -> tuple[float, float]:
    """Return the share before and after the middle, where each `ask` guesses the graph of the last round."""
    runs, rounds, K = problem.losses.shape
    suffered = np.empty((runs, rounds))
    for run in range(runs):
        guess = problem.first if looks else sl.graphs.self_loops(K)
        agent = sl.Agent(learner, guess, seed=run)
        for t, losses in enumerate(problem.losses[run]):
            decision = agent.ask(guess)
            suffered[run, t] = losses[decision.arm]
            if looks:
                guess = problem.told(run, t, decision.arm)
                agent.tell(decision, losses[guess.out_neighbors(decision.arm)], guess)
            else:
                agent.tell(decision, [losses[decision.arm]])
    halves = np.split(problem.losses, 2, axis=1), np.split(suffered, 2, axis=1)
    shares = []
    for all_, own in zip(*halves, strict=True):
        lost = all_.sum(axis=1).mean(axis=0)
        shares.append((own.sum(axis=1).mean() - lost.min()) / (lost.mean() - lost.min()))
    return shares[0], shares[1]


def main() -> None:
    """Play all problems, and print a table in Markdown."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    names = [f"`{name}`" + ("" if looks else ", own loss") for name, looks in CONTESTANTS]
    print("| problem | " + " | ".join(names) + " |\n|---|" + "---:|" * len(names))
    rows = []
    for problem in problems(seed):
        rows.append([play(problem, name, looks=looks) for name, looks in CONTESTANTS])
        print(f"| {problem.name} | " + " | ".join(f"{a:.2f}, {b:.2f}" for a, b in rows[-1]) + " |", flush=True)
    mean, worst = np.mean(rows, axis=0), np.max(rows, axis=0)
    for label, row in (("mean", mean), ("worst", worst)):
        print(f"| **{label}** | " + " | ".join(f"{a:.2f}, {b:.2f}" for a, b in row) + " |")


if __name__ == "__main__":
    main()
