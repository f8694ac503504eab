"""What the state file of a `Newsvendor` holds, and how it is read back.

::

    header        kind "newsvendor" and its version; prices, cycle, names of advisers, the last day that was ordered
                  for, whether days are dates, the last day of the history, whose expectations it has, and the days
                  whose sales are not learned
    family        the state file of the `Family`, as bytes: it has the products and the pending decisions
    price, usual  a row for each product
    history.*     sold and ran_out, and for each who expected something what was: a row for each product
    ledger.*      paid, advised and lately
    day.I.*       the columns of an `OrderedDay`

What is read must have the type and the shape that a new shop would have, and lie in the range that is stated here, so
that a file that somebody altered is refused, and does not end in an order that no shop would have made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent import order_arms, order_rules, state_file
from sidelong.agent.codec import reading
from sidelong.agent.family import Family
from sidelong.agent.ordered_day import COLUMNS, OrderedDay
from sidelong.agent.sales_history import NEVER, OWN, SalesHistory
from sidelong.agent.shop_arguments import read_prices
from sidelong.agent.shop_columns import FAR, MOST_UNITS
from sidelong.agent.shop_ledger import Ledger
from sidelong.agent.state_file import FINITE
from sidelong.checks import check_whole
from sidelong.errors import StateFileError
from sidelong.graphs.families import nested
from sidelong.keys import Keys

if TYPE_CHECKING:
    from sidelong.keys import Key

    Header = dict[str, Any]
    Arrays = dict[str, np.ndarray]
    Prices = dict[str, float | dict[Key, float]]

BLEND = "blend"  #: the name of the mean of all advice
_VERSION = 1
_MOST = order_arms.SPAN * MOST_UNITS  # units: an arm may be a multiple of the largest advice
#: What the families of two shops need not have in common.
_DIFFER = {"learner_version", "options", "seed", "tag", "graphs"}
#: What each column of a day is like, and its range; with NaN, what is not known is NaN.
_DAY: dict[str, tuple[np.ndarray, float, float]] = {
    "row": (np.zeros((), np.int64), 0, 2**62),
    "round": (np.zeros((), np.int64), 1, 2**62),
    "drawn": (np.zeros((), np.int64), 0, order_arms.N_ARMS - 1),
    "arm": (np.zeros((), np.int64), 0, order_arms.N_ARMS - 1),
    "orders": (np.zeros(order_arms.N_ARMS), 0, _MOST),
    "made": (np.zeros(()), 0, _MOST),
    "ran_out": (np.zeros((), np.int8), -1, 1),
}


class SavedShop(NamedTuple):
    """All that is saved."""

    prices: Prices
    cycle: int
    names: list[str]
    today: int | None
    is_date: bool | None
    family: Family
    products: Keys
    history: SalesHistory
    ledger: Ledger
    price: np.ndarray
    usual: np.ndarray
    days: list[OrderedDay]


def write(saved: SavedShop) -> tuple[Header, Arrays]:
    """Return the header and the arrays."""
    header: Header = {
        "kind": "newsvendor",
        "newsvendor": _VERSION,
        "prices": {
            name: [list(pair) for pair in each.items()] if isinstance(each, dict) else each
            for name, each in saved.prices.items()
        },
        "cycle": saved.cycle,
        "names": saved.names,
        "today": saved.today,
        "is_date": saved.is_date,
        "history_today": saved.history.today,
        "expected": list(saved.history.expected),
        "days": [part.day for part in saved.days],
    }
    family = np.frombuffer(state_file.pack(*saved.family.contents()), np.uint8)
    arrays: Arrays = {"family": family, "price": saved.price, "usual": saved.usual}
    arrays |= {"history.sold": saved.history.sold, "history.ran_out": saved.history.ran_out}
    arrays |= {f"history.expected.{k}": each for k, each in enumerate(saved.history.expected.values())}
    arrays |= {f"ledger.{name}": getattr(saved.ledger, name) for name in ("paid", "advised", "lately")}
    for k, part in enumerate(saved.days):
        arrays |= {f"day.{k}.{name}": getattr(part, name) for name in COLUMNS}
    return header, arrays


def read(path: Any, header: Header, arrays: Arrays) -> SavedShop:
    """Return what `write` was given; `path` is what messages call the file."""
    if header.get("kind") != "newsvendor" or header.get("newsvendor") != _VERSION:
        raise StateFileError(
            f"{path} was not saved by a Newsvendor of this version: it holds {header.get('kind', 'no kind')!r}."
        )
    with reading(path):
        return _ShopReader(path, header, arrays).read()


class _ShopReader:
    """Reads one file, and refuses what no shop would have saved."""

    def __init__(self, path: Any, header: Header, arrays: Arrays) -> None:
        self._path, self._header, self._arrays = path, header, arrays

    def read(self) -> SavedShop:
        header = self._header
        prices = self._prices()
        cycle = check_whole(StateFileError, f"{self._path}: cycle", header["cycle"], 1, 366)
        names = self._names(cycle)
        is_date = header["is_date"]
        self._must(is_date is None or isinstance(is_date, bool), "is_date that is neither true nor false")
        today = None if header["today"] is None else self._day("today", header["today"])
        self._must(today is None or is_date is not None, "a day of which it does not say whether it is a date")
        family = self._family(names[names.index(BLEND) :])
        n, M = len(family), len(names)
        price = self._array("price", np.zeros(2), (n,), 0, FINITE)
        self._must(bool((price.sum(axis=1) > 0).all()), "a product without prices")
        usual = self._array("usual", np.zeros(()), (n,), 0, _MOST, or_nan=True)
        history = self._history(cycle, n, names[names.index(BLEND) + 1 :])
        ledger = Ledger(n, M)
        ledger.paid = self._array("ledger.paid", np.zeros(8), (n,), 0, FINITE)
        ledger.advised = self._array("ledger.advised", np.zeros((M, 6)), (n,), -FINITE, FINITE)
        ledger.lately = self._array("ledger.lately", np.zeros((M, 6)), (), -FINITE, FINITE)
        days = [self._ordered(k, day, n, M) for k, day in enumerate(header["days"])]
        self._must(not days or (today is not None and max(each.day for each in days) <= today), "a day after today")
        self._must(today is None or history.today >= today, "no column for today")
        self._check_pending(family, days)
        products = Keys()
        products.add(family.keys)
        return SavedShop(prices, cycle, names, today, is_date, family, products, history, ledger, price, usual, days)

    def _must(self, holds: bool, what: str) -> None:  # noqa: FBT001  # private, and reads as a sentence
        if not holds:
            raise StateFileError(f"{self._path} holds {what}, which no shop has saved. Load an earlier copy.")

    def _array(
        self, name: str, like: np.ndarray, rows: tuple[int, ...], low: float, high: float, *, or_nan: bool = False
    ) -> np.ndarray:
        found = self._arrays.get(name)
        if found is None or found.dtype != like.dtype or found.shape != (*rows, *like.shape):
            raise StateFileError(f"{self._path} holds no {name} that fits its products. Load an earlier copy.")
        inside = (found >= low) & (found <= high) | (np.isnan(found) if or_nan else False)
        self._must(bool(inside.all()), f"{name} outside its range, from {low:g} to {high:g}")
        return found

    def _day(self, name: str, given: Any) -> int:
        return check_whole(StateFileError, f"{self._path}: {name}", given, -FAR, FAR)

    def _prices(self) -> Prices:
        given = self._header["prices"]
        self._must(set(given) == {"holding", "shortage"}, "other prices than holding and shortage")
        return {
            name: read_prices(name, dict(given[name]) if isinstance(given[name], list) else given[name])
            for name in ("holding", "shortage")
        }

    def _names(self, cycle: int) -> list[str]:
        names = self._header["names"]
        rules = [*order_rules.names(cycle), BLEND]
        self._must(
            isinstance(names, list) and names[: len(rules)] == rules and all(isinstance(each, str) for each in names),
            "other names of advisers than those of the rules",
        )
        self._must(
            len(set(names)) == len(names) and len(names) - len(rules) < order_arms.MOST_ADVISERS, "too many advisers"
        )
        return list(names)

    def _family(self, advisers: list[str]) -> Family:
        packed = self._arrays["family"]
        self._must(packed.dtype == np.uint8 and packed.ndim == 1, "a family that is no bytes")
        header, arrays = state_file.unpack(packed.tobytes(), self._path)
        new = Family("glance", nested(order_arms.N_ARMS), pooled=True).contents()[0]
        same = {name: header[name] for name in new if name not in _DIFFER} == {
            name: new[name] for name in new if name not in _DIFFER
        }
        others = set(header) - set(new) - {"advisers"}
        self._must(same and not others and header["advisers"] == advisers, "another family than that of a shop")
        return Family.from_contents(header, arrays, self._path)

    def _history(self, cycle: int, n: int, own: list[str]) -> SalesHistory:
        history, who = SalesHistory(cycle, n), self._header["expected"]
        columns = np.zeros(history.sold.shape[1], np.float32)
        history.today = check_whole(
            StateFileError, f"{self._path}: history_today", self._header["history_today"], NEVER
        )
        history.today = history.today if history.today == NEVER else self._day("history_today", history.today)
        history.sold = self._array("history.sold", columns, (n,), 0, _MOST, or_nan=True)
        history.ran_out = self._array("history.ran_out", columns.astype(np.bool_), (n,), 0, 1)
        self._must(
            isinstance(who, list) and who[:1] == [OWN] and set(who[1:]) <= set(own) and len(set(who)) == len(who),
            "expectations of nobody",
        )
        history.expected = {
            name: self._array(f"history.expected.{k}", columns, (n,), 0, 1e30, or_nan=True)
            for k, name in enumerate(who)
        }
        return history

    def _ordered(self, k: int, day: Any, n: int, M: int) -> OrderedDay:
        """Return a day that is not learned."""
        name, advice = f"day.{k}", self._arrays[f"day.{k}.advice"]
        rows, columns = self._arrays[f"{name}.row"].size, advice.shape[1]
        self._must(0 < columns <= M, f"{name}.advice of more than there are")
        made = {
            each: self._array(f"{name}.{each}", like, (rows,), low, high) for each, (like, low, high) in _DAY.items()
        }
        made["advice"] = self._array(f"{name}.advice", np.zeros(columns), (rows,), 0, _MOST, or_nan=True)
        made["sold"] = self._array(f"{name}.sold", np.zeros(()), (rows,), 0, _MOST, or_nan=True)
        part = OrderedDay(self._day(name, day), **made)
        whole = all((each == np.rint(each)).all() for each in (part.orders, part.made))
        self._must(bool(rows and whole and (part.row < n).all()), f"{name} that is no orders of its products")
        self._must(bool((np.diff(part.orders, axis=1) >= 0).all()), f"{name}.orders that do not ascend")
        self._must(bool((part.orders[:, -1] >= 1).all()), f"{name}.orders of nothing")
        known = ~np.isnan(part.sold)
        sold, stock = part.sold[known], part.made[known]
        self._must(bool(((sold == np.rint(sold)) & (sold <= stock)).all()), f"{name}.sold of more than there was")
        self._must(bool(((part.ran_out[known] < 1) | (sold == stock)).all()), f"{name}.ran_out of what was left over")
        return part

    def _check_pending(self, family: Family, days: list[OrderedDay]) -> None:
        """Refuse days that are not what the family waits for."""
        pending = family.rows.pending
        found = [np.stack([part.row, part.round, part.drawn], axis=1) for part in days]
        rows = np.concatenate(found) if found else np.empty((0, 3), np.int64)
        self._must(
            np.array_equal(rows[np.lexsort(rows.T[::-1])], np.stack(pending, axis=1)),
            "days whose decisions are not those that are pending",
        )
        twice = [(part.day, row) for part in days for row in part.row.tolist()]
        self._must(len(set(twice)) == len(twice), "a product that was ordered twice for a day")
