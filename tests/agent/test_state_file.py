"""Saving and resuming: the same bits as never having stopped, and every damaged file refused."""

import copy
import json
import pickle
import struct
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelong as sl
from sidelong.agent import state_file
from sidelong.errors import ConflictError, DecisionError, StateFileError
from sidelong.learners import exp3gpp


def loss(t, arm):
    return (t * 7 + arm * 3) % 11 / 10


def walk(agent, rounds, rng):
    """Ask each round, tell some decisions late; return what was drawn."""
    bank = [sl.graphs.nested(5), sl.graphs.star(5, hub=1), sl.graphs.cliques([2, 3]).as_arcs()]
    drawn = []
    for _ in range(rounds):
        decision = agent.ask(bank[rng.integers(3)])
        drawn.append((decision.arm, decision.probabilities.tobytes()))
        while agent.pending and rng.random() < 0.7:
            late = agent.pending[rng.integers(len(agent.pending))]
            agent.tell(late, {int(i): loss(late.round, int(i)) for i in late.reveals})
    return drawn


KINDS = [
    ("exp3.g++", {"rate": "fixed", "strong_independence": 5, "gamma": 0.2, "beta": 0.01}),
    ("exp3.g++", {"gamma": 0.2, "beta": 0.01}),
    ("glance", {}),  # which keeps rows with its decisions
]


@given(st.integers(0, 40), st.sampled_from(KINDS))
@settings(max_examples=25)
def test_a_resumed_agent_goes_on_with_the_same_bits(tmp_path_factory, stop, kind):
    path = tmp_path_factory.mktemp("state") / "agent.sidelong"
    learner, options = kind
    whole, parted = (sl.Agent(learner, sl.graphs.nested(5), seed=9, **options) for _ in range(2))
    rngs = [np.random.default_rng(stop) for _ in range(2)]
    assert walk(whole, stop, rngs[0]) == walk(parted, stop, rngs[1])
    parted.save(path)
    resumed = sl.Agent.load(path)
    assert repr(resumed) == repr(whole)
    assert walk(whole, 60, rngs[0]) == walk(resumed, 60, rngs[1])
    for one, other in zip(whole._state, resumed._state, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])  # noqa: S301
@pytest.mark.parametrize("learner", ["exp3.g++", exp3gpp, "glance", replace(exp3gpp.LEARNER, name="own")])
def test_a_copy_goes_on_with_the_same_bits_and_apart(copied, learner):
    agent = sl.Agent(learner, sl.graphs.nested(5), seed=9)
    walk(agent, 30, np.random.default_rng(1))
    other = copied(agent)
    walks = [walk(each, 40, np.random.default_rng(2)) for each in (agent, other)]  # one after the other
    assert walks[0] == walks[1]


def test_contents_stay_as_they_are_whatever_is_asked_and_told_later():
    agent = sl.Agent("exp3.g++", sl.graphs.nested(5), seed=9)
    made = [agent.ask() for _ in range(3)]
    contents = agent.contents()
    before = state_file.checksum(*contents)
    agent.tell(made[0], [0.5] * made[0].reveals.size)
    for other in [sl.Agent.from_contents(*contents, "the file") for _ in range(2)]:
        assert [other.tell(each, [0.5] * each.reveals.size) for each in made] == [True] * 3
    assert state_file.checksum(*contents) == before
    contents = sl.Family("glance", sl.graphs.nested(3), ceiling=1.0, ceiling_over="all").contents()
    one, _ = (sl.Family.from_contents(*contents, "the file") for _ in range(2))
    plan = one.ask(["a"])
    one.tell(plan, np.full(plan.reveals.size, 0.5), costs=np.ones(plan.reveals.size))
    assert contents[1]["account"].tolist() != one.contents()[1]["account"].tolist()


def test_saving_twice_gives_the_same_file(tmp_path):
    agent = sl.Agent("exp3.g++", sl.graphs.nested(5), seed=9)
    walk(agent, 30, np.random.default_rng(0))
    agent.save(tmp_path / "one")
    sl.Agent.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_resumed_agent_still_recognises_what_it_was_told(tmp_path):
    agent = sl.Agent("exp3.g++", sl.graphs.complete(2), seed=1)
    decision = agent.ask()
    agent.tell(decision, [0.5, 0.25])
    agent.save(tmp_path / "agent")
    agent = sl.Agent.load(tmp_path / "agent")
    assert not agent.tell(decision.id, {0: 0.5, 1: 0.25})
    with pytest.raises(ConflictError):
        agent.tell(decision.id, {0: 0.5, 1: 0.5})


