"""What a simulation returns and means, what it refuses, and that it can be watched and stopped."""

import io
import itertools
import math
import os
import re
import resource
import signal
import subprocess
import sys
import time
import tracemalloc
import types
from pathlib import Path

import numba
import numpy as np
import psutil
import pytest

import sidelong as sl
from losses.world_examples import EXAMPLES
from nightly import share
from sidelong import progress
from sidelong.errors import (
    CodeError,
    GraphError,
    LearnerError,
    LossError,
    ObservabilityError,
    SimulationError,
    WorldError,
)
from simulation import endless, round_robin

pytestmark = pytest.mark.compiled

MEANS = [0.5, 0.2, 0.9, 0.4]
WORLD = sl.losses.bernoulli(MEANS)
GRAPH = sl.FeedbackGraph.from_edges([(0, 1), (1, 2), (2, 0), (3, 0)], self_loops=True)


def simulate(learner="exp3.g++", graph=GRAPH, losses=WORLD, rounds=300, **arguments):
    return sl.simulate(learner, graph, losses, rounds, **arguments)


def arms_of_an_agent(graph, world, rounds, seed, delay=0, learner="exp3.g++", **options):
    """Return what an agent plays that is told the losses of run 0 of a world, some rounds later."""
    agent = sl.Agent(learner, graph, seed=seed, **options)
    arms, waiting = [], []
    for t in range(1, rounds + 1):
        decision = agent.ask()
        waiting.append((decision, [world.loss(seed, 0, t, int(i)) for i in decision.reveals]))
        if len(waiting) > delay:
            agent.tell(*waiting.pop(0))
        arms.append(decision.arm)
    return arms


def regret_of(arms, world, seed, run):
    """Return the regret after each round, by its definition."""
    value = world.mean if world.has_means else world.loss
    costs = np.array(
        [[value(seed, run, t, i) for i in range(world.n_arms)] for t in range(1, len(arms) + 1)],
    )
    own = np.cumsum(costs[np.arange(len(arms)), arms])
    return own - np.cumsum(costs, axis=0).min(axis=1)


# What a result is


@pytest.mark.interpreted
def test_a_result_has_one_row_a_run_and_one_column_a_checkpoint():
    result = simulate(rounds=60, runs=3, checkpoints=[1, 7, 60])
    assert result.rounds.tolist() == [1, 7, 60]
    assert result.runs.tolist() == [0, 1, 2]
    assert result.regret.shape == result.loss.shape == (3, 3)
    assert result.plays.shape == result.observations.shape == (3, 4)
    assert set(result.traces) >= {"theta", "exploration_set", "exploration_mass"}
    assert all(trace.shape == (3, 3) for trace in result.traces.values())
    assert result.plays.dtype == result.observations.dtype == np.int64
    assert result.seconds > 0


@pytest.mark.interpreted
def test_every_round_plays_one_arm_and_reveals_what_the_graph_says():
    result = simulate(rounds=200, runs=3)
    assert result.plays.sum(axis=1).tolist() == [200] * 3
    np.testing.assert_array_equal(result.observations, result.plays @ GRAPH.matrix().astype(int))
    assert len({row.tobytes() for row in result.plays}) == 3  # runs differ


@pytest.mark.interpreted
def test_an_arm_that_does_not_reveal_itself_is_suffered_and_not_observed():
    graph = sl.FeedbackGraph.from_edges([(0, 1), (1, 2), (2, 2), (2, 0), (3, 0)], 4)
    losses = np.array([[0.25, 0.5, 0.125, 1.0]] * 9)
    result = simulate(round_robin, graph, sl.losses.table(losses), 9, checkpoints=range(1, 10))
    assert result.plays.tolist() == [[3, 2, 2, 2]]
    assert result.observations.tolist() == [[4, 3, 4, 0]]
    assert np.diff(result.loss[0], prepend=0).tolist() == [0.25, 0.5, 0.125, 1.0, 0.25, 0.5, 0.125, 1.0, 0.25]


@pytest.mark.interpreted
def test_the_loss_is_that_of_the_played_arms():
    result = simulate(round_robin, rounds=80, runs=[4], seed=9, checkpoints=list(range(1, 81)), first=2)
    expected = np.cumsum([WORLD.loss(9, 4, t, (t + 1) % 4) for t in range(1, 81)])
    assert result.loss.tolist() == [expected.tolist()]


