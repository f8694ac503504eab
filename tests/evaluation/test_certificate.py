"""The certificate: golden values, against the oracle, a mean of one over every path, and what it covers."""

import itertools
import math

import numpy as np
import pytest

import sidelong as sl
from naive import Certifier
from sidelong import evaluation
from sidelong.errors import EvaluationError
from sidelong.evaluation import DecisionLog
from sidelong.evaluation import certificate as certificate_of
from sidelong.evaluation.certificates import (
    NOT_TOLD,
    RATES,
    TOLD,
    TOLD_WITH_GRAPH,
    Standing,
    add,
    assess,
    freeze,
    roots,
    settle,
)

PATH5 = sl.graphs.path(5)
NESTED4 = sl.graphs.nested(4)
S = 0.5 ** np.arange(RATES)


def count(standing, graph, arm, p, losses=None, *, mean=None, shown=False):
    """Count a round that is told at once, or never if there are no losses; losses are of all arms."""
    if mean is None:
        mean = np.empty(graph.n_arms)
        freeze(standing, mean)
    reveals = graph.out_neighbors(arm)
    told = np.zeros(graph.n_arms)
    if losses is not None:
        told[: reveals.size] = np.asarray(losses)[reveals]
    how = NOT_TOLD if losses is None else TOLD_WITH_GRAPH if shown else TOLD
    settle(standing, graph.arrays, arm, p, mean, told, how, np.empty(graph.n_arms))


def rows(graph, rounds):
    K = graph.n_arms
    return ((np.arange(1, rounds + 1)[:, None] * (np.arange(K) + 2)) % 5) / 4


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("graph", "first", "fourth", "lower"),
    [
        (
            PATH5,
            (3.0505227874, 4.1083718146, 9.2603976681, -0.2016752130, 7.4298704656),
            (0.4476598982, 0.5429751490, 1.1768534503, 0.0001585623, 1.3004174014),
            (212.3420630816, 302.9387284147, 728.3828270480, -7.6619920038, 842.9026048980),
        ),
        (
            NESTED4,
            (6.5, 5.4215032198, 6.9490964487, -0.4855962228),
            (0.8125, 0.7062924470, 0.9889843556, -0.0834685851),
            (492.8287899226, 475.2150985633, 455.8799713065, -8.2949715445),
        ),
    ],
    ids=["path", "nested"],
)
def test_golden_values(graph, first, fourth, lower):
    """Uniform p, and arm t mod K is played in round t."""
    K, standing = graph.n_arms, Standing.new(graph.n_arms)
    for t, losses in enumerate(rows(graph, 1000), 1):
        count(standing, graph, t % K, np.full(K, 1 / K), losses)
        if t == 12:
            np.testing.assert_allclose(standing.W[:, 0], first, atol=1e-9)
            np.testing.assert_allclose(standing.W[:, 3], fourth, atol=1e-9)
    found = assess(standing, 0.95)
    np.testing.assert_allclose(found.lower, lower, atol=1e-9)
    assert found.paid == pytest.approx(rows(graph, 1000)[np.arange(1000), np.arange(1, 1001) % K].sum())
    assert found.bound == pytest.approx(found.paid - min(np.maximum(lower, 0)))


@pytest.mark.interpreted
def test_a_root_is_where_the_mean_reaches_the_level():
    rng = np.random.default_rng(1)
    W = rng.normal(size=(50, RATES)).cumsum(axis=1) * np.geomspace(0.1, 1000, 50)[:, None]
    lower = np.empty(50)
    roots(W, math.log(100), lower)
    x = W - S * lower[:, None]
    means = np.log(np.exp(x - x.max(axis=1, keepdims=True)).mean(axis=1)) + x.max(axis=1)
    np.testing.assert_allclose(means, math.log(100), atol=1e-9)


