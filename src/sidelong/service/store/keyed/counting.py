"""What is counted of each key."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from sidelong.agent.rounds import longer
from sidelong.keys import Keys

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.service.store.keyed.columns import Key

    Integers = npt.NDArray[np.int64]

COUNTED = ("decided", "told", "paid")


class KeyTallies:
    """What is counted of each key: a row for each, in the order in which they came."""

    def __init__(self) -> None:
        self.keys = Keys()
        self.decided = np.empty(0, np.int64)
        self.told = np.empty(0, np.int64)
        self.paid = np.empty(0)  #: sum of the losses of the arms that were played

    def places(self, keys: list[Key]) -> Integers:
        """Return the rows of keys, of new ones those that they will have."""
        found = self.keys.find(keys)
        absent = np.flatnonzero(found < 0)
        if absent.size:
            new = [keys[place] for place in absent.tolist()]
            rows = dict(zip(dict.fromkeys(new), itertools.count(len(self.keys)), strict=False))
            found[absent] = [rows[key] for key in new]
        return found

    def new_among(self, keys: list[Key], rows: Integers) -> list[Key]:
        """Return the keys that are not there yet, in the order of the rows that `places` returned for them."""
        return list(dict.fromkeys(keys[place] for place in np.flatnonzero(rows >= len(self.keys)).tolist()))

    def add(self, keys: list[Key], rows: Integers) -> None:
        """Count from now on what happens to keys, in the rows that `places` returned for them."""
        new = self.new_among(keys, rows)
        if new:
            n, size = len(self.keys), len(self.keys) + len(new)
            for name in COUNTED:
                setattr(self, name, longer(getattr(self, name), n, size))
            self.keys.add(new)
