"""EXP3.G++ against golden values, against the oracle in naive.py, and against the statements of the paper."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import sidelong as sl
from learners.stepping import Stepper, random_digraph
from nightly import share
from sidelong.agent.decision import redraw
from sidelong.errors import LearnerError
from sidelong.learners import exp3gpp


def follow_the_oracle(seed, rate, ties, *, changing, rounds=2000):
    """Compare every round of an agent with the oracle; return how many exploration sets there were.

    Half of the seeds have the paper's constants, half have ones that let gaps show early. The tolerance is for what
    rounding grows to: an arm of probability 1e-6 multiplies a relative error by up to a million when it is seen.
    """
    rng = np.random.default_rng([seed, rate == "fixed", ties == "paper", changing])
    K = int(rng.integers(2, 9))
    bank = [random_digraph(rng, K) for _ in range(4 if changing else 1)]
    graphs = [sl.FeedbackGraph.from_matrix(A) for A in bank]
    constants = {"gamma": 0.2, "beta": 0.01} if seed % 2 else {}
    constants["estimator"] = ["plain", "shifted"][seed // 8 % 2]
    alpha = max(naive.strong_independence(A) for A in bank)
    oracle = naive.Exp3Gpp(K, rate, alpha, ties=ties, **constants)
    if rate == "fixed" and changing:
        constants["strong_independence"] = alpha
    agent = sl.Agent("exp3.g++", graphs[0], seed=seed, rate=rate, ties=ties, **constants)
    means = rng.random(K)
    explored, ours, theirs = set(), [], []
    for _ in range(rounds):
        which = int(rng.integers(len(bank)))
        decision = agent.ask(graphs[which])
        told = oracle.distribution(bank[which])
        ours.append([decision.probabilities, decision.observe_probabilities])
        theirs.append([told.p, told.P])
        losses = {int(i): float(rng.random() < means[i]) for i in decision.reveals}
        explored.add(frozenset(told.S or ()))
        oracle.update(told, decision.arm, losses)
        agent.tell(decision, losses)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, err_msg="p and P, for each round")
    np.testing.assert_array_equal(agent.estimates().counts, oracle.O)
    return len(explored)


@pytest.mark.parametrize("seed", share(sorted(range(24), key=lambda seed: seed % 3), 8))
@pytest.mark.parametrize("rate", ["fixed", "adaptive"])
def test_agrees_with_the_oracle_in_every_round(seed, rate):
    """48 random digraphs, a third of them by day, 2,000 rounds each; ties, graphs and estimators take turns."""
    follow_the_oracle(seed, rate, ["paper", "practical"][seed // 2 % 2], changing=seed // 4 % 2 == 1)


def test_the_comparison_with_the_oracle_sees_the_exploration_set_move():
    sizes = [follow_the_oracle(seed, "adaptive", "practical", changing=False, rounds=300) for seed in (1, 7, 17, 31)]
    assert max(sizes) >= 5, sizes


def test_late_feedback_agrees_with_the_oracle():
    """Feedback up to 30 rounds late, out of order, some with a graph that only the outcome showed, some never."""
    rng = np.random.default_rng(5)
    A = random_digraph(rng, 6)
    agent = sl.Agent("exp3.g++", sl.FeedbackGraph.from_matrix(A), seed=5, gamma=0.2, beta=0.01)
    oracle = naive.Exp3Gpp(6, "adaptive", gamma=0.2, beta=0.01)
    waiting = []
    for _ in range(1500):
        told, decision = oracle.distribution(A), agent.ask()
        np.testing.assert_allclose(decision.probabilities, told.p, rtol=1e-9)
        waiting.append((told, decision))
        while (waiting and rng.random() < 0.6) or len(waiting) > 30:
            told, decision = waiting.pop(int(rng.integers(len(waiting))))
            fate = rng.random()
            if fate < 0.05:
                agent.cancel(decision)
                continue
            shown = np.ones_like(A) if fate < 0.3 else A
            losses = {i: float(rng.random()) for i in np.flatnonzero(shown[decision.arm]).tolist()}
            oracle.update(told, decision.arm, losses, shown)
            graph = sl.graphs.complete(6) if fate < 0.3 else None
            agent.tell(decision if fate < 0.6 else decision.id, losses, graph=graph)
    np.testing.assert_allclose(agent._state.O, oracle.O)


@st.composite
def histories(draw, most_arms=7):
    """A digraph with self-loops and what may have been seen on it."""
    K = draw(st.integers(2, most_arms))
    A = np.array(draw(st.lists(st.lists(st.booleans(), min_size=K, max_size=K), min_size=K, max_size=K)))
    np.fill_diagonal(A, val=True)
    counts = draw(st.lists(st.integers(0, 10**6), min_size=K, max_size=K))
    means = draw(st.lists(st.floats(0, 1), min_size=K, max_size=K))
    weights = draw(st.lists(st.floats(0, 1e6), min_size=K, max_size=K))
    t = draw(st.integers(K + 1, 10**9))
    options = {
        "gamma": draw(st.sampled_from([0.01, 0.5, 4.0])),
        "beta": draw(st.sampled_from([1e-6, 0.1, 320.0])),
        "ties": draw(st.sampled_from(["paper", "practical"])),
    }
    return A, np.array(counts, float), np.array(means), np.array(weights), t, options


def after(history):
    """Return a stepper that has drawn up the distribution of a round after such a history."""
    A, counts, means, weights, t, options = history
    stepper = Stepper("exp3.g++", sl.FeedbackGraph.from_matrix(A), **options)
    state = stepper.state
    state.O[:], state.mean[:], state.Lhat[:], state.Ltilde[:] = counts, means, means * counts, weights
    with np.errstate(divide="ignore"):
        state.width[:] = 1 / np.sqrt(counts)
    stepper.t = t - 1
    stepper.distribution()
    return stepper


@given(histories())
def test_proposition_1(history):
    """The exploration set dominates, is strongly independent, and covers each arm by one of no larger gap."""
    A = history[0]
    state = after(history).state
    S = np.flatnonzero(state.S)
    assert A[S].any(axis=0).all()
    assert not any(A[i, j] and A[j, i] for i in S for j in S if i != j)
    for i in range(len(A)):
        assert any(A[j, i] and state.gap[j] <= state.gap[i] for j in S)


@given(histories())
def test_probabilities_are_a_distribution_with_its_share_of_exploration(history):
    stepper = after(history)
    assert math.fsum(stepper.p) == pytest.approx(1, abs=1e-12)
    assert (stepper.p >= stepper.state.eps).all()
    assert (stepper.state.eps > 0).all()
    assert math.fsum(stepper.state.eps) <= 0.5


@given(histories())
def test_every_arm_is_observed_as_often_as_the_proof_needs(history):
    """P_i >= o_{t,i}; the slack is what rounding may take."""
    stepper = after(history)
    P = stepper.graph.observe_probabilities(stepper.p)
    o = naive.o_lower(stepper.state.gap, stepper.t, 1.0, stepper.params.beta)
    assert (o * (1 - 1e-12) <= P).all()


@given(histories(most_arms=6))
def test_theta_is_between_1_and_the_largest_acyclic_set(history):
    stepper = after(history)
    stepper.update(int(np.argmax(stepper.p)), [0.5] * stepper.graph.n_arms)
    theta = stepper.trace[exp3gpp.TRACES.index("theta")]
    assert 1 - 1e-12 <= theta <= naive.maximum_acyclic(history[0]) + 1e-12


@given(histories())
def test_the_estimate_is_unbiased(history):
    """Over the draw, enumerated, each arm's estimate grows by its loss."""
    A, weights = history[0], history[3]
    losses = np.linspace(0, 1, len(A))
    expected = np.zeros(len(A))
    for arm in range(len(A)):
        stepper = after((A, history[1], history[2], weights * 0, *history[4:]))
        stepper.update(arm, losses)
        expected += stepper.p[arm] * stepper.state.Ltilde
    np.testing.assert_allclose(expected, losses, atol=1e-9)


