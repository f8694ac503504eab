"""Sales to losses: by enumeration of every order and every demand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelong as sl
from sidelong.errors import LossError, OutcomeError

pytestmark = pytest.mark.interpreted

LISTS = [[0, 1, 2, 3, 4, 5], [0, 10, 20, 50], [3, 4, 7.5]]
COSTS = [(1, 4), (3, 1), (0, 2), (2, 0), (0.1, 0.7)]


def sell(stock, arm, demand):
    """Return what a shop tells after the round, and sees: sales, and, if it looks, whether somebody wanted more."""
    order = stock.orders[arm]
    unmet = {"ran_out": bool(demand > order)} if stock._sees_unmet else {}
    return stock.outcome(arm, min(order, demand), **unmet)


@pytest.mark.parametrize("orders", LISTS, ids=str)
@pytest.mark.parametrize(("holding", "shortage"), COSTS)
def test_a_loss_is_the_true_cost_less_what_no_order_can_change(orders, holding, shortage):
    stock = sl.outcomes.StockOrders(orders, holding=holding, shortage=shortage)
    h, b, Q = Fraction(holding), Fraction(shortage), Fraction(orders[-1])
    for demand in range(int(Q) + 3):
        for q, loss in zip(orders, stock.losses(demand), strict=True):
            cost = h * max(Fraction(q) - demand, 0) + b * max(demand - Fraction(q), 0)
            assert loss == pytest.approx(float((cost - b * demand + b * Q) / ((h + b) * Q)), abs=1e-15)
            assert float(cost - b * demand + b * Q) == pytest.approx(loss * stock.unit, abs=1e-12)


@pytest.mark.parametrize("orders", LISTS, ids=str)
@pytest.mark.parametrize("sees_unmet", [False, True])
def test_sales_give_the_losses_that_the_demand_gives(orders, sees_unmet):
    stock = sl.outcomes.StockOrders(orders, holding=1, shortage=3, sees_unmet=sees_unmet)
    for demand in np.arange(0, orders[-1] + 2, 0.5):
        for arm in range(len(orders)):
            told = sell(stock, arm, demand)
            losses, graph = told.losses, told.graph
            seen = demand <= orders[arm] if sees_unmet else demand < orders[arm]
            assert graph.out_neighbors(arm).tolist() == list(range(len(orders) if seen else arm + 1))
            assert losses.tolist() == stock.losses(demand)[graph.out_neighbors(arm)].tolist()


@pytest.mark.parametrize("orders", LISTS, ids=str)
@pytest.mark.parametrize("sees_unmet", [False, True])
def test_whichever_order_was_played_the_graph_says_who_reveals_what_it_revealed(orders, sees_unmet):
    """So P is computable for each observed arm: for each demand, all graphs agree on the arms that they show."""
    stock = sl.outcomes.StockOrders(orders, holding=1, shortage=3, sees_unmet=sees_unmet)
    for demand in np.arange(0, orders[-1] + 2, 0.5):
        told = [sell(stock, arm, demand).graph for arm in range(len(orders))]
        reveals = [set(graph.out_neighbors(arm).tolist()) for arm, graph in enumerate(told)]
        for arm, graph in enumerate(told):
            for seen in reveals[arm]:
                truly = [j for j in range(len(orders)) if seen in reveals[j]]
                assert graph.in_neighbors(seen).tolist() == truly


@given(
    st.integers(1, 50),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.floats(0, 60),
)
def test_losses_never_leave_the_unit_interval(largest, holding, shortage, demand):
    if holding + shortage > 0:
        losses = sl.outcomes.StockOrders(largest, holding=holding, shortage=shortage).losses(demand)
        assert ((losses >= 0) & (losses <= 1)).all()


def test_an_agent_learns_the_best_order_from_sales():
    stock = sl.outcomes.StockOrders(10, holding=1, shortage=1)
    agent = sl.Agent("glance", stock.graph, seed=1)
    for _ in range(200):
        decision = agent.ask()
        agent.tell(decision, stock.outcome(decision.arm, min(decision.arm, 4)))
    assert agent.estimates().weights.argmax() == 4


WRONG = [
    ({"arm": 11, "sales": 0}, "arm must be a whole number from 0 to 10, not 11"),
    ({"arm": True, "sales": 0}, "arm must be a whole number .* not True"),
    ({"arm": 3, "sales": 4}, "sales of an order of 3 must be a number from 0 to 3, not 4"),
    ({"arm": 3, "sales": -1}, "must be a number from 0 to 3, not -1"),
    ({"arm": 3, "sales": float("nan")}, "not nan"),
    ({"arm": 3, "sales": "2"}, "not '2'"),
    ({"arm": 3, "sales": 10**400}, "must be a number from 0 to 3, not 1000"),
    ({"arm": 3, "sales": 2, "ran_out": True}, "1 of the order of 3 were left over"),
    ({"arm": 3, "sales": 3, "ran_out": False}, "sees_unmet=True"),
    ({"arm": 3, "sales": 3, "ran_out": 0}, "ran_out must be True or False, not 0"),
]


@pytest.mark.parametrize(("outcome", "message"), WRONG)
def test_an_outcome_that_cannot_be_is_refused(outcome, message):
    stock = sl.outcomes.StockOrders(10, holding=1, shortage=4)
    with pytest.raises(OutcomeError, match=message):
        stock.outcome(**outcome)


def test_numbers_of_numpy_are_numbers():
    stock = sl.outcomes.StockOrders(np.float32([0, 1, 2.5]), holding=np.float32(1), shortage=np.int8(3))
    like = sl.outcomes.StockOrders([0, 1, 2.5], holding=1, shortage=3)
    assert stock.outcome(np.int16(2), np.float16(1.5)).losses.tolist() == like.outcome(2, 1.5).losses.tolist()


def test_who_sees_unmet_demand_must_say_what_he_saw():
    stock = sl.outcomes.StockOrders(10, holding=1, shortage=4, sees_unmet=True)
    with pytest.raises(OutcomeError, match="needs ran_out"):
        stock.outcome(3, 2)


@pytest.mark.parametrize(
    ("orders", "options", "message"),
    [
        (0, {}, "The largest order must be a finite number of at least 1, not 0"),
        ([5], {}, "two or more"),
        ([1, 1], {}, "each above the one before"),
        ([-1, 1], {}, "at least 0, not -1"),
        ("ab", {}, "orders must be"),
        ({1, 2, 3}, {}, "orders must be"),
        (np.array(3.0), {}, "orders must be"),
        (3, {"holding": -1}, "holding must be a finite number of at least 0, not -1"),
        (3, {"shortage": float("inf")}, "shortage must be"),
        (3, {"shortage": 10**400}, "shortage must be"),
        (3, {"holding": 0, "shortage": 0}, "must be finite and not both 0"),
        (3, {"sees_unmet": 1}, "sees_unmet must be True or False"),
    ],
)
def test_a_shop_that_cannot_be_is_refused(orders, options, message):
    with pytest.raises(LossError, match=message):
        sl.outcomes.StockOrders(orders, **({"holding": 1, "shortage": 1} | options))
