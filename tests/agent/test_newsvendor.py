import contextlib
import datetime as dt
import json
import random
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sidelong as sl
from browser import visit
from sidelong.agent import state_file
from sidelong.agent.newsvendor import PATIENCE
from sidelong.agent.newsvendor_report import Money
from sidelong.errors import AdviceError, FamilyError, LearnerError, OutcomeError, SidelongError, StateFileError

START = dt.date(2026, 1, 5)
PRODUCTS = [f"product {k}" for k in range(6)]
WEEK = np.array([0.7, 0.8, 0.8, 0.9, 1.1, 1.7, 1.0])


def demand_of(days, seed=0, products=6):
    """A made-up shop: levels from 2 to 200, weekdays, seasons and noise."""
    rng = np.random.default_rng(seed)
    level = np.geomspace(2, 200, products)[:, None]
    t = np.arange(days)
    season = 1 + 0.2 * np.sin(2 * np.pi * t / 180)
    mean = level * WEEK[t % 7] * season
    return rng.poisson(mean * rng.gamma(12, 1 / 12, (products, days))).astype(float)


def date(t):
    return START + dt.timedelta(days=int(t))


def play(shop, demand, days=None, advice=None, first=None, *, sees_unmet=False):
    """Order and sell, day after day; return the orders and their true costs."""
    products = PRODUCTS[: len(demand)]
    orders, costs = np.zeros_like(demand), np.zeros_like(demand)
    for t in range(demand.shape[1]) if days is None else days:
        said = None if advice is None else {name: each[:, t] for name, each in advice.items()}
        orders[:, t] = q = shop.order(
            date(t), products, said, first=np.rint(demand[:, 0]) + 1 if first is None else first
        )
        sold = np.minimum(q, demand[:, t])
        costs[:, t] = (q - sold) + 3 * (demand[:, t] - sold)
        shop.sold(date(t), sold, ran_out=q < demand[:, t] if sees_unmet else None)
    return orders, costs


def new(**options):
    return sl.Newsvendor(**{"holding": 1, "shortage": 3, "seed": 7} | options)


# Orders


def test_the_first_order_is_what_is_advised_or_given():
    assert new().order("2026-01-05", ["a", "b"], first=[5, 70]).tolist() == [5, 70]
    assert new().order("2026-01-05", ["a", "b"], first=5).tolist() == [5, 5]
    assert new().order("2026-01-05", ["a", "b"], {"forecast": [12.4, 90]}).tolist() == [12, 90]
    assert new().order("2026-01-05", ["a", "b"], [12.4, 90], first=3).tolist() == [12, 90]
    assert new().order("2026-01-05", ["a", "b"], {"a": 4, "b": 9}).tolist() == [4, 9]  # one adviser, by product


def test_a_product_of_which_nothing_is_known_is_refused_by_name():
    shop = new()
    with pytest.raises(AdviceError, match=r"Nothing is known of 'b': no sales, no advice and no first order. Give its"):
        shop.order("2026-01-05", ["a", "b"], {"forecast": [3, None]})
    assert shop.products == []


def test_orders_are_whole_and_repeated_for_the_same_date():
    shop, demand = new(), demand_of(20)
    play(shop, demand)
    orders = shop.order(date(20), PRODUCTS)
    assert orders.dtype == np.int64
    assert shop.order(date(20), PRODUCTS, {"late": np.full(6, 1000)}).tolist() == orders.tolist()
    assert shop.order(date(20), PRODUCTS[::-1]).tolist() == orders[::-1].tolist()
    more = shop.order(date(20), ["new", PRODUCTS[2]], first=8)  # another part of the same day
    assert more.tolist() == [8, orders[2]]


def test_the_same_seed_gives_the_same_orders():
    demand = demand_of(40)
    orders = [play(new(seed=seed), demand)[0] for seed in (1, 1, 2)]
    assert (orders[0] == orders[1]).all()
    assert (orders[0] != orders[2]).any()


def test_the_range_of_orders_follows_demand_and_advice():
    shop = new()
    demand = np.concatenate([np.full((1, 30), 3.0), np.full((1, 60), 300.0), np.full((1, 60), 4.0)], axis=1)
    orders, _ = play(shop, demand)
    assert np.median(orders[0, 20:30]) in {3, 4}
    assert 250 <= np.median(orders[0, 75:90]) <= 400  # after weeks in which more than was advised paid
    assert np.median(orders[0, -10:]) <= 8
    shop = new()
    orders, _ = play(shop, demand, advice={"oracle": demand})
    assert (orders[0, 30:40] == 300).all()  # a forecast is followed at once
    # An order that is sold to the last unit never shows that no more were wanted, so that more is tried now and then.
    assert np.median(orders[0, 30:90]) == 300
    orders, _ = play(new(), demand, advice={"oracle": demand}, sees_unmet=True)
    assert (orders[0, 33:90] == 300).mean() > 0.8


