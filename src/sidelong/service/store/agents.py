"""What plays the keys of an experiment: blocks of keys, each of which is asked and told by the rows of its keys.

Named keys are played by families, each of many keys. The one key of an experiment without names is played by an agent,
which decides thirty times as fast as a family of one key does, and may be one that sees what a request says of a
context. Nobody else has to know which of the two a block is.
"""

from __future__ import annotations

import copy
import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from sidelong._jit import bind
from sidelong.agent import Agent, ContextualAgent, Family
from sidelong.agent.ceiling import read_ceiling
from sidelong.agent.decision import SparingDecision
from sidelong.checks import nearest
from sidelong.errors import FeatureError, LearnerError
from sidelong.graphs.arrays import observe
from sidelong.learners import catalogue
from sidelong.outcomes.scale import Scale, ends_of
from sidelong.service.store.counters import LearnedColumns, ToldColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from sidelong.agent import Decision
    from sidelong.agent.ceiling import Ceiling
    from sidelong.agent.member import Member
    from sidelong.graphs import FeedbackGraph
    from sidelong.learners.interface import Learner
    from sidelong.service.store.arms import ArmChange
    from sidelong.service.store.journal import Key
    from sidelong.service.store.spec import RequestedSpec, Spec

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Decider = Agent | ContextualAgent | Member
    Contents = tuple[dict[str, Any], dict[str, np.ndarray]]

_OPTIONS = ("gamma_scale", "penalty", "forgetting", "hashed")
_HASHED = 64  # the default of `ContextualAgent`
_INDEX_BYTES = 200  # of a key in its family


def module_of(spec: RequestedSpec) -> Learner:
    """Return the module of an experiment's learner, or refuse one that does not fit its features."""
    learner, known = spec.learner, catalogue.names_seeing_features()
    if spec.features is None and learner in catalogue.names_with_features():
        raise LearnerError(f"{learner} plays by features: say which names of a context it sees, features=[...].")
    if spec.features is not None and learner not in known:
        raise LearnerError(f"{learner} does not see contexts. With features, the learner is {' or '.join(known)}.")
    return catalogue.choose(spec.learner, spec.options, features=spec.features is not None)


def new_block(spec: Spec, graph: FeedbackGraph) -> Block:
    """Return a block of a new experiment, or refuse what its learner cannot play."""
    learner, options, module = spec.learner, spec.options, module_of(spec)
    given: dict[str, Any] = {"seed": spec.seed, "certificate": spec.certificate}
    given |= _limits(spec)
    if spec.features is None:
        if "prior" in options and module.tilt is not None:
            raise LearnerError("What is believed of arms is no option. Name it beside the options, as prior.")
        given |= {"prior": _prior(spec), "incumbent": spec.incumbent, "allowance": _allowance(spec)}
    elif spec.incumbent is not None:
        raise LearnerError(f"{learner} has no rule for an incumbent. Leave features or incumbent out.")
    else:
        for name in options:
            if name not in _OPTIONS:
                raise LearnerError(
                    f"{learner} has no option {name!r}.{nearest(name, _OPTIONS)} Its options are: "
                    f"{', '.join(_OPTIONS)}."
                )
    if spec.pooled and not spec.keyed:
        raise LearnerError('Only keys learn together whom to trust. Leave pooled out, or make it with "keyed": true.')
    if spec.keyed:
        given["pooled"] = spec.pooled
        # The alarm of a key takes a third of what it takes without.
        given |= {} if spec.features is None else {"regressor": "ridge"}
        family = Family(learner, graph, health=spec.certificate, threads=1, **given, **options)
        return FamilyBlock(family, model_bytes(spec, graph))
    kind = Agent if spec.features is None else ContextualAgent
    return AgentBlock(kind(learner, graph, **given, **options))


