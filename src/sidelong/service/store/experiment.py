"""An experiment in memory: its keys with what they have learned, its pending decisions, and what is counted.

Whatever happens is first done here, which gives the event to be written. A replay does the same again, and must give
the same event, to the bit. Each event carries a hash of itself and of all events before it, so that a snapshot says of
which journal it is one.

Decisions are made and settled in batches, and a single decision is a batch of one. They are numbered from 1, whichever
key they are for; an experiment without keys has one key that nobody names.
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent import advice as advising
from sidelong.agent import state_file
from sidelong.agent.ceiling import Spending, check_given, costs_of_one, in_order
from sidelong.agent.graphs import Bank
from sidelong.agent.regressors import FEATURES
from sidelong.agent.rules import losses_of_many, losses_of_one
from sidelong.errors import AdviceError, DecisionError, GraphError
from sidelong.graphs.presence import present
from sidelong.learners.interface import Need
from sidelong.outcomes.scale import ends_of
from sidelong.service.store import agents, lifecycle
from sidelong.service.store.agents import AdvisedRows, FittedGraphs
from sidelong.service.store.arms import ArmChange, OwnGraphs
from sidelong.service.store.counters import HIDDEN, UNLEARNED, Counters, ToldColumns
from sidelong.service.store.feedback import by_number, check_plain, number_of
from sidelong.service.store.graphs import KnownGraph
from sidelong.service.store.journal import (
    DRAWN_BY,
    REPORTS,
    Draws,
    Event,
    Kind,
    linked,
    within_span,
    without,
    write_columns,
    write_draws,
    write_json,
    write_settled,
)
from sidelong.service.store.keys import KeyBlocks, KeyTable, in_turns
from sidelong.service.store.lifecycle import Holdout, Life
from sidelong.service.store.pending import (
    ARM,
    GRAPH,
    KIND,
    ROUND,
    ROW,
    ROW_BYTES,
    PendingTable,
    is_aside,
    is_of_holdout,
)
from sidelong.service.store.sticky import StickyDecisions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.agents import Decider
    from sidelong.service.store.clock import Moment
    from sidelong.service.store.database import Identity, Reading
    from sidelong.service.store.feedback import NumberedLosses, ToldItem
    from sidelong.service.store.journal import DrawnBy, Key

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

_ANSWERED_BYTES = 2**22  # of Idempotency-Keys, contexts and columns that are found without asking the database
_AT_ONCE = 10_000  # decisions that expire in one event


class DrawnDecisions(NamedTuple):
    """Decisions that were drawn, in columns: a list for each."""

    kind: Kind
    rounds: list[int]  #: of the learner; 0 where it did not decide
    arms: list[int]
    probabilities: list[float]
    chances: list[Any]  #: where the learner did not decide, as `PendingTable.chances`; else None
    held: list[bool] | None = None  #: where only some are the holdout's: which
    fitted: FittedGraphs | None = None  #: under a ceiling with bounds, on which graph each plays


class LiveExperiment:
    """The state of an experiment after some event of its journal.

    Args:
        identity: what it is.
        graph: its own.
        counters: what was counted so far.
        block_size: how many keys a block has, if that is known.
    """

    #: How many Idempotency-Keys are found without asking the database.
    remembers = 10_000

    def __init__(
        self,
        identity: Identity,
        graph: FeedbackGraph,
        counters: Counters | None = None,
        block_size: int | None = None,
    ) -> None:
        spec = identity.spec
        self.identity = identity
        self.own = OwnGraphs(KnownGraph(spec.graph, graph))
        self.module = agents.module_of(spec)
        self.counters = Counters(graph.n_arms) if counters is None else counters
        self.ceiling = agents.ceiling_of(spec, graph)
        self.keys = KeyTable(named=spec.keyed, spends=self.ceiling is not None)
        self.pending = PendingTable(graph)
        self.sticky = StickyDecisions()
        self.blocks = KeyBlocks(spec, self.own, self._graph_like, block_size)
        self.life = Life.first(spec)
        self.scale = agents.scale_of(spec)
        self.ends = ends_of(self.scale)  #: the best and the worst that can be told
        self.holdout = None if spec.holdout is None else Holdout(int(spec.holdout.arm), spec.holdout.share)
        self.takes_binary = Need.BINARY_LOSSES in self.module.needs  #: whether losses must be 0 or 1
        self._is_sparing = self.module.is_sparing
        self._use_own_graph()
        self._seed = spec.seed
        self._default = spec.default_loss
        self.round = self.counters.drawn  #: how many decisions were made, by the learner or without it
        self.head = 0  #: the number of the last event
        self.saved = 0  #: how much had happened at the last snapshot
        self.saved_at = 0  #: and the number of its event
        self.chain = b""
        self.answered: OrderedDict[str, Event] = OrderedDict()  #: the last decisions, by Idempotency-Key
        self._answered_bytes = 0
        self.graph_bytes = 0  #: of graphs of rounds, in the database
        self.advisers = self.blocks.advisers  #: who have advised, in the order in which they came

    @classmethod
    def new(cls, identity: Identity, graph: FeedbackGraph, learned: bytes | None = None) -> Self:
        """Return an experiment to which nothing has happened; `learned` is the state that it begins with."""
        if learned is None:
            return cls(identity, graph)
        header, arrays = state_file.unpack(learned, f"what {identity.name} began with")
        made = cls(identity, graph, block_size=header["block_size"])
        made.keys.resume(arrays)
        blocks = {int(name[6:]): array.tobytes() for name, array in arrays.items() if name.startswith("block.")}
        made.blocks.begin(blocks)
        made.advisers = made.blocks.advisers
        if made.ceiling is not None:
            made._note_spent(np.arange(len(made.keys)))  # its own
        return made

    # What is known of it

    def agent_of(self, reading: Reading, row: int = 0) -> Decider:
        """Return a key, by its row, to be looked at like an agent."""
        self.load(reading, np.array([row]))
        return self.blocks.agent_of(row)

    @property
    def done(self) -> int:
        """How much has happened: decisions, not batches."""
        return int(self.counters.counts[: len(Kind)].sum() + self.counters.aside.sum())

    @property
    def pending_bytes(self) -> int:
        """What pending decisions take in memory at most, with their graphs."""
        return len(self.pending) * self.decision_bytes + self.pending.graph_bytes + self.sticky.bytes

    @property
    def key_bytes(self) -> int:
        """What keys take in memory, about: names and counts of all, and what those have learned that are loaded."""
        return self.keys.bytes + self.blocks.loaded_bytes

    def wants_saving(self, every: int, most: int) -> bool:
        """Tell whether enough has happened for a snapshot, or it takes one to let keys leave memory.

        At most so many bytes are for keys.
        """
        return self.done - self.saved >= every or self.needs_saving(most)

    def needs_saving(self, most: int) -> bool:
        """Tell whether keys should soon leave memory, and too many of them have changed since the last snapshot."""
        return 4 * self.key_bytes > 3 * most and 2 * self.changed_bytes > most

    @property
    def changed_bytes(self) -> int:
        """What the blocks take that a snapshot writes, about."""
        return self.blocks.changed_bytes

    def paid(self) -> tuple[int, float]:
        """Return how many decisions were told what their own arm cost, and how much that was."""
        return int(self.counters.plays.sum() - self.counters.counts[HIDDEN]), float(self.counters.paid[0])

    def _graph_like(self, content: str) -> FeedbackGraph | None:
        return self.pending.graph_like(content)

    def _use_own_graph(self) -> None:
        self.graph = self.own.now.graph  #: its own, as it is now
        self.n_arms = self.graph.n_arms
        self._bank = self._bank_of(self.graph)
        spec = self.identity.spec
        #: What a pending decision takes in memory at most, without its graph: its row, probabilities, features, ...
        #: Tables have room for half as many again.
        self.decision_bytes = (
            (20 if spec.sticky is None else 28) * self.n_arms + 12 * agents.n_features(spec) + ROW_BYTES
        )

    def _bank_of(self, own: FeedbackGraph) -> Bank:
        return Bank(self.module, self.identity.spec.options, [own], "agent")

    def graph_of_round(
        self, graph: FeedbackGraph | None, available: Any = None, own: FeedbackGraph | None = None
    ) -> FeedbackGraph:
        """Return the graph that an arm would be drawn for, or refuse it; `own` is one that the experiment had."""
        bank = self._bank if own is None or own is self.graph else self._bank_of(own)
        return bank.of_round(graph, available)

    def losses_of(self, told: NumberedLosses, graph: FeedbackGraph, arm: int) -> Floats:
        """Return what is told of a decision as losses, in the order of what its arm reveals in the graph.

        Raises:
            LossError: it cannot be told.
        """
        return losses_of_one(self.module, told, graph, arm, self.ends)

    def costs_of(self, told: Any, graph: FeedbackGraph, arm: int) -> Floats | None:
        """Return what is told of the costs of a decision, as losses; None if there is no ceiling and nothing was told.

        Raises:
            CostError: it cannot be told.
        """
        ceiling = self.ceiling
        check_given(ceiling, told)
        if ceiling is None:
            return None
        reveals = graph.row(arm).astype(np.int64)
        due, played = np.array([reveals.size]), np.array([arm])
        return in_order(ceiling, costs_of_one(told), due, reveals, played, lambda _: "")

    def by_number(self, item: ToldItem) -> NumberedLosses:
        """Return what feedback says, with the numbers of arms; refuse losses from 0 to 1 where there is a scale."""
        if item.plain:
            check_plain(self.scale)
        return by_number(item.losses, self.life.labels)

    def costs_by_number(self, item: ToldItem) -> NumberedLosses | None:
        """Return what feedback says of costs, with the numbers of arms."""
        return None if item.costs is None else by_number(item.costs, self.life.labels, "costs")

    def spending(self) -> Spending | None:
        """Return what all keys have spent together, if there is a ceiling; the price is NaN where each has its own."""
        if self.ceiling is None:
            return None
        keys, together = self.keys, not self.keys.named or self.ceiling.shared
        price = self.blocks.price if together else math.nan
        n, table = int(keys.charged.sum()), self.pending.table[self.pending.slots(list(self.pending.numbers))]
        reserved = self.ceiling.reserved(self.graph, table[table[:, ROUND] > 0, ARM])
        return Spending(n, float(keys.spent.sum()), self.ceiling.mean * n, reserved, price)

    def _note_spent(self, rows: Integers) -> None:
        """Take note of what keys, which are in memory, have spent."""
        if self.ceiling is not None:
            self.keys.note_spent(rows, self.blocks.spent(rows))

    def arm_called(self, told: int | str | None) -> int | None:
        """Return the number of an arm that feedback names, if it names one."""
        return number_of(told, self.life.labels, "arm") if isinstance(told, str) else told

    def load(self, reading: Reading, rows: Integers, most: int | None = None) -> None:
        """Bring keys into memory, by their rows; others leave it while keys take more than `most` bytes."""
        if self.blocks.all_stay:
            return
        if most is not None:
            most = max(most - self.keys.bytes, 0)
        self.blocks.load(reading, self.identity.key, rows, most)

    def load_pending(self, reading: Reading, numbers: Sequence[int], most: int | None = None) -> None:
        """Do the same with the keys of those decisions that are pending."""
        if not self.blocks.all_stay:
            self.load(reading, self.pending.rows_of(numbers), most)

    def drop_idle(self, most: int) -> None:
        """Let keys leave memory that have not changed, while all take more than `most` bytes."""
        self.blocks.drop(max(most - self.keys.bytes, 0))

    def load_all(self, reading: Reading) -> None:
        """Bring all keys into memory."""
        self.load(reading, np.arange(len(self.keys)))

    def teaches(self, slot: int) -> bool:
        """Tell whether the learner would learn what a pending decision is told."""
        return self.life.state != "frozen" and self.pending.table[slot, ROUND] > 0

    def is_any_due(self, clock: int) -> bool:
        """Tell whether a decision has expired: the oldest one, since all have the same time."""
        oldest = None if self.life.expire_after is None else self.pending.oldest
        return oldest is not None and self.is_due(oldest, clock)

    def is_due(self, number: int, clock: int) -> bool:
        """Tell whether a pending decision has expired."""
        after = self.life.expire_after
        return after is not None and self.pending.moment(number) + after * 1000 <= clock

    def overdue(self, clock: int) -> list[int]:
        """Return the numbers of the decisions that have expired, ascending."""
        after = self.life.expire_after
        return [] if after is None else self.pending.overdue(clock - after * 1000)

    def names_of_pending(self) -> dict[str, Any]:
        """Return how the agent or family calls the pending decisions that it has made, by their ids."""
        numbers = list(self.pending.numbers)
        table = self.pending.table[self.pending.slots(numbers)]
        own = table[:, ROUND] > 0
        names = self.blocks.names(table[own, ROW], table[own, ROUND]) if own.any() else []
        ids = (f"{self.identity.key}-{number}" for number, is_own in zip(numbers, own, strict=True) if is_own)
        return dict(zip(ids, names, strict=True))

    def check_graph(self, slot: int, graph: FeedbackGraph) -> None:
        """Refuse a graph that a pending decision cannot be told with."""
        if graph.n_arms != self.n_arms:
            raise GraphError(f"The graph of a round must have the experiment's {self.n_arms} arms, not {graph.n_arms}.")
        self.graph_of_round(graph)
        if self._is_sparing and self.pending.table[slot, ROUND] and graph != self.pending.graph_of(slot):
            raise DecisionError(
                "A learner that does not look at every arm must know at the decision what it reveals: tell it without "
                "a graph."
            )

    # What happens to it

    def create(self, moment: Moment, about: str | None = None) -> Event:
        """Begin; `about` says who made it, and of what."""
        return self._record(Event(Kind.CREATED, 0, 0, *moment, context=about), 1)

    def change(self, change: Mapping[str, Any], moment: Moment) -> Event:
        """Let it be what somebody has made of it."""
        self.life = self.life.after(change)
        if "name" in change:
            self.identity = replace(self.identity, name=change["name"])
        number = -self.head - 1
        return self._record(Event(Kind.CHANGED, number, number, *moment, context=lifecycle.written(change)), 1)

    def change_arms(
        self, change: ArmChange, graph: KnownGraph, said: Mapping[str, Any], moment: Moment, key: str | None = None
    ) -> Event:
        """Let an arm come or go; `said` is what the list of changes shows of it.

        Pending decisions are told as they were asked.
        """
        self.life = self.life.after(said)
        number = -self.head - 1
        if change.reveals is not None:
            self.counters.add_arm()
            if not self._is_sparing:
                self.pending.add_arm()
        self._follow_arms(change, graph, self.head + 1)
        text, data = lifecycle.written(said), change.columns()
        return self._record(Event(Kind.CHANGED, number, number, *moment, graph.id, key, text, data), 1)

    def resume_arms(self, changes: list[list[Any]], find: Callable[[str], FeedbackGraph]) -> None:
        """Go on with the arms that `OwnGraphs.contents` returned; what is counted and learned knows them already."""
        for *change, id_, behind in changes:
            self._follow_arms(ArmChange(*change), KnownGraph(id_, find(id_)), behind)

    def _follow_arms(self, change: ArmChange, graph: KnownGraph, behind: int) -> None:
        self.own.add(change, graph, behind)
        self._use_own_graph()
        if self.ceiling is not None and change.reveals is not None:
            self.ceiling = self.ceiling.with_arm(change.cost_bound)

    def decide(
        self,
        keys: list[Key] | None,
        rows: Integers,
        graph: KnownGraph | None,
        moment: Moment,
        key: str | None = None,
        context: str | None = None,
        subject: str | None = None,
        advice: Any = None,
    ) -> tuple[Event, Draws]:
        """Draw an arm for each row, as its state says; the rows are what `keys.places` returned for the keys.

        Advice is as JSON has it: what `Agent.ask` takes, for all rounds, or what `Family.ask` takes for keys.

        The columns are those that `read_draws` finds in the event.

        Raises:
            GraphError: nothing can be played in this round. Nothing has changed.
            FeatureError: the context lacks features. Nothing has changed.
            AdviceError: the advice is none. Nothing has changed.
            CostError: no arm fits under the ceiling. Nothing has changed.
        """
        n, first = len(rows), self.round + 1
        asked, graph = self.own.asked(graph), self.own.to_write(graph)
        shown = self.graph if asked is None else asked
        advised = self._read_advice(advice, keys, n, shown)
        drawn, b = self._draw(keys, rows, first, asked, context, advised)
        if advised is not None:
            self.advisers = advised.names
        rounds = self.keys.note_decided(rows)
        kinds: Any = drawn.kind
        if drawn.held is not None:
            kinds = np.where(drawn.held, int(Kind.HELD), int(Kind.DECIDED))
        absent, fitted = self._fitted(drawn, shown, graph)
        self.pending.add(
            first,
            rows,
            rounds,
            drawn.rounds,
            drawn.arms,
            kinds,
            graph,
            moment,
            b,
            self._baselines(drawn, shown, fitted),
            drawn.chances,
            fitted,
        )
        named = None if keys is None else write_json(keys)
        data = write_draws(drawn.arms, drawn.probabilities, named, rounds, drawn.held)
        if subject is not None:
            self.sticky.add(first, int(rows[0]), subject)
            data += write_columns({"subject": write_json([subject])})
        if advice is not None:
            data += write_columns({"advice": write_json(advice)})
        if absent is not None:
            data += write_columns({"absent": write_json(absent)})
        which = None if graph is None else graph.id
        event = Event(drawn.kind, first, first + n - 1, *moment, which, key, context, data)
        event = self._record(event, n, held=0 if drawn.held is None else sum(drawn.held))
        numbers = range(first, first + n)
        by: list[DrawnBy] = [DRAWN_BY[drawn.kind]] * n
        if drawn.held is not None:
            by = ["holdout" if held else "learner" for held in drawn.held]
        return event, Draws(numbers, keys, rounds, drawn.arms, drawn.probabilities, by, absent)

    def _fitted(
        self, drawn: DrawnDecisions, shown: FeedbackGraph, written: KnownGraph | None
    ) -> tuple[list[list[int]] | None, list[KnownGraph | None] | None]:
        """Return the arms that did not fit under the ceiling for each decision, and their graphs; None if all did."""
        if drawn.fitted is None:
            return None, None
        there = present(shown)
        out = [np.flatnonzero(there & ~present(graph)).tolist() for graph in drawn.fitted.graphs]
        if not any(out):
            return None, None
        begin = self.identity.spec.graph if written is None else written.id
        known = [
            KnownGraph(f"{begin}-{'.'.join(map(str, arms))}", without(shown, tuple(arms))) if arms else written
            for arms in out
        ]
        of = drawn.fitted.of.tolist()
        return [out[at] for at in of], [known[at] for at in of]

    def _read_advice(self, advice: Any, keys: list[Key] | None, n: int, shown: FeedbackGraph) -> AdvisedRows | None:
        """Return the advice for each row, and the names of all advisers; None without advice."""
        incumbent = self.identity.spec.incumbent
        if advice is None and incumbent is None:
            return None
        if self.holdout is not None and incumbent is not None:
            raise AdviceError("What a holdout plays is in no allowance. Make an experiment without one of the two.")
        given = {} if advice is None else advice
        named = self.own.now.graph.labelled(self.life.labels)
        if keys is None:
            rows = {name: np.tile(row, (n, 1)) for name, row in advising.read_one(given, named).items()}
        else:
            rows = advising.read_many(given, named, keys)
        advising.check_names(rows, () if self.identity.spec.features is None else (FEATURES,))
        new = advising.new_names(self.module, self.advisers, rows)
        if incumbent is not None:
            advising.check_incumbent(incumbent, rows, [shown] * n, keys)
        return AdvisedRows(self.advisers + new, rows)

    def _baselines(
        self, drawn: DrawnDecisions, graph: FeedbackGraph, fitted: list[KnownGraph | None] | None
    ) -> list[Any]:
        """Return the baselines of decisions, which are kept until they are told; None where nothing is weighed."""
        # p is NaN where the learner does not know it.
        weighed = [bool(round_) and p == p for round_, p in zip(drawn.rounds, drawn.probabilities, strict=True)]  # noqa: PLR0124
        if not self._is_sparing:
            return [self.counters.baselines if each else None for each in weighed]
        shown = [graph if each is None else each.graph for each in fitted or [None] * len(drawn.arms)]
        reveals = [each.row(arm) for each, arm in zip(shown, drawn.arms, strict=True)]
        return [self.counters.baselines_of(row) if each else None for each, row in zip(weighed, reveals, strict=True)]

    def _draw(
        self,
        keys: list[Key] | None,
        rows: Integers,
        first: int,
        asked: FeedbackGraph | None,
        context: str | None,
        advised: AdvisedRows | None,
    ) -> tuple[DrawnDecisions, float]:
        """Draw, and return with it the baseline of the lift; NaN where no coin is tossed."""
        n = len(rows)
        shown = self.graph if asked is None else asked
        p = None if self.life.state == "running" else lifecycle.to_play(self.life, shown)
        seen = agents.seen_by_each(self.identity.spec, context, n) if p is None else None
        x = None if seen is None else self.blocks.read(seen, keys)
        is_limited = p is None and self.ceiling is not None and self.ceiling.bounds is not None
        fitted = self.blocks.fit(rows, asked) if is_limited else None
        self.add_keys(self.keys.new_among(keys, rows))
        if p is not None:
            kind = Kind.PLAYED if self.life.play is not None else Kind.FALLBACK
            arms = [lifecycle.draw(self._seed, number, p) for number in range(first, first + n)]
            chances = self._chances(p, shown, arms)
            return DrawnDecisions(kind, [0] * n, arms, [float(p[arm]) for arm in arms], chances), np.nan
        holdout = self.holdout
        if holdout is None or self.life.state != "running" or not lifecycle.playable(shown)[holdout.arm]:
            asking = self.blocks.ask(rows, asked if fitted is None else fitted, x, advised)
            return DrawnDecisions(Kind.DECIDED, *asking, [None] * n, fitted=fitted), np.nan
        b = self.counters.toss(holdout.share)
        return self._toss(rows, first, shown, asked, holdout, advised), b

    def add_keys(self, new: list[Key]) -> None:
        """Add keys before they are asked for, whether or not the learner is asked for them in this round."""
        if new:
            known = len(self.keys)
            self.blocks.add(new, np.arange(known, known + len(new)))
            self.keys.add(new)

    def _toss(
        self,
        rows: Integers,
        first: int,
        shown: FeedbackGraph,
        asked: FeedbackGraph | None,
        holdout: Holdout,
        advised: AdvisedRows | None,
    ) -> DrawnDecisions:
        """Let a coin decide for each decision whether the holdout's arm is played."""
        n = len(rows)
        held = np.array([holdout.is_held(self._seed, number) for number in range(first, first + n)], np.bool_)
        rounds, arms, probabilities, chances = [0] * n, [holdout.arm] * n, [np.nan] * n, [None] * n
        for places in in_turns(rows):
            aside, own = places[held[places]], places[~held[places]]
            if aside.size:
                looks = self.blocks.outlook(rows[aside], asked, advised and advised.at(aside))
                for place, p in zip(aside.tolist(), looks, strict=True):
                    if not np.isnan(p).any():
                        mixed = holdout.mixed(p, np.arange(p.size) == holdout.arm)
                        probabilities[place] = float(mixed[holdout.arm])
                        (chances[place],) = self._chances(mixed, shown, [holdout.arm])
            if own.size:
                # There are no features beside a holdout.
                drawn = self.blocks.ask(rows[own], asked, advised=advised and advised.at(own))
                for place, round_, arm, p in zip(own.tolist(), *drawn, strict=True):
                    rounds[place], arms[place] = round_, arm
                    probabilities[place] = float(holdout.mixed(p, arm == holdout.arm))
        if held.all():
            return DrawnDecisions(Kind.HELD, rounds, arms, probabilities, chances)
        return DrawnDecisions(Kind.DECIDED, rounds, arms, probabilities, chances, held.tolist() if held.any() else None)

    def _chances(self, p: Floats, graph: FeedbackGraph, arms: list[int]) -> list[Any]:
        """Return what is kept of the probabilities of decisions that the learner did not make: see `PendingTable`."""
        if not self._is_sparing:
            return [p] * len(arms)
        P = graph.observe_probabilities(p)
        return [P[graph.row(arm)] for arm in arms]

    def sorts(self, numbers: Sequence[int]) -> list[list[int]]:
        """Return numbers that ascend in groups, each of which is settled by one event.

        The learner's decisions are apart from others, and no group spans too many numbers. One that was overridden is
        alone, so that its event says which arm was carried out.
        """
        if len(numbers) == 1:
            return [list(numbers)]
        table = self.pending.table[self.pending.slots(numbers)]
        aside = (table[:, ROUND] == 0).tolist()
        overridden = np.flatnonzero(table[:, KIND] == Kind.OVERRIDDEN).tolist()
        if not overridden and len(set(aside)) == 1:
            return list(within_span(list(numbers)))
        groups: list[list[int]] = [[numbers[place]] for place in overridden]
        if overridden:
            others = [place for place in range(len(numbers)) if place not in set(overridden)]
            numbers, aside = [numbers[place] for place in others], [aside[place] for place in others]
        for sort in (False, True):
            groups += within_span([number for number, other in zip(numbers, aside, strict=True) if other is sort])
        return groups

    def tell(
        self,
        numbers: list[int],
        sizes: list[int],
        losses: Floats,
        graph: KnownGraph | None,
        moment: Moment,
        kind: Kind = Kind.TOLD,
        costs: Floats | None = None,
    ) -> Event:
        """Learn the losses that decisions of one of the `sorts` revealed; they were checked.

        Nothing is learned of a round that was not the learner's, and nothing while the experiment is frozen.
        """
        pending = self.pending
        slots = pending.slots(numbers)
        table = pending.table[slots[0] : slots[0] + 1] if len(slots) == 1 else pending.table[slots]
        first = table[0].tolist()
        shown = None if graph is None else graph.graph
        told = self._revealed(table, sizes, losses, shown, costs)
        aside = is_aside(first)
        if first[ROUND] and aside:
            self._learn_means(first, told, shown)
        observe = self._observe_aside(slots, told, shown) if aside else self._learn(slots, table, told, shown)
        if first[ROUND]:
            self._note_spent(table[:, ROW])
        elif told.spent is not None:
            self.counters.spent_aside += len(numbers), told.spent.sum()
        self._count_costs(slots, first, told, observe, shown, moment)
        if self.advisers:
            self.counters.trusted(moment.at // 60_000_000, self.blocks.trust(table[:, ROW], self.advisers))
        pending.remove(numbers, slots)
        if self.sticky.bytes:
            self.sticky.remove(numbers)
        unknown = not observe.size or (math.isnan(observe[0]) and np.isnan(observe).all())
        data = write_settled(numbers, first[ARM], sizes, losses, None if unknown else observe, costs)
        which = None if graph is None else graph.id
        event = Event(kind, numbers[0], numbers[-1], *moment, which, data=data)
        return self._record(event, len(numbers), aside=aside)

    def _revealed(
        self, table: Integers, sizes: list[int], losses: Floats, graph: FeedbackGraph | None, costs: Floats | None
    ) -> ToldColumns:
        """Return what decisions have revealed, in columns."""
        arms, places = table[:, ARM].tolist(), table[:, GRAPH].tolist()
        if len(arms) == 1:
            shown = self.pending.graph_at(places[0]) if graph is None else graph
            return ToldColumns.of(arms, shown.row(arms[0]), [0, losses.size], losses, costs)
        known: dict[tuple[int, int], np.ndarray] = {}
        for place, arm in set(zip(places, arms, strict=True)):
            known[place, arm] = (self.pending.graph_at(place) if graph is None else graph).row(arm)
        reveals = np.concatenate([known[each] for each in zip(places, arms, strict=True)])
        return ToldColumns.of(arms, reveals, [0, *itertools.accumulate(sizes)], losses, costs)

    def _learn(self, slots: list[int], table: Integers, told: ToldColumns, graph: FeedbackGraph | None) -> Floats:
        """Learn; return the probability of observing each loss, before the draw of the learner."""
        learn = self.life.state != "frozen"
        if not learn:
            self.counters.counts[UNLEARNED] += len(slots)
        frozen = [self.pending.baselines[slot] for slot in slots]
        rows, rounds = table[:, ROW], table[:, ROUND]
        self.keys.note_told(rows, told.paid)
        parts, after, observe = self.blocks.changing(rows), graph is not None, np.empty(told.losses.size)
        for block, places, local in parts:
            if len(parts) == 1:
                learned = block.tell(local, rounds, told, graph, learn=learn)
                self.counters.told(told, learned, frozen, after=after)
                return learned.observe
            some, at = told.at(places)
            learned = block.tell(local, rounds[places], some, graph, learn=learn)
            self.counters.told(some, learned, [frozen[place] for place in places.tolist()], after=after)
            observe[at] = learned.observe
        return observe

    def _learn_means(self, row: list[int], told: ToldColumns, graph: FeedbackGraph | None) -> None:
        """Tell what a decision has revealed that was carried out with another arm: see `Agent.override`.

        It is in no count of what the learner has seen, since the arm was not drawn.
        """
        learn = self.life.state != "frozen"
        for block, _, rows in self.blocks.changing(np.array([row[ROW]])):
            block.tell(rows, np.array([row[ROUND]]), told, graph, learn=learn)

    def _observe_aside(self, slots: list[int], told: ToldColumns, graph: FeedbackGraph | None) -> Floats:
        """Return the probability of observing each loss of decisions that the learner did not make; NaN if unknown."""
        parts = []
        for slot, (first, last) in zip(slots, itertools.pairwise(told.offsets), strict=True):
            parts.append(self._chances_of_revealing(slot, told.reveals[first:last], graph))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _chances_of_revealing(self, slot: int, reveals: np.ndarray, graph: FeedbackGraph | None) -> Floats:
        kept = self.pending.chances[slot]
        if kept is None or (self._is_sparing and graph is not None):
            return np.full(reveals.size, np.nan)
        if self._is_sparing:
            return kept  # type: ignore[no-any-return]
        shown = self.pending.graph_of(slot) if graph is None else graph
        more = shown.n_arms - kept.size  # arms that came after the decision
        return np.asarray(shown.observe_probabilities(np.pad(kept, (0, more)) if more else kept)[reveals])

    def _count_costs(
        self,
        slots: list[int],
        first: list[int],
        told: ToldColumns,
        observe: Floats,
        graph: FeedbackGraph | None,
        moment: Moment,
    ) -> None:
        """Count what decisions cost; where a coin was tossed, write the probabilities of before that into `observe`."""
        if not is_of_holdout(first[KIND]):
            return
        aside, holdout, minute = not first[ROUND], self.holdout, moment.at // 60_000_000
        paid = told.paid
        if len(slots) == 1 and holdout is None:  # the same as below, but quicker
            self.counters.paid_in(minute, paid.item(0), int(not math.isnan(paid.item(0))), held=aside)
            return
        known = paid[~np.isnan(paid)]
        self.counters.paid_in(minute, float(known.sum()), known.size, held=aside)
        for k, slot in enumerate(slots) if holdout is not None else ():
            b = float(self.pending.tossed[slot])
            if b != b:  # no coin was tossed  # noqa: PLR0124
                continue
            loss = None if np.isnan(paid[k]) else float(paid[k])
            self.counters.compare(b, loss, holdout.share, held=aside)  # type: ignore[union-attr]
            if not aside:
                some = slice(told.offsets[k], told.offsets[k + 1])
                shown = self.pending.graph_of(slot) if graph is None else graph
                held = np.isin(told.reveals[some], shown.row(holdout.arm))  # type: ignore[union-attr]
                observe[some] = holdout.mixed(observe[some], held)  # type: ignore[union-attr]

    def give_up(self, numbers: list[int], kind: Kind, moment: Moment) -> Event:
        """Cancel decisions of one of the `sorts`, or let them expire."""
        slots = self.pending.slots(numbers)
        table = self.pending.table[slots]
        aside, arm = is_aside(table[0]), int(table[0, ARM])
        if table[0, ROUND]:
            for block, places, rows in self.blocks.changing(table[:, ROW]):
                block.cancel(rows, table[places, ROUND], lost=kind is Kind.EXPIRED)
            self._note_spent(table[:, ROW])
        self.pending.remove(numbers, slots)
        if self.sticky.bytes:
            self.sticky.remove(numbers)
        data = write_settled(numbers, arm)
        return self._record(Event(kind, numbers[0], numbers[-1], *moment, data=data), len(numbers), aside=aside)

    def override(self, number: int, arm: int, moment: Moment) -> Event:
        """Note that a pending decision was carried out with another arm than the one that was drawn."""
        (slot,) = self.pending.slots([number])
        row, round_ = self.pending.table[slot, [ROW, ROUND]].tolist()
        for block, _, rows in self.blocks.changing(np.array([row])) if round_ else ():
            block.override(rows, np.array([round_]), arm)
        self.pending.override(slot, arm)
        event = Event(Kind.OVERRIDDEN, number, number, *moment, data=write_settled([number], arm))
        return self._record(event, 1, aside=not round_)

    def expire(self, numbers: list[int], moment: Moment) -> Event:
        """Let decisions of one of the `sorts` expire, or learn their reports or the loss that is named for this."""
        if self.sticky.count(numbers[0]):
            means = np.concatenate([self.sticky.mean(number) for number in numbers], axis=1)
            sizes = [self.sticky.mean(number).shape[1] for number in numbers]
            return self.tell(numbers, sizes, means[0], None, moment, costs=means[1] if len(means) > 1 else None)
        if self._default is None:
            return self.give_up(numbers, Kind.EXPIRED, moment)
        sizes = self._degrees(numbers)
        losses = self._default_losses(sizes)
        if losses is None:  # of some, which then expire without it
            return self.give_up(numbers, Kind.EXPIRED, moment)
        return self.tell(numbers, sizes, losses, None, moment, Kind.DEFAULTED, self._default_costs(numbers))

    def _default_costs(self, numbers: list[int]) -> Floats | None:
        """Return the bounds of what decisions reveal that expire: the most that it can have cost."""
        if self.ceiling is None or self.ceiling.bounds is None:
            return None
        pending = self.pending
        reveals = [pending.graph_of(slot).row(int(pending.table[slot, ARM])) for slot in pending.slots(numbers)]
        return self.ceiling.bounds[np.concatenate(reveals)]

    def _degrees(self, numbers: list[int]) -> list[int]:
        """Return how many losses each pending decision reveals."""
        slots = self.pending.slots(numbers)
        return [self.pending.graph_of(slot).row(int(self.pending.table[slot, ARM])).size for slot in slots]

    def _default_losses(self, sizes: list[int]) -> Floats | None:
        """Return the loss that is named for expiry, for so many arms of each decision; None if it cannot be told."""
        told = np.full(sum(sizes), self._default, np.float64)
        return losses_of_many(self.module, told, np.array(sizes), self.ends)

    def _by_default(self, numbers: list[int]) -> list[list[int]]:
        """Return decisions that expire in groups: those that can be told the loss that is named for it, and others."""
        if self._default is None or self.sticky.count(numbers[0]):
            return [numbers]
        sizes = self._degrees(numbers)
        fits = {size: self._default_losses([size]) is not None for size in set(sizes)}
        groups = ([n for n, size in zip(numbers, sizes, strict=True) if fits[size] is fit] for fit in (True, False))
        return [group for group in groups if group]

    def expire_all(self, numbers: list[int], moment: Moment) -> list[Event]:
        """Let decisions expire; the numbers ascend."""
        pieces = [numbers[k : k + _AT_ONCE] for k in range(0, len(numbers), _AT_ONCE)]
        parts = [part for piece in pieces for part in self.sticky.parts(piece) if part]
        alike = [group for part in parts for group in self._by_default(part)]
        return [self.expire(group, moment) for part in alike for group in self.sorts(part)]

    def report(self, number: int, losses: Floats, costs: Floats | None, moment: Moment, key: str) -> Event:
        """Keep losses and costs of a sticky decision, which were checked, until it ends."""
        columns = {"loss": losses} if costs is None else {"loss": losses, "cost": costs}
        self.sticky.report(number, np.stack([*columns.values()]))
        return self._note(Kind.REPORTED, {"decision": [number], **columns}, moment, key)

    def repeat(self, number: int, moment: Moment, key: str) -> Event:
        """Keep the Idempotency-Key with which a sticky decision was asked for again."""
        return self._note(Kind.REPEATED, {"decision": [number]}, moment, key)

    def _note(self, kind: Kind, columns: dict[str, Any], moment: Moment, key: str) -> Event:
        round_ = REPORTS - self.head - 1
        return self._record(Event(kind, round_, round_, *moment, key=key, data=write_columns(columns)), 1)

    def late(
        self,
        numbers: list[int],
        arm: int,
        sizes: list[int],
        losses: Floats,
        graph: str | None,
        moment: Moment,
        costs: Floats | None = None,
    ) -> Event:
        """Keep, and do not learn, what was told about expired decisions; the `arm` is that of the first one."""
        data = write_settled(numbers, arm, sizes, losses, costs=costs)
        event = Event(Kind.LATE, numbers[0], numbers[-1], *moment, graph, data=data)
        return self._record(event, len(numbers))

    def observe_pending(self, number: int, reading: Reading) -> Floats | None:
        """Return with which probability each arm that a pending decision reveals is revealed; None if not known."""
        slot = self.pending.slots([number])[0]
        row, round_, arm = self.pending.table[slot, [ROW, ROUND, ARM]].tolist()
        reveals = self.pending.graph_of(slot).row(arm)
        if is_aside(self.pending.table[slot]):
            observe = self._chances_of_revealing(slot, reveals, None)
        else:
            self.load(reading, np.array([row]))
            observe = self.blocks.observe(row, round_)
            if self.holdout is not None and not np.isnan(self.pending.tossed[slot]):
                held = np.isin(reveals, self.pending.graph_of(slot).row(self.holdout.arm))
                observe = self.holdout.mixed(observe, held)
        return None if np.isnan(observe).any() else observe

    def _record(self, event: Event, count: int, *, aside: bool = False, held: int = 0) -> Event:
        """Link an event to the journal, and count it as the last one."""
        event = linked(event, self.head + 1, self.chain)
        self.head, self.chain = event.seq, event.chain
        self.counters.note(event.kind, count, event.at, aside=aside, held=held)
        if event.kind in DRAWN_BY:
            self.round += count
        if event.key is not None:
            self.answered[event.key] = event
            self._answered_bytes += _answer_size(event)
            while len(self.answered) > self.remembers or self._answered_bytes > _ANSWERED_BYTES:
                _, oldest = self.answered.popitem(last=False)
                self._answered_bytes -= _answer_size(oldest)
        return event


def _answer_size(event: Event) -> int:
    return len(event.key or "") + len(event.context or "") + len(event.data or b"")