# What is learned


def test_it_costs_little_more_than_the_best_of_its_rules_and_less_than_without_weekdays():
    demand = demand_of(300, products=6)
    _, costs = play(new(), demand)
    late = costs[:, 60:].sum()
    best = np.stack([np.quantile(demand[:, d::7], 0.75, axis=1) for d in range(7)], axis=1)[:, np.arange(300) % 7]
    with_true_demand = (np.maximum(best - demand, 0) + 3 * np.maximum(demand - best, 0))[:, 60:].sum()
    flat = np.quantile(demand, 0.75, axis=1)[:, None]
    without_weekdays = (np.maximum(flat - demand, 0) + 3 * np.maximum(demand - flat, 0))[:, 60:].sum()
    assert late < 1.2 * with_true_demand
    assert late < 0.9 * without_weekdays


def test_good_advice_is_followed_and_bad_advice_costs_little():
    demand = demand_of(200)
    _, alone = play(new(), demand)
    shop = new()
    _, told = play(shop, demand, advice={"oracle": demand + 0.0})
    assert told[:, 30:].sum() < 0.35 * alone[:, 30:].sum()
    report = shop.report()
    oracle = next(each for each in report.advisers if each.name == "oracle")
    assert oracle.verdict == "cheaper"
    assert oracle.weight > 0.5
    rng = np.random.default_rng(1)
    shop = new()
    _, misled = play(shop, demand, advice={"dice": rng.integers(0, 400, demand.shape).astype(float)})
    assert misled[:, 30:].sum() < 1.15 * alone[:, 30:].sum()
    assert next(each for each in shop.report().advisers if each.name == "dice").verdict == "dearer"


def test_each_product_may_have_an_adviser_of_its_own():
    """With five seeds the order of the right one is made in .81 to .98 of the last days."""
    rng, shop, right = np.random.default_rng(0), new(cycle=1), []
    odd = np.arange(6) % 2 == 1
    for t in range(150):
        wanted = rng.uniform(20, 60, 6)
        order = np.rint(wanted + 0.67 * np.sqrt(wanted))
        made = shop.order(
            date(t), range(6), {"a": np.where(odd, order, 0.5 * order), "b": np.where(odd, 0.5 * order, order)}
        )
        shop.sold(date(t), np.minimum(made, rng.poisson(wanted)))
        right.append(made == order)
    assert np.mean(right[100:]) > 0.75


def test_history_is_learned_before_the_first_order():
    demand = demand_of(100)
    rows = [(date(t), PRODUCTS[i], demand[i, t]) for t in range(100) for i in range(6)]
    shop = new()
    assert shop.learn(pd.DataFrame(rows, columns=["date", "product", "sold"])) == 600
    first = shop.order(date(100), PRODUCTS)
    best = np.quantile(demand[:, 100 % 7 :: 7], 0.75, axis=1)
    assert (first > 0.6 * best).all()
    assert (first < 1.6 * best + 1).all()
    weights = {each.name: each.weight for each in shop.report().advisers}
    assert weights["quantile by weekday"] > 5 * weights["quantile"]
    with pytest.raises(OutcomeError, match="'product 0' was ordered here already, so that its sales are for sold"):
        shop.learn({"date": ["2025-01-01"], "product": ["product 0"], "sold": [1]})


def test_the_first_order_after_a_history_is_what_the_rules_advise():
    demand = np.tile(np.array([[20.0], [300.0]]), 60)
    rows = [(t, PRODUCTS[i], demand[i, t]) for t in range(60) for i in range(2)]
    for seed in range(20):
        shop = new(seed=seed)
        shop.learn(pd.DataFrame(rows, columns=["date", "product", "sold"]))
        assert shop.order(60, PRODUCTS[:2], first=[1, 1]).tolist() == [20, 300]


def test_history_knows_sold_out_days():
    days = [date(t) for t in range(40)]
    table = {"date": days, "product": ["a"] * 40, "sold": [10] * 40}
    plain, out, said = new(), new(), new()
    plain.learn(table)
    out.learn(table | {"order": [10] * 40})
    said.learn(table | {"ran_out": [True] * 40})
    orders = [shop.order(date(40), ["a"])[0] for shop in (plain, out, said)]
    assert orders[0] == 10
    assert orders[1] == orders[2] == 11


# What really happened


