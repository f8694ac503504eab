"""What an event of an experiment with keys holds: a batch, in columns.

The decisions of such an experiment have numbers, from 1, whichever key they are for. An event is about several of them.
Its `round` is the least number, and its `arm` says by how much the largest is larger. The rest lies in its binary
columns, little-endian::

    decided, played,     losses: the keys, as a list of JSON, whose decisions are numbered one after the other
    fallback             observe: the round of each key (uint32), the arm (int32), its probability (float64), and beside
                         a holdout, whether that has decided (uint8)
    told                 losses: how many decisions (uint32), their numbers less `round`, ascending (uint32), how many
                         losses each has (uint32), and the losses (float64)
                         observe: the probability that each of the losses would be revealed (float64), if it is known
    defaulted            as told
    late                 as told, without observe
    cancelled, expired   losses: how many decisions (uint32), and their numbers less `round`, ascending (uint32)

So each number is the least one of at most one event that settles it, as the database demands of rounds.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.service.store.journal import DRAWN_BY

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from sidelong.service.store.journal import DrawnBy, Event

    Key = str | int
    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

_COUNT = np.dtype("<u4")
_ARM = np.dtype("<i4")
_REAL = np.dtype("<f8")


def write_keys(keys: list[Key]) -> bytes:
    """Return keys as a decision holds them."""
    return json.dumps(keys, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def write_draws(rounds: Integers, arms: Integers, probabilities: Floats, held: npt.NDArray[np.bool_] | None) -> bytes:
    """Return what was drawn for each key."""
    known = np.where(np.isnan(probabilities), np.nan, probabilities)  # one NaN for all processors
    drawn = rounds.astype(_COUNT).tobytes() + arms.astype(_ARM).tobytes() + known.astype(_REAL).tobytes()
    return drawn if held is None else drawn + held.astype(np.uint8).tobytes()


class Draws(NamedTuple):
    """The columns of decisions."""

    numbers: Integers
    keys: list[Key]
    rounds: Integers
    arms: Integers
    probabilities: Floats
    drawn_by: list[DrawnBy]

    def listed(self) -> Iterator[tuple[int, Key, int, int, float, DrawnBy]]:
        """Yield number, key, round, arm and probability of each decision, and what it was drawn by."""
        numbers, rounds, arms = (column.tolist() for column in (self.numbers, self.rounds, self.arms))
        return zip(numbers, self.keys, rounds, arms, self.probabilities.tolist(), self.drawn_by, strict=True)


def read_draws(event: Event) -> Draws:
    """Return what an event has decided."""
    keys: list[Key] = json.loads((event.losses or b"[]").decode("utf-8", "surrogatepass"))
    n, data = len(keys), event.observe or b""
    rounds = np.frombuffer(data, _COUNT, n).astype(np.int64)
    arms = np.frombuffer(data, _ARM, n, 4 * n).astype(np.int64)
    probabilities = np.frombuffer(data, _REAL, n, 8 * n).astype(np.float64)
    drawn_by = [DRAWN_BY[event.kind]] * n
    for place in np.flatnonzero(held_in(event)).tolist():
        drawn_by[place] = "holdout"
    return Draws(np.arange(event.round, event.round + n), keys, rounds, arms, probabilities, drawn_by)


def round_at(event: Event, place: int) -> int:
    """Return the round of the key of one decision that an event has decided."""
    return int(np.frombuffer(event.observe or b"", _COUNT, 1, 4 * place)[0])


def held_in(event: Event) -> npt.NDArray[np.uint8]:
    """Return for each decision whether the holdout has made it; nothing of an event without a holdout."""
    n = (event.arm or 0) + 1
    return np.frombuffer(event.observe or b"", np.uint8, offset=min(16 * n, len(event.observe or b"")))


def write_settled(numbers: Integers, sizes: Integers | None = None, losses: Floats | None = None) -> bytes:
    """Return numbers that ascend, and the losses of each if there are any."""
    parts: list[np.ndarray] = [np.array([numbers.size], _COUNT), (numbers - numbers[0]).astype(_COUNT)]
    if sizes is not None and losses is not None:
        parts += [sizes.astype(_COUNT), np.ascontiguousarray(losses, _REAL)]
    return b"".join(part.data for part in parts)


class Settlement(NamedTuple):
    """The columns of what settles decisions."""

    numbers: Integers
    offsets: Integers  #: the losses of decision i lie from offsets[i] to offsets[i + 1]
    losses: Floats
    observe: Floats | None

    def place(self, number: int) -> int:
        """Return the place of a number, -1 if it is not there."""
        at = int(np.searchsorted(self.numbers, number))
        return at if at < self.numbers.size and self.numbers[at] == number else -1

    def losses_of(self, place: int) -> Floats:
        """Return the losses of the decision at a place."""
        return self.losses[self.offsets[place] : self.offsets[place + 1]]


def read_settled(event: Event) -> Settlement:
    """Return what an event has settled."""
    data: Any = event.losses or b""
    n = count_of(event)
    numbers = np.frombuffer(data, _COUNT, n, 4).astype(np.int64) + event.round
    if len(data) == 4 + 4 * n:
        return Settlement(numbers, np.zeros(n + 1, np.int64), np.empty(0), None)
    sizes = np.frombuffer(data, _COUNT, n, 4 + 4 * n)
    losses = np.frombuffer(data, _REAL, offset=4 + 8 * n).astype(np.float64)
    observe = None if event.observe is None else np.frombuffer(event.observe, _REAL).astype(np.float64)
    return Settlement(numbers, np.append(0, np.cumsum(sizes, dtype=np.int64)), losses, observe)


def count_of(event: Event) -> int:
    """Return how many decisions an event has settled."""
    return int(np.frombuffer(event.losses or b"", _COUNT, 1)[0])
