"""Outcomes in columns: each row is what the same outcome alone reveals, and the first wrong one is named."""

import gc
import weakref

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import OutcomeError

pytestmark = pytest.mark.interpreted


def same(columns, singles):
    """Compare columns with outcomes one by one."""
    graphs, index = columns.graph
    assert columns.arms.tolist() == [each.arm for each in singles]
    for i, each in enumerate(singles):
        low, high = columns.offsets[i : i + 2]
        assert columns.losses[low:high].tobytes() == each.losses.tobytes()
        assert graphs[index[i]] == each.graph
        assert columns.reveals[low:high].tolist() == each.graph.out_neighbors(each.arm).tolist()


@pytest.mark.parametrize("sees_unmet", [False, True])
def test_sales(sees_unmet):
    rng = np.random.default_rng(3)
    orders = sl.outcomes.StockOrders([0, 2, 5, 6.5, 9], holding=1.5, shortage=4, sees_unmet=sees_unmet)
    arms, demand = rng.integers(5, size=200), rng.choice([0, 1, 2, 5, 6, 9, 12], 200)
    sales = np.minimum(orders.orders[arms], demand)
    ran_out = demand > sales if sees_unmet else None
    singles = [
        orders.outcome(int(arm), sold, ran_out=None if ran_out is None else bool(ran_out[i]))
        for i, (arm, sold) in enumerate(zip(arms, sales, strict=True))
    ]
    same(orders.outcomes(arms, sales, ran_out=ran_out), singles)


@pytest.mark.parametrize("shown", ["always", "lost", "never"])
def test_bids(shown):
    rng = np.random.default_rng(4)
    auction = sl.outcomes.FirstPrice([0.1, 0.3, 0.5, 0.9], highest_value=2)
    arms, value, price = rng.integers(4, size=200), rng.uniform(0, 2, 200), rng.uniform(0, 1, 200)
    won = auction.fractions[arms] * value >= price
    price[~(np.full(200, shown == "always") | ((shown == "lost") & ~won))] = np.nan
    singles = [
        auction.outcome(
            int(arms[i]), value=value[i], won=won[i], price=None if np.isnan(price[i]) else price[i], shown=shown
        )
        for i in range(200)
    ]
    same(auction.outcomes(arms, value=value, won=won, price=price, shown=shown), singles)


def test_verdicts():
    rng = np.random.default_rng(5)
    cascade = sl.outcomes.Cascade([0.0, 0.25, 0.5, 1.0], price=0.3, mistake=2)
    arms, sure, errs = rng.integers(5, size=200), rng.choice([0, 0.1, 0.25, 0.4, 0.5, 1], 200), rng.random(200) < 0.5
    asked = [cascade.asks(int(arm), c) for arm, c in zip(arms, sure, strict=True)]
    wrong = [bool(each) if asks else None for each, asks in zip(errs, asked, strict=True)]
    singles = [cascade.outcome(int(arms[i]), confidence=sure[i], wrong=wrong[i]) for i in range(200)]
    seen = cascade.outcomes(arms, confidence=sure, wrong=wrong)
    same(seen, singles)
    assert seen.foreseen
    graphs, index = cascade.graphs(sure)
    assert [graphs[k] for k in index] == [cascade.graph(c) for c in sure]
    same(cascade.outcomes([4, 4], confidence=0.2, wrong=True), [cascade.outcome(4, confidence=0.2, wrong=True)] * 2)
    same(cascade.outcomes([0], confidence=0.2), [cascade.outcome(0, confidence=0.2)])
    same(
        cascade.outcomes([0, 4], confidence=0.2, wrong=[np.nan, False]),
        [cascade.outcome(0, confidence=0.2), cascade.outcome(4, confidence=0.2, wrong=False)],
    )
    assert cascade.outcomes([], confidence=[], wrong=[]).offsets.tolist() == [0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"arms": [0, 3], "confidence": 0.2}, "Outcome 1: arm must be a whole number from 0 to 2, not 3"),
        ({"arms": [0], "confidence": 2}, "^confidence must be a number from 0 to 1, not 2"),
        ({"arms": [0, 2], "confidence": 0.2}, "Outcome 1: At a confidence of 0.2 arm 2 asks .* wrong is None"),
        ({"arms": [2, 0], "confidence": 0.2, "wrong": True}, "Outcome 1: .* arm 0 does not ask, so nobody judged"),
        (
            {"arms": [2, 2], "confidence": 0.2, "wrong": [True, 1]},
            "Outcome 1: wrong must be True, False or None, not 1",
        ),
        ({"arms": [2, 2], "confidence": 0.2, "wrong": [True]}, "wrong must have one value for each of the 2 arms"),
        (
            {"arms": [2, 2], "confidence": 0.2, "wrong": [[True], [True, False]]},
            r"Outcome 0: wrong must be True, False or None, not \[True\]",
        ),
        ({"arms": [2, 2], "confidence": [[0.2], [0.2, 1]]}, r"Outcome 0: confidence must be .* not \[0.2\]"),
    ],
)
def test_a_wrong_verdict_is_named(given, message):
    with pytest.raises(OutcomeError, match=message):
        sl.outcomes.Cascade([0.0, 0.5], price=1).outcomes(**given)


