"""The bounds in a report are those of the theory, and are drawn only where their theorems speak."""

import numpy as np
import pytest

import sidelong as sl
from sidelong import theory
from sidelong.studies.files import Files
from sidelong.studies.report.promised import Promised
from studies.made import curve

MEANS = {"gap": 0.2}


def bound(learner, graph=None, world=None, **numbers):
    made = curve(
        np.sqrt,
        learner={"name": learner} if isinstance(learner, str) else learner,
        graph=graph or {"name": "star", "n": 10},
        world=world or {"name": "constrained", "gaps": 0.2},
        rounds=100_000,
        **numbers,
    )
    return Promised(Files()).of(made)


def test_theorem_4_is_that_of_the_theory():
    setting = theory.Setting(sl.graphs.star(10))
    found = bound("exp3.g++")
    assert found.name == "Theorem 4"
    T = 100_000.0
    assert found.values[-1] == min(
        theory.theorem_4_adversarial(K=10, T=T, independence_sum=9 * T),
        theory.theorem_4_theta(K=10, T=T, theta_sum=setting.acyclic * T),
    )
    assert found.rounds.size == found.values.size > 50
    assert (np.diff(found.values) > 0).all()


def test_the_fixed_rate_has_theorems_2_and_3_and_the_smaller_is_taken():
    fixed = {"name": "exp3.g++", "rate": "fixed"}
    found = bound(fixed)
    assert found.name == "Theorem 2"
    assert found.values[-1] == theory.theorem_2(K=10, T=100_000, strong_independence=9)
    # In this world Theorem 3 holds too, and for as many rounds as anyone plays it is the larger one.
    assert bound(fixed, world={"name": "bernoulli", "means": MEANS}).name == "Theorem 2"
    assert bound("ucb-n", world={"name": "bernoulli", "means": MEANS}).name == "its paper"
    assert bound("ucb-n") is None  # it promises nothing against an adversary


@pytest.mark.parametrize(
    "options",
    [{"gamma": 1.0}, {"beta": 1.0}, {"refresh": "epoch", "eta_scale": 3.0}, {"rate": "fixed", "eta_scale": 2.0}],
)
def test_a_learner_with_other_constants_is_promised_nothing(options):
    assert bound({"name": "exp3.g++", **options}) is None


def test_options_that_say_what_is_so_anyway_change_nothing():
    assert bound({"name": "exp3.g++", "rate": "adaptive", "gamma": 4}).name == "Theorem 4"
    assert bound({"name": "exp3.g++", "refresh": "epoch"}).name == "derived"


def test_what_is_tuned_for_a_horizon_is_promised_there_alone():
    assert bound("exp3.g").rounds.tolist() == [100_000]
    assert bound("exp3-ix").rounds.size > 50


def test_graphs_that_change_have_theorem_4_with_their_largest_numbers():
    both = [{"name": "nested", "n": 10}, {"name": "star", "n": 10}]
    found = bound("exp3.g++", {"name": "alternating", "graphs": both})
    assert found.name == "Theorem 4"
    assert found.values[-1] == pytest.approx(bound("exp3.g++", {"name": "nested", "n": 10}).values[-1])  # mas is 10
    assert bound("exp3.g++", {"name": "alternating", "graphs": both, "shown": "after"}) is None
    assert bound("exp3.g++", {"name": "resampled", "n_arms": 5, "r": 0.3}) is None
    assert bound("exp3-set", {"name": "alternating", "graphs": both}) is None


def test_where_theory_is_silent_so_is_the_report():
    assert bound("exp3.g++", {"name": "self_loops", "n": 1}, {"name": "bernoulli", "means": [0.5]}) is None
    assert bound("ts-n") is None
    assert bound("uniform") is None
    same = {"name": "bernoulli", "means": [0.5] * 10}
    assert bound("exp3.g++", world=same).name == "Theorem 4"  # no gaps, and adversaries are worse than that


def test_no_theorem_is_about_late_feedback():
    assert bound("exp3.g++", delay=10) is None
    assert bound("exp3.g++", {"name": "alternating", "graphs": [{"name": "star", "n": 10}]}, delay=10) is None
