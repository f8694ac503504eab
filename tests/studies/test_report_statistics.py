"""What a report computes: growth, intervals, and tests on pairs."""

import itertools

import numpy as np
import pytest
from scipy import stats

from sidelong.studies.curves import FLAT, UNDECIDED, Curve
from sidelong.studies.files import Files
from sidelong.studies.report.pairs import LEVEL, chance_of_no_difference, duels, least_runs, signed_rank
from sidelong.studies.report.parameters import Sweep, exponents, parameters, sweeps
from sidelong.studies.report.reading import StudyReading
from studies.made import curve, shifted


@pytest.mark.parametrize(
    ("law", "mean"),
    [
        ("log T", lambda t: 5 + 20 * np.log(t)),
        ("log² T", lambda t: 30 + 4 * np.log(t) ** 2),
        ("√T", lambda t: 10 + 3 * np.sqrt(t)),
        ("T", lambda t: 0.1 * t),
    ],
)
def test_the_law_of_growth_is_found(law, mean):
    found = curve(mean)
    assert found.law[0] == law
    assert found.law[1] >= 0.9
    assert found.growth == law


def test_a_law_that_the_noise_hides_is_undecided():
    assert curve(lambda t: 10 + np.log(t) ** 1.5, 0.5, runs=6).growth == UNDECIDED


def test_a_curve_that_is_too_steep_for_the_law_that_fits_best_is_undecided():
    """A curve that has only begun: sqrt(t) - 50 is not seen to be a square root until t is far above 2,500."""
    steep = curve(lambda t: np.maximum(np.sqrt(t) - 50, 0.01))
    assert steep.law[0] == "√T"
    assert steep.growth == UNDECIDED
    assert curve(lambda t: t**0.5).growth == "√T"


def test_flat_is_flat_and_a_logarithm_is_not():
    assert curve(lambda t: 40 - 20 / t).growth == FLAT
    assert curve(np.zeros_like).growth == FLAT
    assert curve(np.log1p, last=10**8).growth == "log T"  # of a slope of 0.06


@pytest.mark.parametrize(("runs", "outside"), [(1, 0), (16, 0), (40, 2), (200, 10)])
def test_the_spread_holds_nine_of_ten_runs(runs, outside):
    found = curve(np.sqrt, 0.1, runs=runs)
    low, high = found.spread
    assert ((found.regret < low).sum(axis=0) <= outside).all()
    assert ((found.regret > high).sum(axis=0) == outside).all()
    within = (found.regret >= low) & (found.regret <= high)
    assert (within.mean(axis=0) >= 0.9).all()


def test_too_few_checkpoints_say_nothing():
    whole = curve(np.sqrt)
    few = Curve(whole.spec, 4, whole.rounds[-3:], whole.regret[:, -3:], {}, (), whole.runs)
    assert (few.slope, few.law, few.growth) == (None, None, None)


@pytest.mark.parametrize("power", [0.5, 0.8, 1.0])
def test_the_interval_of_the_slope_has_the_slope_in_it(power):
    value, low, high = curve(lambda t: 3 * t**power, 0.2).slope
    assert low <= power <= high  # the seed is fixed; the interval misses in 5 % of all seeds
    assert low < value < high < low + 0.1


def test_the_band_covers_the_mean_about_as_often_as_it_says():
    """400 curves of 30 runs: a 95 % bootstrap band covers in 93 % of them; below 88 % has a chance under 1 in 1,000."""
    covered = 0
    for seed in range(400):
        low, high = curve(np.sqrt, 0.3, runs=30, seed=seed, points=2).band
        covered += low[-1] <= np.sqrt(100_000) <= high[-1]
    assert 0.88 <= covered / 400 <= 0.99


def test_paired_runs_tell_a_small_difference():
    one = curve(np.sqrt, 0.5)
    assert chance_of_no_difference(one, shifted(one, 1.0)) < 1e-6
    assert chance_of_no_difference(one, one) == 1.0