@pytest.mark.parametrize("name", EXAMPLES)
def test_regret_is_by_its_definition_for_the_decisions_of_an_agent(name):
    """Pseudo-regret where the world has means, else regret against the arm whose losses were smallest."""
    world = EXAMPLES[name]()
    graph = sl.graphs.nested(world.n_arms)
    arms = arms_of_an_agent(graph, world, 150, seed=5)
    result = simulate(graph=graph, losses=world, rounds=150, seed=5, checkpoints=list(range(1, 151)))
    np.testing.assert_allclose(result.regret[0], regret_of(arms, world, 5, 0), rtol=0, atol=1e-10)
    losses = [world.loss(5, 0, t + 1, arms[t]) for t in range(150)]
    assert result.loss[0].tolist() == [math.fsum(losses[: t + 1]) for t in range(150)]  # rounding errors are carried


LATE = [
    ("exp3.g++", {}),
    ("exp3.g++", {"late": "guarded"}),
    ("exp3-set", {"late": "guarded"}),
    ("glance", {}),
    ("ucb-n", {}),
    ("ts-n", {}),
]


@pytest.mark.parametrize("delay", [1, 7, 200])
@pytest.mark.parametrize(("learner", "options"), LATE)
@pytest.mark.interpreted
def test_feedback_that_comes_late_is_that_of_an_agent_that_is_told_late(learner, options, delay):
    """Longer than the run, it is never learned."""
    arms = arms_of_an_agent(GRAPH, WORLD, 150, seed=5, delay=delay, learner=learner, **options)
    result = simulate(learner, rounds=150, seed=5, checkpoints=list(range(1, 151)), delay=delay, **options)
    np.testing.assert_allclose(result.regret[0], regret_of(arms, WORLD, 5, 0), rtol=0, atol=1e-10)
    assert result.plays[0].tolist() == np.bincount(arms, minlength=4).tolist()


@pytest.mark.interpreted
def test_late_feedback_is_learned_with_the_graph_of_its_round():
    """The graphs alternate, so that with a delay of 2 a wrong graph would be the right one again, and with 1 not."""
    bank = [sl.graphs.star(4), sl.graphs.self_loops(4)]
    for delay in (1, 2):
        agent = sl.Agent("exp3.g++", bank[0], seed=5)
        plays, waiting = np.zeros(4, int), []
        for t in range(1, 101):
            decision = agent.ask(bank[(t - 1) % 2])
            plays[decision.arm] += 1
            waiting.append((decision, [WORLD.loss(5, 0, t, int(i)) for i in decision.reveals]))
            if t > delay:
                agent.tell(*waiting.pop(0))
        played = simulate(graph=sl.graphs.alternating(bank), rounds=100, seed=5, delay=delay).plays[0]
        assert played.tolist() == plays.tolist()


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.interpreted
def test_regret_is_by_its_definition_in_every_run(name):
    world = EXAMPLES[name]()
    arms = np.arange(60) % world.n_arms
    result = simulate(round_robin, sl.graphs.self_loops(world.n_arms), world, 60, runs=[6, 0, 2], seed=3, checkpoints=8)
    for row, run in zip(result.regret, result.runs, strict=True):
        expected = regret_of(arms, world, 3, int(run))[result.rounds - 1]
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-12)


def test_pseudo_regret_counts_means_and_regret_counts_losses():
    """The same losses, as a world that knows its means and as a table that does not."""
    losses = np.array([[WORLD.loss(1, 0, t, arm) for arm in range(4)] for t in range(1, 301)])
    with_means, without = simulate(seed=1), simulate(seed=1, losses=sl.losses.table(losses))
    assert with_means.loss.tolist() == without.loss.tolist()
    assert with_means.regret[0, -1] == pytest.approx(with_means.plays[0] @ MEANS - 300 * 0.2)
    assert without.regret[0, -1] == without.loss[0, -1] - losses.sum(axis=0).min()
    assert abs(with_means.regret[0, -1] - without.regret[0, -1]) > 0.1


