"""Ask and tell: a learner embedded in a program of one's own."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from sidelong._jit import entry
from sidelong.agent import state_file
from sidelong.agent.decision import Decision, SparingDecision
from sidelong.agent.feedback import fingerprint, read_losses, same
from sidelong.agent.pending import degree, read_pending, write_pending
from sidelong.checks import check_whole, short
from sidelong.errors import ConflictError, DecisionError, GraphError, LearnerError, UnknownDecisionError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.learners import catalogue
from sidelong.learners.interface import Need, drawing, is_sparing, telling
from sidelong.outcomes.scale import Scale, checked_scale

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from types import ModuleType

    import numpy.typing as npt

    from sidelong.agent.feedback import Losses

__all__ = ["Agent", "Estimates"]


class Estimates(NamedTuple):
    """What an agent knows about each arm; NaN, and counts of 0, where its learner does not keep such a thing."""

    means: npt.NDArray[np.float64]  #: the mean of the losses it was told; NaN for an arm never revealed
    counts: npt.NDArray[np.int64]  #: how many losses it was told
    gaps: npt.NDArray[np.float64]  #: by how much the arm is worse than the best one, with confidence; 0 if unknown
    weights: npt.NDArray[np.float64]  #: the probability that the next `ask` would play it


class Agent:
    """A learner that is asked for an arm and told the losses that playing it revealed.

    The same learner, graph, seed, options and feedback give the same decisions, bit for bit, on any machine.
    An agent is not safe to share between threads.

    Args:
        learner: the name of a learner (`sidelong.learners.names()`), or a module that is one.
        graph: whose losses playing an arm reveals. It also says how many arms there are.
        seed: a whole number from 0 to 2**64 - 1.
        scale: the range of your own costs or scores, if `tell` is to take those in place of losses in [0, 1].
        **options: the options of the learner; for "exp3.g++" see `help(sidelong.learners.exp3gpp.configure)`.

    Example:
        >>> import sidelong as sl
        >>> agent = sl.Agent("exp3.g++", sl.graphs.nested(3), seed=7)
        >>> decision = agent.ask()
        >>> decision.arm, decision.reveals.tolist()
        (0, [0])
        >>> agent.tell(decision, {0: 0.3})
        True
    """

    #: An agent remembers what it was told for this many decisions, to recognise a repetition.
    remembers = 10_000

    def __init__(
        self,
        learner: str | ModuleType,
        graph: FeedbackGraph,
        *,
        seed: int = 0,
        scale: Scale | None = None,
        **options: Any,  # each learner has its own
    ) -> None:
        if not isinstance(graph, FeedbackGraph):
            raise GraphError(
                f"graph must be a FeedbackGraph, not {type(graph).__name__}. "
                f"Make one with sidelong.graphs or FeedbackGraph.from_matrix."
            )
        seed = check_whole(LearnerError, "seed", seed, 0, 2**64 - 1)
        self._scale = checked_scale(scale)
        module = catalogue.choose(learner, options)
        plain = catalogue.plain_options(module, options)
        self._begin(module, graph, seed, plain, catalogue.configure(module, graph, plain))

    def _begin(
        self, learner: ModuleType, graph: FeedbackGraph, seed: int, options: dict[str, Any], params: Any
    ) -> None:
        self._learner = learner
        self._graph = graph
        self._seed = np.uint64(seed)
        self._options = options
        self._params = params
        self._state = learner.init(params, graph)
        self._binary = str(learner.NAME) if Need.BINARY_LOSSES in learner.NEEDS else ""
        self._round = 0
        self._pending: dict[int, Decision] = {}
        self._told: OrderedDict[int, Any] = OrderedDict()  # fingerprints, or what they are made from
        self._buffer, trace = np.empty(graph.n_arms), np.empty(len(learner.TRACES))
        known = (params, self._state, graph.arrays, 1)
        self._draw = entry(drawing(learner), *known, self._seed, 0, self._buffer, trace)
        self._update = entry(learner.update, *known, 0, self._buffer, self._buffer, trace)
        self._sparing = is_sparing(learner)
        self._fresh = 0  # the last round, until something is told
        self._telling: Callable[..., None] | None = None
        if self._sparing:
            self._probability = entry(learner.probability, *known, 0)
        identity = [learner.NAME, options, seed, graph.content_hash]
        self._tag = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def learner(self) -> str:
        """The name of the learner."""
        return str(self._learner.NAME)

    @property
    def options(self) -> dict[str, Any]:
        """The options that the learner was given."""
        return dict(self._options)

    @property
    def graph(self) -> FeedbackGraph:
        """The graph of every round that `ask` is not given another one for."""
        return self._graph

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self._seed)

    @property
    def scale(self) -> Scale | None:
        """The range of the numbers that `tell` takes; None if they are losses in [0, 1]."""
        return self._scale

    @property
    def round(self) -> int:
        """How many decisions were asked for."""
        return self._round

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions that were neither told nor cancelled, oldest first."""
        return tuple(self._pending.values())

    def ask(self, graph: FeedbackGraph | None = None) -> Decision:
        """Draw an arm.

        Args:
            graph: the graph of this round alone, where graphs change from round to round.
        """
        graph = self._graph if graph is None else self._checked(graph)
        t = self._round + 1
        p = self._buffer if self._sparing else np.empty(self._graph.n_arms)
        trace = np.zeros(len(self._learner.TRACES))
        arm = int(self._draw(self._params, self._state, graph.arrays, t, self._seed, 0, p, trace))
        if self._sparing:
            probability = self._probability(self._params, self._state, graph.arrays, t, arm)
            decision = self._spared(t, arm, graph, p[: degree(graph, arm)].copy(), trace, probability)
        else:
            decision = Decision(self._tag, t, arm, graph, p, trace)
        self._round = self._fresh = t
        self._pending[t] = decision
        return decision

    def _spared(
        self, t: int, arm: int, graph: FeedbackGraph, p: np.ndarray, trace: np.ndarray, probability: float
    ) -> Decision:
        return SparingDecision(self._tag, t, arm, graph, p, trace, probability, self._tell_all)

    def _tell_all(self, t: int, graph: FeedbackGraph) -> np.ndarray | None:
        """Return the probabilities of all arms in round t, or None if the state has changed since."""
        return self._probabilities(self._state, graph, t) if t == self._fresh else None

    def _probabilities(self, state: Any, graph: FeedbackGraph, t: int) -> np.ndarray:
        p = np.empty(graph.n_arms)
        known = (self._params, state, graph.arrays, t, p)
        if self._telling is None:  # compiled when it is first needed, which may be never
            self._telling = entry(telling(self._learner), *known)
        self._telling(*known)
        return p

    def tell(
        self,
        decision: Decision | str,
        losses: Losses,
        graph: FeedbackGraph | None = None,
    ) -> bool:
        """Learn the losses that a decision revealed: now or later, in any order.

        Args:
            decision: the decision, or its id.
            losses: a number in [0, 1], or in the agent's `scale`, for every arm in `decision.reveals`, by arm or in
                their order.
            graph: where only the outcome shows what is revealed, the graph of the round as the outcome made it. It
                takes the place of the decision's own. It must say what *every* arm would have revealed, and so must not
                depend on the arm that was played: with a demand of 7, an order of 7 or more reveals all orders, and a
                smaller one itself and those below. A graph that says only what this arm revealed would bias the
                estimates. The learner's theorems do not cover graphs that are shown after the draw.

        Returns:
            True if something was learned, False if the same was told before.
        """
        t = self._round_of(decision)
        losses = losses if self._scale is None else self._scale.losses(losses)
        made = self._pending.get(t)
        if made is None:
            self._compare(t, losses, graph)
            return False
        shown = made.graph if graph is None else self._checked(graph)
        if self._sparing and shown != made.graph:
            raise DecisionError(
                "A learner that does not look at every arm must know at `ask` what its decision reveals: "
                "tell without graph=..., or take refresh='round'."
            )
        arrays = shown.arrays
        arms = arrays.targets[arrays.start[made.arm] : arrays.stop[made.arm]]
        read_losses(losses, arms, self._buffer, binary=self._binary)
        p, trace = made._p, made._trace  # noqa: SLF001  # what users see of them is read-only
        self._update(self._params, self._state, arrays, t, made.arm, p, self._buffer, trace)
        self._fresh = 0
        del self._pending[t]
        told = (arms.copy(), self._buffer[: arms.size].copy(), _key(graph))  # copies: a view would keep its graph alive
        self._told[t] = told if arms.size <= _FEW else fingerprint(*told)
        if len(self._told) > self.remembers:
            self._told.popitem(last=False)
        return True

    def cancel(self, decision: Decision | str) -> None:
        """Give up a decision that was never carried out: nothing is learned from it."""
        t = self._round_of(decision)
        if t not in self._pending:
            raise DecisionError(
                f"Decision {t}-{self._tag} was told or cancelled before; only a pending one can be cancelled."
            )
        del self._pending[t]

    def estimates(self) -> Estimates:
        """Return what the agent knows about each arm."""
        state = type(self._state)(*(array.copy() for array in self._state))
        weights = np.empty(self._graph.n_arms)
        trace = np.zeros(len(self._learner.TRACES))
        self._draw(self._params, state, self._graph.arrays, self._round + 1, self._seed, 0, weights, trace)
        if self._sparing:
            weights = self._probabilities(state, self._graph, self._round + 1)
        unknown = np.full(weights.size, np.nan)
        counts = getattr(state, "O", np.zeros(weights.size)).astype(np.int64)
        means = np.where(counts > 0, getattr(state, "mean", unknown), np.nan)
        return Estimates(means, counts, getattr(state, "gap", unknown), weights)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a file, from which `Agent.load` goes on as if it had never stopped."""
        state_file.write(path, *self.contents())

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as the header and the arrays of a state file."""
        # By representation too: arcs and intervals of one graph may differ in the last bit of a probability.
        graphs = {_identity(self._graph): self._graph}
        for made in self._pending.values():
            graphs.setdefault(_identity(made.graph), made.graph)
        numbers = {identity: index for index, identity in enumerate(graphs)}
        header = {
            "learner": self._learner.NAME,
            "options": self._options,
            "seed": int(self._seed),
            "round": self._round,
            "graphs": [graph.name for graph in graphs.values()],
            "traces": list(self._learner.TRACES),
        }
        if self._sparing:
            header["fresh"] = self._fresh
        if self._scale is not None:
            header["scale"] = [self._scale.best, self._scale.worst]
        arrays = {f"params.{name}": np.asarray(value) for name, value in self._params._asdict().items()}
        arrays |= {f"state.{name}": array for name, array in self._state._asdict().items()}
        for index, graph in enumerate(graphs.values()):
            arrays |= {f"graph.{index}.{name}": array for name, array in state_file.graph_to_arrays(graph).items()}
        arrays |= write_pending(
            self._pending.values(),
            lambda graph: numbers[_identity(graph)],
            self._graph.n_arms,
            len(self._learner.TRACES),
            sparing=self._sparing,
        )
        arrays["told.round"] = np.array(list(self._told), np.int64)
        marks = b"".join(map(_mark, self._told.values()))
        arrays["told.fingerprint"] = np.frombuffer(marks, np.uint8).reshape(-1, 16)
        return header, arrays

    @classmethod
    def load(cls, path: str | PathLike[str], learner: ModuleType | None = None) -> Self:
        """Go on from a file that `save` wrote.

        Args:
            path: the file.
            learner: the module, for a learner that is not one of the package's own.
        """
        return cls.from_contents(*state_file.read(path), path, learner)

    @classmethod
    def from_contents(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        path: str | PathLike[str],
        learner: ModuleType | None = None,
    ) -> Self:
        """Go on from what `contents` returned; `path` is what messages call the place it was kept in."""
        bank = state_file.read_graphs(path, header, arrays)
        module = state_file.find_learner(path, header, learner)
        agent = cls.__new__(cls)
        agent._scale = Scale(*header["scale"]) if "scale" in header else None  # noqa: SLF001  # its own
        params = state_file.read_params(path, module, arrays)
        agent._begin(module, bank[0], header["seed"], header["options"], params)  # noqa: SLF001  # its own
        agent._resume(path, header, arrays, bank)  # noqa: SLF001
        return agent

    def _resume(
        self,
        path: str | PathLike[str],
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        bank: list[FeedbackGraph],
    ) -> None:
        self._state = state_file.read_state(path, self._state, arrays)
        self._round = header["round"]
        for made in read_pending(arrays, bank, sparing=self._sparing):
            self._pending[made[0]] = self._spared(*made) if self._sparing else Decision(self._tag, *made)
        if self._sparing:
            self._fresh = header["fresh"]
        rounds, prints = arrays["told.round"], arrays["told.fingerprint"]
        self._told.update((int(t), mark.tobytes()) for t, mark in zip(rounds, prints, strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        # What a state file holds; code is found again by the name of its module.
        own = None if self._learner.NAME in catalogue.names() else self._learner.__name__
        return _restore, (type(self), state_file.pack(*self.contents()), own)

    def __repr__(self) -> str:
        pending = f", {len(self._pending)} pending" if self._pending else ""
        return f"<Agent {self.learner} on {self._graph!r}: {self._round} decisions{pending}>"

    def _checked(self, graph: FeedbackGraph) -> FeedbackGraph:
        if not isinstance(graph, FeedbackGraph):
            raise GraphError(f"graph must be a FeedbackGraph, not {type(graph).__name__}.")
        if graph.n_arms != self._graph.n_arms:
            raise GraphError(
                f"The graph of a round must have the agent's {self._graph.n_arms} arms, and {graph!r} does not."
            )
        if graph != self._graph:
            found = f"The agent began on {self._graph!r}, and this round has {graph!r}."
            catalogue.check_fixed(self._learner, self._options, found)
        catalogue.check_graph(self._learner, graph)
        return graph

    def _round_of(self, decision: Decision | str) -> int:
        if isinstance(decision, Decision):
            number, tag = decision.round, decision._tag  # noqa: SLF001
        else:
            digits, _, tag = str(decision).partition("-")
            number = int(digits) if digits.isdecimal() and len(digits) < 19 else 0
        made = self._pending.get(number, decision)
        # An agent alike names its decisions alike, but has drawn others as soon as it was told something else.
        foreign = made is not decision and isinstance(decision, Decision) and not _alike(made, decision)
        if tag != self._tag or not 1 <= number <= self._round or foreign:
            raise UnknownDecisionError(
                f"This agent made no decision {short(getattr(decision, 'id', decision))}. It has made {self._round}, "
                f"named like 1-{self._tag}. Tell the agent that was asked, or load its saved state."
            )
        return number

    def _compare(self, t: int, losses: Losses, graph: FeedbackGraph | None) -> None:
        """Let a repetition pass, and refuse anything else about a decision that is not pending."""
        mark = self._told.get(t)
        if mark is None:
            raise DecisionError(
                f"Decision {t}-{self._tag} was cancelled, or told so long ago that the agent does not remember what: "
                f"it remembers the last {self.remembers:,}. Nothing was learned."
            )
        if not same(_mark(mark), losses, _key(None if graph is None else self._checked(graph))):
            raise ConflictError(
                f"Decision {t}-{self._tag} was told before, with other losses or another graph. The first ones stay; "
                f"losses cannot be corrected after they were learned."
            )


#: Up to so many losses are kept as they are: to hash them takes longer than to learn them.
_FEW = 64


def _restore(kind: type[Agent], data: bytes, learner: str | None) -> Agent:
    module = None if learner is None else importlib.import_module(learner)
    return kind.from_contents(*state_file.unpack(data, "The pickle"), "The pickle", module)


def _mark(told: Any) -> bytes:
    return told if isinstance(told, bytes) else fingerprint(*told)


def _identity(graph: FeedbackGraph) -> tuple[str, str]:
    return graph.content_hash, graph.representation


def _alike(one: Any, other: Decision) -> bool:
    return one.arm == other.arm and np.array_equal(one._p, other._p, equal_nan=True)  # noqa: SLF001


def _key(graph: FeedbackGraph | None) -> int:
    return 0 if graph is None else graph.arrays.key