def test_graphs_of_many_questions_need_a_column():
    with pytest.raises(OutcomeError, match=r"a column of confidences, not 0.2; one alone goes to graph"):
        sl.outcomes.Cascade([0.0, 0.5], price=1).graphs(0.2)
    with pytest.raises(OutcomeError, match=r"Outcome 0: confidence must be .* not \[0.2\]"):
        sl.outcomes.Cascade([0.0, 0.5], price=1).graphs([[0.2], [0.2, 0.3]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"arms": [1, 5], "sales": 0}, "Outcome 1: arm must be a whole number from 0 to 4, not 5"),
        ({"arms": [1.0], "sales": 0}, "arms must be whole numbers"),
        (
            {"arms": [1, 2], "sales": [1, 3]},
            "Outcome 1: The sales of an order of 2 must be a number from 0 to 2, not 3",
        ),
        ({"arms": [1, 2], "sales": [1, np.nan]}, "Outcome 1: The sales .* must be .* not nan"),
        ({"arms": [1, 2], "sales": [1, "some"]}, "Outcome 1: The sales .* must be .* not 'some'"),
        ({"arms": [1, 2], "sales": ["1", "2"]}, "Outcome 0: The sales .* must be .* not '1'"),
        ({"arms": [1, 2], "sales": [1, 10**400]}, "Outcome 1: The sales .* must be .* not 1000"),
        ({"arms": [1, 2], "sales": [True, False]}, "Outcome 0: The sales .* must be .* not True"),
        ({"arms": [1, 2], "sales": [1, 1, 1]}, "sales must have one value for each of the 2 arms"),
        ({"arms": [1, 2], "sales": [[1], [1, 2]]}, r"Outcome 0: The sales .* must be .* not \[1\]"),
        ({"arms": [1, 2], "sales": np.array([1, 1], "m8[s]")}, "Outcome 0: The sales .* must be .* not '1 seconds'"),
        ({"arms": [[1], [1, 2]], "sales": 0}, r"arms must be whole numbers, .* not \[\[1\], \[1, 2\]\]"),
        (
            {"arms": [1, 2], "sales": [1, 1], "ran_out": [True, True]},
            "Outcome 1: ran_out is True, but 1 of the order of 2 were left over",
        ),
        (
            {"arms": [1, 2], "sales": [1, 1], "ran_out": [False, False]},
            "Outcome 0: ran_out is False, but the order of 1 was",
        ),
        ({"arms": [1, 2], "sales": [1, 1], "ran_out": [1, 0]}, "Outcome 0: ran_out must be True or False, not 1"),
    ],
)
def test_wrong_sales_are_named(given, message):
    with pytest.raises(OutcomeError, match=message) as caught:
        sl.outcomes.StockOrders(4, holding=1, shortage=4).outcomes(**given)
    assert type(caught.value) is OutcomeError  # and not one of a class that nobody can import


def test_who_sees_what_is_unmet_must_say_so():
    with pytest.raises(OutcomeError, match="needs ran_out"):
        sl.outcomes.StockOrders(4, holding=1, shortage=4, sees_unmet=True).outcomes([1], [1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"value": [0.5, 3], "won": True}, "Outcome 1: value must be a number from 0 to 1, not 3"),
        ({"value": 0.5, "won": [True, 0]}, "Outcome 1: won must be True or False, not 0"),
        ({"value": 0.5, "won": True, "price": [None, "a"]}, "Outcome 1: price must be a number, or None .* not 'a'"),
        ({"value": 0.5, "won": True, "price": [np.nan, object()]}, "Outcome 1: price must be a number, .* not <object"),
        ({"value": 0.5, "won": True, "price": [[0.3], [0.2, 1]]}, r"Outcome 0: price must be .* not \[0.3\]"),
        ({"value": 0.5, "won": [True, False]}, "Outcome 1: With shown='lost', a bid that lost needs the price"),
        ({"value": 0.5, "won": True, "price": 0.1}, "Outcome 0: .* that won does not see a price"),
        ({"value": 0.5, "won": False, "price": 0.1}, "Outcome 0: A bid of 0.1 cannot have lost at a price of 0.1"),
        ({"value": 0.5, "won": False, "price": -0.1}, "Outcome 0: price must be a finite number of at least 0"),
        ({"value": 0.5, "won": True, "shown": "maybe"}, "shown must be one of"),
    ],
)
def test_wrong_bids_are_named(given, message):
    with pytest.raises(OutcomeError, match=message):
        sl.outcomes.FirstPrice([0.2, 0.4, 0.6]).outcomes([0, 1], **given)


def test_large_graphs_of_outcomes_are_kept_by_nobody():
    n = 5_000
    stock = sl.outcomes.StockOrders(n, holding=1, shortage=4)
    bids = sl.outcomes.FirstPrice(np.linspace(0.1, 0.9, n))
    cascade = sl.outcomes.Cascade(np.linspace(0.1, 0.9, n), price=0.2)
    lost = bids.outcome(0, value=1.0, won=False, price=0.5)
    graphs = [stock.outcome(n, 7).graph, bids.graph("always"), lost.graph, cascade.graph(0.5)]
    alive = [weakref.ref(graph) for graph in graphs]
    del stock, bids, cascade, lost, graphs
    gc.collect()
    assert [each() for each in alive] == [None] * 4
