"""EXP3.G++ and EXP3-SET with late="guarded": golden values, oracles, and what is the same as without it."""

import math

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import follow, random_digraph
from nightly import share
from sidelong.agent.decision import redraw
from sidelong.errors import LearnerError, ObservabilityError

pytestmark = pytest.mark.interpreted

ORACLES = {"exp3-set": naive.GuardedExp3Set, "exp3.g++": naive.GuardedExp3Gpp}
GRAPHS = {"path": sl.graphs.path(5), "nested": sl.graphs.nested(4)}

#: Round s is told just before the ask of s + 1 + (s mod 3); arm t mod K is played in round t, after the initial ones,
#: and l_(t,i) = (t (i + 2) mod 5) / 4. In round 12, where 11 is outstanding: eta, Theta after the draw, p.
GOLDEN = {
    ("path", "exp3-set"): (
        0.1820021229,
        50.5191196344,
        [0.2376817422, 0.1933293026, 0.0972444627, 0.3676321740, 0.1041123185],
    ),
    ("path", "exp3.g++"): (
        0.1916081603,
        23.8742188628,
        [0.2250475555, 0.1993722575, 0.1518007838, 0.2671958343, 0.1565835689],
    ),
    ("nested", "exp3-set"): (0.1729397889, 48.0672959053, [0.1851667073, 0.2006614018, 0.1745322099, 0.4396396810]),
    ("nested", "exp3.g++"): (0.1666970521, 26.8719012609, [0.2291538939, 0.2452140602, 0.1999686697, 0.3256633762]),
}


class Forced:
    """An agent that is made to play arms of the test's choice."""

    def __init__(self, learner, graph, **options):
        self.agent = sl.Agent(learner, graph, late="guarded", **options)
        self.K = graph.n_arms

    def ask(self, t):
        decision = self.agent.ask()
        if not (self.agent.learner == "exp3.g++" and t <= self.K):
            arm = t % self.K
            redraw(decision, arm)
        return decision

    def tell(self, decision):
        t = decision.round
        self.agent.tell(decision, {int(i): t * (int(i) + 2) % 5 / 4 for i in decision.reveals})


@pytest.mark.parametrize(("graph", "learner"), GOLDEN)
def test_golden_values(graph, learner):
    forced, waiting = Forced(learner, GRAPHS[graph]), []
    for t in range(1, 13):
        for decision in [each for each in waiting if each.round + 1 + each.round % 3 <= t]:
            waiting.remove(decision)
            forced.tell(decision)
        waiting.append(forced.ask(t))
    assert [each.round for each in waiting] == [11, 12]
    agent, last = forced.agent, waiting[-1]
    eta, Theta, p = GOLDEN[graph, learner]
    assert last.drawn.trace[agent._setup.learner.traces.index("learning_rate")] == pytest.approx(eta, abs=1e-9)
    assert agent._state.Theta[0] == pytest.approx(Theta, abs=1e-9)
    assert last.probabilities == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize(("late", "after"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("learner", ORACLES)
@pytest.mark.parametrize("seed", share(range(3), 2))
def test_agrees_with_the_oracle_in_every_round(learner, seed, late, after):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 9))
    bank = [random_digraph(rng, K) for _ in range(3)]
    scale = [1.0, 0.7, 3.0][seed]
    agent = sl.Agent(learner, sl.FeedbackGraph.from_matrix(bank[0]), seed=seed, eta_scale=scale, late="guarded")
    oracle = ORACLES[learner](K, eta_scale=scale)
    if after:  # what is drawn for is the agent's own graph, and the true one comes with the losses
        oracle.distribution = lambda _, ask=oracle.distribution: ask(bank[0])
    follow(agent, oracle, bank, late=late, after=after, seed=seed)
    first = K if learner == "exp3.g++" else 0
    assert agent._state.outstanding[0] == sum(each.round > first for each in agent.pending)
    assert agent._state.Theta[0] == pytest.approx(oracle.Theta, rel=1e-9)


