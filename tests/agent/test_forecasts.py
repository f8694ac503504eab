"""Regressors of scikit-learn and LightGBM as advisers of a shop, fitted again by their user as days go by."""

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression

import sidelong as sl

LEVEL = 0.75
SMALL = {"n_estimators": 40, "n_jobs": 1, "verbose": -1, "random_state": 0}
MODELS = {
    "scikit-learn, quantile": ("quantile", GradientBoostingRegressor(loss="quantile", alpha=LEVEL, n_estimators=40)),
    "scikit-learn, mean": ("mean", LinearRegression()),
    "LightGBM, quantile": ("quantile", LGBMRegressor(objective="quantile", alpha=LEVEL, **SMALL)),
    "LightGBM, mean": ("mean", LGBMRegressor(**SMALL)),
}


def play(kind, model, before=60, days=140):
    """A street with a market on some days, which only the model knows of; return the cost of each day."""
    rng = np.random.default_rng(3)
    level, market = np.array([20.0, 60.0, 150.0]), rng.random(before + days) < 0.3
    shop, x, y, costs = sl.Newsvendor(holding=1, shortage=3, seed=7), [], [], np.zeros(before + days)
    for t in range(before + days):
        x.append(np.column_stack([level, np.full(3, market[t]), level * market[t]]))
        demand = rng.poisson(level * np.where(market[t], 2.0, 1.0))
        if t < before:  # nothing sold out yet
            y.append(demand)
            continue
        if model is not None and (t - before) % 28 == 0:
            model.fit(np.concatenate(x[:-1]), np.concatenate(y))
        advice = {} if model is None else {"model": sl.Forecast(model, x[-1], kind=kind)}
        orders = shop.order(t, ["a", "b", "c"], advice, first=level)
        sold = np.minimum(orders, demand)
        shop.sold(t, sold)
        y.append(np.where(sold == orders, 1.1 * sold, sold))
        costs[t] = (orders - sold + 3 * (demand - sold)).sum()
    return costs


@pytest.fixture(scope="module")
def alone():
    return play("quantile", None)[90:].sum()


@pytest.mark.parametrize("name", MODELS)
def test_a_refitted_model_that_knows_more_than_sales_is_followed(name, alone):
    assert play(*MODELS[name])[90:].sum() < 0.35 * alone


@pytest.mark.parametrize("name", MODELS)
def test_a_first_order_is_what_the_model_predicts(name):
    kind, model = MODELS[name]
    x = np.arange(60.0)[:, None] % 5
    model.fit(x, 10 * x[:, 0] + 3)
    orders = sl.Newsvendor(holding=1, shortage=3).order(1, ["a", "b"], sl.Forecast(model, x[:2], kind=kind))
    assert orders.tolist() == np.rint(model.predict(x[:2])).tolist()