@pytest.mark.parametrize(
    "differences", [[1, -2, 3, 3, -3, 4, 5], [0, 0, 2, -2, 2, 2, 7, 1], [1, 1, 1, 1, 1, 1], [-1.5, 1.5] * 4]
)
def test_the_signed_rank_test_is_exact_with_ties(differences):
    """As it is defined: the share of all signs for which the sum of ranks is at least as far out."""
    known = np.array([each for each in differences if each], float)
    ranks = np.array([(np.abs(known) < abs(x)).sum() + ((np.abs(known) == abs(x)).sum() + 1) / 2 for x in known])
    sums = np.array([ranks @ signs for signs in itertools.product([0, 1], repeat=known.size)])
    above = ranks[known > 0].sum()
    expected = min(1.0, 2 * min((sums >= above).mean(), (sums <= above).mean()))
    assert signed_rank(np.array(differences, float)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("runs", [6, 13, 30, 50, 51, 200])
def test_the_signed_rank_test_without_ties_is_that_of_scipy(runs):
    differences = np.random.default_rng(runs).normal(0.3, 1, runs)
    assert signed_rank(differences) == pytest.approx(stats.wilcoxon(differences).pvalue, rel=1e-9)


def test_runs_are_paired_by_seed_and_number_and_not_by_row():
    one = curve(np.sqrt, 0.5)
    other = shifted(one, 1.0)
    order = np.random.default_rng(0).permutation(40)[:30]  # some are missing, and none is in its place
    mixed = Curve(
        other.spec, 4, other.rounds, other.regret[order], {}, (), tuple(other.runs[row] for row in order)
    )  # fmt: skip
    assert chance_of_no_difference(one, mixed) < 1e-5
    strangers = Curve(other.spec, 4, other.rounds, other.regret, {}, (), tuple((1, run) for run in range(40)))
    assert chance_of_no_difference(one, strangers) is None


def test_duels_know_who_is_better_and_when_nobody_can_say():
    one = curve(np.sqrt, 0.5)
    found = duels({"a": one, "b": shifted(one, 2.0), "c": curve(np.sqrt, 0.5, seed=1)})
    assert (found["a", "b"].verdict, found["b", "a"].verdict) == ("less", "more")
    assert found["a", "c"].verdict == "same"
    few = curve(np.sqrt, 0.5, runs=8)
    assert duels({"a": few, "b": shifted(few, 2.0)})["a", "b"].verdict == "less"
    fewer = curve(np.sqrt, 0.5, runs=7)
    assert duels({"a": fewer, "b": shifted(fewer, 2.0)})["a", "b"].verdict == "untested"


@pytest.mark.parametrize("tests", [1, 3, 10, 45])
def test_the_least_number_of_runs_is_the_least(tests):
    runs = least_runs(tests)
    assert tests * 2 / 2**runs < LEVEL <= tests * 2 / 2 ** (runs - 1)


def test_holm_keeps_a_false_alarm_as_rare_as_it_says():
    """100 instances of 4 learners that are the same: 1 % have a false alarm; 6 or more have a chance of 1 in 2,000."""
    alarms = 0
    for seed in range(100):
        same = {name: curve(np.sqrt, 0.5, runs=20, seed=1000 * seed + k, points=2) for k, name in enumerate("abcd")}
        alarms += any(duel.verdict != "same" for duel in duels(same).values())
    assert alarms < 6


def test_runs_and_means_that_disagree_are_split():
    one = curve(np.sqrt, 0.1)
    risky = shifted(one, -50.0)
    risky.regret[:4] += 10_000
    assert duels({"a": one, "b": risky})["b", "a"].verdict == "split"
    risky.regret[:4] -= 10_000
    assert duels({"a": one, "b": risky})["b", "a"].verdict == "less"


def test_the_exponent_along_a_parameter():
    points = [(float(K), curve(lambda t, K=K: K**0.7 * np.sqrt(t), 0.1, seed=K)) for K in (2, 4, 8, 16)]
    found = exponents(Sweep("K", "", {"a": points, "b": points[:2]}))
    assert [*found] == ["a"]
    value, low, high = found["a"]
    assert low < 0.7 < high  # the seed is fixed; the interval misses in 5 % of all seeds
    assert low < value < high < low + 0.2
    assert exponents(Sweep("budget", "", {"a": [(0.0, points[0][1]), *points[1:]]})) == {}


def test_a_sweep_is_along_one_number_with_all_else_equal():
    def played(n, gap, eta):
        learner = {"name": "exp3.g++", "eta_scale": eta}
        world = {"name": "bernoulli", "means": {"gap": gap}}
        return curve(np.sqrt, points=3, learner=learner, graph={"name": "star", "n": n}, world=world, rounds=9, seed=1)

    grid = [played(n, gap, eta) for n in (2, 4, 8) for gap in (0.1, 0.2) for eta in (0.5, 1.0, 2.0)]
    found = [*sweeps(StudyReading("x", None, grid, Files()))]
    assert [each.name for each in found].count("K") == 2  # for each gap; each learner has a line
    assert [each.name for each in found].count("eta_scale") == 6
    assert {each.name for each in found} == {"K", "eta_scale"}
    along = next(each for each in found if each.name == "eta_scale")
    assert [value for value, _ in along.points["exp3.g++"]] == [0.5, 1.0, 2.0]
    drawn = [*parameters(StudyReading("x", None, grid, Files()))]
    assert [len(figures) for _, figures in drawn] == [6, 2]


def test_numbers_in_step_are_one_parameter():
    curves = [
        curve(np.sqrt, points=3, world={"name": "corrupted", "budget": budget}, rounds=rounds)
        for rounds, budget in ((100, 10), (400, 20), (1600, 40))
    ]
    assert [*sweeps(StudyReading("x", None, curves, Files()))] == []
    study = {"rounds": {"zip": [100, 400, 1600]}, "world": [{"name": "corrupted", "budget": {"zip": [10, 20, 40]}}]}
    (found,) = sweeps(StudyReading("x", study, curves, Files()))
    assert (found.name, [value for value, _ in found.points["x"]]) == ("T", [100, 400, 1600])


def test_of_one_run_no_law_is_told():
    assert curve(np.sqrt, runs=1).growth == UNDECIDED
    assert curve(np.sqrt, runs=2).growth == "√T"
