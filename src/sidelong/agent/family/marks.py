"""By what a key recognises what it was told before: 64 bits of the losses and the graph, and 64 of the arms.

They are those of what was given. An arm that was absent is not learned, but what an outcome revealed may name it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]
    Words = npt.NDArray[np.uint64]


class GivenLosses(NamedTuple):
    """Losses as they were given, decision after decision."""

    losses: npt.NDArray[np.float64]
    arms: Integers  #: of each loss; -1 where nobody knows
    offsets: Integers  #: those of decision i lie from offsets[i] to offsets[i + 1]


def marks_of(round_: Integers, given: GivenLosses, graph: Integers) -> Integers:
    """Return for each decision what its key remembers; `graph` is 0 where `tell` was given none."""
    losses, arms, offsets = given
    place = np.arange(losses.size) - np.repeat(offsets[:-1], np.diff(offsets))
    bits = (losses + 0.0).view(np.uint64)  # -0.0 is 0.0
    made = [_mix(bits + _mix(place.astype(np.uint64))), _mix(arms.astype(np.uint64))]
    sums = [np.append(np.uint64(0), np.cumsum(each, dtype=np.uint64)) for each in made]
    hashes = np.stack([each[offsets[1:]] - each[offsets[:-1]] for each in sums], axis=1)
    hashes[:, 0] ^= _mix(graph.astype(np.uint64))
    return np.column_stack([round_, np.diff(offsets), hashes.view(np.int64)])


def _mix(x: Words) -> Words:
    """Mix bits: the finaliser of SplitMix64 (Steele, Lea, Flood 2014), which maps 0 to 0."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
