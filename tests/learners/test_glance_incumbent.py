"""glance with an incumbent: the oracle, and the promise by enumeration of all draws."""

import copy

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.test_glance import Advised
from sidelong.learners import glance
from sidelong.learners.glance_incumbent import ALLOWANCE, SPENT
from sidelong.learners.interface import Told

pytestmark = pytest.mark.interpreted


class Tried(Advised):
    """The kernels with an incumbent, the first adviser."""

    def __init__(self, graph, advisers, allowance):
        super().__init__(graph, advisers)
        self.state.budget[ALLOWANCE] = allowance

    @property
    def spent(self):
        return self.state.budget[SPENT]

    def tell(self, asked, arm, losses, graph=None):
        (t, p, trace), shown = asked, (graph or self.graph).arrays
        told = Told.new(t, arm, p, np.asarray(losses, float), trace, asked=self.graph.arrays)
        glance.update(self.params, self.state, shown, told)


@pytest.mark.parametrize("allowance", [0.6, 30.0])
@pytest.mark.parametrize("make", [sl.graphs.self_loops, sl.graphs.nested, sl.graphs.star])
def test_every_round_agrees_with_the_oracle_late_and_with_graphs_that_the_outcome_shows(make, allowance):
    graph, rng = make(5), np.random.default_rng(3)
    learner, oracle = Tried(graph, 2, allowance), naive.GlanceWithIncumbent(5, 2, allowance)
    waiting, shares = [], set()
    for t in range(150):
        advice = {0: np.eye(5)[t % 3] if t % 4 else rng.dirichlet(np.ones(5))} | ({1: np.eye(5)[4]} if t % 5 else {})
        asked, told = learner.ask(advice), oracle.distribution(graph.matrix(), advice)
        np.testing.assert_allclose(asked[1], told.p, rtol=1e-7, atol=1e-9)
        assert learner.spent == pytest.approx(oracle.spent, abs=1e-9)
        assert learner.spent <= allowance
        shares.add(round(told.beta, 2))
        waiting.append((asked, told))
        while len(waiting) > 2:
            asked, told = waiting.pop(int(rng.integers(3)))
            arm = int(rng.choice(5, p=told.p / told.p.sum()))
            shown = (graph, graph, sl.graphs.complete(5), sl.graphs.self_loops(5))[t % 4]
            losses = {int(i): 0.1 * i + 0.4 * rng.random() for i in np.flatnonzero(shown.matrix()[arm])}
            learner.tell(asked, arm, list(losses.values()), shown)
            oracle.update(told, arm, losses, shown.matrix())
    assert len(shares) > 1


def losses_in(world, t, p, q):
    """Return the losses of a round, which whoever chooses them may let depend on what is about to be played."""
    match world:
        case "against it":
            return (p > q).astype(float)
        case "against the incumbent":
            return (q >= p).astype(float)
        case "turning":
            return (p > q if t % 2 else q >= p).astype(float)
        case _:
            return np.arange(1, p.size + 1) * t * 0.37 % 1.0


def is_told(feedback, now, asked, arm, losses):
    """Tell whether a round that waits is told now, which may depend on what was drawn and lost."""
    match feedback:
        case "one arm a round late":
            return arm != 0 or asked[0] < now
        case "one arm never":
            return arm != 0
        case "good losses never":
            return losses[arm] > 0.5
        case _:
            return True


def play_on(learner, waiting, world, feedback, rounds):
    """Return, over all draws, the mean of what was lost beyond the incumbent, that of Z, and the largest Z."""
    if not rounds:
        return 0.0, learner.spent, learner.spent
    learner = copy.deepcopy(learner)
    t, K = learner.t + 1, learner.K
    incumbent = np.eye(K)[(t + len(waiting)) % K] if t % 3 else np.full(K, 1 / K)
    asked = learner.ask({0: incumbent})
    p, losses, most = asked[1], losses_in(world, t, asked[1], incumbent), learner.spent
    excess, spent = float((p - incumbent) @ losses), 0.0
    for arm in np.flatnonzero(p > 0):
        after, left = copy.deepcopy(learner), [*waiting, (asked, int(arm), losses)]
        for each in [each for each in left if is_told(feedback, t, *each)]:
            left.remove(each)
            after.tell(each[0], each[1], each[2][learner.graph.row(each[1])])
        more, end, top = play_on(after, left, world, feedback, rounds - 1)
        excess, spent, most = excess + p[arm] * more, spent + p[arm] * end, max(most, top)
    return excess, spent, most


@pytest.mark.parametrize("feedback", ["on time", "one arm a round late", "one arm never", "good losses never"])
@pytest.mark.parametrize("world", ["against it", "against the incumbent", "turning", "mixed"])
def test_expected_loss_exceeds_the_incumbents_by_at_most_the_allowance_over_all_draws(world, feedback):
    for graph in (sl.graphs.self_loops(2), sl.graphs.nested(3)):
        for allowance in (0.3, 2.0):
            start = Tried(graph, 1, allowance)
            excess, spent, most = play_on(start, [], world, feedback, 4)
            assert most <= allowance + 1e-12
            assert excess <= spent + 1e-9  # what waits counts as the most that it can cost
            if feedback == "on time":
                assert excess == pytest.approx(spent, abs=1e-9)


def test_the_allowance_is_used_where_losses_punish_it():
    """With the budget of the cautious half the excess in this world is far beyond any allowance."""
    learner, excess = Tried(sl.graphs.self_loops(2), 1, 4.0), 0.0
    rng = np.random.default_rng(1)
    for _ in range(300):
        asked = learner.ask({0: np.eye(2)[0]})
        excess += asked[1][1]
        arm = int(rng.random() < asked[1][1])
        learner.tell(asked, arm, [float(arm)])
    assert excess > 0.5
    assert learner.spent <= 4.0


def test_without_the_advice_of_the_incumbent_the_kernels_play_as_without_one():
    """Agents refuse that; but what would be played next can be asked without advice."""
    graph = sl.graphs.nested(4)
    with_one, without = Tried(graph, 1, 5.0), Advised(graph, 1)
    np.testing.assert_array_equal(with_one.ask({})[1], without.ask({})[1])
    assert with_one.spent == 0.0
