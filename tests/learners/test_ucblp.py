"""UCB-LP: its linear program, its plays against the oracle and by hand, and late feedback."""

import math

import numpy as np
import pytest
from scipy import optimize

import naive
import sidelong as sl
from learners.stepping import Stepper, follow, random_digraph
from nightly import share
from sidelong.errors import LearnerError, ObservabilityError
from sidelong.learners import ucblp

COVERS = {
    "self-loops": (sl.graphs.self_loops(5), 5),
    "complete": (sl.graphs.complete(5), 1),
    "star": (sl.graphs.star(6, hub=2), 1),
    "cycle": (sl.graphs.cycle(7), 7 / 3),
    "directed cycle": (sl.graphs.directed_cycle(5), 5 / 2),
    "path": (sl.graphs.path(7), 3),
    "cliques": (sl.graphs.cliques([4, 3, 3]), 3),
    "nested": (sl.graphs.nested(6), 1),
    "petersen": (sl.graphs.petersen(), 10 / 4),
}


@pytest.mark.parametrize("name", COVERS)
def test_the_cover_is_the_fractional_domination_number(name):
    graph, value = COVERS[name]
    z = ucblp.fractional_cover(graph)
    assert z.sum() == pytest.approx(value, abs=1e-9)
    assert (z @ graph.matrix() >= 1 - 1e-9).all()


OTHER_WAY = {"method": "highs-ipm"}


def packing_number(A):
    """Maximise the sum of y so that no arm reveals more than 1 of it: the dual program, with the same value."""
    return -optimize.linprog(-np.ones(len(A)), A_ub=A.astype(float), b_ub=np.ones(len(A))).fun


@pytest.mark.parametrize("seed", range(8))
def test_the_cover_is_optimal_and_does_not_depend_on_the_path_of_the_solver(seed, monkeypatch):
    A = random_digraph(np.random.default_rng(seed), 12) if seed % 2 else sl.graphs.cycle(12 + seed).matrix()
    graph = sl.FeedbackGraph.from_matrix(A)
    z = ucblp.fractional_cover(graph)
    assert (z >= 0).all()
    assert (z @ A >= 1 - 1e-9).all()
    assert z.sum() == pytest.approx(packing_number(A), abs=1e-9)
    solve = optimize.linprog
    monkeypatch.setattr(optimize, "linprog", lambda *args, **options: solve(*args, **options | OTHER_WAY))
    np.testing.assert_allclose(ucblp.fractional_cover(graph), z, atol=1e-7)


@pytest.mark.interpreted
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", share(range(6), 3))
def test_agrees_with_the_oracle_in_every_round(seed, late):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 9))
    A = random_digraph(rng, K)
    agent = sl.Agent("ucb-lp", sl.FeedbackGraph.from_matrix(A), seed=seed, horizon=[50, 300, 2000][seed % 3])
    oracle = naive.UcbLp(agent._setup.params.z.tolist(), horizon=[50, 300, 2000][seed % 3])
    follow(agent, oracle, [A], rounds=1000, late=late, seed=seed)
    state = agent._state
    assert np.flatnonzero(state.B).tolist() == sorted(oracle.B)
    assert state.clock[0] == oracle.m > 0
    assert agent.estimates().counts.tolist() == oracle.O


@pytest.mark.interpreted
def test_rounds_by_hand():
    """Two arms that reveal each other, T = 1000: n = 14, 45, 133, and a gap of 0.4 shows when D < 0.4."""
    stepper = Stepper("ucb-lp", sl.graphs.complete(2), horizon=1000)
    rounds = []
    for _ in range(200):
        p = stepper.distribution()
        rounds.append((stepper.traced("round"), stepper.traced("survivors")))
        assert sorted(p) == [0, 1]
        stepper.update(int(np.argmax(p)), [0.7, 0.3])
    assert [rounds.count(each) for each in ((0, 2), (1, 2), (2, 2), (3, 1))] == [14, 45 - 14, 133 - 45, 200 - 133]
    assert stepper.distribution().tolist() == [0, 1]


@pytest.mark.interpreted
def test_the_cover_is_played_until_the_survivors_are_cheaper():
    """On a star the hub reveals all, and is dropped by round 1, with D = 1/2. Still it is played in rounds 2 and 3,

    since 1 <= 3 min(1, 4/4) and 1 <= 3 min(1, 4/8). In round 4, 1 > 3 min(1, 4/16).
    """
    stepper = Stepper("ucb-lp", sl.graphs.star(4, hub=0), horizon=10_000)
    played = {}
    for _ in range(5000):
        arm = int(np.argmax(stepper.distribution()))
        played.setdefault(stepper.traced("round"), set()).add(arm)
        stepper.update(arm, [0.9, 0.4, 0.4, 0.45])
        assert stepper.state.B[0] == (stepper.state.clock[0] < 2)
    assert played == {0: {0}, 1: {0}, 2: {0}, 3: {0}, 4: {1, 2, 3}, 5: {1, 2, 3}}


