"""EXP3-SET for a best arm that moves: its oracle, golden values, exact expectations and the steps of its proof."""

import itertools
import math

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import Stepper, follow, random_digraph
from sidelong import theory
from sidelong.errors import LearnerError, TheoryError
from sidelong.learners import catalogue
from sidelong.learners import exp3set_tracking as tracking


class Tracker(Stepper):
    """A stepper with constants of one's own."""

    def __init__(self, graph, **options):
        super().__init__("exp3-set", graph)
        self.learner = tracking.LEARNER
        self.params = tracking.configure(graph, **options)
        self.state = tracking.init(self.params, graph)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("graph", "horizon", "eta", "q"),
    [
        (
            sl.graphs.path(5),
            12,
            0.5558938439,
            [0.0521695712, 0.0339288821, 0.0544977226, 0.7596139254, 0.0997898987],
        ),
        (sl.graphs.path(5), 0, 0.5563333974, [0.1387968672, 0.0863167169, 0.0659981396, 0.6098338225, 0.0990544538]),
        (sl.graphs.nested(4), 12, 0.6228811702, [0.0800248903, 0.0847245508, 0.0745930379, 0.7606575210]),
        (sl.graphs.nested(4), 0, 0.5965205579, [0.1082494239, 0.1181743300, 0.0866685522, 0.6869076939]),
    ],
)
def test_golden_values_of_round_12(graph, horizon, eta, q):
    K = graph.n_arms
    tracker = Tracker(graph)
    tracker.params = tracking.Params(c=2 * math.log(12 * K), eta_scale=1.0, horizon=horizon)
    for t in range(1, 12):
        tracker.distribution()
        tracker.update(t % K, [t * (i + 2) % 5 / 4 for i in range(K)])
    assert tracker.distribution() == pytest.approx(q, abs=1e-9)
    assert tracker.traced("learning_rate") == pytest.approx(eta, abs=1e-9)