def test_only_observed_losses_are_computed():
    asked = []

    def loss(seed, run, t, arm):  # noqa: ARG001
        asked.append((t, arm))
        return 0.5

    world = sl.losses.function(loss, [0.5] * 4)
    world.compiled  # noqa: B018  # as it is found out, not asked for losses
    result = simulate(losses=world, rounds=50)
    assert len(asked) == len(set(asked)) == result.observations.sum()


def shifted_by_2(seed, run, t, arm):  # noqa: ARG001
    return (seed << 2) % 8191 / 8191


def shifted_by_3(seed, run, t, arm):  # noqa: ARG001
    return (seed << 3) % 8191 / 8191


@pytest.mark.parametrize(
    ("loss", "order"), [(shifted_by_2, [True, False]), (shifted_by_3, [False, True])], ids=["first", "second"]
)
def test_a_function_is_run_as_it_was_given_whatever_was_run_before(loss, order):
    """Python's integers hold 2**64; those of compiled code do not. A mix-up of the two worlds would show."""
    for compiled in order:
        world = sl.losses.function(sl.losses.compiled(loss) if compiled else loss, MEANS)
        result = simulate(round_robin, GRAPH, world, rounds=10, seed=2**62)
        assert bool(result.loss[0, -1]) is not compiled


def test_the_sum_of_many_losses_keeps_its_last_digit():
    """A million times 0.1: added one by one in double precision this is off by 1e-6."""
    world = sl.losses.table(np.full((1_000_000, 1), 0.1))
    result = simulate(round_robin, sl.graphs.complete(1), world, 1_000_000, checkpoints=1)
    assert result.loss[0, 0] == pytest.approx(100_000, abs=1e-10)


@pytest.mark.interpreted
def test_the_repr_says_how_it_went():
    assert re.fullmatch(r"<Result of 1 run of 40 rounds: regret [-\d.]+>", repr(simulate(rounds=40)))
    assert re.fullmatch(r"<Result of 3 runs of 40 rounds: regret \S+ \+- \S+>", repr(simulate(rounds=40, runs=3)))


# Traces


@pytest.mark.interpreted
def test_a_trace_is_the_mean_since_the_checkpoint_before():
    marks = [1, 2, 10, 11, 50]
    result = simulate(round_robin, rounds=50, runs=2, checkpoints=marks)
    for before, mark, mean in zip([0, *marks], marks, result.traces["round"][0], strict=False):
        assert mean == np.mean(np.arange(before + 1, mark + 1))
    seen = np.cumsum([0] + [GRAPH.out_neighbors(t % 4).size for t in range(49)])
    assert result.traces["seen"][1, -1] == pytest.approx(seen[11:].mean())


@pytest.mark.parametrize(
    ("graph", "size"), [(sl.graphs.complete(4), 1), (sl.graphs.self_loops(4), 4), (sl.graphs.cliques([2, 2]), 2)]
)
@pytest.mark.interpreted
def test_the_exploration_set_has_one_arm_a_clique(graph, size):
    traces = simulate(graph=graph, rounds=100, checkpoints=[4, 5, 100]).traces
    assert traces["exploration_set"][0, 1:].tolist() == [size, size]
    assert traces["theta"][0, 1:] == pytest.approx([size, size])  # theta of disjoint cliques is their number
    assert (traces["exploration_mass"][0, 1:] > 0).all()
    assert traces["exploration_mass"].max() <= 0.5


# Checkpoints and runs


@pytest.mark.parametrize("rounds", [1, 2, 99, 5000])
@pytest.mark.parametrize("wanted", [None, 1, 2, 10, 1000])
def test_checkpoints_are_spread_up_to_the_last_round(rounds, wanted):
    marks = simulate(rounds=rounds, checkpoints=wanted).rounds
    assert marks[-1] == rounds
    assert marks.size <= (100 if wanted is None else wanted)
    assert marks[0] == (rounds if wanted == 1 else 1)
    assert (np.diff(marks) > 0).all()
    if rounds == 5000 and wanted == 10:
        np.testing.assert_allclose(marks[4:] / marks[3:-1], 5000 ** (1 / 9), rtol=0.02)


@pytest.mark.parametrize("wanted", [[5], [1, 2, 300], (4, 300), range(10, 301, 10), np.array([7, 300])])
def test_checkpoints_are_those_that_are_given(wanted):
    assert simulate(checkpoints=wanted).rounds.tolist() == list(wanted)