@given(st.data())
def test_arcs_and_intervals_give_the_same_trajectory(data):
    K = data.draw(st.integers(2, 8))
    low = [data.draw(st.integers(0, i)) for i in range(K)]
    high = [data.draw(st.integers(i + 1, K)) for i in range(K)]
    graph = sl.FeedbackGraph.from_intervals(low, high)
    options = {"gamma": 0.3, "beta": 0.02, "ties": data.draw(st.sampled_from(["paper", "practical"]))}
    a = sl.Agent("exp3.g++", graph, seed=3, **options)
    b = sl.Agent("exp3.g++", graph.as_arcs(), seed=3, **options)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    for _ in range(120):
        one, other = a.ask(), b.ask()
        assert one.arm == other.arm
        np.testing.assert_allclose(one.probabilities, other.probabilities, rtol=1e-10)
        losses = {int(i): float(rng.random()) for i in one.reveals}
        a.tell(one, losses)
        b.tell(other, losses)


@pytest.mark.parametrize(("start", "arms"), [("all", [0, 1, 2, 3, 4]), ("cover", [2]), ("none", [])])
def test_start_decides_the_initial_rounds(start, arms):
    agent = sl.Agent("exp3.g++", sl.graphs.star(5, hub=2), start=start)
    decisions = [agent.ask() for _ in range(6)]
    assert [d.arm for d in decisions[: len(arms)]] == arms
    assert all(d.probability == 1 for d in decisions[: len(arms)])
    assert decisions[len(arms)].probabilities.tolist() == pytest.approx([0.2] * 5)