@pytest.mark.parametrize("remembers", [0, 5, 20_000])
def test_a_resumed_agent_remembers_as_many_decisions(tmp_path, remembers):
    agent = sl.Agent("exp3.g++", sl.graphs.complete(2), seed=1)
    agent.remembers = remembers
    told = [agent.ask() for _ in range(6)]
    for decision in told:
        agent.tell(decision, [0.5, 0.25])
    agent.save(tmp_path / "agent")
    for resumed in (sl.Agent.load(tmp_path / "agent"), copy.deepcopy(agent)):
        assert resumed.remembers == remembers
        for decision in told[max(6 - remembers, 0) :]:
            assert not resumed.tell(decision.id, [0.5, 0.25])
        for decision in told[: max(6 - remembers, 0)]:
            with pytest.raises(DecisionError, match=f"it remembers the last {remembers}"):
                resumed.tell(decision.id, [0.5, 0.25])


def test_the_representation_of_a_graph_is_kept(tmp_path):
    """A pending decision on the arcs of the agent's own intervals, which it is equal to."""
    graph = sl.FeedbackGraph.from_intervals([0, 0, 2, 1, 3, 0, 4], [3, 2, 4, 7, 5, 7, 7])
    agent = sl.Agent("exp3.g++", graph, seed=4)
    decision = agent.ask(graph.as_arcs().named("mine"))
    agent.save(tmp_path / "agent")
    resumed = sl.Agent.load(tmp_path / "agent")
    assert resumed.graph.representation == "intervals"
    assert resumed.pending[0].graph.representation == "arcs"
    assert resumed.pending[0].graph.name == "mine"
    assert resumed.pending[0].id == decision.id


def test_constants_are_kept_and_not_computed_again(tmp_path, monkeypatch):
    agent = sl.Agent("exp3.g++", sl.graphs.cycle(7), rate="fixed")
    agent.save(tmp_path / "agent")
    monkeypatch.setattr("sidelong.graphs.numbers.GraphNumbers.strong_independence", None)
    assert sl.Agent.load(tmp_path / "agent")._setup.params.alpha == 3


def test_a_learner_of_ones_own_is_loaded_with_its_module(tmp_path):
    own = replace(exp3gpp.LEARNER, name="own")
    agent = sl.Agent(own, sl.graphs.complete(3))
    agent.save(tmp_path / "agent")
    assert sl.Agent.load(tmp_path / "agent", learner=own).learner == "own"
    with pytest.raises(StateFileError, match=r"'own', which is not one of the package's own.*learner=module"):
        sl.Agent.load(tmp_path / "agent")
    with pytest.raises(StateFileError, match=r"'own', not of 'exp3.g\+\+'"):
        sl.Agent.load(tmp_path / "agent", learner=exp3gpp)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    agent = sl.Agent("exp3.g++", sl.graphs.complete(3))
    with pytest.raises(StateFileError, match="agent cannot be written: No such file or directory"):
        agent.save(tmp_path / "nowhere" / "agent")
    with pytest.raises(StateFileError, match="cannot be written: Is a directory"):
        agent.save(tmp_path)


@pytest.fixture
def saved(tmp_path):
    agent = sl.Agent("exp3.g++", sl.graphs.star(4), seed=3, gamma=2.0)
    walk_graph = agent.graph
    for _ in range(10):
        decision = agent.ask(walk_graph)
        agent.tell(decision, [0.5] * decision.reveals.size)
    agent.ask()
    path = tmp_path / "agent.sidelong"
    agent.save(path)
    return path


def test_every_truncation_is_refused(saved):
    data = saved.read_bytes()
    for length in [*range(60), *range(60, len(data), 37), len(data) - 1]:
        saved.write_bytes(data[:length])
        with pytest.raises(StateFileError, match=r"truncated|not a state file"):
            sl.Agent.load(saved)


