"""A learner that is asked with a guess, and sees the graph of a round only by its outcome, as an agent does."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import GraphError, ObservabilityError, OutcomeError

pytestmark = pytest.mark.interpreted

DAYS, ORDERS = 60, 8
DEMANDS = np.random.default_rng(0).poisson(4, DAYS)


def rehearse(learner, stock, demands=DEMANDS, **options):
    world = sl.losses.table([stock.losses(demand) for demand in demands])
    graphs = stock.graphs(demands)
    return sl.simulate(learner, graphs, world, len(demands), guess=stock.graph, threads=1, **options)


def new_stock(**options):
    return sl.outcomes.StockOrders(ORDERS, holding=1, shortage=4, **options)


@pytest.mark.compiled
@pytest.mark.parametrize("sees_unmet", [False, True])
@pytest.mark.parametrize("learner", ["glance", "exp3.g++"])
def test_a_rehearsal_plays_what_an_agent_plays_from_sales(learner, sees_unmet):
    stock = new_stock(sees_unmet=sees_unmet)
    agent, lost, plays = sl.Agent(learner, stock.graph, seed=5), 0.0, np.zeros(ORDERS + 1, int)
    for demand in DEMANDS:
        decision = agent.ask()
        order = decision.arm
        unmet = {"ran_out": bool(order < demand)} if sees_unmet else {}
        agent.tell(decision, stock.outcome(order, sales=min(order, demand), **unmet))
        lost += stock.losses(demand)[order]
        plays[order] += 1
    result = rehearse(learner, stock, seed=5)
    assert result.plays[0].tolist() == plays.tolist()
    assert result.loss[0, -1] == pytest.approx(lost)


def test_the_graphs_are_what_each_order_would_have_revealed():
    for sees_unmet in (False, True):
        stock = new_stock(sees_unmet=sees_unmet)
        graphs = stock.graphs([3, 0, 20])
        for t, demand in enumerate([3, 0, 20], start=1):
            graph = graphs.graph_of_round(t)
            for order in range(ORDERS + 1):
                seen = stock.outcome(order, min(order, demand), **({"ran_out": order < demand} if sees_unmet else {}))
                revealed = np.arange(graph.arrays.start[order], graph.arrays.stop[order])
                assert seen.losses == pytest.approx(stock.losses(demand)[revealed])
    with pytest.raises(OutcomeError, match="The demand must be a finite number of at least 0, not -1"):
        new_stock().graphs([1, -1])


def test_late_feedback_and_certificates_know_the_guess():
    stock = new_stock()
    result = rehearse("exp3.g++", stock, runs=3, delay=4, certificate=True)
    assert (result.certificate >= 0).all()


def test_learners_are_compared_with_a_guess():
    stock = new_stock()
    world = sl.losses.table([stock.losses(demand) for demand in DEMANDS])
    graphs = stock.graphs(DEMANDS)
    found = sl.compare(["glance", "uniform"], graphs, world, DAYS, runs=2, guess=stock.graph)
    assert not found.unplayable
    alone = rehearse("glance", stock, runs=2)
    assert (found["glance", "table"].regret[:, -1] == alone.regret[:, -1]).all()
    without = sl.compare(["glance", "uniform"], graphs, world, DAYS, runs=2)
    assert [name for name, _ in without.unplayable] == ["glance"]


@pytest.mark.parametrize(
    ("graphs", "guess", "error", "message"),
    [
        (sl.graphs.nested(9), sl.graphs.nested(9), GraphError, "A guess is for graphs that are seen after the draw"),
        (new_stock().graphs([1]), sl.graphs.nested(3), GraphError, "guess has 3 arms"),
        (new_stock().graphs([1]), "nested", GraphError, "guess must be a FeedbackGraph, not str"),
        (sl.graphs.resampled(9, 0.5, shown="after"), sl.graphs.nested(9), GraphError, "needs graphs that are kept"),
        (new_stock().graphs([1]), None, ObservabilityError, "simulate(..., guess=graph)"),
    ],
)
def test_what_cannot_be_guessed_is_refused(graphs, guess, error, message):
    world = sl.losses.bernoulli(np.linspace(0.1, 0.9, 9))
    with pytest.raises(error) as raised:
        sl.simulate("glance", graphs, world, 1, guess=guess)
    assert message in str(raised.value)
