"""Two real shops from sales alone: `sl.Newsvendor`, each of its rules alone, and models as advisers.

``python benchmarks/shops.py`` downloads the data of ddop 0.7.6 and prints what `docs/newsvendor.md` shows, in about
half an hour. Everybody sees only what the own orders have sold, and so do the models, which are fitted again to that.
Closed days are not ordered for: those of the restaurant that its data call closed, and those on which a shop of the
bakery sold nothing. Intervals are of 95 %, from weeks that are drawn again with replacement.

Settings were chosen with seed 7 at .75 and .5, on dishes 1 to 4 and on every third product of the bakery, over all
days. ``held-out`` plays what nobody has looked at while choosing: levels of .6 and .9 with another seed, and counts the
other dishes and products.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from packages import package

import sidelong as sl
from sidelong.agent import order_rules
from sidelong.agent.sales_history import SalesHistory

if TYPE_CHECKING:
    from collections.abc import Iterator

LAST = 185  # days, on which the published results of the restaurant are
CHOICES = ("all", "restaurant", "bakery", "held-out", "apart", "time")
FIRST = 28  # days that the published results of the restaurant leave out


class Shop(NamedTuple):
    """What is known of a shop, with a row for each product and a column for each day."""

    days: np.ndarray
    products: np.ndarray
    demand: np.ndarray
    closed: np.ndarray
    x: np.ndarray  #: the features that models see
    tuned: np.ndarray  #: products that settings were chosen on


def read(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return features and demand of a data set of ddop, which is downloaded once."""
    folder = package("ddop", "0.7.6", "datasets/data/") / "ddop-0.7.6" / "ddop" / "datasets" / "data"
    data, target = (pd.read_csv(folder / f"{name}_{part}.csv") for part in ("data", "target"))
    return data, target


def restaurant() -> Shop:
    """Return the seven dishes of the restaurant Yaz."""
    known, demand = read("yaz")
    table = demand.to_numpy(np.float64).T
    x = known.drop(columns=["date", "is_closed"]).apply(_coded).to_numpy(np.float64)
    closed = np.tile(known.is_closed.to_numpy() == 1, (len(table), 1))
    days = known.date.to_numpy("datetime64[D]")
    return Shop(days, demand.columns.to_numpy(), table, closed, np.tile(x, (len(table), 1, 1)), np.arange(7) < 4)


def bakery() -> Shop:
    """Return 105 products of 35 shops."""
    known, demand = read("bakery")
    known = known.assign(demand=np.rint(demand.demand), shop=known.store.astype(str))
    known = known.assign(key=known.shop + "/" + known["product"].astype(str)).sort_values(["key", "date"])
    n = known.key.nunique()
    table = known.demand.to_numpy().reshape(n, -1)
    shop = known.shop.to_numpy().reshape(n, -1)[:, 0]
    closed = np.stack([(table[shop == each] == 0).all(axis=0) for each in shop])
    x = known.drop(columns=["date", "year", "key", "shop", "demand"]).apply(_coded).to_numpy(np.float64)
    days = known.date.to_numpy("datetime64[D]")[: table.shape[1]]
    return Shop(days, known.key.unique(), table, closed, x.reshape(n, table.shape[1], -1), np.arange(n) % 3 == 0)


def _coded(column: pd.Series[Any]) -> pd.Series[Any]:
    return column if column.dtype.kind in "iuf" else column.astype("category").cat.codes


class Refitted:
    """A quantile regression that is fitted again to what was sold, every 28 days in the first year, then every 84."""

    def __init__(self, level: float, after: int) -> None:
        self.level, self.next = level, after
        self.x: list[np.ndarray] = []
        self.y: list[np.ndarray] = []
        self.model: Any = None

    def advise(self, t: int, x: np.ndarray) -> np.ndarray:  # noqa: ARG002  # others know the day
        """Return an order for each product on day t, NaN before the first fit."""
        return np.full(len(x), np.nan) if self.model is None else np.maximum(self.model.predict(x), 0.0)

    def learn(self, t: int, x: np.ndarray, demand: np.ndarray) -> None:
        """Keep what was sold on day t, and fit if it is time."""
        self.x.append(x)
        self.y.append(demand)
        if t + 1 >= self.next:
            self.next = t + 1 + (28 if t < 365 else 84)
            self.model = self.fit(np.concatenate(self.x), np.concatenate(self.y))

    def fit(self, x: np.ndarray, y: np.ndarray) -> Any:
        """Return a fitted model."""
        raise NotImplementedError


