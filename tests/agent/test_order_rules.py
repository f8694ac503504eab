import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import kaplan_meier as naive_kaplan_meier
from sidelong.agent import order_arms, order_rules
from sidelong.agent.sales_history import SalesHistory, Window

pytestmark = pytest.mark.interpreted

days = st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.booleans()), min_size=1, max_size=20)


@given(days, st.sampled_from([0.1, 0.5, 0.75, 0.9, 0.99]))
def test_kaplan_meier_is_the_textbook_estimator(seen, level):
    sold = np.array([[np.nan if unknown else x for x, _, unknown in seen]], np.float32)
    ran_out = np.array([[out for _, out, _ in seen]])
    known = [(x, out) for x, out, unknown in seen if not unknown]
    found = order_rules.kaplan_meier(Window(sold, ran_out, sold), np.array([level]))[0]
    if not known:
        assert np.isnan(found)
        return
    expected = naive_kaplan_meier(known, level)
    most = max(x for x, _ in known)
    assert found == pytest.approx(max(1.1 * most, most + 1) if expected is None else expected, rel=1e-6)


@given(st.lists(st.floats(0, 100) | st.just(float("nan")), min_size=1, max_size=15), st.floats(0, 1))
def test_the_quantile_leaves_out_what_is_not_known(values, level):
    found = order_rules.quantile(np.array([values]), np.array([level]))[0]
    known = [x for x in values if not np.isnan(x)]
    assert found == pytest.approx(np.quantile(known, level)) if known else np.isnan(found)


def test_rules_know_the_weekday_and_raise_sold_out_days():
    history = SalesHistory(7, 1)
    rows, level = np.array([0]), np.array([0.5])
    for day in range(70):
        history.move_to(day)
        history.expect(day, rows, order_rules.advise(history, rows, day, level)["base"])
        history.write(day, rows, np.array([20.0 if day % 7 == 5 else 10.0]), np.array([False]))
    history.move_to(75)
    advice = order_rules.advise(history, rows, 75, level)  # such a day
    assert advice["quantile"][0] == advice["Kaplan-Meier"][0] == 10
    assert advice["quantile by weekday"][0] == advice["Kaplan-Meier by weekday"][0] == 20
    assert advice["ratio"][0] == pytest.approx(20, rel=0.1)
    assert order_rules.raised(np.array([0.0, 5.0, 100.0]), np.array([True, True, True])).tolist() == pytest.approx(
        [1, 6, 110]
    )
    assert list(advice) == [*order_rules.names(7), "base"]


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 9)), max_size=40), st.integers(0, 320))
def test_the_history_is_a_window_of_days(reports, today):
    history, known = SalesHistory(7, 2), {}
    latest = -1
    for day, sold in reports:
        latest = max(latest, day)
        history.move_to(day)
        if history.keeps(day):
            history.write(day, np.array([1]), np.array([sold]), np.array([sold > 4]))
            known[day] = sold
    today = max(today, latest)
    history.move_to(today)
    window = history.last(np.array([1]), today + 1, history.days)
    expected = [known.get(today - k, np.nan) for k in range(history.days)]
    np.testing.assert_array_equal(window.sold[0], expected)
    weeks = history.same_weekday(np.array([1]), today + 1, 16)
    np.testing.assert_array_equal(weeks.sold[0], expected[6::7])
    assert np.isnan(history.last(np.array([0]), today + 1, 50).sold).all()


@given(
    st.lists(
        st.lists(st.integers(0, 3000) | st.integers(0, 5) | st.none(), min_size=4, max_size=4), min_size=1, max_size=5
    ),
    st.floats(0, 2000),
)
def test_each_advice_is_an_arm_and_orders_ascend(advice, reference):
    table = np.array([[np.nan if each is None else each for each in row] for row in advice], np.float64)
    orders, arms = order_arms.place(table, np.full(len(table), reference))
    assert (np.diff(orders, axis=1) >= 0).all()
    assert (orders == np.rint(orders)).all()
    assert (orders[:, -1] >= 1).all()
    for row, values, own in zip(orders, table, arms, strict=True):
        for value, arm in zip(values, own, strict=True):
            assert (
                (arm == -1) if np.isnan(value) else row[arm] == value or (value == 0 and arm == order_arms.N_ARMS - 1)
            )


def test_as_many_advisers_as_are_taken_have_an_arm_each():
    for first in (0, 1, 50):
        table = first + np.arange(order_arms.MOST_ADVISERS, dtype=np.float64)[None]
        orders, arms = order_arms.place(table, np.array([float(first)]))
        assert orders[0, arms[0]].tolist() == table[0].tolist()


def test_the_prior_is_cheapest_where_the_advice_is():
    for level in (0.05, 0.5, 0.75, 0.95, 1.0):
        losses = [mean for mean, _ in order_arms.prior(level).values()]
        assert 0.8 <= order_arms.MULTIPLES[int(np.argmin(losses))] <= 1.25
