"""What learners promise on a graph: complete, true to the numbers, and kept by the learners."""

import numpy as np
import pytest

import sidelong as sl
from sidelong import graphs, theory
from sidelong.errors import GraphError, TheoryError
from sidelong.graphs.numbers import GraphNumbers
from sidelong.learners import catalogue
from sidelong.theory.promises import _ROWS


def promise_of(setting, title):
    return next(each for each in theory.promises(setting, catalogue.names()) if each.title == title)


def test_every_learner_of_the_catalogue_is_listed_and_no_other():
    setting = theory.Setting(graphs.self_loops(3))
    listed = theory.promises(setting, catalogue.names())
    assert list(dict.fromkeys(promise.learner for promise in listed)) == list(catalogue.names())
    assert {row.learner for row in _ROWS} <= set(catalogue.names())
    for promise in listed:
        module = catalogue.choose(promise.learner, promise.options)
        for world, bound in (("adversarial", promise.adversarial_source), ("stochastic", promise.stochastic_source)):
            assert not bound or bound == "exact" or world in module.about.proved, promise.title


def test_the_bounds_are_those_of_the_numbers():
    graph = graphs.rotational_tournament(9)  # numbers 1, 5, 9
    gaps = [0.0] + [0.25] * 8
    setting = theory.Setting(graph, gaps)
    T = 1e6
    fixed = promise_of(setting, "exp3.g++ fixed")
    assert fixed.adversarial(setting, T) == theory.theorem_2(K=9, T=T, strong_independence=9)
    assert fixed.stochastic(setting, T) == pytest.approx(
        theory.theorem_3(T=T, gaps=gaps, strong_independence=9, inverse_gap_sum=32), rel=1e-6
    )
    adaptive = promise_of(setting, "exp3.g++")
    assert adaptive.adversarial(setting, T) == min(
        theory.theorem_4_adversarial(K=9, T=T, independence_sum=T), theory.theorem_4_theta(K=9, T=T, theta_sum=5 * T)
    )
    assert promise_of(setting, "exp3-set").adversarial(setting, T) == theory.rivals.exp3_set(K=9, T=T, acyclic=5)
    assert not setting.intervals


def order_without_cycles(n):
    """Return a graph whose largest acyclic set is all of it, and whose independent sets are small."""
    ahead = np.triu(np.random.default_rng(1).random((n, n)) < 0.5, 1)
    return sl.FeedbackGraph.from_matrix(ahead).with_self_loops()


@pytest.mark.parametrize(
    "graph", [graphs.erdos_renyi(40, 0.1, 3, directed=True), order_without_cycles(100)], ids=["random", "order"]
)
def test_an_interval_leaves_the_bound_a_bound(graph):
    gaps = np.append(0.0, np.linspace(0.1, 0.9, graph.n_arms - 1))
    known, unknown = theory.Setting(graph, gaps), theory.Setting(graph, gaps, budget=0)
    for exact, rough in zip(
        theory.promises(known, ["exp3.g++", "exp3.g", "exp3-set", "exp3-ix", "elp", "ito-2022"]),
        theory.promises(unknown, ["exp3.g++", "exp3.g", "exp3-set", "exp3-ix", "elp", "ito-2022"]),
        strict=True,
    ):
        for one, other in ((exact.adversarial, rough.adversarial), (exact.stochastic, rough.stochastic)):
            if one:
                assert one(known, 1e7) <= other(unknown, 1e7) * (1 + 1e-5), exact.title
                assert one(known, 1e5) <= other(unknown, 1e5) * (1 + 1e-5), exact.title
    assert unknown.independence[0] <= known.independence[0] == known.independence[1] <= unknown.independence[1]
    assert unknown.intervals
    assert "acyclic" not in known.intervals