def test_whole_numbers_of_numpy_are_whole_numbers():
    result = simulate(
        rounds=np.int64(50), runs=np.int32(2), seed=np.uint64(1), checkpoints=np.int64(3), threads=np.int8(1)
    )
    assert result.loss.tobytes() == simulate(rounds=50, runs=2, seed=1, checkpoints=3, threads=1).loss.tobytes()


@pytest.mark.parametrize("runs", [[3], [2, 0], (5, 2**32 - 1), range(2), np.array([1, 4])])
def test_runs_are_those_that_are_given(runs):
    result = simulate(runs=runs)
    assert result.runs.tolist() == list(runs)
    assert result.regret.shape[0] == len(runs)


def test_every_learner_meets_the_same_losses():
    """On a complete graph all losses are seen; two learners see the same ones."""
    seen = {"exp3.g++": [], round_robin: []}
    for learner, losses in seen.items():

        def loss(seed, run, t, arm, losses=losses):
            losses.append(WORLD.loss(seed, run, t, arm))
            return losses[-1]

        simulate(learner, sl.graphs.complete(4), sl.losses.function(loss, MEANS), 40, runs=[3], seed=8)
    assert seen["exp3.g++"] == seen[round_robin]
    assert len(seen[round_robin]) == 160


# Options


def test_options_reach_the_learner():
    options = {"gamma": 0.3, "beta": 0.02, "ties": "practical", "start": "cover"}
    arms = arms_of_an_agent(GRAPH, WORLD, 200, seed=2, **options)
    assert simulate(rounds=200, seed=2, **options).plays[0].tolist() == np.bincount(arms, minlength=4).tolist()
    assert simulate(rounds=200, seed=2).plays[0].tolist() != np.bincount(arms, minlength=4).tolist()
    assert simulate(round_robin, rounds=5, first=3).plays.tolist() == [[1, 1, 1, 2]]


# What is refused

