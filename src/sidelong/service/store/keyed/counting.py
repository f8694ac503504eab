"""What is counted of each key."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from sidelong.agent.family.keys import Keys
from sidelong.agent.family.memory import longer

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
        new = dict.fromkeys(key for key, row in zip(keys, found.tolist(), strict=True) if row < 0)
        rows = dict(zip(new, itertools.count(len(self.keys)), strict=False))
        found[found < 0] = [rows[key] for key, row in zip(keys, found.tolist(), strict=True) if row < 0]
        return found

    def rows(self, keys: list[Key]) -> Integers:
        """Return the rows of keys; new ones are added."""
        found = self.keys.find(keys)
        new = self.keys.new_among(keys, found)
        if new:
            n, size = len(self.keys), len(self.keys) + len(new)
            for name in COUNTED:
                setattr(self, name, longer(getattr(self, name), n, size))
            self.keys.add(new)
            found = self.keys.find(keys)
        return found
