"""Turn what you have after a round (sales, bids, verdicts, costs, scores) into the losses that an agent is told.

A helper knows its problem. It says which arms the outcome revealed, and what each of them would have lost, in [0, 1].
Where only the outcome shows the graph of the round, it says that too. Input that contradicts itself or leaves its range
is refused; it is never clipped.
"""

from sidelong.outcomes.auction import FirstPrice
from sidelong.outcomes.cascade import Cascade
from sidelong.outcomes.revealed import Revealed
from sidelong.outcomes.revealed_columns import RevealedColumns
from sidelong.outcomes.scale import Scale
from sidelong.outcomes.stock import StockOrders

__all__ = ["Cascade", "FirstPrice", "Revealed", "RevealedColumns", "Scale", "StockOrders"]