BAD = [
    ({"rounds": 0}, SimulationError, r"rounds must be a whole number from 1 to 2\*\*48 - 1, not 0\."),
    ({"rounds": 2**48}, SimulationError, r"rounds must be .*, not 281474976710656\."),
    ({"rounds": 1e3}, SimulationError, r"rounds must be a whole number .*, not 1000\.0\."),
    ({"rounds": "10"}, SimulationError, r"rounds must be a whole number .*, not '10'\."),
    ({"rounds": True}, SimulationError, r"rounds must be a whole number .*, not True\."),
    ({"certificate": 2}, SimulationError, r"certificate must be True or False, not 2\."),
    ({"runs": 0}, SimulationError, r"runs must be a whole number from 1 .*, not 0\."),
    ({"runs": -3}, SimulationError, r"runs must be a whole number from 1 .*, not -3\."),
    ({"runs": True}, SimulationError, r"runs must be .*, not True\."),
    ({"runs": 2.5}, SimulationError, r"runs must be .*, not 2\.5\."),
    ({"runs": None}, SimulationError, r"runs must be .*, not None\."),
    ({"runs": np.array(2.5)}, SimulationError, r"runs must be .*, not 2\.5\."),
    ({"runs": []}, SimulationError, r"runs must name at least one run"),
    ({"runs": [0, -1]}, SimulationError, r"run's number must be a whole number from 0 .*, not -1\."),
    ({"runs": [2**32]}, SimulationError, r"run's number must be .*, not 4294967296\."),
    ({"runs": [0.5]}, SimulationError, r"run's number must be .*, not 0\.5\."),
    ({"seed": -1}, SimulationError, r"seed must be a whole number from 0 .*, not -1\."),
    ({"seed": 2**64}, SimulationError, r"seed must be .*, not 18446744073709551616\."),
    ({"seed": None}, SimulationError, r"seed must be .*, not None\."),
    ({"threads": 0}, SimulationError, r"threads must be a whole number from 1 .*, not 0\."),
    ({"threads": 1.0}, SimulationError, r"threads must be .*, not 1\.0\."),
    ({"delay": -1}, SimulationError, r"delay must be a whole number from 0 .*, not -1\."),
    ({"delay": 1, "graph": sl.graphs.shadows(4, 1)}, SimulationError, r"comes late needs graphs that are kept; .*anew"),
    ({"checkpoints": 0}, SimulationError, r"checkpoints must be a whole number from 1 .*, not 0\."),
    ({"checkpoints": 2.5}, SimulationError, r"checkpoints must be .*, not 2\.5\."),
    ({"checkpoints": []}, SimulationError, r"checkpoints must be ascending rounds, at least one, not \[\]\."),
    ({"checkpoints": [5, 5]}, SimulationError, r"checkpoints must be ascending .* not \[5, 5\]\."),
    ({"checkpoints": [9, 5]}, SimulationError, r"checkpoints must be ascending .* not \[9, 5\]\."),
    ({"checkpoints": [0, 5]}, SimulationError, r"checkpoint must be a whole number from 1 to 300, not 0\."),
    ({"checkpoints": [5, 301]}, SimulationError, r"checkpoint must be a whole number from 1 to 300, not 301\."),
    ({"checkpoints": ["5"]}, SimulationError, r"checkpoint must be .*, not '5'\."),
    ({"graph": GRAPH.matrix()}, GraphError, r"graph must be a FeedbackGraph or a GraphSequence, not ndarray"),
    ({"graph": None}, GraphError, r"graph must be .*, not NoneType"),
    ({"graph": sl.graphs.complete(5)}, SimulationError, r"The graph has 5 arms and the world 4: they must agree"),
    ({"graph": sl.graphs.shadows(3, 1)}, SimulationError, r"The graph has 3 arms and the world 4"),
    ({"losses": MEANS}, WorldError, r"losses must be a world made by sidelong.losses, not list"),
    ({"losses": None}, WorldError, r"losses must be a world .*, not NoneType"),
    ({"losses": EXAMPLES["table"](), "rounds": 401}, SimulationError, r"world has 400 rounds, and 401 were asked for"),
    ({"losses": EXAMPLES["breaker"](), "rounds": 5000}, SimulationError, r"has 400 rounds, and 5,000 were asked for"),
    ({"learner": "exp3.gg"}, LearnerError, r"no learner named 'exp3.gg'. Did you mean 'exp3.g'\?"),
    ({"learner": math}, LearnerError, r"module math has no LEARNER"),
    ({"gama": 1.0}, LearnerError, r"exp3.g\+\+ has no option 'gama'. Did you mean 'gamma'\?.*Its options are: rate,"),
    ({"gamma": -1.0}, LearnerError, r"gamma must be a finite number above 0, not -1\.0"),
    (
        {"learner": round_robin, "gamma": 1.0},
        LearnerError,
        r"round-robin has no option 'gamma'.*Its options are: first",
    ),
    (
        {"graph": sl.FeedbackGraph.from_edges([(0, 0), (1, 1), (2, 3), (3, 3)])},
        ObservabilityError,
        r"exp3.g\+\+ needs every arm to reveal itself, and arm 2 of",
    ),
    (
        {"graph": sl.graphs.alternating([GRAPH, sl.FeedbackGraph.from_edges([(0, 0), (1, 2), (2, 2), (3, 3)])])},
        ObservabilityError,
        r"exp3.g\+\+ needs every arm to reveal itself, and arm 1 of",
    ),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD, ids=[f"{each[0]}" for each in BAD])
@pytest.mark.interpreted
def test_bad_arguments_are_refused_with_the_rule_and_the_value(arguments, error, message):
    with pytest.raises(error, match=message):
        simulate(**arguments)


def test_a_world_may_be_played_to_its_last_round():
    assert simulate(losses=EXAMPLES["table"](), rounds=400).plays.sum() == 400


BAD_LOSSES = np.array([math.nan, 1.0000001, -0.5, math.inf])


def bad_loss(seed, run, t, arm):
    return BAD_LOSSES[seed] if run == 1 and t == 37 and arm == 2 else 0.25


compiled_bad_loss = sl.losses.compiled(bad_loss)