@pytest.mark.interpreted
@pytest.mark.parametrize("graph", [PATH5, NESTED4], ids=["path", "nested"])
def test_late_lost_cancelled_and_absent_rounds_are_those_of_the_definition(graph):
    """A rule with random probabilities; some rounds are told late, some never, some cancelled; arms come and go."""
    rng, K = np.random.default_rng(3), graph.n_arms
    oracle, standing, waiting = Certifier(K), Standing.new(K), []
    for t in range(80):
        absent = [int(rng.integers(K))] if t % 4 == 1 else []
        A = graph.matrix().astype(bool)
        A[absent] = A[:, absent] = False
        shown = sl.FeedbackGraph.from_matrix(A)
        p = rng.dirichlet(np.full(K, 0.5))
        p[absent] = 0.0
        p /= p.sum()
        arm, losses = int(rng.choice(K, p=p)), rng.random(K)
        mean = np.empty(K)
        freeze(standing, mean)
        waiting.append((oracle.ask(A.tolist(), p.tolist(), arm, absent), shown, arm, p, mean, losses))
        while len(waiting) > (5 if t < 79 else 0):
            number, *made, losses = waiting.pop(int(rng.integers(len(waiting))))
            kind = rng.integers(10)
            if kind == 0:
                oracle.cancel(number)
                continue
            if kind > 2:
                oracle.tell(number, losses.tolist())
            graph_, arm_, p_, mean_ = made
            count(standing, graph_, arm_, p_, losses if kind > 2 else None, mean=mean_)
        late = standing.copy()
        for _, graph_, arm_, p_, mean_, _ in waiting:
            count(late, graph_, arm_, p_, mean=mean_)
        if t % 20 == 19:
            found = assess(late, 0.9)
            np.testing.assert_allclose(found.lower, [oracle.lower(k, 0.1) for k in range(K)], atol=1e-8)
            assert found.bound == pytest.approx(oracle.bound(0.1), abs=1e-8)


def product(standing, truth):
    """What Ville's inequality bounds, for each arm and rate."""
    return np.exp(standing.W - np.multiply.outer(truth, S))


@pytest.mark.parametrize("lost", ["never", "by arm", "by loss"])
def test_the_products_have_a_mean_of_one(lost):
    """Over all 243 paths of three arms, where the losses of a round depend on the draw before: somebody watches."""
    graph = sl.FeedbackGraph.from_matrix([[1, 1, 0], [0, 1, 1], [0, 0, 1]])
    table = np.random.default_rng(4).random((3, 3)).round(1)
    mean = np.zeros((3, RATES))
    for arms in itertools.product(range(3), repeat=5):
        standing, chance, truth = Standing.new(3), 1.0, np.zeros(3)
        for t, arm in enumerate(arms):
            losses = table[arms[t - 1] if t else 0]
            w = np.exp(-standing.arms[1])  # a rule that adapts
            p = 0.05 + 0.85 * w / w.sum()
            chance *= p[arm]
            truth += losses
            told = {"never": True, "by arm": arm != 1, "by loss": losses[arm] < 0.6}[lost]
            count(standing, graph, arm, p, losses if told else None)
        mean += chance * product(standing, truth)
    if lost == "never":
        np.testing.assert_allclose(mean, 1.0, atol=1e-12)
    assert (mean <= 1.0 + 1e-12).all()


def test_a_graph_that_comes_with_the_losses_keeps_the_mean_at_most_one():
    """Over all 81 paths: rounds are asked with self-loops, and told with the full graph, late or never.

    Once a graph has come, a product that is looked at before the next one is known is at most what it will be then.
    """
    own, full = sl.graphs.self_loops(3), sl.graphs.complete(3)
    losses = np.array([[1.0, 0.0, 0.5], [0.2, 1.0, 0.0], [0.0, 0.7, 1.0], [1.0, 0.1, 0.0]])
    for never in ((), (0,), (0, 2)):
        mean = np.zeros((3, RATES))
        for arms in itertools.product(range(3), repeat=4):
            standing, p = Standing.new(3), np.array([0.2, 0.3, 0.5])
            for t, arm in enumerate(arms):
                if t in never:
                    count(standing, own, arm, p)
                    continue
                count(waits := standing.copy(), own, arm, p)
                known = standing.sums[3] > 0
                count(standing, full, arm, p, losses[t], shown=True)
                assert (waits.W <= standing.W + 1e-12).all() or not known
            mean += np.prod(p[list(arms)]) * product(standing, losses.sum(axis=0))
        assert (mean <= 1.0 + 1e-12).all()


def test_what_is_not_reported_only_makes_it_larger():
    rng, told, silent = np.random.default_rng(6), Standing.new(5), Standing.new(5)
    for t in range(300):
        p, losses = rng.dirichlet(np.ones(5)), rng.random(5)
        arm, mean = int(rng.choice(5, p=p)), np.full(5, 0.4)
        count(told, PATH5, arm, p, losses, mean=mean)
        count(silent, PATH5, arm, p, losses if t % 3 else None, mean=mean)
    assert (silent.W <= told.W + 1e-9).all()
    assert assess(silent).bound > assess(told).bound


