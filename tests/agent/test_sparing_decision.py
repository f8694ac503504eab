"""Agents of learners that do not look at every arm: what a decision keeps, and what is made when it is asked for."""

import copy
import pickle

import numpy as np
import pytest

import sidelong as sl
from learners.epoch_games import GRAPHS, every_graph, losses_of, new_agent, play
from sidelong.errors import DecisionError


@pytest.mark.parametrize("name", ["intervals in a row", "other intervals", "arcs"])
def test_an_agent_may_be_saved_between_and_at_refreshes(name, tmp_path):
    """Saved in each of 40 rounds, some of which begin epochs, with decisions pending; the loaded one does the same."""
    agent, begun = new_agent(GRAPHS[name], growth=0.2, start="none"), set()
    play(agent, 20)
    for _ in range(40):
        late = agent.ask()
        agent.save(tmp_path / "agent.sidelong")
        resumed = sl.Agent.load(tmp_path / "agent.sidelong")
        assert resumed.pending[0].probability == late.probability
        assert resumed.pending[0].probabilities.tolist() == late.probabilities.tolist()
        for each in (agent, resumed):
            assert each.tell(late.id, losses_of(late))
        begun.add(agent.round == agent._state.epoch[0])
        assert [array.tobytes() for array in agent._state] == [array.tobytes() for array in resumed._state]
        resumed_again = sl.Agent.load(tmp_path / "agent.sidelong")
        resumed_again.tell(late.id, losses_of(late))
        assert play(resumed, 12) == play(resumed_again, 12)
    assert begun == {True, False}


def test_the_probabilities_of_all_arms_are_made_when_read_and_kept():
    agent = new_agent(GRAPHS["ring"], start="none")
    read, unread = agent.ask(), None
    p = read.probabilities.copy()
    assert p.sum() == pytest.approx(1)
    agent.tell(read, losses_of(read))
    assert read.probabilities.tolist() == p.tolist()
    unread = agent.ask()
    agent.ask()
    with pytest.raises(DecisionError, match="was asked or told since decision 2-"):
        _ = unread.probabilities
    assert 0 < unread.probability < 1
    assert agent.tell(unread, losses_of(unread))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda decision: pickle.loads(pickle.dumps(decision))])  # noqa: S301
def test_a_decision_can_be_sent_without_its_agent(copied):
    """It tells what it keeps, and can be told; the probabilities of all arms go along if they were read."""
    agent = new_agent(GRAPHS["ring"], start="none")
    decision = agent.ask()
    sent = copied(decision)
    assert (sent.id, sent.arm, sent.probability) == (decision.id, decision.arm, decision.probability)
    assert sent.revealed_probabilities.tolist() == decision.revealed_probabilities.tolist()
    with pytest.raises(DecisionError, match="this is a copy of it"):
        _ = sent.probabilities
    p = decision.probabilities
    assert copied(decision).probabilities.tolist() == p.tolist()
    assert agent.tell(sent, losses_of(sent))


def test_the_weights_of_the_estimates_are_the_next_probabilities():
    agent = new_agent(GRAPHS["arcs"], growth=0.3)
    play(agent, 60)
    for _ in range(20):
        weights = agent.estimates().weights
        assert agent.ask().probabilities.tolist() == weights.tolist()
        play(agent, 1)


def test_a_graph_that_only_the_outcome_shows_comes_too_late():
    agent = new_agent(sl.graphs.self_loops(4))
    decision = agent.ask()
    with pytest.raises(DecisionError, match="must know at `ask` what its decision reveals"):
        agent.tell(decision, [0.5] * 4, graph=sl.graphs.complete(4))
    assert agent.tell(decision, {decision.arm: 0.5})


@every_graph
def test_the_probabilities_of_what_is_revealed_are_always_there(name):
    """At once they are those of all arms; later they are what they were."""
    agent = new_agent(GRAPHS[name], growth=0.2, start="none")
    for _ in range(60):
        decision = agent.ask()
        kept = decision.revealed_probabilities
        np.testing.assert_allclose(kept, decision.observe_probabilities[decision.reveals], rtol=1e-12)
        agent.tell(decision, losses_of(decision))
        agent.ask()
        assert decision.revealed_probabilities.tolist() == kept.tolist()


def test_every_decision_tells_the_probabilities_of_what_it_reveals():
    decision = sl.Agent("exp3-set", GRAPHS["arcs"]).ask()
    assert decision.revealed_probabilities.tolist() == decision.observe_probabilities[decision.reveals].tolist()


def test_a_decision_keeps_nothing_that_grows_with_the_arms(tmp_path):
    """At 20,000 arms, a decision that is still open adds at most eighteen numbers to a file: five are observed."""
    agent = new_agent(sl.graphs.banded(20_000, 2), start="none")
    agent.ask()
    agent.save(tmp_path / "one")
    for _ in range(200):
        agent.ask()
    agent.save(tmp_path / "many")
    assert (tmp_path / "many").stat().st_size - (tmp_path / "one").stat().st_size < 200 * 18 * 8