def read_block(spec: Spec, header: dict[str, Any], arrays: dict[str, Any], place: str) -> Block:
    """Go on from the contents of a block."""
    if spec.keyed:
        family = Family.from_contents(header, arrays, place)
        return FamilyBlock(family, model_bytes(spec, family.graph))
    kind = Agent if spec.features is None else ContextualAgent
    return AgentBlock(kind.from_contents(header, arrays, place))


def _limits(spec: RequestedSpec) -> dict[str, Any]:
    """Return what the specification says of a ceiling, if it says anything."""
    given = {"ceiling": spec.ceiling, "cost_bounds": spec.cost_bounds, "overspend": spec.overspend}
    if all(value is None for value in given.values()):
        return {}
    if spec.features is not None:
        raise LearnerError("A learner that sees features has no ceiling here. Leave one of the two out.")
    return given | ({"ceiling_over": spec.ceiling_over} if spec.keyed else {})


def ceiling_of(spec: RequestedSpec, graph: FeedbackGraph) -> Ceiling | None:
    """Return the ceiling of an experiment with this graph, if it has one."""
    given = _limits(spec)
    return read_ceiling(module_of(spec), graph, *given.values()) if given else None


def _prior(spec: RequestedSpec) -> dict[int | str, tuple[float, float]] | None:
    """Return what is believed of arms, as losses and not in the scale of feedback."""
    if spec.prior is None:
        return None
    means = losses_of(spec, [each.mean for each in spec.prior])
    return {each.arm: (mean, each.weight) for each, mean in zip(spec.prior, means, strict=True)}


def _allowance(spec: RequestedSpec) -> float | None:
    """Return the allowance in losses."""
    best, worst = ends_of(scale_of(spec))
    return None if spec.allowance is None else spec.allowance / abs(worst - best)


def scale_of(spec: RequestedSpec) -> Scale | None:
    """Return the scale of what an experiment is told, if it has one."""
    return None if spec.scale is None else Scale(spec.scale.best, spec.scale.worst)


def losses_of(spec: RequestedSpec, told: list[float]) -> list[float]:
    """Return numbers of an experiment's scale as losses."""
    scale = scale_of(spec)
    return told if scale is None else list(scale.losses(told))


def model_bytes(spec: RequestedSpec, graph: FeedbackGraph) -> int:
    """Return how many bytes the regressions of an experiment, or of each key, will take: a matrix for each arm."""
    return 8 * graph.n_arms * n_features(spec) ** 2


def n_features(spec: RequestedSpec) -> int:
    """Return how many numbers a learner sees of a context."""
    return 0 if spec.features is None else int(spec.options.get("hashed", _HASHED)) + 1


def seen(spec: Spec, context: Any) -> dict[str, Any]:
    """Return what a learner sees of a context: the features that are there. Not one may be too few."""
    names, given = spec.features or [], context or {}
    found = {name: given[name] for name in names if name in given}
    if not found:
        some = ", ".join(names[:5]) + ", ..." * (len(names) > 5)
        raise FeatureError(f"This experiment decides by features: send a context with at least one of {some}.")
    return found


def seen_by_each(spec: Spec, context: str | None, n: int) -> list[dict[str, Any]] | None:
    """Return what is seen of the context of each of n decisions, which is one for all or a list; None if nothing is."""
    if spec.features is None:
        return None
    given = None if context is None else json.loads(context)
    if not isinstance(given, list):
        return [seen(spec, given)] * n
    return [seen(spec, each) for each in given]


class AdvisedRows(NamedTuple):
    """The advice for some rows, and the names of all who have advised in the experiment, in one order for all keys."""

    names: tuple[str, ...]
    rows: dict[str, Floats]  #: of those who are named now, a row of probabilities for each; zeros are silence

    def at(self, places: Any) -> AdvisedRows:
        """Return what it is for some of the rows."""
        return AdvisedRows(self.names, {name: rows[places] for name, rows in self.rows.items()})