def test_practical_ties_take_the_hub_first():
    stepper = Stepper("exp3.g++", sl.graphs.star(6, hub=3), ties="practical", start="none")
    stepper.distribution()
    assert np.flatnonzero(stepper.state.S).tolist() == [3]


def test_fixed_rate_takes_the_strong_independence_number_it_is_given_or_computes_it():
    graph = sl.graphs.cycle(7)
    assert exp3gpp.configure(graph, rate="fixed").alpha == 3
    assert exp3gpp.configure(graph, rate="fixed").lambda_ == 3
    assert exp3gpp.configure(graph, rate="fixed", strong_independence=5).alpha == 5
    assert exp3gpp.configure(sl.graphs.nested(1000), rate="fixed").alpha == 1000


def test_an_unknown_learner_is_refused_with_the_nearest_name():
    with pytest.raises(LearnerError, match=r"no learner named 'exp3g\+\+'.* Did you mean 'exp3\.g\+\+'"):
        sl.Agent("exp3g++", sl.graphs.complete(4))


#: With self-loops for a guess, told at once with the true graph; arm t mod K after the initial rounds, and
#: l_(t,i) = (t (i + 2) mod 5) / 4. In round 12: eta, Theta after it, the rate of exploration of each arm, p.
GUESSED = {
    "path": (
        sl.graphs.path(5),
        (0.2184354727, 18.8155366163, 0.0366223738),
        [0.2047344701, 0.1827488508, 0.1233689279, 0.3217760383, 0.1673717129],
    ),
    "nested": (
        sl.graphs.nested(4),
        (0.1976813084, 19.5611419916, 0.0424861246),
        [0.2294214144, 0.2308383335, 0.1589969664, 0.3807432858],
    ),
}


@pytest.mark.interpreted
@pytest.mark.parametrize("name", GUESSED)
def test_golden_values_of_a_graph_that_is_shown_after_the_draw(name):
    graph, (eta, Theta, eps), p = GUESSED[name]
    K = graph.n_arms
    agent = sl.Agent("exp3.g++", sl.graphs.self_loops(K))
    for t in range(1, 13):
        decision = agent.ask()
        arm = t % K if t > K else t - 1
        redraw(decision, arm)
        shown = graph.out_neighbors(decision.arm)
        state, explored = agent._state, agent._state.eps.copy()
        agent.tell(decision, {int(i): t * (int(i) + 2) % 5 / 4 for i in shown}, graph)
    assert decision.drawn.trace[exp3gpp.TRACES.index("learning_rate")] == pytest.approx(eta, abs=1e-9)
    assert state.Theta[0] == pytest.approx(Theta, abs=1e-9)
    assert explored == pytest.approx([eps] * K, abs=1e-9)
    assert decision.probabilities == pytest.approx(p, abs=1e-9)