@pytest.mark.parametrize("loss", [compiled_bad_loss, bad_loss], ids=["compiled", "plain"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.interpreted
def test_a_bad_loss_stops_the_run_and_is_named_and_nothing_is_printed(loss, seed, capfd):
    arguments = {"graph": sl.graphs.complete(4), "losses": sl.losses.function(loss, [0.25] * 4), "seed": seed}
    with pytest.raises(SimulationError) as caught:
        simulate(**arguments, rounds=60, runs=3)
    bad = float(BAD_LOSSES[seed])
    assert str(caught.value) == f"A loss must be in [0, 1]; the world gave {bad!r} in run 1, round 37, for arm 2."
    assert capfd.readouterr() == ("", "")
    assert simulate(**arguments, rounds=36, runs=3).plays.sum() == 108
    assert simulate(**arguments, rounds=60, runs=[0, 2]).plays.sum() == 120


def test_a_bad_loss_that_nobody_observed_is_named_where_it_decides_who_was_best():
    """Arm 2 is not played in round 37, but without means its losses are summed all the same."""
    graph = sl.graphs.self_loops(4)
    result = simulate(round_robin, graph, sl.losses.function(bad_loss, MEANS), 100, runs=3)
    assert result.loss[:, -1].tolist() == [25.0] * 3
    with pytest.raises(LossError, match=r"must lie from 0 to 1; run 1, round 37, arm 2 has nan"):
        simulate(round_robin, graph, sl.losses.function(bad_loss, n_arms=4), 100, runs=3)


def test_a_table_that_is_changed_after_it_was_checked_stops_the_run(tmp_path):
    np.save(tmp_path / "losses.npy", np.full((50, 4), 0.5))
    mapped = np.load(tmp_path / "losses.npy", mmap_mode="r+")
    world = sl.losses.table(mapped)
    mapped[19, 3] = 7.0
    with pytest.raises(SimulationError, match=r"gave 7\.0 in run 0, round 20, for arm 3"):
        simulate(graph=sl.graphs.complete(4), losses=world, rounds=50)


def test_an_error_of_a_users_function_comes_through():
    def loss(seed, run, t, arm):  # noqa: ARG001
        if t == 20:
            raise ZeroDivisionError("of the user")
        return 0.5

    with pytest.raises(ZeroDivisionError, match="of the user"):
        simulate(losses=sl.losses.function(loss, MEANS), runs=4)


def test_a_plain_function_that_returns_no_number_is_named():
    with pytest.raises(WorldError, match=r"must return a number; for run 0, round 1, arm \d it returned None\."):
        simulate(losses=sl.losses.function(lambda *_: None, MEANS))


@sl.losses.compiled
def makes_an_array(seed, run, t, arm):  # noqa: ARG001
    return np.zeros(3)[arm % 3]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_function_that_cannot_be_compiled_is_named():
    with pytest.raises(CodeError, match=r"A kernel cannot be compiled: .*(test_simulate.py, line|`makes_an_array`)"):
        simulate(losses=sl.losses.function(makes_an_array, MEANS))


# Progress


@pytest.mark.parametrize("arguments", [{"runs": 1}, {"runs": 5, "threads": 2}, {"runs": 2, "checkpoints": [10, 50]}])
@pytest.mark.interpreted
def test_a_function_is_told_the_progress_up_to_the_end(arguments):
    calls = []
    result = simulate(rounds=200, progress=lambda done, total: calls.append((done, total)), **arguments)
    done, totals = zip(*calls, strict=True)
    assert set(totals) == {result.plays.sum()}
    assert list(done) == sorted(done)
    assert done[-1] == totals[0]


def test_an_error_while_progress_is_shown_stops_the_simulation():
    def stop(done, total):  # noqa: ARG001
        raise InterruptedError

    begun = time.process_time()
    with pytest.raises(InterruptedError):
        simulate(rounds=10**12, runs=8, progress=stop)
    assert time.process_time() - begun < 5  # of all threads


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def watched(monkeypatch):
    """Return a terminal on which progress is shown, and a clock that is put forward by hand."""
    terminal, now = Terminal(), [100.0]
    monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=terminal))
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    return terminal, now


@pytest.mark.interpreted
def test_a_line_is_shown_after_two_seconds_and_cleared(watched):
    terminal, now = watched
    line = progress.ProgressLine(shown=None)
    now[0] += 1.9
    line(10, 100)
    assert not terminal.getvalue()
    now[0] += 0.6
    line(25, 100)
    assert terminal.getvalue() == "\r[######                  ]  25%  10 rounds a second  0:08 left"
    shown = len(terminal.getvalue())
    line(26, 100)  # too soon after the last
    assert len(terminal.getvalue()) == shown
    line.close()
    assert terminal.getvalue()[shown:] == "\r" + " " * (shown - 1) + "\r"