def test_probabilities_at_the_edge_do_no_harm():
    standing = Standing.new(3)
    loops = sl.graphs.self_loops(3)
    for p in ([1.0 + 1e-15, 0.0, 0.0], [5e-324, 1.0, 0.0]):
        count(standing, loops, 0, np.array(p), np.ones(3))
    assert np.isfinite(standing.W).all()
    assert (standing.W[2] == 0).all()


def test_it_says_why_it_says_little():
    nothing = assess(Standing.new(3))
    assert (nothing.bound, nothing.why) == (0.0, "Nothing was decided yet.")
    loops = sl.graphs.self_loops(2)
    standing = Standing.new(2)
    for _ in range(20):
        count(standing, loops, 0, np.array([0.5, 0.5]))
    assert assess(standing).why.startswith("20 of 20 rounds have no feedback")
    standing = Standing.new(2)
    for t in range(2000):
        count(standing, loops, int(t % 400 == 0), np.array([0.9975, 0.0025]), np.array([0.2, 0.9]))
    found = assess(standing)
    assert found.arm == 1
    assert found.why.startswith("Arm 1 was seen in 5 of 2,000 rounds")
    assert "stopped looking" in found.why
    assert 0 < found.doubt <= found.bound
    assert str(found).startswith("In 2,000 rounds at most")
    full = Standing.new(2)
    for _ in range(2000):
        count(full, sl.graphs.complete(2), 0, np.array([0.5, 0.5]), np.array([0.6, 0.2]))
    assert assess(full).why == ""
    assert assess(full).bound == pytest.approx(0.4 * 2000, rel=0.02)


def log_of(graph, rounds, seed, every):
    """A log of EXP3-SET, told at once, and the standing of the same rounds."""
    agent, rng, standing = (
        sl.Agent("exp3-set", graph, seed=seed),
        np.random.default_rng(seed),
        Standing.new(graph.n_arms),
    )
    told, cost, parts, chances = [], [], [], []
    for t in range(rounds):
        made, losses = agent.ask(), rng.random(graph.n_arms)
        agent.tell(made, losses[made.reveals])
        count(standing, graph, made.arm, made.probabilities.copy(), losses)
        told.append(True)
        cost.append(losses[made.arm])
        chances.append(made.observe_probabilities)
        parts += [(t, k, losses[k], chances[-1][k]) for k in made.reveals.tolist()]
    t, k, l, P = np.array(parts).T
    log = DecisionLog(graph.n_arms, np.array(told), np.array(cost), t.astype(int), k.astype(int), l, P)
    return log._replace(chances=np.array(chances)) if every else log, standing


def test_a_log_with_all_probabilities_says_what_an_agent_says():
    log, standing = log_of(PATH5, 200, 3, every=True)
    found, own = certificate_of(log, 0.9), assess(standing, 0.9)
    assert found.bound == own.bound
    np.testing.assert_array_equal(found.lower, own.lower)
    plain = certificate_of(log._replace(chances=None), 0.9)
    assert own.bound < plain.bound < 200
    assert evaluation.regret(log, 0.9).upper > own.bound


def test_a_log_without_feedback_in_some_rounds_says_less():
    log, _ = log_of(NESTED4, 100, 4, every=True)
    kept = log.round % 5 != 2
    told = np.arange(100) % 5 != 2
    less = DecisionLog(4, told, np.where(told, log.cost, np.nan), *(each[kept] for each in log[3:7]), log.chances)
    for each in (less, less._replace(chances=None)):
        assert certificate_of(each).bound > certificate_of(log).bound
        assert certificate_of(each).silent == 20


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, math.nan])
def test_what_is_no_confidence_is_refused(confidence):
    with pytest.raises(EvaluationError, match="between 0 and 1"):
        assess(Standing.new(2), confidence)


def test_add_and_settle_agree():
    one, other, P = Standing.new(4), Standing.new(4), np.array([1.0, 0.9, 0.7, 0.4])
    p, mean, losses = np.array([0.1, 0.2, 0.3, 0.4]), np.full(4, 0.5), np.array([0.1, 0.9, 0.4])
    settle(one, NESTED4.arrays, 2, p, mean, losses, TOLD, np.empty(4))
    add(other, np.arange(3), P, mean, losses, 0.4, TOLD)
    np.testing.assert_allclose(one.W, other.W, atol=1e-14)
