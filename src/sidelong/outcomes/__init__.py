"""From what you hold after a round (sales, bids, verdicts, costs, scores) to the losses that an agent is told.

A helper knows its problem: which arms the outcome revealed, what each of them would have lost, in [0, 1], and the graph
of the round, where only the outcome shows it. What contradicts itself or leaves its range is refused, never clipped.
"""

from sidelong.outcomes.auction import FirstPrice
from sidelong.outcomes.cascade import Cascade
from sidelong.outcomes.revealed import Revealed
from sidelong.outcomes.revealed_columns import RevealedColumns
from sidelong.outcomes.scale import Scale
from sidelong.outcomes.stock import StockOrders

__all__ = ["Cascade", "FirstPrice", "Revealed", "RevealedColumns", "Scale", "StockOrders"]
