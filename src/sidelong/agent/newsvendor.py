"""Orders for a shop: how much of each product, day after day, from sales alone.

On each day the built-in rules of `order_rules` and whoever else advises say how much they would order. Their blend is
the mean of all, weighted by what each would have cost of late. A `Family`, with one key for each product and trust that
all products learn together, then decides whether to follow the blend, somebody whom you brought, or what it has found
out itself: which multiple of the blend is cheapest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sidelong.agent import order_arms, order_rules, shop_file, state_file
from sidelong.agent.family import Family
from sidelong.agent.newsvendor_report import NewsvendorReport
from sidelong.agent.ordered_day import OrderedDay, by_part
from sidelong.agent.sales_history import SalesHistory
from sidelong.agent.shop_arguments import read_advice, read_first, read_history, read_prices
from sidelong.agent.shop_columns import MOST_UNITS, day_name, read_day, read_flags, read_products, read_units, refuse
from sidelong.agent.shop_file import BLEND, SavedShop
from sidelong.agent.shop_ledger import Ledger
from sidelong.checks import check_whole, short
from sidelong.errors import AdviceError, FamilyError, LearnerError, OutcomeError
from sidelong.graphs.families import nested
from sidelong.keys import Keys
from sidelong.outcomes.stock import revealed_by_sales

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import numpy.typing as npt

    from sidelong.keys import Key

    Prices = float | Mapping[Key, float]

#: A day whose sales have not come is given up after so many days.
PATIENCE = 35


class Newsvendor:
    """Orders for the products of a shop, day after day, in units, from sales alone.

    Args:
        holding: the cost of a unit that is left over: one price for all products, or a mapping by product, such as a
            dict or a pandas Series whose index has the products.
        shortage: the cost of a unit that was wanted but missing, in the same form.
        seed: a whole number from 0 to 2**64 - 1. The same seed and the same calls give the same orders.
        cycle: after how many days sales repeat. With 1 they do not, and rules by weekday are left out.

    Example:
        >>> import sidelong as sl
        >>> shop = sl.Newsvendor(holding=1, shortage=3, seed=7)
        >>> shop.order("2026-11-18", ["bread", "rolls"], first=[20, 60])
        array([20, 60])
        >>> shop.sold("2026-11-18", {"bread": 14, "rolls": 60})  # the rolls sold out
        >>> orders = shop.order("2026-11-19", ["bread", "rolls"], advice={"baker": [16, 70]})
    """

    def __init__(self, *, holding: Prices, shortage: Prices, seed: int = 0, cycle: int = 7) -> None:
        self._prices = {"holding": read_prices("holding", holding), "shortage": read_prices("shortage", shortage)}
        self._cycle = check_whole(LearnerError, "cycle", cycle, 1, 366)
        free = [None if isinstance(each, dict) else each for each in self._prices.values()]
        if free == [0.0, 0.0]:
            raise LearnerError("holding and shortage must not both be 0.")
        self._family = Family("glance", nested(order_arms.N_ARMS), seed=seed, pooled=True, prior=self._prior())
        self._family.rows.add_advisers((BLEND,))
        self._products = Keys()
        self._history = SalesHistory(self._cycle)
        self._names = [*order_rules.names(self._cycle), BLEND]  #: of all who have advised, the rules first
        self._ledger = Ledger(0, len(self._names))
        self._price = np.empty((0, 2))  #: holding and shortage of each product
        self._usual = np.empty(0)  #: what was last ordered of each product when somebody advised, or first
        self._days: list[OrderedDay] = []  #: those whose sales are not learned yet, the oldest first
        self._today: int | None = None  #: the last day that was ordered for
        self._is_date: bool | None = None  #: whether days are dates

    def _prior(self) -> dict[int | str, tuple[float, float]]:
        """Return what is believed of arms, with prices of an average product."""
        holding, shortage = (
            float(np.mean(list(each.values()))) if isinstance(each, dict) else each for each in self._prices.values()
        )
        return order_arms.prior(shortage / max(holding + shortage, 1e-300))

    @property
    def products(self) -> list[Key]:
        """The products that there are, in the order in which they came."""
        return list(self._products.listed)

    @property
    def seed(self) -> int:
        """The seed."""
        return self._family.seed

    @property
    def adviser_names(self) -> tuple[str, ...]:
        """The names of the built-in rules, of their blend, and of all who have advised."""
        return tuple(self._names)

    def add_prices(
        self, *, holding: Mapping[Key, float] | None = None, shortage: Mapping[Key, float] | None = None
    ) -> None:
        """Give the prices of products that are still to come, by product, if the others have theirs by product.

        Args:
            holding: what a unit that is left over costs, as for a new shop.
            shortage: what a unit that was wanted and not there costs, as for a new shop.
        """
        prices = dict(self._prices)
        for name, given in {"holding": holding, "shortage": shortage}.items():
            if given is None:
                continue
            known, more = prices[name], read_prices(name, given)
            if not isinstance(known, dict) or not isinstance(more, dict):
                raise LearnerError(
                    f"{name} must be by product, for the shop and here: it is {short(known)}, and {short(more)} is new."
                )
            there = set(self._products.listed)
            for key, price in more.items():
                if key in there and price != known[key]:
                    raise LearnerError(
                        f"{name} of {short(key)} is {known[key]:g}, and what was paid is counted with it: it cannot "
                        f"become {price:g}."
                    )
            prices[name] = known | more
        self._prices = prices

    # Orders

    def order(
        self,
        date: Any,
        products: Any,
        advice: Mapping[str, Any] | Any = None,
        *,
        first: Any = None,
    ) -> npt.NDArray[np.int64]:
        """Return how much to order of each product, in whole units.

        The sales of earlier days that were reported are learned now. The same products again for the same date get the
        same orders.

        Args:
            date: the day of the sales: a date, ISO text, or a whole number that counts days; not before the last one.
            products: text or whole numbers: a list, an array or a column, each product once.
            advice: what others would order, in units: a dict from the name of an adviser to a column, a dict by product
                or a `Forecast`; NaN or None for silence. Or one of these without a name, or a table with a column for
                each adviser.
            first: what to order of products without sales and advice: a number, a column, or a dict by product. It is
                ignored for all others.
        """
        day, is_date = self._read_day(date)
        listed = read_products(products)
        given = read_advice(advice, listed, self._products.listed)
        self._check_names(given)
        begin = read_first(first, listed)
        row = self._products.find(listed)
        new = self._products.new_among(listed, row)
        prices = self._prices_of(new)
        if day < self._history.today:
            which = "orders" if self._history.today == self._today else "sales"
            done = "made" if which == "orders" else "learned"
            raise FamilyError(
                f"The {which} of {self._say(self._history.today)} were {done} already, and {self._say(day)} is before "
                f"that. Orders go forward in time; past sales are for learn."
            )
        known = row >= 0
        known[known] = ~np.isnan(self._usual[row[known]])
        for each, _ in given.values():
            known |= ~np.isnan(each)
        refuse(
            ~known & np.isnan(begin),
            AdviceError,
            lambda at: (
                f"Nothing is known of {short(listed[at])}: no sales, no advice and no first order. Give its history to "
                f"learn, advice for it, or first=..., a first order in units."
            ),
        )
        if self._today is None or day > self._today:
            self._learn_reports(day)
            self._today, self._is_date = day, is_date
            self._history.move_to(day)
        self._add_advisers([name for name in given if name not in self._names])
        if new:
            self._add(new, prices)
            row = self._products.find(listed)
        placed = self._places(day)
        missing = np.flatnonzero([each not in placed for each in row.tolist()])
        if missing.size:
            self._order(
                day, row[missing], {name: (each[missing], kind) for name, (each, kind) in given.items()}, begin[missing]
            )
            placed = self._places(day)
        return np.array([placed[each] for each in row.tolist()], np.int64)

    def _order(self, day: int, row: np.ndarray, given: dict[str, tuple[np.ndarray, str]], first: np.ndarray) -> None:
        """Decide how much to order of products that were not ordered on this day."""
        advice, at = self._advice(day, row, given), self._names.index(BLEND)
        usual = np.where(np.isnan(self._usual[row]), first, self._usual[row])
        blend = self._blend(advice)
        advice[:, at] = reference = np.minimum(np.where(np.isnan(blend), usual, blend), MOST_UNITS)
        advice = np.rint(advice)
        asked = [at, *range(at + 1, len(self._names))]
        dear = self._ledger.dear(row)[:, asked]
        dear[:, 0] = False  # somebody must advise
        orders, arms = order_arms.place(np.where(dear, np.nan, advice[:, asked]), reference)
        rows = {}
        for m, arm in zip(asked, arms.T, strict=True):
            rows[self._names[m]] = said = np.zeros(orders.shape)
            said[np.flatnonzero(arm >= 0), arm[arm >= 0]] = 1.0
        drawn = self._family.rows.ask(row, None, rows)
        chosen = np.where(drawn.rounds == 1, arms[:, 0], drawn.arms)  # a first order is what is advised
        nothing = np.full(row.size, np.nan), np.full(row.size, -1, np.int8)
        part = OrderedDay(day, row, drawn.rounds, drawn.arms, chosen, orders, advice, np.empty(0), *nothing)
        part.made = part.ordered
        # Where nobody knows anything, orders are multiples of the same number, and not each of the one before.
        self._usual[row] = np.maximum(np.where(np.isnan(blend), reference, part.made), 1.0)
        self._days.append(part)

    def _advice(self, day: int, row: np.ndarray, given: dict[str, tuple[np.ndarray, str]]) -> np.ndarray:
        """Return what each adviser would order, a column for each name; the blend is silent yet."""
        level = self._level(row)
        made = order_rules.advise(self._history, row, day, level)
        self._history.expect(day, row, made.pop("base"))
        for name, (values, kind) in given.items():
            made[name] = values
            if kind == "mean":
                past = self._history.last(row, day, order_rules.RATIO_DAYS, name)
                scaled = order_rules.ratio(past, values, level)
                made[name] = np.where(np.isnan(scaled), values, scaled)
                self._history.expect(day, row, values, name)
        silent = np.full(row.size, np.nan)
        columns = [made.get(name, silent) for name in self._names]
        return np.asarray(np.minimum(np.stack(columns, axis=1), MOST_UNITS), np.float64)

    def _blend(self, advice: np.ndarray) -> np.ndarray:
        """Return the mean of all advice, by weight; NaN where everybody is silent."""
        speaks = ~np.isnan(advice)
        weights = np.where(speaks, self._ledger.weights(), 0.0)
        sums = (np.where(speaks, advice, 0.0) * weights).sum(axis=1)
        return np.where(speaks.any(axis=1), sums / np.maximum(weights.sum(axis=1), 1e-300), np.nan)

    # What happened

    def made(self, date: Any, orders: Any) -> None:
        """Say that other quantities were made or delivered than were ordered, before the sales of the day are learned.

        Args:
            date: a day that was ordered for.
            orders: whole units, as a dict by product, or a column with all products of that day; None or NaN where it
                was as ordered.
        """
        parts, products = self._ordered_on(date)
        made = read_units("The quantity made", orders, products, OutcomeError, whole=True, only=True)
        sold, flags = (np.concatenate([getattr(part, name) for part in parts]) for name in ("sold", "ran_out"))
        refuse(
            sold > made,
            OutcomeError,
            lambda at: (
                f"{sold[at]:g} of {short(products[at])} were sold, and no more than were made can be: {made[at]:g}."
            ),
        )
        refuse(
            (flags == 1) & (sold < made),
            OutcomeError,
            lambda at: (
                f"{short(products[at])} ran out, as sold was told, after {sold[at]:g}, and {made[at]:g} would not have "
                f"been sold out. Correct its sales first."
            ),
        )
        for part, each in by_part(parts, made):
            part.made = np.where(np.isnan(each), part.made, each)

    def sold(self, date: Any, sales: Any, ran_out: Any = None) -> None:
        """Report what was sold. It is learned by the next `order` for a later day, and may be corrected until then.

        Args:
            date: a day that was ordered for.
            sales: whole units, as a dict by product, or a column with all products of that day in the order in which
                they were ordered; None or NaN where they are not known yet.
            ran_out: whether somebody wanted more than was there, if you know, as a dict by product or a column. False
                says that the demand was what was sold, even if nothing was left. If not given, what was sold to the
                last unit ran out.
        """
        parts, products = self._ordered_on(date)
        sold = read_units("The sales", sales, products, OutcomeError, whole=True, only=True)
        flags = (
            np.full(sold.size, -1, np.int8)
            if ran_out is None
            else read_flags("ran_out", ran_out, products, OutcomeError)
        )
        made = np.concatenate([part.made for part in parts])
        refuse(
            sold > made,
            OutcomeError,
            lambda at: (
                f"The sales of {short(products[at])} are {sold[at]:g}, and no more than {made[at]:g} were there. If "
                f"more were made, say so first: made({date!r}, {{{products[at]!r}: ...}})."
            ),
        )
        refuse(
            (flags == 1) & (sold < made),
            OutcomeError,
            lambda at: (
                f"ran_out of {short(products[at])} is True, but {made[at] - sold[at]:g} of {made[at]:g} were left."
            ),
        )
        for part, each, said in by_part(parts, sold, flags):
            told = ~np.isnan(each)
            part.sold = np.where(told, each, part.sold)
            part.ran_out = np.where(told, said, part.ran_out)

    def learn(self, history: Any) -> int:
        """Learn past sales of products that were never ordered here; return how many were learned.

        The rules then use them, and the blend knows how good each rule would have been on the last days.

        Args:
            history: a table with the columns date, product and sold, and a row for each product and day. With a column
                order, days on which all of it was sold count as sold out; a column ran_out says so by True and False.
                Without either, sales are taken as demand.
        """
        past = read_history(history, self._read_day)
        if not past.products:
            return 0
        keys = list(dict.fromkeys(past.products))
        row = self._products.find(keys)
        new = self._products.new_among(keys, row)
        prices = self._prices_of(new)
        ordered = {each for part in self._days for each in part.row.tolist()}
        refuse(
            np.array([at >= 0 and (at in ordered or self._ledger.paid[at, 0] > 0) for at in row.tolist()], np.bool_),
            OutcomeError,
            lambda at: f"{short(keys[at])} was ordered here already, so that its sales are for sold, not for learn.",
        )
        self._is_date = past.is_date
        if new:
            self._add(new, prices)
        self._replay(past.day, self._products.find(past.products), past.sold, past.short)
        return len(past.products)

    def _replay(self, day: np.ndarray, row: np.ndarray, sold: np.ndarray, short: np.ndarray) -> None:
        """Write past sales, day after day, and let the blend know what the rules would have ordered."""
        for each in np.unique(day[day > day.max() - self._history.days]).tolist():
            on = np.flatnonzero(day == each)
            rows = row[on]
            self._history.move_to(each)
            advice, demand = np.rint(self._advice(each, rows, {})), order_rules.raised(sold[on], short[on])
            blend = self._blend(advice)
            some = ~np.isnan(blend)
            if some.any():
                seen = np.zeros(np.count_nonzero(some), np.bool_)
                self._ledger.compare(blend[some], demand[some], seen, self._price[rows[some]], advice[some])
            self._history.write(each, rows, sold[on], short[on])
            self._usual[rows] = np.maximum(demand, 1.0)

    def _learn_reports(self, day: int) -> None:
        """Learn all sales that were reported, and give up those that will hardly come any more."""
        left = []
        for part in self._days:
            told = ~np.isnan(part.sold)
            if told.any():
                self._learn_part(part.some(told))
            if not told.all():
                waits = part.some(~told)
                if day - part.day > PATIENCE:
                    self._family.rows.cancel(waits.row, waits.round, lost=True)
                else:
                    left.append(waits)
        self._days = left

    def _learn_part(self, part: OrderedDay) -> None:
        """Learn the sales of some products of a day."""
        closed = (part.made == 0) & (part.ordered > 0)  # nothing could be sold
        if closed.any():
            self._family.rows.cancel(part.row[closed], part.round[closed])
            part = part.some(~closed)
        made, sold = part.made, part.sold
        short = np.where(part.ran_out < 0, sold >= made, part.ran_out == 1)
        later = len(self._names) - part.advice.shape[1]  # advisers who have come since
        advice = np.pad(part.advice, ((0, 0), (0, later)), constant_values=np.nan)
        self._history.write(part.day, part.row, sold, short)
        self._ledger.add(part.row, made, sold, short, self._price[part.row], advice)
        reach = (part.orders <= made[:, None]).sum(axis=1) - 1  # the highest arm whose order was reached
        arm = np.where(made == part.ordered, part.arm, reach)
        nothing = (arm < 0) | (made == 0)  # not even the lowest arm, or an order that shows no demand
        if nothing.any():
            self._family.rows.cancel(part.row[nothing], part.round[nothing], lost=True)
        changed = (arm != part.drawn) & ~nothing
        if changed.any():
            self._family.rows.override(part.row[changed], part.round[changed], arm[changed])
        if nothing.all():
            return
        part, arm, sold, short = part.some(~nothing), arm[~nothing], sold[~nothing], short[~nothing]
        first = np.minimum((part.orders <= sold[:, None]).sum(axis=1), arm)  # those from it on reveal all
        seen = revealed_by_sales(part.orders, arm, sold, np.where(short, -1, first), self._level(part.row)[:, None])
        self._family.rows.tell(part.row, part.round, seen.losses, seen.graph)

    # What is known

    def report(self, before: str | None = None) -> NewsvendorReport:
        """Return what was paid, what each adviser would have paid, and who was followed, over all learned days.

        Args:
            before: the name of the adviser whose cost counts as that of before, for what was saved. If not given, the
                first adviser whom you brought, or else the rule "quantile".
        """
        own = self._names[self._names.index(BLEND) + 1 :]
        before = before if before is not None else own[0] if own else self._names[0]
        if before not in self._names:
            raise AdviceError(f"There is no adviser {short(before)}. Those there are: {', '.join(self._names)}.")
        weights = self._ledger.weights()
        weights[self._names.index(BLEND)] = 0.0
        return NewsvendorReport(
            self.products,
            self._names,
            self._ledger.paid,
            self._ledger.advised,
            self._price,
            weights / weights.sum(),
            before,
        )

    # Products, prices and days

    def _add(self, new: list[Key], prices: np.ndarray) -> None:
        self._family.add(new)
        self._products.add(new)
        self._history.add(len(new))
        self._ledger.widen(len(self._products), len(self._names))
        self._price = np.concatenate([self._price, prices])
        self._usual = np.append(self._usual, np.full(len(new), np.nan))

    def _add_advisers(self, new: list[str]) -> None:
        if new:
            self._family.rows.add_advisers(tuple(new))
            self._names += new
            self._ledger.widen(len(self._products), len(self._names))

    def _check_names(self, given: Mapping[str, Any]) -> None:
        rules = self._names[: self._names.index(BLEND) + 1]
        for name in given:
            if name in rules:
                raise AdviceError(f"{name!r} is the name of a built-in adviser. Give yours another name.")
        own = len({*self._names, *given}) - len(rules)
        if own >= order_arms.MOST_ADVISERS:
            raise AdviceError(
                f"At most {order_arms.MOST_ADVISERS - 1} advisers of your own are taken, and this would be {own}. Use "
                f"one name for each source of advice, not one for each day."
            )

    def _prices_of(self, new: list[Key]) -> np.ndarray:
        """Return holding and shortage of each product."""
        columns = []
        for name, prices in self._prices.items():
            if isinstance(prices, dict):
                if lacking := [key for key in new if key not in prices]:
                    raise FamilyError(
                        f"{name} has no price for {short(lacking[0])}. Give it first: add_prices({name}=...)."
                    )
                columns.append([prices[key] for key in new])
            else:
                columns.append([prices] * len(new))
        table = np.array(columns, np.float64).reshape(2, len(new)).T
        refuse(
            table.sum(axis=1) == 0,
            FamilyError,
            lambda at: f"holding and shortage of {short(new[at])} must not both be 0.",
        )
        return table

    def _level(self, row: np.ndarray) -> np.ndarray:
        """Return the share of days on which nothing should run out."""
        holding, shortage = self._price[row].T
        return np.asarray(shortage / (holding + shortage))

    def _read_day(self, date: Any) -> tuple[int, bool]:
        day, is_date = read_day(date)
        if self._is_date is not None and is_date != self._is_date:
            kinds = ("a date", "a whole number") if self._is_date else ("a whole number", "a date")
            raise FamilyError(f"The days of this shop are each {kinds[0]}, and {short(date)} is {kinds[1]}.")
        return day, is_date

    def _say(self, day: int) -> str:
        return day_name(day, is_date=bool(self._is_date))

    def _places(self, day: int) -> dict[int, float]:
        """Return what was ordered on a day, by the row of the product."""
        parts = [part for part in self._days if part.day == day]
        return {row: q for part in parts for row, q in zip(part.row.tolist(), part.ordered.tolist(), strict=True)}

    def _ordered_on(self, date: Any) -> tuple[list[OrderedDay], list[Key]]:
        """Return what was ordered on a day and is not learned yet, and its products."""
        day, _ = self._read_day(date)
        parts = [part for part in self._days if part.day == day]
        if not parts:
            raise OutcomeError(
                f"No orders of {short(date)} are open: none were made, or their sales were learned by a later order."
            )
        return parts, [self._products.listed[row] for part in parts for row in part.row.tolist()]

    # Files

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as the header and the arrays of a state file."""
        return shop_file.write(
            SavedShop(
                self._prices,
                self._cycle,
                self._names,
                self._today,
                self._is_date,
                self._family,
                self._products,
                self._history,
                self._ledger,
                self._price,
                self._usual,
                self._days,
            )
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a file, from which `load` resumes as if the shop had never stopped."""
        state_file.write(path, *self.contents())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Resume from a file that `save` wrote."""
        return cls.from_contents(*state_file.read(path), path)

    @classmethod
    def from_contents(cls, header: dict[str, Any], arrays: dict[str, np.ndarray], path: str | PathLike[str]) -> Self:
        """Resume from what `contents` returned; messages call the place where it was kept `path`."""
        shop = cls.__new__(cls)
        for name, part in shop_file.read(path, header, arrays)._asdict().items():
            setattr(shop, f"_{name}", part)
        return shop

    def __repr__(self) -> str:
        when = "" if self._today is None else f", ordered for {self._say(self._today)}"
        return f"<Newsvendor: {len(self._products):,} products{when}>"
