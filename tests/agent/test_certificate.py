"""An agent's certificate: the definition, however feedback comes; saved, copied, refused; and the same in the loop."""

import pickle

import numpy as np
import pytest

import sidelong as sl
from naive import Certifier
from nightly import share
from sidelong.errors import EvaluationError, LearnerError
from sidelong.evaluation.certificates import TOLD, Standing, assess, settle


def world(K, rounds, seed=1):
    return np.random.default_rng(seed).random((rounds, K))


@pytest.mark.interpreted
@pytest.mark.parametrize("learner", ["exp3.g++", "exp3-set", "glance", "tsallis-inf", "ucb-n"])
def test_it_is_that_of_the_definition_with_late_lost_and_cancelled_rounds(learner):
    graph, rng = sl.graphs.path(4) if learner != "tsallis-inf" else sl.graphs.self_loops(4), np.random.default_rng(2)
    agent, oracle = sl.Agent(learner, graph, seed=3, certificate=True), Certifier(4)
    losses, waiting, A = world(4, 60), [], graph.matrix().astype(bool).tolist()
    for t in range(60):
        made = agent.ask()
        waiting.append((made, oracle.ask(A, made.probabilities.tolist(), made.arm), losses[t]))
        while len(waiting) > 3:
            made, number, row = waiting.pop(int(rng.integers(4)))
            kind = rng.integers(8)
            if kind == 0:
                agent.cancel(made)
                oracle.cancel(number)
            elif kind == 1:
                agent.cancel(made.id, lost=True)
            else:
                agent.tell(made, row[made.reveals])
                oracle.tell(number, row.tolist())
    found = agent.certificate(0.9)
    assert found.bound == pytest.approx(oracle.bound(0.1), abs=1e-8)
    np.testing.assert_allclose(found.lower, [oracle.lower(k, 0.1) for k in range(4)], atol=1e-8)
    assert found.rounds == 60 - oracle.rounds.count(None)


def test_it_changes_no_decision_and_is_saved_with_what_waits(tmp_path):
    graph, losses = sl.graphs.nested(5), world(5, 40)
    plain, agent = (sl.Agent("glance", graph, seed=1, certificate=kept) for kept in (False, True))
    waiting = []
    for t in range(40):
        made = agent.ask()
        assert made.arm == plain.ask().arm
        waiting.append((made.id, losses[t][made.reveals], plain.pending[-1]))
        if t % 3 == 2:
            for name, row, other in waiting[:-1]:
                agent.tell(name, row)
                plain.tell(other, row)
            waiting = waiting[-1:]
        if t == 20:
            agent.save(tmp_path / "a")
            copies = sl.Agent.load(tmp_path / "a"), pickle.loads(pickle.dumps(agent))  # noqa: S301
            assert all(str(copy.certificate()) == str(agent.certificate()) for copy in copies)
            agent = copies[0]
    np.testing.assert_array_equal(agent.contents()[1]["pending.mean"].shape, (len(agent.pending), 5))
    with pytest.raises(EvaluationError, match="certificate=True"):
        plain.certificate()
    assert plain.contents()[1]["observers.W"].size == plain.contents()[1]["pending.mean"].size == 0


def test_a_graph_that_is_told_with_the_losses_counts(tmp_path):
    """Orders: what is left over shows the demand, and so the cost of every order."""
    agent = sl.Agent("glance", sl.graphs.nested(4), seed=2, certificate=True)
    losses = world(4, 200)
    for t in range(200):
        made = agent.ask()
        graph = sl.graphs.complete(4) if t % 2 else None
        agent.tell(made, losses[t] if t % 2 else losses[t][made.reveals], graph=graph)
    late = agent.ask()
    found = agent.certificate()
    assert found.bound >= found.paid - losses.sum(axis=0).min() - 1
    agent.save(tmp_path / "a")
    assert sl.Agent.load(tmp_path / "a").certificate().bound == found.bound
    agent.cancel(late)
    assert agent.certificate().bound < found.bound


@pytest.mark.parametrize(("learner", "options"), [("ts-n", {}), ("exp3.g++", {"refresh": "epoch"})])
def test_learners_that_do_not_know_all_probabilities_are_refused(learner, options):
    with pytest.raises(LearnerError, match="probability of observing every arm"):
        sl.Agent(learner, sl.graphs.complete(3), certificate=True, **options)


def test_it_narrows_where_much_is_seen():
    agent = sl.Agent("glance", sl.graphs.complete(3), seed=2, certificate=True)
    losses = (world(3, 3000) < [0.2, 0.5, 0.6]).astype(float)
    for row in losses:
        agent.tell(agent.ask(), row)
    found = agent.certificate()
    regret = found.paid - losses.sum(axis=0).min()
    assert regret <= found.bound < regret + 30
    assert (found.arm, found.silent, found.rounds) == (0, 0, 3000)
    assert found.why == "" or "few" in found.why


