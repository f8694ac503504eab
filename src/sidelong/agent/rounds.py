"""The keys of a family with their states, observers and pending decisions, and the threads that play them."""

from __future__ import annotations

import concurrent.futures
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sidelong._jit import bind
from sidelong.agent.decision import decision_at
from sidelong.agent.graphs import Bank
from sidelong.agent.kernels import (
    PENDING,
    AskBatch,
    Pending,
    Rows,
    TellBatch,
    ThreadWorkspace,
    Workspace,
    find_many,
    kernels_of,
    observe_many,
)
from sidelong.agent.observers import Observers
from sidelong.agent.pool import PooledTrust
from sidelong.agent.regressors import Ridge, weights_of
from sidelong.agent.rules import (
    ROUND,
    SIZE,
    NamedDecisions,
    cancelled_mark,
    check_cancelled,
    overriding_arm,
    refuse_outcome,
)
from sidelong.agent.states import Layout, SharedStates
from sidelong.checks import check_whole, short
from sidelong.errors import LearnerError
from sidelong.graphs.presence import with_absent_arm
from sidelong.keys import Keys, seeds_of
from sidelong.learners.interface import is_checked, refusal, widen_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sidelong.agent.decision import Decision
    from sidelong.agent.setup import Setup
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.keys import Key

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

#: Fewer keys than this are played faster by one thread than by two.
_FEW = 512
#: So many keys at a time have their next probabilities computed.
_CHUNK = 4096
#: A key remembers what it was told for this many decisions, unless it is told otherwise.
REMEMBERED = 4


def new_pending(setup: Setup, size: int = 0, features: int = 0) -> Pending:
    """Return a table of free rows, for decisions with so many features in all."""
    key, round_, arm, carried, graph, following, outstanding = np.full((7, size), -1, np.int64)
    reals = [np.empty((size, width)) for width in (setup.graph.n_arms, setup.n_traces, setup.n_means, features)]
    return Pending(key, round_, arm, carried, graph, following, outstanding, np.empty(size), *reals)