@pytest.mark.parametrize("seed", range(6))
def test_the_plays_of_a_cover_are_enough(seed):
    """However the ceilings and the rounding of z fall, each arm is revealed n(m) - n(m - 1) times in round m."""
    A = random_digraph(np.random.default_rng(seed), 30)
    graph = sl.FeedbackGraph.from_matrix(A)
    params = ucblp.configure(graph, horizon=10**9)
    state = ucblp.init(params, graph)
    before = 0
    for m in range(12):
        state.clock[:] = [m, 0.5**m, before, 10**6]  # so many survivors that the cover is the cheaper
        ucblp.plan(params, state)
        n = state.clock[2]
        assert (state.left @ A >= n - before).all()
        assert state.left.sum() <= params.z_total * (n - before) + 30
        before = n


@pytest.mark.interpreted
def test_nothing_is_dropped_before_every_survivor_was_observed_often_enough_however_late():
    """Feedback comes in batches of 9, in a random order; one decision in five is cancelled."""
    rng = np.random.default_rng(3)
    agent = sl.Agent("ucb-lp", sl.graphs.directed_cycle(5), horizon=3000)
    state = agent._state
    while agent.round < 8000 and state.clock[3] > 1:
        for decision in rng.permutation([agent.ask() for _ in range(9)]):
            if rng.random() < 0.2:
                agent.cancel(decision)
                continue
            survivors, n = state.B.copy(), state.clock[2]
            agent.tell(decision, [float(rng.random() < [0.2, 0.5, 0.5, 0.8, 0.8][i]) for i in decision.reveals])
            if state.clock[2] > n:
                assert (state.O[survivors] >= n).all()
    assert state.B.tolist() == [True, False, False, False, False]


@pytest.mark.interpreted
def test_decisions_asked_at_once_are_spread_over_the_plan():
    agent = sl.Agent("ucb-lp", sl.graphs.cliques([2, 2, 2]), horizon=1000)
    arms = [agent.ask().arm for _ in range(60)]
    assert sorted(np.bincount(arms)[np.bincount(arms) > 0]) == [20, 20, 20]


@pytest.mark.interpreted
def test_cancelled_decisions_leave_no_trace():
    agent, other = (sl.Agent("ucb-lp", sl.graphs.path(4), horizon=100) for _ in range(2))
    before = [array.tolist() for array in agent._state]
    for _ in range(50):
        agent.cancel(agent.ask())
    assert [array.tolist() for array in agent._state] == before
    assert {agent.ask().arm for _ in range(8)} == {other.ask().arm for _ in range(8)}


@pytest.mark.interpreted
@pytest.mark.parametrize("horizon", [1, 2, 3, 11])
def test_when_no_round_is_left_the_best_survivor_is_played(horizon):
    """T D^2 < e at once, or after one round or two."""
    stepper = Stepper("ucb-lp", sl.graphs.complete(3), horizon=horizon)
    for _ in range(40):
        stepper.update(int(np.argmax(stepper.distribution())), [0.5, 0.5, 0.4])
    assert stepper.state.clock[2] == math.inf
    assert stepper.traced("round") == [0, 0, 1, 2][[1, 2, 3, 11].index(horizon)]
    assert stepper.distribution().tolist() == [0, 0, 1]


def test_the_graph_helps_it():
    """Plays are fixed but for which survivors are dropped early; the factor is about 3, and 2 is tested."""
    world = sl.losses.bernoulli([0.4] + [0.6] * 9)
    graphs = sl.graphs.cliques([4, 3, 3]), sl.graphs.self_loops(10)
    a, b = (sl.simulate("ucb-lp", each, world, rounds=100_000, runs=4, checkpoints=1).regret for each in graphs)
    assert a.mean() < b.mean() / 2


def test_it_finds_the_best_arm_and_stays_with_it():
    """The best is dropped with probability at most 2 K sum_m 1 / (T D^2) until gaps of 0.3 show: 1e-2 for 4 runs."""
    world = sl.losses.bernoulli([0.6, 0.3, 0.6, 0.6, 0.6])
    result = sl.simulate("ucb-lp", sl.graphs.star(5), world, rounds=100_000, runs=4, checkpoints=[20_000, 100_000])
    assert (result.traces["survivors"][:, 1] == 1).all()
    assert result.regret[:, 1] == pytest.approx(result.regret[:, 0], abs=1e-6)


def test_graphs_that_it_cannot_take_are_refused(monkeypatch):
    with pytest.raises(ObservabilityError, match="ucb-lp needs every arm to reveal itself, and arm 1"):
        sl.Agent("ucb-lp", sl.FeedbackGraph.from_edges([(0, 0), (0, 1)], 2), horizon=9)
    with pytest.raises(LearnerError, match=r"at most 1,000,000 edges, and .* has more"):
        sl.Agent("ucb-lp", sl.graphs.complete(1001), horizon=9)
    failed = optimize.OptimizeResult(success=False, message="Time limit reached.", x=None)
    monkeypatch.setattr(optimize, "linprog", lambda *_, **__: failed)
    with pytest.raises(LearnerError, match="was not solved: Time limit reached"):
        sl.Agent("ucb-lp", sl.graphs.complete(3), horizon=9)