class FeatureRows(NamedTuple):
    """What is seen of the contexts of some rows, in numbers: see `sidelong.agent.features`."""

    kind: str
    tables: Any

    def at(self, places: Any) -> FeatureRows:
        """Return what it is for some of the rows."""
        return FeatureRows(self.kind, self.tables[places])


class FittedGraphs(NamedTuple):
    """Graphs without the arms that do not fit under a ceiling, and which of them each row plays on."""

    graphs: list[FeedbackGraph]
    of: Integers

    def at(self, places: Any) -> FittedGraphs:
        """Return what it is for some of the rows."""
        return FittedGraphs(self.graphs, self.of[places])


class Block(Protocol):
    """Keys of one experiment with what they have learned, by their rows in the block."""

    arm_changes: int  #: how many changes of the experiment's arms it has followed

    @property
    def advisers(self) -> tuple[str, ...]:
        """The names of those who have advised these keys."""

    @property
    def graphs(self) -> list[FeedbackGraph]:
        """The graphs in `contents`, in their order: the experiment's own, and those of pending decisions."""

    @property
    def key_bytes(self) -> int:
        """What a key takes that can leave memory, about; 0 if it cannot."""

    def __len__(self) -> int: ...

    def add(self, keys: list[Key]) -> None:
        """Add new keys before they are asked for."""

    def change_arms(self, change: ArmChange) -> None:
        """Let an arm come or go."""

    def agent_of(self, row: int) -> Decider:
        """Return one key, to be looked at like an agent."""

    def read(self, x: list[Any], keys: list[Key] | None) -> Any:
        """Return what is seen of the contexts of some keys, which it need not have, as `ask` takes it; or refuse."""

    def fit(self, rows: Integers, graph: FeedbackGraph | None) -> FittedGraphs:
        """Return the graphs of rows, which need not be there yet, without the arms that do not fit under a ceiling."""

    def ask(
        self, rows: Integers, graph: FittedGraphs | FeedbackGraph | None, x: Any, advised: AdvisedRows | None
    ) -> tuple[list[int], list[int], list[float]]:
        """Draw an arm for each row; return rounds, arms and probabilities. Nothing is seen if `x` is None."""

    def spent(self, rows: Integers) -> Floats:
        """Return how many decisions of each row were told what they cost, and how much that was, under a ceiling."""

    def tell(
        self,
        rows: Integers,
        rounds: Integers,
        told: ToldColumns,
        graph: FeedbackGraph | None,
        *,
        learn: bool,
    ) -> LearnedColumns:
        """Learn losses, or give up the decisions, which are lost; return what was known of them before."""

    def cancel(self, rows: Integers, rounds: Integers, *, lost: bool) -> None:
        """Give up decisions."""

    def cancel_all(self) -> None:
        """Give up all pending decisions."""

    def override(self, rows: Integers, rounds: Integers, arm: int) -> None:
        """Let a pending decision be carried out with another arm."""

    def outlook(self, rows: Integers, graph: FeedbackGraph | None, advised: AdvisedRows | None = None) -> Floats:
        """Return with which probabilities each row would play next; NaN where the learner has none."""

    def observe(self, rows: Integers, rounds: Integers) -> Floats:
        """Return with which probability each arm that pending decisions reveal is revealed; NaN if it is not known."""

    def best(self, rows: Integers) -> list[int | None]:
        """Return the arm with the least mean of each row, None where nothing was seen."""

    def names(self, rows: Integers, rounds: Integers) -> list[Any]:
        """Return what the agent or family itself calls pending decisions."""

    def contents(self) -> Contents:
        """Return everything, as the header and the arrays of a state file."""

    def joined(self, others: Sequence[Any]) -> Contents:
        """Return the contents of one agent or family that has all keys of this block and of others."""


