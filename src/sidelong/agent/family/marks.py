"""By what a key recognises what it was told before: 64 bits of the losses and the graph, and 64 of the arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]
    Words = npt.NDArray[np.uint64]


def marks_of(losses: npt.NDArray[np.float64], arms: Integers, offsets: Integers, graph: Integers) -> Integers:
    """Return two hashes for each decision; `graph` is 0 where `tell` was given none."""
    place = np.arange(losses.size) - np.repeat(offsets[:-1], np.diff(offsets))
    bits = (losses + 0.0).view(np.uint64)  # -0.0 is 0.0
    made = [_mix(bits + _mix(place.astype(np.uint64))), _mix(arms.astype(np.uint64))]
    sums = [np.append(np.uint64(0), np.cumsum(each, dtype=np.uint64)) for each in made]
    marks = np.stack([each[offsets[1:]] - each[offsets[:-1]] for each in sums], axis=1)
    marks[:, 0] ^= _mix(graph.astype(np.uint64))
    return marks.view(np.int64)


def _mix(x: Words) -> Words:
    """Mix bits: the finaliser of SplitMix64 (Steele, Lea, Flood 2014), which maps 0 to 0."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
