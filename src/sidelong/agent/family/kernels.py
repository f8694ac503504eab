"""The compiled loops over a batch of keys: templates, compiled once for each learner.

They call the learner's kernels by the names of `learners.interface`, as the loop of a simulation does. So the run of a
key is that of an agent, to the bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.agent.family.memory import REMEMBERED, Outstanding, Rows
from sidelong.agent.seen import note
from sidelong.graphs.arrays import observe
from sidelong.graphs.bank import BankArrays, select
from sidelong.learners.interface import (
    Asked,
    Told,
    bound,
    draw,
    drawing,
    is_sparing,
    mark_present,
    marking,
    name_of,
    probability,
    release,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.learners.interface import Learner

SPARING = False  # whether the learner does not look at every arm


class Desk(NamedTuple):
    """What one thread works on."""

    state: Any
    buffer: np.ndarray  #: that the state lies on
    losses: np.ndarray
    trace: np.ndarray
    present: np.ndarray  #: which arms can be played in the round at hand
    common: np.ndarray  #: the states that keys have in common, which all threads read


class AskBatch(NamedTuple):
    """A batch of keys, in the order of their rows; what is drawn is written into `arm` and `probability`."""

    row: np.ndarray
    graph: np.ndarray
    slot: np.ndarray  #: the row of `Outstanding` that each decision gets
    after: np.ndarray  #: the place in `Common` of the state that each key is likely to come to; -1 if there is none
    arm: np.ndarray
    probability: np.ndarray


class TellBatch(NamedTuple):
    """A batch of decisions, in the order of the rows of their keys."""

    slot: np.ndarray
    graph: np.ndarray
    offsets: np.ndarray  #: the losses of decision i lie from offsets[i] to offsets[i + 1]
    losses: np.ndarray
    marks: np.ndarray  #: int64, (n, 4): what is remembered of each, a row of `Rows.told`


@kernel
def fetch(words: np.ndarray, buffer: np.ndarray) -> None:
    """Copy a row into a buffer."""
    for k in range(words.size):
        buffer[k] = words[k]


@kernel
def fetch_state(desk: Desk, rows: Rows, row: int) -> None:
    """Copy the state of a key into the buffer."""
    place = rows.common[row]
    if place < 0:
        fetch(rows.state[row], desk.buffer)
    else:
        fetch(desk.common[place], desk.buffer)


@kernel
def is_same(words: np.ndarray, buffer: np.ndarray) -> bool:
    """Tell whether a buffer begins with these words."""
    other = np.uint64(0)
    for k in range(words.size):
        other |= words[k] ^ buffer[k]
    return other == 0  # type: ignore[no-any-return]


@kernel
def keep_state(desk: Desk, rows: Rows, row: int, after: int) -> None:
    """Keep the state in the buffer: in the row of the key, unless it is, to the bit, the one in common at `after`."""
    words = rows.state[row]
    if after >= 0 and is_same(desk.common[after], desk.buffer):
        rows.common[row] = after
        return
    rows.common[row] = -1
    fetch(desk.buffer[: words.size], words)


@kernel
def lay(trace: np.ndarray, kept: np.ndarray) -> None:
    """Keep a trace, unless it is the same: memory that was never written holds zeros, and takes no place."""
    if not is_same(kept.view(np.uint64), trace.view(np.uint64)):  # -0.0 is not 0.0
        fetch(trace, kept)


def ask_all(
    params: Any,
    desk: Desk,
    rows: Rows,
    waiting: Outstanding,
    bank: BankArrays,
    asked: AskBatch,
    begin: int,
    end: int,
    keep: bool,  # noqa: FBT001  # a kernel takes its arguments by position
) -> None:
    """Draw an arm for the keys of a batch from `begin` to `end`; unless `keep`, no key takes notice."""
    for i in range(begin, end):
        row, slot = asked.row[i], asked.slot[i]
        fetch_state(desk, rows, row)
        graph = select(bank, asked.graph[i])
        t = int(rows.round[row]) + 1
        p = waiting.p[slot]
        desk.trace[:] = 0.0
        absent = mark_present(graph, desk.present)
        round_ = Asked(t, p, desk.trace, desk.present, absent, rows.seed[row], 0)
        arm = draw(params, desk.state, graph, round_)
        asked.arm[i] = arm
        if not 0 <= arm < p.size:
            continue
        if SPARING:  # a constant: what does not hold is not compiled
            asked.probability[i] = probability(params, desk.state, graph, round_, arm)
            if not keep:
                for j in range(p.size):
                    p[j] = probability(params, desk.state, graph, round_, j)
        else:
            asked.probability[i] = p[arm]
        if keep:
            keep_state(desk, rows, row, asked.after[i])
            lay(desk.trace, waiting.trace[slot])
            rows.round[row] = t
            waiting.key[slot] = row
            waiting.round[slot] = t
            waiting.arm[slot] = arm
            waiting.graph[slot] = asked.graph[i]
            waiting.probability[slot] = asked.probability[i]
            waiting.next[slot] = -1
            if rows.first[row] < 0:
                rows.first[row] = slot
            else:
                waiting.next[rows.last[row]] = slot
            rows.last[row] = slot


def tell_all(
    params: Any, desk: Desk, rows: Rows, waiting: Outstanding, bank: BankArrays, told: TellBatch, begin: int, end: int
) -> None:
    """Learn the losses of the decisions of a batch from `begin` to `end`, which wait no longer."""
    for i in range(begin, end):
        slot = told.slot[i]
        row, t, arm = waiting.key[slot], int(waiting.round[slot]), waiting.arm[slot]
        fetch_state(desk, rows, row)
        graph = select(bank, told.graph[i])
        low = told.offsets[i]
        count = told.offsets[i + 1] - low
        for k in range(count):
            desk.losses[k] = told.losses[low + k]
        p = waiting.p[slot]
        if SPARING:
            p = p[:count]
        absent = mark_present(graph, desk.present)
        update(params, desk.state, graph, Told(t, arm, p, desk.losses, waiting.trace[slot], desk.present, absent))
        keep_state(desk, rows, row, -1)
        _see(rows, row, graph, arm, desk.losses, graph.key != bank.keys[waiting.graph[slot]])
        for k in range(REMEMBERED - 1, 0, -1):
            for column in range(4):
                rows.told[row, k, column] = rows.told[row, k - 1, column]
        for column in range(4):
            rows.told[row, 0, column] = told.marks[i, column]
        strike(rows, waiting, slot)


def drop_all(params: Any, desk: Desk, rows: Rows, waiting: Outstanding, bank: BankArrays, slots: np.ndarray) -> None:
    """Let go of decisions that will never be told."""
    for i in range(slots.size):
        slot = slots[i]
        row = waiting.key[slot]
        fetch_state(desk, rows, row)
        graph = select(bank, waiting.graph[slot])
        absent = mark_present(graph, desk.present)
        p, trace = waiting.p[slot], waiting.trace[slot]
        asked = Asked(int(waiting.round[slot]), p, trace, desk.present, absent, rows.seed[row], 0)
        release(params, desk.state, graph, asked)
        keep_state(desk, rows, row, rows.common[row])
        strike(rows, waiting, slot)


@kernel
def _see(rows: Rows, row: int, graph: Any, arm: int, losses: np.ndarray, after: bool) -> None:  # noqa: FBT001
    """Count what was told; where the graph came with the losses, that of the played arm alone."""
    first, last = graph.start[arm], graph.stop[arm]
    for e in range(first, last):
        if not after or graph.targets[e] == arm:
            note(graph.targets[e], losses[e - first], rows.counts[row], rows.means[row], rows.squares[row])


@kernel
def strike(rows: Rows, waiting: Outstanding, slot: int) -> None:
    """Take a decision out of those of its key that wait."""
    row = waiting.key[slot]
    before = np.int64(-1)
    at = rows.first[row]
    while at != slot:
        before = at
        at = waiting.next[at]
    after = waiting.next[slot]
    if before < 0:
        rows.first[row] = after
    else:
        waiting.next[before] = after
    if after < 0:
        rows.last[row] = before
    waiting.key[slot] = -1


@kernel
def find_all(rows: Rows, waiting: Outstanding, row: np.ndarray, round_: np.ndarray, slot: np.ndarray) -> None:
    """Write into `slot` where each decision waits; -1 if it does not."""
    for i in range(row.size):
        at = rows.first[row[i]]
        while at >= 0 and waiting.round[at] != round_[i]:
            at = waiting.next[at]
        slot[i] = at


@kernel
def reveal_all(bank: BankArrays, graph: np.ndarray, arm: np.ndarray, offsets: np.ndarray, reveals: np.ndarray) -> None:
    """Write into `reveals`, one after the other, the arms that each arm reveals in its graph."""
    for i in range(arm.size):
        shown = select(bank, graph[i])
        first = shown.start[arm[i]]
        for k in range(shown.stop[arm[i]] - first):
            reveals[offsets[i] + k] = shown.targets[first + k]


@kernel
def observe_all(
    bank: BankArrays,
    graph: np.ndarray,
    waiting: Outstanding,
    slot: np.ndarray,
    offsets: np.ndarray,
    sparing: bool,  # noqa: FBT001  # a kernel
    room: np.ndarray,
    observed: np.ndarray,
) -> None:
    """Write into `observed`, one after the other, the probability that each revealed arm would be revealed."""
    for i in range(slot.size):
        shown = select(bank, graph[i])
        first, p = offsets[i], waiting.p[slot[i]]
        begin = shown.start[waiting.arm[slot[i]]]
        if not sparing:
            observe(shown, p, room)
        for k in range(offsets[i + 1] - first):
            observed[first + k] = p[k] if sparing else room[shown.targets[begin + k]]


def loops_for(learner: Learner) -> tuple[Callable[..., None], Callable[..., None], Callable[..., None]]:
    """Return `ask_all`, `tell_all` and `drop_all` for a learner."""
    own = name_of(learner)
    absent = {"mark_present": marking(learner)}
    sparing = absent | {"SPARING": is_sparing(learner), "probability": learner.probability}
    return (
        bound(ask_all, f"ask_all_{own}", draw=drawing(learner), **sparing),
        bound(tell_all, f"tell_all_{own}", update=learner.update, **sparing),
        bound(drop_all, f"drop_all_{own}", release=learner.release, **absent),
    )