class FamilyBlock:
    """Named keys: a family, and how many bytes the regressions of a key will take."""

    def __init__(self, family: Family, model_bytes: int) -> None:
        family.threads = 1  # a block is too small for several
        self.family = family
        self._model_bytes = model_bytes
        self.contents = family.contents
        self.add = family.add
        self.arm_changes = 0

    @property
    def advisers(self) -> tuple[str, ...]:
        """The names of those who have advised these keys."""
        return self.family.adviser_names

    def change_arms(self, change: ArmChange) -> None:
        """Let an arm come or go, for all keys."""
        change.play(self.family)

    @property
    def graphs(self) -> list[FeedbackGraph]:
        """The graphs in `contents`."""
        return self.family.kept_graphs

    @property
    def key_bytes(self) -> int:
        """The arrays of a key, which have room for half as many again, and its index."""
        arrays = self.contents()[1].items()
        kept = [array for name, array in arrays if name.startswith(("state.", "rows.", "observers."))]
        each = sum(array.itemsize * math.prod(array.shape[1:]) for array in kept) + self._model_bytes
        return each + each // 2 + _INDEX_BYTES

    def __len__(self) -> int:
        return len(self.family)

    def agent_of(self, row: int) -> Member:
        """Return one key."""
        return self.family[self.family.rows.key(row)]

    def read(self, x: list[Any], keys: list[Key] | None) -> FeatureRows:
        """Return the features of some keys as numbers."""
        return FeatureRows(*self.family.rows.read_features(x, keys or []))

    def fit(self, rows: Integers, graph: FeedbackGraph | None) -> FittedGraphs:
        """Return the graphs of rows without the arms that do not fit."""
        which, graphs = self.family.rows.fit(rows, graph)
        return FittedGraphs(graphs, which)

    def spent(self, rows: Integers) -> Floats:
        """Return what each row has spent."""
        return self.family.rows.spent(rows)

    def ask(
        self,
        rows: Integers,
        graph: FittedGraphs | FeedbackGraph | None,
        x: FeatureRows | None,
        advised: AdvisedRows | None,
    ) -> tuple[list[int], list[int], list[float]]:
        """Draw an arm for each row."""
        if advised is not None:
            self.family.rows.add_advisers(advised.names)
        shown = (graph.graphs, graph.of) if isinstance(graph, FittedGraphs) else graph
        rounds, arms, probabilities, *_ = self.family.rows.ask(rows, shown, advised and advised.rows, x or ("", None))
        return rounds.tolist(), arms.tolist(), probabilities.tolist()

    def tell(
        self,
        rows: Integers,
        rounds: Integers,
        told: ToldColumns,
        graph: FeedbackGraph | None,
        *,
        learn: bool,
    ) -> LearnedColumns:
        """Learn losses, or give up the decisions."""
        p, delays = self.family.rows.drawn(rows, rounds)
        observe = self.family.rows.tell(
            rows, rounds, told.losses, graph, learn=learn, costs=told.costs, paid=told.spent
        )
        return LearnedColumns(observe, p, delays)

    def cancel(self, rows: Integers, rounds: Integers, *, lost: bool) -> None:
        """Give up decisions."""
        self.family.rows.cancel(rows, rounds, lost=lost)

    def cancel_all(self) -> None:
        """Give up all pending decisions."""
        self.family.expire(0)

    def override(self, rows: Integers, rounds: Integers, arm: int) -> None:
        """Let a pending decision be carried out with another arm."""
        self.family.rows.override(rows, rounds, np.array([arm]))

    def outlook(self, rows: Integers, graph: FeedbackGraph | None, advised: AdvisedRows | None = None) -> Floats:
        """Return with which probabilities each row would play next."""
        if advised is not None:
            self.family.rows.add_advisers(advised.names)
        return self.family.rows.outlook(rows, graph, advised and advised.rows)

    def observe(self, rows: Integers, rounds: Integers) -> Floats:
        """Return with which probability each arm that pending decisions reveal is revealed."""
        return self.family.rows.observe(rows, rounds)

    def best(self, rows: Integers) -> list[int | None]:
        """Return the arm with the least mean of each row."""
        keys = self.family.keys
        table = self.family.estimates([keys[row] for row in rows.tolist()]).best.reshape(rows.size, -1)
        return [int(flags.argmax()) if flags.any() else None for flags in table]

    def names(self, rows: Integers, rounds: Integers) -> list[Any]:
        """Return what the family calls pending decisions."""
        return self.family.rows.ids(rows, rounds)

    def joined(self, others: Sequence[FamilyBlock]) -> Contents:
        """Return the contents of one family that has all keys."""
        if not others:  # keys that learn from each other are in one block
            return self.contents()
        families = [self.family, *(each.family for each in others)]
        names = max((each.adviser_names for each in families), key=len)
        for place, family in enumerate(families):
            if family.adviser_names != names:  # those whom its keys were never asked with
                families[place] = copy.deepcopy(family)
                families[place].rows.add_advisers(names)
        return Family.join(families).contents()