def test_sales_can_be_corrected_until_the_next_order():
    demand = demand_of(10)
    shops = new(), new()
    for shop in shops:
        play(shop, demand)
    orders = [shop.order(date(10), PRODUCTS) for shop in shops]
    shops[0].sold(date(10), orders[0] // 2)
    shops[0].sold(date(10), {product: int(q) for product, q in zip(PRODUCTS, orders[0], strict=True)})
    shops[1].sold(date(10), orders[1])
    assert shops[0].order(date(11), PRODUCTS).tolist() == shops[1].order(date(11), PRODUCTS).tolist()
    assert shops[0].report().columns["sold"].tolist() == shops[1].report().columns["sold"].tolist()
    with pytest.raises(OutcomeError, match=r"No orders of datetime.date\(2026, 1, 15\) are open"):
        shops[0].sold(date(10), np.zeros(6))


def test_reports_come_late_or_never():
    shop, demand = new(), demand_of(100)
    for t in range(60):
        q = shop.order(date(t), PRODUCTS, first=20)
        sold = np.minimum(q, demand[:, t])
        if t != 5:
            shop.sold(date(t), dict(zip(PRODUCTS[:5], sold, strict=False)))  # nothing is known of the last product
        if t == 8:
            shop.sold(date(5), [0, 0, None, np.nan, 0, 0])
    table = shop.report().columns
    assert table["days"].tolist() == [59, 59, 58, 58, 59, 1]
    with pytest.raises(OutcomeError, match="No orders of"):
        shop.sold(date(0), [1])
    shop.sold(date(60 - PATIENCE), {PRODUCTS[5]: 0})
    shop.order(date(60), PRODUCTS)
    assert shop.report().columns["days"].tolist()[-1] == 2


def test_orders_stay_where_they_are_while_no_report_comes():
    shop = new()
    for t in range(3 * PATIENCE):
        order = shop.order(date(t), PRODUCTS, first=8)
    assert (order <= 16).all()
    shop.sold(date(t), np.minimum(order, 5))
    assert (shop.order(date(t + 1), PRODUCTS) <= 12).all()
    shop = new()
    play(shop, demand_of(60))
    last = shop.order(date(60), PRODUCTS)
    for t in range(61, 61 + 200):  # and nobody remembers what was sold
        order = shop.order(date(t), PRODUCTS)
    assert (order <= 4 * last + 1).all()


def test_other_quantities_may_be_made():
    shop = new()
    shop.order("2026-01-05", ["a", "b", "c"], first=[3, 3, 3])
    with pytest.raises(OutcomeError, match=re.escape("The sales of 'a' are 4, and no more than 3 were there. If more")):
        shop.sold("2026-01-05", {"a": 4})
    shop.made("2026-01-05", {"a": 5, "b": 2, "c": 0})
    shop.sold("2026-01-05", {"a": 4, "b": 2, "c": 0})
    with pytest.raises(OutcomeError, match="4 of 'a' were sold, and no more than were made can be: 2"):
        shop.made("2026-01-05", [2, None, None])
    shop.order("2026-01-06", ["a", "b", "c"])
    report = shop.report()
    assert report.columns["days"].tolist() == [1, 1, 0]  # c was not sold at all on that day: that says nothing
    assert report.columns["ordered"].tolist() == [5, 2, 0]
    assert report.columns["known"].tolist() == [1, 0, 0]
    assert report.columns["sold_out"].tolist() == [0, 1, 0]


def test_more_was_not_made_of_what_is_said_to_have_run_out(tmp_path):
    shop = new()
    shop.order("2026-01-05", ["a", "b"], first=5)
    shop.sold("2026-01-05", [3, 5], ran_out=[None, True])
    with pytest.raises(OutcomeError, match=r"'b' ran out, as sold was told, after 5, and 7 would not have been sold"):
        shop.made("2026-01-05", {"a": 6, "b": 7})
    assert shop.contents()[1]["day.0.made"].tolist() == [5, 5]
    shop.sold("2026-01-05", {"b": 5})
    shop.made("2026-01-05", {"b": 7})
    shop.save(tmp_path / "shop")
    assert sl.Newsvendor.load(tmp_path / "shop").contents()[1]["day.0.made"].tolist() == [5, 7]


def test_products_come_and_go_and_days_are_closed():
    shop, demand = new(), demand_of(300)
    products = np.array(PRODUCTS)
    rng = np.random.default_rng(3)
    for t in range(300):
        if t % 7 == 6 or 100 <= t < 250:
            continue
        there = np.sort(rng.choice(6, 4, replace=False))
        q = shop.order(pd.Timestamp(date(t)), products[there], first=9)
        shop.sold(np.datetime64(date(t)), np.minimum(q, demand[there, t]))
        assert (q < 3000).all()
    assert set(shop.products) == set(PRODUCTS)


def test_ran_out_says_more_than_sales():
    orders = []
    for flag in (True, False):
        shop = new()
        for t in range(30):
            q = shop.order(date(t), ["a"], first=10)
            sold = min(10, q[0])
            shop.sold(date(t), [sold], ran_out=[flag if sold == q[0] else False])
        orders.append(shop.order(date(30), ["a"])[0])
    assert orders[1] == 10
    assert orders[0] > 10


def test_a_series_is_read_by_its_index_if_that_names_products():
    for products, other in ((["b", "a"], ["a", "b"]), ([7, 3], [3, 7])):
        shop = new()
        shop.order("2026-01-05", products, {"boss": pd.Series([20, 10], index=other)})
        for sales in ([8, 18], pd.Series([8, 18]), pd.Series([18, 8], index=other)):
            shop.sold("2026-01-05", sales)
            assert shop.contents()[1]["day.0.sold"].tolist() == [8, 18]
        shop.sold("2026-01-05", pd.Series([1, 2, 3])[[0, 2]])  # a part of a column keeps its numbers as index
        assert shop.contents()[1]["day.0.sold"].tolist() == [1, 3]
        with pytest.raises(OutcomeError, match=f"The sales of {other[0]!r}: there are two"):
            shop.sold("2026-01-05", pd.Series([1, 2], index=other[:1] * 2))


def test_rows_of_a_history_are_read_in_their_order_whatever_their_index_says():
    for products, index in ((["a", "b", "b"], ["b", "a", "a"]), ([1, 2, 3], [3, 1, 2])):
        shop = new()
        table = {"date": [1, 1, 2], "product": products, "sold": [4, 8, 9], "order": [5, 8, 10]}
        shop.learn(pd.DataFrame(table, index=index))
        shops = new()
        shops.learn(table)
        assert shop.order(3, shop.products).tolist() == shops.order(3, shop.products).tolist()


def test_advice_may_be_a_table_with_a_column_for_each_adviser():
    columns = {"forecast": [12.4, 90.0], "baker": [np.nan, 70.0]}
    orders = new().order("2026-01-05", ["a", "b"], columns)
    for index in (None, ["a", "b"]):
        assert (new().order("2026-01-05", ["a", "b"], pd.DataFrame(columns, index=index)) == orders).all()
    turned = pd.DataFrame(columns, index=["a", "b"])[::-1]
    assert (new().order("2026-01-05", ["a", "b"], turned) == orders).all()
    assert (new().order("2026-01-05", ["a", "b"], pa.table(columns)) == orders).all()


def test_days_are_dates_or_whole_numbers_and_nothing_like_them():
    for wrong in (20260105, "20260105", "05.01.2026", "2026-01", 2**70, float("nan"), None, pd.NaT, True):
        with pytest.raises(FamilyError, match="date "):
            new().order(wrong, ["a"], first=1)
    berlin = pd.Timestamp("2026-01-05", tz="Europe/Berlin")
    shop = new()
    assert shop.order(berlin, ["a"], first=3) == shop.order("2026-01-05", ["a"], first=9)
    shop.learn({"date": ["2026-02-01"], "product": ["b"], "sold": [4]})
    with pytest.raises(FamilyError, match="The sales of 2026-02-01 were learned already, and 2026-01-06"):
        shop.order("2026-01-06", ["a"])
    days = [new(cycle=1), new(cycle=1)]
    for t in range(40):  # negative numbers too
        orders = [each.order(first + t, ["a"], first=5) for each, first in zip(days, (-500, 100), strict=True)]
        assert orders[0] == orders[1]
        for each, first in zip(days, (-500, 100), strict=True):
            each.sold(first + t, np.minimum(orders[0], 20))


@pytest.mark.parametrize(
    ("sales", "message"),
    [
        ({"a": -1}, "The sales of 'a' must be a whole number from 0, not -1."),
        ({"b": 1.5}, "The sales of 'b' must be a whole number from 0, not 1.5."),
        ([1, 6], "The sales of 'b' are 6, and no more than 5 were there."),
        ({"a": "many"}, "The sales of 'a' must be a whole number from 0, not 'many'."),
        ({"a": True}, "The sales of 'a' must be a whole number from 0, not True."),
        ({"a": float("inf")}, "The sales of 'a' must be a whole number from 0, not inf."),
        ({"c": 1}, "The sales: no order of 'c' for that day is open."),
        ([1], "The sales must have a value for each of the 2 products, and has 1."),
        ({"a": 3e9}, "The sales of 'a' must be a whole number from 0 to 2,147,483,648, not 3000000000.0."),
        (pd.DataFrame({"sold": [1, 2]}), "The sales must be a column, or a dict by product, and this is a table with"),
        (pd.DataFrame({"sold": [1]}, index=["a"]), "The sales must be a column, or a dict by product, and this is a"),
        (3, "The sales must be a column, or a dict by product, not 3."),
        (
            pd.Series([1, 2], index=pd.MultiIndex.from_product([["monday"], ["b", "a"]], names=["day", "product"])),
            "The sales must have an index of products alone, not of ['day', 'product']: use droplevel.",
        ),
    ],
)
def test_wrong_sales_are_refused_and_change_nothing(sales, message):
    shop = new()
    shop.order(1, ["a", "b"], first=5)
    with pytest.raises(OutcomeError) as raised:
        shop.sold(1, sales)
    assert str(raised.value).startswith(message)
    shop.order(2, ["a", "b"])
    assert shop.report().days == 0


def test_other_wrong_input_is_refused():
    shop = new()
    with pytest.raises(FamilyError, match="The product 'a' is given twice"):
        shop.order(1, ["a", "b", "a"], first=5)
    with pytest.raises(FamilyError, match="date must be a date"):
        shop.order("tomorrow", ["a"], first=5)
    with pytest.raises(AdviceError, match="The advice of 'x' of 'b' must be a number from 0, not -2"):
        shop.order(1, ["a", "b"], {"x": [1, -2]})
    with pytest.raises(AdviceError, match="The name of an adviser is text, not ''"):
        shop.order(1, ["a"], {"": [1]})  # which no file could be read with
    with pytest.raises(AdviceError, match="a dict of numbers is by product, and there is no product 'baker'"):
        shop.order(1, ["a"], {"baker": 5}, first=3)
    with pytest.raises(AdviceError, match="The advice of 'baker' is by product, and there is no product 'aa'"):
        shop.order(1, ["a"], {"baker": {"aa": 5}}, first=3)
    with pytest.raises(AdviceError, match="The advice of 'baker' is by product, and there is no product '2026-01-05'"):
        shop.order(1, ["a"], {"baker": pd.Series([5], index=["2026-01-05"])}, first=3)
    with pytest.raises(AdviceError, match="'ratio' is the name of a built-in adviser"):
        shop.order(1, ["a"], {"ratio": [1]})
    with pytest.raises(AdviceError, match="At most 15 advisers of your own are taken, and this would be 16"):
        shop.order(1, ["a"], {str(k): [1] for k in range(16)})
    shop.order(3, ["a"], first=5)
    with pytest.raises(FamilyError, match="The orders of 3 were made already, and 2 is before that"):
        shop.order(2, ["a"])
    with pytest.raises(FamilyError, match="each a whole number, and '2026-01-05' is a date"):
        shop.order("2026-01-05", ["a"])
    with pytest.raises(OutcomeError, match="ran_out of 'a' is True, but 1 of 5 were left"):
        shop.sold(3, [4], ran_out=[True])
    with pytest.raises(OutcomeError, match="ran_out of 'a' must be True or False, not 1"):
        shop.sold(3, [5], ran_out=[1])
    with pytest.raises(OutcomeError, match="table with the columns date, product and sold"):
        shop.learn({"date": [1], "sold": [3]})
    with pytest.raises(OutcomeError, match=r"not 'sales.csv'. Read a file first, as with pandas.read_csv, and give"):
        shop.learn("sales.csv")
    with pytest.raises(OutcomeError, match="'b' has two rows for 1"):
        shop.learn({"date": [1, 1], "product": ["b", "b"], "sold": [3, 4]})
    with pytest.raises(OutcomeError, match="5 of 'b' were sold on a day on which 4 were ordered"):
        shop.learn({"date": [1], "product": ["b"], "sold": [5], "order": [4]})
    with pytest.raises(OutcomeError, match="ran_out of 'b' is True on a day with 3 of 4 sold"):
        shop.learn({"date": [1], "product": ["b"], "sold": [3], "order": [4], "ran_out": [True]})
    with pytest.raises(AdviceError, match="There is no adviser 'boss'"):
        shop.report("boss")
    with pytest.raises(LearnerError, match=r"holding must be a number from 0 to 1e\+15, not -1"):
        sl.Newsvendor(holding=-1, shortage=3)
    with pytest.raises(LearnerError, match="must not both be 0"):
        sl.Newsvendor(holding=0, shortage=0)
    with pytest.raises(LearnerError, match="holding has no prices: give one number, or a price for each product"):
        sl.Newsvendor(holding={}, shortage=3)
    with pytest.raises(SidelongError, match="what must be 'products' or 'advisers', not 'adviser'"):
        shop.report().to_pandas("adviser")
    assert shop.products == ["a"]


def test_prices_by_product():
    shop = new(holding=pd.Series({"a": 1, "b": 9}), shortage={"a": 9, "b": 1})
    rng = np.random.default_rng(0)
    for t in range(80):
        q = shop.order(t, ["a", "b"], first=50)
        shop.sold(t, np.minimum(q, rng.poisson(50, 2)))
    a, b = shop.order(80, ["a", "b"])
    assert a > 53
    assert b < 47
    with pytest.raises(FamilyError, match="holding has no price for 'c'"):
        shop.order(80, ["c"], first=1)


def test_products_that_come_get_prices_of_their_own(tmp_path):
    shop = new(holding={"a": 1}, shortage={"a": 2})
    shop.order(1, ["a"], first=5)
    with pytest.raises(FamilyError, match=r"holding has no price for 'b'. Give it first: add_prices\(holding=...\)"):
        shop.order(2, ["a", "b"], first=5)
    shop.add_prices(holding={"a": 1, "b": 1}, shortage={"b": 9})
    shop.save(tmp_path / "shop")
    shop = sl.Newsvendor.load(tmp_path / "shop")
    assert shop.order(2, ["a", "b"], first=5).size == 2
    shop.sold(2, {"b": 5})
    shop.order(3, ["a"])
    report = shop.report()
    assert report.paid.guess == 9  # one more was wanted, as a guess
    with pytest.raises(
        LearnerError, match="shortage of 'a' is 2, and what was paid is counted with it: it cannot become 3"
    ):
        shop.add_prices(holding={"c": 1}, shortage={"a": 3})
    with pytest.raises(FamilyError, match="holding has no price for 'c'"):  # so nothing was added
        shop.order(4, ["c"], first=1)
    with pytest.raises(LearnerError, match="shortage must be by product, for the shop and here: it is 3"):
        new(holding={"a": 1}).add_prices(shortage={"b": 1})


def test_a_mean_forecast_is_raised_to_the_level_that_pays():
    shop, demand = new(shortage=19), demand_of(200)
    mean = np.geomspace(2, 200, 6)[:, None] * WEEK[np.arange(200) % 7] * (1 + 0.2 * np.sin(np.arange(200) * np.pi / 90))

    class Model:
        def predict(self, x):
            return x[:, 0]

    ordered = np.zeros_like(demand)
    for t in range(200):
        advice = {"forest": sl.Forecast(Model(), mean[:, t : t + 1], kind="mean")}
        ordered[:, t] = q = shop.order(date(t), PRODUCTS, advice)
        shop.sold(date(t), np.minimum(q, demand[:, t]))
    assert ((ordered >= demand)[:, 60:].mean(axis=1) > 0.85).all()  # 0.95 is asked for
    below = new().order(1, PRODUCTS[:2], sl.Forecast(Model(), np.array([[-0.3], [4]])))
    assert below.tolist() == [0, 4]
    with pytest.raises(AdviceError, match="A forecast is a fitted model with its features x"):
        sl.Forecast(Model())
    with pytest.raises(AdviceError, match="kind must be 'quantile' or 'mean'"):
        sl.Forecast([1], kind="median")


# Files and reports


def test_a_loaded_shop_goes_on_to_the_bit(tmp_path):
    demand = demand_of(60)
    advice = {"forecast": demand_of(60, seed=5)}
    shop = new(holding=dict.fromkeys(PRODUCTS, 1.0))
    play(shop, demand, range(30), advice)
    shop.order(date(30), PRODUCTS, {"mean": sl.Forecast(demand[:, 30], kind="mean")})
    shop.sold(date(30), {PRODUCTS[1]: 0})  # the others are outstanding
    shop.made(date(30), {PRODUCTS[2]: 40})
    shop.save(tmp_path / "shop.sidelong")
    loaded = sl.Newsvendor.load(tmp_path / "shop.sidelong")
    orders = []
    for each in (shop, loaded):
        each.sold(date(30), {PRODUCTS[2]: 33})
        orders.append(play(each, demand, range(31, 60), advice)[0])
        each.save(tmp_path / f"{len(orders)}.sidelong")
    assert (orders[0] == orders[1]).all()
    assert (tmp_path / "1.sidelong").read_bytes() == (tmp_path / "2.sidelong").read_bytes()
    sl.Agent("glance", sl.graphs.nested(3)).save(tmp_path / "agent.sidelong")
    with pytest.raises(StateFileError, match="was not saved by a Newsvendor"):
        sl.Newsvendor.load(tmp_path / "agent.sidelong")


@pytest.fixture(scope="module")
def saved():
    """A shop with prices and mean forecasts, some days of which are outstanding."""
    shop, demand = new(holding=dict.fromkeys(PRODUCTS, 1.0)), demand_of(30)
    play(shop, demand, advice={"forecast": demand_of(30, seed=5)})
    for t in (30, 31):
        shop.order(date(t), PRODUCTS[t - 30 :], {"mean": sl.Forecast(np.full(36 - t, 20.0), kind="mean")}, first=3)
        shop.sold(date(t), {PRODUCTS[1]: 0})
    return shop.contents()


def go_on_or_refuse(header, arrays):
    """Load a file with this in it, and play on if it is taken; tell whether it is."""
    packed = state_file.pack(header, arrays)
    try:
        shop = sl.Newsvendor.from_contents(*state_file.unpack(packed, "the file"), "the file")
    except StateFileError:
        return False
    with contextlib.suppress(SidelongError):  # such as a day before the last one, a price that is not there
        for t in (32, 33):
            orders = shop.order(date(t), PRODUCTS, first=3)
            assert (orders >= 0).all()
            shop.sold(date(t), orders)
        str(shop.report())
    return True


ODD = [None, True, -1, 0, 1, 2**40, 2**70, 1e308, float("nan"), "", "x", [], [1], [None], {}, {"a": 1}, [[]], "blend"]


def test_whatever_stands_in_the_header_of_a_shop_is_read_or_refused(saved):
    header, arrays = saved
    rng = random.Random(1)
    assert go_on_or_refuse(header, arrays)
    for name in header:
        for odd in ODD:
            go_on_or_refuse(header | {name: odd}, arrays)
        assert not go_on_or_refuse({k: each for k, each in header.items() if k != name}, arrays)
    for _ in range(200):  # one value in a list or a dict
        other = json.loads(json.dumps(header))
        place = other[rng.choice(["prices", "names", "expected", "days"])]
        at = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        place[at] = rng.choice(ODD)
        go_on_or_refuse(other, arrays)


@pytest.mark.parametrize("how", ["number", "type", "shape", "absent"])
def test_whatever_stands_in_an_array_of_a_shop_is_read_or_refused(saved, how):
    header, arrays = saved
    rng = np.random.default_rng(1)
    for name in [each for each in arrays if each != "family"]:
        for _ in range(6 if how == "number" else 1):
            array = arrays[name].copy()
            if how == "number":
                odd = [0, 1, 5, 0.5, 2.0**40, 1e300, -1, np.nan] if array.dtype.kind == "f" else [0, 1, 5, 2**40, -1]
                value = rng.choice(odd)
                if array.dtype.itemsize < 8:
                    value = np.clip(value, -1, 255 if array.dtype.kind == "u" else 1e30)
                with np.errstate(all="ignore"):
                    array.reshape(-1)[rng.integers(array.size)] = np.asarray(value).astype(array.dtype)
            elif how == "type":
                with np.errstate(all="ignore"):
                    array = array.astype("<i4" if array.dtype.kind == "f" else "<f8")
            elif how == "shape":
                array = array[..., None] if rng.integers(2) else array.reshape(-1)[:-1]
            changed = {k: each for k, each in arrays.items() if k != name} | ({} if how == "absent" else {name: array})
            taken = go_on_or_refuse(header, changed)
            assert not taken or how == "number"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("price", -1.0),
        ("usual", 1e12),
        ("history.sold", -1.0),
        ("history.expected.0", np.inf),
        ("ledger.paid", np.nan),
        ("ledger.advised", np.inf),
        ("ledger.lately", np.nan),
        ("day.0.row", 17),
        ("day.0.round", 9),
        ("day.0.drawn", 24),
        ("day.0.arm", -1),
        ("day.0.orders", 0.5),
        ("day.0.advice", -3.0),
        ("day.0.made", 1e13),
        ("day.1.sold", 1e9),
        ("day.1.ran_out", 2),
    ],
)
def test_a_number_of_a_shop_outside_its_range_is_refused(saved, name, value):
    header, arrays = saved
    array = arrays[name].copy()
    array.reshape(-1)[array.size // 2] = value
    with pytest.raises(StateFileError, match=re.escape("the file holds")):
        sl.Newsvendor.from_contents(header, arrays | {name: array}, "the file")


def test_a_shop_with_another_family_is_refused(saved):
    header, arrays = saved
    own, parts = state_file.unpack(arrays["family"].tobytes(), "the file")
    rng = np.random.default_rng(1)

    def load(own, parts):
        packed = np.frombuffer(state_file.pack(own, parts), np.uint8)
        return go_on_or_refuse(header, arrays | {"family": packed})

    assert load(own, parts)
    assert not load(*sl.Family("glance", sl.graphs.nested(24)).contents())
    assert not load(own | {"advisers": ["blend", "somebody"]}, parts)
    assert not load(own | {"scale": [0.0, 2.0]}, parts)
    assert not load(own | {"certificate": True}, parts)
    for _ in range(60):
        name = str(rng.choice(list(parts)))
        array = parts[name].copy()
        if array.size:
            array.reshape(-1)[rng.integers(array.size)] = rng.choice([0, 1, 5, 100])
        load(own, parts | {name: array})


def test_the_report_bounds_what_the_shop_cannot_see():
    shop, demand = new(), demand_of(150)
    said = {"forecast": demand_of(150, seed=9)}
    _, costs = play(shop, demand, advice=said)
    shop.order(date(150), PRODUCTS)
    report = shop.report()
    assert report.days == costs.size
    assert report.before == "forecast"
    assert report.known == report.paid.low <= costs.sum()
    assert report.paid.low < report.paid.guess < report.paid.high
    true = np.maximum(said["forecast"] - demand, 0) + 3 * np.maximum(demand - said["forecast"], 0)
    assert report.saved.low <= true.sum() - costs.sum() <= report.saved.high
    by_product = true.sum(axis=1) - costs.sum(axis=1)
    assert (report.columns["saved_at_least"] <= by_product).all()
    assert (by_product <= report.columns["saved_at_most"]).all()
    assert sum(each.weight for each in report.advisers) == pytest.approx(1)


def test_what_is_guessed_to_be_paid_is_never_more_than_at_most():
    shop = new()
    for t, order in enumerate([0, 60, 60]):  # it sold out each time, and never more was sold on a day
        shop.made(t, shop.order(t, ["a"], first=60) * 0 + order)
        shop.sold(t, [order])
    shop.order(3, ["a"])
    report = shop.report()
    assert report.paid.low == 0
    assert report.paid.low < report.paid.guess <= report.paid.high
    assert (report.columns["paid"] <= report.columns["paid_at_most"]).all()


def test_the_report_says_what_its_upper_figure_takes_for_granted():
    said = " The upper figure holds if demand never exceeded the most that ever sold."
    shop = new()
    shop.order(0, ["a"], first=5)
    shop.sold(0, {"a": 4})  # demand was seen, so nothing is taken for granted
    shop.order(1, ["a"])
    assert said not in str(shop.report())
    shop = new()
    paid = 0
    for t in range(3):
        (order,) = shop.order(t, ["a"], first=5)
        shop.sold(t, [order])
        paid += 3 * (100 - order)  # 100 were wanted each day
    shop.order(3, ["a"])
    report = shop.report()
    assert paid > report.paid.high  # far more was wanted than ever sold
    assert said in str(report)


def test_the_report_is_a_table_a_figure_and_a_page(tmp_path):
    shop = new()
    assert "No sales are learned yet" in str(shop.report())
    play(shop, demand_of(30))
    shop.order(date(30), ["<b>"], first=1)
    shop.sold(date(30), [1])
    shop.order(date(31), ["<b>"])
    report = shop.report("quantile")
    assert "Known to be paid: " in str(report)
    assert "ratio" in str(report)
    trusted = max(report.advisers, key=lambda each: each.weight).name
    assert f"Trusted most now: {trusted!r}, with " in str(report)
    assert report.to_pandas().shape == (7, 11)
    assert report.to_pandas("advisers").name.tolist() == list(shop.adviser_names)
    assert report.plot().axes
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "<svg" in page
    assert report._repr_html_() in page.replace(report.plot()._repr_html_(), "")


def test_an_amount_that_is_rounded_to_0_has_no_sign():
    assert str(Money(-1.6, 0.3, -0.0)) == "0 (-2 to 0)"
    assert str(Money(-0.2, 0, 1)) == "0 (0 to 1)"


def test_the_figure_has_room_for_any_name_of_an_adviser(browser, tmp_path):
    shop, names = new(), ("LightGBM with the weather and all promotions", "$x_{$ & <b>")
    for t in range(3):
        shop.sold(t, np.minimum(shop.order(t, ["a"], {name: [12] for name in names}), 9))
    shop.order(3, ["a"])
    shop.report().save(tmp_path / "report.html")
    with visit(browser, (tmp_path / "report.html").as_uri()) as page:
        [left] = [each.bounding_box()["x"] for each in page.page.locator("svg").all()]
        for name in names:
            box = page.page.locator("svg text", has_text=name).bounding_box()
            assert box["x"] >= left
            assert box["width"] > 20


def test_the_page_of_the_report_can_be_read_on_a_telephone_and_on_a_dark_screen(browser, tmp_path):
    shop = new()
    play(shop, demand_of(30))
    shop.order(date(30), PRODUCTS)
    shop.report().save(tmp_path / "report.html")
    for dark in (False, True):
        with visit(browser, (tmp_path / "report.html").as_uri(), width=400, dark=dark) as page:
            assert page.overflow <= 0
            assert (page.page.evaluate("getComputedStyle(document.body).color") == "rgb(255, 255, 255)") is dark
            assert all(width >= 500 for width, _ in page.sizes("svg"))  # it scrolls, and its letters stay large
            assert page.page.locator('meta[name="viewport"]').count() == 1
            assert page.complaints == []


def test_a_shop_without_weekdays():
    shop = new(cycle=1)
    assert shop.adviser_names == ("quantile", "Kaplan-Meier", "ratio", "blend")
    for t in range(60):
        q = shop.order(t, [17], first=5)  # whole numbers name products too
        shop.sold(t, np.minimum(q, 20))
    assert 20 <= shop.order(60, [17])[0] <= 24