def longer(array: np.ndarray, used: int, size: int) -> np.ndarray:
    """Return an array with room for `size` rows, of which the first `used` are kept; it grows by half at least."""
    if size <= len(array):
        return array
    grown = np.zeros((max(size, min(len(array) + len(array) // 2, 2 * size)), *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown


class DrawnColumns(NamedTuple):
    """What was drawn for some rows: the columns of a batch behind its keys."""

    rounds: Integers
    arms: Integers
    probabilities: Floats
    reveals: npt.NDArray[np.int32]
    offsets: Integers


class Rounds:
    """All that a family keeps. Rows beyond the number of keys are room for more."""

    def __init__(
        self, setup: Setup, bank: Bank | None = None, remembers: int = REMEMBERED, regressor: Ridge | None = None
    ) -> None:
        self.setup = setup
        self.regressor = regressor  #: what predicts losses from features, with a row for each key
        self.bank = Bank(setup.learner, setup.options, [setup.graph]) if bank is None else bank
        self.layout = Layout(setup.learner, setup.state)
        self.first_state = self.layout.filled(setup.state)  #: of a key before its first round
        self.first_observers = setup.observers()
        self.common = SharedStates(self.layout.kept)
        self.keys = Keys()
        self.names: dict[str, str] = {}  #: the ids of decisions that a service made, by the names it gave them
        longs = np.empty(0, np.int64)
        told, words = np.empty((0, remembers, 4), np.int64), np.empty((0, self.layout.kept), np.uint64)
        self.rows = Rows(words, longs, np.empty(0, np.uint64), longs, longs, longs, longs, told, np.empty((0, 0)))
        self.observers = Observers(*(np.empty((0, *each.shape), each.dtype) for each in self.first_observers))
        self.pending = self.new_pending()
        self.free = np.empty(0, np.int64)  #: the rows of `pending` that no decision has
        self._workspaces: list[ThreadWorkspace] = []
        self._pool = PooledTrust.new(len(setup.advisers)) if setup.pooled else None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def pool(self) -> PooledTrust | None:
        """What all keys have found out together about advisers, if they do."""
        return self._pool

    @pool.setter
    def pool(self, pool: PooledTrust | None) -> None:
        self._pool = pool
        if pool is not None:  # threads compute on copies of `first_state`
            name = self.setup.learner.pooled[1]
            for state in (self.layout.on(self.first_state), *(each.state for each in self._workspaces)):
                getattr(state, name)[:] = pool.log_weights()

    def _bind(self, name: str) -> Callable[..., None]:
        """Return what runs a loop: found when it is first needed, as its types do not depend on keys and batches."""
        if not hasattr(self, f"_{name}"):
            made, long, flag = kernels_of(self.setup.learner), np.empty(0, np.int64), True
            batches: dict[str, tuple[Any, ...]] = {
                "ask": (
                    made.ask_many,
                    AskBatch(long, long, long, long, np.empty((0, 0)), long, np.empty(0)),
                    0,
                    0,
                    0,
                    flag,
                ),
                "tell": (
                    made.tell_many,
                    TellBatch(long, long, long, np.empty(0), np.empty((0, 4), np.int64), long > 0),
                    0,
                    0,
                ),
                "drop": (made.drop_many, long, flag),
            }
            loop, *batch = batches[name]
            bind(self, f"_{name}", loop, *self._parts(self.workspace(0)), *batch, of=str(self.setup.learner.name))
        return getattr(self, f"_{name}")  # type: ignore[no-any-return]

    def _parts(self, workspace: ThreadWorkspace, pending: Pending | None = None) -> tuple[Any, ...]:
        room = self.pending if pending is None else pending
        return self.setup.params, workspace, self.rows, self.observers, room, self.bank.arrays

    def workspace(self, number: int) -> ThreadWorkspace:
        """Return what a thread works on."""
        while len(self._workspaces) <= number:
            buffer = self.first_state.copy()  # what is no room but never changes is there too
            room = Workspace.new(self.setup.graph.n_arms)
            trace = np.zeros(self.setup.n_traces)
            self._workspaces.append(ThreadWorkspace(self.layout.on(buffer), buffer, room, trace, self.common.states))
        return self._workspaces[number]

    # Keys

    def add(self, new: list[Key]) -> Integers:
        """Add keys that are not there; return their rows."""
        n, size = len(self.keys), len(self.keys) + len(new)
        self.rows = rows = Rows(*(longer(array, n, size) for array in self.rows))
        self.observers = Observers(*(longer(array, n, size) for array in self.observers))
        for array, first in zip(self.observers, self.first_observers, strict=True):
            if first.any():
                array[n:size] = first
        rows.common[n:size] = self.common.place(self.first_state[: self.layout.kept])
        rows.seed[n:size] = seeds_of(new, self.setup.seed)
        rows.round[n:size] = rows.outstanding[n:size] = 0
        rows.first[n:size] = rows.last[n:size] = -1
        if rows.scale.shape[1]:
            rows.scale[n:size] = self.setup.ends
        self.keys.add(new)
        if self.regressor is not None:
            self.regressor.extend(size)
        return np.arange(n, size)

    def set_state(self, row: int, state: Any) -> None:
        """Let a key go on from another state."""
        self.rows.state[row], self.rows.common[row] = self.layout.filled(state)[: self.layout.kept], -1

    def state_of(self, row: int) -> Any:
        """Return a copy of the state of a key."""
        buffer, place = self.first_state.copy(), self.rows.common[row]
        buffer[: self.layout.kept] = self.rows.state[row] if place < 0 else self.common.states[place]
        return self.layout.on(buffer)

    def observers_of(self, row: int) -> Observers:
        """Return the observers of a key, as views."""
        return Observers(*(array[row] for array in self.observers))

    def part_states(self) -> None:
        """Write the state of each key into a row of its own."""
        shared = np.flatnonzero(self.rows.common[: len(self.keys)] >= 0)
        self.rows.state[shared] = self.common.states[self.rows.common[shared]]
        self.rows.common[shared] = -1

    def scales(self) -> Floats:
        """Return best and worst of each key; losses in [0, 1] have 0 and 1."""
        own = self.rows.scale[: len(self.keys)]
        return own if own.shape[1] else np.tile(self.setup.ends, (len(self.keys), 1))

    def remember(self, decisions: int) -> None:
        """Let each key remember what it was told for so many decisions, from now on."""
        self.rows = self.rows._replace(told=self.remembered(decisions))

    def remembered(self, decisions: int) -> Integers:
        """Return what keys were told, for so many decisions of each."""
        told = self.rows.told
        kept = np.zeros((len(told), decisions, 4), np.int64)
        kept[:, : told.shape[1]] = told[:, :decisions]
        return kept

    def keep_features(self, kind: str, columns: int) -> None:
        """Let all features be of this kind, and of so many columns, from the first decision on."""
        if self.regressor is not None and not self.regressor.kind:
            self.regressor.keep(kind, columns)
            self.pending, self.free = self.new_pending(), np.empty(0, np.int64)

    # Pending decisions

    def new_pending(self, size: int = 0) -> Pending:
        """Return a table of free rows."""
        return new_pending(self.setup, size, 0 if self.regressor is None else self.regressor.width)

    def take(self, n: int) -> Integers:
        """Return n free rows of `pending`."""
        if self.free.size < n:
            before = len(self.pending.key)
            size = before + max(n - self.free.size, before // 2)
            self.pending = Pending(*(longer(array, before, size) for array in self.pending))
            size = len(self.pending.key)
            self.pending.key[before:] = -1
            self.free = np.append(np.arange(size - 1, before - 1, -1), self.free)
        taken, self.free = self.free[self.free.size - n :][::-1].copy(), self.free[: self.free.size - n]
        return taken

    def give(self, slots: Integers) -> None:
        """Take rows of `pending` back; if nothing is pending any more, their memory goes too."""
        self.free = np.append(self.free, slots[::-1])
        if self.free.size == len(self.pending.key):
            self.pending = self.new_pending()
            self.free = np.empty(0, np.int64)
        places = self.bank.forget(self.pending.graph[self.pending.key >= 0])
        if places is not None:
            self.pending.graph[self.pending.key >= 0] = places

    def in_order(self) -> Integers:
        """Return where decisions are pending, key after key, oldest first."""
        pending = self.pending
        slots = np.flatnonzero(pending.key >= 0)
        return np.asarray(slots[np.lexsort((pending.round[slots], pending.key[slots]))])

    def of_row(self, row: int) -> list[int]:
        """Return where the decisions of one key are pending, oldest first."""
        slots, at = [], int(self.rows.first[row])
        while at >= 0:
            slots.append(at)
            at = int(self.pending.next[at])
        return slots

    def decision(self, slot: int) -> Decision:
        """Return a pending decision of its own."""
        graph, key = self.bank.graphs[self.pending.graph[slot]], self.keys.listed[self.pending.key[slot]]
        made = decision_at(self.setup, self.pending._asdict(), slot, graph, f"{self.setup.tag}-{key}")
        return made if self.regressor is None else made.with_features(self.regressor.kept(self.pending.x[slot]))

    def find(self, row: Integers, round_: Integers) -> Integers:
        """Return where each decision is pending; -1 if it is not."""
        slot = np.empty(row.size, np.int64)
        find_many(self.rows, self.pending, row, round_, slot)
        return slot

    def named(self, row: Integers, round_: Integers) -> tuple[Integers, NamedDecisions]:
        """Return where decisions are pending, and what is known of each."""
        slot = self.find(row, round_)
        waits = slot >= 0
        arm, asked = np.zeros((2, row.size), np.int64)
        arm[waits], asked[waits] = self.pending.carried[slot[waits]], self.pending.graph[slot[waits]]
        before = np.zeros((row.size, 4), np.int64)
        settled = np.flatnonzero(~waits)
        if settled.size and self.rows.told.shape[1]:
            told = self.rows.told[row[settled]]
            same = (told[:, :, ROUND] == round_[settled, None]) & (told[:, :, SIZE] >= 0)
            found = told[np.arange(settled.size), same.argmax(axis=1)]
            before[settled] = np.where(same.any(axis=1)[:, None], found, 0)
        ends = self.scales()[row] if self.rows.scale.shape[1] else np.tile(self.setup.ends, (row.size, 1))

        def name(at: int) -> str:
            return f"{round_[at]}-{self.setup.tag}-{self.keys.listed[row[at]]}"

        def whose(at: int) -> str:
            return f" of the key {short(self.keys.listed[row[at]])}, decision {name(at)},"

        return slot, NamedDecisions(name, whose, round_, waits, arm, asked, before, np.asarray(ends, np.float64))

    def observe(self, slot: Integers, graph: Integers) -> Floats:
        """Return with which probability each arm that pending decisions reveal would be revealed; NaN if unknown."""
        arm = self.pending.carried[slot]
        sizes = self.bank.degrees(graph, arm)
        offsets = np.append(0, np.cumsum(sizes))
        P, observed = np.empty(self.setup.graph.n_arms), np.empty(int(offsets[-1]))
        sparing, other = self.setup.learner.is_sparing, graph != self.pending.graph[slot]
        if sparing and other.any():
            at = int(np.argmax(other))
            refuse_outcome(self.setup.learner, foreseen=False, name=self.ids(slot[at : at + 1])[0], key="")
        observe_many(self.bank.arrays, graph, self.pending, slot, offsets, sparing, P, observed)
        unknown = np.isnan(self.pending.probability[slot])
        if sparing:  # it keeps those of what the drawn arm reveals
            unknown |= arm != self.pending.arm[slot]
        observed[np.repeat(unknown, sizes)] = np.nan
        return observed

    def ids(self, slots: Integers) -> list[str]:
        """Return what names pending decisions."""
        pairs = zip(self.pending.round[slots].tolist(), self.pending.key[slots].tolist(), strict=True)
        return [f"{t}-{self.setup.tag}-{self.keys.listed[row]}" for t, row in pairs]

    def override(self, slots: Integers, arms: list[Any]) -> None:
        """Let pending decisions be carried out with other arms: all of them, or none."""
        graphs = [self.bank.graphs[g] for g in self.pending.graph[slots].tolist()]
        before = self.pending.arm[slots].tolist(), self.pending.carried[slots].tolist()
        carried = [overriding_arm(*each) for each in zip(graphs, arms, self.ids(slots), *before, strict=True)]
        self.pending.carried[slots] = carried

    # Rounds

    def ask(
        self,
        row: Integers,
        places: Integers,
        threads: int,
        x: Floats | None = None,
        advised: Floats | None = None,
    ) -> DrawnColumns:
        """Draw an arm for each row, on graphs by their places; return the columns of a batch behind its keys.

        With a regressor, `x` has the features of each row. Of each row, `advised` has the advice of all advisers.

        A learner of a user's own may fail for some row, so that its draws are tried first, which changes nothing. What
        fails later, as the second draw of a row or an interrupt, cancels the decisions of all rows.
        """
        given = np.empty((row.size, 0)) if advised is None else advised
        if self.regressor is not None:
            given = self.regressor.predict_many(row, x)
        if is_checked(self.setup.learner):
            self.outlook(row, places)
        slot = self.take(row.size)
        try:
            return self._draw(row, places, slot, threads, given, x)
        except BaseException:  # nobody will know of these decisions
            drawn = slot[self.pending.key[slot] >= 0]
            self.free = np.append(self.free, slot[self.pending.key[slot] < 0])
            self.drop(drawn)
            raise

    def _draw(
        self, row: Integers, places: Integers, slot: Integers, threads: int, given: Floats, x: Floats | None
    ) -> DrawnColumns:
        """Draw an arm for each row; the decisions are pending in these slots, in the order of the rows."""
        n = row.size
        order = np.argsort(row, kind="stable")
        none, arm = np.full(n, -1), np.empty(n, np.int64)
        asked = AskBatch(row[order], places[order], slot, none, given[order], arm, np.empty(n))
        if x is not None:
            self.pending.x[slot] = x[order].reshape(n, self.pending.x.shape[1])
        self._foresee(asked)
        self._share(self._bind("ask"), asked.row, threads, asked, (self.setup.initial,), (True,))
        self._check_arms(asked, self.pending)
        back = np.empty(n, np.int64)
        back[order] = np.arange(n)
        arms = asked.arm[back]
        reveals = self.bank.reveals(places, arms)
        return DrawnColumns(self.pending.round[slot][back], arms, asked.probability[back], *reveals)

    def _foresee(self, asked: AskBatch) -> None:
        """Write into `after` what keys come to that have a state in common: one of each kind is asked before all."""
        place = self.rows.common[asked.row]
        shared = np.flatnonzero(place >= 0)
        n_graphs = len(self.bank.graphs)
        kind = place[shared] * n_graphs + asked.graph[shared]
        kinds, first, which = np.unique(kind, return_index=True, return_inverse=True)
        after = []
        for each, one in zip(kinds.tolist(), shared[first].tolist(), strict=True):
            at, graph = divmod(each, n_graphs)
            key = int(self.bank.arrays.keys[graph])
            known = self.common.after(at, key)
            if known is None:
                alone = slice(one, one + 1)
                self._look_ahead(asked.row[alone], asked.graph[alone], asked.given[alone])
                known = self.common.expect(at, key, self.workspace(0).buffer[: self.layout.kept])
            after.append(known)
        asked.after[shared] = np.array(after, np.int64)[which.reshape(-1)]

    def tell(self, told: TellBatch, threads: int) -> None:
        """Learn a batch of decisions, in the order of the rows of their keys."""
        pending, pool, row = self.pending, self._pool, self.pending.key[told.slot]
        keys = row[:0] if pool is None else np.unique(row)  # which sorts them
        before = np.empty(0) if pool is None else self._lost_by_advice(keys)
        self._share(self._bind("tell"), row, threads, told, (), ())
        if pool is not None:
            self.pool = pool.after((self._lost_by_advice(keys) - before).sum(axis=0))
        if self.regressor is not None:
            arms, offsets = self.bank.reveals(told.graph, pending.carried[told.slot])
            weights = weights_of(self.observe(told.slot, told.graph), told.foreseen, offsets)
            self.regressor.learn_many(row, pending.x[told.slot], offsets, arms, told.losses, weights)
        self.give(told.slot)

    def _lost_by_advice(self, row: Integers) -> Floats:
        """Return what each adviser would have lost with each of some keys, as far as these know."""
        place = self.rows.common[row]
        words = np.where(place[:, None] < 0, self.rows.state[row], self.common.states[place])
        return self.layout.column(words, self.setup.learner.pooled[0]).copy()

    def cancel(self, slots: Integers, *, lost: bool) -> None:
        """Let go of decisions that were never carried out, or are lost."""
        overridden = self.pending.carried[slots] != self.pending.arm[slots]
        if overridden.any():
            check_cancelled(self.ids(slots[overridden])[0], overridden=True, lost=lost)
        row, round_ = self.pending.key[slots].tolist(), self.pending.round[slots].tolist()
        self.drop(slots, lost=lost)
        for at, t in zip(row, round_, strict=True):
            told = self.rows.told[at]
            told[1:] = told[:-1].copy()
            told[:1] = cancelled_mark(t, lost=lost)

    def was_cancelled(self, row: int, round_: int, *, lost: bool) -> bool:
        """Tell whether a key remembers that a decision was cancelled in this way."""
        return bool((self.rows.told[row] == cancelled_mark(round_, lost=lost)).all(axis=1).any())

    def expire(self, slots: Integers, age: int, *, lost: bool) -> list[str]:
        """Let go of those pending decisions after which their key has made `age` others, or more; return their ids."""
        age = check_whole(LearnerError, "age", age, 0)
        old = slots[self.rows.round[self.pending.key[slots]] - self.pending.round[slots] >= age]
        ids = self.ids(old)
        self.drop(old, lost=bool(lost))
        return ids

    def drop(self, slots: Integers, *, lost: bool = False) -> None:
        """Let go of decisions that will never be told."""
        self._bind("drop")(*self._parts(self.workspace(0)), slots, lost)
        self.give(slots)

    def outlook(self, row: Integers, graph: Integers | None = None) -> tuple[Floats, Any]:
        """Return the probabilities with which each key would play next, and the state of the last one after that."""
        if self.regressor is not None:  # what is played next depends on what will be known then
            return np.full((row.size, self.setup.graph.n_arms), np.nan), self.setup.state
        places = np.zeros(row.size, np.int64) if graph is None else graph
        pieces = [slice(k, k + _CHUNK) for k in range(0, row.size, _CHUNK)]
        chunks = [self._look_ahead(row[some], places[some]) for some in pieces]
        return np.concatenate([np.empty((0, self.setup.graph.n_arms)), *chunks]), self.workspace(0).state

    def _look_ahead(self, row: Integers, graph: Integers, given: Floats | None = None) -> Floats:
        """Return with which probabilities each key would play next; the first workspace has the state of the last."""
        n = row.size
        room, none, arm = self.new_pending(n), np.full(n, -1), np.empty(n, np.int64)
        known = np.empty((n, 0)) if given is None else given
        asked = AskBatch(row, graph, np.arange(n), none, known, arm, np.empty(n))
        self._bind("ask")(*self._parts(self.workspace(0), room), asked, self.setup.initial, 0, n, False)  # noqa: FBT003  # a kernel
        self._check_arms(asked, room)
        return room.p

    def _check_arms(self, asked: AskBatch, pending: Pending) -> None:
        """Refuse a batch in which a learner gave no distribution, or drew no arm."""
        n_arms = self.setup.graph.n_arms
        wrong = np.flatnonzero((asked.arm < 0) | (asked.arm >= n_arms))
        if wrong.size:
            at = int(wrong[0])
            t, p = int(self.rows.round[asked.row[at]]) + 1, pending.p[asked.slot[at]]
            raise refusal(self.setup.learner, t, p, int(asked.arm[at]), n_arms)

    def _share(
        self,
        work: Callable[..., None],
        row: Integers,
        threads: int,
        batch: Any,
        before: tuple[Any, ...],
        after: tuple[Any, ...],
    ) -> None:
        """Let threads work on a batch whose rows ascend: all decisions of a key are one thread's."""
        n = row.size
        ends = [n * k // threads for k in range(threads + 1)] if n >= _FEW else [0, n]
        ends[1:-1] = [int(np.searchsorted(row, row[end])) for end in ends[1:-1]]
        calls = [
            (*self._parts(self.workspace(k)), batch, *before, begin, end, *after)
            for k, (begin, end) in enumerate(itertools.pairwise(ends))
        ]
        if len(calls) == 1:
            work(*calls[0])
            return
        with concurrent.futures.ThreadPoolExecutor(len(calls) - 1) as pool:
            others = [pool.submit(work, *call) for call in calls[1:]]
            work(*calls[0])
            for each in others:
                each.result()

    # Tables as a whole

    def let_wait(self, columns: dict[str, np.ndarray]) -> None:
        """Let decisions be pending, which are given key after key, oldest first."""
        key = columns["key"]
        n = key.size
        same = np.append(key[1:] == key[:-1], False)[:n]
        following = np.where(same, np.arange(1, n + 1), -1)
        self.pending = self.new_pending()._replace(**columns, next=following)
        self.free = np.empty(0, np.int64)
        self.rows.first[:], self.rows.last[:] = -1, -1
        self.rows.first[key[::-1]] = np.arange(n)[::-1]
        self.rows.last[key] = np.arange(n)
        self.rows.outstanding[:] = 0
        np.add.at(self.rows.outstanding, key, columns["outstanding"] >= 0)

    def grown(self, graph: FeedbackGraph) -> Rounds:
        """Return the same keys with one more arm, which was absent until now."""
        learner, before = self.setup.learner, self.setup
        grow: Any = learner.grow  # it was checked that there is one
        params, first = grow(before.params, before.state)
        setup = replace(before, params=params, state=first, graph=graph)
        graphs = [with_absent_arm(each, graph.labels) for each in self.bank.graphs]
        made = self._changed(
            Rounds(setup, Bank(learner, setup.options, [graph, *graphs]), self.rows.told.shape[1]),
            lambda state: grow(before.params, state)[1],
        )
        made.observers = made.observers.grown(self.rows.outstanding[: len(self)] > 0)
        made.pool = self.pool
        columns = self.columns()
        places = np.array([made.bank.place(each) for each in graphs], np.int64)
        columns["graph"] = places[columns["graph"]]
        if not learner.is_sparing:
            columns["p"] = np.pad(columns["p"], ((0, 0), (0, 1)))
        if learner.kept:
            K, n = before.graph.n_arms, len(columns["trace"])
            wider = [widen_trace(learner, trace, K) for trace in columns["trace"]]
            columns["trace"] = np.array(wider).reshape(n, setup.n_traces)
        if setup.n_means:
            columns["mean"] = np.pad(columns["mean"], ((0, 0), (0, 1)), constant_values=0.5)
        made.let_wait(columns)
        return made

    def advised(self, names: tuple[str, ...]) -> Rounds:
        """Return the same keys with more advisers, who were silent until now."""
        setup = self.setup.advised(names)
        made = self._changed(
            Rounds(setup, self.bank, self.rows.told.shape[1]),
            lambda state: self.setup.with_advisers(state, len(names))[1],
        )
        made.observers = made.observers.with_advisers(len(names))
        made.pool = None if self.pool is None else self.pool.with_advisers(len(names))
        columns = self.columns()
        for name, width, more in (("trace", setup.n_traces, 0.0), ("mean", setup.n_means, 0.5)):
            missing = width - columns[name].shape[1]
            columns[name] = np.pad(columns[name], ((0, 0), (0, missing)), constant_values=more)
        made.let_wait(columns)
        return made

    def columns(self) -> dict[str, np.ndarray]:
        """Return what is kept of the pending decisions, key after key, oldest first."""
        slots = self.in_order()
        return {name: getattr(self.pending, name)[slots] for name in PENDING}

    def _changed(self, made: Rounds, change: Callable[[Any], Any]) -> Rounds:
        """Let others have the same keys, with other states; return them. Nothing is pending there yet."""
        n = len(self)
        made.keys, made.names = self.keys, self.names
        made.observers = Observers(*(array[:n] for array in self.observers))
        words, common = np.zeros((n, made.layout.kept), np.uint64), np.full(n, -1, np.int64)
        made.rows = Rows(*(array[:n] for array in self.rows))._replace(state=words, common=common)
        shared: dict[int, np.ndarray] = {}  # of states in common, what they become
        for row, place in enumerate(self.rows.common[:n].tolist()):
            if place < 0 or place not in shared:
                made.set_state(row, change(self.state_of(row)))
                shared[place] = words[row]
            else:
                words[row] = shared[place]
        return made

    @classmethod
    def merged(cls, parts: list[tuple[Rounds, np.ndarray]], setup: Setup | None = None) -> Rounds:
        """Return some rows of several, which are of one family, together; with `setup`, on another own graph."""
        first = parts[0][0]
        remembers = max(part.rows.told.shape[1] for part, _ in parts)
        regressor = (
            None
            if first.regressor is None
            else first.regressor.merged([(cast("Ridge", part.regressor), chosen) for part, chosen in parts])
        )
        made = cls(first.setup if setup is None else setup, remembers=remembers, regressor=regressor)
        own_scales = any(part.rows.scale.shape[1] for part, _ in parts)
        columns: dict[str, list[np.ndarray]] = {name: [] for name in PENDING}
        rows, observers = [], []
        for part, chosen in parts:
            part.part_states()
            told = part.remembered(remembers)
            new = np.full(len(part.keys), -1, np.int64)
            new[chosen] = np.arange(chosen.size) + len(made.keys)
            made.keys.add(part.keys.listed[row] for row in chosen.tolist())
            scale = part.scales() if own_scales else part.rows.scale
            rows.append([array[chosen] for array in part.rows._replace(scale=scale, told=told)])
            observers.append([array[chosen] for array in part.observers])
            slots = part.in_order()
            slots = slots[new[part.pending.key[slots]] >= 0]
            places = np.array([made.bank.place(graph) for graph in part.bank.graphs], np.int64)
            for name in PENDING:
                columns[name].append(getattr(part.pending, name)[slots])
            columns["x"][-1] = columns["x"][-1].reshape(slots.size, made.pending.x.shape[1])  # if it has any
            columns["key"][-1] = new[columns["key"][-1]]
            columns["graph"][-1] = places[columns["graph"][-1]]
            made.names |= part.names
        made.rows = Rows(*(np.concatenate(each) for each in zip(*rows, strict=True)))
        made.observers = Observers(*(np.concatenate(each) for each in zip(*observers, strict=True)))
        made.let_wait({name: np.concatenate(each) for name, each in columns.items()})
        made.pool = first.pool
        return made