class AgentBlock:
    """The one key of an experiment without names: an agent. It is in memory as long as the experiment is."""

    key_bytes = 0

    def __init__(self, agent: Agent | ContextualAgent) -> None:
        agent.remembers = 0  # the journal does
        self.agent = agent
        self.contents = agent.contents
        self.arm_changes = 0
        self._regressors = agent.regressor_names if isinstance(agent, ContextualAgent) else ()
        self._made: dict[int, Decision] = {each.round: each for each in agent.pending}
        unseen = np.empty(agent.graph.n_arms)
        self._observe: Callable[..., None]
        bind(self, "_observe", observe, agent.graph.arrays, unseen, unseen)

    @property
    def advisers(self) -> tuple[str, ...]:
        """The names of those who have advised."""
        return self.agent.adviser_names

    def change_arms(self, change: ArmChange) -> None:
        """Let an arm come or go."""
        change.play(self.agent)
        self._made = {each.round: each for each in self.agent.pending}

    @property
    def graphs(self) -> list[FeedbackGraph]:
        """The graphs in `contents`."""
        return self.agent.kept_graphs

    def __len__(self) -> int:
        return 1

    def add(self, keys: list[Key]) -> None:
        """Add nothing: the key is there from the start."""

    def agent_of(self, row: int) -> Decider:  # noqa: ARG002  # there is one
        """Return the agent."""
        return self.agent

    def read(self, x: list[Any], keys: list[Key] | None) -> list[Any]:  # noqa: ARG002  # there are none
        """Return what the agent itself reads."""
        return x

    def fit(self, rows: Integers, graph: FeedbackGraph | None) -> FittedGraphs:
        """Return the graph of all rows, which are the same, without the arms that do not fit."""
        return FittedGraphs([self.agent.fitted(graph, len(rows))], np.zeros(len(rows), np.int64))

    def spent(self, rows: Integers) -> Floats:
        """Return what it has spent."""
        found = self.agent.spending()
        return np.tile([float(found.decisions), found.spent], (len(rows), 1))

    def ask(
        self,
        rows: Integers,
        graph: FittedGraphs | FeedbackGraph | None,
        x: list[Any] | None,
        advised: AdvisedRows | None,
    ) -> tuple[list[int], list[int], list[float]]:
        """Draw an arm for each row, which are all the same."""
        rounds, arms, probabilities = [], [], []
        for place in range(len(rows)):
            made = self._draw(graph, None if x is None else x[place], None if advised is None else advised.at(place))
            round_ = made.round
            self._made[round_] = made
            rounds.append(round_)
            arms.append(made.arm)
            probabilities.append(made.probability)
        return rounds, arms, probabilities

    def _advice(self, advised: AdvisedRows) -> dict[str, Any]:
        """Return the advice for one row, with all who have advised, as the agent takes it."""
        spoken = {name: row if row.any() else None for name, row in advised.rows.items()}
        return dict.fromkeys(name for name in advised.names if name not in self._regressors) | spoken

    def _draw(self, graph: FittedGraphs | FeedbackGraph | None, x: Any, advised: AdvisedRows | None) -> Decision:
        """Ask the agent, which sees features if the experiment says so."""
        advice = None if advised is None else self._advice(advised)
        if isinstance(graph, FittedGraphs):
            return self.agent.ask_fitted(graph.graphs[0], advice)
        if isinstance(self.agent, ContextualAgent):
            return self.agent.ask(x, graph, advice=advice)
        return self.agent.ask(graph, advice=advice)

    def tell(
        self,
        rows: Integers,  # noqa: ARG002  # there is one
        rounds: Integers,
        told: ToldColumns,
        graph: FeedbackGraph | None,
        *,
        learn: bool,
    ) -> LearnedColumns:
        """Learn losses, or give up the decisions, which are lost; return what was known of them before."""
        agent, parts, every, delays = self.agent, [], [], []
        for k, round_ in enumerate(rounds.tolist()):
            made = self._made.pop(round_)
            some = slice(told.offsets[k], told.offsets[k + 1])
            observe, p = self._observed(made, made.graph if graph is None else graph, told.reveals[some])
            parts.append(observe)
            every.append(p)
            delays.append(agent.round - round_)
            if learn:
                agent.tell(made, told.losses[some], graph, None if told.costs is None else told.costs[some])
            else:
                agent.cancel(made, lost=True, cost=None if told.spent is None else told.spent[k])
        known = None if any(p is None for p in every) else every
        return LearnedColumns(parts[0] if len(parts) == 1 else np.concatenate(parts), known, delays)

    def _observed(
        self, made: Decision, graph: FeedbackGraph, reveals: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the probability of observing what a decision reveals, and those of all arms, if they are known."""
        if isinstance(made, SparingDecision):
            return made.revealed_probabilities, None
        p = made.probabilities
        if math.isnan(p[made.arm]):
            return np.full(reveals.size, np.nan), None
        P = np.empty(p.size)
        self._observe(graph.arrays, p, P)
        return P[reveals], p

    def cancel(self, rows: Integers, rounds: Integers, *, lost: bool) -> None:  # noqa: ARG002  # there is one
        """Give up decisions."""
        for round_ in rounds.tolist():
            self.agent.cancel(self._made.pop(round_), lost=lost)

    def cancel_all(self) -> None:
        """Give up all pending decisions."""
        self.agent.expire(0)
        self._made.clear()

    def override(self, rows: Integers, rounds: Integers, arm: int) -> None:  # noqa: ARG002  # there is one
        """Let a pending decision be carried out with another arm."""
        (round_,) = rounds.tolist()
        self._made[round_] = self.agent.override(self._made[round_], arm)

    def outlook(self, rows: Integers, graph: FeedbackGraph | None, advised: AdvisedRows | None = None) -> Floats:
        """Return with which probabilities it would play next, a row for each row, which have the same advice."""
        advice = None if advised is None or not len(rows) else self._advice(advised.at(0))
        look = self.agent.outlook(graph) if advice is None else self.agent.outlook(graph, advice)
        return np.tile(look, (len(rows), 1))

    def observe(self, rows: Integers, rounds: Integers) -> Floats:  # noqa: ARG002  # there is one
        """Return with which probability each arm that pending decisions reveal is revealed; NaN if it is not known."""
        made = [self._made[round_] for round_ in rounds.tolist()]
        every = [self._observed(each, each.graph, each.reveals.astype(np.intp)) for each in made]
        return np.concatenate([chances for chances, _ in every])

    def best(self, rows: Integers) -> list[int | None]:
        """Return the arm with the least mean."""
        return [self.agent.estimates().best] * len(rows)

    def names(self, rows: Integers, rounds: Integers) -> list[Any]:  # noqa: ARG002  # there is one
        """Return what the agent calls pending decisions."""
        return [self._made[round_].id for round_ in rounds.tolist()]

    def joined(self, others: Sequence[Any]) -> Contents:  # noqa: ARG002  # there is none
        """Return the contents of the agent."""
        return self.contents()