def test_a_graph_too_large_for_its_numbers_still_has_bounds(monkeypatch):
    def refuse(*_):
        raise GraphError("too large")

    for name in ("acyclic", "strong_independence", "fractional_domination"):
        monkeypatch.setattr(GraphNumbers, name, property(refuse))
    monkeypatch.setattr(GraphNumbers, "weighted_strong_independence", refuse)
    setting = theory.Setting(graphs.out_star(6), [0, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert (setting.acyclic, setting.strong_independence, setting.inverse_gap_sum) == (6, 6, pytest.approx(50))
    assert setting.fractional_domination == setting.cover == 1
    assert set(setting.intervals) >= {"acyclic", "strong independence", "sum of 1 / gap"}


@pytest.mark.parametrize("title", ["exp3.g++", "exp3.g++ fixed", "tsallis-inf rv", "ito-2022"])
def test_the_crossing_is_where_the_stochastic_bound_becomes_the_smaller_one(title):
    setting = theory.Setting(graphs.cliques([3, 3, 2]), [0, 0.2, 0.2, 0.3, 0.3, 0.4, 0.4, 0.4])
    promise = promise_of(setting, title)
    T = theory.crossing(setting, promise)
    assert promise.stochastic(setting, 0.999 * T) > promise.adversarial(setting, 0.999 * T)
    for later in (1.001, 2, 10, 1e6):
        assert promise.stochastic(setting, later * T) < promise.adversarial(setting, later * T)


def test_without_gaps_nothing_is_promised_in_stochastic_worlds():
    setting = theory.Setting(graphs.star(4))
    assert all(promise.stochastic is None for promise in theory.promises(setting, catalogue.names()))
    assert theory.crossing(setting, promise_of(setting, "exp3.g++")) is None
    with pytest.raises(TheoryError, match="needs gaps"):
        setting.inverse_gap_sum  # noqa: B018


def test_bounds_for_one_best_arm_are_left_out_where_there_are_two():
    setting = theory.Setting(graphs.star(4), [0, 0, 0.1, 0.1])
    assert promise_of(setting, "ito-2022").stochastic is None
    assert promise_of(setting, "exp3.g++").stochastic is not None
    with pytest.raises(TheoryError, match="2 arms have gap 0"):
        theory.rivals.ito_2022_stochastic(T=10, gaps=[0, 0, 0.1, 0.1], strong_independence=3)


def test_without_self_loops_exp3_g_has_no_constants():
    setting = theory.Setting(sl.FeedbackGraph.from_matrix(1 - np.eye(4, dtype=int)))
    assert promise_of(setting, "exp3.g").adversarial is None


@pytest.mark.parametrize(
    ("graph", "from_round"),
    [(graphs.self_loops(10), 2.33e7), (graphs.star(10), 1.11e8), (graphs.nested(10), 1.25e8)],
    ids=["self-loops", "star", "nested"],
)
def test_the_bound_of_glance_says_more_than_random_play_as_late_as_its_page_says(graph, from_round):
    setting = theory.Setting(graph)
    promise = promise_of(setting, "glance")
    T = theory.worth_from(setting, promise)
    assert pytest.approx(from_round, rel=0.01) == T
    assert promise.adversarial(setting, 0.999 * T) > 0.9 * 0.999 * T
    for later in (1.001, 10, 1e6):
        assert promise.adversarial(setting, later * T) < 0.9 * later * T
    assert theory.worth_from(setting, promise_of(setting, "ts-n")) is None


def test_the_bound_with_high_probability_is_that_of_the_kind_of_graph():
    weak = sl.FeedbackGraph.from_edges([(0, 0), (0, 1), (0, 2), (1, 0), (3, 3), (3, 4)], 5)
    setting = theory.Setting(weak)
    promise = promise_of(setting, "luo-2023")
    numbers = {"K": 5, "T": 1e5, "domination": 2, "loop_independence": 2}
    assert promise.likely(setting, 1e5, 0.05) == theory.rivals.luo_2023_weak(**numbers, failure=0.05)
    assert promise.adversarial(setting, 1e5) == theory.rivals.luo_2023_weak(**numbers, failure=1e-5) + 1
    loopless = theory.Setting(sl.FeedbackGraph.from_matrix(np.roll(np.eye(5, dtype=int), 1, axis=1)))
    assert loopless.loop_independence == (0, 0)
    strong = theory.Setting(graphs.cycle(7))
    found = promise_of(strong, "luo-2023").likely(strong, 1e5, 0.01)
    assert found == theory.rivals.luo_2023(K=7, T=1e5, independence=3, failure=0.01)


def test_there_is_one_gap_for_each_arm():
    with pytest.raises(TheoryError, match="3 arms, and 2 gaps"):
        theory.Setting(graphs.star(3), [0, 1])


@pytest.mark.parametrize("title", ["exp3-dom", "exp3.g", "elp"])
def test_learners_keep_what_is_derived_for_them(title):
    """Mean regret over 20 runs against a constrained adversary; it lies far below, so that chance plays no part."""
    graph, T = graphs.cliques([2, 3]), 3000
    setting = theory.Setting(graph)
    world = sl.losses.constrained(gaps=0.3, n_arms=5, best=4)
    result = sl.simulate(title, graph, world, rounds=T, runs=20, seed=1)
    assert 0 < result.regret[:, -1].mean() < promise_of(setting, title).adversarial(setting, T)
