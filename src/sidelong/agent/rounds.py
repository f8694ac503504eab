"""The engine: keys with their states, observers and pending decisions, and the rules of ask, tell, cancel and override.

An agent is the engine with one key (`single`), a family with many. What either is asked or told comes here by the rows
of keys and by rounds.
"""

from __future__ import annotations

import concurrent.futures
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import bind
from sidelong.agent import rules
from sidelong.agent.ceiling import (
    DECISIONS,
    PRICE,
    SPENT,
    Spending,
    check_given,
    costs_of_many,
    fitting,
    in_order,
    over,
    spend,
    summary,
)
from sidelong.agent.codec import Saved
from sidelong.agent.graphs import Bank
from sidelong.agent.kernels import (
    PENDING,
    AskBatch,
    KeyArrays,
    Pending,
    Rows,
    Scratch,
    TellBatch,
    ThreadWorkspace,
    find_many,
    kernels_of,
    observe_many,
)
from sidelong.agent.observers import ABSENT, Observers
from sidelong.agent.pool import PooledTrust
from sidelong.agent.regressors import best_arms, weights_of
from sidelong.agent.states import MANY_STATES, Layout, SharedStates
from sidelong.checks import check_whole, short
from sidelong.errors import CostError, LearnerError
from sidelong.graphs.presence import with_absent_arm
from sidelong.keys import Keys, seeds_of
from sidelong.learners.interface import is_checked, refusal, widen_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sidelong.agent.feedback import LossColumns
    from sidelong.agent.rules import Accepted, NamedDecisions
    from sidelong.agent.setup import Setup
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.keys import Key

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

#: Fewer keys than this are played faster by one thread than by two.
_FEW = 512
#: So many keys at a time have their next probabilities computed.
_CHUNK = 4096
#: A key remembers what it was told for this many decisions, unless it is told otherwise; and an agent for these.
REMEMBERED, REMEMBERED_BY_AGENT = 4, 10_000
#: The table of an agent's decisions has at least so many rows and at most so many bytes, unless more are pending.
_FEWEST, _BYTES = 16, 2**18


