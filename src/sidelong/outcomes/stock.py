"""Stock orders with lost sales: the newsvendor's problem.

An order of q meets a demand of D and sells s = min(q, D). Each unit that is left over costs `holding`. Each unit that
was wanted and not there costs `shortage`. The demand is seen only if nothing ran out. So the true cost

    holding (q - s) + shortage (D - s)

is not always seen. But shortage times D is the same for every order, and does not change differences between orders.
Without it the cost is holding (q - s) - shortage s, which needs only the sales. Moved and scaled to [0, 1], with Q the
largest order:

    loss of q = (holding (q - s) - shortage s + shortage Q) / ((holding + shortage) Q)

An order shows the losses of all smaller ones, which would have sold min(s, their size). If nothing ran out, it also
shows those of all larger ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import check_flag, is_whole
from sidelong.errors import OutcomeError
from sidelong.graphs.families import nested
from sidelong.graphs.graph import FeedbackGraph
from sidelong.graphs.sequences import scheduled
from sidelong.outcomes.revealed import Revealed, ascending, checked_arm, number
from sidelong.outcomes.revealed_columns import (
    RevealedColumns,
    checked_arms,
    checked_flags,
    checked_numbers,
    columns,
    graphs_by_mark,
    kept_if_small,
    refuse_first,
    takes_batch,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sidelong.graphs.sequences import GraphSequence


class StockOrders:
    """Turn sales into the losses of every order that they reveal.

    Args:
        orders: the largest order, if each arm is the order of its own number; or all orders, ascending, one per arm.
        holding: what a unit that is left over costs.
        shortage: what a unit that was wanted and not there costs.
        sees_unmet: whether you notice that somebody wanted more than was there. If so, `outcome` is told, and an order
            that was sold to the last unit and disappointed nobody reveals the demand. If not, it does not.

    Example:
        >>> import sidelong as sl
        >>> orders = sl.outcomes.StockOrders(20, holding=1, shortage=4)
        >>> agent = sl.Agent("glance", orders.graph, seed=7)
        >>> decision = agent.ask()
        >>> decision.arm
        20
        >>> seen = orders.outcome(decision.arm, sales=7)
        >>> agent.tell(decision, seen)
        True
        >>> decision = agent.ask()

    You may also ask with the graph of the last round, ``agent.ask(seen.graph)``, as a guess of what an order will
    reveal next time. `tell` corrects the guess, so that a wrong one does not bias the estimates. It saves little where
    demand stays as it is, and costs much when demand has grown, since the agent counts on seeing what it may not see.
    """

    def __init__(
        self,
        orders: int | Sequence[float] | npt.NDArray[np.float64],
        *,
        holding: float,
        shortage: float,
        sees_unmet: bool = False,
    ) -> None:
        if is_whole(orders):
            number("The largest order", orders, least=1)
            orders = range(int(orders) + 1)
        self._orders = ascending("orders", orders)
        self._holding = number("holding", holding, least=0)
        self._shortage = number("shortage", shortage, least=0)
        self._sees_unmet = check_flag(OutcomeError, "sees_unmet", sees_unmet)
        self._graph = nested(self._orders.size)
        if not 0.0 < self.unit < np.inf:
            raise OutcomeError(f"holding and shortage must be finite and not both 0, not {holding!r} and {shortage!r}.")

    @property
    def orders(self) -> npt.NDArray[np.float64]:
        """The order that each arm stands for."""
        return self._orders

    @property
    def graph(self) -> FeedbackGraph:
        """What is revealed whatever happens, for the agent to begin with: an order shows itself and smaller ones."""
        return self._graph

    @property
    def unit(self) -> float:
        """What a loss of 1 is worth: multiply a difference of losses, such as a regret, to have it as cost."""
        return float((self._holding + self._shortage) * self._orders[-1])

    def losses(self, demand: float) -> npt.NDArray[np.float64]:
        """Return the loss of every order under a demand."""
        return self._losses(self._orders, number("demand", demand, least=0))

    def graphs(self, demands: npt.ArrayLike) -> GraphSequence:
        """Return what each order would have revealed on days whose demand is known, to rehearse them in a simulation.

        Example:
            >>> import sidelong as sl
            >>> orders = sl.outcomes.StockOrders(8, holding=1, shortage=4)
            >>> demands = [3, 5, 2, 4, 7, 4]
            >>> world = sl.losses.table([orders.losses(demand) for demand in demands])
            >>> sl.simulate("glance", orders.graphs(demands), world, rounds=6, guess=orders.graph).regret.shape
            (1, 6)
        """
        given = columns(np.size(demands), demands=demands)["demands"]
        checked = checked_numbers("The demand", given, 0.0, np.full(given.size, np.inf))
        first = np.searchsorted(self._orders, checked, "left" if self._sees_unmet else "right")
        marks, which = np.unique(first, return_inverse=True)
        return scheduled([_all_from(self._orders.size, mark) for mark in marks.tolist()], which, shown="after")

    def outcome(self, arm: int, sales: float, *, ran_out: bool | None = None) -> Revealed:
        """Return what the sales of a round revealed.

        Args:
            arm: the arm that was played, `decision.arm`.
            sales: how much was sold.
            ran_out: whether somebody wanted more than was there, if that is seen. Otherwise, as most shops have it, it
                follows from the sales: the shelf ran out if it was sold empty.
        """
        flags = None if ran_out is None else [ran_out]
        return self.outcomes([checked_arm(arm, self._orders.size)], [sales], ran_out=flags).alone()

    @takes_batch
    def outcomes(
        self, arms: npt.ArrayLike, sales: npt.ArrayLike, *, ran_out: npt.ArrayLike | None = None
    ) -> RevealedColumns:
        """Return what the sales of many products revealed, for a `Family` that was asked for all of them.

        Args:
            arms: the batch itself, so that `tell` takes the outcomes in its order alone; or the arm that was played for
                each, if there is no batch.
            sales: how much was sold of each.
            ran_out: whether somebody wanted more of it than was there, if that is seen, as in `outcome`.

        Example:
            >>> import sidelong as sl
            >>> orders = sl.outcomes.StockOrders(4, holding=1, shortage=4)
            >>> seen = orders.outcomes([2, 4], sales=[2, 3])  # the first is sold out: it reveals 0, 1 and 2
            >>> seen.offsets
            array([0, 3, 8])
        """
        played = checked_arms(arms, self._orders.size)
        order = self._orders[played]
        given = columns(played.size, sales=sales, ran_out=np.nan if ran_out is None else ran_out)
        sold = checked_numbers("The sales of an order of {high:g}", given["sales"], 0.0, order)
        if self._sees_unmet and ran_out is None:
            raise OutcomeError("With sees_unmet, an outcome needs ran_out=True or ran_out=False.")
        empty = sold == order
        short = empty if ran_out is None else checked_flags("ran_out", given["ran_out"])
        refuse_first(
            short & ~empty,
            lambda at: f"ran_out is True, but {order[at] - sold[at]:g} of the order of {order[at]:g} were left over.",
        )
        if not self._sees_unmet:
            refuse_first(
                empty & ~short,
                lambda at: (
                    f"ran_out is False, but the order of {order[at]:g} was sold to the last unit. If you do see that "
                    f"nobody wanted more, and would see it in every round, say StockOrders(..., sees_unmet=True)."
                ),
            )
        # Where the demand is not seen, an order reveals no more than `nested` says.
        first = np.searchsorted(self._orders, sold, "left" if self._sees_unmet else "right")
        return revealed_by_sales(self._orders, played, sold, np.where(short, -1, first), self._level)

    @property
    def _level(self) -> float:
        return self._shortage / (self._holding + self._shortage)

    def _losses(self, orders: npt.NDArray[np.float64], demand: Any) -> npt.NDArray[np.float64]:
        return _losses(orders, demand, self._level)

    def __repr__(self) -> str:
        largest = f"{self._orders.size} orders up to {self._orders[-1]:g}"
        return f"<StockOrders: {largest}, holding {self._holding:g}, shortage {self._shortage:g}>"


def revealed_by_sales(
    orders: npt.NDArray[np.float64],
    arms: npt.NDArray[np.int64],
    sold: npt.NDArray[np.float64],
    first: npt.NDArray[np.int64],
    level: float | npt.NDArray[np.float64],
) -> RevealedColumns:
    """Return what checked sales revealed.

    Args:
        orders: the order of each arm, ascending; or a row of them for each outcome.
        arms: what was played.
        sold: how much was sold of each.
        first: the first arm that reveals all, where the demand was seen; -1 where it was not.
        level: shortage / (holding + shortage); or a column with a row for each outcome.
    """
    n = orders.shape[-1]
    graph = graphs_by_mark(first, lambda mark: _all_from(n, mark))
    last = np.where(first < 0, arms + 1, n)
    return RevealedColumns.of_ranges(arms, np.zeros_like(last), last, _losses(orders, sold[:, None], level), graph)


def _losses(orders: npt.NDArray[np.float64], demand: Any, level: Any) -> npt.NDArray[np.float64]:
    Q, s = orders[..., -1:], np.minimum(orders, demand)
    return np.asarray(
        (1.0 - level) * ((orders - s) / Q) + level * ((Q - s) / Q)
    )  # in this form never above 1, by rounding


@kept_if_small
def _all_from(n: int, first: int) -> FeedbackGraph:
    """Return the nested graph in which the arms from `first` on reveal all; none of them does if it is -1."""
    if first < 0:
        return nested(n)
    arm = np.arange(n)
    return FeedbackGraph.from_intervals(np.zeros(n, np.int64), np.where(arm < first, arm + 1, n))
