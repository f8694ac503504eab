"""The keys of a family: text or whole numbers, the row of each, and what is derived from a key alone.

The seed of a key is the BLAKE2b of 8 bytes of its text, keyed with the family's seed as 8 bytes; both are
little-endian. The part that a key belongs to is the same hash without a seed, modulo the number of parts. The text is
``s`` and the key in UTF-8, or ``i`` and the digits of a whole number. So both are the same on any machine and in any
language.
"""

from __future__ import annotations

import hashlib
import itertools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import is_whole, short
from sidelong.errors import FamilyError
from sidelong.tables import are_several, as_list, names_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    Key = str | int
    Rows = npt.NDArray[np.int64]


def seed_of(key: Key, seed: int) -> int:
    """Return the seed of a key in a family."""
    return _hash(key, seed.to_bytes(8, "little"))


def seeds_of(keys: list[Key], seed: int) -> npt.NDArray[np.uint64]:
    """Return the seeds of keys that are all text, or all whole numbers."""
    secret = seed.to_bytes(8, "little")
    digests = b"".join([_digest(key, secret) for key in keys])
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def part_of(key: Key, parts: int) -> int:
    """Return which of so many parts a key belongs to."""
    return _hash(key, b"") % parts


def _hash(key: Key, secret: bytes) -> int:
    return int.from_bytes(_digest(key, secret), "little")


def _digest(key: Key, secret: bytes) -> bytes:
    text = b"s" + key.encode("utf-8", "surrogatepass") if isinstance(key, str) else b"i%d" % key
    return hashlib.blake2b(text, digest_size=8, key=secret).digest()


def read_keys(keys: Any) -> list[Key]:
    """Return keys from a list, an array or a column, as Python has them.

    Raises:
        FamilyError: something is neither text nor a whole number, or both kinds are there.
    """
    if (names := names_of(keys)) is not None:
        raise FamilyError(f"keys must be one column, and this is a table with {short(names)}. Give table[name].")
    if not are_several(keys):
        raise FamilyError(f"keys must be a list, an array or a column of keys, not {short(keys)}.")
    listed = as_list(keys)
    kinds = set(map(type, listed))
    if kinds in ({str}, {int}):
        return listed
    plain = [_plain(key, place) for place, key in enumerate(listed)]
    if len(set(map(type, plain))) > 1:
        raise FamilyError(_MIXED.format(short(next(key for key in plain if type(key) is not type(plain[0])))))
    return plain


_MIXED = "The keys of a family are all text or all whole numbers, and {} is not like the others. Convert the column."


def _plain(key: Any, place: int) -> Key:
    if isinstance(key, str):
        return str(key)
    if is_whole(key) and not isinstance(key, np.bool_):
        return operator.index(key)
    raise FamilyError(f"A key is text or a whole number; at place {place} there is {short(key)}.")


class Keys:
    """The keys that a family has, in the order in which they came."""

    def __init__(self) -> None:
        self.listed: list[Key] = []
        self._rows: dict[Key, int] = {}
        self._last: tuple[list[Key], Rows] = [], np.empty(0, np.int64)  # what was found last, if it was all there

    def __len__(self) -> int:
        return len(self.listed)

    def find(self, keys: list[Key]) -> Rows:
        """Return the row of each key, -1 for one that is not there."""
        last, rows = self._last
        if keys == last:  # as mostly: what was asked for is told, and the next day asked for again
            return rows.copy()
        rows = np.fromiter(map(self._rows.get, keys, itertools.repeat(-1)), np.int64, len(keys))
        if (rows >= 0).all():
            self._last = keys.copy(), rows.copy()
        return rows

    def row(self, key: object) -> int:
        """Return the row of a key, -1 if it is not there, or no key at all."""
        if isinstance(key, str):
            return self._rows.get(key, -1)
        return self._rows.get(operator.index(key), -1) if is_whole(key) else -1

    def new_among(self, keys: list[Key], rows: Rows) -> list[Key]:
        """Return those that are not there yet, each once; `rows` is what `find` returned.

        Raises:
            FamilyError: they are numbers, and those of the family are text, or the other way round.
        """
        absent = np.flatnonzero(rows < 0).tolist()
        new = list(dict.fromkeys(keys if len(absent) == len(keys) else map(keys.__getitem__, absent)))
        if new and self.listed and type(new[0]) is not type(self.listed[0]):
            raise FamilyError(_MIXED.format(short(new[0])))
        return new

    def places(self, keys: list[Key]) -> tuple[Rows, list[Key]]:
        """Return the row of each key, of a new one that which it will have, and the new ones, each once."""
        rows = self.find(keys)
        new = self.new_among(keys, rows)
        if len(new) == len(keys):
            rows = np.arange(len(self), len(self) + len(new))
        elif new:
            ahead = dict(zip(new, itertools.count(len(self)), strict=False))
            rows[rows < 0] = [ahead[keys[place]] for place in np.flatnonzero(rows < 0).tolist()]
        return rows, new

    def add(self, new: Iterable[Key]) -> None:
        """Add keys that are not there."""
        before = len(self.listed)
        self.listed.extend(new)
        self._rows.update(zip(self.listed[before:], range(before, len(self.listed)), strict=True))

    def contents(self) -> dict[str, np.ndarray]:
        """Return them as arrays of a state file: numbers, or one text and where each key ends in it, in characters."""
        if self.listed and all(isinstance(key, int) and -(2**63) <= key < 2**63 for key in self.listed):
            return {"keys.number": np.array(self.listed, np.int64)}
        written = list(map(str, self.listed))
        text = "".join(written).encode("utf-8", "surrogatepass")
        ends = np.cumsum(np.fromiter(map(len, written), np.int64, len(written)))
        kind = "digits" if self.listed and isinstance(self.listed[0], int) else "text"
        return {f"keys.{kind}": np.frombuffer(text, np.uint8), "keys.end": ends}

    @classmethod
    def from_contents(cls, arrays: dict[str, np.ndarray]) -> Keys:
        """Go on from what `contents` returned."""
        keys = cls()
        if "keys.number" in arrays:
            keys.add(arrays["keys.number"].tolist())
            return keys
        kind = "digits" if "keys.digits" in arrays else "text"
        text = arrays[f"keys.{kind}"].tobytes().decode("utf-8", "surrogatepass")
        ends = arrays["keys.end"].tolist()
        written = [text[first:last] for first, last in itertools.pairwise([0, *ends])]
        keys.add(written if kind == "text" else map(int, written))
        return keys
