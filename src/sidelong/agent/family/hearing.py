"""The rules of `Family.tell`: which decisions are meant, and which losses they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent.family.batch import Batch
from sidelong.checks import plain, short
from sidelong.errors import DecisionError, LossError, UnknownDecisionError
from sidelong.keys import read_keys
from sidelong.outcomes.revealed_columns import RevealedColumns
from sidelong.tables import as_list, column, names_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.agent.family.store import KeyStore
    from sidelong.keys import Key

    Integers = npt.NDArray[np.int64]


class Meant(NamedTuple):
    """Decisions that somebody named: the row of the key, and the round."""

    row: Integers
    round: Integers


class Heard(NamedTuple):
    """What `tell` was given."""

    named: Meant
    values: npt.NDArray[np.float64]  #: of all decisions, one after the other; NaN where something else was given
    given: np.ndarray  #: the same as it was given, for messages
    arms: Integers | None = None  #: of each value, in any order; None if they are in the order of what is revealed
    of: Integers | None = None  #: the decision of each value, if `arms` are given


class Ear:
    """Finds the decisions that are named, among those that a family has made."""

    def __init__(self, tag: str, store: KeyStore) -> None:
        self._tag = tag
        self._keys = store.keys
        self._rows = store.rows
        self._waiting = store.waiting
        self._names = store.names

    def hear(self, decisions: Any, losses: Any) -> Heard:
        """Return what `tell` was given: a table alone, or decisions with an array, a table or what was revealed."""
        names = names_of(decisions if losses is None else losses)
        if losses is None or (names is not None and not isinstance(losses, RevealedColumns)):
            table = decisions if losses is None else losses
            if names is None:
                raise LossError(f"tell takes decisions and losses, or a table of both, not {short(decisions)} alone.")
            return self._table(table, names, None if losses is None else self.named(decisions))
        named = self.named(decisions)
        if isinstance(losses, RevealedColumns):
            return Heard(named, losses.losses, losses.losses)
        return Heard(named, *_flat(losses))

    def named(self, decisions: Any) -> Meant:
        """Return decisions by their batch or their ids.

        Raises:
            UnknownDecisionError: the family did not make one of them.
            DecisionError: one is named twice.
        """
        if isinstance(decisions, Batch):
            keys, rounds = decisions.keys, decisions.rounds
            ours = np.full(len(keys), decisions._tag == self._tag)  # noqa: SLF001  # nobody else's
        else:
            if isinstance(decisions, str) or not hasattr(decisions, "__iter__"):
                raise UnknownDecisionError(f"Decisions are a Batch or a list of ids, not {short(decisions)}.")
            rounds, keys, ours = self._parse(as_list(decisions))
        row = self._keys.find(keys)
        made = ours & (row >= 0) & (rounds >= 1) & (rounds <= np.append(self._rows.round, 0)[row])
        if not made.all():
            at = int(np.argmin(made))
            self._refuse(keys[at], int(rounds[at]), ours=bool(ours[at]))
        pairs = np.stack([row, rounds])
        order = np.lexsort(pairs)
        twice = (np.diff(pairs[:, order], axis=1) == 0).all(axis=0)
        if twice.any():
            at = int(order[int(np.argmax(twice))])
            raise DecisionError(f"Decision {rounds[at]}-{self._tag}-{keys[at]} is named twice.")
        return Meant(row, rounds)

    def _parse(self, ids: list[Any]) -> tuple[Integers, list[Key], npt.NDArray[np.bool_]]:
        """Return the round and the key that each id names, and whether it is of this family."""
        rounds: list[int] = []
        keys: list[Key] = []
        ours: list[bool] = []
        whole = bool(self._keys.listed) and isinstance(self._keys.listed[0], int)
        for each in ids:
            digits, tag, key = (*self._names.get(str(each), str(each)).split("-", 2), "", "")[:3]
            if not digits.isdecimal() or len(digits) > 18:
                raise UnknownDecisionError(
                    f"This family made no decision {short(each)}: it names its decisions like 1-{self._tag}-key. "
                    f"Tell the family that was asked."
                )
            rounds.append(int(digits))
            ours.append(tag == self._tag)
            keys.append(int(key) if whole and key.removeprefix("-").isdecimal() else key)
        return np.array(rounds, np.int64), keys, np.array(ours, np.bool_)

    def _refuse(self, key: Key, t: int, *, ours: bool) -> None:
        """Say why a decision is none of this family's."""
        row = self._keys.row(key)
        if row < 0:
            why = "has never been asked for that key"
        elif ours:
            why = f"has made {self._rows.round[row]} for that key"
        else:
            why = f"names its decisions like {t}-{self._tag}-{key}"
        raise UnknownDecisionError(
            f"This family made no decision {t} for the key {short(key)}: it {why}. Tell the family that was asked."
        )

    def _table(self, table: Any, names: list[str], meant: Meant | None) -> Heard:
        """Read a table of decision or key, arm and loss."""
        values, arms = _flat(column(table, "loss", names)), column(table, "arm", names)
        if arms.dtype.kind not in "iu":
            raise LossError(f"The column arm has whole numbers, not {short(arms.tolist()[:1])}.")
        if "decision" in names:
            each, of = _first_seen(list(map(str, as_list(column(table, "decision", names)))))
            named = self.named(each)
        else:
            each, of = _first_seen(read_keys(column(table, "key", names)))
            named = self._of_keys(each, meant)
        if meant is not None:
            named, of = _in_order_of(meant, named, of)
        return Heard(named, *values, arms.astype(np.int64), of)

    def _of_keys(self, keys: list[Key], meant: Meant | None) -> Meant:
        """Return the one decision of each key, of those that are meant or else of those that wait."""
        row = self._keys.find(keys)
        if (row < 0).any():
            raise UnknownDecisionError(
                f"This family has no key {short(keys[int(np.argmin(row))])}: it has never been asked for that key. "
                f"Tell the family that was asked."
            )
        if meant is not None:
            rounds = dict(zip(meant.row.tolist(), meant.round.tolist(), strict=True))
            several = len(rounds) < meant.row.size
            at = next((k for k, each in enumerate(row.tolist()) if each not in rounds), None)
        else:
            first = self._rows.first[row]
            several = bool((first != self._rows.last[row]).any())
            at = int(np.argmin(first)) if (first < 0).any() else None
        if several:
            raise DecisionError("A key has several decisions that are meant: name them in a column decision.")
        if at is not None:
            raise DecisionError(f"No decision of the key {short(keys[at])} is meant or waits.")
        if meant is not None:
            return Meant(row, np.array([rounds[each] for each in row.tolist()], np.int64))
        return Meant(row, self._waiting.round[first])


