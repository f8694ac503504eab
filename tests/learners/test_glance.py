"""glance: its oracle, advice, absent arms, feedback that is late, and the inequalities of its proof."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import Stepper, endure, follow, random_digraph
from nightly import share
from sidelong.learners import glance
from sidelong.learners.glance_bold import KEEPS, LEVEL, UNSEEN
from sidelong.learners.glance_cautious import PREDICTED, Z
from sidelong.learners.interface import Asked, Told, trace_size, widen_trace

FIRST = len(glance.TRACES) + 1  # where the rows of a trace begin


def row(trace, K, name):
    first = FIRST + K * glance.LEARNER.kept.index(name)
    return trace[first : first + K]


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", share(range(6), 4))
@pytest.mark.parametrize("late", [False, True])
def test_agrees_with_the_oracle_in_every_round(seed, late):
    """Random digraphs of 2 to 25 arms; graphs change in half of them."""
    rng = np.random.default_rng(seed)
    K = [2, 5, 9, 14, 20, 25][seed]
    bank = [random_digraph(rng, K) for _ in range(3 if seed % 2 else 1)]
    agent = sl.Agent("glance", sl.FeedbackGraph.from_matrix(bank[0]), seed=seed)
    follow(agent, naive.Glance(K), bank, rounds=300, late=late, seed=seed)


@pytest.mark.parametrize(
    ("family", "K", "rounds"), [("nested", 60, 120), ("self_loops", 60, 120), ("nested", 3, 1_040)]
)
def test_agrees_with_the_oracle_where_D_is_kept_for_some_rounds(family, K, rounds):
    """Of many arms, and in later rounds; and as intervals, not arcs."""
    graph = getattr(sl.graphs, family)(K)
    agent, oracle, rng = sl.Agent("glance", graph, seed=1), naive.Glance(K), np.random.default_rng(1)
    for _ in range(rounds):
        decision, told = agent.ask(), oracle.distribution(graph.matrix())
        np.testing.assert_allclose(decision.probabilities, told.p, rtol=1e-8)
        losses = {int(i): rng.random() for i in decision.reveals}
        agent.tell(decision, losses)
        oracle.update(told, decision.arm, losses)


@pytest.mark.parametrize("seed", range(3))
def test_late_rounds_whose_graph_only_the_outcome_shows_agree_with_the_oracle(seed):
    rng = np.random.default_rng(seed)
    K = [4, 6, 14][seed]
    bank = [random_digraph(rng, K) for _ in range(4)]
    graphs = [sl.FeedbackGraph.from_matrix(A) for A in bank]
    agent, oracle, waiting = sl.Agent("glance", graphs[0]), naive.Glance(K), []
    for _ in range(150):
        decision, told = agent.ask(), oracle.distribution(bank[0])
        np.testing.assert_allclose(decision.probabilities, told.p, rtol=1e-7)
        waiting.append((decision, told))
        while len(waiting) > rng.integers(1, 10):
            decision, told = waiting.pop(int(rng.integers(len(waiting))))
            shown = int(rng.integers(4))
            losses = {int(i): rng.random() for i in np.flatnonzero(bank[shown][decision.arm])}
            oracle.update(told, decision.arm, losses, bank[shown])
            agent.tell(decision, losses, graph=graphs[shown])


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(3))
def test_arms_that_are_absent_new_and_retired_agree_with_the_oracle(seed):
    """An arm comes after 60 rounds, while decisions wait, and the first goes after 120."""
    rng = np.random.default_rng(seed)
    K = 4
    agent, oracle, waiting = sl.Agent("glance", sl.graphs.self_loops(K), seed=seed), naive.Glance(K), []
    for t in range(180):
        if t == 60:
            agent.add_arm()
            rounds = oracle.new_arm([told for _, told in waiting])
            waiting = [(next(each for each in agent.pending if each.round == told.t), told) for told in rounds]
        if t == 120:
            agent.retire(0)
        there = rng.random(oracle.K) < 0.7
        there[-2:] = True
        there[0] &= t < 120
        decision, told = agent.ask(available=there), oracle.distribution(np.diag(there))
        np.testing.assert_allclose(decision.probabilities, told.p, rtol=1e-8, atol=1e-15)
        waiting.append((decision, told))
        while len(waiting) > 3:
            decision, told = waiting.pop(int(rng.integers(4)))
            loss = 0.2 + 0.1 * decision.arm + 0.3 * rng.random()
            agent.tell(decision, {decision.arm: loss})
            oracle.update(told, decision.arm, {decision.arm: loss})


class Advised:
    """The kernels with advice, driven by hand beside the oracle."""

    def __init__(self, graph, advisers):
        self.graph, self.K = graph, graph.n_arms
        self.params = glance.configure(graph)
        self.state, self.t, self.M = glance.init(self.params, graph), 0, 0
        for _ in range(advisers):
            self.add_adviser()

    def add_adviser(self):
        self.params, self.state = glance.add_adviser(self.params, self.state)
        self.M += 1

    def ask(self, advice, graph=None):
        """Advice is a distribution by the number of the adviser."""
        shown = (graph or self.graph).arrays
        self.t += 1
        p, trace = np.zeros(self.K), np.zeros(trace_size(glance.LEARNER, self.K, self.M))
        for m, E in advice.items():
            first = trace_size(glance.LEARNER, self.K) + m * self.K
            trace[first : first + self.K] = E
        present = np.less(shown.start, shown.stop)
        glance.distribution(self.params, self.state, shown, Asked.new(self.t, p, trace, present))
        return self.t, p, trace

    def tell(self, asked, arm, losses, graph=None):
        (t, p, trace), shown = asked, (graph or self.graph).arrays
        values = np.zeros(self.K)
        values[: len(losses)] = losses
        told = Told.new(t, arm, p, values, trace, np.less(shown.start, shown.stop))
        glance.update(self.params, self.state, shown, told)


@pytest.mark.interpreted
@pytest.mark.parametrize("make", [sl.graphs.self_loops, sl.graphs.nested, sl.graphs.star])
def test_advice_agrees_with_the_oracle_late_silent_and_of_who_came_later(make):
    graph, rng = make(5), np.random.default_rng(3)
    A, waiting = graph.matrix(), []
    learner, oracle = Advised(graph, 1), naive.Glance(5, 1)
    for t in range(150):
        if t == 50:
            learner.add_adviser()
            oracle.add()
        advice = {m: rng.dirichlet(np.full(5, 0.4)) for m in range(learner.M) if rng.random() < 0.8}
        asked, told = learner.ask(advice), oracle.distribution(A, advice)
        np.testing.assert_allclose(asked[1], told.p, rtol=1e-8, atol=1e-15)
        waiting.append((asked, told))
        while len(waiting) > 2:
            asked, told = waiting.pop(int(rng.integers(3)))
            arm = int(rng.choice(5, p=told.p / told.p.sum()))
            losses = {int(i): 0.1 * i + 0.4 * rng.random() for i in np.flatnonzero(A[arm])}
            learner.tell(asked, arm, list(losses.values()))
            oracle.update(told, arm, losses)
    assert learner.state.there.all()


@pytest.mark.interpreted
def test_who_advises_an_arm_that_is_absent_is_absent():
    graph, rng = sl.graphs.self_loops(4), np.random.default_rng(4)
    shown = sl.Agent("glance", graph).graph_of_round(available=[0, 1, 2])
    learner, oracle = Advised(graph, 1), naive.Glance(4, 1)
    for t in range(60):
        advice, now = {0: np.eye(4)[3 if t % 2 else 1]}, shown if t % 3 else graph
        asked, told = learner.ask(advice, now), oracle.distribution(now.matrix(), advice)
        np.testing.assert_allclose(asked[1], told.p, rtol=1e-8, atol=1e-15)
        assert asked[1][3] == 0 or t % 3 == 0
        arm = int(rng.choice(4, p=asked[1] / asked[1].sum()))
        loss = rng.random()
        learner.tell(asked, arm, [loss], now)
        oracle.update(told, arm, {arm: loss})


@pytest.mark.interpreted
def test_an_adviser_that_knows_the_best_arm_is_followed_and_one_that_is_wrong_is_not():
    graph, rng = sl.graphs.self_loops(6), np.random.default_rng(5)
    learner, followed = Advised(graph, 2), []
    for t in range(400):
        best = int(rng.integers(6))
        asked = learner.ask({0: np.eye(6)[best], 1: np.eye(6)[(best + 1) % 6]})
        arm = int(rng.choice(6, p=asked[1] / asked[1].sum()))
        learner.tell(asked, arm, [0.1 if arm == best else 0.8])
        followed += [arm == best] if t >= 200 else []
    assert np.mean(followed) > 0.75
    shares = glance.LEARNER.trust(learner.state)
    assert shares.sum() == pytest.approx(1)
    assert shares.argmax() == 1


@pytest.mark.interpreted
def test_without_advice_a_learner_with_an_adviser_weighs_arms_as_one_without():
    """An adviser that is always silent is absent: q, and so every theorem against arms, is that of the arms alone."""
    graph, rng = sl.graphs.nested(4), np.random.default_rng(2)
    learner = Advised(graph, 1)
    for _ in range(100):
        asked = learner.ask({})
        L = learner.state.L[:4]
        w = np.exp(-(L - L.min()) * asked[2][glance.TRACES.index("learning_rate")])
        np.testing.assert_allclose(row(asked[2], 4, "q"), w / w.sum(), rtol=1e-9)
        arm = int(rng.choice(4, p=asked[1] / asked[1].sum()))
        learner.tell(asked, arm, rng.random(arm + 1))


def test_what_is_kept_of_a_round_gets_room_for_a_new_arm():
    trace = np.arange(trace_size(glance.LEARNER, 3, 2), dtype=float)
    wider = widen_trace(glance.LEARNER, trace, 3)
    assert wider.size == trace_size(glance.LEARNER, 4, 2)
    assert wider[:FIRST].tolist() == trace[:FIRST].tolist()
    rows = wider[FIRST:].reshape(6, 4)
    assert (rows[:, 3] == 0).all()
    assert rows[:, :3].ravel().tolist() == trace[FIRST:].tolist()


def test_a_prior_and_a_log_begin_the_bold_half_and_add_to_each_other():
    """No first rounds are needed of arms that are known, and the weights of the cautious half stay equal."""
    graph = sl.graphs.self_loops(3)
    agent = sl.Agent("glance", graph, prior={0: (0.7, 20), 1: (0.2, 20), 2: (0.6, 20)})
    assert agent.outlook().argmax() == 1
    assert (agent._state.L == 0).all()
    params = glance.configure(graph)
    once, twice = glance.init(params, graph), glance.init(params, graph)
    rng = np.random.default_rng(1)
    arms, losses, P = rng.integers(0, 3, 90), rng.random(90), rng.uniform(0.2, 1, 90)
    ends, p = np.arange(1, 91), np.zeros(3)
    glance.replay(params, once, ends, arms, losses, P, p)
    glance.replay(params, twice, ends[:40], arms[:40], losses[:40], P[:40], p)
    glance.replay(params, twice, ends[40:] - 40, arms[40:], losses[40:], P[40:], p)
    for name in ("V", "F", "F2"):
        np.testing.assert_allclose(getattr(once, name), getattr(twice, name), rtol=1e-9)
    np.testing.assert_allclose(once.o + once.known[LEVEL], twice.o + twice.known[LEVEL], rtol=1e-9)
    mean = [np.average(losses[arms == arm], weights=1 / P[arms == arm]) for arm in range(3)]
    np.testing.assert_allclose(once.o + once.known[LEVEL], mean)
    assert once.marks[UNSEEN] == 0


@pytest.mark.interpreted
@pytest.mark.parametrize("graph", [sl.graphs.self_loops(3), sl.graphs.nested(5), sl.graphs.out_star(4)], ids=repr)
def test_a_world_that_turns_raises_an_alarm_and_still_agrees_with_the_oracle(graph):
    """The losses of all arms turn round after 150 rounds: without noise but for a little, so that none can miss it."""
    K, rng = graph.n_arms, np.random.default_rng(7)
    agent, oracle, plays = sl.Agent("glance", graph, seed=3), naive.Glance(K), []
    means = np.linspace(0.2, 0.9, K)
    for t in range(400):
        decision, told = agent.ask(), oracle.distribution(graph.matrix())
        np.testing.assert_allclose(decision.probabilities, told.p, rtol=1e-7, atol=1e-15)
        now = means if t < 150 else means[::-1]
        losses = {int(i): now[i] + 0.1 * rng.random() for i in decision.reveals}
        agent.tell(decision, losses)
        oracle.update(told, decision.arm, losses)
        plays.append(decision.arm)
    assert oracle.alarms > 0
    assert means[plays[140:150]].mean() < 0.3
    assert means[::-1][plays[-50:]].mean() < 0.5  # what was best until the turn would lose 0.9


@pytest.mark.parametrize("outage", [8, 100, 300])
def test_an_arm_that_has_failed_is_played_again_soon_after_it_is_well(outage):
    """Three arms of means .15, .08 and .18; the best one fails after 1,000 rounds. Measured: 19 of 20 runs or more."""
    rounds, back = 1200 + outage, 0
    for run in range(5):
        losses = np.clip(np.random.default_rng([run, outage]).normal([0.15, 0.08, 0.18], 0.1, (rounds, 3)), 0, 1)
        losses[1000 : 1000 + outage, 1] = 1.0
        world = sl.losses.table(losses)
        ends = [1100 + outage, rounds]
        result = sl.simulate("glance", sl.graphs.self_loops(3), world, rounds, seed=run, checkpoints=ends)
        paid = np.diff(result.loss[0])[0] / 100
        back += paid < 0.12
    assert back >= 4


def test_an_arm_that_nothing_else_reveals_is_learned_beside_arms_that_are_alike():
    """The others share their noise; an arm that was never seen with them has noise of its own, and is the best."""
    graph, rounds, regret = sl.graphs.cliques([1, 5]), 2000, []
    for run in range(6):
        rng = np.random.default_rng(run)
        losses = 0.5 + 0.2 * rng.standard_normal((rounds, 1)) + 0.02 * rng.standard_normal((rounds, 6))
        losses[:, 0] = 0.4 + 0.2 * rng.standard_normal(rounds)
        losses = np.clip(losses, 0, 1)
        result = sl.simulate("glance", graph, sl.losses.table(losses), rounds, seed=run, progress=False)
        regret.append(result.loss[0, -1] - losses[:, 0].sum())
    assert np.mean(regret) < 40  # 200 is that of the others; 12 on average over other runs, and 34 in the worst


@pytest.mark.interpreted
def test_an_arm_that_shows_all_is_played_for_those_that_it_shows():
    """Arm 0 of an out-star shows all others. It is a little dearer than the leader, and the others are much dearer."""
    stepper = Stepper("glance", sl.graphs.out_star(4))
    while stepper.state.marks[UNSEEN] > 0:
        stepper.update(int(np.argmax(stepper.distribution())), [0.5] * 4)
    stepper.state.F[:] = stepper.state.F2[:] = 3.0
    stepper.state.V[:] = 0.5 / 3
    stepper.state.o[:] = [0.05, 0.0, 0.4, 0.4]
    stepper.state.marks[3] = 1  # the leader
    stepper.distribution()
    D = row(stepper.trace, 4, "D")
    assert D[2] == D[3] == 0.0
    assert D[0] + D[1] == pytest.approx(1)
    stepper.state.marks[KEEPS] = 0
    stepper.state.o[:] = [0.4, 0.0, 0.05, 0.05]  # now it is dearer than those that it would be played for
    stepper.distribution()
    D = row(stepper.trace, 4, "D")
    assert D[2] == D[3] > D[0] > 0
    stepper.state.marks[KEEPS] = 0
    stepper.t = 5_000  # in a long game nobody knows after three looks that it is dear: half of the leader's plays
    stepper.distribution()
    D = row(stepper.trace, 4, "D")
    assert D[0] > D[1] > 0.1


def share_after_a_turn(seed):
    """Return what 500 orders lost after demand grew, as a share of what random orders lose. Sold out hides the demand.

    The means of what was seen say that large orders are dear: they are mostly seen on days on which little was wanted.
    """
    orders = sl.outcomes.StockOrders(12, holding=1, shortage=4)
    demand = np.minimum(np.random.default_rng(seed).geometric([1 / 3] * 500 + [1 / 8] * 500) - 1, 40).tolist()
    agent, played = sl.Agent("glance", orders.graph, seed=seed), []
    for wanted in demand:
        decision = agent.ask()
        agent.tell(decision, orders.outcome(decision.arm, sales=min(decision.arm, wanted)))
        played.append(decision.arm)
    losses = np.array([orders.losses(wanted) for wanted in demand])[500:]
    suffered, best = losses[np.arange(500), played[500:]].sum(), losses.sum(axis=0).min()
    return (suffered - best) / (losses.sum(axis=0).mean() - best)


def test_an_outcome_that_decides_the_graph_does_not_mislead_it():
    """Measured on 4 seeds: 0.38 to 0.84. With plain means the share was 1.81 on 12 seeds, and at least 1.53."""
    assert np.mean([share_after_a_turn(seed) for seed in range(6)]) < 0.7


def test_the_first_rounds_of_the_oracle_by_hand():
    """Two arms that reveal themselves alone: after two rounds of looking L is 0, and the bold half knows both."""
    oracle = naive.Glance(2)
    loops = np.eye(2)
    for arm, loss in ((0, 0.2), (1, 0.8)):
        told = oracle.distribution(loops)
        assert told.p.tolist() == np.eye(2)[arm].tolist()
        oracle.update(told, arm, {arm: loss})
    # The first loss makes the level 0.2; the second differs from it by 0.6, which is the effect of arm 1.
    assert oracle.o.tolist() == pytest.approx([0.0, 0.6])
    assert (oracle.V.tolist(), oracle.N.tolist()) == ([0.0, 0.0], [1.0, 1.0])
    # The mean of l - o was 0.8 before o moved: levels of all and of 32 rounds go a third of the way, as does that of 4.
    assert oracle.levels == pytest.approx([0.4, 0.4, 0.4])
    told = oracle.distribution(loops)
    v = (0.05 + 0.05) / 3  # both arms: no variance yet, the prior and the pooled one
    u = 4 * 0.36 / (3 * v + 2 * 0.36 / 3)
    D = math.exp(-6 * u / (2 + u))
    assert told.D.tolist() == pytest.approx([1 / (1 + D), D / (1 + D)])
    assert told.beta == pytest.approx(1 - 0.002 - 0.018)  # each play showed half of the arms: (1 - 1/2) 2 = 1
    assert told.d.tolist() == pytest.approx([0.4, 1.0])
    assert told.q.tolist() == [0.5, 0.5]
    assert told.p.tolist() == pytest.approx(list(0.02 * 0.5 + 0.98 * told.D))


def largest_bias(K, *, prediction_at_tell):
    """Return the largest distance between losses and the mean, over all draws, of their estimates in L and in Z.

    Three rounds are asked after the first ones. When the first of them is told depends on the arm that it played, as
    where one arm's outcome takes longer: arm 0 before the two others, any other arm after them. They move what would be
    predicted by then. All K^3 draws are played, each with its probability.
    """
    losses = np.random.default_rng(K).random((4, K))
    stepper = Stepper("glance", sl.graphs.directed_path(K))
    while stepper.state.marks[UNSEEN] > 0:
        stepper.update(int(np.argmax(stepper.distribution())), losses[0])
    mean, spent, lost = np.zeros(K), 0.0, 0.0
    for arms in itertools.product(range(K), repeat=3):
        own = copy.copy(stepper)
        own.state = type(stepper.state)(*(array.copy() for array in stepper.state))
        rounds, probability = [], 1.0
        for arm in arms:
            own.p, own.trace = stepper.p.copy(), stepper.trace.copy()
            own.distribution()
            probability *= own.p[arm]
            rounds.append((own.t, own.p, own.trace, arm))
        for k in (0, 2, 1) if arms[0] == 0 else (2, 1, 0):
            own.t, own.p, own.trace, arm = rounds[k]
            L, Z_before, q = own.state.L.copy(), own.state.rate[Z], row(own.trace, K, "q")
            if prediction_at_tell:
                d = row(own.trace, K, "d")
                d[:] = np.clip(own.state.known[LEVEL] + own.state.o, 0, 1)
                own.trace[PREDICTED] = (own.p - q) @ d
            own.update(arm, losses[k + 1])
            if k == 0:
                mean += probability * (own.state.L - L)
                spent += probability * (own.state.rate[Z] - Z_before)
                lost = (own.p - q) @ losses[1]
    return max(abs(mean - losses[1]).max(), abs(spent - lost))


@pytest.mark.interpreted
@pytest.mark.parametrize("K", [2, 3])
def test_late_feedback_is_unbiased_however_much_was_told_in_between(K):
    assert largest_bias(K, prediction_at_tell=False) < 1e-12


@pytest.mark.interpreted
@pytest.mark.parametrize("K", [2, 3])
def test_a_prediction_that_is_read_when_feedback_comes_would_be_biased(K):
    """Which shows that the test above can fail."""
    assert largest_bias(K, prediction_at_tell=True) > 1e-6


def test_nothing_but_the_scalars_of_a_round_counts_as_a_trace():
    result = sl.simulate("glance", sl.graphs.star(7), sl.losses.bernoulli([0.5] * 7), rounds=50)
    assert tuple(result.traces) == glance.TRACES
    agent = sl.Agent("glance", sl.graphs.star(7))
    assert agent.ask().drawn.trace.size == FIRST + 7 * len(glance.LEARNER.kept)


@pytest.mark.parametrize("delay", [1, 9])
def test_the_loop_does_what_an_agent_does_that_is_told_late(delay):
    graphs = [sl.graphs.star(6), sl.graphs.nested(6)]
    losses = np.random.default_rng(3).integers(0, 17, (200, 6)) / 16
    result = sl.simulate(
        "glance", sl.graphs.alternating(graphs), sl.losses.table(losses), 200, seed=4, checkpoints=[200], delay=delay
    )
    agent, waiting, plays = sl.Agent("glance", graphs[0], seed=4), [], np.zeros(6, int)
    for t in range(200):
        waiting.append(agent.ask(graphs[t % 2]))
        plays[waiting[-1].arm] += 1
        if t >= delay:
            decision = waiting.pop(0)
            agent.tell(decision, losses[decision.round - 1, decision.reveals])
    assert result.plays[0].tolist() == plays.tolist()


def test_arms_whose_losses_are_on_their_way_are_not_looked_for_again():
    agent = sl.Agent("glance", sl.graphs.cliques([3, 2, 1]))
    assert [agent.ask().arm for _ in range(3)] == [0, 3, 5]
    assert agent.ask().probability < 1


def test_a_decision_that_is_cancelled_leaves_an_arm_that_the_bold_half_tries():
    agent = sl.Agent("glance", sl.graphs.self_loops(3))
    decisions = [agent.ask() for _ in range(3)]
    agent.cancel(decisions[2])
    for decision in decisions[:2]:
        agent.tell(decision, {decision.arm: 0.9})
    assert agent.estimates().weights[2] > 0.2


def test_a_thousand_arms_are_played():
    graph = sl.graphs.nested(1000)
    world = sl.losses.bernoulli([0.2 if arm == 300 else 0.8 for arm in range(1000)])
    result = sl.simulate("glance", graph, world, rounds=300, seed=1)
    assert result.regret[0, -1] < 0.5 * 0.6 * 300


@pytest.mark.parametrize("seed", share(range(5), 4))
def test_every_step_of_the_proof_holds(seed):
    """In each round, over all draws: what `docs/glance-proof.md` says of C, Z, p and the estimates."""
    rng = np.random.default_rng(seed)
    K = [2, 4, 9, 12, 40][seed]
    A = random_digraph(rng, K)
    oracle, spent, largest = naive.Glance(K), 0.0, 0.0
    for _ in range(60 if K > 20 else 150):
        level = rng.random() < 0.5
        losses = np.where(rng.random(K) < 0.8, level, rng.random(K)).astype(float)
        told = oracle.distribution(A)
        arm = int(rng.choice(K, p=told.p / told.p.sum()))
        if told.q is not None:
            rho = 1 - told.beta
            assert rho >= 0.002
            outcomes, before = [], pickle.dumps(oracle)
            for other in np.flatnonzero(told.p > 0):
                trial = pickle.loads(before)  # noqa: S301  # a copy, in a tenth of the time that `deepcopy` takes
                revealed = {int(i): losses[i] for i in np.flatnonzero(A[other])}
                C, J = trial.update(told, other, revealed)
                a = np.array(trial.L) - np.array(oracle.L)
                assert len(revealed) / rho * (1 + 1e-9) >= C
                assert 1 + max(1, 1 / rho - 1) * len(revealed) + 1e-9 >= J
                outcomes.append((told.p[other], C, J, a))
            P = told.p @ A
            assert sum(p * C for p, C, _, _ in outcomes) * told.x <= (told.q / P).sum() / 2 + 1e-9
            np.testing.assert_allclose(sum(p * a for p, _, _, a in outcomes), losses, atol=1e-8)
            lost = (told.p - told.q) @ losses
            assert sum(p * J for p, _, J, _ in outcomes) == pytest.approx(lost, abs=1e-9)
        W = oracle.budget()
        _, J = oracle.update(told, arm, {int(i): losses[i] for i in np.flatnonzero(A[arm])})
        spent, largest = spent + J, max(largest, J)
        assert spent <= W + largest + 1e-9
        assert pytest.approx(spent) == oracle.Z[0]


@pytest.mark.parametrize("graph", [sl.graphs.self_loops(5), sl.graphs.nested(30), sl.graphs.in_star(6)], ids=repr)
def test_numbers_stay_sound_over_many_rounds(graph):
    """Losses without mercy: one arm always loses nothing, and the others everything."""
    endure("glance", graph, 0.0, 1.0, rounds=300_000)
    endure("glance", graph, 1.0, 1.0, rounds=300_000)
    result = sl.simulate("glance", graph, sl.losses.bernoulli([0.0] + [1.0] * (graph.n_arms - 1)), rounds=300_000)
    assert result.regret[0, -1] < 300
    assert ((result.traces["bold_share"] >= 0) & (result.traces["bold_share"] <= 0.998)).all()
