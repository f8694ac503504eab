"""What every learner of the catalogue must do, whatever its algorithm."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import GraphError, LearnerError, LossError, ObservabilityError, SimulationError
from sidelong.learners import catalogue
from sidelong.learners.interface import Need

NAMES = sl.learners.names()
ROUNDS = 60


def fitting_graph(needs):
    """Return a graph of 6 arms that meets the needs, and as few others as possible."""
    if Need.FULL_INFORMATION in needs:
        return sl.graphs.complete(6)
    if Need.UNDIRECTED in needs:
        return sl.graphs.cliques([3, 2, 1])
    return sl.FeedbackGraph.from_edges([(0, 2), (2, 5), (5, 0), (1, 4), (3, 0), (3, 5)], self_loops=True)


def options_of(name):
    return {"horizon": ROUNDS} if Need.HORIZON in catalogue.find(name).NEEDS else {}


def world(n_arms=6):
    return sl.losses.bernoulli([0.5, 0.2, 0.9, 0.4, 0.6, 0.3][:n_arms])


def new_agent(name, graph=None, seed=7):
    graph = fitting_graph(catalogue.find(name).NEEDS) if graph is None else graph
    return sl.Agent(name, graph, seed=seed, **options_of(name))


def losses_of(decision, t):
    return {int(i): world().loss(7, 0, t, int(i)) for i in decision.reveals}


def play(agent, rounds):
    """Ask and tell; return everything that was decided, and the state after it, as bytes."""
    record = b""
    for _ in range(rounds):
        decision = agent.ask()
        agent.tell(decision, losses_of(decision, decision.round))
        record += bytes([decision.arm]) + decision.probabilities.tobytes()
    return record + b"".join(array.tobytes() for array in agent._state)


@pytest.mark.parametrize("name", NAMES)
def test_a_learner_says_what_it_is(name):
    learner = catalogue.find(name)
    assert name == learner.NAME
    assert set(Need) >= learner.NEEDS
    paper, proved, cost, bound = learner.ABOUT
    assert set(proved) <= {"adversarial", "stochastic"}
    assert cost.startswith("O(")
    assert bound or not proved
    assert all(word in learner.__doc__ for word in paper.split(",")[0].split()[:1])  # the docstring cites it


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_are_probabilities_and_arms_arms(name):
    agent = new_agent(name)
    for t in range(1, ROUNDS + 1):
        decision = agent.ask()
        assert 0 <= decision.arm < 6
        p = decision.probabilities
        if hasattr(catalogue.find(name), "distribution"):
            assert p.min() >= 0
            assert p.sum() == pytest.approx(1, abs=1e-12)
            assert decision.probability > 0
        else:
            assert np.isnan(p).all()
            assert np.isnan(decision.observe_probabilities).all()
        agent.tell(decision, losses_of(decision, t))


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_that_was_saved_goes_on_as_if_it_had_not_been(name, tmp_path):
    agent = new_agent(name)
    play(agent, 20)
    late = [agent.ask() for _ in range(3)]
    agent.save(tmp_path / "agent.sidelong")
    resumed = sl.Agent.load(tmp_path / "agent.sidelong")
    for each in (agent, resumed):
        for decision in reversed(late):
            each.tell(decision.id, losses_of(decision, decision.round))
    assert play(agent, 20) == play(resumed, 20)


@pytest.mark.parametrize("name", NAMES)
def test_agent_and_loop_do_the_same(name):
    graph = fitting_graph(catalogue.find(name).NEEDS)
    result = sl.simulate(
        name, graph, world(), rounds=ROUNDS, seed=7, checkpoints=range(1, ROUNDS + 1), **options_of(name)
    )
    agent = new_agent(name)
    arms = []
    for t in range(1, ROUNDS + 1):
        decision = agent.ask()
        agent.tell(decision, losses_of(decision, t))
        arms.append(decision.arm)
    assert result.plays[0].tolist() == np.bincount(arms, minlength=6).tolist()
    suffered = np.cumsum([world().loss(7, 0, t, arm) for t, arm in enumerate(arms, 1)])
    assert result.loss[0].tolist() == suffered.tolist()
    seen = sum(graph.matrix()[arm].astype(int) for arm in arms)
    assert result.observations[0].tolist() == seen.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_feedback_may_be_late_and_out_of_order(name):
    """And then, by luck, changes nothing for those that never look at it; all the others must stay sound."""
    rng = np.random.default_rng(3)
    agent = new_agent(name)
    waiting = []
    for _ in range(ROUNDS):
        waiting.append(agent.ask())
        while len(waiting) > rng.integers(1, 12):
            decision = waiting.pop(int(rng.integers(len(waiting))))
            agent.tell(decision, losses_of(decision, decision.round))
    for array in agent._state:
        assert not np.isnan(array).any()
    assert agent.ask().arm in range(6)


@pytest.mark.parametrize("name", NAMES)
def test_a_single_arm_is_played(name):
    agent = new_agent(name, sl.graphs.complete(1))
    for _ in range(5):
        decision = agent.ask()
        assert decision.arm == 0
        agent.tell(decision, {0: 1.0})


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_option_is_refused_with_the_list_of_options(name):
    with pytest.raises(LearnerError, match=r"has no option 'sped'.*Its options are"):
        sl.Agent(name, fitting_graph(catalogue.find(name).NEEDS), sped=3, **options_of(name))


WITHOUT_LOOP = sl.FeedbackGraph.from_edges([(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1), (1, 1), (2, 2)])
UNSEEN = sl.FeedbackGraph.from_edges([(0, 0), (1, 1), (2, 0)], 3)
LOOPS = sl.graphs.self_loops(3)
THREE = sl.losses.bernoulli([0.5, 0.2, 0.9])

#: For each need, what lacks it: the call, the error, and what the sentence says.
LACKING = {
    Need.SELF_LOOPS: (lambda name: new_agent(name, WITHOUT_LOOP), ObservabilityError, "arm 0 of"),
    Need.OBSERVABLE: (lambda name: new_agent(name, UNSEEN), ObservabilityError, "no arm reveals arm 2"),
    Need.FULL_INFORMATION: (lambda name: new_agent(name, LOOPS), ObservabilityError, "reveals 1 of 3"),
    Need.UNDIRECTED: (lambda name: new_agent(name, sl.graphs.nested(3)), ObservabilityError, "is directed"),
    Need.HORIZON: (lambda name: sl.Agent(name, LOOPS), LearnerError, "give horizon="),
    Need.FIXED_GRAPH: (
        lambda name: sl.simulate(name, sl.graphs.alternating([LOOPS, sl.graphs.complete(3)]), THREE, rounds=9),
        ObservabilityError,
        "one graph for all rounds",
    ),
    Need.GRAPH_BEFORE: (
        lambda name: sl.simulate(name, sl.graphs.alternating([LOOPS], shown="after"), THREE, rounds=9),
        ObservabilityError,
        "before the draw",
    ),
    Need.BINARY_LOSSES: (
        lambda name: sl.simulate(name, LOOPS, sl.losses.beta([0.5, 0.2, 0.9], 3.0), rounds=9),
        SimulationError,
        "losses that are 0 or 1",
    ),
}


@pytest.mark.parametrize(
    ("name", "need"), [(name, need) for name in NAMES for need in Need if need in catalogue.find(name).NEEDS]
)
def test_what_is_missing_is_named(name, need):
    call, error, words = LACKING[need]
    with pytest.raises(error, match=words) as refusal:
        call(name)
    assert name in str(refusal.value)


@pytest.mark.parametrize("name", [name for name in NAMES if Need.FIXED_GRAPH in catalogue.find(name).NEEDS])
def test_an_agent_with_one_graph_for_all_rounds_refuses_another(name):
    agent = new_agent(name, sl.graphs.complete(6))
    with pytest.raises(GraphError, match="one graph for all rounds"):
        agent.ask(sl.graphs.self_loops(6))
    assert agent.round == 0


@pytest.mark.parametrize("name", [name for name in NAMES if Need.BINARY_LOSSES in catalogue.find(name).NEEDS])
def test_an_agent_that_needs_losses_0_or_1_refuses_others(name):
    agent = new_agent(name, sl.graphs.self_loops(6))
    decision = agent.ask()
    with pytest.raises(LossError, match=r"must be 0 or 1 for this learner, not 0\.3"):
        agent.tell(decision, {decision.arm: 0.3})
    assert agent.tell(decision, {decision.arm: 1})


@pytest.mark.parametrize("name", [name for name in NAMES if Need.GRAPH_BEFORE not in catalogue.find(name).NEEDS])
def test_a_graph_that_is_shown_after_the_draw_does_for_those_that_do_not_ask_before(name):
    graph = fitting_graph(catalogue.find(name).NEEDS)
    shown = sl.graphs.alternating([graph], shown="after")
    after = sl.simulate(name, shown, world(), rounds=30, seed=2)
    before = sl.simulate(name, graph, world(), rounds=30, seed=2)
    assert after.plays.tolist() == before.plays.tolist()


def digests():
    return {name: hashlib.sha256(play(new_agent(name), ROUNDS)).hexdigest() for name in NAMES}


def test_the_bits_do_not_depend_on_the_jit():
    program = "import test_contract\nfor name, digest in test_contract.digests().items():\n    print(name, digest)"
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])  # noqa: PTH120
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    assert dict(line.split() for line in done.stdout.splitlines()) == digests()
