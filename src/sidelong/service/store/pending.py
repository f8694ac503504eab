"""The pending decisions of an experiment: one table, in which a decision is found by its number.

A row of the table is what is fixed when a decision is drawn and needed when it is settled. What the learner keeps of it
(its probabilities) is in the block of its key, which finds it by the row of the key and its round there.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.rounds import longer
from sidelong.service.store.graphs import KnownGraph, content_of, size
from sidelong.service.store.journal import Kind, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.clock import Moment

    Integers = npt.NDArray[np.int64]
    Arrays = dict[str, np.ndarray]

#: The columns: the number, the row of its key, which decision of its key it is, the round of the learner (0 if that did
#: not decide), the arm that is carried out, the place of its graph (0 for the experiment's own), the kind of event that
#: drew it, or OVERRIDDEN if it was carried out with another arm, and when.
NUMBER, ROW, KEY_ROUND, ROUND, ARM, GRAPH, KIND, AT, CLOCK = range(9)
#: A table of so few rows is not made anew.
_FEW = 64
#: Bytes of a row: its columns here and in the block of its key, its place in the index, and references.
ROW_BYTES = 12 * 10 + 12 * 10 + 150 + 16


class PendingTable:
    """Decisions that are neither told nor given up."""

    def __init__(self, own: FeedbackGraph) -> None:
        self._own = own
        self._clear()
        #: Graphs of rounds, by place: how many decisions use each; the experiment's own is the first.
        self._graphs: list[KnownGraph | None] = [None]
        self._users: list[int] = [0]
        self._places: dict[str, int] = {}
        self._free_places: list[int] = []
        self.graph_bytes = 0  #: that these take in memory

    def _clear(self) -> None:
        self.table = np.empty((0, CLOCK + 1), np.int64)
        #: For a decision beside a holdout, the baseline of the lift; NaN where no coin was tossed.
        self.tossed = np.empty(0)
        #: The baselines of all arms, or of those that are revealed, when it was drawn; None where nothing is weighed.
        self.baselines: list[Any] = []
        #: Of a decision that the learner did not make, the probabilities of all arms; of a learner that does not look
        #: at every arm, the probability of revealing each arm that is revealed; None if they are not known.
        self.chances: list[Any] = []
        self._slots: dict[int, int] = {}  # by number, ascending
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, number: int) -> bool:
        return number in self._slots

    @property
    def numbers(self) -> Iterator[int]:
        """The numbers, which ascend."""
        return iter(self._slots)

    @property
    def oldest(self) -> int | None:
        """The least number."""
        return next(iter(self._slots), None)

    def slot(self, number: int) -> int | None:
        """Return where a decision is in the table, if it is pending."""
        return self._slots.get(number)

    def slots(self, numbers: Sequence[int]) -> list[int]:
        """Return where decisions are in the table; all of them are pending.

        Raises:
            KeyError: one is not.
        """
        return [self._slots[number] for number in numbers]

    def rows_of(self, numbers: Sequence[int]) -> Integers:
        """Return the rows of the keys of those decisions that are pending."""
        found = [slot for slot in map(self._slots.get, numbers) if slot is not None]
        if len(found) == 1:  # the same as below, but quicker
            return self.table[found[0] : found[0] + 1, ROW]
        return self.table[found, ROW]

    def moment(self, number: int) -> int:
        """Return when a pending decision was made, by the service's own clock."""
        return int(self.table[self._slots[number], CLOCK])

    def overdue(self, before: float) -> list[int]:
        """Return the numbers of the decisions that were made before a time or then, ascending."""
        clock, slots = self.table[:, CLOCK], self._slots
        return list(itertools.takewhile(lambda number: clock[slots[number]] <= before, slots))

    def arm(self, number: int) -> int:
        """Return the arm that a pending decision is carried out with."""
        return int(self.table[self._slots[number], ARM])

    def graph_at(self, place: int) -> FeedbackGraph:
        """Return a graph by its place."""
        known = self._graphs[place]
        return self._own if known is None else known.graph

    def graph_of(self, slot: int) -> FeedbackGraph:
        """Return the graph that a decision was drawn for."""
        return self.graph_at(int(self.table[slot, GRAPH]))

    @property
    def graphs(self) -> dict[str, FeedbackGraph]:
        """The graphs of rounds that decisions were drawn for, by their `content_of`."""
        return {content_of(known.graph): known.graph for known in self._graphs if known is not None}

    def graph_like(self, content: str) -> FeedbackGraph | None:
        """Return one of them."""
        return self.graphs.get(content)

    def add(
        self,
        first: int,
        rows: Any,
        key_rounds: Any,
        rounds: list[int],
        arms: list[int],
        kinds: Any,
        graph: KnownGraph | None,
        moment: Moment,
        tossed: float,
        baselines: list[Any],
        chances: list[Any],
        fitted: list[KnownGraph | None] | None = None,
    ) -> None:
        """Add decisions whose numbers count on from the first one; `fitted` has the graph of each if they differ."""
        n = len(arms)
        slots = self._take(n)
        place: Any = self._use(graph, n) if fitted is None else [self._use(each, 1) for each in fitted]
        if n == 1:
            slot, place = slots[0], place if fitted is None else place[0]
            self.table[slot] = (first, rows[0], key_rounds[0], rounds[0], arms[0], place, kinds, *moment)
            self.tossed[slot] = tossed
            self.baselines[slot], self.chances[slot] = baselines[0], chances[0]
            self._slots[first] = slot
            return
        table = self.table
        columns = (range(first, first + n), rows, key_rounds, rounds, arms, place, kinds, *moment)
        for column, values in enumerate(columns):
            table[slots, column] = values
        self.tossed[slots] = tossed
        for slot, baseline, chance in zip(slots, baselines, chances, strict=True):
            self.baselines[slot], self.chances[slot] = baseline, chance
        self._slots.update(zip(range(first, first + n), slots, strict=True))

    def add_arm(self) -> None:
        """Give the baselines of all arms one for a new arm, which no decision in the table can reveal."""
        wider: dict[int, Any] = {}  # by the array, which many decisions share
        for slot in self._slots.values():
            before = self.baselines[slot]
            if before is not None:
                if id(before) not in wider:
                    wider[id(before)] = np.append(before, 0.5)
                self.baselines[slot] = wider[id(before)]

    def override(self, slot: int, arm: int) -> None:
        """Let a decision be carried out with another arm: what was known of the drawn one is of no use any more."""
        self.table[slot, [ARM, KIND]] = arm, Kind.OVERRIDDEN
        self.baselines[slot] = self.chances[slot] = None

    def remove(self, numbers: Sequence[int], slots: list[int]) -> None:
        """Remove decisions; if none of many is left, the memory of the table goes too."""
        for number in numbers:
            del self._slots[number]
        for slot in slots:
            self.baselines[slot] = self.chances[slot] = None
        for place in self.table[slots, GRAPH].tolist() if self._places else ():
            if place:
                self._release(place)
        if not self._slots and len(self.table) > _FEW:
            self._clear()
        else:
            self._free += slots

    def _take(self, n: int) -> list[int]:
        """Return n free rows of the table."""
        if len(self._free) < n:
            before = len(self.table)
            wanted = max(before + n - len(self._free), 8)
            self.table, self.tossed = longer(self.table, before, wanted), longer(self.tossed, before, wanted)
            more = len(self.table) - before
            self.baselines += [None] * more
            self.chances += [None] * more
            self._free += range(len(self.table) - 1, before - 1, -1)
        taken = self._free[-n:][::-1]
        del self._free[-n:]
        return taken

    def _use(self, graph: KnownGraph | None, n: int) -> int:
        if graph is None:
            return 0
        place = self._places.get(graph.id)
        if place is None:
            if not self._free_places:
                self._free_places.append(len(self._graphs))
                self._graphs.append(None)
                self._users.append(0)
            place = self._places[graph.id] = self._free_places.pop()
            self._graphs[place] = graph
            self.graph_bytes += size(graph.graph)
        self._users[place] += n
        return place

    def _release(self, place: int) -> None:
        self._users[place] -= 1
        known = self._graphs[place]
        if not self._users[place] and known is not None:
            self.graph_bytes -= size(known.graph)
            del self._places[known.id]
            self._graphs[place] = None
            self._free_places.append(place)

    def contents(self) -> tuple[list[str], Arrays]:
        """Return the ids of the graphs, and all decisions in arrays, by number."""
        slots = list(self._slots.values())
        table = self.table[slots]
        ids: dict[str, int] = {}
        for row in table:
            known = self._graphs[row[GRAPH]]
            row[GRAPH] = 0 if known is None else 1 + ids.setdefault(known.id, len(ids))
        arrays = {"pending": table, "pending.tossed": self.tossed[slots]}
        for name, column in (("baselines", self.baselines), ("chances", self.chances)):
            # Many decisions share one array, which is written once. -1 stands for None.
            kept: dict[bytes, int] = {}
            which = [
                -1 if column[slot] is None else kept.setdefault(column[slot].tobytes(), len(kept)) for slot in slots
            ]
            arrays[f"pending.{name}"] = np.array(which, np.int64)
            arrays[f"pending.{name}.size"] = np.array([len(data) // 8 for data in kept], np.int64)
            arrays[f"pending.{name}.values"] = np.frombuffer(b"".join(kept), np.float64)
        return list(ids), arrays

    @classmethod
    def from_contents(
        cls, own: FeedbackGraph, ids: list[str], arrays: Arrays, find: Callable[[str], FeedbackGraph]
    ) -> PendingTable:
        """Go on from what `contents` returned, with graphs that `find` finds by their ids."""
        made = cls(own)
        graphs = [None, *(fitted_graph(id_, find) for id_ in ids)]
        table = arrays["pending"]
        made.table, made.tossed = table.copy(), arrays["pending.tossed"].copy()
        for name in ("baselines", "chances"):
            ends = np.cumsum(arrays[f"pending.{name}.size"])[:-1]
            rows = np.split(arrays[f"pending.{name}.values"], ends)
            setattr(made, name, [None if at < 0 else rows[at] for at in arrays[f"pending.{name}"].tolist()])
        made._slots = dict(zip(table[:, NUMBER].tolist(), range(len(table)), strict=True))  # its own
        for slot, place in enumerate(table[:, GRAPH].tolist()):
            made.table[slot, GRAPH] = made._use(graphs[place], 1)
        return made


def fitted_graph(id_: str, find: Callable[[str], FeedbackGraph]) -> KnownGraph:
    """Return a graph by its id, which may name arms behind a dash that are left out: "3f0c...-4.7"."""
    whole, _, arms = id_.partition("-")
    return KnownGraph(id_, without(find(whole), tuple(map(int, arms.split("."))) if arms else ()))


def is_aside(row: Any) -> bool:
    """Tell whether a row of the table is a decision that is not the learner's, or was carried out with another arm."""
    return not row[ROUND] or row[KIND] == Kind.OVERRIDDEN


def is_of_holdout(kind: int) -> bool:
    """Tell whether a decision was made beside a holdout, by it or by the learner."""
    return kind in {Kind.DECIDED, Kind.HELD}
