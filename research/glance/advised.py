"""Measure `glance` with advice, which reaches its kernels directly: `python research/glance/advised.py WHAT`.

- `shops FOLDER 5-7`: orders from sales alone with three advisers (Kaplan-Meier, the same by weekday, a gradient step
  on sold-out days), cost over that of the best of them alone; FOLDER has `yaz_target.csv` and `yaz_data.csv`;
- `bakery FOLDER`: 105 products of a bakery chain in one family, alone and pooled, with three simple rules as advisers,
  cost over that of the best rule alone, in all and in the first and the last year; FOLDER has `bakery_data.csv` and
  `bakery_target.csv`;
- `arms`: ten arms on three graphs with an adviser that is contextual, bad, or turns bad after a third of the rounds;
  regret to the contextual adviser, and else to the best arm, after 52, 365 and 2,000 rounds.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent)]

from measure import LEVELS, cost

import sidelong as sl
from sidelong._jit import compiled
from sidelong.learners import glance
from sidelong.learners.interface import Asked, Told, trace_size
from sidelong.numerics import DRAWS, sample, uniform


class Driver:
    """The kernels with advice: a row of probabilities for each adviser."""

    def __init__(self, graph: sl.FeedbackGraph, advisers: int, seed: int) -> None:
        self.graph, self.seed, self.t = graph, seed, 0
        self.machine_code: dict[Any, Any] = {}
        self.params = glance.configure(graph)
        self.state = glance.init(self.params, graph)
        for _ in range(advisers):
            self.params, self.state = glance.add_adviser(self.params, self.state)
        K = graph.n_arms
        self.p, self.trace = np.zeros(K), np.zeros(trace_size(glance.LEARNER, K) + advisers * K)

    def ask(self, advice: list[int] | np.ndarray) -> int:
        """Return the arm to play; advice is an arm of each adviser."""
        K = self.graph.n_arms
        self.t += 1
        rows = self.trace[trace_size(glance.LEARNER, K) :].reshape(-1, K)
        rows[:] = 0.0
        rows[np.arange(len(advice)), advice] = 1.0
        self._call(glance.distribution, self.graph, Asked.new(self.t, self.p, self.trace))
        draw = uniform(np.uint64(self.seed), DRAWS, np.int64(0), np.int64(self.t), np.int64(0))
        return int(sample(self.p, draw))

    def tell(self, arm: int, losses: Any, graph: sl.FeedbackGraph | None = None) -> None:
        """Learn the losses of all arms that were revealed, in their order."""
        room = np.zeros(self.graph.n_arms)
        room[: len(losses)] = losses
        self._call(glance.update, graph or self.graph, Told.new(self.t, arm, self.p, room, self.trace))

    def _call(self, kernel: Any, graph: sl.FeedbackGraph, round_: Any) -> None:
        arguments = (self.params, self.state, graph.arrays, round_)
        if kernel not in self.machine_code:  # `compiled` takes milliseconds to find it
            self.machine_code[kernel] = compiled(kernel, *arguments)
        self.machine_code[kernel](*arguments)


def kaplan_meier(sales: np.ndarray, hidden: np.ndarray, level: float, most: int) -> int:
    """Return the quantile of demand, of which only sales are known on days that sold out; optimistic beyond them."""
    left = 1.0
    for value in np.unique(sales):
        at_risk = (sales >= value).sum()
        left *= 1 - ((sales == value) & ~hidden).sum() / at_risk
        if left <= 1 - level:
            return int(value)
    return min(most, int(sales.max()) + max(1, int(sales.max()) // 10))


class Advisers:
    """Three rules that see sales alone."""

    def __init__(self, level: float, most: int) -> None:
        self.level, self.most, self.step = level, most, float(most) / 2
        self.sales: list[int] = []
        self.hidden: list[bool] = []
        self.days: list[int] = []

    def advise(self, weekday: int) -> list[int]:
        """Return an order of each."""
        if len(self.sales) < 3:
            return [self.most, self.most, round(self.step)]
        sales, hidden, days = np.array(self.sales), np.array(self.hidden), np.array(self.days)
        km = kaplan_meier(sales, hidden, self.level, self.most)
        same = days == weekday
        by_day = kaplan_meier(sales[same], hidden[same], self.level, self.most) if same.sum() > 5 else km
        return [km, by_day, int(np.clip(round(self.step), 0, self.most))]

    def see(self, order: int, sold: int, weekday: int) -> None:
        """Learn a day."""
        t = len(self.sales) + 1
        rate = 0.5 * self.most / np.sqrt(t)
        out = sold >= round(self.step) if sold < order else sold >= min(order, round(self.step))
        if sold < order or order >= round(self.step):  # a day that sold out below its own order tells it nothing
            self.step = float(np.clip(self.step + rate * (self.level if out else self.level - 1), 0, self.most))
        self.sales.append(sold)
        self.hidden.append(sold >= order)
        self.days.append(weekday)


def shops(folder: str, dishes: str) -> None:
    """Print the cost with advice, and of each adviser alone, over that of the best of them."""
    with (Path(folder) / "yaz_target.csv").open(encoding="utf-8") as file:
        demand = np.array([[int(float(each)) for each in row] for row in list(csv.reader(file))[29:]])
    with (Path(folder) / "yaz_data.csv").open(encoding="utf-8") as file:
        names = [row[1] for row in list(csv.reader(file))[29:]]
    weekdays = [sorted(set(names)).index(each) for each in names]
    low, high = map(int, dishes.split("-"))
    found = []
    for dish in range(low - 1, high):
        for level in LEVELS:
            own = demand[:, dish]
            alone = [sum(day_costs(own, weekdays, level, follow)) for follow in range(3)]
            ours = np.mean([sum(day_costs(own, weekdays, level, None, seed)) for seed in range(2)])
            found.append([*alone, ours])
            print(dish + 1, level, np.round(np.array(found[-1]) / min(alone), 3), flush=True)
    ratios = np.array(found)
    ratios /= ratios[:, :3].min(axis=1, keepdims=True)
    print("mean of each adviser alone, and of advice, over the best adviser of each problem:", ratios.mean(0).round(3))
    totals = np.array(found).reshape(-1, len(LEVELS), 4).sum(0)
    print("by level, over the best adviser of the level:", (totals[:, 3] / totals[:, :3].min(1)).round(3))


def day_costs(own: np.ndarray, weekdays: list[int], level: float, follow: int | None, seed: int = 0) -> list[float]:
    """Return what each day costs one who follows an adviser, or all of them with `glance`."""
    most = int(own.max())
    orders = sl.outcomes.StockOrders(most, holding=1 - level, shortage=level)
    rules, driver, paid = Advisers(level, most), Driver(orders.graph, 3, seed), []
    for wanted, weekday in zip(own.tolist(), weekdays, strict=True):
        advice = rules.advise(weekday)
        arm = driver.ask(advice) if follow is None else advice[follow]
        sold = min(arm, wanted)
        if follow is None:
            seen = orders.outcome(arm, sales=sold)
            driver.tell(arm, seen.losses, seen.graph)
        rules.see(arm, sold, weekday)
        paid.append(float(cost([arm], np.array([wanted]), level)[0]))
    return paid


class Rules:
    """Three rules for all products at once, which see sales alone: orders are columns, and 40 is the largest one."""

    def __init__(self, products: int, weekdays: np.ndarray, level: float) -> None:
        self.weekdays, self.level = weekdays, level
        self.sales = np.zeros((weekdays.size, products))
        self.out = np.zeros((weekdays.size, products), bool)

    def advise(self, t: int) -> dict[str, np.ndarray]:
        """Return the orders of each rule on day t."""
        same = np.flatnonzero(self.weekdays[:t] == self.weekdays[t])
        if same.size < 2:
            return dict.fromkeys(("raise", "km", "ratio"), np.full(self.sales.shape[1], 30))
        raised = self.sales * np.where(self.out, 1.1, 1.0)
        last = np.quantile(raised[same[-8:]], self.level, axis=0)
        km = np.array([self._kaplan_meier(same[-16:], i) for i in range(self.sales.shape[1])])
        mean = np.array([raised[:t][self.weekdays[:t] == day][-8:].mean(0) for day in np.unique(self.weekdays[:t])])
        of_day = mean[np.searchsorted(np.unique(self.weekdays[:t]), self.weekdays[max(0, t - 56) : t])]
        ratios = raised[max(0, t - 56) : t] / np.maximum(of_day, 0.5)
        ratio = raised[same[-8:]].mean(0) * np.quantile(ratios, self.level, axis=0)
        made = {"raise": last, "km": km, "ratio": ratio}
        return {name: np.clip(np.ceil(orders - 1e-9), 0, 40).astype(int) for name, orders in made.items()}

    def _kaplan_meier(self, days: np.ndarray, i: int) -> float:
        sales, out = self.sales[days, i], self.out[days, i]
        order = np.lexsort((out, sales))
        left = np.cumprod(1 - ~out[order] / np.arange(order.size, 0, -1))
        enough = np.flatnonzero(left <= 1 - self.level + 1e-9)
        return float(sales[order[enough[0]]] if enough.size else 1.1 * sales.max() + 1)


def bakery(folder: str) -> None:
    """Print what each rule costs alone, and what all of them cost with `glance`, over the best of them."""
    with (Path(folder) / "bakery_target.csv").open(encoding="utf-8") as file:
        demand = np.array([float(row[0]) for row in list(csv.reader(file))[1:]]).reshape(105, -1).T
    with (Path(folder) / "bakery_data.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = [row["weekday"] for row in rows[:1215]]
    weekdays = np.array([sorted(set(names)).index(each) for each in names])
    unit = demand.max(0) / 40
    found = {}
    for who in ("raise", "km", "ratio", "alone", "pooled", "without advice"):
        paid = _sell(demand / unit, weekdays, who) * unit
        found[who] = np.array([paid.sum(1).mean(), paid[:365].sum(1).mean(), paid[-365:].sum(1).mean()])
        best = np.min([found[name] for name in ("raise", "km", "ratio") if name in found], axis=0)
        print(f"{who}: {found[who].round(0)}, over the best rule so far {(found[who] / best).round(4)}", flush=True)


def _sell(demand: np.ndarray, weekdays: np.ndarray, who: str) -> np.ndarray:
    orders = sl.outcomes.StockOrders(40, holding=1, shortage=3)
    rules, n = Rules(demand.shape[1], weekdays, 0.75), demand.shape[1]
    family = sl.Family("glance", orders.graph, seed=1, pooled=who == "pooled")
    keys, paid = [str(i) for i in range(n)], np.zeros(demand.shape)
    for t, wanted in enumerate(demand):
        advice = rules.advise(t)
        if who in advice:
            arms = advice[who]
        else:
            batch = family.ask(keys) if who == "without advice" else family.ask(keys, advice=advice)
            arms = batch.arms
        sold = np.minimum(arms, wanted)
        if who not in advice:
            family.tell(batch, orders.outcomes(batch, sold))
        rules.sales[t], rules.out[t] = sold, sold == arms
        paid[t] = arms - sold + 3 * (wanted - sold)
    return paid


def arms() -> None:
    """Print regret by kind of adviser and horizon, mean over graphs."""
    K, horizons = 10, (52, 365, 2_000)
    for kind in ("none", "contextual", "bad", "turns bad"):
        regret = np.zeros((3, 8, len(horizons)))
        for g, graph in enumerate((sl.graphs.self_loops(K), sl.graphs.nested(K), sl.graphs.star(K))):
            for run in range(8):
                for h, T in enumerate(horizons):
                    regret[g, run, h] = _game(kind, graph, T, run)
        print(kind, regret.mean((0, 1)).round(1), flush=True)


def _game(kind: str, graph: sl.FeedbackGraph, T: int, run: int) -> float:
    rng = np.random.default_rng([run, T])
    K = graph.n_arms
    driver, lost = Driver(graph, 0 if kind == "none" else 1, run), 0.0
    for t in range(T):
        means = np.full(K, 0.6)
        means[4] = 0.4
        best = 4
        if kind == "contextual":
            means[best := int(rng.integers(K))] = 0.2
        bad = kind == "bad" or (kind == "turns bad" and 3 * t > T)
        advice = [] if kind == "none" else [7 if bad else best]
        arm = driver.ask(advice)
        lost += means[arm] - means[best if kind == "contextual" else 4]
        driver.tell(arm, (rng.random(K) < means).astype(float)[graph.out_neighbors(arm)])
    return lost


if __name__ == "__main__":
    {"shops": shops, "bakery": bakery, "arms": arms}[sys.argv[1]](*sys.argv[2:])
