"""The graphs of many decisions, in the forms that a family and a client of the service take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import short
from sidelong.errors import GraphError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.tables import are_several, as_array

if TYPE_CHECKING:
    import numpy.typing as npt


def each_of(given: Any, n: int) -> tuple[list[FeedbackGraph], npt.NDArray[np.int64]]:
    """Return the different graphs of n decisions, and which of them each has."""
    if isinstance(given, FeedbackGraph):
        return [given], np.zeros(n, np.int64)
    if isinstance(given, tuple) and len(given) == 2 and not isinstance(given[1], FeedbackGraph):
        bank, index = list(given[0]), as_array(given[1])
        if index.shape != (n,) or index.dtype.kind not in "iu":
            raise GraphError(f"(graphs, index) has one whole number for each of the {n} keys, not {short(given[1])}.")
        if n and not 0 <= index.min() <= index.max() < len(bank):
            raise GraphError(f"An index goes from 0 to {len(bank) - 1}, the last graph, and one is out of that range.")
        index = index.astype(np.int64)
    else:
        listed = list(given) if are_several(given) else []
        if len(listed) != n or not listed:
            raise GraphError(
                f"graph must be one FeedbackGraph, one for each of the {n} keys, or (graphs, index), not "
                f"{short(given)}."
            )
        places: dict[int, int] = {}
        index = np.fromiter((places.setdefault(id(each), len(places)) for each in listed), np.int64, n)
        bank = list({id(each): each for each in listed}.values())
    for each in bank:
        if not isinstance(each, FeedbackGraph):
            raise GraphError(f"graph must be a FeedbackGraph, not {type(each).__name__}.")
    used, index = np.unique(index, return_inverse=True)
    return [bank[g] for g in used.tolist()], index.reshape(-1)
