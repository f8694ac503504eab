"""What people give to a shop: prices, advice, first orders and past sales."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent.advice import UNNAMED
from sidelong.agent.forecasts import Forecast
from sidelong.agent.shop_columns import by_index, day_name, read_flags, read_units, refuse
from sidelong.checks import check_number, short
from sidelong.errors import AdviceError, LearnerError, OutcomeError
from sidelong.keys import read_keys
from sidelong.tables import as_list, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sidelong.keys import Key


_DEAREST = 1e15  # so that no sum of costs is infinite


class PastSales(NamedTuple):
    """Rows of a table of past sales."""

    day: np.ndarray
    is_date: bool  #: whether days are dates
    products: list[Key]
    sold: np.ndarray
    short: np.ndarray  #: whether at least so many were wanted, and not exactly so many


def read_prices(name: str, given: Any) -> float | dict[Key, float]:
    """Return one price, or a price by product."""
    if isinstance(given, Mapping) or hasattr(given, "items"):
        prices = {_plain_key(key): price for key, price in given.items()}
        if not prices:
            raise LearnerError(f"{name} has no prices: give one number, or a price for each product.")
        return {key: _price(f"{name} of {short(key)}", price) for key, price in prices.items()}
    return _price(name, given)


def _price(name: str, given: Any) -> float:
    return check_number(LearnerError, name, given, least=0, most=_DEAREST)


def _plain_key(key: Any) -> Any:
    return key.item() if hasattr(key, "item") else key


def read_advice(advice: Any, products: list[Key], known: Collection[Key]) -> dict[str, tuple[np.ndarray, str]]:
    """Return a number for each product by the name of each adviser, and of which kind it is.

    A dict of numbers is by product: it must name one of `products`, or of others that are `known`. A table has a column
    for each adviser.
    """
    if advice is None:
        return {}
    names = names_of(advice)
    if names is not None and not isinstance(advice, Mapping):
        advice = {name: advice[name] for name in names}  # a table with a column for each adviser
    named = isinstance(advice, Mapping) and all(isinstance(each, str) for each in advice)
    by_name = (
        advice
        if named and not all(np.isscalar(each) or each is None for each in advice.values())
        else {UNNAMED: advice}
    )
    made = {}
    for name, each in by_name.items():
        if not name:
            raise AdviceError("The name of an adviser is text, not ''.")
        kind = each.kind if isinstance(each, Forecast) else "quantile"
        values = by_index(
            f"The advice of {name!r}", each.values if isinstance(each, Forecast) else each, products, AdviceError
        )
        if isinstance(values, Mapping):
            _check_some_product(name, values, products, known, alone=each is advice)
        if values is not None:
            made[name] = read_units(f"The advice of {name!r}", values, products, AdviceError, whole=False), kind
    return made


def _check_some_product(
    name: str, by_product: Mapping[Any, Any], products: list[Key], known: Collection[Key], *, alone: bool
) -> None:
    """Refuse advice in which no product is one that there is; `alone` says that its adviser was not named."""
    if not by_product or not set(by_product).isdisjoint(products) or not set(by_product).isdisjoint(known):
        return
    other = next(iter(by_product))
    if not alone:
        raise AdviceError(f"The advice of {name!r} is by product, and there is no product {short(other)}.")
    raise AdviceError(
        f"advice that is a dict of numbers is by product, and there is no product {short(other)}. Give the advice "
        f"of somebody of that name as a column, or as a dict by product: {{{other!r}: [...]}}."
    )


def read_first(first: Any, products: list[Key]) -> np.ndarray:
    """Return the first order of each product, NaN where none is given."""
    if first is None:
        return np.full(len(products), np.nan)
    if not hasattr(first, "__len__"):
        first = [first] * len(products)
    return np.asarray(np.rint(read_units("The first order", first, products, AdviceError, whole=False)))


def read_history(history: Any, read_day: Callable[[Any], tuple[int, bool]]) -> PastSales:
    """Return the rows of a table of past sales whose sales are known."""
    names = names_of(history)
    if names is None or not {"date", "product", "sold"} <= set(names):
        raise OutcomeError(
            f"history must be a table with the columns date, product and sold, not {short(names or history)}. Read a "
            f"file first, as with pandas.read_csv, and give columns of another name these names."
        )
    products = read_keys(history["product"])
    days = [read_day(each) for each in as_list(history["date"])]
    if len({is_date for _, is_date in days}) > 1:
        raise OutcomeError("The column date has dates and whole numbers. Use one kind.")
    # As an array: a row belongs to the product beside it, whatever the index of the table says.
    columns = {name: history[name] for name in {"sold", "order", "ran_out"}.intersection(names)}
    columns = {name: each.to_numpy() if hasattr(each, "to_numpy") else each for name, each in columns.items()}
    sold = read_units("The sales", columns["sold"], products, OutcomeError, whole=True)
    made = sold + 1.0
    if "order" in names:
        given = read_units("The order", columns["order"], products, OutcomeError, whole=True)
        made = np.where(np.isnan(given), made, given)
        refuse(
            ~(sold <= made) & ~np.isnan(sold),
            OutcomeError,
            lambda at: f"{sold[at]:g} of {short(products[at])} were sold on a day on which {made[at]:g} were ordered.",
        )
    flags = (
        read_flags("ran_out", columns["ran_out"], products, OutcomeError)
        if "ran_out" in names
        else np.full(sold.size, -1)
    )
    if "order" in names:
        refuse(
            (flags == 1) & (sold < given),
            OutcomeError,
            lambda at: f"ran_out of {short(products[at])} is True on a day with {sold[at]:g} of {given[at]:g} sold.",
        )
    known = np.flatnonzero(~np.isnan(sold))
    day = np.array([each for each, _ in days], np.int64)[known]
    of, is_date = [products[at] for at in known.tolist()], bool(days) and days[0][1]
    pairs = list(zip(day.tolist(), of, strict=True))
    if len(set(pairs)) < len(pairs):
        (when, product), _ = Counter(pairs).most_common(1)[0]
        raise OutcomeError(
            f"{short(product)} has two rows for {day_name(when, is_date=is_date)}. Give one for each day."
        )
    out = np.where(flags < 0, sold >= made, flags == 1)
    return PastSales(day, is_date, of, sold[known], out[known])
