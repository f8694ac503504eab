"""Bid shading in first-price auctions.

You bid b for something that is worth v to you. You win if b is at least m, the least winning bid, and then gain v - b.
An arm is a fraction f of your value: its bid is f v. With V the highest value that can come,

    loss of f = 1 - (1 - f) v / V   if f v >= m,   and 1 if not.

What a bid reveals depends on whom the exchange shows m:

    shown="always"   m is reported, whatever the outcome:   every bid reveals all
    shown="lost"     those who lose see the winning bid:    a bid that loses reveals all, one that wins the higher ones
    shown="never"    nobody sees it:                        a bid reveals itself alone

It may differ from round to round. In the last case a winner knows that higher bids would have won too, and a loser
knows that lower ones would have lost too. But neither can tell how likely that was to be seen, since it depends on m.
So nobody can learn from it without bias. Posted prices (bought or not) have the same problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from sidelong.errors import OutcomeError
from sidelong.graphs.families import complete, nested, self_loops
from sidelong.graphs.graph import FeedbackGraph
from sidelong.outcomes.revealed import Revealed, ascending, checked_arm, number
from sidelong.outcomes.revealed_columns import (
    RevealedColumns,
    checked_arms,
    checked_flags,
    checked_numbers,
    columns,
    graphs_by_mark,
    kept_if_small,
    numbers_where_known,
    refuse_first,
    takes_batch,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Shown = Literal["always", "lost", "never"]


class FirstPrice:
    """Turn the outcome of a first-price auction into the losses of every bid that it reveals.

    Args:
        fractions: the fraction of one's value that each arm bids, ascending, from 0 to 1.
        highest_value: the highest value that can come; the losses are in its units.

    Example:
        >>> import sidelong as sl
        >>> auction = sl.outcomes.FirstPrice([0.2, 0.4, 0.6, 0.8])
        >>> auction.outcome(1, value=0.5, won=False, price=0.3).losses
        array([1. , 1. , 0.8, 0.9])
        >>> auction.outcome(2, value=0.5, won=True).losses  # of the bids from this one on
        array([0.8, 0.9])
    """

    def __init__(self, fractions: Sequence[float] | npt.NDArray[np.float64], *, highest_value: float = 1.0) -> None:
        self._fractions = ascending("fractions", fractions, 1.0)
        self._unit = number("highest_value", highest_value, least=0)
        if self._unit == 0.0:
            raise OutcomeError(f"highest_value must be above 0, not {highest_value!r}.")

    @property
    def fractions(self) -> npt.NDArray[np.float64]:
        """The fraction of the value that each arm bids."""
        return self._fractions

    @property
    def unit(self) -> float:
        """What a loss of 1 is worth: multiply a difference of losses, such as a regret, to have it as gain."""
        return self._unit

    def graph(self, shown: Shown = "lost") -> FeedbackGraph:
        """Return what is known before the bid about what it reveals, for `Agent` and `ask`."""
        if shown not in ("always", "lost", "never"):  # a tuple: what is given need not be hashable
            raise OutcomeError(f"shown must be one of 'always', 'lost' and 'never', not {shown!r}.")
        return _before(self._fractions.size, shown)

    def losses(self, value: float, price: float) -> npt.NDArray[np.float64]:
        """Return the loss of every arm: `price` is the least bid that wins."""
        value = number("value", value, least=0, most=self._unit)
        price = number("price", price, least=0)
        gains = np.where(self._fractions * value >= price, (1.0 - self._fractions) * (value / self._unit), 0.0)
        return np.asarray(1.0 - gains)

    def outcome(
        self, arm: int, *, value: float, won: bool, price: float | None = None, shown: Shown = "lost"
    ) -> Revealed:
        """Return what the outcome of a round revealed.

        Args:
            arm: the arm that was played, `decision.arm`.
            value: what winning was worth.
            won: whether the bid won.
            price: the least bid that would have won, if it is shown.
            shown: to whom the exchange shows it in this round: "always", if "lost", or "never".
        """
        played = [checked_arm(arm, self._fractions.size)]
        seen = None if price is None else [number("price", price, least=0)]
        return self.outcomes(played, value=[value], won=[won], price=seen, shown=shown).alone()

    @takes_batch
    def outcomes(
        self,
        arms: npt.ArrayLike,
        *,
        value: npt.ArrayLike,
        won: npt.ArrayLike,
        price: npt.ArrayLike | None = None,
        shown: Shown = "lost",
    ) -> RevealedColumns:
        """Return what the outcomes of many auctions revealed, for a `Family` that was asked for all of them.

        Args:
            arms: the batch itself, so that `tell` takes the outcomes in its order alone; or the arm that was played in
                each, if there is no batch.
            value: what winning each was worth.
            won: whether each bid won.
            price: the least bid that would have won, None or NaN where it is not shown.
            shown: to whom the exchange shows it, the same for all: "always", if "lost", or "never".
        """
        played = checked_arms(arms, self._fractions.size)
        n = played.size
        given = columns(n, value=value, won=won, price=np.nan if price is None else price)
        worth = checked_numbers("value", given["value"], 0.0, self._unit)
        wins = checked_flags("won", given["won"])
        paid = numbers_where_known("price", given["price"])
        graph = self.graph(shown)
        seen = ~np.isnan(paid)
        due = np.full(n, shown == "always") | ((shown == "lost") & ~wins)
        refuse_first(
            seen != due,
            lambda at: (
                f"With shown={shown!r}, a bid that {'won' if wins[at] else 'lost'} "
                f"{'needs the price' if due[at] else 'does not see a price'}; price is {paid[at]:g}. "
                f"What one round shows must not depend on luck: say to whom it is shown, with shown=..."
            ),
        )
        bids = self._fractions * worth[:, None]
        own = bids[np.arange(n), played]
        checked_numbers("price", np.where(seen, paid, 0.0), 0.0, np.inf)
        refuse_first(
            seen & (wins != (own >= paid)),
            lambda at: f"A bid of {own[at]:g} cannot have {'won' if wins[at] else 'lost'} at a price of {paid[at]:g}.",
        )
        least = np.where(seen, paid, np.where(wins, 0.0, np.finfo(np.float64).max))
        gains = np.where(bids >= least[:, None], (1.0 - self._fractions) * (worth[:, None] / self._unit), 0.0)
        first, last = np.where(seen, 0, played), np.where(seen | (shown == "lost"), self._fractions.size, played + 1)
        below = (bids < paid[:, None]).sum(axis=1)  # of the bids, which ascend
        marks = np.where(seen & (shown == "lost"), below, -1)
        graphs = graphs_by_mark(marks, lambda mark: graph if mark < 0 else _all_below(self._fractions.size, mark))
        return RevealedColumns.of_ranges(played, first, last, 1.0 - gains, graphs)

    def __repr__(self) -> str:
        ends = f"{self._fractions[0]:g} to {self._fractions[-1]:g}"
        return f"<FirstPrice: {self._fractions.size} fractions from {ends}, values up to {self._unit:g}>"


@kept_if_small
def _before(n: int, shown: Shown) -> FeedbackGraph:
    return {"always": complete(n), "lost": nested(n, reveals="higher"), "never": self_loops(n)}[shown]


@kept_if_small
def _all_below(n: int, first: int) -> FeedbackGraph:
    """Return the graph in which the arms below `first`, which lose, reveal all, and the others the higher ones."""
    arm = np.arange(n)
    return FeedbackGraph.from_intervals(np.where(arm < first, 0, arm), np.full(n, n))