def test_every_flipped_bit_is_refused(saved):
    data = saved.read_bytes()
    for position in [*range(20), *range(20, len(data), 29), len(data) - 1]:
        altered = bytearray(data)
        altered[position] ^= 1 << position % 8
        saved.write_bytes(altered)
        with pytest.raises(StateFileError):
            sl.Agent.load(saved)


def test_a_newer_file_says_so(saved):
    data = bytearray(saved.read_bytes())
    struct.pack_into("<I", data, 8, 2)
    saved.write_bytes(data)
    with pytest.raises(StateFileError, match=r"format version 2, and this program reads 1.*Install the version"):
        sl.Agent.load(saved)


def test_a_file_of_another_version_of_its_learner_is_refused_with_what_can_be_done(saved, monkeypatch):
    monkeypatch.setattr(exp3gpp, "LEARNER", replace(exp3gpp.LEARNER, version=2))
    with pytest.raises(
        StateFileError, match=r"version 1 of exp3\.g\+\+, and this is version 2.*has version 1.*new Agent"
    ):
        sl.Agent.load(saved)
    agent = sl.Agent("exp3.g++", sl.graphs.nested(3))
    agent.save(saved)
    assert sl.Agent.load(saved).round == 0
    monkeypatch.undo()
    with pytest.raises(StateFileError, match=r"version 2 of exp3\.g\+\+, and this is version 1"):
        sl.Agent.load(saved)


def test_a_file_of_another_version_of_its_learner_or_of_none_is_refused(saved, monkeypatch):
    header, arrays = state_file.read(saved)
    monkeypatch.setattr(exp3gpp, "LEARNER", replace(exp3gpp.LEARNER, version=2))
    with pytest.raises(StateFileError, match="saved by version 1"):
        sl.Agent.load(saved)
    monkeypatch.undo()
    assert header.pop("learner_version") == 1
    state_file.write(saved, header, arrays)
    with pytest.raises(StateFileError, match="holds what no agent or family has saved"):
        sl.Agent.load(saved)


def test_a_missing_file_and_a_foreign_one_are_refused(tmp_path):
    with pytest.raises(StateFileError, match="cannot be read: No such file"):
        sl.Agent.load(tmp_path / "nothing")
    (tmp_path / "text").write_text("SIDEWAYS and more text that is long enough to be a file of its own kind")
    with pytest.raises(StateFileError, match="not a state file"):
        sl.Agent.load(tmp_path / "text")


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    agent = sl.Agent.load(saved)
    agent.ask()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(StateFileError, match=r"cannot be written: No space left on device\. What was there before"):
        agent.save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_two_threads_save_to_one_file_at_once(saved, monkeypatch):
    """Both have written their draft before either takes the file's place; whichever comes last stays, whole."""
    agents, both, errors = [sl.Agent.load(saved) for _ in range(2)], threading.Barrier(2), []
    agents[1].ask()
    monkeypatch.setattr("os.fsync", lambda _: both.wait(120))

    def save(agent):
        try:
            agent.save(saved)
        except StateFileError as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(agent,)) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sl.Agent.load(saved).round in {agent.round for agent in agents}
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_labels_come_back_and_are_nothing_where_there_are_none(tmp_path):
    graph = sl.graphs.nested(3).labelled(["small", "medium", "large"])
    agent = sl.Agent("exp3.g++", graph, seed=1)
    agent.ask(sl.graphs.star(3))
    agent.save(tmp_path / "agent")
    loaded = sl.Agent.load(tmp_path / "agent")
    assert loaded.graph.labels == graph.labels
    assert copy.deepcopy(agent).graph.labels == graph.labels
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "agent").read_bytes()
    assert "labels" not in sl.Agent("exp3.g++", sl.graphs.nested(3)).contents()[0]


def test_the_header_can_be_read_by_a_person(saved):
    data = saved.read_bytes()
    _, version, length = struct.unpack_from("<8sII", data)
    header = json.loads(data[16 : 16 + length])
    assert version == 1
    assert header["learner"] == "exp3.g++"
    assert header["options"] == {"gamma": 2.0}
    assert header["round"] == 11
