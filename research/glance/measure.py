"""Measure `glance`, or other learners beside it: `python research/glance/measure.py WHAT [LEARNER ...]`.

WHAT is one of

- `owners 0` and `owners 1`: the owners' problems of `research/owners.py`, half 0 to tune on and half 1 to report;
- `games tune` and `games report`: the long games of `research/suites.py` with at most 10,000 rounds;
- `shops FOLDER 1-4` and `shops FOLDER 5-7`: orders of dishes by number from sales alone, where FOLDER has
  `yaz_target.csv`, of the source distribution of ddop 0.7.6; cost over that of the sample average that sees demand;
- `outage`: how often the best of three arms is back within 200 rounds of an outage, and the regret over 3,000 rounds
  with an outage of 300, told as failures and by `available`;
- `late`: regret on five self-loops with feedback 0, 10, 100 and 400 rounds late;
- `absent`: the worst regret to an arm in its rounds, where each of eight arms is absent in three rounds of ten;
- `fooled`: the worlds of `research/fooled.py`;
- `costs`: processor time of a round over that of `exp3.g++`.

`python research/shares.py 1` has the mean and worst excess over simple rules, and `advised.py` what advice is worth.

A learner is a name of the catalogue, and `glance` if none is given. The others are paired
with the first. With THIN=n in the environment only every n-th run of an owners' problem is played.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import fooled
import owners
import suites

import sidelong as sl

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

THIN = int(os.environ.get("THIN", "1"))
LEVELS = (0.9, 0.75, 0.5)


def simulate(learner: Any, graph: Any, world: Any, rounds: int, runs: int = 1, seed: int = 0, **more: Any) -> Any:
    """Play a game on one thread."""
    checkpoints = more.pop("checkpoints", [rounds])
    return sl.simulate(learner, graph, world, rounds, runs, seed, checkpoints=checkpoints, threads=1, progress=False)


def owners_regret(learner: Any, problem: owners.Problem) -> tuple[float, float]:
    """Return the mean regret of a learner on a problem, and that of random play."""
    runs = list(range(0, problem.runs, THIN))
    charged = problem.charged[runs].sum(1).mean(0)
    lost = []
    for run in runs:
        graphs = problem.graphs
        graph = graphs[0] if len(graphs) == 1 else sl.graphs.scheduled(graphs, problem.which[run])
        result = simulate(learner, graph, sl.losses.table(problem.losses[run]), problem.rounds, seed=7 + run)
        if problem.charged is problem.losses:
            lost.append(float(result.loss[0, -1]))
        else:
            lost.append(float(result.plays[0] @ problem.charged[run, 0]))
    return float(np.mean(lost) - charged.min()), float(charged.mean() - charged.min())


def measure_owners(learners: dict[str, Any], half: str) -> None:
    """Print shares by horizon, and regret / sqrt(K T) where the world turns, each with the paired difference."""
    staying = list(owners.problems(owners.STAYING, int(half)))
    turning = list(owners.problems(owners.TURNING, int(half)))
    rounds = np.array([each.rounds for each in staying])
    first: tuple[Floats, Floats] | None = None
    for name, learner in learners.items():
        found = np.array([owners_regret(learner, each) for each in staying])
        share = found[:, 0] / found[:, 1]
        turns = np.array([owners_regret(learner, e)[0] / np.sqrt(e.rounds * e.losses.shape[2]) for e in turning])
        first = first or (share, turns)
        at = " ".join(f"{share[rounds == horizon].mean():.3f}" for horizon in owners.HORIZONS)
        away, moved = share - first[0], turns - first[1]
        worst = staying[int(np.argmax(away))].name
        print(f"{name}: share {share.mean():.4f} [{at}], turning {turns.mean():.3f}", flush=True)
        print(f"    paired {_mean(away)}, largest {away.max():+.3f} on {worst}; turning {_mean(moved)}", flush=True)


def _mean(values: Floats) -> str:
    return f"{values.mean():+.4f} ± {values.std() / np.sqrt(values.size):.4f}"


def measure_games(learners: dict[str, Any], which: str) -> None:
    """Print the geometric mean of (regret + K) over that of the first learner, and where it is largest."""
    made, seed = {"tune": (suites.tune, suites.TUNE_SEED), "report": (suites.report, suites.REPORT_SEED)}[which]
    games = [each for each in made() if each.rounds <= 10_000]
    K = np.array([each.graph.n_arms for each in games])
    first: Floats | None = None
    for name, learner in learners.items():
        regret = np.array([simulate(learner, e.graph, e.losses, e.rounds, 4, seed).regret[:, -1].mean() for e in games])
        first = regret if first is None else first
        ratio = np.maximum(regret + K, 1) / np.maximum(first + K, 1)
        print(f"{name}: mean regret {regret.mean():.1f}, geometric mean {np.exp(np.log(ratio).mean()):.3f}", flush=True)
        for j in np.argsort(-ratio)[:5]:
            print(f"    {games[j].name}: {regret[j]:.0f} beside {first[j]:.0f}")


def measure_shops(learners: dict[str, Any], folder: str, dishes: str) -> None:
    """Print the cost over that of the sample average: on all days and on the last 185, mean over dishes and levels."""
    with (Path(folder) / "yaz_target.csv").open(encoding="utf-8") as file:
        demand = np.array([[int(float(each)) for each in row] for row in list(csv.reader(file))[29:]])
    low, high = map(int, dishes.split("-"))
    for name, learner in learners.items():
        ratios = []
        for dish in range(low - 1, high):
            for level in LEVELS:
                own = demand[:, dish]
                base = cost(sample_average(own, level), own, level)
                for seed in range(2):
                    paid = cost(order(learner, own, level, seed), own, level)
                    ratios.append((paid.sum() / base.sum(), paid[-185:].sum() / base[-185:].sum()))
        all_, last = np.mean(ratios, axis=0)
        error = np.std(ratios, axis=0) / np.sqrt(len(ratios))
        print(f"{name}: {all_:.3f} ± {error[0]:.3f}, last 185 days {last:.3f} ± {error[1]:.3f}", flush=True)


def sample_average(demand: npt.NDArray[np.int64], level: float) -> npt.NDArray[np.int64]:
    """Return the orders of one who sees demand and orders the quantile of all days before."""
    orders = [int(demand.mean())]
    orders += [int(np.quantile(demand[:t], level, method="inverted_cdf")) for t in range(1, demand.size)]
    return np.array(orders)


def cost(orders: Any, demand: npt.NDArray[np.int64], level: float) -> Floats:
    """Return what each day costs."""
    away = np.asarray(orders) - demand
    return np.where(away > 0, (1 - level) * away, -level * away)


def order(learner: Any, demand: npt.NDArray[np.int64], level: float, seed: int) -> list[int]:
    """Return the orders of a learner that sees sales alone, and asks with what an order reveals at least."""
    orders = sl.outcomes.StockOrders(int(demand.max()), holding=1 - level, shortage=level)
    agent, made = sl.Agent(learner, orders.graph, seed=seed), []
    for wanted in demand.tolist():
        decision = agent.ask()
        agent.tell(decision, orders.outcome(decision.arm, sales=min(decision.arm, wanted)))
        made.append(decision.arm)
    return made


def measure_outage(learners: dict[str, Any]) -> None:
    """Print the share of 20 runs in which the best arm is back within 200 rounds, by the length of the outage."""
    for name, learner in learners.items():
        for means, noise in (((0.15, 0.08, 0.18), 0.1), ((0.3, 0.2, 0.35), 0.2)):
            back = {
                k: np.mean([is_back(learner, means, noise, k, run) for run in range(20)]) for k in (8, 100, 300, 1000)
            }
            print(f"{name}, means {means}: " + ", ".join(f"{k}: {share:.2f}" for k, share in back.items()), flush=True)
    for name, learner in learners.items():
        for told in ("failures", "available"):
            regret = [_outage_regret(learner, told == "available", run) for run in range(20)]
            print(f"{name}, an outage of 300 rounds, told by {told}: regret {_mean(np.array(regret))}", flush=True)


def is_back(learner: Any, means: tuple[float, ...], noise: float, k: int, run: int) -> bool:
    """Return whether the best arm is played 80 times in 100 again within 200 rounds of an outage of k rounds."""
    begun, rounds = 1000 + k, 1300 + k
    losses = np.clip(means + noise * np.random.default_rng([run, k]).standard_normal((rounds, 3)), 0, 1)
    losses[1000:begun, 1] = 1.0
    points = list(range(begun, rounds + 1))
    result = simulate(learner, sl.graphs.self_loops(3), sl.losses.table(losses), rounds, seed=run, checkpoints=points)
    played = np.abs(np.diff(result.loss[0]) - losses[begun:, 1]) < 1e-9
    return bool((np.convolve(played, np.ones(100), "valid")[:201] >= 80).any())


def _outage_regret(learner: Any, says: bool, run: int) -> float:
    """Return the regret of 3,000 rounds to the best arm of each round."""
    means = np.tile([0.15, 0.08, 0.18], (3_000, 1))
    losses = np.clip(means + 0.1 * np.random.default_rng(run).standard_normal(means.shape), 0, 1)
    means[1000:1300, 1] = losses[1000:1300, 1] = 1.0
    agent, lost = sl.Agent(learner, sl.graphs.self_loops(3), seed=run), 0.0
    for t in range(3_000):
        decision = agent.ask(available=[0, 2] if says and 1000 <= t < 1300 else None)
        agent.tell(decision, {decision.arm: losses[t, decision.arm]})
        lost += means[t, decision.arm] - means[t].min()
    return lost


def measure_late(learners: dict[str, Any]) -> None:
    """Print regret after 2,000 rounds on five self-loops with a gap of 0.2, mean over 10 runs."""
    world = sl.losses.bernoulli([0.3, 0.5, 0.5, 0.5, 0.5])
    for name, learner in learners.items():
        for delay in (0, 10, 100, 400):
            result = sl.simulate(
                learner, sl.graphs.self_loops(5), world, 2_000, 10, 3, delay=delay, threads=1, progress=False
            )
            print(f"{name}, {delay} rounds late: {result.regret[:, -1].mean():.1f}", flush=True)


def measure_absent(learners: dict[str, Any]) -> None:
    """Print the worst regret to an arm, over the rounds in which it is there, mean over 10 runs."""
    for name, learner in learners.items():
        for make in (sl.graphs.self_loops, sl.graphs.nested):
            for T in (365, 2_000):
                regret = np.mean([_absent_regret(learner, make(8), T, run) for run in range(10)], axis=0)
                print(f"{name}, {make.__name__}, {T} rounds: {regret.max():.1f}", flush=True)


def _absent_regret(learner: Any, graph: Any, T: int, run: int) -> Floats:
    """Return the regret to each arm."""
    rng, agent, regret = np.random.default_rng(run), sl.Agent(learner, graph, seed=run), np.zeros(8)
    means = np.where(np.arange(8) == 3, 0.3, 0.5)
    for _ in range(T):
        there = rng.random(8) > 0.3
        there[int(rng.integers(8))] = True
        losses = (rng.random(8) < means).astype(float)
        decision = agent.ask(available=there)
        agent.tell(decision, {int(arm): losses[arm] for arm in decision.reveals})
        regret[there] += means[decision.arm] - means[there]
    return regret


def measure_fooled(learners: dict[str, Any]) -> None:
    """Print the mean regret over four graphs, 365 rounds."""
    for name, learner in learners.items():
        for kind in fooled.KINDS:
            worlds = [(graph, fooled.world_of(kind, graph.n_arms, 365)) for graph in fooled.GRAPHS]
            regret = [simulate(learner, graph, world, 365, 32, 3).regret[:, -1].mean() for graph, world in worlds]
            print(f"{name}, {kind}: {np.mean(regret):.1f}", flush=True)


def measure_costs(learners: dict[str, Any]) -> None:
    """Print the least processor time of a round over that of `exp3.g++`."""
    for make in (sl.graphs.self_loops, sl.graphs.nested):
        for K in (10, 100, 1_000):
            graph, rounds = make(K), max(2_000, 500_000 // K)
            world = sl.losses.bernoulli([0.3 if arm == 3 else 0.5 for arm in range(K)])
            times: dict[str, list[float]] = {}
            for _ in range(7):
                for name, learner in {"exp3.g++": "exp3.g++", **learners}.items():
                    begun = time.process_time()
                    simulate(learner, graph, world, rounds)
                    times.setdefault(name, []).append(time.process_time() - begun)
            least = {name: min(each[1:]) for name, each in times.items()}
            ratios = ", ".join(f"{name} {least[name] / least['exp3.g++']:.2f}" for name in learners)
            print(f"{make.__name__}({K}): {1e6 * least['exp3.g++'] / rounds:.2f} µs; {ratios}", flush=True)


def main() -> None:
    """Measure what the command says."""
    what, given = sys.argv[1], sys.argv[2:]
    count = {"owners": 1, "games": 1, "shops": 2}.get(what, 0)
    names = given[count:] or ["glance"]
    globals()[f"measure_{what}"]({name: name for name in names}, *given[:count])


if __name__ == "__main__":
    main()
