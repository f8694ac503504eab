"""The same bits: whatever the threads, the other runs, the checkpoints, the compiler, the machine and the driver."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sidelong as sl
from nightly import share
from sidelong.graphs import GraphSequence
from simulation import trajectories
from simulation.trajectories import CASES, SEED, play, rows

every_graph = pytest.mark.parametrize("name", CASES)


# Threads, runs and checkpoints


@every_graph
def test_threads_do_not_matter(name):
    one = play(name, rounds=70, runs=6, threads=1)
    for threads in (2, 5, None):
        assert rows(play(name, rounds=70, runs=6, threads=threads)) == rows(one)
    assert len(set(rows(one))) == 6


@pytest.mark.parametrize("name", ["resampled", "shadows", "drawn"])
def test_threads_that_run_for_long_do_not_meet(name):
    """Graphs that are drawn anew are written into memory that each run must have for itself."""
    graph, world = CASES[name][0], sl.losses.bernoulli([0.3, 0.4, 0.5, 0.5, 0.6, 0.7])
    one, two = (sl.simulate("exp3.g++", graph, world, 20_000, runs=4, threads=threads) for threads in (1, 4))
    assert rows(one) == rows(two)


@every_graph
def test_the_other_runs_do_not_matter(name):
    batch = rows(play(name, runs=6))
    assert rows(play(name, runs=[4])) == [batch[4]]
    order = [5, 0, 3, 3, 1]
    assert rows(play(name, runs=order, threads=2)) == [batch[run] for run in order]


@every_graph
def test_checkpoints_do_not_matter(name):
    """A checkpoint in each round makes the loop begin anew in each; traces differ, being means between checkpoints."""
    dense, sparse = play(name, checkpoints=range(1, 71)), play(name, checkpoints=[13, 41, 70])
    columns = [12, 40, 69]
    assert dense.regret[:, columns].tobytes() == sparse.regret.tobytes()
    assert dense.loss[:, columns].tobytes() == sparse.loss.tobytes()
    assert dense.plays.tobytes() == sparse.plays.tobytes()
    assert dense.observations.tobytes() == sparse.observations.tobytes()


def test_the_rounds_that_follow_do_not_matter():
    world = sl.losses.beta([0.3, 0.5, 0.6], 4.0)
    graph = sl.graphs.alternating([sl.graphs.nested(3), sl.graphs.complete(3)])
    short = sl.simulate("exp3.g++", graph, world, rounds=400, checkpoints=[100, 400], runs=2)
    long = sl.simulate("exp3.g++", graph, world, rounds=300_000, checkpoints=[100, 400, 300_000], runs=2)
    assert long.loss[:, :2].tobytes() == short.loss.tobytes()
    assert long.regret[:, :2].tobytes() == short.regret.tobytes()


def test_the_seed_matters():
    assert rows(play("nested", seed=1)) != rows(play("nested", seed=2))


# Compilers and machines


def digests_in_a_child(names=tuple(CASES), **environment):
    script = Path(trajectories.__file__)
    done = subprocess.run(
        [sys.executable, "-W", "error", script, *names],
        env=os.environ | {"NUMBA_DISABLE_JIT": "0"} | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return dict(line.split("\t") for line in done.stdout.splitlines())


def test_the_jit_does_not_matter():
    assert digests_in_a_child(NUMBA_DISABLE_JIT="1") == trajectories.digests()


#: Loops whose sums are taken several arms at a time, which is where vector units could differ.
LONG_RANGES = ("long ranges", "glance, long ranges")


@pytest.mark.long
@pytest.mark.parametrize("names", share([LONG_RANGES, tuple(CASES)], 1), ids=["long ranges", "all"])
def test_the_instruction_set_does_not_matter(names):
    """Code for a plain x86-64 or ARM, without the vector units of this machine."""
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert digests_in_a_child(names, **generic) == trajectories.digests(names)


# The agent, stepped by hand


def sixteenths(rounds, n_arms):
    """Return losses that tell in each round which arm had them, and that add up without rounding."""
    t, arm = np.indices((rounds, n_arms))
    return (arm * 5 + t * 3) % 16 / 16


@every_graph
def test_the_agent_and_the_loop_make_the_same_decisions(name):
    graph, _, options = CASES[name]
    graph_of_round = graph.graph_of_round if isinstance(graph, GraphSequence) else lambda *_, **__: graph
    losses = sixteenths(200, graph.n_arms)
    told = {"graph": graph, "losses": sl.losses.table(losses)}
    result = sl.simulate(**told, rounds=200, seed=SEED, checkpoints=range(1, 201), **options)
    agent = sl.Agent(graph=graph_of_round(1, seed=SEED), seed=SEED, **options)
    arms, observed, traces = [], np.zeros(graph.n_arms, int), []
    for t in range(1, 201):
        decision = agent.ask(graph_of_round(t, seed=SEED))
        agent.tell(decision, losses[t - 1, decision.reveals])
        arms.append(decision.arm)
        observed[decision.reveals] += 1
        traces.append(decision.drawn.trace[: len(result.traces)])  # rows of a learner that keeps some stand behind
    own = losses[np.arange(200), arms]
    assert np.diff(result.loss[0], prepend=0).tobytes() == own.tobytes()
    best = losses.cumsum(axis=0).min(axis=1)
    assert result.regret.tobytes() == (own.cumsum() - best).tobytes()
    assert result.plays[0].tolist() == np.bincount(arms, minlength=graph.n_arms).tolist()
    assert result.observations[0].tolist() == observed.tolist()
    for values, trace in zip(np.transpose(traces), result.traces.values(), strict=True):
        assert values.tobytes() == trace[0].tobytes()
    assert len(set(arms)) > 1


@pytest.mark.parametrize("world", [sl.losses.bernoulli(np.linspace(0.2, 0.8, 40)), CASES["long ranges"][1]])
def test_losses_of_arms_in_a_row_are_those_that_an_agent_is_told_one_by_one(world):
    graph = CASES["long ranges"][0]
    result = sl.simulate("exp3.g++", graph, world, rounds=120, seed=SEED, checkpoints=range(1, 121))
    agent = sl.Agent("exp3.g++", graph, seed=SEED)
    own, observed = [], np.zeros(40, int)
    for t in range(1, 121):
        decision = agent.ask()
        agent.tell(decision, {int(i): world.loss(SEED, 0, t, int(i)) for i in decision.reveals})
        own.append(world.loss(SEED, 0, t, decision.arm))
        observed[decision.reveals] += 1
    assert np.diff(result.loss[0], prepend=0).tolist() == own
    assert result.observations[0].tolist() == observed.tolist()


# A user's function, plain and compiled


def tidal(seed, run, t, arm):
    return (seed % 7 + 3 * run + t * (arm + 2)) % 11 / 11


def tidal_mean(seed, run, t, arm):
    return (seed % 7 + run + t + arm) % 3 / 3


compiled_tidal = sl.losses.compiled(tidal)
compiled_tidal_mean = sl.losses.compiled(tidal_mean)


@pytest.mark.parametrize("name", ["nested", "arcs", "alternating", "drawn", "resampled", "shadows"])
@pytest.mark.parametrize(
    ("plain_mean", "compiled_mean"), [(None, None), (tidal_mean, compiled_tidal_mean)], ids=["no means", "means"]
)
def test_a_plain_function_and_a_compiled_one_give_the_same(name, plain_mean, compiled_mean):
    graph, *_ = CASES[name]
    plain = sl.losses.function(tidal, plain_mean, n_arms=6)
    compiled = sl.losses.function(compiled_tidal, compiled_mean, n_arms=6)
    assert (plain.compiled, compiled.compiled) == (False, True)
    results = [
        sl.simulate("exp3", graph, world, rounds=150, runs=[0, 2], seed=12345)  # its loop compiles in half of the time
        for world in (plain, compiled)
    ]
    assert rows(results[0]) == rows(results[1])
