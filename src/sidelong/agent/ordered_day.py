"""A day that was ordered for and whose sales are not learned yet."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np


@dataclass
class OrderedDay:
    """Products that were ordered together, with a row for each in every array."""

    day: int
    row: np.ndarray  #: of the product
    round: np.ndarray  #: of its decision
    drawn: np.ndarray  #: the arm that was drawn
    arm: np.ndarray  #: the arm that was ordered: another one for a first order
    orders: np.ndarray  #: that each arm stands for
    advice: np.ndarray  #: a whole order of each adviser, NaN for silence
    made: np.ndarray
    sold: np.ndarray  #: NaN while it is not known
    ran_out: np.ndarray  #: 1, 0, or -1 if nobody said

    @property
    def ordered(self) -> np.ndarray:
        """What was ordered."""
        return np.asarray(self.orders[np.arange(self.row.size), self.arm])

    def some(self, chosen: np.ndarray) -> OrderedDay:
        """Return some products of it."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in COLUMNS})


#: The names of the arrays.
COLUMNS = [each.name for each in fields(OrderedDay)][1:]


def by_part(parts: list[OrderedDay], *columns: np.ndarray) -> Any:
    """Return each part with its share of columns that have all products of the day."""
    ends = np.cumsum([part.row.size for part in parts])[:-1]
    return zip(parts, *(np.split(column, ends) for column in columns), strict=True)