def _first_seen(names: list[Any]) -> tuple[list[Any], Integers]:
    """Return the different names, in the order in which they come, and which of them each is."""
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return list(places), np.fromiter(map(places.__getitem__, names), np.int64, len(names))


def _flat(given: Any) -> tuple[npt.NDArray[np.float64], np.ndarray]:
    """Return values as numbers, NaN where something is none, and as they were given."""
    if not isinstance(given, np.ndarray):
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            raise LossError(
                f"losses must be an array in the order of the revealed arms, or a table, not {short(given)}."
            )
        given = np.asarray(given) if hasattr(given, "__array__") else np.array(list(given), object)
    if given.ndim != 1:
        raise LossError(f"losses must be one number after the other, and this has {given.ndim} dimensions.")
    if given.dtype.kind in "fiu":
        return given.astype(np.float64), given
    numbers = [value if type(value) is float else plain(value) for value in given.tolist()]
    return np.array(numbers, np.float64), given


def _in_order_of(meant: Meant, named: Meant, of: Integers) -> tuple[Meant, Integers]:
    """Return decisions in the order of those that are meant, as graphs by key are, and the place of each row's."""
    places = {pair: place for place, pair in enumerate(zip(*map(np.ndarray.tolist, meant), strict=True))}
    at = [places.get(pair, -1) for pair in zip(*map(np.ndarray.tolist, named), strict=True)]
    if -1 in at:
        raise UnknownDecisionError("The table has losses of decisions that are not among those that were named.")
    order = np.argsort(at)
    return Meant(named.row[order], named.round[order]), np.argsort(order)[of]
