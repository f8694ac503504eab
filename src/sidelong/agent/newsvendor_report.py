"""What a shop paid, what each adviser would have paid, and whom it follows: a table, a figure and a page."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent.shop_ledger import (
    ADVISED,
    BESIDE,
    DAYS,
    FOLLOWED,
    GUESS,
    HIGH,
    KNOWN,
    LOW,
    MORE,
    MOST,
    ORDERED,
    OUT_DAYS,
    OUT_UNITS,
    SOLD,
)
from sidelong.checks import check_one_of
from sidelong.display.tables import data_frame, html_table, text_table
from sidelong.errors import SidelongError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from sidelong.keys import Key

_SHOWN = 20  # products in a table for people
#: On a telephone, the figure keeps a size at which it can be read, and scrolls as the tables do.
_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "div:has(>svg){overflow-x:auto}svg{min-width:32rem}"
)
_NOTES = (
    "Where something was left over, the demand was seen, and the cost is known.",
    (
        "Where a product sold out, nobody knows how many more were wanted. What was paid on such days is at least 0, "
        "and at most what it would be if as many had been wanted as were ever sold of the product on one day, or what "
        "is guessed, if that is more."
    ),
    (
        "What an adviser would have paid beyond what was paid has bounds that hold whatever was wanted. The guess "
        "takes a tenth more than was sold as the demand of a sold-out day. Advice counts as it was given, after the "
        "orders that were really made."
    ),
    (
        "The weight of an adviser is its share of the blend of them all. It was followed on a day if what was made is "
        "what it advised, whoever else advised the same."
    ),
)


class Money(NamedTuple):
    """An amount that is known within bounds."""

    low: float
    guess: float
    high: float

    def __str__(self) -> str:
        return f"{self.guess:z,.0f} ({self.low:z,.0f} to {self.high:z,.0f})"


class ReportedAdviser(NamedTuple):
    """What is known of an adviser over all products."""

    name: str
    days: int  #: of a product, with its advice
    paid: float  #: on these, as a guess where the demand was not seen
    more: Money  #: that it would have paid beyond that
    weight: float  #: in the blend, now; 0 of the blend itself
    followed: float  #: the share of these days on which what it advised was made
    verdict: str  #: "cheaper", "dearer" or "not known"


class NewsvendorReport:
    """What was paid and what was saved, over all days that are learned.

    Amounts are in the unit of the prices. ``print`` shows it as a table and a notebook as HTML; `plot` draws it, `save`
    writes a page, and `to_pandas` returns all numbers.
    """

    def __init__(
        self,
        products: Sequence[Key],
        names: Sequence[str],
        paid: np.ndarray,
        advised: np.ndarray,
        prices: np.ndarray,
        weights: np.ndarray,
        before: str,
    ) -> None:
        shortage = prices[:, 1]
        guess = paid[:, KNOWN] + paid[:, GUESS]
        if_most = paid[:, KNOWN] + shortage * (paid[:, OUT_DAYS] * paid[:, MOST] - paid[:, OUT_UNITS])
        high = np.maximum(if_most, guess)  # a product that nearly always sells out: the guess is beyond what ever sold
        place = list(names).index(before)
        sums = advised.sum(axis=0)
        self.before = before  #: the adviser whose cost counts as that of before
        self.days = int(paid[:, DAYS].sum())  #: of a product
        self.known = float(paid[:, KNOWN].sum())  #: what was paid on days whose demand was seen
        self.unseen = int(paid[:, OUT_DAYS].sum())  #: days whose demand was not
        self.paid = Money(self.known, float(guess.sum()), float(high.sum()))
        self.saved = Money(*(float(each) for each in sums[place, [LOW, MORE, HIGH]]))  #: by not following `before`
        self.advisers = [_adviser(*each) for each in zip(names, sums, weights.tolist(), strict=True)]
        own = advised[:, place]
        #: By name, a column for all products.
        self.columns: dict[str, Any] = {
            "product": list(products),
            "days": paid[:, DAYS].astype(np.int64),
            "ordered": paid[:, ORDERED],
            "sold": paid[:, SOLD],
            "sold_out": paid[:, OUT_DAYS].astype(np.int64),
            "known": paid[:, KNOWN],
            "paid": guess,
            "paid_at_most": high,
            "saved": own[:, MORE],
            "saved_at_least": own[:, LOW],
            "saved_at_most": own[:, HIGH],
        }

    def to_pandas(self, what: str = "products") -> Any:  # pandas is optional
        """Return a pandas.DataFrame with a row for each of the "products", or for each of the "advisers"."""
        if check_one_of(SidelongError, "what", what, ("products", "advisers")) == "products":
            return data_frame(self.columns)
        rows = [
            {**each._asdict(), "more": each.more.guess, "more_at_least": each.more.low, "more_at_most": each.more.high}
            for each in self.advisers
        ]
        return data_frame({name: [row[name] for row in rows] for name in rows[0]})

    def plot(self) -> Any:  # Matplotlib is optional
        """Draw what each adviser would have paid beyond what was paid; return the figure of Matplotlib."""
        from sidelong.display import figures  # noqa: PLC0415  # takes a while to load

        shown = [each for each in self.advisers if each.days]
        label = "more than was paid, % (line: for sure; point: guess)"
        left = max(1.9, 0.2 + 0.075 * max((len(each.name) for each in shown), default=0))  # inches, for the names
        chart, axes = figures.new(label, size=(3.9 + left, 1.0 + 0.35 * len(shown)), left=left)
        for place, each in enumerate(reversed(shown)):
            low, guess, high = (100 * amount / max(each.paid, 1e-300) for amount in each.more)
            axes.plot([low, high], [place, place], color=figures.colour(0), linewidth=2)
            axes.plot([guess], [place], "o", color=figures.colour(0))
        axes.axvline(0.0, color=figures.colour(1), linewidth=1)
        axes.set_yticks(range(len(shown)), [each.name for each in reversed(shown)], parse_math=False)
        return chart

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as one HTML page that needs nothing else."""
        head = (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Orders</title>\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
        )
        style = f"<style>{_STYLE}</style></head>"
        figure = self.plot()._repr_html_() if self.days else ""
        Path(path).write_text(
            f"{head}{style}\n<body><h1>Orders</h1>\n{self._body(figure)}</body></html>\n", encoding="utf-8"
        )

    def lead(self) -> list[str]:
        """Return what it says in sentences."""
        if not self.days:
            return ["No sales are learned yet: those of a day are learned by the order for a later day."]
        sure = "for sure" if self.saved.low > 0 or self.saved.high < 0 else "not for sure"
        verb, amount = (
            ("Saved", self.saved) if self.saved.guess >= 0 else ("Lost", Money(*(-x for x in self.saved[::-1])))
        )
        seen, most = self.days - self.unseen, max(self.advisers, key=lambda each: each.weight)
        return [
            f"Known to be paid: {self.known:,.0f}, for {seen:,} of {self.days:,} orders, whose demand was seen.",
            f"With the {self.unseen:,} order{'s' * (self.unseen != 1)} that sold out: {self.paid}."
            + " The upper figure holds if demand never exceeded the most that ever sold." * (self.unseen > 0),
            f"{verb} against {self.before!r}: {amount}, {sure}.",
            f"Trusted most now: {most.name!r}, with {most.weight:.0%} of the blend.",
        ]

    def _adviser_cells(self) -> tuple[list[str], list[list[str]]]:
        head = ["adviser", "days", "paid then", "more: at least", "guess", "at most", "weight", "followed", "verdict"]
        rows = [
            [
                *(each.name, f"{each.days:,}", f"{each.paid:,.0f}", *(f"{x:+z,.0f}" for x in each.more)),
                *(f"{each.weight:.2f}" if each.weight else "", f"{each.followed:.0%}", each.verdict),
            ]
            for each in self.advisers
            if each.days
        ]
        return head, rows

    def _product_cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the products for which most was paid."""
        chosen = np.argsort(-self.columns["paid"], kind="stable")[:_SHOWN]
        head = [
            "product",
            "days",
            "ordered",
            "sold",
            "sold out",
            "known",
            "paid",
            "saved: at least",
            "guess",
            "at most",
        ]
        names = ("days", "ordered", "sold", "sold_out", "known", "paid", "saved_at_least", "saved", "saved_at_most")
        rows = [
            [str(self.columns["product"][k]), *(f"{self.columns[name][k]:z,.0f}" for name in names)]
            for k in chosen.tolist()
        ]
        return head, rows

    def __str__(self) -> str:
        """Return tables for people."""
        said = "\n".join(self.lead())
        return (
            f"{said}\n\n{text_table(*self._adviser_cells())}\n\n{text_table(*self._product_cells())}"
            if self.days
            else said
        )

    def _body(self, figure: str = "") -> str:
        said = "".join(f"<p>{html.escape(line)}</p>" for line in self.lead())
        if not self.days:
            return said
        title = f"Products, the dearest {_SHOWN}" if len(self.columns["product"]) > _SHOWN else "Products"
        tables = [html_table(*self._adviser_cells(), "Advisers"), html_table(*self._product_cells(), title, _NOTES)]
        return f"{said}{tables[0]}{figure}{tables[1]}"

    def _repr_html_(self) -> str:
        return self._body()

    def __repr__(self) -> str:
        return f"<NewsvendorReport of {len(self.columns['product']):,} products and {self.days:,} orders>"


def _adviser(name: str, sums: np.ndarray, weight: float) -> ReportedAdviser:
    more = Money(*(float(each) for each in sums[[LOW, MORE, HIGH]]))
    verdict = "cheaper" if more.high < 0 else "dearer" if more.low > 0 else "not known"
    days = int(sums[ADVISED])
    return ReportedAdviser(name, days, float(sums[BESIDE]), more, weight, float(sums[FOLLOWED]) / max(days, 1), verdict)
