"""Columns of a shop as people have them: days, and numbers by product."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import as_float, is_whole, short
from sidelong.errors import FamilyError, SidelongError
from sidelong.keys import read_keys
from sidelong.tables import as_list, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sidelong.keys import Key

MOST_UNITS = 2**31  #: of a product in a day
_DIGITS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])")  # of a year, a month and a day
FAR = 2**31  #: days from 1970, or from day 0


def read_day(date: Any) -> tuple[int, bool]:
    """Return a day as a number, and whether it is a date: those count from 1970, whole numbers as they are."""
    if is_whole(date) and _DIGITS.fullmatch(str(date)):
        raise FamilyError(
            f"date is {date}, which looks like a date. Give it as text, '2026-11-18', since whole numbers count days."
        )
    if is_whole(date) and not isinstance(date, np.bool_) and abs(int(date)) <= FAR:
        return int(date), False
    try:
        short_text = isinstance(date, str) and len(date) < len("2026-11-18")  # NumPy takes a month for its first day
        if isinstance(date, str | dt.date | np.datetime64) and not short_text:
            plain: Any = date.date() if isinstance(date, dt.datetime) else date
            day = np.datetime64(plain, "D")
            if not np.isnat(day) and abs(day.astype(np.int64)) <= FAR:
                return int(day.astype(np.int64)), True
    except (TypeError, ValueError):
        pass
    raise FamilyError(
        f"date must be a date, such as '2026-11-18', or a whole number that counts days, not {short(date)}."
    )


def day_name(day: int, *, is_date: bool) -> str:
    """Return a day for a message or a table."""
    return str(np.datetime64(day, "D")) if is_date else str(day)


def read_products(products: Any) -> list[Key]:
    """Return products, each once."""
    listed = read_keys(products)
    if len(set(listed)) < len(listed):
        seen: set[Key] = set()
        twice = next(key for key in listed if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise FamilyError(f"The product {short(twice)} is given twice. Give each product once.")
    return listed


def by_product(
    what: str, given: Any, products: Sequence[Key], error: type[SidelongError], *, only: bool
) -> list[Any] | np.ndarray:
    """Return what is given for each product, None where nothing is: from a mapping, or a column in their order.

    Args:
        what: what messages call it, such as "sales".
        given: a mapping by product, or a column. A pandas.Series is read by its index if that names products.
        products: those there is a row for.
        error: what is raised.
        only: whether a mapping must not name other products.
    """
    given = by_index(what, given, products, error)
    if isinstance(given, Mapping):
        if only:
            known = set(products)
            for product in given:
                if product not in known:
                    raise error(f"{what}: no order of {short(product)} for that day is open.")
        return [given.get(product) for product in products]
    if (names := names_of(given)) is not None:
        raise error(f"{what} must be a column, or a dict by product, and this is a table with {short(names)}.")
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise error(f"{what} must be a column, or a dict by product, not {short(given)}.")
    if len(given) != len(products):
        raise error(f"{what} must have a value for each of the {len(products):,} products, and has {len(given):,}.")
    given = given.to_numpy() if hasattr(given, "to_numpy") else given
    return given if isinstance(given, np.ndarray) and given.dtype.kind in "iuf" and given.ndim == 1 else as_list(given)


def by_index(what: str, given: Any, products: Sequence[Key], error: type[SidelongError]) -> Any:
    """Return a Series of pandas whose index names products as a dict, since its order may be another."""
    index = None if names_of(given) is not None else getattr(given, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex" or not products:
        return given
    if getattr(index, "nlevels", 1) > 1:
        raise error(f"{what} must have an index of products alone, not of {short(list(index.names))}: use droplevel.")
    labels = as_list(index)
    named = (
        all(isinstance(each, str) for each in labels) if isinstance(products[0], str) else set(labels) <= {*products}
    )
    if not named:
        return given
    made = dict(zip(labels, as_list(given), strict=True))
    if len(made) < len(labels):
        twice = next(each for k, each in enumerate(labels) if each in labels[:k])
        raise error(f"{what} of {short(twice)}: there are two. Give one for each product.")
    return made


def read_units(
    what: str, given: Any, products: Sequence[Key], error: type[SidelongError], *, whole: bool, only: bool = False
) -> np.ndarray:
    """Return units of each product, NaN where none are given; what is negative or no number is refused."""
    listed = by_product(what, given, products, error, only=only)
    if isinstance(listed, np.ndarray):
        units = listed.astype(np.float64)
        none = np.isnan(units)
    else:
        units = np.array([as_float(each) for each in listed], np.float64)
        none = np.array([_is_none(each) for each in listed], np.bool_)
    wrong = ~none & ~((units >= 0) & (units <= MOST_UNITS))
    if whole:
        wrong |= ~none & (units != np.rint(units))
    refuse(
        wrong,
        error,
        lambda at: (
            f"{what} of {short(products[at])} must be a {'whole ' * whole}number from 0"
            f"{f' to {MOST_UNITS:,}' * bool(MOST_UNITS < units[at] < np.inf)}, not {short(listed[at])}."
        ),
    )
    return units


def read_flags(what: str, given: Any, products: Sequence[Key], error: type[SidelongError]) -> np.ndarray:
    """Return 1 for True, 0 for False and -1 where nothing is given."""
    listed = as_list(by_product(what, given, products, error, only=True))
    wrong = np.array([not (_is_none(each) or isinstance(each, bool | np.bool_)) for each in listed], np.bool_)
    refuse(wrong, error, lambda at: f"{what} of {short(products[at])} must be True or False, not {short(listed[at])}.")
    return np.array([-1 if _is_none(each) else int(each) for each in listed], np.int8)


def refuse(wrong: np.ndarray, error: type[SidelongError], message: Callable[[int], str]) -> None:
    """Raise with the message for the first product that is wrong, if there is one."""
    if wrong.any():
        raise error(message(int(np.argmax(wrong))))


def _is_none(value: Any) -> bool:
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in {"NAType", "NaTType"}
    )
