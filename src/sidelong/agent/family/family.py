"""One problem, played for many keys: ask and tell in columns."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sidelong.agent import state_file
from sidelong.agent.family import contents
from sidelong.agent.family.alone import missing
from sidelong.agent.family.asking import ask
from sidelong.agent.family.beginning import add, begin
from sidelong.agent.family.by_row import ByRow
from sidelong.agent.family.hearing import Ear
from sidelong.agent.family.known import EstimatesTable, known_of, outlook_of
from sidelong.agent.family.member import Member
from sidelong.agent.family.memory import REMEMBERED
from sidelong.agent.family.parts import divided, joined
from sidelong.agent.family.settling import Settling
from sidelong.checks import check_whole
from sidelong.errors import DecisionError, FamilyError, LearnerError
from sidelong.keys import read_keys, seed_of
from sidelong.learners import catalogue
from sidelong.machine import cores
from sidelong.outcomes.revealed_columns import RevealedColumns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike
    from types import ModuleType

    import numpy.typing as npt

    from sidelong.agent.family.batch import Batch
    from sidelong.agent.family.beginning import Prior
    from sidelong.agent.family.store import KeyStore
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.keys import Key
    from sidelong.learners.interface import Learner
    from sidelong.outcomes.scale import Scale

    Graphs = FeedbackGraph | Sequence[FeedbackGraph] | tuple[Sequence[FeedbackGraph], npt.ArrayLike]


class Family:
    """A learner on a graph, played for many keys: products, placements, kinds of requests.

    A key is there from the moment it is first asked for. Its run depends on the family's seed and the key alone: it is,
    to the bit, that of ``Agent(learner, graph, seed=family.seed_of(key))``, whichever other keys are played, in which
    batches and on how many threads. A family is not safe to share between threads of one's own.

    Args:
        learner: the name of a learner (`sidelong.learners.names()`), or a module that is one.
        graph: whose losses playing an arm reveals, for every key and round that `ask` is not given another one for.
        seed: a whole number from 0 to 2**64 - 1.
        scale: the range of your own costs or scores, if `tell` is to take those in place of losses in [0, 1].
        prior: what one believes of some arms before a key's first round, as for `Agent`.
        threads: how many threads play a batch; as many as there are cores if not given. It changes no decision.
        **options: the options of the learner.

    Example:
        >>> import sidelong as sl
        >>> orders = sl.Family("glance", sl.graphs.nested(3), seed=7)
        >>> plan = orders.ask(["apples", "pears"])
        >>> plan.arms.tolist(), plan.reveals.tolist()
        ([2, 2], [0, 1, 2, 0, 1, 2])
        >>> orders.tell(plan, [0.9, 0.2, 0.4, 0.5, 0.5, 0.1])
        2
    """

    #: A key remembers what it was told for this many decisions, to recognise a repetition.
    remembers = REMEMBERED

    def __init__(
        self,
        learner: str | ModuleType | Learner,
        graph: FeedbackGraph,
        *,
        seed: int = 0,
        scale: Scale | None = None,
        prior: Prior | None = None,
        threads: int | None = None,
        **options: Any,  # each learner has its own
    ) -> None:
        self._begin(*begin(learner, graph, seed, scale, prior, options), threads)

    def _begin(self, store: KeyStore, tag: str, threads: int | None = None) -> None:
        self._store = store
        self._tag = tag  # what all ids have in them
        self.threads = threads

    @property
    def learner(self) -> str:
        """The name of the learner."""
        return str(self._store.learner.name)

    @property
    def options(self) -> dict[str, Any]:
        """The options that the learner was given."""
        return dict(self._store.bank.options)

    @property
    def graph(self) -> FeedbackGraph:
        """The graph of every key and round that `ask` is not given another one for."""
        return self._store.bank.own

    @property
    def seed(self) -> int:
        """The seed of the family."""
        return self._store.seed

    @property
    def scale(self) -> Scale | None:
        """The range of the numbers that `tell` takes of keys without their own; None if they are losses in [0, 1]."""
        return self._store.scale

    @property
    def threads(self) -> int:
        """How many threads play a batch."""
        return cores() if self._threads is None else self._threads

    @threads.setter
    def threads(self, threads: int | None) -> None:
        self._threads = None if threads is None else check_whole(LearnerError, "threads", threads, 1, 4096)

    @property
    def keys(self) -> list[Key]:
        """The keys that it has, in the order in which they came."""
        return list(self._store.keys.listed)

    @property
    def pending(self) -> list[str]:
        """The ids of the decisions that were neither told nor cancelled, key after key, oldest first."""
        return self._ids(contents.pending_in_order(self._store))

    def seed_of(self, key: Key) -> int:
        """Return the seed of the agent that plays as this key does; `sidelong.keys` says how."""
        return seed_of(read_keys([key])[0], self.seed)

    def add(
        self,
        keys: Iterable[Key],
        *,
        scale: Scale | Sequence[Scale] | None = None,
        prior: Prior | Sequence[Prior | None] | None = None,
    ) -> None:
        """Add keys before they are asked for: those with a scale or a prior of their own.

        Args:
            keys: keys that the family does not have.
            scale: the range of their costs or scores: one for all of them, or one for each.
            prior: what one believes of some arms, as for `Agent`: one for all of them, or one for each.
        """
        add(self._store, keys, scale, prior)

    def ask(self, keys: Iterable[Key], graph: Graphs | None = None, available: Any = None) -> Batch:
        """Draw an arm for each key, in one compiled call. A key that is given twice gets two decisions.

        Args:
            keys: text or whole numbers: a list, an array or a column. New ones are added.
            graph: the graph of this round, if it is another one: one for all keys, a list with one for each, or
                ``(graphs, index)``, where ``graphs[index[i]]`` is that of the i-th key.
            available: the arms that can be played, as for `Agent.ask`: for all keys, or a list with those of each, or a
                table of flags with a row for each key.
        """
        return ask(self._store, self._tag, keys, graph, available, self.threads)

    def tell(self, decisions: Batch | Iterable[str] | Any, losses: Any = None, graph: Graphs | None = None) -> int:
        """Learn the losses that decisions revealed: now or later, in any order; all of the batch, or nothing.

        Args:
            decisions: a batch, or some of one (``batch[mask]``), or ids; or only a table, as below.
            losses: numbers in [0, 1], or in the scale, one after the other in the order of ``batch.reveals``; or a
                table of Arrow, pandas or Polars, or a dict of columns: decision or key, arm, loss, with a row for every
                arm that each decision in it reveals; or what ``outcomes`` of a helper of `sidelong.outcomes` returned.
            graph: where only the outcome shows what is revealed, the graph of each decision as the outcome made it, in
                the forms that `ask` takes; see `Agent.tell`.

        Returns:
            How many decisions were learned; those that were told the same before are left as they are.
        """
        store = self._store
        heard = Ear(self._tag, store).hear(decisions, losses)
        settling = Settling(store, heard, self._tag)
        if isinstance(losses, RevealedColumns):
            graph = settling.open(losses, graph)
        told = settling.settle(graph)
        store.tell(told, self.threads)
        return int(told.slot.size)

    def cancel(self, decisions: Batch | Iterable[str]) -> None:
        """Give up decisions that were never carried out: nothing is learned from them."""
        self._store.drop(self._pending(decisions, "be cancelled"))

    def observe_probabilities(
        self, decisions: Batch | Iterable[str], graph: Graphs | None = None
    ) -> npt.NDArray[np.float64]:
        """Return with which probability each arm that pending decisions reveal would be revealed, when they were drawn.

        They come in the order of ``batch.reveals``, or as `tell` with this graph would be given them; NaN where the
        learner draws without knowing its probabilities.
        """
        slot = self._pending(decisions, "be observed")
        asked = self._store.waiting.graph[slot]
        return self._store.observe(slot, asked if graph is None else self._store.bank.told(graph, asked))

    def _pending(self, decisions: Batch | Iterable[str], what: str) -> npt.NDArray[np.int64]:
        """Return where decisions wait, or refuse."""
        store = self._store
        named = Ear(self._tag, store).named(decisions)
        slot = store.find(*named)
        if (slot < 0).any():
            at = int(np.argmin(slot))
            name = f"{named.round[at]}-{self._tag}-{store.keys.listed[named.row[at]]}"
            raise DecisionError(f"Decision {name} was told or cancelled before; only a pending one can {what}.")
        return slot

    def outlook(self, keys: Iterable[Key], graph: FeedbackGraph | None = None) -> npt.NDArray[np.float64]:
        """Return with which probabilities each key would play next, a row for each; NaN if the learner has none.

        Args:
            keys: keys that the family has.
            graph: the graph of that round, as for `ask`.
        """
        listed = read_keys(keys)
        return outlook_of(self._store, listed, self._store.bank.asked(graph, None, len(listed)))

    def expire(self, age: int) -> list[str]:
        """Give up the decisions after which their key has made `age` others, or more; return their ids."""
        age = check_whole(LearnerError, "age", age, 0)
        slots, waiting = contents.pending_in_order(self._store), self._store.waiting
        slots = slots[self._store.rows.round[waiting.key[slots]] - waiting.round[slots] >= age]
        ids = self._ids(slots)
        self._store.drop(slots)
        return ids

    def estimates(self, keys: Iterable[Key] | None = None) -> EstimatesTable:
        """Return what is known of each key and arm, as a table; `keys` are all of them if not given."""
        listed = self.keys if keys is None else read_keys(keys)
        return known_of(self._store, listed)

    def split(self, parts: int) -> list[Self]:
        """Return so many families that have the keys among them, for as many machines; this one stays as it is.

        Which part has a key depends on the key alone: `sidelong.keys.part_of` tells. A key plays in its
        part as it would here, and a new key may be asked for in the part that it belongs to.
        """
        parts = check_whole(FamilyError, "parts", parts, 1)
        return [self._made(store, self._tag, self._threads) for store in divided(self._store, parts)]

    @classmethod
    def join(cls, parts: Iterable[Self]) -> Self:
        """Return the family of the keys of all parts.

        Raises:
            FamilyError: the parts are of different families, or two have the same key.
        """
        listed = list(parts)
        if not listed:
            raise FamilyError("join needs at least one family.")
        for each in listed:
            if not isinstance(each, cls) or (each._tag, each.scale) != (listed[0]._tag, listed[0].scale):  # noqa: SLF001  # its own
                raise FamilyError(f"{each!r} is not a part of the family that {listed[0]!r} is a part of.")
        stores = [each._store for each in listed]  # noqa: SLF001
        return cls._made(joined(stores), listed[0]._tag, listed[0]._threads)  # noqa: SLF001

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a file, from which `Family.load` goes on as if it had never stopped."""
        state_file.write(path, *self.contents())

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as the header and the arrays of a state file."""
        return contents.write(self._store, self._tag)

    @classmethod
    def load(cls, path: str | PathLike[str], learner: ModuleType | Learner | None = None) -> Self:
        """Go on from a file that `save` wrote; `learner` is the module of one that is not the package's own."""
        return cls.from_contents(*state_file.read(path), path, learner)

    @classmethod
    def from_contents(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        path: str | PathLike[str],
        learner: ModuleType | Learner | None = None,
    ) -> Self:
        """Go on from what `contents` returned; `path` is what messages call the place it was kept in."""
        return cls._made(*contents.read(path, header, arrays, learner))

    @classmethod
    def _made(cls, store: KeyStore, tag: str, threads: int | None = None) -> Self:
        family = cls.__new__(cls)
        family._begin(store, tag, threads)  # noqa: SLF001  # its own
        return family

    @property
    def by_row(self) -> ByRow:
        """The same keys, to be asked and told by the places that they have in `keys`."""
        return ByRow(self._store, self._tag, self.threads)

    def __getitem__(self, key: Key) -> Member:
        """Return one key, to be asked and told like an agent; it may be one that was not asked for yet."""
        return Member(self, read_keys([key])[0])

    if not TYPE_CHECKING:  # for which every name would be there

        def __getattr__(self, name: str) -> Any:
            raise missing(self, name)

    def __contains__(self, key: object) -> bool:
        return self._store.keys.row(key) >= 0

    def __len__(self) -> int:
        return len(self._store.keys)

    def __reduce__(self) -> tuple[Any, ...]:
        own = None if self.learner in catalogue.names() else self._store.learner.module
        return _restore, (type(self), state_file.pack(*self.contents()), own)

    def __repr__(self) -> str:
        waiting = len(self._store.waiting.key) - self._store.free.size
        pending = f", {waiting:,} pending" if waiting else ""
        return f"<Family {self.learner} on {self.graph!r}: {len(self):,} keys{pending}>"

    def _ids(self, slots: npt.NDArray[np.int64]) -> list[str]:
        waiting, keys = self._store.waiting, self._store.keys.listed
        pairs = zip(waiting.round[slots].tolist(), waiting.key[slots].tolist(), strict=True)
        return [f"{t}-{self._tag}-{keys[row]}" for t, row in pairs]


def _restore(kind: type[Family], data: bytes, learner: str | None) -> Family:
    module = None if learner is None else importlib.import_module(learner)
    return kind.from_contents(*state_file.unpack(data, "The pickle"), "The pickle", module)
