"""What a shop has paid, and by how much each adviser would have paid more or less.

If something was left over, the demand is known, and so is what every order would have cost. If an order of q sold out,
at least q were wanted. A smaller order x would have missed q - x sales more, which is known too. A larger one would
have cost between holding (x - q) more, if nobody else came, and shortage (x - q) less. So what an adviser would have
paid beyond what was paid has bounds that hold for sure, whatever the demand was.

What is wanted beyond an order that sold out costs `shortage` for each unit, at least 0. If never more was wanted of the
product than the most that was ever sold of it on a day, it costs shortage (most - q) at most.

The guesses take the demand of a sold-out day to be a tenth more than was sold, as the rules do. The weights of the
blend come from these, as the power -8 of the cost of each adviser over what was paid, with a memory of 100 days. It is
not exact, and need not be: `Family` finds out whether to follow the blend. Only who is dear for sure is not followed.
"""

from __future__ import annotations

import numpy as np

from sidelong.agent.order_rules import raised

#: Columns of `paid`, for each product. KNOWN is what was paid on days whose demand was seen, GUESS on the others.
DAYS, ORDERED, SOLD, OUT_DAYS, OUT_UNITS, KNOWN, GUESS, MOST = range(8)
#: Columns of `advised`, for each product and adviser: days with its advice, and what it would have paid beyond what
#: was paid on them, at least, at most and as a guess; what was paid on them, as a guess; and how often its advice was
#: what was made.
ADVISED, LOW, HIGH, MORE, BESIDE, FOLLOWED = range(6)
_POWER, _MEMORY = 8.0, 0.99
#: Who would have paid at least so much more than was paid, as a share, over so many days, is not followed for now: over
#: all products of late, and for the product too, if it has so many days.
_DEAR, _ENOUGH = 0.3, 20.0


class Ledger:
    """Sums by product, and by product and adviser."""

    def __init__(self, products: int = 0, advisers: int = 0) -> None:
        self.paid = np.zeros((products, 8))
        self.advised = np.zeros((products, advisers, 6))
        self.lately = np.zeros((advisers, 6))  #: the same over all products, with a short memory

    def widen(self, products: int, advisers: int) -> None:
        """Make room for so many products and advisers in all."""
        n, M = self.advised.shape[:2]
        self.paid = np.pad(self.paid, ((0, products - n), (0, 0)))
        self.advised = np.pad(self.advised, ((0, products - n), (0, advisers - M), (0, 0)))
        self.lately = np.pad(self.lately, ((0, advisers - M), (0, 0)))

    def weights(self) -> np.ndarray:
        """Return the weight of each adviser in the blend, before those who are silent are left out."""
        more, paid = self.lately[:, [MORE, BESIDE]].T
        return np.asarray((1.0 + more / (paid + 1e-6)).clip(0.1, 10.0) ** -_POWER)

    def dear(self, rows: np.ndarray) -> np.ndarray:
        """Tell who is dear for sure for each of some products, whatever was wanted on sold-out days."""
        lately, own = self.lately, self.advised[rows]
        everywhere = (lately[:, ADVISED] >= _ENOUGH) & (lately[:, LOW] > _DEAR * lately[:, BESIDE])
        here = (own[..., ADVISED] < _ENOUGH) | (own[..., LOW] > _DEAR * own[..., BESIDE])
        return np.asarray(everywhere & here)

    def compare(
        self, made: np.ndarray, sold: np.ndarray, short: np.ndarray, price: np.ndarray, advice: np.ndarray
    ) -> np.ndarray:
        """Let the weights learn from some products of a day; return what is to be added to `advised`.

        `short` says where the demand was not seen, and `price` has the columns holding and shortage.
        """
        holding, shortage = price[:, :1], price[:, 1:]
        demand = raised(sold, short)[:, None]
        paid = cost_of(made[:, None], demand, holding, shortage)
        more = cost_of(advice, demand, holding, shortage) - paid
        beyond = advice - made[:, None]
        hidden = short[:, None] & (beyond > 0)
        least, most = np.where(hidden, -shortage * beyond, more), np.where(hidden, holding * beyond, more)
        columns = [np.ones_like(more), least, most, more, np.broadcast_to(paid, more.shape), beyond == 0]
        said = np.where(np.isnan(advice)[:, :, None], 0.0, np.stack(columns, axis=2))
        self.lately = _MEMORY * self.lately + said.sum(axis=0)
        return said

    def add(
        self,
        rows: np.ndarray,
        made: np.ndarray,
        sold: np.ndarray,
        short: np.ndarray,
        price: np.ndarray,
        advice: np.ndarray,
    ) -> None:
        """Count a day of some products, each once; the arguments are those of `compare`."""
        self.advised[rows] += self.compare(made, sold, short, price, advice)
        paid = cost_of(made, raised(sold, short), *price.T)
        seen, unseen = np.where(short, 0.0, paid), np.where(short, paid, 0.0)
        counted = [np.ones_like(made), made, sold, short, np.where(short, made, 0.0), seen, unseen]
        self.paid[rows, :MOST] += np.stack(counted, axis=1)
        self.paid[rows, MOST] = np.maximum(self.paid[rows, MOST], sold)


def cost_of(order: np.ndarray, demand: np.ndarray, holding: np.ndarray, shortage: np.ndarray) -> np.ndarray:
    """Return what orders cost under a demand."""
    return np.asarray(holding * np.maximum(order - demand, 0.0) + shortage * np.maximum(demand - order, 0.0))