def test_an_arm_without_edges_is_absent():
    """The graph of a round in which an arm cannot be played has none of its edges."""
    graph = sl.FeedbackGraph.from_matrix([[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    standing = Standing.new(3)
    settle(standing, graph.arrays, 0, np.array([0.5, 0.5, 0.0]), np.full(3, 0.5), np.ones(3), TOLD, np.empty(3))
    assert standing.arms[2:, 2].tolist() == [1.0, 1.0]
    assert assess(standing).there == 1
    assert (standing.W[2] == 0).all()


@pytest.mark.parametrize("game", share([("exp3.g++", 4), ("glance", 0), ("exp3.g++", 0), ("glance", 4)], 2))
def test_the_loop_says_what_an_agent_says_to_the_bit(game):
    learner, delay = game
    bank = [sl.graphs.path(4), sl.graphs.nested(4)]
    sequence = sl.graphs.scheduled(bank, [0, 0, 1])
    rounds, losses = 90, world(4, 90)
    marks = [1, 3, 20, 90]
    result = sl.simulate(
        learner, sequence, sl.losses.table(losses), rounds, seed=5, checkpoints=marks, delay=delay, certificate=True
    )
    agent, waiting, said = sl.Agent(learner, bank[0], seed=5, certificate=True), [], []
    for t in range(1, rounds + 1):
        waiting.append((agent.ask(sequence.graph_of_round(t)), losses[t - 1]))
        if len(waiting) > delay:
            made, row = waiting.pop(0)
            agent.tell(made, row[made.reveals])
        if t in marks:
            said.append(agent.certificate().bound)
    assert result.certificate.tolist() == [said]
    assert (result.certificate[0] >= result.regret[0]).all()


def test_a_simulation_without_it_has_none_and_the_same_numbers():
    game = "exp3-set", sl.graphs.path(5), sl.losses.bernoulli([0.3, 0.5, 0.5, 0.6, 0.7]), 300
    plain, certified = sl.simulate(*game), sl.simulate(*game, certificate=True)
    assert plain.certificate is None
    np.testing.assert_array_equal(plain.regret, certified.regret)
    with pytest.raises(LearnerError, match="ts-n"):
        sl.simulate("ts-n", sl.graphs.complete(3), sl.losses.bernoulli([0.3, 0.5, 0.5]), 10, certificate=True)


def test_an_arm_that_comes_later_was_absent_before():
    """A decision that waits then is told with the graph that it was asked with, in which the new arm has no edges."""
    agent, losses = sl.Agent("exp3-set", sl.graphs.complete(2), seed=1, certificate=True), world(2, 40)
    for row in losses:
        agent.tell(agent.ask(), row)
    waits = agent.ask()
    before = agent.certificate()
    agent.add_arm(reveals=[0, 1], revealed_by=[0, 1])
    found = agent.certificate()
    np.testing.assert_allclose(found.lower[:2], before.lower, atol=1.0)  # one arm more to hold for
    assert found.lower[2] <= 0
    agent.tell(waits.id, [0.3, 0.4])
    arrays = agent.contents()[1]
    away, spared = arrays["observers.standing"][0, 2:, 2].tolist()
    assert (away, spared) == pytest.approx((41, arrays["observers.sums"][0, 0]))
    assert agent.certificate().arm < 2
    assert arrays["observers.alarm"][0, :, 2].tolist() == [0, 0, 0, 0, 0, 1]
    assert not agent.health().turned


def test_a_certificate_goes_on_when_an_arm_is_added_or_absent(tmp_path):
    agent, oracle = sl.Agent("exp3-set", sl.graphs.path(3), seed=2, certificate=True), Certifier(4)
    losses, rng, waits = world(4, 80), np.random.default_rng(5), None

    def ask(**how):
        made = agent.ask(**how)
        A, p = np.zeros((4, 4), bool), np.zeros(4)
        n = made.graph.n_arms
        A[:n, :n], p[:n] = made.graph.matrix().astype(bool), made.probabilities
        return made, oracle.ask(A.tolist(), p.tolist(), made.arm, np.flatnonzero(~A.any(axis=1)).tolist())

    for t in range(80):
        if t == 40:
            waits = ask()
            agent.add_arm(reveals=[0], revealed_by=[1])
        there = rng.permutation(agent.graph.n_arms)[1:].tolist() if t % 3 == 0 else None
        made, number = ask(available=there)
        agent.tell(made.id, losses[t][made.reveals])
        oracle.tell(number, losses[t].tolist())
    assert agent.certificate().bound == pytest.approx(oracle.bound(0.05), abs=1e-8)
    agent.tell(waits[0].id, losses[0][waits[0].reveals])
    oracle.tell(waits[1], losses[0].tolist())
    assert agent.certificate().bound == pytest.approx(oracle.bound(0.05), abs=1e-8)
    agent.save(tmp_path / "a")
    assert str(sl.Agent.load(tmp_path / "a").certificate()) == str(agent.certificate())


@pytest.mark.parametrize("confidence", ["x", None, True, 1, 0, -0.5, float("nan")])
def test_what_is_no_confidence_is_refused(confidence):
    agent = sl.Agent("glance", sl.graphs.path(3), certificate=True)
    with pytest.raises(EvaluationError, match="The confidence must be between 0 and 1"):
        agent.certificate(confidence)
