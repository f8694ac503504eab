"""Ask and tell: a learner embedded in a program of one's own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Self

from sidelong.agent import arms, contents, head_start, state_file
from sidelong.agent.certified import Certified
from sidelong.agent.feedback import opened, read_losses, took_floats
from sidelong.agent.ledger import Ledger
from sidelong.agent.running import RunningLearner
from sidelong.agent.seen import Seen
from sidelong.agent.watching import Watching
from sidelong.checks import check_whole
from sidelong.display.tables import html_table
from sidelong.errors import DecisionError, EvaluationError, GraphError, LearnerError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.learners import catalogue
from sidelong.outcomes.revealed import Revealed
from sidelong.outcomes.scale import Scale, checked_scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike
    from types import ModuleType

    import numpy as np

    from sidelong.agent.decision import Decision
    from sidelong.agent.lateness import Lateness
    from sidelong.estimates import Estimates
    from sidelong.evaluation import Certificate, WorldHealth
    from sidelong.learners.interface import Learner
    from sidelong.outcomes.revealed import Losses


class Agent:
    """A learner that is asked for an arm and told the losses that playing it revealed.

    The same learner, graph, seed, options and feedback give the same decisions, bit for bit, on any machine.
    An agent is not safe to share between threads.

    Args:
        learner: the name of a learner (`sidelong.learners.names()`), or a module that is one.
        graph: whose losses playing an arm reveals. It also says how many arms there are.
        seed: a whole number from 0 to 2**64 - 1.
        scale: the range of your own costs or scores, if `tell` is to take those in place of losses in [0, 1].
        certificate: whether to keep what `certificate` needs, 21 numbers for each arm. It changes no decision.
        prior: what one believes of some arms, by number or label: what each loses per round, and for how many rounds of
            evidence that counts. It tilts the first rounds, by half of the probability at most. `exp3-set` takes it.
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
        learner: str | ModuleType | Learner,
        graph: FeedbackGraph,
        *,
        seed: int = 0,
        scale: Scale | None = None,
        certificate: bool = False,
        prior: Mapping[int | str, tuple[float, float]] | None = None,
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
        if prior is not None and "prior" in catalogue.option_names(module):  # as ts-n has one
            options["prior"], prior = prior, None
        if certificate:
            catalogue.check_certifiable(module)
        self._graph = graph
        self._options = catalogue.plain_options(module, options)
        params = catalogue.configure(module, graph, self._options)
        self._learner = RunningLearner(module, graph, seed, params)
        self._ledger = Ledger(self._learner, self._options, graph)
        if prior is not None:
            self._ledger.waiting.prior = head_start.tilt(module, params, self._learner.state, graph, prior, self._scale)
        self._ledger.waiting.absent = int(graph.arms_without_self_loop.size > 0)
        self._certified = Certified(graph) if certificate else None
        self._watching = Watching(graph, module)
        self._seen = Seen.nothing(graph.n_arms)

    @property
    def learner(self) -> str:
        """The name of the learner."""
        return str(self._learner.module.name)

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
        return int(self._learner.seed)

    @property
    def scale(self) -> Scale | None:
        """The range of the numbers that `tell` takes; None if they are losses in [0, 1]."""
        return self._scale

    @property
    def round(self) -> int:
        """How many decisions were asked for."""
        return self._ledger.round

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions that were neither told nor cancelled, oldest first."""
        return tuple(self._ledger.pending.values())

    def ask(self, graph: FeedbackGraph | None = None, available: Iterable[int | str | bool] | None = None) -> Decision:
        """Draw an arm.

        Args:
            graph: the graph of this round alone, where graphs change from round to round.
            available: the arms that can be played in this round, by number or label, or a flag for each arm; all if not
                given. The others are neither played nor revealed. `exp3-set` has a rule and a bound for that.
        """
        shown = self._graph if graph is None and available is None else self.graph_of_round(graph, available)
        ledger = self._ledger
        waiting = ledger.waiting
        t = ledger.round + 1
        decision = self._learner.draw(shown, t, ledger.tag)
        ledger.round = t
        ledger.pending[t] = decision
        if t > waiting.first:
            sigma = waiting.sigma
            sigma[t] = len(sigma)
        if shown is not self._graph and shown.arms_without_self_loop.size:
            waiting.absent = 1
        if self._certified is not None:
            self._certified.asked(t)
        return decision

    def graph_of_round(
        self, graph: FeedbackGraph | None = None, available: Iterable[int | str | bool] | None = None
    ) -> FeedbackGraph:
        """Return the graph that `ask` would draw an arm for: without the edges of the arms that are absent."""
        shown = self._graph if graph is None else self._checked(graph)
        return arms.graph_of_round(self._learner.module, self._graph, shown, available)

    def tell(
        self,
        decision: Decision | str,
        losses: Losses | Revealed,
        graph: FeedbackGraph | None = None,
    ) -> bool:
        """Learn the losses that a decision revealed: now or later, in any order.

        Args:
            decision: the decision, or its id.
            losses: a number in [0, 1], or in the agent's `scale`, for every arm in `decision.reveals`, by arm or in
                their order; or what a function of `sidelong.outcomes` returned for the arm of this decision, whole.
            graph: where only the outcome shows what is revealed, the graph of the round as the outcome made it. It
                takes the place of the decision's own. It must say what *every* arm would have revealed, so it must not
                depend on the arm that was played. With a demand of 7, an order of 8 or more has something left over and
                reveals all orders. A smaller order reveals itself and those below. A graph that says only what this arm
                revealed would bias the estimates. The adversarial bounds of exp3.g++ and exp3-set hold with it,
                whatever graph the arm was drawn for. The stochastic bound of exp3.g++, and those of glance, do not.

        Returns:
            True if something was learned, False if the same was told before.
        """
        ledger, learner = self._ledger, self._learner
        t = ledger.round_of(decision)
        made = ledger.pending.get(t)
        given: Any = losses
        key = 0
        if graph is not None or self._scale is not None or isinstance(losses, Revealed):
            given, graph, key = self._read(losses, graph, decision, made)
        if made is None:
            ledger.compare(t, given, key, self.remembers)
            return False
        asked = shown = made._graph  # noqa: SLF001  # what users see is slower, and of arrays read-only
        if graph is not None and (there := arms.as_present(graph, shown)) != shown:
            shown = there
            if learner.is_sparing:
                raise DecisionError(
                    "A learner that does not look at every arm must know at `ask` what its decision reveals: "
                    "tell without graph=..., or take refresh='round'."
                )
        arm = made._arm  # noqa: SLF001
        reveals = shown.row(arm)
        if learner.binary or not took_floats(given, reveals, learner.slots):
            read_losses(given, reveals, shown, learner.losses, binary=learner.binary)
        waiting = ledger.waiting
        sigma = waiting.sigma.pop(t, -1)
        learner.drawn = 0
        learner.learn(
            learner.params,
            learner.state,
            shown.arrays,
            t,
            arm,
            made._p,  # noqa: SLF001
            learner.losses,
            made._trace,  # noqa: SLF001
            learner.present,
            shown is asked,
            self._seen,
            self._watching.turning,
            learner.room,
            waiting.tally,
            sigma,
            ledger.round,
        )
        if self._certified is not None:
            self._certified.told(made, shown, learner.losses)
        del ledger.pending[t]
        if self.remembers:
            ledger.remember(t, reveals, learner.slots[: len(reveals)].tobytes(), key, self.remembers)
        return True

    def _read(
        self, losses: Losses | Revealed, graph: FeedbackGraph | None, decision: Decision | str, made: Decision | None
    ) -> tuple[Losses, FeedbackGraph | None, int]:
        """Return losses in [0, 1], the graph that came with them, and its key, or 0 if none did."""
        given: Losses
        if isinstance(losses, Revealed):
            given, graph = opened(losses, graph, made or decision, self._scale)
        else:
            given = losses if self._scale is None else self._scale.losses(losses)
        if graph is None:
            return given, None, 0
        wider = self._checked(arms.widened(self._learner.module, graph, self._graph, made))
        return given, wider, graph.arrays.key

    def cancel(self, decision: Decision | str, *, lost: bool = False) -> None:
        """Give up a decision: nothing is learned from it.

        Args:
            decision: the decision, or its id.
            lost: that it was carried out, and that its losses will never be known. The certificate and the bound of
                `lateness` take the worst of it. A decision that was never carried out does not count there, which is
                right if neither the arm nor its loss was the reason.
        """
        made = self._ledger.pending.get(self._ledger.round_of(decision))
        self._learner.release(self._ledger.cancel(decision, lost=lost))
        if self._certified is not None and made is not None:
            self._certified.dropped(made, lost=lost)

    def certificate(self, confidence: float = 0.95) -> Certificate:
        """Return how much was lost so far, at most, beyond any fixed arm.

        It holds at every moment at once with the given confidence, whatever the losses are, and whoever chooses them
        watching the draws; `docs/certificate.md` has the proof. Decisions that wait, and those that are lost, count as
        the worst they can be.

        Raises:
            EvaluationError: the agent was not made with `certificate=True`.
        """
        if self._certified is None:
            raise EvaluationError("This agent keeps no certificate. Make it with Agent(..., certificate=True).")
        return self._certified.certificate(self._ledger.pending.values(), confidence)

    def lateness(self) -> Lateness:
        """Return how late feedback was, and, for exp3.g++ and exp3-set, the bound on the regret that this leaves."""
        return self._ledger.waiting.summary(self._ledger.round)

    def learn(self, log: Any) -> int:
        """Learn the rounds of a log, without bias, whoever drew their arms; return how many had losses.

        A log that lacks the probabilities of revealing its losses is refused: what was seen more often because it did
        well would mislead. So is one in which some arm could not be seen, which would look as if it had cost nothing.

        Args:
            log: the path of a Parquet file, such as the service exports; or a table or a dict with its columns: action,
                loss or reward, and pscore, or the lists observed, losses and observe_probabilities of each round.
        """
        rounds = head_start.learn(self._learner, self._graph, log)
        self._ledger.waiting.logged += rounds
        return rounds

    def add_arm(
        self, *, reveals: Iterable[int | str] = (), revealed_by: Iterable[int | str] = (), label: str | None = None
    ) -> int:
        """Add an arm to the agent's graph, and return its number, which is the next one.

        It enters with the weight of the average of all arms, and regret against it counts from now on. Decisions that
        wait are told as if it had been absent, which it was. All certificates since then hold together.

        Args:
            reveals: the arms that playing it reveals beside itself, by number or label.
            revealed_by: the arms that reveal it.
            label: what to call it, if the other arms have labels.
        """
        self._learner, self._seen, self._graph = arms.add(
            self._learner, self._ledger, self._seen, self._graph, reveals, revealed_by, label
        )
        self._watching = self._watching.grown(self._graph, self._learner.module)
        self._certified = None if self._certified is None else self._certified.grown(self._graph)
        return self._graph.n_arms - 1

    def retire(self, arm: int | str) -> None:
        """Take an arm out of the agent's graph for good: it is neither played nor revealed any more.

        Its number stays with it. Decisions that wait are told as they were asked.
        """
        self._graph = arms.retire(self._learner.module, self._graph, arm)
        self._ledger.waiting.absent = 1

    def estimates(self) -> Estimates:
        """Return what the agent knows about each arm, and which is the cheapest as far as it knows."""
        return self._seen.estimates(*self._learner.outlook(self._graph, self._ledger.round + 1), self._graph)

    def outlook(self, graph: FeedbackGraph | None = None) -> np.ndarray:
        """Return the probability of each arm in the next round, which is not drawn; NaN if the learner has none.

        Args:
            graph: the graph of that round, as for `ask`.
        """
        return self._learner.outlook(self.graph_of_round(graph), self._ledger.round + 1)[1]

    def health(self) -> WorldHealth:
        """Return whether the world has turned: whether some arm's expected loss is another one than it was.

        It compares guaranteed intervals of windows of rounds. `WorldHealth.level` is the chance that this is ever said
        though nothing turned, however often one looks.
        """
        return self._watching.health(self._ledger.round)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a file, from which `Agent.load` goes on as if it had never stopped."""
        state_file.write(path, *self.contents())

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as the header and the arrays of a state file."""
        parts = self._learner, self._ledger, self._seen, self._graph, self._options, self._scale
        return contents.write(*parts, self._certified, self._watching)

    @classmethod
    def load(cls, path: str | PathLike[str], learner: ModuleType | Learner | None = None) -> Self:
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
        learner: ModuleType | Learner | None = None,
    ) -> Self:
        """Go on from what `contents` returned; `path` is what messages call the place it was kept in."""
        agent = cls.__new__(cls)
        parts = contents.read(path, header, arrays, learner)
        agent._learner, agent._ledger, agent._seen, agent._graph = parts[:4]  # noqa: SLF001  # its own
        agent._options, agent._scale, agent._certified, agent._watching = parts[4:]  # noqa: SLF001
        return agent

    def __reduce__(self) -> tuple[Any, ...]:
        # What a state file holds; code is found again by the name of its module.
        own = None if self.learner in catalogue.names() else self._learner.module.module
        return _restore, (type(self), state_file.pack(*self.contents()), own)

    def __repr__(self) -> str:
        pending = f", {len(self.pending)} pending" if self.pending else ""
        return f"<Agent {self.learner} on {self._graph!r}: {self.round} decisions{pending}>"

    def _repr_html_(self) -> str:
        options = ", ".join(f"{key} = {value}" for key, value in self._options.items())
        rows = [
            ["learner", self.learner + (f" with {options}" if options else "")],
            ["graph", repr(self._graph).strip("<>")],
            ["decisions", f"{self.round:,}, of which {len(self.pending):,} wait for their losses"],
        ]
        return html_table([], rows, "Agent") + self.estimates()._repr_html_()  # a name of notebooks

    def _checked(self, graph: FeedbackGraph) -> FeedbackGraph:
        return arms.checked(self._learner.module, self._options, self._graph, graph, "agent")


def _restore(kind: type[Agent], data: bytes, learner: str | None) -> Agent:
    module = None if learner is None else importlib.import_module(learner)
    return kind.from_contents(*state_file.unpack(data, "The pickle"), "The pickle", module)