@pytest.mark.interpreted
@pytest.mark.parametrize(("late", "after"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("track", "horizon", "scale"), [("unknown", None, 1.0), (2, None, 0.7), (2, 300, 1.0)])
def test_agrees_with_the_oracle_in_every_round(track, horizon, scale, late, after):
    rng = np.random.default_rng([late, after])
    K = int(rng.integers(2, 9))
    bank = [random_digraph(rng, K) for _ in range(3)]
    agent = sl.Agent(
        "exp3-set",
        sl.FeedbackGraph.from_matrix(bank[0]),
        seed=3,
        track=track,
        horizon=horizon,
        eta_scale=scale,
    )
    switches = 0 if track == "unknown" else track
    c = (switches + 1) * math.log(K * (horizon or 1)) + (horizon is not None)
    follow(agent, naive.Exp3SetTracking(K, c, horizon, scale), bank, late=late, after=after, seed=3)


def bracket(K, T, S, horizon):
    return (S + 1) * math.log(K * T) + (1 if horizon else math.log(T))


def best_sequence(x, S):
    """Return what the cheapest sequence of arms with at most S switches pays: the obvious way."""
    T, K = x.shape
    return min(
        sum(x[a:b, arm].sum() for a, b, arm in zip([0, *cuts], [*cuts, T], arms, strict=True))
        for n in range(S + 1)
        for cuts in itertools.combinations(range(1, T), n)
        for arms in itertools.product(range(K), repeat=n + 1)
    )


@pytest.mark.interpreted
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_inequality_of_the_proof_holds_on_every_path(seed, given):
    """For the best sequence with S = 0, 1, 2 switches: sum <q, x> - sum x_k <= B / eta + sum (eta / 2) <q, x^2>."""
    rng = np.random.default_rng(seed)
    K, T = int(rng.integers(2, 4)), 24
    graph = sl.FeedbackGraph.from_matrix(random_digraph(rng, K))
    tracker = Tracker(graph, track=int(rng.integers(4)), horizon=T if given else None)
    xs, paid, spread, etas = [], 0.0, 0.0, []
    for t in range(1, T + 1):
        q = tracker.distribution().copy()
        assert (q >= 1 / (K * (T if given else t)) - 1e-15).all()
        eta = tracker.traced("learning_rate")
        arm = int(rng.integers(K)) if rng.random() < 0.2 else int(rng.choice(K, p=q / q.sum()))
        losses = (np.arange(K) == t // 8 % K) if seed % 2 else rng.random(K)
        reveals = graph.out_neighbors(arm)
        x = np.zeros(K)
        x[reveals] = np.asarray(losses, float)[reveals] / graph.observe_probabilities(q)[reveals]
        tracker.update(arm, losses)
        xs.append(x)
        etas.append(eta)
        paid += q @ x
        spread += eta / 2 * q @ x**2
    assert (np.diff(etas) <= 0).all()
    for S in range(3):
        assert paid - best_sequence(np.array(xs), S) <= bracket(K, T, S, given) / etas[-1] + spread + 1e-9


def test_it_follows_a_best_arm_that_moves_where_exp3_set_does_not():
    """Against the best sequence with two switches: 2,896 and 1,923 with this seed, where exp3-set loses 5,527."""
    means = np.where(np.eye(3, 6, dtype=bool), 0.1, 0.7)
    world = sl.losses.switching(means, at=[10_000, 20_000])
    graph, lost = sl.graphs.self_loops(6), {}
    for track in (None, "unknown", 2):
        result = sl.simulate("exp3-set", graph, world, rounds=30_000, runs=6, seed=2, checkpoints=1, track=track)
        lost[track] = result.loss[:, -1].mean() - 3_000
    assert lost["unknown"] < 0.6 * lost[None]
    assert lost[2] < 0.5 * lost[None]
    for track in ("unknown", 2):
        bound = theory.exp3_set.tracking(K=6, T=30_000, switches=2, theta_sum=6 * 30_000, track=track)
        assert lost[track] < bound


def test_the_bound_by_hand():
    K, T, S, thetas = 5, 1000, 3, 2000.0
    B = 4 * math.log(5000) + math.log(1000)
    c = 4 * math.log(5)
    by_hand = (B / math.sqrt(c) + math.sqrt(c)) * math.sqrt(thetas) + B * math.sqrt(K / c)
    assert theory.exp3_set.tracking(K=K, T=T, switches=S, theta_sum=thetas, track=3) == pytest.approx(by_hand)
    c = 4 * math.log(5000) + 1
    by_hand = 2 * math.sqrt(c * thetas) + math.sqrt(c * K)
    given = theory.exp3_set.tracking(K=K, T=T, switches=S, theta_sum=thetas, track=3, horizon=T)
    assert given == pytest.approx(by_hand)
    unknown = theory.exp3_set.tracking(K=K, T=T, switches=S, theta_sum=thetas)
    assert given < unknown
    with pytest.raises(sl.SidelongError, match="within the horizon"):
        theory.exp3_set.tracking(K=K, T=T, switches=S, theta_sum=thetas, horizon=999)


@pytest.mark.interpreted
def test_absent_arms_are_refused():
    agent = sl.Agent("exp3-set", sl.graphs.complete(3), track=2)
    with pytest.raises(LearnerError, match=r"exp3-set with track=... has none\. Use glance or exp3-set, with"):
        agent.ask(available=[0])


@pytest.mark.interpreted
@pytest.mark.parametrize("track", [3, 10**5, 10**7, 2**48])
def test_weights_do_not_vanish_together_however_large_the_rate(track):
    agent = sl.Agent("exp3-set", sl.graphs.complete(3), track=track)
    for t in range(20):
        decision = agent.ask()
        assert decision.probabilities.sum() == pytest.approx(1)
        agent.tell(decision, [1.0, 1.0, 0.5 if t % 2 else 1.0])
    if track > 3:  # the cheapest of the last round has all but what is shared
        assert agent.ask().probabilities[2] == pytest.approx(1 - 2 / 3 / 21)


def test_past_its_horizon_nothing_is_promised():
    options = {"track": 2, "horizon": 100}
    learner = catalogue.choose("exp3-set", options)
    assert catalogue.proved(learner, options, 100) == ("adversarial",)
    assert catalogue.proved(learner, options, 101) == ()
    assert catalogue.proved(learner, {"track": 2}, 10**9) == ("adversarial",)


@pytest.mark.parametrize("wrong", [{"horizon": "x"}, {"horizon": 100.5}, {"eta_scale": 0}, {"eta_scale": "x"}])
def test_the_bound_refuses_what_the_learner_would(wrong):
    [name] = wrong
    with pytest.raises(TheoryError, match=f"{name} must be"):
        theory.exp3_set.tracking(K=3, T=100, switches=1, theta_sum=100, **wrong)