@pytest.mark.parametrize("learner", ORACLES)
def test_what_is_cancelled_or_given_up_is_outstanding_no_more(learner):
    K, rng = 4, np.random.default_rng(3)
    A = random_digraph(rng, K)
    agent = sl.Agent(learner, sl.FeedbackGraph.from_matrix(A), seed=1, late="guarded")
    oracle, waiting = ORACLES[learner](K), []
    for _ in range(200):
        decision, told = agent.ask(), oracle.distribution(A)
        np.testing.assert_allclose(decision.probabilities, told.p, rtol=1e-9)
        waiting.append((decision, told))
        while len(waiting) > rng.integers(1, 9):
            decision, told = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.3:
                agent.cancel(decision)
                oracle.give_up(told)
            else:
                losses = {int(i): float(rng.random()) for i in decision.reveals}
                oracle.update(told, decision.arm, losses)
                agent.tell(decision, losses)
    assert agent._state.outstanding[0] == len(agent.pending) == len(waiting)


@pytest.mark.parametrize("learner", ORACLES)
@pytest.mark.parametrize("graph", [*GRAPHS.values(), sl.graphs.complete(1), sl.graphs.nested(40)], ids=str)
def test_with_prompt_feedback_it_is_the_plain_one_to_the_bit(learner, graph):
    guarded, plain = (sl.Agent(learner, graph, seed=5, late=late) for late in ("guarded", "plain"))
    rng = np.random.default_rng(0)
    for _ in range(300):
        losses = rng.random(graph.n_arms)
        one, other = guarded.ask(), plain.ask()
        assert one.probabilities.tobytes() == other.probabilities.tobytes()
        for agent, decision in ((guarded, one), (plain, other)):
            agent.tell(decision, losses[decision.reveals])
    if graph.n_arms > 1:
        assert guarded._state.Theta.tobytes() == plain._state.Theta.tobytes()


@pytest.mark.parametrize("learner", ORACLES)
def test_late_feedback_lowers_its_rate_and_not_that_of_the_plain_one(learner):
    rates = {}
    for late in ("guarded", "plain"):
        agent = sl.Agent(learner, sl.graphs.self_loops(3), seed=5, late=late)
        decisions = [agent.ask() for _ in range(50)]
        at = agent._setup.learner.traces.index("learning_rate")
        rates[late] = [each.drawn.trace[at] for each in decisions[3:]]
    assert np.ptp(rates["plain"]) == 0
    # No theta is told: Theta is 3, and theta is 3 in every round. Round t has t - 1 - first outstanding before it.
    first, weight, half = (0, 2, 1) if learner == "exp3-set" else (3, 1, 2)
    for t in range(4, 51):
        before = t - 1 - first
        Theta = 3 + 3 * before + weight * before * (before + 1) / 2
        assert rates["guarded"][t - 4] == pytest.approx(math.sqrt(math.log(3) / (half * Theta)))


def test_epochs_cannot_be_guarded():
    with pytest.raises(LearnerError, match=r"late='guarded' needs refresh='round', and refresh is 'epoch'"):
        sl.Agent("exp3.g++", sl.graphs.nested(4), late="guarded", refresh="epoch")
    assert sl.Agent("exp3.g++", sl.graphs.nested(4), late="plain", refresh="epoch").ask().arm in range(4)


@pytest.mark.parametrize("option", [{"rate": "fixed"}, {"estimator": "shifted"}])
def test_what_the_proof_does_not_cover_cannot_be_guarded(option):
    ((name, value),) = option.items()
    with pytest.raises(LearnerError, match=rf"late='guarded' needs {name}='\w+', and {name} is '{value}'"):
        sl.Agent("exp3.g++", sl.graphs.nested(4), late="guarded", **option)


def test_a_graph_that_is_shown_after_the_draw_is_refused_in_a_simulation():
    shown = sl.graphs.alternating([sl.graphs.nested(3)], shown="after")
    with pytest.raises(ObservabilityError, match="exp3-set needs to see the graph before the draw"):
        sl.simulate("exp3-set", shown, sl.losses.bernoulli([0.2, 0.5, 0.5]), 10, late="guarded")