@pytest.mark.interpreted
def test_a_line_takes_hours_and_standstill(watched):
    terminal, now = watched
    line = progress.ProgressLine(shown=True)
    now[0] += 10
    line(0, 10**6)
    assert "0%  0 rounds a second" in terminal.getvalue()
    now[0] += 1
    line(1100, 10**6)
    assert terminal.getvalue().endswith("100 rounds a second  2:46:29 left")


@pytest.mark.interpreted
def test_nothing_is_shown_where_nobody_looks(watched, monkeypatch):
    _, now = watched
    for stream, shown in ((io.StringIO(), None), (Terminal(), False)):
        monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=stream, modules={}))
        line = progress.ProgressLine(shown=shown)
        now[0] += 60
        line(1, 2)
        line.close()
        assert not stream.getvalue()


@pytest.mark.parametrize(("wanted", "shows"), [(None, True), (True, True), (False, False)])
def test_a_simulation_that_takes_long_shows_a_line_and_clears_it(watched, monkeypatch, wanted, shows):
    terminal, _ = watched
    ticks = itertools.count(0, 5)
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=lambda: next(ticks)))
    simulate(progress=wanted)
    assert bool(terminal.getvalue()) is shows
    assert terminal.getvalue().endswith("\r") is shows


def test_what_takes_long_before_and_after_the_rounds_is_said(watched, monkeypatch):
    terminal, now = watched
    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    line = progress.ProgressLine(shown=None)
    with line.saying("Compiling"):
        end = time.monotonic() + 120
        while not terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert terminal.getvalue().startswith("\rCompiling ...")
    assert terminal.getvalue().endswith(" \r")
    now[0] += 1
    line(100, 100)
    assert "summing up the losses of all arms" in terminal.getvalue()


def test_a_simulation_prints_nothing(capfd):
    simulate(runs=3)
    assert capfd.readouterr() == ("", "")


# Stopping


def begin(kind):
    child = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("endless.py"), kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where nothing can be kept all is compiled.
        env=os.environ | ({"SIDELONG_CACHE_DIR": os.devnull} if kind == "compiling" else {}),
    )
    assert child.stdout.readline() == "ready\n", child.communicate()[1]
    return child


def end(child):
    """Return what a child says last, and how much processor time it took to go: the machine may do something else."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = sum(psutil.Process(child.pid).cpu_times()[:2])
    try:
        _, said = child.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        pytest.fail("It was still running after two minutes.")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return said.rstrip().splitlines()[-1], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime - used


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for a child")
@pytest.mark.parametrize("kind", share([kind for kind in endless.KINDS if kind != "bad in run 0"], 3))
def test_ctrl_c_stops_it_soon(kind):
    child = begin(kind)
    if kind != "compiling":
        time.sleep(0.5)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    said, seconds = end(child)
    assert said == "KeyboardInterrupt"
    assert child.returncode != 0
    assert seconds < 5  # it takes one


def test_a_bad_loss_in_one_run_stops_the_others():
    said, _ = end(begin("bad in run 0"))
    assert re.fullmatch(r".*SimulationError: A loss must be .* gave 2\.0 in run 0, round 2000000, for arm \d\.", said)


# Memory


def peak(**arguments):
    """Return how many bytes a simulation had at once, at most; the machine code is loaded before."""
    simulate(**arguments | {"graph": sl.graphs.nested(4), "losses": WORLD, "rounds": 2})
    tracemalloc.start()
    try:
        simulate(**arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("family", [sl.graphs.nested, sl.graphs.complete, sl.graphs.self_loops])
def test_a_hundred_thousand_arms_take_a_few_megabytes(family):
    """Of K x K bits alone there would be more than a gigabyte."""
    K = 100_000
    assert peak(graph=family(K), losses=sl.losses.bernoulli(np.linspace(0, 1, K)), rounds=5, start="none") < 100e6


def test_memory_does_not_grow_with_the_rounds():
    assert peak(rounds=1_000_000, checkpoints=5) < 500_000
