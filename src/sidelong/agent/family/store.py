"""The keys of a family at work: their rows, the decisions that wait, and the threads that play them."""

from __future__ import annotations

import concurrent.futures
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import bind
from sidelong.agent.family.kernels import AskBatch, Desk, TellBatch, find_all, loops_for, observe_all, reveal_all
from sidelong.agent.family.memory import Layout, Outstanding, Rows, longer, new_rows, new_waiting
from sidelong.agent.family.shared_states import Common
from sidelong.keys import Keys, seeds_of
from sidelong.learners.interface import is_sparing, trace_size

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sidelong.agent.family.graphs import Bank
    from sidelong.keys import Key
    from sidelong.learners.interface import Learner
    from sidelong.outcomes.scale import Scale

    Integers = npt.NDArray[np.int64]

#: Fewer keys than this are played faster by one thread than by two.
_FEW = 512


class KeyStore:
    """All that a family keeps. Rows beyond the number of keys are room for more."""

    def __init__(self, learner: Learner, params: Any, bank: Bank, seed: int, state: Any, scale: Scale | None) -> None:
        self.learner = learner
        self.params = params
        self.bank = bank
        self.seed = seed
        self.scale = scale  #: of keys that have none of their own
        self.layout = Layout(learner, state)
        self.first_state = self.layout.filled(state)  #: of a key before its first round
        self.common = Common(self.layout.kept)
        self.keys = Keys()
        self.names: dict[str, str] = {}  #: the ids of decisions that a service made, by the names it gave them
        self.rows: Rows = new_rows(self.layout, bank.own.n_arms)
        self.n_traces = trace_size(learner, bank.own.n_arms)
        self.waiting: Outstanding = new_waiting(bank.own.n_arms, self.n_traces)
        self.free = np.empty(0, np.int64)  #: the rows of `waiting` that no decision has
        self._desks: list[Desk] = []

    def _bind(self, name: str) -> Callable[..., None]:
        """Return what runs a loop: found when it is first needed, as its types do not depend on keys and batches."""
        if not hasattr(self, f"_{name}"):
            ask, tell, drop = loops_for(self.learner)
            long = np.empty(0, np.int64)
            batches: dict[str, tuple[Any, ...]] = {
                "ask": (ask, AskBatch(long, long, long, long, long, np.empty(0)), 0, 0, True),
                "tell": (tell, TellBatch(long, long, long, np.empty(0), np.empty((0, 4), np.int64)), 0, 0),
                "drop": (drop, long),
            }
            loop, *batch = batches[name]
            bind(self, f"_{name}", loop, *self._parts(self.desk(0)), *batch, of=str(self.learner.name))
        return getattr(self, f"_{name}")  # type: ignore[no-any-return]

    def _parts(self, desk: Desk, waiting: Outstanding | None = None) -> tuple[Any, ...]:
        return self.params, desk, self.rows, self.waiting if waiting is None else waiting, self.bank.arrays

    def desk(self, number: int) -> Desk:
        """Return what a thread works on."""
        while len(self._desks) <= number:
            buffer = self.first_state.copy()  # what is no room but never changes is there too
            n_arms = self.bank.own.n_arms
            room = np.zeros(n_arms), np.zeros(self.n_traces), np.ones(n_arms, np.bool_)
            self._desks.append(Desk(self.layout.on(buffer), buffer, *room, self.common.states))
        return self._desks[number]

    def add(self, new: list[Key]) -> Integers:
        """Add keys that are not there; return their rows."""
        n, size = len(self.keys), len(self.keys) + len(new)
        self.rows = rows = Rows(*(longer(array, n, size) for array in self.rows))
        rows.common[n:size] = self.common.place(self.first_state[: self.layout.kept])
        rows.seed[n:size] = seeds_of(new, self.seed)
        rows.round[n:size] = 0
        rows.first[n:size] = rows.last[n:size] = -1
        if rows.scale.shape[1]:
            rows.scale[n:size] = self._ends()
        self.keys.add(new)
        return np.arange(n, size)

    def part_states(self) -> None:
        """Write the state of each key into a row of its own."""
        shared = np.flatnonzero(self.rows.common[: len(self.keys)] >= 0)
        self.rows.state[shared] = self.common.states[self.rows.common[shared]]
        self.rows.common[shared] = -1

    def scales(self) -> npt.NDArray[np.float64]:
        """Return best and worst of each key; losses in [0, 1] have 0 and 1."""
        own = self.rows.scale[: len(self.keys)]
        return own if own.shape[1] else np.tile(self._ends(), (len(self.keys), 1))

    def _ends(self) -> tuple[float, float]:
        return (0.0, 1.0) if self.scale is None else (self.scale.best, self.scale.worst)

    def take(self, n: int) -> Integers:
        """Return n free rows of `waiting`."""
        if self.free.size < n:
            before = len(self.waiting.key)
            size = before + max(n - self.free.size, before // 2)
            self.waiting = Outstanding(*(longer(array, before, size) for array in self.waiting))
            size = len(self.waiting.key)
            self.waiting.key[before:] = -1
            self.free = np.append(np.arange(size - 1, before - 1, -1), self.free)
        taken, self.free = self.free[self.free.size - n :][::-1].copy(), self.free[: self.free.size - n]
        return taken

    def give(self, slots: Integers) -> None:
        """Take rows of `waiting` back; if nothing waits any more, their memory goes too."""
        self.free = np.append(self.free, slots[::-1])
        if self.free.size == len(self.waiting.key):
            self.waiting = new_waiting(self.bank.own.n_arms, self.n_traces)
            self.free = np.empty(0, np.int64)
        places = self.bank.forget(self.waiting.graph[self.waiting.key >= 0])
        if places is not None:
            self.waiting.graph[self.waiting.key >= 0] = places

    def find(self, row: Integers, round_: Integers) -> Integers:
        """Return where each decision waits; -1 if it does not."""
        slot = np.empty(row.size, np.int64)
        find_all(self.rows, self.waiting, row, round_, slot)
        return slot

    def reveals(self, graph: Integers, arm: Integers) -> tuple[npt.NDArray[np.int32], Integers]:
        """Return the arms that each arm reveals in its graph, one after the other, and where those of each begin."""
        offsets = np.append(0, np.cumsum(self.bank.degrees(graph, arm)))
        reveals = np.empty(int(offsets[-1]), np.int32)
        reveal_all(self.bank.arrays, graph, arm, offsets, reveals)
        return reveals, offsets

    def observe(self, slot: Integers, graph: Integers) -> npt.NDArray[np.float64]:
        """Return with which probability each arm that waiting decisions reveal would be revealed; NaN if unknown."""
        arm = self.waiting.arm[slot]
        sizes = self.bank.degrees(graph, arm)
        offsets = np.append(0, np.cumsum(sizes))
        room, observed = np.empty(self.bank.own.n_arms), np.empty(int(offsets[-1]))
        observe_all(self.bank.arrays, graph, self.waiting, slot, offsets, is_sparing(self.learner), room, observed)
        observed[np.repeat(np.isnan(self.waiting.probability[slot]), sizes)] = np.nan
        return observed

    def ask(self, asked: AskBatch, threads: int) -> None:
        """Draw for a batch of keys."""
        self._foresee(asked)
        self._share(self._bind("ask"), asked.row, threads, (self.waiting, asked), (True,))

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
                self._look_ahead(asked.row[one : one + 1], asked.graph[one : one + 1])
                known = self.common.expect(at, key, self.desk(0).buffer[: self.layout.kept])
            after.append(known)
        asked.after[shared] = np.array(after, np.int64)[which.reshape(-1)]

    def tell(self, told: TellBatch, threads: int) -> None:
        """Learn a batch of decisions."""
        self._share(self._bind("tell"), self.waiting.key[told.slot], threads, (self.waiting, told), ())
        self.give(told.slot)

    def outlook(self, row: Integers, graph: Integers | None = None) -> tuple[np.ndarray, Any]:
        """Return the probabilities with which each key would play next, and the state of the last one after that."""
        p = self._look_ahead(row, np.zeros(row.size, np.int64) if graph is None else graph)
        return p, self.desk(0).state

    def _look_ahead(self, row: Integers, graph: Integers) -> np.ndarray:
        """Return with which probabilities each key would play next; the state of the last one is on the first desk."""
        n = row.size
        room = new_waiting(self.bank.own.n_arms, self.n_traces, n)
        asked = AskBatch(row, graph, np.arange(n), np.full(n, -1), np.empty(n, np.int64), np.empty(n))
        self._bind("ask")(*self._parts(self.desk(0), room), asked, 0, n, False)  # noqa: FBT003  # a kernel
        return room.p

    def drop(self, slots: Integers) -> None:
        """Let go of decisions that will never be told."""
        self._bind("drop")(*self._parts(self.desk(0)), slots)
        self.give(slots)

    def _share(
        self,
        work: Callable[..., None],
        row: Integers,
        threads: int,
        over: tuple[Outstanding, Any],
        more: tuple[Any, ...],
    ) -> None:
        """Let threads work on a batch whose rows ascend: all decisions of a key are one thread's."""
        n = row.size
        waiting, batch = over
        ends = [n * k // threads for k in range(threads + 1)] if n >= _FEW else [0, n]
        ends[1:-1] = [int(np.searchsorted(row, row[end])) for end in ends[1:-1]]
        calls = [
            (*self._parts(self.desk(k), waiting), batch, begin, end, *more)
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
