"""Stock orders with lost sales, on real counts: how many appointments to hold for a patient.

An appointment that is held and not used costs 1. If a patient needs more than were held, each of those costs 4: he goes
elsewhere, and nobody learns how often he would have come. The counts are real: how often a person saw a doctor in a
year, 20,190 times, from the RAND health insurance experiment. The first half of the patients are in good health, and
the second in poor health.

The second half has 500 practices in a table, each with patients of its own, and a year of 52 weeks: one family decides
for all of them, from pandas to pandas.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from statsmodels.datasets import randhie

import comparison
import sidelong as sl

if TYPE_CHECKING:
    from comparison import Comparison, Contestant, Floats

ROUNDS, STREAMS = 3000, 8
PRACTICES, WEEKS = 500, 52
YEAR = 0.10  # the share that the family saves in a year beside the rule of thumb: a test checks it too
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


def needs(practices: int = PRACTICES, weeks: int = WEEKS, stream: int = 0) -> pd.DataFrame:
    """Return what is needed: a row for each practice, of whose patients some share is in poor health, by week."""
    rng = np.random.default_rng(stream)
    good, poor = visits()
    sick = rng.random((practices, weeks)) < rng.random((practices, 1))
    drawn = np.where(sick, rng.choice(poor, sick.shape), rng.choice(good, sick.shape))
    return pd.DataFrame(drawn, pd.Index([f"practice {k}" for k in range(practices)], name="practice"))


def hold(need: pd.DataFrame) -> pd.DataFrame:
    """Let one family decide for all practices, week after week; return how many each held."""
    family = sl.Family("glance", ORDERS.graph, seed=7)
    held = need.copy()
    for week in need:
        plan = family.ask(need.index)
        held[week] = plan.arms
        used = held[week].clip(upper=need[week])  # all that anybody sees of the need
        seen = ORDERS.outcomes(plan, used)
        family.tell(plan, seen)
    return held


def hold_by_rule(need: pd.DataFrame) -> pd.DataFrame:
    """Hold so many that they were enough in 80 % of the weeks so far, as far as the used ones tell."""
    held, used = need.copy(), need.copy()
    held[0] = 12
    for week in need:
        if week > 0:
            held[week] = np.ceil(used.loc[:, : week - 1].quantile(0.8, axis=1))
        used[week] = held[week].clip(upper=need[week])
    return held


def cost(held: pd.DataFrame | int, need: pd.DataFrame) -> pd.Series:
    """Return what each practice paid: 1 for each that was not used, 4 for each that was missing."""
    return ((held - need).clip(lower=0) + 4 * (need - held).clip(lower=0)).sum(axis=1)


def year(practices: int = PRACTICES, weeks: int = WEEKS, stream: int = 0) -> pd.DataFrame:
    """Return what a year costs all practices, by who decides."""
    need = needs(practices, weeks, stream)
    every = pd.DataFrame({number: cost(number, need) for number in range(13)})
    paid = pd.Series(
        {
            "glance, a family": cost(hold(need), need).sum(),
            "80 % of the weeks so far": cost(hold_by_rule(need), need).sum(),
            "12 for everybody": every[12].sum(),
            "the best number of each, known afterwards": every.min(axis=1).sum(),
        },
        name="cost",
    )
    return pd.DataFrame({"cost of a year": paid.astype(int), "per week and practice": (paid / need.size).round(2)})


if __name__ == "__main__":
    comparison.main(sys.modules[__name__])
    print(f"{PRACTICES} practices, {WEEKS} weeks:\n{year()}")
