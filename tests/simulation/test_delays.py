"""Random delays in simulations: their laws, and that the loop does what an agent does that is told as late."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import SimulationError
from sidelong.simulation.delays import delay_of, read_delay

pytestmark = pytest.mark.interpreted

WORLD = sl.losses.bernoulli([0.5, 0.2, 0.9, 0.4])
GRAPH = sl.FeedbackGraph.from_edges([(0, 1), (1, 2), (2, 0), (3, 0)], self_loops=True)
LAWS = ["constant:3", "uniform:0:6", "geometric:4:15", "pareto:1:0.7:20", "by_arm:0:5:1:9"]


def drawn(law, rounds=4000, run=0, seed=3):
    law = read_delay(law, 4)
    return np.array([int(delay_of(law.arrays, np.uint64(seed), run, t, 0)) for t in range(1, rounds + 1)])


def test_the_laws_are_what_they_say():
    """Of 4,000 rounds; the tolerances are six standard deviations."""
    few = drawn("uniform:2:6")
    assert set(few.tolist()) == {2, 3, 4, 5, 6}
    assert few.mean() == pytest.approx(4, abs=6 * np.sqrt(2 / 4000))
    many = drawn("geometric:5:100000")
    assert many.mean() == pytest.approx(5, abs=6 * np.sqrt(30 / 4000))
    assert (many == 0).mean() == pytest.approx(1 / 6, abs=6 * np.sqrt(0.14 / 4000))
    heavy = drawn("pareto:1:0.7:100000")
    for d in (2, 10, 100):
        p = d**-0.7
        assert (heavy >= d).mean() == pytest.approx(p, abs=6 * np.sqrt(p * (1 - p) / 4000))
    assert drawn("pareto:1:0.7:20").max() == 21  # which is never
    assert drawn("constant:7").tolist() == drawn(7).tolist() == [7] * 4000


def test_a_delay_depends_on_seed_run_and_round_alone():
    first = drawn("geometric:5:100", 50)
    assert first.tolist() == drawn("geometric:5:100", 50).tolist()
    assert first.tolist() != drawn("geometric:5:100", 50, run=1).tolist()
    assert first.tolist() != drawn("geometric:5:100", 50, seed=4).tolist()


@pytest.mark.parametrize("text", LAWS)
@pytest.mark.parametrize(
    ("learner", "options"),
    [
        ("exp3.g++", {}),
        ("exp3.g++", {"late": "guarded"}),
        ("exp3-set", {"late": "guarded"}),
        ("glance", {}),
        ("ts-n", {}),
    ],
)
def test_the_loop_does_what_an_agent_does_that_is_told_as_late(learner, options, text):
    rounds, law = 150, read_delay(text, 4)
    agent, waiting, arms = sl.Agent(learner, GRAPH, seed=5, **options), [], []
    for t in range(1, rounds + 1):
        decision = agent.ask()
        arms.append(decision.arm)
        late = int(delay_of(law.arrays, np.uint64(5), 0, t, decision.arm))
        waiting.append((t + min(late, law.most), late <= law.most, decision))
        for each in [each for each in waiting if each[0] == t]:
            _, comes, made = each
            waiting.remove(each)
            if comes:
                agent.tell(made, [WORLD.loss(5, 0, made.round, int(i)) for i in made.reveals])
            else:
                agent.cancel(made, lost=True)
    given = int(text) if text.isdecimal() else text
    result = sl.simulate(
        learner, GRAPH, WORLD, rounds, seed=5, delay=given, checkpoints=range(1, rounds + 1), **options
    )
    assert result.loss[0].tolist() == np.cumsum([WORLD.loss(5, 0, t, arm) for t, arm in enumerate(arms, 1)]).tolist()
    assert result.plays[0].tolist() == np.bincount(arms, minlength=4).tolist()


def test_it_does_not_matter_in_how_many_stretches_a_run_is_played():
    """A checkpoint at every round ends a stretch at every round."""
    how = {"seed": 2, "delay": "pareto:1:0.9:30", "late": "guarded"}
    whole = sl.simulate("exp3-set", GRAPH, WORLD, 300, checkpoints=1, **how)
    parts = sl.simulate("exp3-set", GRAPH, WORLD, 300, checkpoints=range(1, 301), **how)
    assert whole.regret[0, -1] == parts.regret[0, -1]


@pytest.mark.parametrize(
    ("delay", "words"),
    [
        ("geometrik:5:100", r"delay has no law 'geometrik'. Did you mean 'geometric'\?"),
        ("geometric:5", r"delay: geometric takes 2 numbers with colons between them, not 'geometric:5'"),
        ("uniform:0:x", r"delay: uniform takes 2 numbers"),
        ("uniform:9:3", r"delay: high must be a whole number from 9"),
        ("pareto:0:1:5", r"delay: least must be"),
        ("by_arm:0:1", r"delay: by_arm has one number for each of the 4 arms, not 2"),
        ("by_arm", r"delay: by_arm takes one number for each arm"),
        (1.5, r"delay must be a whole number"),
    ],
)
def test_what_is_wrong_with_a_law_is_said(delay, words):
    with pytest.raises(SimulationError, match=words):
        sl.simulate("exp3-set", GRAPH, WORLD, 10, delay=delay)


def test_a_delay_that_depends_on_the_arm_leads_the_learner_astray():
    """Two equal arms of mean 1/2, and arm 0 reports 200 rounds late: what is known of arm 1 alone scares away from it.

    Over 20 runs of 200 rounds arm 0, of which nothing is told, is played in more than 60 %: 0.5 would be 10 standard
    errors off.
    """
    world = sl.losses.bernoulli([0.5, 0.5])
    result = sl.simulate("exp3-set", sl.graphs.self_loops(2), world, 200, runs=20, seed=1, delay="by_arm:200:0")
    assert result.plays[:, 0].mean() > 120
