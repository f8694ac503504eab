"""One problem, played for many keys: ask and tell in columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sidelong.agent import advice as advising
from sidelong.agent import codec, graphs, naming
from sidelong.agent.batch import Batch
from sidelong.agent.ceiling import DECISIONS, SPENT
from sidelong.agent.estimates import EstimatesTable
from sidelong.agent.feedback import LossColumns
from sidelong.agent.member import Member
from sidelong.agent.observers import LOGGED, Observers
from sidelong.agent.persistent import Persistent
from sidelong.agent.regressors import FEATURES, Ridge
from sidelong.agent.rounds import Rounds
from sidelong.agent.setup import prepare
from sidelong.checks import check_whole, short
from sidelong.errors import (
    DecisionError,
    EvaluationError,
    FamilyError,
    FeatureError,
    LearnerError,
    LossError,
    StateFileError,
)
from sidelong.evaluation.advisers import AdvisersTable
from sidelong.keys import Keys, part_of, read_keys, seed_of
from sidelong.learners import catalogue
from sidelong.machine import cores
from sidelong.outcomes.revealed_columns import RevealedColumns
from sidelong.outcomes.scale import Scale, checked_scale
from sidelong.tables import are_several, as_list, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

    import numpy.typing as npt

    from sidelong.agent.ceiling import Spending
    from sidelong.agent.rounds import DrawnColumns
    from sidelong.agent.setup import Prior
    from sidelong.batches import BatchColumns
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.keys import Key
    from sidelong.learners.interface import Learner

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Graphs = FeedbackGraph | Sequence[FeedbackGraph] | tuple[Sequence[FeedbackGraph], npt.ArrayLike]


class Family(Persistent):
    """A learner on a graph, played for many keys: products, placements, kinds of requests.

    A key exists from the moment it is first asked for. It decides exactly like
    ``Agent(learner, graph, seed=family.seed_of(key))``, bit for bit, whatever the other keys, batches and number of
    threads are, unless the family is `pooled`. A family is not safe to share between your own threads.

    Args:
        learner: the name of a learner (`sidelong.learners.names()`), or a module that is one.
        graph: says which losses playing an arm reveals, for each key and round for which `ask` gets no other graph.
        seed: a whole number from 0 to 2**64 - 1.
        scale: the range of your own costs or scores. `tell` then takes those instead of losses in [0, 1].
        prior: what you believe about some arms before a key's first round, as for `Agent`.
        certificate: whether each key records what ``family[key].certificate`` needs, 21 numbers per arm.
        health: whether each key records what ``family[key].health`` needs, 6 numbers per arm.
        incumbent: the name of the adviser who decides today for every key, as for `Agent`.
        allowance: how much each key may lose to it in total, in expectation, in the unit of the key's scale.
        pooled: whether all keys together learn which advisers to trust, in addition to what each finds out by itself.
            This happens once per `tell`, so a run depends on what is told together, and `split` is refused.
        ceiling: what a decision may cost on average, in the unit in which costs are told; `tell` then takes costs.
        cost_bounds: the most that each arm can cost, as a list, or by number or label. Together with `overspend` they
            make a limit that holds at every moment: arms that could break it are absent.
        overspend: by how much the total cost may ever exceed the ceiling times the number of decisions.
        ceiling_over: "key" if the ceiling holds for each key, or "all" if it holds for all keys together. With "all",
            the price of costs changes once per `tell`, and `split` is refused.
        threads: how many threads play a batch; by default one per core. Decisions stay the same.
        regressor: "ridge", for the learners "squarecb.g" and "glance", which then use features: `ask` takes them as
            `x`, and each key decides like a `ContextualAgent`.
        **options: the options of the learner; with a regressor also `penalty`, `forgetting` and `hashed`.

    Example:
        >>> import sidelong as sl
        >>> orders = sl.Family("glance", sl.graphs.nested(3), seed=7)
        >>> plan = orders.ask(["apples", "pears"])
        >>> plan.arms.tolist(), plan.reveals.tolist()
        ([2, 2], [0, 1, 2, 0, 1, 2])
        >>> orders.tell(plan, [0.9, 0.2, 0.4, 0.5, 0.5, 0.1])
        2
    """

    def __init__(
        self,
        learner: str | ModuleType | Learner,
        graph: FeedbackGraph,
        *,
        seed: int = 0,
        scale: Scale | None = None,
        prior: Prior | None = None,
        certificate: bool = False,
        health: bool = False,
        incumbent: str | None = None,
        allowance: float | None = None,
        pooled: bool = False,
        ceiling: float | None = None,
        cost_bounds: Any = None,
        overspend: float | None = None,
        ceiling_over: str = "key",
        threads: int | None = None,
        regressor: str | None = None,
        **options: Any,  # each learner has its own
    ) -> None:
        features = learner in catalogue.names_with_features() or (
            regressor is not None and learner in catalogue.names_seeing_features()
        )
        if regressor not in ((None, "ridge") if features else (None,)):
            able = ", ".join(catalogue.names_seeing_features())
            raise LearnerError(
                f"The regressor of a family is 'ridge', with {able}, which see features; not {short(regressor)} "
                f"with {short(learner)}. A ContextualAgent takes models of other packages."
            )
        own: dict[str, Any] = {
            name: options.pop(name) for name in ("penalty", "forgetting", "hashed") if features and name in options
        }
        keeps: dict[str, Any] = {"certificate": certificate, "alarm": health, "features": features, "pooled": pooled}
        keeps |= {"incumbent": incumbent, "allowance": allowance}
        keeps["ceiling"] = ceiling, cost_bounds, overspend, ceiling_over
        setup = prepare(learner, graph, seed=seed, scale=scale, prior=prior, options=options, **keeps)
        if features and setup.learner.add_adviser is not None:
            own["advisers"] = (FEATURES,)
            setup = setup.with_regressors((FEATURES,))
        self._rounds = Rounds(setup, regressor=Ridge(graph.n_arms, 0, **own) if features else None)
        self.threads = threads

    @property
    def threads(self) -> int:
        """How many threads play a batch."""
        return cores() if self._threads is None else self._threads

    @threads.setter
    def threads(self, threads: int | None) -> None:
        self._threads = None if threads is None else check_whole(LearnerError, "threads", threads, 1, 4096)

    @property
    def remembers(self) -> int:
        """For how many decisions each key remembers what it was told, to recognise a repetition."""
        return int(self._rounds.rows.told.shape[1])

    @remembers.setter
    def remembers(self, decisions: int) -> None:
        self._rounds.remember(check_whole(LearnerError, "remembers", decisions, 0, 2**20))

    @property
    def keys(self) -> list[Key]:
        """All keys, in the order in which they were added."""
        return list(self._rounds.keys.listed)

    @property
    def pending(self) -> list[str]:
        """The ids of the decisions that were neither told nor cancelled, key after key, oldest first."""
        return self._ids(self._rounds.in_order())

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
        """Add keys before they are asked for, to give them a scale or a prior of their own.

        Args:
            keys: keys that the family does not have.
            scale: the range of their costs or scores: one for all of them, or one for each.
            prior: what you believe about some arms, as for `Agent`: one for all of them, or one for each.
        """
        rounds, listed = self._rounds, read_keys(keys)
        setup, found = rounds.setup, rounds.keys.find(listed)
        new = rounds.keys.new_among(listed, found)
        if len(new) < len(listed):
            often = Counter(listed)
            known = next(key for key, row in zip(listed, found, strict=True) if row >= 0 or often[key] > 1)
            raise FamilyError(f"The family has the key {short(known)} already, or it is given twice. Add new keys.")
        scales = [checked_scale(each) or setup.scale for each in _each_of(scale, new, (Scale, type(None)))]
        priors = _each_of(prior, new, (Mapping, type(None)))
        own = [None if each is None else setup.tilted(each, of) for each, of in zip(priors, scales, strict=True)]
        if any(of != setup.scale for of in scales) and not rounds.rows.scale.shape[1]:
            rounds.rows = rounds.rows._replace(scale=rounds.scales())
        for row, tilted, of in zip(rounds.add(new).tolist(), own, scales, strict=True):
            if tilted is not None:
                rounds.set_state(row, tilted.state)
                rounds.observers_of(row).delays[:] = tilted.observers().delays
            elif setup.incumbent and of != setup.scale:
                rounds.set_state(row, setup.new_state(of))
            if rounds.rows.scale.shape[1]:
                rounds.rows.scale[row] = replace(setup, scale=of).ends

    def ask(
        self,
        keys: Iterable[Key],
        graph: Graphs | None = None,
        available: Any = None,
        advice: Any = None,
        *,
        x: Any = None,
    ) -> Batch:
        """Draw an arm for each key, in one compiled call. A key that occurs twice gets two decisions.

        Args:
            keys: text or whole numbers: a list, an array or a column. New ones are added.
            graph: the graph of this round, if it differs: one for all keys, a list with one for each, or
                ``(graphs, index)``, where ``graphs[index[i]]`` is that of the i-th key.
            available: the arms that can be played, as for `Agent.ask`: for all keys, or a list with those of each, or a
                table of flags with a row for each key.
            advice: what you would play yourself, as for `Agent.ask`: an arm for each key, by number with -1 for silence
                or by label with None for silence; or a table with a row of probabilities for each key, of NaN for
                silence; or a dict of the name of an adviser to either. A new adviser joins all keys at once.
            x: what is known, if the learner plays by features: for each key what `ContextualAgent.ask` takes, in a list
                or an array, as a row of numbers or a mapping of names for each key. All must be like the first one.
        """
        rounds, listed = self._rounds, read_keys(keys)
        n = len(listed)
        places = rounds.bank.asked(graph, available, n)  # everything is checked before anything changes
        kind, tables = self._read_features(x, listed)
        row, new = rounds.keys.places(listed)
        places = rounds.fit(row, places)
        advised = None
        if advice is not None or rounds.setup.incumbent:
            advised = self._read_advice(advice, listed, places)
            rounds = self._rounds
        if new:
            rounds.add(new)
        if tables is not None and n:
            rounds.keep_features(kind, tables.shape[2])
        return Batch(rounds.setup.tag, listed, *rounds.ask(row, places, self.threads, tables, advised))

    def _read_advice(self, advice: Any, keys: list[Key], places: Integers) -> Floats | None:
        """Return the advice of all advisers for each key, one after the other; None if there are none.

        New ones join now. The places are those of the graphs that keys play on.
        """
        rounds = self._rounds
        rows = advising.read_many(advice, self.graph, keys)
        advising.check_names(rows, () if rounds.regressor is None else rounds.regressor.advisers)
        joining = advising.new_names(rounds.setup.learner, rounds.setup.advisers, rows)
        if rounds.setup.incumbent:
            shown = [rounds.bank.graphs[place] for place in places.tolist()]
            advising.check_incumbent(rounds.setup.incumbent, rows, shown, keys)
        if joining:
            rounds = self._rounds = rounds.advised(joining)
        return advising.laid_out(rounds.setup.advisers, rows) if rows else None

    def _read_features(self, x: Any, keys: list[Key]) -> tuple[str, Floats | None]:
        """Return the kind of the features of some keys and a table for each; None if the learner sees none."""
        regressor = self._rounds.regressor
        if (regressor is None) != (x is None):
            rule = "does not see features" if regressor is None else "plays by features: give those of each key as x"
            raise FeatureError(f"{self.learner} {rule}.")
        return ("", None) if regressor is None else regressor.read_many(x, keys)

    def predict(self, keys: Iterable[Key], x: Any) -> Floats:
        """Return the loss that is predicted for each arm, a row for each key, without a decision.

        Args:
            keys: keys that the family has.
            x: the features of each key, as for `ask`.
        """
        listed = read_keys(keys)
        row, (_, tables) = self._rows(listed), self._read_features(x, listed)
        regressor = self._rounds.regressor
        if regressor is None or not regressor.kind:  # keys may be added before the first decision
            return np.zeros((row.size, self.graph.n_arms))
        return np.asarray(regressor.predict_many(row, tables))

    def tell(
        self, decisions: Batch | Iterable[str] | Any, losses: Any = None, graph: Graphs | None = None, costs: Any = None
    ) -> int:
        """Learn the losses that decisions revealed, now or later, in any order: all of the batch, or nothing.

        Args:
            decisions: a batch, or some of one (``batch[mask]``), or ids; or only a table, as below.
            losses: numbers in [0, 1], or in the scale, one after the other in the order of ``batch.reveals``; or a
                table of Arrow, pandas or Polars, or a dict of columns: decision or key, arm, loss, with a row for every
                arm that each decision in it reveals; or what ``outcomes`` of a helper of `sidelong.outcomes` returned.
            graph: where only the outcome shows what is revealed, the graph of each decision as the outcome made it, in
                the forms that `ask` takes; see `Agent.tell`.
            costs: with a ceiling, what the revealed arms cost, one after the other as losses; a table has them in a
                column cost.

        Returns:
            How many decisions were learned. Those that were told the same before stay as they are.
        """
        named, heard = naming.read_feedback(self._rounds, decisions, losses)
        revealed = losses if isinstance(losses, RevealedColumns) else None
        if revealed is not None and revealed.batch is not None and revealed.batch is not decisions:
            _check_order(self._rounds, named, revealed.batch)
        spent = naming.read_costs(decisions if losses is None else losses, costs, heard)
        return self._rounds.learn(named.row, named.round, heard, graph, revealed, self.threads, spent)

    def override(self, decisions: Batch | Iterable[str], arms: Iterable[int | str]) -> None:
        """Say that pending decisions were carried out with other arms, before their losses are told.

        `tell` then takes the losses that these arms revealed; see `Agent.override`.

        Args:
            decisions: a batch, or some of one (``batch[mask]``), or ids.
            arms: the arm that each was carried out with, by number or label.
        """
        row, round_ = naming.find(self._rounds, decisions)
        if not in_order(arms):
            raise DecisionError(
                f"arms must be a list of one arm for each of the {row.size:,} decisions, not {short(arms)}."
            )
        listed = as_list(arms)
        if len(listed) != row.size:
            raise DecisionError(f"Give one arm for each of the {row.size:,} decisions, not {len(listed):,}.")
        self._rounds.override(row, round_, listed)

    def cancel(self, decisions: Batch | Iterable[str], *, lost: bool = False, costs: Any = None) -> int:
        """Cancel decisions, all of them or none: nothing is learned from them.

        Args:
            decisions: a batch, or some of one (``batch[mask]``), or ids.
            lost: whether they were carried out and their losses will never be known; see `Agent.cancel`.
            costs: with a ceiling, what each of those that are lost has cost, if that is known.

        Returns:
            How many were cancelled. Decisions that were cancelled in the same way before stay as they are.
        """
        return self._rounds.cancel(*naming.find(self._rounds, decisions), lost=bool(lost), costs=costs)

    def observe_probabilities(self, decisions: Batch | Iterable[str], graph: Graphs | None = None) -> Floats:
        """Return with which probability each arm that pending decisions reveal would be revealed, when they were drawn.

        They come in the order of ``batch.reveals``, or as `tell` with this graph would be given them; NaN where the
        learner draws without knowing its probabilities.
        """
        slot = self._rounds.must_find(*naming.find(self._rounds, decisions), "be observed")
        asked = self._rounds.pending.graph[slot]
        return self._rounds.observe(slot, asked if graph is None else self._rounds.bank.told(graph, asked))

    def outlook(self, keys: Iterable[Key], graph: FeedbackGraph | None = None, advice: Any = None) -> Floats:
        """Return with which probabilities each key would play next, a row for each; NaN if the learner has none.

        Args:
            keys: keys that the family has.
            graph: the graph of that round, as for `ask`.
            advice: the advice for that round, as for `ask`; who is new joins now.
        """
        listed = read_keys(keys)
        row = self._rows(listed)
        places = self._rounds.bank.asked(graph, None, row.size)
        advised = None if advice is None else self._read_advice(advice, listed, places)
        return self._rounds.outlook(row, places, advised)[0]

    def _rows(self, keys: list[Key]) -> Integers:
        """Return the rows of keys, or refuse one that the family does not have."""
        row = self._rounds.keys.find(keys)
        if (row < 0).any():
            unknown = short(keys[int(np.argmin(row))])
            raise FamilyError(f"This family has no key {unknown}: it has {len(self):,} others. Ask for it first.")
        return row

    def expire(self, age: int, *, lost: bool = False) -> list[str]:
        """Cancel the decisions after which their key has made at least `age` others, and return their ids.

        One that was carried out with another arm counts as lost.
        """
        return self._rounds.expire(self._rounds.in_order(), age, lost=lost)

    def estimates(self, keys: Iterable[Key] | None = None) -> EstimatesTable:
        """Return what is known of each key and arm, as a table; `keys` are all of them if not given."""
        listed = self.keys if keys is None else read_keys(keys)
        row = self._rows(listed)
        counted = Observers(*(array[row] for array in self._rounds.observers))
        return EstimatesTable.of_keys(listed, counted, self._rounds.outlook(row)[0], self.graph)

    def advisers(self, keys: Iterable[Key] | None = None, confidence: float = 0.95) -> AdvisersTable:
        """Return what is known of each adviser, a row for each key and adviser; `keys` are all of them if not given.

        See `Agent.advisers`; the confidence is that of each key by itself.
        """
        listed = self.keys if keys is None else read_keys(keys)
        self._rows(listed)
        found = [self[key].advisers(confidence).rows for key in listed]
        names = [key for key, rows in zip(listed, found, strict=True) for _ in rows]
        return AdvisersTable([row for rows in found for row in rows], names)

    def spending(self) -> Spending:
        """Return what all keys have spent together, beside what the ceiling allows.

        The price is that of all keys, or the mean of theirs.
        """
        return self._rounds.spending(None)

    def learn(self, logs: Mapping[Key, Any], *, trusted: bool = False) -> int:
        """Learn the rounds of a log for each key, as `Agent.learn` does; return how many had losses.

        Args:
            logs: a log by key; new keys are added. All of them are learned, or none.
            trusted: that they are plain histories, as for `Agent.learn`.
        """
        if not isinstance(logs, Mapping):
            raise EvaluationError(f"learn takes a log for each key, as a dict by key, not {short(logs)}.")
        listed = read_keys(list(logs))
        new = self._rounds.keys.new_among(listed, self._rounds.keys.find(listed))
        other = self._made(Rounds.merged([(self._rounds, self._rounds.keys.find([k for k in listed if k in self]))]))
        learned = []
        for key, log in zip(listed, logs.values(), strict=True):
            try:
                learned.append(other[key].learn(log, trusted=trusted))
            except EvaluationError as error:
                raise EvaluationError(f"The log of the key {short(key)}: {error}") from error
        self._rounds.add(new)
        for key, n in zip(listed, learned, strict=True):
            row = self._rounds.keys.row(key)
            self._rounds.set_state(row, other._rounds.state_of(other._rounds.keys.row(key)))  # noqa: SLF001  # its own
            self._rounds.observers_of(row).delays[LOGGED] += n
        return sum(learned)

    def add_arm(
        self,
        *,
        reveals: Iterable[int | str] = (),
        revealed_by: Iterable[int | str] = (),
        label: str | None = None,
        cost_bound: float | None = None,
    ) -> int:
        """Add an arm to the family's graph, for all keys, and return its number; see `Agent.add_arm`."""
        graph = graphs.with_new_arm(self._rounds.setup.learner, self.graph, reveals, revealed_by, label)
        self._rounds = self._rounds.grown(graph, cost_bound)
        return graph.n_arms - 1

    def retire(self, arm: int | str) -> None:
        """Take an arm out of the family's graph for good, for all keys; see `Agent.retire`."""
        self._rounds = self._rounds.retired(graphs.without_arm(self._setup.learner, self.graph, arm))

    def split(self, parts: int) -> list[Self]:
        """Divide the keys among so many families, for as many machines, and return these. This one stays as it is.

        The part of a key depends only on the key (`sidelong.keys.part_of`). A key decides in its part as it would here,
        and a new key may be asked for in the part that it belongs to.
        """
        parts = check_whole(FamilyError, "parts", parts, 1)
        self._refuse_pooled("split")
        part = np.array([part_of(key, parts) for key in self._rounds.keys.listed], np.int64)
        pieces = [Rounds.merged([(self._rounds, np.flatnonzero(part == k))]) for k in range(parts)]
        return [self._made(each, self._threads) for each in pieces]

    @classmethod
    def join(cls, parts: Iterable[Self]) -> Self:
        """Return one family with the keys of all parts.

        Raises:
            FamilyError: the parts are of different families, or two have the same key.
        """
        listed = list(parts) if are_several(parts) else []
        if not listed:
            raise FamilyError("join needs at least one family.")
        for each in listed:
            if isinstance(each, cls):
                each._refuse_pooled("joined")  # noqa: SLF001  # its own
            if not isinstance(each, cls) or _identity(each._rounds) != _identity(listed[0]._rounds):  # noqa: SLF001  # its own
                raise FamilyError(f"{each!r} is not a part of the family that {listed[0]!r} is a part of.")
        if len({type(each.keys[0]) for each in listed if each.keys}) > 1:
            raise FamilyError("The keys of a family are all text or all whole numbers, and these parts have both.")
        often = Counter(key for each in listed for key in each.keys)
        if both := [key for key, count in often.items() if count > 1]:
            raise FamilyError(f"Two parts have the key {short(min(both))}: its decisions were made in both.")
        features = {r.features for r in (each._rounds.regressor for each in listed) if r and r.kind}  # noqa: SLF001
        if len(features) > 1:
            raise FamilyError("The parts were asked with features of different kinds or numbers.")
        together = Rounds.merged([(each._rounds, np.arange(len(each))) for each in listed])  # noqa: SLF001
        return cls._made(together, listed[0]._threads)  # noqa: SLF001

    def _refuse_pooled(self, what: str) -> None:
        if self._setup.pooled:
            raise FamilyError(f"Keys of a family with pooled=True learn from each other, so that it cannot be {what}.")
        if self._rounds.account is not None:
            raise FamilyError(
                f"The keys of a family with ceiling_over='all' have one line, so that it cannot be {what}."
            )

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as the header and the arrays of a state file."""
        header, arrays = codec.write("family", self._rounds.saved())
        return header, arrays | self._rounds.keys.contents()

    def _resume(self, path: Any, header: dict[str, Any], arrays: dict[str, np.ndarray], learner: Any) -> None:
        """Go on, in a new object, from what was saved."""
        keys = Keys.from_contents(arrays) if header.get("kind") == "family" else Keys()
        saved = codec.read(path, "family", header, arrays, learner, len(keys))
        if len(set(keys.listed)) < len(keys):
            raise StateFileError(f"{path} holds a key twice.")
        self._rounds, self._threads = Rounds.resumed(saved, keys), None

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"_threads": self._threads}  # which a file does not hold

    @classmethod
    def _made(cls, rounds: Rounds, threads: int | None = None) -> Self:
        family = cls.__new__(cls)
        family._rounds, family._threads = rounds, threads  # noqa: SLF001  # its own
        return family

    @property
    def rows(self) -> RowsOfKeys:
        """The same keys, to be asked and told by the places that they have in `keys`."""
        return RowsOfKeys(self)

    def __getitem__(self, key: Key) -> Member:
        """Return one key, which has the methods of an agent; it may be one that was not asked for yet."""
        return Member(self, read_keys([key])[0])

    def __contains__(self, key: object) -> bool:
        return self._rounds.keys.row(key) >= 0

    def __len__(self) -> int:
        return len(self._rounds)

    def __repr__(self) -> str:
        n = self._rounds.in_order().size
        pending = f", {n:,} pending" if n else ""
        return f"<Family {self.learner} on {self.graph!r}: {len(self):,} keys{pending}>"

    def _ids(self, slots: Integers) -> list[str]:
        return self._rounds.ids(slots)


class RowsOfKeys:
    """The keys of a family by their rows, which count from 0 in the order in which keys came, for whoever keeps these.

    No key is looked up, and it keeps nothing of its own.
    """

    def __init__(self, family: Family) -> None:
        self._family = family

    @property
    def _rounds(self) -> Rounds:
        return self._family._rounds  # noqa: SLF001  # a part of the family, which has others when an arm comes or goes

    def key(self, row: int) -> Key:
        """Return the key of a row."""
        return self._rounds.keys.listed[row]

    def add_advisers(self, names: tuple[str, ...]) -> None:
        """Let those of some advisers join who are not there yet."""
        known = self._rounds.setup.advisers
        new = tuple(name for name in names if name not in known)
        if new:
            self._family._rounds = self._rounds.advised(new)  # noqa: SLF001

    def read_features(self, x: list[Any], keys: list[Key]) -> tuple[str, Floats | None]:
        """Return what `ask` takes as `x`, or refuse: the kind of the features of some keys, and a table for each."""
        return self._family._read_features(x, keys)  # noqa: SLF001

    def ask(
        self,
        row: Integers,
        graph: Graphs | None = None,
        advice: Mapping[str, Floats] | None = None,
        x: tuple[str, Floats | None] = ("", None),
    ) -> DrawnColumns:
        """Draw an arm for each of some rows, as `Family.ask` does for their keys.

        Advice has probabilities, a row for each, by the names of advisers who are there.
        """
        rounds, (kind, tables) = self._rounds, x
        places = rounds.bank.asked(graph, None, row.size)
        advised = advising.laid_out(rounds.setup.advisers, advice) if advice else None
        if tables is not None:
            rounds.keep_features(kind, tables.shape[2])
        return rounds.ask(row, places, self._family.threads, tables, advised)

    def tell(
        self,
        row: Integers,
        round_: Integers,
        losses: Floats,
        graph: Graphs | None = None,
        *,
        learn: bool = True,
        costs: Floats | None = None,
        paid: Floats | None = None,
    ) -> Floats:
        """Learn what pending decisions revealed, as `Family.tell` does, or give them up, as lost.

        Under a ceiling, `costs` has those of the revealed arms, and `paid` that of the arm that each has carried out.

        Returns:
            What `Family.observe_probabilities` returns of them before that.
        """
        rounds, slot = self._rounds, self._pending(row, round_)
        asked = rounds.pending.graph[slot]
        observed = rounds.observe(slot, asked if graph is None else rounds.bank.told(graph, asked))
        if learn:
            spent = None if costs is None else LossColumns(costs, costs)
            rounds.learn(row, round_, LossColumns(losses, losses), graph, None, self._family.threads, spent)
        else:
            rounds.cancel(row, round_, lost=True, costs=paid)
        return observed

    def fit(self, row: Integers, graph: FeedbackGraph | None) -> tuple[Integers, list[FeedbackGraph]]:
        """Return for each row which of some graphs it plays on: without the arms that do not fit under the ceiling.

        A row that is not there yet is that of a new key.
        """
        places = self._rounds.fit(row, self._rounds.bank.asked(graph, None, row.size))
        used, which = np.unique(places, return_inverse=True)
        return which.reshape(-1), [self._rounds.bank.graphs[place] for place in used.tolist()]

    def spent(self, row: Integers) -> Floats:
        """Return how many decisions of some rows were told what they cost, and how much that was, in two columns."""
        return self._rounds.observers.spending[row][:, [DECISIONS, SPENT]]

    def drawn(self, row: Integers, round_: Integers) -> tuple[Floats | None, list[int]]:
        """Return the probabilities that pending decisions were drawn with, and how many came after each of its key.

        The probabilities have a row for each decision; they are None where the learner does not tell all of them.
        """
        rounds, slot = self._rounds, self._pending(row, round_)
        known = not rounds.setup.learner.is_sparing and not np.isnan(rounds.pending.probability[slot]).any()
        return rounds.pending.p[slot] if known else None, (rounds.rows.round[row] - round_).tolist()

    def observe(self, row: Integers, round_: Integers) -> Floats:
        """Return what `Family.observe_probabilities` returns of pending decisions."""
        slot = self._pending(row, round_)
        return self._rounds.observe(slot, self._rounds.pending.graph[slot])

    def outlook(
        self, row: Integers, graph: FeedbackGraph | None = None, advice: Mapping[str, Floats] | None = None
    ) -> Floats:
        """Return with which probabilities each of some rows would play next; advice is as for `ask`."""
        rounds = self._rounds
        advised = advising.laid_out(rounds.setup.advisers, advice) if advice else None
        return rounds.outlook(row, rounds.bank.asked(graph, None, row.size), advised)[0]

    def ids(self, row: Integers, round_: Integers) -> list[str]:
        """Return what names pending decisions."""
        return self._rounds.ids(self._pending(row, round_))

    @property
    def pending(self) -> tuple[Integers, Integers, Integers]:
        """The rows, rounds and drawn arms of all pending decisions, key after key, oldest first."""
        pending, slot = self._rounds.pending, self._rounds.in_order()
        return pending.key[slot], pending.round[slot], pending.arm[slot]

    def cancel(self, row: Integers, round_: Integers, *, lost: bool = False) -> None:
        """Give up pending decisions, as `Family.cancel` does."""
        self._pending(row, round_)
        self._rounds.cancel(row, round_, lost=lost)

    def override(self, row: Integers, round_: Integers, arms: Integers) -> None:
        """Say that pending decisions were carried out with other arms."""
        self._rounds.override(row, round_, arms.tolist())

    def _pending(self, row: Integers, round_: Integers) -> Integers:
        slot = self._rounds.find(row, round_)
        if (slot < 0).any():
            at = int(np.argmin(slot))
            raise DecisionError(f"Decision {round_[at]} of the key in row {row[at]} does not wait.")
        return slot


def _identity(rounds: Rounds) -> tuple[Any, ...]:
    setup = rounds.setup
    own = {} if rounds.regressor is None else rounds.regressor.options
    return setup.tag, setup.scale, setup.graph.content_hash, setup.certificate, setup.alarm, setup.advisers, own


def _check_order(rounds: Rounds, named: naming.Decisions, batch: BatchColumns) -> None:
    """Refuse outcomes of other decisions than those that are told, or in another order."""
    of = naming.find(rounds, batch if isinstance(batch, Batch) else batch.ids)
    if of.row.size != named.row.size:
        raise LossError(f"This is what {of.row.size:,} plays revealed, of {named.row.size:,} decisions.")
    other = (of.row != named.row) | (of.round != named.round)
    if other.any():
        at = int(np.argmax(other))
        keys = [short(rounds.keys.listed[each.row[at]]) for each in (of, named)]
        raise LossError(
            f"The outcome at place {at} is that of decision {of.round[at]} of the key {keys[0]}, and the decision "
            f"there is {named.round[at]} of the key {keys[1]}. Give both in one order."
        )


def _each_of(given: Any, keys: list[Key], one: tuple[type, ...]) -> list[Any]:
    """Return what each key is given: the same, or its own."""
    if isinstance(given, one):
        return [given] * len(keys)
    listed = list(given) if are_several(given) else []
    if len(listed) != len(keys):
        raise FamilyError(f"Give one for all keys, or one for each of the {len(keys)}, not {short(given)}.")
    return listed
