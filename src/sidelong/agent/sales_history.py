"""What was sold of each product on the last days: arrays with a row for each product, and a column for each day.

Days are whole numbers. Day d is in column d modulo the number of columns, which is a multiple of the cycle after which
sales repeat, a week as a rule. So a report that comes late is written where it belongs, and the same weekdays are a
stride. A day that was closed, or of which nothing is known, is NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: So many cycles are kept, beside the current one.
CYCLES = 16
#: With a cycle of one day, sixteen days would be few.
LEAST_DAYS = 112
#: The name of what the built-in rules expect.
OWN = ""
#: Before any day.
NEVER = -(2**40)


class Window(NamedTuple):
    """Some days of some products, the latest first."""

    sold: np.ndarray  #: NaN where it is not known
    ran_out: np.ndarray  #: whether at least so many were wanted, and not exactly so many
    expected: np.ndarray  #: what somebody expected to be sold on that day, on average; NaN if nothing


class SalesHistory:
    """Sales, stock-outs and expectations of the last days."""

    def __init__(self, cycle: int, rows: int = 0) -> None:
        self.cycle = cycle
        self.days = cycle * max(CYCLES, -(-LEAST_DAYS // cycle))  #: that are kept
        self.today = NEVER  #: the latest day there is a column for
        self.sold = self._unknown(rows)
        self.ran_out = np.zeros(self.sold.shape, np.bool_)
        self.expected: dict[str, np.ndarray] = {OWN: self._unknown(rows)}  #: by the name of who expected it

    def _unknown(self, rows: int) -> np.ndarray:
        return np.full((rows, self.days + self.cycle), np.nan, np.float32)

    def add(self, rows: int) -> None:
        """Add products of which nothing is known."""
        self.sold = np.concatenate([self.sold, self._unknown(rows)])
        self.ran_out = np.concatenate([self.ran_out, np.zeros((rows, self.sold.shape[1]), np.bool_)])
        self.expected = {name: np.concatenate([each, self._unknown(rows)]) for name, each in self.expected.items()}

    def move_to(self, day: int) -> None:
        """Make room for a day, and forget those that are too old."""
        columns = self.sold.shape[1]
        if day > self.today:
            gone = np.arange(max(self.today + 1, day - columns + 1), day + 1) % columns
            for each in (self.sold, *self.expected.values()):
                each[:, gone] = np.nan
            self.ran_out[:, gone] = False
            self.today = day

    def keeps(self, day: int) -> bool:
        """Tell whether there is a column for a day."""
        return self.today - self.days < day <= self.today

    def expect(self, day: int, rows: np.ndarray, expected: np.ndarray, name: str = OWN) -> None:
        """Write what somebody expects to be sold on a day."""
        if name not in self.expected:
            self.expected[name] = self._unknown(len(self.sold))
        self.expected[name][rows, day % self.sold.shape[1]] = expected

    def write(self, day: int, rows: np.ndarray, sold: np.ndarray, ran_out: np.ndarray) -> None:
        """Write what was sold on a day, if that day is kept."""
        if self.keeps(day):
            column = day % self.sold.shape[1]
            self.sold[rows, column] = sold
            self.ran_out[rows, column] = ran_out

    def last(self, rows: np.ndarray, day: int, days: int, name: str = OWN) -> Window:
        """Return the days before a day, with what somebody expected for them."""
        return self._window(rows, day - np.arange(1, min(days, self.days) + 1), name)

    def same_weekday(self, rows: np.ndarray, day: int, cycles: int) -> Window:
        """Return the days that are one cycle, two cycles and so on before a day."""
        return self._window(rows, day - self.cycle * np.arange(1, min(cycles, self.days // self.cycle) + 1), OWN)

    def _window(self, rows: np.ndarray, days: np.ndarray, name: str) -> Window:
        at = np.ix_(rows, days % self.sold.shape[1])
        expected = self.expected.get(name)
        return Window(
            self.sold[at], self.ran_out[at], np.full_like(self.sold[at], np.nan) if expected is None else expected[at]
        )