def longer(array: np.ndarray, used: int, size: int) -> np.ndarray:
    """Return an array of `size` rows at least, of which the first `used` are kept; it grows by half at least."""
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
    """All that an agent or a family keeps. Tables may have more rows than there are keys.

    Args:
        setup: what it began with.
        bank: its graphs, if it has more than its own.
        remembers: for how many decisions each key remembers what it was told.
        regressor: what predicts losses from features, if anything does.
        single: whether it is an agent: it has one key without a name, from the start.
    """

    def __init__(
        self,
        setup: Setup,
        bank: Bank | None = None,
        remembers: int = REMEMBERED,
        regressor: Any = None,
        *,
        single: bool = False,
    ) -> None:
        self.setup = setup
        self.single = single
        self.regressor = regressor  #: a `Ridge`, or of a single key any `Regressor`
        self.bank = new_bank(setup, [setup.graph], single=single) if bank is None else bank
        self.layout = Layout(setup.learner, setup.state)
        self.first_state = self.layout.filled(setup.state)  #: of a key before its first round
        self.first_observers = setup.observers().selecting() if single else setup.observers()
        self.common = SharedStates(self.layout.kept, 0 if single else MANY_STATES)
        self.keys = Keys()
        self.names: dict[str, str] = {}  #: the ids of decisions that a service made, by the names it gave them
        longs = np.empty(0, np.int64)
        told, words = np.empty((0, remembers, 4), np.int64), np.empty((0, self.layout.kept), np.uint64)
        seeds, scales = np.empty(0, np.uint64), np.empty((0, 0))
        self.rows = Rows(words, longs, seeds, longs, longs, longs, longs, told, longs, scales)
        self.observers = Observers(*(np.empty((0, *each.shape), each.dtype) for each in self.first_observers))
        self.pending = self.new_pending()
        self.used = 0  #: how many rows of `pending` were used, from the first on
        self._n_pending = 0  # how many of them have a pending decision, in a family
        self._workspaces: list[ThreadWorkspace] = []
        self._pool = PooledTrust.new(len(setup.advisers)) if setup.pooled else None
        ceiling = setup.ceiling
        #: What all keys have spent, if they have one line.
        self.account = ceiling._replace(shared=False).spending() if ceiling is not None and ceiling.shared else None
        if single:
            self.add([""])

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
                    TellBatch(long, long, long, np.empty(0), np.empty((0, 4), np.int64), long > 0, np.empty(0)),
                    0,
                    0,
                ),
                "drop": (made.drop_many, long, flag, flag),
            }
            loop, *batch = batches[name]
            bind(self, f"_{name}", loop, *self._parts(self.workspace(0)), *batch, of=str(self.setup.learner.name))
        return getattr(self, f"_{name}")  # type: ignore[no-any-return]

    def _parts(self, workspace: ThreadWorkspace, pending: Pending | None = None) -> tuple[Any, ...]:
        table = self.pending if pending is None else pending
        return self.setup.params, workspace, self.rows, self.observers, table, self.bank.arrays

    def workspace(self, number: int) -> ThreadWorkspace:
        """Return what a thread works on: the first thread from 1; 0 is for what changes no key."""
        while len(self._workspaces) <= number:
            buffer = self.first_state.copy()  # what is scratch but never changes is there too
            scratch = Scratch.new(self.setup.graph.n_arms)
            trace = np.zeros(self.setup.n_traces)
            self._workspaces.append(ThreadWorkspace(self.layout.on(buffer), buffer, scratch, trace, self.common.states))
        return self._workspaces[number]

    def attach(self) -> KeyArrays:
        """Return what the kernels of a single key take: its state is where the first thread computes on it."""
        own = self.workspace(1)
        own.buffer[: self.layout.kept] = self.rows.state[0]
        self.rows = self.rows._replace(state=own.buffer[None, : self.layout.kept])
        return KeyArrays(
            self.setup.params,
            own.state,
            self.rows,
            self.observers,
            own.scratch,
            self.setup.graph.arrays,
            self.setup.initial,
        )

    # Keys

    def add(self, new: list[Key]) -> Integers:
        """Add keys that are not there; return their rows."""
        n, size = len(self.keys), len(self.keys) + len(new)
        self.rows = rows = Rows(*(longer(array, n, size) for array in self.rows))
        self.observers = Observers(*(longer(array, n, size) for array in self.observers))
        for array, first in zip(self.observers, self.first_observers, strict=True):
            if first.any():
                array[n:size] = first
        rows.common[n:size] = place = self.common.place(self.first_state[: self.layout.kept])
        if place < 0:
            rows.state[n:size] = self.first_state[: self.layout.kept]
        rows.seed[n:size] = self.setup.seed if self.single else seeds_of(new, self.setup.seed)
        rows.round[n:size] = rows.outstanding[n:size] = rows.settled[n:size] = 0
        rows.first[n:size] = rows.last[n:size] = -1
        if rows.scale.shape[1]:
            rows.scale[n:size] = self.setup.ends
        self.keys.add(new)
        if self.regressor is not None and not self.single:
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
        self._set_told(self.remembered(decisions))

    def _set_told(self, told: Integers) -> None:
        """Let keys remember what they were told, the last one first."""
        self.rows.settled[:] = told.shape[1]
        self.rows = self.rows._replace(told=np.ascontiguousarray(told[:, ::-1]))

    def remembered(self, decisions: int) -> Integers:
        """Return what keys were told, for so many decisions of each, the last one first; zeros where there are less."""
        told, settled = self.rows.told, self.rows.settled
        kept, some = np.zeros((len(told), decisions, 4), np.int64), min(decisions, told.shape[1])
        if some:
            places = (settled[:, None] - 1 - np.arange(some)) % told.shape[1]
            kept[:, :some] = told[np.arange(len(told))[:, None], places]
        return kept

    def correct_mark(self, row: int, mark: Integers) -> None:
        """Let what is remembered of the decision that was just told be this."""
        told = self.rows.told[row]
        if len(told):
            told[(self.rows.settled[row] - 1) % len(told)] = mark

    def keep_features(self, kind: str, columns: int) -> None:
        """Let all features be of this kind, and of so many columns, from the first decision on."""
        if self.regressor is not None and not self.regressor.kind:
            self.regressor.keep(kind, columns)
            self.pending, self.used = self.new_pending(), 0

    # Pending decisions

    def new_pending(self, size: int = 0) -> Pending:
        """Return a table of so many rows in which nothing is pending."""
        setup, features = self.setup, 0 if self.regressor is None else self.regressor.width
        p, mean, x = (np.empty((size, width)) for width in (setup.graph.n_arms, setup.n_means, features))
        columns = *np.full((8, size), -1, np.int64), np.empty(size), p, np.zeros((size, setup.n_traces)), mean, x
        return Pending._make(columns)

    def take(self, n: int) -> Integers:
        """Return n rows of `pending` that are free."""
        if self.used + n > len(self.pending.key):
            self.extend(n)
        self.used += n
        self._n_pending += n
        return np.arange(self.used - n, self.used)

    def extend(self, n: int) -> None:
        """Let there be n free rows at least, in a new table that has what is pending, in the same order."""
        old, before = self.pending, len(self.pending.key)
        live = np.flatnonzero(old.key[: self.used] >= 0)
        wanted = live.size + n
        if self.single:
            row_bytes = 8 * sum(column[:1].size for column in self.new_pending(1))
            size = max(wanted, 2 * live.size, min(2 * before, _BYTES // row_bytes), min(_FEWEST, _BYTES // row_bytes))
        else:
            size = max(wanted, min(before + before // 2, 2 * wanted))
        self.pending = new = self.new_pending(size)
        places = np.full(before + 1, -1, np.int64)  # the last one for -1
        places[live] = np.arange(live.size)
        width = new.p.shape[1]
        if self.setup.learner.is_sparing and live.size:  # the rest of a row was never written
            width = int(self.bank.degrees(old.graph[live], old.arm[live]).max())
        for name, column in new._asdict().items():
            part = (slice(live.size), slice(width)) if name == "p" else slice(live.size)
            column[part] = getattr(old, name)[live][:, :width] if name == "p" else getattr(old, name)[live]
        new.next[: live.size], new.previous[: live.size] = places[old.next[live]], places[old.previous[live]]
        keys = np.unique(old.key[live])
        self.rows.first[keys], self.rows.last[keys] = places[self.rows.first[keys]], places[self.rows.last[keys]]
        self.used = live.size
        if self.regressor is not None:
            self.regressor.forget(new.x[: live.size])

    def give(self, n: int) -> None:
        """Take note that n decisions are pending no longer; if nothing is, the memory of a large table goes too."""
        self._n_pending -= n
        if not self._n_pending and not self.single:
            self.used = 0
            if len(self.pending.key) > _FEW:
                self.pending = self.new_pending()
        self.forget_graphs()

    def forget_graphs(self) -> None:
        """Forget graphs that no pending decision needs, if there are many."""
        if self.bank.has_many:
            live = self.pending.key[: self.used] >= 0
            self.pending.graph[: self.used][live] = self.bank.forget(self.pending.graph[: self.used][live])

    @property
    def kept_graphs(self) -> list[FeedbackGraph]:
        """The graphs that a file has, in their order there: the own one, and those of pending decisions."""
        used = np.unique(np.append(0, self.pending.graph[self.in_order()]))
        return [self.bank.graphs[g] for g in used.tolist()]

    def in_order(self) -> Integers:
        """Return where decisions are pending, key after key, oldest first."""
        pending = self.pending
        slots = np.flatnonzero(pending.key[: self.used] >= 0)
        return np.asarray(slots[np.lexsort((pending.round[slots], pending.key[slots]))])

    def of_row(self, row: int) -> list[int]:
        """Return where the decisions of one key are pending, oldest first."""
        slots, at = [], int(self.rows.first[row])
        while at >= 0:
            slots.append(at)
            at = int(self.pending.next[at])
        return slots

    def find(self, row: Integers, round_: Integers) -> Integers:
        """Return where each decision is pending; -1 if it is not."""
        if self.single:  # which may have many, in the order of their rounds
            drawn = self.pending.round[: self.used]
            slot = np.minimum(np.searchsorted(drawn, round_), self.used - 1)
            there = (drawn[slot] == round_) & (self.pending.key[slot] >= 0) if self.used else np.zeros(row.size, bool)
            return np.where(there, slot, -1)
        slot = np.empty(row.size, np.int64)
        find_many(self.rows, self.pending, row, round_, slot)
        return slot

    def must_find(self, row: Integers, round_: Integers, what: str) -> Integers:
        """Return where each decision is pending, or say that it must be to `what`."""
        slot = self.find(row, round_)
        if (slot < 0).any():
            at = int(np.argmin(slot))
            raise rules.not_pending(self.name(int(row[at]), int(round_[at])), what)
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
            same = (told[:, :, rules.ROUND] == round_[settled, None]) & (told[:, :, rules.SIZE] >= 0)
            found = told[np.arange(settled.size), same.argmax(axis=1)]
            before[settled] = np.where(same.any(axis=1)[:, None], found, 0)
        ends = self.scales()[row] if self.rows.scale.shape[1] else np.tile(self.setup.ends, (row.size, 1))

        def name(at: int) -> str:
            return self.name(int(row[at]), int(round_[at]))

        def whose(at: int) -> str:
            return "" if self.single else f" of the key {short(self.keys.listed[row[at]])}, decision {name(at)},"

        return slot, rules.NamedDecisions(name, whose, round_, waits, arm, asked, before, np.asarray(ends, np.float64))

    def tag_of(self, row: int) -> str:
        """Return what the ids of a key's decisions have behind the round."""
        return self.setup.tag if self.single else f"{self.setup.tag}-{self.keys.listed[row]}"

    def name(self, row: int, round_: int) -> str:
        """Return the id of a decision."""
        return f"{round_}-{self.tag_of(row)}"

    def observe(self, slot: Integers, graph: Integers) -> Floats:
        """Return with which probability each arm that pending decisions reveal would be revealed; NaN if unknown."""
        arm = self.pending.carried[slot]
        sizes = self.bank.degrees(graph, arm)
        offsets = np.append(0, np.cumsum(sizes))
        P, observed = np.empty(self.setup.graph.n_arms), np.empty(int(offsets[-1]))
        sparing, other = self.setup.learner.is_sparing, graph != self.pending.graph[slot]
        if sparing and other.any():
            at = int(np.argmax(other))
            rules.refuse_outcome(self.setup.learner, foreseen=False, name=self.ids(slot[at : at + 1])[0], key="")
        observe_many(self.bank.arrays, graph, self.pending, slot, offsets, sparing, P, observed)
        unknown = np.isnan(self.pending.probability[slot])
        if sparing:  # it keeps those of what the drawn arm reveals
            unknown |= arm != self.pending.arm[slot]
        observed[np.repeat(unknown, sizes)] = np.nan
        return observed

    def ids(self, slots: Integers) -> list[str]:
        """Return what names pending decisions."""
        pairs = zip(self.pending.key[slots].tolist(), self.pending.round[slots].tolist(), strict=True)
        return [self.name(row, t) for row, t in pairs]

    def override(self, row: Integers, round_: Integers, arms: list[Any]) -> Integers:
        """Let decisions be carried out with other arms: all of them, or none; return where they are pending."""
        slots = self.must_find(row, round_, "be overridden")
        graphs = [self.bank.graphs[g] for g in self.pending.graph[slots].tolist()]
        before = self.pending.arm[slots].tolist(), self.pending.carried[slots].tolist()
        carried = [rules.overriding_arm(*each) for each in zip(graphs, arms, self.ids(slots), *before, strict=True)]
        self.pending.carried[slots] = carried
        self.pending = Pending(*self.pending)  # another one, by which an agent knows that its decisions have changed
        return slots

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
            given = self._predict(row, places, x, advised)
        if is_checked(self.setup.learner):
            self.outlook(row, places)
        slot = self.take(row.size)
        try:
            return self._draw(row, places, slot, threads, given, x)
        except BaseException:  # nobody will know of these decisions
            drawn = slot[self.pending.key[slot] >= 0]
            self._n_pending -= slot.size - drawn.size
            self.drop(drawn)
            raise

    def _predict(self, row: Integers, places: Integers, x: Floats | None, advised: Floats | None) -> Floats:
        """Return what the learner is given of features: the predictions, or the best arm beside other advice."""
        f: Floats = self.regressor.predict_many(row, x)
        if not self.regressor.advisers:
            return f
        n, K = f.shape
        names = self.setup.advisers
        given = np.zeros((n, len(names) * K)) if advised is None else advised
        at = names.index(self.regressor.advisers[0])
        for place in np.unique(places).tolist():
            some = places == place
            given[some, at * K : (at + 1) * K] = best_arms(f[some], self.bank.graphs[place])
        return given

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

    def fit(self, row: Integers, places: Integers) -> Integers:
        """Return the graphs of decisions without the arms that do not fit under the ceiling.

        A row that is not there yet is that of a new key. Decisions that are asked for at once share equally what may
        still be overspent.

        Raises:
            CostError: no arm that is there fits.
        """
        ceiling = self.setup.ceiling
        if ceiling is None or ceiling.bounds is None or not row.size:
            return places
        whose = row if self.account is None else np.zeros(row.size, np.int64)
        keys, which = np.unique(whose, return_inverse=True)
        excess, table = ceiling.excess(self.setup.graph), self.pending
        live = np.flatnonzero(table.key[: self.used] >= 0)
        known = np.zeros((keys.size, self.observers.spending.shape[1]))
        known[:] = ceiling.spending() if self.account is None else self.account
        if self.account is None:
            there = keys < len(self)
            known[there] = self.observers.spending[keys[there]]
            sums = np.bincount(table.key[live], excess[table.carried[live]], max(len(self), int(keys[-1]) + 1))
            reserved = np.asarray(sums[keys], np.float64)
        else:
            reserved = excess[table.carried[live]].sum(keepdims=True)
        level = ceiling.levels(excess, over(known), reserved, np.bincount(which))
        kinds, of = np.unique(np.stack([places, level[which]]), axis=1, return_inverse=True)
        made = [
            self.bank.place(fitting(ceiling, self.setup.graph, self.bank.graphs[place], n))
            for place, n in kinds.T.tolist()
        ]
        return np.array(made, np.int64)[of.reshape(-1)]

    def spending(self, row: int | None) -> Spending:
        """Return what a key has spent, or all of them together."""
        ceiling = self.setup.ceiling
        if ceiling is None:
            raise CostError("Nothing is known of costs without a ceiling. Make it with ceiling=...")
        slots = np.flatnonzero(self.pending.key[: self.used] >= 0)
        if row is not None:
            slots = slots[self.pending.key[slots] == row]
        reserved = ceiling.reserved(self.setup.graph, self.pending.carried[slots])
        rows = self.observers.spending[: len(self)]
        known = ceiling.spending() if not len(rows) else rows[0].copy() if row is None else rows[row].copy()
        if self.account is not None:
            known[PRICE] = self.account[PRICE]
        elif row is None and len(rows) > 1:
            known[PRICE] = rows[:, PRICE].mean()
        if row is None and len(rows):
            known[[DECISIONS, SPENT]] = rows[:, [DECISIONS, SPENT]].sum(axis=0)
        return summary(known, reserved)

    def accept(
        self,
        row: Integers,
        round_: Integers,
        heard: LossColumns,
        graph: Any,
        revealed: Any = None,
        costs: LossColumns | None = None,
    ) -> tuple[Integers, Accepted]:
        """Return where decisions are pending and what is to be learned of them, or refuse what was told.

        A decision that is not pending was told the same before.
        """
        self.forget_graphs()
        slot, named = self.named(row, round_)
        known = self.setup.learner, self.bank, named, heard, int(self.rows.told.shape[1])
        return slot, rules.FeedbackCheck(*known, self.setup.ceiling).accept(graph, revealed, costs)

    def learn(
        self,
        row: Integers,
        round_: Integers,
        heard: LossColumns,
        graph: Any,
        revealed: Any,
        threads: int,
        costs: LossColumns | None = None,
    ) -> int:
        """Learn what was heard of decisions; return how many were pending."""
        check_given(self.setup.ceiling, costs)
        slot, told = self.accept(row, round_, heard, graph, revealed, costs)
        order = np.flatnonzero(slot >= 0)  # in the order of the rows and, of one key, as they were named
        if (np.diff(row[order]) < 0).any():
            order = order[np.argsort(row[order], kind="stable")]
        losses, offsets, spent = told.losses, told.offsets, told.costs
        if order.size < row.size or (np.diff(order) != 1).any():
            sizes = np.diff(offsets)[order]
            ends = np.append(0, np.cumsum(sizes))
            some = np.repeat(offsets[order] - ends[:-1], sizes) + np.arange(ends[-1])
            losses, offsets, spent = losses[some], ends, spent[some] if spent.size else spent
        foreseen, marks = np.full(order.size, told.foreseen), told.marks[order]
        self.tell(TellBatch(slot[order], told.shown[order], offsets, losses, marks, foreseen, spent), threads)
        return int(order.size)

    def tell(self, told: TellBatch, threads: int) -> None:
        """Learn a batch of decisions, in the order of the rows of their keys."""
        pending, pool, row = self.pending, self._pool, self.pending.key[told.slot]
        keys = row[:0] if pool is None else np.unique(row)  # which sorts them
        before = np.empty(0) if pool is None else self._lost_by_advice(keys)
        if not told.foreseen.all():
            self.observers = self.observers.selecting()
        account: Any = self.account
        if account is not None:
            self.observers.spending[row, PRICE] = account[PRICE]
        self._share(self._bind("tell"), row, threads, told, (), ())
        if account is not None:
            carried = pending.carried[told.slot]
            arms, offsets = self.bank.reveals(told.graph, carried)
            for cost in told.costs[arms == np.repeat(carried, np.diff(offsets))].tolist():
                spend(account, cost)
        if pool is not None:
            self.pool = pool.after((self._lost_by_advice(keys) - before).sum(axis=0))
        if self.regressor is not None:
            arms, offsets = self.bank.reveals(told.graph, pending.carried[told.slot])
            weights = weights_of(self.observe(told.slot, told.graph), told.foreseen, offsets)
            self.regressor.learn_many(row, pending.x[told.slot], offsets, arms, told.losses, weights)
        self.give(told.slot.size)

    def _lost_by_advice(self, row: Integers) -> Floats:
        """Return what each adviser would have lost with each of some keys, as far as these know."""
        place = self.rows.common[row]
        words = np.where(place[:, None] < 0, self.rows.state[row], self.common.states[place])
        return self.layout.column(words, self.setup.learner.pooled[0]).copy()

    def cancel(self, row: Integers, round_: Integers, *, lost: bool, costs: Any = None) -> int:
        """Let go of decisions that were never carried out, or are lost, at known costs: all of them, or none.

        Returns:
            How many were pending; the others were cancelled in the same way before.
        """
        slots = self.find(row, round_)
        spent = None if costs is None else self._lost_costs(costs, slots, lost=lost)
        for at in np.flatnonzero(slots < 0).tolist():
            mark = rules.cancelled_mark(int(round_[at]), lost=lost)
            if not (self.rows.told[row[at]] == mark).all(axis=1).any():
                raise rules.not_pending(self.name(int(row[at]), int(round_[at])), "be cancelled")
        spent = None if spent is None else spent[slots >= 0]
        slots = slots[slots >= 0]
        overridden = slots[self.pending.carried[slots] != self.pending.arm[slots]]
        if overridden.size:
            rules.check_cancelled(self.ids(overridden)[0], overridden=True, lost=lost)
        self.drop(slots, lost=lost, marked=True, costs=spent)
        return int(slots.size)

    def _lost_costs(self, costs: Any, slots: Integers, *, lost: bool) -> Floats:
        """Return what decisions have cost whose losses are lost, or refuse it."""
        ceiling = self.setup.ceiling
        if ceiling is None or not lost:
            what = "there is no ceiling" if ceiling is None else "these decisions are not said to be lost"
            raise CostError(f"A cost is told of a cancelled decision if it was lost, under a ceiling, and {what}.")
        arms = np.where(slots >= 0, self.pending.carried[slots], -1)
        single = np.ones(slots.size, np.int64)
        return in_order(ceiling, costs_of_many(costs), single, arms, arms, lambda _: "")

    def expire(self, slots: Integers, age: int, *, lost: bool) -> list[str]:
        """Let go of those pending decisions after which their key has made `age` others, or more; return their ids."""
        age = check_whole(LearnerError, "age", age, 0)
        old = slots[self.rows.round[self.pending.key[slots]] - self.pending.round[slots] >= age]
        ids = self.ids(old)
        self.drop(old, lost=bool(lost))
        return ids

    def drop(self, slots: Integers, *, lost: bool = False, marked: bool = False, costs: Floats | None = None) -> None:
        """Let go of decisions that will never be told; if `marked`, it is remembered that they were cancelled.

        Those that were carried out count as the most that they can cost, unless their costs are known.
        """
        ceiling = self.setup.ceiling
        gone = slots if lost else slots[self.pending.carried[slots] != self.pending.arm[slots]]
        if costs is None and ceiling is not None and ceiling.bounds is not None:
            costs = ceiling.bounds[self.pending.carried[gone]]
        if costs is not None:
            self._spend(self.pending.key[gone], costs)
        self._bind("drop")(*self._parts(self.workspace(1)), slots, lost, marked)
        self.give(slots.size)

    def _spend(self, rows: Integers, costs: Floats) -> None:
        """Count what decisions have cost that will never be told."""
        for row, cost in zip(rows.tolist(), costs.tolist(), strict=True):
            spend(self.observers.spending[row], cost)
            if self.account is not None:
                spend(self.account, cost)

    def outlook(
        self, row: Integers, graph: Integers | None = None, advised: Floats | None = None
    ) -> tuple[Floats, Any]:
        """Return the probabilities with which each key would play next, and the state of the last one after that."""
        if self.regressor is not None:  # what is played next depends on what will be known then
            return np.full((row.size, self.setup.graph.n_arms), np.nan), self.setup.state
        places = np.zeros(row.size, np.int64) if graph is None else graph
        pieces = [slice(k, k + _CHUNK) for k in range(0, row.size, _CHUNK)]
        given = np.empty((row.size, 0)) if advised is None else advised
        chunks = [self._look_ahead(row[some], places[some], given[some]) for some in pieces]
        return np.concatenate([np.empty((0, self.setup.graph.n_arms)), *chunks]), self.workspace(0).state

    def _look_ahead(self, row: Integers, graph: Integers, given: Floats | None = None) -> Floats:
        """Return with which probabilities each key would play next; the first workspace has the state of the last."""
        n = row.size
        table, none, arm = self.new_pending(n), np.full(n, -1), np.empty(n, np.int64)
        known = np.empty((n, 0)) if given is None else given
        asked = AskBatch(row, graph, np.arange(n), none, known, arm, np.empty(n))
        self._bind("ask")(*self._parts(self.workspace(0), table), asked, self.setup.initial, 0, n, False)  # noqa: FBT003  # a kernel
        self._check_arms(asked, table)
        return table.p

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
            for k, (begin, end) in enumerate(itertools.pairwise(ends), 1)
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
        following, after = np.where(same, np.arange(1, n + 1), -1), np.append(False, same)[:n]
        previous = np.where(after, np.arange(-1, n - 1), -1)
        self.pending = self.new_pending()._replace(**columns, next=following, previous=previous)
        self.used = self._n_pending = n
        self.rows.first[:], self.rows.last[:] = -1, -1
        self.rows.first[key[::-1]] = np.arange(n)[::-1]
        self.rows.last[key] = np.arange(n)
        self.rows.outstanding[:] = 0
        np.add.at(self.rows.outstanding, key, columns["outstanding"] >= 0)

    def grown(self, graph: FeedbackGraph, bound: Any = None) -> Rounds:
        """Return the same keys with one more arm, which was absent until now."""
        learner, before = self.setup.learner, self.setup
        if self.regressor is not None:
            raise LearnerError("A regressor has no model of a new arm. Begin anew with all arms, and learn the log.")
        grow: Any = learner.grow  # it was checked that there is one
        params, first = grow(before.params, before.state)
        if before.ceiling is None and bound is not None:
            raise LearnerError("cost_bound is for agents and families with a ceiling.")
        ceiling = None if before.ceiling is None else before.ceiling.with_arm(bound)
        setup = replace(before, params=params, state=first, graph=graph, ceiling=ceiling)
        graphs = [with_absent_arm(each, graph.labels) for each in self.bank.graphs]
        bank = new_bank(setup, [graph, *graphs], single=self.single)
        made = self._changed(setup, bank, lambda state: grow(before.params, state)[1])
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
        made = self._changed(setup, self.bank, lambda state: self.setup.with_advisers(state, len(names))[1])
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

    def retired(self, graph: FeedbackGraph) -> Rounds:
        """Return the same keys on a graph without some arm, which is absent from now on."""
        made = Rounds.merged([(self, np.arange(len(self)))], replace(self.setup, graph=graph))
        made.observers.delays[:, ABSENT] = 1.0
        return made

    def _changed(self, setup: Setup, bank: Bank, change: Callable[[Any], Any]) -> Rounds:
        """Return the same keys with another setup and other states. Nothing is pending there yet."""
        made, n = Rounds(setup, bank, self.rows.told.shape[1], self.regressor, single=self.single), len(self)
        made.keys, made.names, made.account = self.keys, self.names, self.account
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
            else first.regressor.merged([(part.regressor, chosen) for part, chosen in parts])
        )
        made = cls(first.setup if setup is None else setup, None, remembers, regressor, single=first.single)
        made.keys = Keys()
        own_scales = any(part.rows.scale.shape[1] for part, _ in parts)
        selecting = any(part.observers.sure.shape[1] for part, _ in parts)
        columns: dict[str, list[np.ndarray]] = {name: [] for name in PENDING}
        rows, observers = [], []
        for part, chosen in parts:
            part.part_states()
            part.remember(remembers)
            new = np.full(len(part.keys), -1, np.int64)
            new[chosen] = np.arange(chosen.size) + len(made.keys)
            made.keys.add(part.keys.listed[row] for row in chosen.tolist())
            scale = part.scales() if own_scales else part.rows.scale
            rows.append([array[chosen] for array in part.rows._replace(scale=scale)])
            counted = part.observers.selecting() if selecting else part.observers
            observers.append([array[chosen] for array in counted])
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
        made.pool, made.account = first.pool, first.account
        return made

    # Files

    def saved(self) -> Saved:
        """Return all that is saved; of a single key, only as much of what it remembers as there is."""
        self.part_states()
        n, rows = len(self), self.rows
        kept = int(np.count_nonzero(rows.told[0, :, rules.ROUND])) if self.single else rows.told.shape[1]
        return Saved(
            self.setup,
            {name: self.layout.column(rows.state[:n], name) for name in self.layout.names},
            rows.seed[:n],
            rows.round[:n],
            self.remembered(kept)[:n],
            rows.scale[:n],
            Observers(*(array[:n] for array in self.observers)),
            self.bank.graphs,
            self.columns(),
            self.names,
            self.regressor,
            self.pool,
            self.account,
        )

    @classmethod
    def resumed(cls, saved: Saved, keys: Keys | None = None, remembers: int | None = None) -> Rounds:
        """Return the rounds of a file; without `keys`, of a single one, which remembers so many decisions."""
        bank = new_bank(saved.setup, saved.graphs, single=keys is None)
        size = saved.told.shape[1] if remembers is None else remembers
        made = cls(saved.setup, bank, size, saved.regressor, single=keys is None)
        made.names, made.pool = saved.names, saved.pool
        made.account = None if saved.account is None else saved.account.copy()
        made.observers = Observers(*(array.copy() for array in saved.observers))
        if keys is None:
            made.observers = made.observers.selecting()
        made.keys = made.keys if keys is None else keys
        n = len(made.keys)
        words = np.zeros((n, made.layout.kept), np.uint64)
        for name, array in saved.state.items():
            made.layout.column(words, name)[...] = array
        first, last, outstanding, settled = np.zeros((4, n), np.int64)
        common, told = np.full(n, -1, np.int64), np.zeros((n, size, 4), np.int64)
        told[:, : saved.told.shape[1]] = saved.told[:, :size]
        seed, round_, scale = (array.copy() for array in (saved.seed, saved.round, saved.scale))
        made.rows = Rows(words, common, seed, round_, first, last, outstanding, told, settled, scale)
        made._set_told(told)  # its own
        places = np.array([bank.place(graph) for graph in saved.graphs], np.int64)
        pending = {name: column.copy() for name, column in saved.pending.items()}
        made.let_wait(pending | {"graph": places[pending["graph"]]})
        return made


def new_bank(setup: Setup, graphs: list[FeedbackGraph], *, single: bool) -> Bank:
    """Return the graphs of an agent or a family, the own one first."""
    return Bank(setup.learner, setup.options, graphs, "agent" if single else "family")
