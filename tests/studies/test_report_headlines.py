"""The sentences of a report: every rule says one thing or the other, as the numbers are."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.simulation.scoreboard import Scoreboard
from sidelong.studies.curves import Power
from sidelong.studies.report import headlines
from sidelong.studies.report.parameters import trend
from sidelong.studies.report.pictures import headline
from sidelong.studies.report.promised import Bound
from sidelong.studies.report.reading import Instance
from studies.made import curve, shifted

LOST = sl.FeedbackGraph.from_edges([(0, 0), (0, 1)], 3)


def board(*rows):
    regret = np.array(rows, float)
    names = tuple("abcdef"[: len(rows)])
    places = tuple(f"place {k} · bernoulli" for k in range(1, regret.shape[1] + 1))
    return Scoreboard(names, places, regret, np.zeros_like(regret), np.zeros(regret.shape[1], np.int64))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[10, 20], [20, 60]], "a has the smallest regret on all 2 instances. Next comes b, up to 3 times the best."),
        ([[10], [25]], "a has the smallest regret. Next comes b, up to 2.5 times the best."),
        ([[40, 10], [10, 30]], "b does best. Worst case: 3.00 times the best (place 2, Bernoulli). Next comes a"),
        ([[20, 10], [10, np.nan]], "a does best. Worst case: 2.00 times the best (place 1, Bernoulli). No other"),
        ([[np.nan, 10], [10, np.nan]], "No learner has played on every instance"),
        ([[10, 20]], "a plays alone"),
    ],
)  # fmt: skip
def test_the_scoreboard(rows, said):
    assert said in headlines.scoreboard(board(*rows))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[10, 20], [20, 60]], "a is the best on all 2 instances."),
        ([[10], [25]], "a is the best on 1 instance."),
        ([[40, 10, 5], [10, 30, 9]], "a is the best on 2 of 3 instances and b on 1."),
        ([[np.nan, 10], [10, np.nan]], "b is the best on 1 of 2 instances and a on 1."),
    ],
)
def test_who_is_the_best_on_how_many(rows, said):
    assert headlines.best_counts(board(*rows)) == said


def test_who_leads():
    one = curve(np.sqrt, 0.5)
    mean = f"{one.final.mean():,.1f}"
    alone = headlines.leader(Instance("", "", {"a": one}))
    assert alone == f"After 100,000 rounds a has the smallest regret, {mean}."
    sure = headlines.leader(Instance("", "", {"b": shifted(one, 50), "a": one}))
    assert sure.startswith(alone[:-1] + "; b follows with 1.")
    assert " times as much (p = " in sure
    assert headlines.leader(Instance("", "", {"a": one, "b": curve(np.sqrt, 0.5, seed=3)})).endswith("may be chance.")
    few = curve(np.sqrt, 0.5, runs=4)
    assert headlines.leader(Instance("", "", {"a": few, "b": shifted(few, 9)})).endswith("too few runs for a test.")
    assert headlines.leader(Instance("", "", {"a": one, "b": one})).endswith(f"all have the same regret, {mean}.")
    less = shifted(one, -1e6)
    assert " follows with -" in headlines.leader(Instance("", "", {"a": less, "b": shifted(less, 1)}))


def test_a_mean_that_some_bad_runs_decide_is_called_so():
    """Nearly always better, and sometimes ruinous: ranks and means point in opposite directions."""
    one = curve(np.sqrt, 0.1)
    risky = shifted(one, -50.0)
    risky.regret[:4] += 10_000
    assert headlines.leader(Instance("", "", {"a": one, "b": risky})).endswith("times as much, but less in most runs.")


def test_who_beats_whom():
    one = curve(np.sqrt, 0.5)
    three = {"a": one, "b": shifted(one, 50), "c": shifted(one, 90)}
    lost = {"a": shifted(one, 70), "b": one, "c": shifted(one, 90)}
    assert headlines.contest([Instance("", "", three)]) == "a wins 2 of its 2 comparisons and loses none."
    assert headlines.contest([Instance("", "", three)] * 2 + [Instance("", "", lost)]) == (
        "a wins 5 of its 6 comparisons and loses 1."
    )
    same = {"a": one, "b": curve(np.sqrt, 0.5, seed=3)}
    assert headlines.contest([Instance("", "", same)]) == "The tests find no difference between any two learners."
    few = curve(np.sqrt, 0.5, runs=5)
    said = headlines.contest([Instance("", "", {"a": few, "b": shifted(few, 9)})])
    assert said == "There are too few runs to tell who is better: 8 are enough."


def test_how_regret_grows():
    flat, root, log = curve(lambda t: 40 - 1 / t), curve(np.sqrt), curve(lambda t: 5 + 20 * np.log(t))
    unknown = curve(lambda t: 10 + np.log(t) ** 1.5, 0.5, runs=6)
    assert headlines.growth({"a": root, "b": log, "c": root, "d": flat, "e": unknown}) == (
        "The regret of d has stopped growing; that of b grows like log T; that of a and c grows like √T; "
        "for e this is not clear yet."
    )
    assert headlines.growth({"a": flat, "b": flat}) == "The regret of a and b has stopped growing."
    assert headlines.growth({"e": unknown}) == "It is not clear yet how the regret of e grows."
    two = curve(np.sqrt, last=2)
    assert headlines.growth({"a": two}) == "There are too few checkpoints to say how regret grows."


def test_bounds_hold_or_are_broken():
    one, other = curve(np.sqrt), curve(lambda t: 2 * np.sqrt(t))
    roof = Bound("Theorem 4", one.rounds, 10 * np.sqrt(one.rounds))
    point = Bound("derived", one.rounds[-1:], np.array([1000.0]))
    assert headlines.bounds({}, {"a": one}) == ""
    assert headlines.bounds({"a": roof}, {"a": one}) == "It ends at 10 % of Theorem 4, 3,162."
    said = headlines.bounds({"a": roof, "b": point}, {"a": one, "b": other})
    assert said == "All stay below what is promised; nearest is b, at 63 % of its bound, 1,000."
    low = Bound("Theorem 2", one.rounds, np.where(one.rounds < 5_000, 1e6, np.sqrt(one.rounds) / 2))
    first = one.rounds[one.rounds >= 5_000][0]
    said = headlines.bounds({"a": low, "b": point}, {"a": one, "b": other})
    assert said == f"a is above its bound: a from round {first:,}, of Theorem 2, 158."
    both = headlines.bounds({"a": low, "b": point._replace(values=np.array([9.0]))}, {"a": one, "b": other})
    assert both.startswith("a and b are above their bounds: a from round")


def test_a_noisy_mean_above_a_bound_is_not_yet_a_broken_bound():
    one = curve(np.sqrt, 0.9, runs=10)
    mean, (low, _) = one.regret.mean(axis=0), one.band
    assert (low < 0.99 * mean).all()
    inside = Bound("Theorem 4", one.rounds, 0.99 * mean)
    assert headlines.bounds({"a": inside}, {"a": one}).startswith("It ends at 101 %")


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        ({"a": (4.0, 1.0)}, "θ of a falls from 4 to 1."),
        ({"a": (4.0, 4.1), "b": (2.0, 9.0)}, "θ of b rises from 2 to 9."),
        ({"a": (4.0, 4.1)}, "θ stays where it was: 4.1 at the end for a."),
        ({"a": (0.0, 0.0)}, "θ stays where it was: 0 at the end for a."),
    ],
)
def test_what_is_traced(drawn, said):
    assert headlines.trace("θ", drawn) == said


@pytest.mark.parametrize(
    ("exponents", "changes", "said"),
    [
        ({"a": Power(0.5, 0.4, 0.6)}, {}, "The regret of a grows like K^0.50 (0.40 to 0.60)."),
        (
            {"a": Power(0.5, 0.4, 0.6), "b": Power(-1.0, -1.1, -0.9)},
            {},
            "; that of b falls like K^-1.00 (-1.10 to -0.90).",
        ),
        ({"a": Power(0.1, -0.1, 0.3)}, {}, "The regret of a does not depend on K."),
        ({"a": Power(0.01, 0.005, 0.015)}, {}, "The regret of a does not depend on K."),
        ({}, {"a": 2.0, "b": 0.5}, "the regret of a becomes 2 times as large, that of b 0.5 times."),
        ({}, {"a": 2.0}, "the regret of a becomes 2 times as large."),
        ({}, {}, "Regret against K."),
    ],
)
def test_the_trend_along_a_parameter(exponents, changes, said):
    assert trend("K", exponents, changes).endswith(said)


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (sl.graphs.self_loops(4), "g: no arm reveals another. This is a bandit."),
        (sl.graphs.complete(4), "g: every arm reveals all. This is full information."),
        (sl.graphs.star(6), "g: 1 arm shows all, and the largest set in which no arm reveals another has 5 of 6 arms."),
        (
            sl.graphs.cliques([3, 3]),
            "g: 2 arms show all, and the largest set in which no arm reveals another has 2 of 6 arms.",
        ),
        (LOST, "g: the largest set in which no arm reveals another has 2 of 3 arms, and some arm is never seen."),
    ],
)
def test_what_a_graph_gives_away(graph, said):
    assert headline("g", graph) == said


@pytest.mark.parametrize(
    ("part", "said"), [(0.0002, "less than 0.1 %"), (0.0123, "1.2 %"), (0.5, "50 %"), (12.3, "1,230 %")]
)
def test_percents_are_short(part, said):
    assert headlines.percent(part) == said


def test_one_run_has_no_interval_and_few_have_one_that_is_too_narrow():
    assert headlines.interval(1) == "There is one run, so there is no interval."
    assert headlines.interval(4) == (
        "Mean over 4 runs, with the 95 % bootstrap interval, which is too narrow for so few runs; the paler band holds "
        "nine of ten runs."
    )
    assert headlines.interval(40) == (
        "Mean over 40 runs, with the 95 % bootstrap interval; the paler band holds nine of ten runs."
    )


def test_one_run_above_a_bound_on_the_mean_breaks_nothing():
    one = curve(np.sqrt, runs=1)
    low = Bound("Theorem 4", one.rounds, np.sqrt(one.rounds) / 2)
    assert "above" not in headlines.bounds({"a": low}, {"a": one})
    assert "is above its bound" in headlines.bounds({"a": low}, {"a": curve(np.sqrt)})
