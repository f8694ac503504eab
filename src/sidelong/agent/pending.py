"""The decisions of an agent that wait for their losses, as arrays of a state file.

Most learners give a decision the probabilities of all arms, which make a table. One that does not look at every arm
gives it the probabilities of what it reveals, which are of different lengths and stand one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.running import revealed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from sidelong.agent.decision import Decision
    from sidelong.graphs.graph import FeedbackGraph


def write_pending(
    pending: Collection[Decision], number: Callable[[FeedbackGraph], int], n_arms: int, n_traces: int, *, sparing: bool
) -> dict[str, np.ndarray]:
    """Return the arrays; `number` says which graph of the file one is."""
    rows = [made._p for made in pending]  # noqa: SLF001  # what users see of it is read-only
    traces = np.array([made._trace for made in pending], np.float64)  # noqa: SLF001
    arrays: dict[str, np.ndarray] = {
        "pending.round": np.array([made.round for made in pending], np.int64),
        "pending.arm": np.array([made.arm for made in pending], np.int64),
        "pending.graph": np.array([number(made.graph) for made in pending], np.int64),
    }
    if sparing:
        arrays["pending.p"] = np.concatenate([np.empty(0), *rows])
        arrays["pending.probability"] = np.array([made.probability for made in pending], np.float64)
    else:
        arrays["pending.p"] = np.array(rows, np.float64).reshape(len(pending), n_arms)
    return arrays | {"pending.trace": traces.reshape(len(pending), n_traces)}


def read_pending(
    arrays: Mapping[str, np.ndarray], bank: Sequence[FeedbackGraph], *, sparing: bool
) -> Iterator[tuple[Any, ...]]:
    """Yield what each decision was made of: round, arm, graph, p and trace, and if `sparing` its probability."""
    names = ("round", "arm", "graph", "trace", *(["probability"] if sparing else []))
    columns: list[Any] = [arrays[f"pending.{name}"] for name in names]
    rows: Any = arrays["pending.p"]
    if sparing:
        ends = np.cumsum([revealed(bank[g], arm).size for arm, g in zip(*columns[1:3], strict=True)], dtype=np.int64)
        rows = np.split(rows, ends)[:-1]
    for p, t, arm, g, trace, *probability in zip(rows, *columns, strict=True):
        yield int(t), int(arm), bank[g], p.copy(), trace.copy(), *map(float, probability)