class Boosted(Refitted):
    """LightGBM over all products of the bakery."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> Any:
        """Return a fitted model."""
        from lightgbm import LGBMRegressor  # noqa: PLC0415  # takes a while to load

        options = {"n_estimators": 300, "learning_rate": 0.06, "min_child_samples": 20, "subsample": 0.8}
        more = {"subsample_freq": 1, "verbose": -1, "n_jobs": 1, "random_state": 0}
        model = LGBMRegressor(objective="quantile", alpha=self.level, **options, **more)
        return model.fit(x[-76_650:], y[-76_650:], categorical_feature=[0, 1, 5, 6])  # two years


class Forests(Refitted):
    """A random forest for each dish, whose leaves weigh past days: the quantile of these weights."""

    def __init__(self, level: float, after: int, x: np.ndarray) -> None:
        super().__init__(level, after)
        self.all = x  #: calendar and weather of all days, which is all that it sees

    def advise(self, t: int, x: np.ndarray) -> np.ndarray:
        """Return an order for each dish on day t, NaN before the first fit."""
        return np.full(len(x), np.nan) if self.model is None else self.model[:, t]

    def fit(self, x: np.ndarray, y: np.ndarray) -> Any:
        """Return the order of each dish on each day, by forests that are fitted to what was sold until now."""
        from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415  # takes a while to load

        orders = np.empty((7, len(self.all)))
        for dish in range(7):
            past, demand = x[dish::7, : self.all.shape[1]], y[dish::7]
            forest = RandomForestRegressor(100, min_samples_leaf=5, max_features=0.5, random_state=0).fit(past, demand)
            same = forest.apply(self.all)[:, None] == forest.apply(past)[None]
            weights = (same / same.sum(axis=1, keepdims=True)).mean(axis=2)
            order = np.argsort(demand)
            until = np.cumsum(weights[:, order], axis=1) < self.level - 1e-9
            orders[dish] = demand[order][until.sum(axis=1)]
        return orders


def play(
    shop: Shop, holding: float, shortage: float, who: str, model: Refitted | None = None, seed: int = 7
) -> tuple[np.ndarray, Any]:
    """Return the true cost of each product and day, if `who` decides: "newsvendor", a rule, or "model"."""
    level = np.full(len(shop.products), shortage / (holding + shortage))
    ours = sl.Newsvendor(holding=holding, shortage=shortage, seed=seed)
    history = SalesHistory(7, len(shop.products))  # the rules' own, if one of them decides, and what models see
    opening = [demand[~closed][0] for demand, closed in zip(shop.demand, shop.closed, strict=True)]
    usual = np.maximum(np.ceil(np.array(opening) / 10) * 10, 5.0)  # about what the first day sells
    costs = np.zeros_like(shop.demand)
    for t, day in enumerate(shop.days):
        rows = np.flatnonzero(~shop.closed[:, t])
        if not rows.size:
            continue
        number = int(day.astype(np.int64))
        history.move_to(number)
        rules = order_rules.advise(history, rows, number, level[rows])
        history.expect(number, rows, rules["base"])
        x = np.column_stack([shop.x[rows, t], rules["base"], rules["quantile by weekday"]])
        said = {} if model is None else {"model": model.advise(t, x)}
        if who == "newsvendor":
            made = ours.order(day, shop.products[rows], said, first=usual[rows]).astype(np.float64)
        else:
            advice = (said | rules)[who]
            for other in ("quantile by weekday", "quantile"):  # until it knows enough
                advice = np.where(np.isnan(advice), rules[other], advice)
            made = np.rint(np.where(np.isnan(advice), usual[rows], advice))
            usual[rows] = np.maximum(made, 1.0)
        demand = shop.demand[rows, t]
        sold = np.minimum(made, demand)
        costs[rows, t] = holding * (made - sold) + shortage * (demand - sold)
        if who == "newsvendor":
            ours.sold(day, sold)
        history.write(number, rows, sold, sold >= made)
        if model is not None:
            model.learn(t, x, order_rules.raised(sold, sold >= made))
    return costs, ours


def apart(shop: Shop, holding: float, shortage: float, seed: int = 7) -> np.ndarray:
    """Return the costs of `play` with a `sl.Newsvendor` for each product, so that no trust is pooled."""
    parts = []
    for k in range(len(shop.products)):
        one = Shop(shop.days, *(each[k : k + 1] for each in shop[1:]))
        parts.append(play(one, holding, shortage, "newsvendor", seed=seed + k)[0])
    return np.concatenate(parts)


def interval(costs: np.ndarray, beside: np.ndarray | None = None) -> str:
    """Return the cost of a day, or what it is as a share of others', with an interval of 95 %."""
    weeks = costs.sum(axis=0)[: costs.shape[1] // 7 * 7].reshape(-1, 7).sum(axis=1) / 7
    drawn = np.random.default_rng(0).integers(0, weeks.size, (4000, weeks.size))
    if beside is None:
        found, digits = weeks[drawn].mean(axis=1), ",.0f"
        mean = costs.sum(axis=0).mean()
    else:
        others = beside.sum(axis=0)[: weeks.size * 7].reshape(-1, 7).sum(axis=1) / 7
        found, digits = weeks[drawn].sum(axis=1) / others[drawn].sum(axis=1), ".3f"
        mean = costs.sum() / beside.sum()
    low, high = np.quantile(found, [0.025, 0.975])
    return f"{mean:{digits}} ({low:{digits}} to {high:{digits}})"


def of_restaurant(costs: np.ndarray) -> str:
    """Return the cost of a dish and day: the last 185 days, all but the first 28."""
    return "  ".join(f"{costs[:, s].mean():.2f}" for s in (slice(-LAST, None), slice(FIRST, None)))


def of_bakery(costs: np.ndarray) -> str:
    """Return the cost of a day of all products: all days with its interval, the first year, the last."""
    return f"{interval(costs)}  " + "  ".join(
        f"{each.sum(axis=0).mean():,.0f}" for each in (costs[:, :365], costs[:, -365:])
    )


def contest(
    shop: Shop, holding: float, shortage: float, name: str, model: Any, kept: np.ndarray, seed: int = 7
) -> Iterator[tuple[str, str]]:
    """Play everybody, and say what it costs on some of the products."""
    rules, chain = order_rules.names(7), len(shop.products) > 7
    costs = {who: play(shop, holding, shortage, who)[0][kept] for who in rules}
    all_, ours = play(shop, holding, shortage, "newsvendor", seed=seed)
    costs["newsvendor"] = all_[kept]
    costs[name] = play(shop, holding, shortage, "model", model())[0][kept]
    costs[f"newsvendor with {name}"] = play(shop, holding, shortage, "newsvendor", model(), seed)[0][kept]
    for who, each in costs.items():
        yield who, (of_bakery if chain else of_restaurant)(each)
    ours.order(shop.days[-1] + np.timedelta64(1, "D"), shop.products)  # learns the last day
    yield (
        "its report, all products",
        f"{ours.report().paid} paid, of which the first is known; {all_.sum():,.0f} is true",
    )
    counted = slice(0 if chain else FIRST, None)
    best = min(rules, key=lambda rule: costs[rule][:, counted].sum())
    for who, beside in (("newsvendor", best), (f"newsvendor with {name}", name)):
        yield who, f"{interval(costs[who][:, counted], costs[beside][:, counted])} of {beside}"


def rows(which: str) -> Iterator[tuple[str, str]]:
    """Play everybody."""
    held, tuned = which == "held-out", which == "all"
    seed = 20261118 if held else 7
    if held or tuned or which == "restaurant":
        yaz = restaurant()
        kept = ~yaz.tuned if held else np.ones(7, np.bool_)
        for level in (0.6, 0.9) if held else (0.75,):
            yield f"restaurant, {level}", f"{kept.sum()} dishes: last {LAST} days, all days but the first {FIRST}"
            forests = partial(Forests, level, 56, yaz.x[0])
            yield from contest(yaz, 10 - 10 * level, 10 * level, "forests", forests, kept, seed)
    if held or tuned or which == "bakery":
        chain = bakery()
        kept = ~chain.tuned if held else np.ones(len(chain.products), np.bool_)
        for shortage in (1.5, 9.0) if held else (3.0, 1.0):
            level = shortage / (1 + shortage)
            yield f"bakery, {shortage:g} : 1", f"{kept.sum()} products, per day: all days, first year, last year"
            yield from contest(chain, 1.0, shortage, "LightGBM", partial(Boosted, level, 28), kept, seed)
    if which == "apart":
        yield "a newsvendor for each product", of_bakery(apart(bakery(), 1.0, 3.0))
    if tuned or which == "time":
        for products in (105, 50_000):
            yield f"a night of {products:,} products", f"{night(products):,.0f} ms of processor time"


def night(products: int) -> float:
    """Return how long `order` and `sold` of a day take, in ms of processor time, after four weeks; the least of 5."""
    rng, shop, keys = np.random.default_rng(0), sl.Newsvendor(holding=1, shortage=3, seed=7), np.arange(products)
    mean, least = rng.gamma(1.0, 60.0, products), np.inf
    days = 28 if products < 1000 else 9
    for t in range(days):
        demand = rng.poisson(mean)
        before = time.process_time()
        made = shop.order(t, keys, first=np.ceil(mean) + 1)
        shop.sold(t, np.minimum(made, demand))
        least = min(least, time.process_time() - before) if t >= days - 5 else np.inf
    return 1000 * least


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="?", default="all", choices=CHOICES)
    for name, found in rows(parser.parse_args().which):
        print(f"{name:32} {found}", flush=True)


if __name__ == "__main__":
    main()
