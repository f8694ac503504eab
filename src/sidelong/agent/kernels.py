"""The kernels of ask, tell and cancel: templates, compiled once for each learner.

Keys and their pending decisions are rows of tables (`Rows`, `Pending`), of which an agent has one key and a family
many. `ask_many`, `tell_many` and `drop_many` play any of them. `ask_one` and `tell_one` do the same for the key of an
agent: its state is at hand, and what stays the same from round to round comes as one address, because to hand arrays
over to a kernel takes as long as most of them run. All of them call `learn`, `note_drawn` and the learner's kernels by
the names of `learners.interface`, as the loop of a simulation does. So the run of a key is that of an agent, to the
bit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.agent.ceiling import cost_of, mix_in, spend
from sidelong.agent.observers import (
    CANCELLED,
    LOST,
    OVERRIDDEN,
    TRACED,
    DrawnRound,
    Observers,
    chances,
    note_asked,
    note_delay,
    note_dropped,
    note_told,
    row_of,
)
from sidelong.agent.rules import CANCELLED_SIZE, FITS, NOT_PENDING, check, hash_one
from sidelong.evaluation.advisers import judge
from sidelong.evaluation.certificates import NOT_TOLD, TOLD, TOLD_WITH_GRAPH, Standing, add, look_at_round
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.graphs.bank import BankArrays, select
from sidelong.learners.interface import (
    Asked,
    Need,
    Told,
    bound,
    draw,
    drawing,
    mark_present,
    marking,
    name_of,
    probability,
    release,
    trace_size,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong._packed import Packed
    from sidelong.learners.interface import Learner

SPARING = False  # whether the learner does not look at every arm: p has the probabilities of observing what is revealed
NO_FEEDBACK: Any = np.int64(NOT_TOLD)  # which has the type of the other ways in which a round may end
_LINE = 8  # words that the memory of a computer writes at once
NO_SEED: Any = np.uint64(0)  # nothing is drawn where a decision is let go
BINARY = False  # whether losses are 0 or 1
ETA, THETA, MASS = -1, -1, -1  # where the trace has what is summed for `lateness`
ADVISED = False  # whether the learner takes advice
BEFORE, ROWS_BEFORE = 0, 0  # how many numbers the trace has before the advice: these, and so many for each arm


class Scratch(NamedTuple):
    """What a kernel computes in."""

    losses: np.ndarray  #: (K,)
    present: np.ndarray  #: bool, (K,): the arms that can be played
    P: np.ndarray  #: (K,)
    costs: np.ndarray  #: (K,), as the losses, if there is a ceiling
    priced: np.ndarray  #: (K,): then, what the learner is told

    @classmethod
    def new(cls, n_arms: int) -> Scratch:
        """Return arrays for so many arms."""
        losses, P, costs, priced = np.zeros((4, n_arms))
        return cls(losses, np.ones(n_arms, np.bool_), P, costs, priced)


class KeyArrays(NamedTuple):
    """What the kernels of a single key take in every round, beside the graph; they get it as `Packed`."""

    params: Any
    state: Any
    rows: Rows  #: one of them, whose `state` is the memory that the state lies in
    observers: Observers
    scratch: Scratch
    graph: GraphArrays  #: the own one
    initial: int  #: how many initial rounds there are


class Rows(NamedTuple):
    """A row for each key of a family, beside its observers."""

    state: np.ndarray  #: uint64 words; not written before a key has a state that others do not have
    common: np.ndarray  #: int64: the place of its state among `SharedStates`; -1 if it is the one in `state`
    seed: np.ndarray  #: uint64
    round: np.ndarray  #: int64: how many decisions were made
    first: np.ndarray  #: int64: the oldest pending decision, as a row of `Pending`; -1 if there is none
    last: np.ndarray  #: int64: the newest one
    outstanding: np.ndarray  #: int64: how many are pending, without those of initial rounds
    told: np.ndarray  #: int64, (remembered, 4): the decisions that were told last, as `rules.marks_of` has them
    settled: np.ndarray  #: int64: how many were told or cancelled; the last one is at ``told[(settled - 1) % size]``
    scale: np.ndarray  #: best and worst, if keys have scales of their own; else of no columns


class Pending(NamedTuple):
    """A row for each pending decision, and others that are settled or free: a linked list for each key.

    What a decision was drawn with is written once, and no row is used twice.
    """

    key: np.ndarray  #: int64: its row of `Rows`; -1 if nothing is pending there
    round: np.ndarray  #: int64
    arm: np.ndarray  #: int64
    carried: np.ndarray  #: int64: the arm that was carried out
    graph: np.ndarray  #: int64: its place in the bank
    next: np.ndarray  #: int64: the next one of the same key, -1 if there is none
    previous: np.ndarray  #: int64: the one before it
    outstanding: np.ndarray  #: int64: as in `DrawnRound`, with the next three
    probability: np.ndarray  #: with which the arm was drawn
    p: np.ndarray
    trace: np.ndarray
    mean: np.ndarray
    x: np.ndarray  #: its features, all rows one after the other; of no columns where there are none


#: What is kept of a pending decision: all but the links between those of one key.
PENDING = tuple(name for name in Pending._fields if name not in {"next", "previous"})


class ThreadWorkspace(NamedTuple):
    """What one thread works on."""

    state: Any
    buffer: np.ndarray  #: that the state lies on
    scratch: Scratch
    trace: np.ndarray
    common: np.ndarray  #: the states that keys have in common, which all threads read


class AskBatch(NamedTuple):
    """A batch of keys, in the order of their rows; what is drawn is written into `arm` and `probability`."""

    row: np.ndarray
    graph: np.ndarray
    slot: np.ndarray  #: the row of `Pending` that each decision gets
    after: np.ndarray  #: the place in common of the state that each key is likely to come to; -1 if there is none
    given: np.ndarray  #: (n, w): what is known before the draw, the last w numbers of the trace
    arm: np.ndarray
    probability: np.ndarray


class TellBatch(NamedTuple):
    """A batch of decisions, in the order of the rows of their keys; their losses were checked."""

    slot: np.ndarray
    graph: np.ndarray
    offsets: np.ndarray  #: the losses of decision i lie from offsets[i] to offsets[i + 1]
    losses: np.ndarray
    marks: np.ndarray  #: int64, (n, 4): what is remembered of each, a row of `Rows.told`
    foreseen: np.ndarray  #: bool: whether the graph was known before the draw
    costs: np.ndarray  #: as losses; of size 0 without a ceiling


def count_round(
    observers: Observers, graph: GraphArrays, drawn: DrawnRound, losses: np.ndarray, how: int, P: np.ndarray
) -> None:
    """Count a round for the certificate, if one is kept, and for those who have advised in it; `P` is scratch."""
    advice = drawn.trace[BEFORE + ROWS_BEFORE * drawn.p.size :] if ADVISED else drawn.trace[:0]
    certified = observers.W.shape[0] > 0
    if certified or advice.size > 0:
        arms = graph.targets[graph.start[drawn.arm] : graph.stop[drawn.arm]]
        own = look_at_round(graph, drawn.arm, drawn.p, losses, how, P)
        if certified:
            standing = Standing(observers.W, observers.standing, observers.sums)
            add(standing, arms, P, drawn.mean, losses, own, how)
        if advice.size > 0:
            judge(observers.advisers, advice, graph, arms, P, drawn.mean, losses, own, how)


def learn(
    params: Any,
    state: Any,
    graphs: tuple[GraphArrays, GraphArrays, GraphArrays],
    drawn: DrawnRound,
    observers: Observers,
    scratch: Scratch,
    last: int,
    foreseen: bool,  # noqa: FBT001  # kernels have no names
) -> None:
    """Learn the losses in `scratch`, and count them; `last` is the last round that was drawn.

    The graphs are that of the outcome, the one that was asked with, which may be another, and the own one.

    A decision that was carried out with another arm than the drawn one teaches the means what that arm revealed. The
    learner lets go of it: its estimates are without bias only for arms that it drew itself.
    """
    graph, asked, _ = graphs
    absent = mark_present(graph, scratch.present)
    P, given = scratch.P, scratch.losses
    if observers.spending.size > 0:
        given = scratch.priced
        mix_in(observers.spending, scratch.losses, scratch.costs, given)
        spend(observers.spending, cost_of(graph, drawn.carried, scratch.costs))
    known = drawn.carried == drawn.arm
    if drawn.carried != drawn.arm:
        release(params, state, graph, Asked(drawn.t, drawn.p, drawn.trace, scratch.present, absent, NO_SEED, 0))
    else:
        told = Told(drawn.t, drawn.arm, drawn.p, given, drawn.trace, scratch.present, absent, asked)
        update(params, state, graph, told)
        if SPARING:  # a constant: what does not hold is not compiled
            P = drawn.p
        elif math.isnan(drawn.p[drawn.arm]):
            known = False
        else:
            chances(graph, drawn.arm, drawn.p, P)
    note_told(observers, graphs, drawn, scratch.losses, P, scratch.P, known, foreseen)
    if drawn.carried != drawn.arm:
        note_dropped(observers.delays, drawn, OVERRIDDEN)
        count_round(observers, graph, drawn, scratch.losses, NO_FEEDBACK, scratch.P)
        return
    eta = drawn.trace[ETA] if ETA >= 0 else 0.0
    theta = drawn.trace[THETA] if THETA >= 0 else 0.0
    note_delay(observers.delays, drawn, drawn.t < last, eta, theta, drawn.trace[MASS] if MASS >= 0 else 0.0)
    how = TOLD if foreseen else TOLD_WITH_GRAPH
    count_round(observers, graph, drawn, scratch.losses, how, scratch.P)


@kernel
def note_drawn(
    rows: Rows,
    row: int,
    observers: Observers,
    pending: Pending,
    slot: int,
    graph: int,
    drawn: tuple[int, int, float],
    absent: int,
    initial: int,
) -> None:
    """Let a decision of a key be pending: its round, arm and probability; `observers` are those of the key."""
    t, arm, chance = drawn
    note_asked(observers, absent, pending.mean[slot])
    rows.round[row] = t
    pending.key[slot] = row
    pending.round[slot] = t
    pending.arm[slot] = arm
    pending.carried[slot] = arm
    pending.graph[slot] = graph
    pending.probability[slot] = chance
    pending.outstanding[slot] = rows.outstanding[row] if t > initial else -1
    rows.outstanding[row] += t > initial
    last = rows.last[row]
    pending.next[slot] = -1
    pending.previous[slot] = last
    if last < 0:
        rows.first[row] = slot
    else:
        pending.next[last] = slot
    rows.last[row] = slot


@kernel
def unlink(rows: Rows, pending: Pending, slot: int) -> None:
    """Take a decision out of those of its key that are pending."""
    row, before, after = pending.key[slot], pending.previous[slot], pending.next[slot]
    if before < 0:
        rows.first[row] = after
    else:
        pending.next[before] = after
    if after < 0:
        rows.last[row] = before
    else:
        pending.previous[after] = before
    rows.outstanding[row] -= pending.outstanding[slot] >= 0
    pending.key[slot] = -1


@kernel
def remember(rows: Rows, row: int, t: int, size: int, losses: int, arms: int) -> None:
    """Write down what a decision was told, as `rules.marks_of` has it, in the place of the oldest one."""
    kept = rows.told.shape[1]
    if kept > 0:
        mark = rows.told[row, rows.settled[row] % kept]
        mark[0] = t
        mark[1] = size
        mark[2] = losses
        mark[3] = arms
        rows.settled[row] += 1


def ask_one(key: Packed, table: Packed, graph: Packed, slot: int, place: int) -> int:
    """Return the arm of the next round, which is then pending in `slot`; the graph has this place in the bank.

    The flags in `present` are all set before the first round, and the trace is zero but for what is known.
    """
    own, pending, shown = key.value, table.value, graph.value
    p, trace, t = pending.p[slot], pending.trace[slot], int(own.rows.round[0]) + 1
    absent = mark_present(shown, own.scratch.present)
    asked = Asked(t, p, trace, own.scratch.present, absent, own.rows.seed[0], 0)
    arm = draw(own.params, own.state, shown, asked)
    if 0 <= arm < p.size:
        chance = probability(own.params, own.state, shown, asked, arm) if SPARING else p[arm]
        observers = row_of(own.observers, 0)
        note_drawn(own.rows, 0, observers, pending, slot, place, (t, arm, chance), absent, own.initial)
    return arm


def tell_one(
    key: Packed,
    table: Packed,
    graph: Packed,
    asked: Packed,
    slot: int,
    given: int,
    best: float,
    worst: float,
    foreseen: bool,  # noqa: FBT001
    graph_key: int,
) -> int:
    """Check the `given` values in the scratch of a key, and learn them if they fit; return what `rules.check` found."""
    own, pending, shown, before = key.value, table.value, graph.value, asked.value
    if pending.key[slot] < 0:
        return NOT_PENDING
    drawn = drawn_at(pending, slot, kept_size(before, pending, slot))
    first = shown.start[drawn.carried]
    due = shown.stop[drawn.carried] - first
    losses = own.scratch.losses
    found = check(losses, 0, given, due, best, worst, BINARY)
    if found == FITS:
        rows, graphs = own.rows, (shown, before, own.graph)
        learn(own.params, own.state, graphs, drawn, row_of(own.observers, 0), own.scratch, rows.round[0], foreseen)
        of_losses, of_arms = hash_one(losses.view(np.uint64), shown.targets[first : first + due], 0, due, graph_key)
        remember(rows, 0, drawn.t, due, of_losses, of_arms)
        unlink(rows, pending, slot)
    return found


def drop_one(
    params: Any,
    state: Any,
    graph: GraphArrays,
    drawn: DrawnRound,
    observers: Observers,
    scratch: Scratch,
    lost: bool,  # noqa: FBT001
) -> None:
    """Let go of a decision that will never be told; one that was overridden was carried out, and counts as that."""
    absent = mark_present(graph, scratch.present)
    release(params, state, graph, Asked(drawn.t, drawn.p, drawn.trace, scratch.present, absent, NO_SEED, 0))
    why = LOST if lost else CANCELLED
    note_dropped(observers.delays, drawn, why if drawn.carried == drawn.arm else OVERRIDDEN)
    if lost or drawn.carried != drawn.arm:
        count_round(observers, graph, drawn, scratch.losses, NO_FEEDBACK, scratch.P)


@kernel
def fetch(words: np.ndarray, buffer: np.ndarray) -> None:
    """Copy a row into a buffer."""
    for k in range(words.size):
        buffer[k] = words[k]


@kernel
def fetch_state(workspace: ThreadWorkspace, rows: Rows, row: int) -> None:
    """Copy the state of a key into the buffer."""
    place = rows.common[row]
    if place < 0:
        fetch(rows.state[row], workspace.buffer)
    else:
        fetch(workspace.common[place], workspace.buffer)


@kernel
def is_same(words: np.ndarray, buffer: np.ndarray) -> bool:
    """Tell whether a buffer begins with these words."""
    other = np.uint64(0)
    for k in range(words.size):
        other |= words[k] ^ buffer[k]
    return other == 0  # type: ignore[no-any-return]


@kernel
def keep_state(workspace: ThreadWorkspace, rows: Rows, row: int, after: int) -> None:
    """Keep the state in the buffer: in the row of the key, unless it is, to the bit, the one in common at `after`."""
    words = rows.state[row]
    if after >= 0 and is_same(workspace.common[after], workspace.buffer):
        rows.common[row] = after
        return
    rows.common[row] = -1
    first = 0
    while first < words.size:  # what has not changed is not written again, which takes longer than to look at it
        last = min(first + _LINE, words.size)
        if not is_same(words[first:last], workspace.buffer[first:last]):
            fetch(workspace.buffer[first:last], words[first:last])
        first = last


@kernel
def keep_trace(trace: np.ndarray, kept: np.ndarray) -> None:
    """Keep a trace, unless it is the same: memory that was never written holds zeros, and takes no place."""
    if not is_same(kept.view(np.uint64), trace.view(np.uint64)):  # -0.0 is not 0.0
        fetch(trace, kept)


@kernel
def drawn_at(pending: Pending, slot: int, size: int) -> DrawnRound:
    """Return a pending decision; the first `size` numbers of `p` are those that its learner wrote."""
    return DrawnRound(
        int(pending.round[slot]),
        pending.arm[slot],
        pending.carried[slot],
        pending.outstanding[slot],
        pending.p[slot][:size],
        pending.trace[slot],
        pending.mean[slot],
    )


@kernel
def kept_size(graph: GraphArrays, pending: Pending, slot: int) -> int:
    """Return how many numbers of `p` the learner wrote: of a sparing one, as many as the drawn arm reveals."""
    if not SPARING:
        return pending.p.shape[1]  # type: ignore[no-any-return]
    arm = pending.arm[slot]
    return graph.stop[arm] - graph.start[arm]  # type: ignore[no-any-return]


def ask_many(
    params: Any,
    workspace: ThreadWorkspace,
    rows: Rows,
    observers: Observers,
    pending: Pending,
    bank: BankArrays,
    asked: AskBatch,
    initial: int,
    begin: int,
    end: int,
    keep: bool,  # noqa: FBT001
) -> None:
    """Draw an arm for the keys of a batch from `begin` to `end`; unless `keep`, no key takes notice.

    The first `initial` rounds of a key are those in which what is shown enters no weights.
    """
    for i in range(begin, end):
        row, slot = asked.row[i], asked.slot[i]
        fetch_state(workspace, rows, row)
        graph = select(bank, asked.graph[i])
        t = int(rows.round[row]) + 1
        p = pending.p[slot]
        workspace.trace[:] = 0.0
        first = workspace.trace.size - asked.given.shape[1]
        for k in range(asked.given.shape[1]):
            workspace.trace[first + k] = asked.given[i, k]
        absent = mark_present(graph, workspace.scratch.present)
        round_ = Asked(t, p, workspace.trace, workspace.scratch.present, absent, rows.seed[row], 0)
        arm = draw(params, workspace.state, graph, round_)
        asked.arm[i] = arm
        if not 0 <= arm < p.size:
            continue
        chance = probability(params, workspace.state, graph, round_, arm) if SPARING else p[arm]
        asked.probability[i] = chance
        if keep:
            keep_state(workspace, rows, row, asked.after[i])
            keep_trace(workspace.trace, pending.trace[slot])
            observers_ = row_of(observers, row)
            note_drawn(rows, row, observers_, pending, slot, asked.graph[i], (t, arm, chance), absent, initial)
        elif SPARING:
            for j in range(p.size):
                p[j] = probability(params, workspace.state, graph, round_, j)


def tell_many(
    params: Any,
    workspace: ThreadWorkspace,
    rows: Rows,
    observers: Observers,
    pending: Pending,
    bank: BankArrays,
    told: TellBatch,
    begin: int,
    end: int,
) -> None:
    """Learn the losses of the decisions of a batch from `begin` to `end`, which are pending no longer."""
    for i in range(begin, end):
        slot = told.slot[i]
        row = pending.key[slot]
        fetch_state(workspace, rows, row)
        graph = select(bank, told.graph[i])
        low = told.offsets[i]
        count = told.offsets[i + 1] - low
        for k in range(count):
            workspace.scratch.losses[k] = told.losses[low + k]
        if told.costs.size > 0:
            for k in range(count):
                workspace.scratch.costs[k] = told.costs[low + k]
        before = select(bank, pending.graph[slot])
        drawn = drawn_at(pending, slot, kept_size(before, pending, slot))
        learn(
            params,
            workspace.state,
            (graph, before, select(bank, 0)),
            drawn,
            row_of(observers, row),
            workspace.scratch,
            rows.round[row],
            told.foreseen[i],
        )
        keep_state(workspace, rows, row, -1)
        mark = told.marks[i]
        remember(rows, row, mark[0], mark[1], mark[2], mark[3])
        unlink(rows, pending, slot)


def drop_many(
    params: Any,
    workspace: ThreadWorkspace,
    rows: Rows,
    observers: Observers,
    pending: Pending,
    bank: BankArrays,
    slots: np.ndarray,
    lost: bool,  # noqa: FBT001
    marked: bool,  # noqa: FBT001
) -> None:
    """Let go of decisions that will never be told; if `marked`, that they were cancelled is remembered."""
    for i in range(slots.size):
        slot = slots[i]
        row = pending.key[slot]
        fetch_state(workspace, rows, row)
        graph = select(bank, pending.graph[slot])
        drawn = drawn_at(pending, slot, kept_size(graph, pending, slot))
        drop_one(params, workspace.state, graph, drawn, row_of(observers, row), workspace.scratch, lost)
        keep_state(workspace, rows, row, rows.common[row])
        if marked:
            remember(rows, row, drawn.t, CANCELLED_SIZE, lost, 0)
        unlink(rows, pending, slot)


@kernel
def find_many(rows: Rows, pending: Pending, row: np.ndarray, round_: np.ndarray, slot: np.ndarray) -> None:
    """Write into `slot` where each decision is pending; -1 if it is not."""
    for i in range(row.size):
        at = rows.first[row[i]]
        while at >= 0 and pending.round[at] != round_[i]:
            at = pending.next[at]
        slot[i] = at


@kernel
def observe_many(
    bank: BankArrays,
    graph: np.ndarray,
    pending: Pending,
    slot: np.ndarray,
    offsets: np.ndarray,
    sparing: bool,  # noqa: FBT001
    P: np.ndarray,
    observed: np.ndarray,
) -> None:
    """Write with which probability each arm that decisions reveal would be revealed, when they were drawn."""
    for i in range(slot.size):
        p = pending.p[slot[i]]
        shown = select(bank, graph[i])
        arm = pending.carried[slot[i]]
        first, begin = offsets[i], shown.start[arm]
        if not sparing:
            observe(shown, p, P)
        for k in range(offsets[i + 1] - first):
            observed[first + k] = p[k] if sparing else P[shown.targets[begin + k]]


class Kernels(NamedTuple):
    """The kernels of one learner."""

    ask_one: Callable[..., int]
    tell_one: Callable[..., int]
    ask_many: Callable[..., None]
    tell_many: Callable[..., None]
    drop_many: Callable[..., None]


def kernels_of(learner: Learner) -> Kernels:
    """Return the kernels of a learner."""
    own = name_of(learner)
    eta, theta, mass = (learner.traces.index(name) if name in learner.traces else -1 for name in TRACED)
    absent = {"mark_present": marking(learner)}
    advice = {"ADVISED": learner.add_adviser is not None, "ROWS_BEFORE": len(learner.kept)}
    counting = bound(count_round, f"count_{own}", BEFORE=trace_size(learner, 0), **advice)
    letting_go = absent | {"release": learner.release, "count_round": counting}
    sparing: dict[str, Any] = {"SPARING": learner.is_sparing}
    traced = {"ETA": eta, "THETA": theta, "MASS": mass}
    learning = bound(learn, f"learn_{own}", update=learner.update, **letting_go, **sparing, **traced)
    dropping = bound(drop_one, f"drop_{own}", **letting_go)
    sized = bound(kept_size, f"size_{own}", **sparing)
    drawn = {"draw": drawing(learner), "probability": learner.probability}
    binary = Need.BINARY_LOSSES in learner.needs
    return Kernels(
        bound(ask_one, f"ask_{own}", **drawn, **absent, **sparing),
        bound(tell_one, f"tell_{own}", learn=learning, kept_size=sized, BINARY=binary),
        bound(ask_many, f"ask_many_{own}", **drawn, **absent, **sparing),
        bound(tell_many, f"tell_many_{own}", learn=learning, kept_size=sized),
        bound(drop_many, f"drop_many_{own}", drop_one=dropping, kept_size=sized),
    )
