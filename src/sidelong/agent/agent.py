"""Ask and tell: a learner embedded in a program of one's own."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import bind
from sidelong._packed import Packed, pack
from sidelong.agent import advice as advising
from sidelong.agent import codec, graphs, logs, observers, rules
from sidelong.agent.decision import Decision, SparingDecision, decision_at
from sidelong.agent.estimates import estimates_of
from sidelong.agent.feedback import LossColumns, read_floats
from sidelong.agent.graphs import Bank
from sidelong.agent.kernels import KeyArrays, Workspace, kernels_of
from sidelong.agent.observers import LOGGED, DrawnRound, Observers, drawn_round, note_asked
from sidelong.agent.persistent import Persistent
from sidelong.agent.rules import FITS
from sidelong.agent.setup import prepare
from sidelong.agent.states import kept_names
from sidelong.checks import check_whole, short
from sidelong.display.tables import html_table
from sidelong.errors import LearnerError, UnknownDecisionError
from sidelong.evaluation.advisers import AdvisersTable
from sidelong.graphs.presence import with_absent_arm
from sidelong.learners.interface import Asked, all_probabilities, refusal, widen_trace
from sidelong.outcomes.revealed import Revealed
from sidelong.outcomes.revealed_columns import RevealedColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from types import ModuleType

    from sidelong.agent.observers import Lateness
    from sidelong.agent.setup import Prior, Setup
    from sidelong.estimates import Estimates
    from sidelong.evaluation import Certificate, WorldHealth
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner
    from sidelong.outcomes.revealed import Losses
    from sidelong.outcomes.scale import Scale

#: An agent remembers what it was told for this many decisions, unless it is told otherwise.
REMEMBERED = 10_000
#: Up to so many losses are kept as they are: to hash them takes longer than to learn them.
_FEW = 64


class Agent(Persistent):
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
            evidence that counts. `glance` and `exp3-set` take it.
        incumbent: the name of the adviser who decides today. Every `ask` needs its advice, and the expected loss of all
            decisions exceeds its own by at most the allowance. `glance` has a rule for that.
        allowance: how much may be lost by trying the agent, in all, on average, in numbers of the scale.
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

    def __init__(
        self,
        learner: str | ModuleType | Learner,
        graph: FeedbackGraph,
        *,
        seed: int = 0,
        scale: Scale | None = None,
        certificate: bool = False,
        prior: Prior | None = None,
        incumbent: str | None = None,
        allowance: float | None = None,
        **options: Any,  # each learner has its own
    ) -> None:
        setup = prepare(
            learner,
            graph,
            seed=seed,
            scale=scale,
            prior=prior,
            options=options,
            certificate=certificate,
            incumbent=incumbent,
            allowance=allowance,
        )
        self._begin(setup, setup.observers())

    def _begin(self, setup: Setup, counted: Observers) -> None:
        """Begin with the first state of a setup, before any decision."""
        self._pending: dict[int, Decision] = {}
        # By round, the last one last: what is remembered of it, or the round, arms, losses and graph it is made from.
        self._told: dict[int, Any] = {}
        self.remembers = REMEMBERED
        self._names: dict[str, int] = {}  # the rounds of decisions that a service made, by the names it gave them
        self._round = 0
        self._outstanding = 0  # how many are pending, without those of initial rounds
        self._drawn = 0  # the last round, until something is learned
        self._play(setup, setup.state, counted)

    def _play(self, setup: Setup, state: Any, counted: Observers) -> None:
        """Go on with a learner, its state and its observers, on the graph of a setup."""
        self._setup, self._observers = setup, counted
        self._state = type(state)(*(array.copy() for array in state))
        graph, K = setup.graph, setup.graph.n_arms
        self._graph = graph
        self._bank = Bank(setup.learner, setup.options, [graph], "agent")
        self._room = Workspace.new(K)
        self._slots: Any = self._room.losses.data  # the same, for numbers one by one
        self._seed = np.uint64(setup.seed)
        self._ends = setup.ends  # the best and the worst of the scale
        self._tag = setup.tag  # what each round needs is at hand
        self._n_arms, self._n_traces, self._n_means, self._initial = K, setup.n_traces, setup.n_means, setup.initial
        self._advisers, self._needs_advice = setup.advisers, bool(setup.incumbent)
        self._no_mean = np.empty(0)
        p, trace = np.empty(K), np.empty(setup.n_traces)
        drawn = DrawnRound(1, 0, 0, 0, p, trace, np.empty(setup.n_means))
        self._key = self._packed(self._state)
        known, of = (self._key, graph.packed), str(setup.learner.name)
        made = kernels_of(setup.learner)
        self._ask: Callable[..., int]
        self._tell: Callable[..., int]
        self._drop: Callable[..., None] | None = None
        self._chance: Callable[..., float] | None = None
        self._all_chances: Callable[..., None] | None = None
        bind(self, "_ask", made.ask_one, *known, 1, p, trace, of=of)
        more = graph.packed, drawn, 1, *self._ends, 1, True
        bind(self, "_tell", made.tell_one, *known, *more, of=of)
        if setup.learner.is_sparing:
            first = setup.params, self._state, graph.arrays, self._asked(graph, 1, p, trace)
            bind(self, "_chance", setup.learner.probability, *first, 0, of=of)

    def _packed(self, state: Any) -> Packed:
        """Return what kernels take in every round, with a state of the learner."""
        return pack(KeyArrays(self._setup.params, state, self._observers, self._room, self._seed))  # type: ignore[arg-type]

    @property
    def round(self) -> int:
        """How many decisions were asked for."""
        return self._round

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions that were neither told nor cancelled, oldest first."""
        return tuple(self._pending.values())

    @property
    def remembers(self) -> int:
        """For how many decisions, at least, the agent remembers what it was told, to recognise a repetition."""
        return self._remembers

    @remembers.setter
    def remembers(self, decisions: int) -> None:
        self._remembers = check_whole(LearnerError, "remembers", decisions, 0, 2**62)
        self._most_told = self._remembers + self._remembers // 8
        self._forget()

    def ask(
        self,
        graph: FeedbackGraph | None = None,
        available: Iterable[int | str | bool] | None = None,
        advice: Any = None,
    ) -> Decision:
        """Draw an arm.

        Args:
            graph: the graph of this round alone, where graphs change from round to round.
            available: the arms that can be played in this round, by number or label, or a flag for each arm; all if not
                given. The others are neither played nor revealed. `glance` and `exp3-set` have a bound for that.
            advice: what you would play yourself: an arm by number or label, or a probability for each arm; or a dict of
                the name of an adviser to either. One without a name is called "advice". Who is not named, or advises
                None or an arm that is absent, is silent in this round. Advisers may come and go; there are at most 32
                names in all. `glance` takes advice.
        """
        shown = self._graph if graph is None and available is None else self._bank.of_round(graph, available)
        if advice is None and not self._needs_advice:
            return self._decide(shown)
        return self._decide(shown, self._read_advice({} if advice is None else advice, shown))

    def _read_advice(self, given: Any, shown: FeedbackGraph) -> np.ndarray | None:
        """Return the advice of all advisers, one after the other; None if there are none. New ones join now."""
        setup, rows = self._setup, advising.read_one(given, self._graph)
        new = advising.new_names(setup.learner, setup.advisers, rows)
        if setup.incumbent:
            advising.check_incumbent(setup.incumbent, rows, [shown])
        if new:
            state, counted = setup.with_advisers(self._state, len(new))[1], self._observers.with_advisers(len(new))
            self._play(setup.advised(new), state, counted)
        return advising.laid_out(self._setup.advisers, rows) if rows else None

    def _decide(self, shown: FeedbackGraph, given: np.ndarray | None = None) -> Decision:
        """Draw an arm for a graph, and keep the decision; `given` is known before the draw, such as advice."""
        t, mean = self._round + 1, self._no_mean
        trace = np.zeros(self._n_traces)
        if given is not None:
            trace[trace.size - given.size :] = given
        p = self._room.losses if self._chance is not None else np.empty(self._n_arms)
        arm = self._ask(self._key, shown.packed, t, p, trace)
        if type(arm) is not int:  # plain Python gives a number of NumPy
            arm = int(arm)
        if not 0 <= arm < self._n_arms:
            raise refusal(self._setup.learner, t, p, arm, self._n_arms)
        absent = 0 if shown is self._graph else shown.arms_without_self_loop.size
        if absent or self._n_means:
            mean = np.empty(self._n_means)
            note_asked(self._observers, absent, mean)
        outstanding = -1
        if t > self._initial:
            outstanding = self._outstanding
            self._outstanding = outstanding + 1
        if self._chance is None:
            drawn = drawn_round((t, arm, arm, outstanding, p, trace, mean))
            decision = Decision(self._tag, shown, drawn, self._advisers)
        else:
            decision = self._sparing(shown, t, arm, outstanding, p, trace, mean)
        self._drawn = self._round = t
        self._pending[t] = decision
        return decision

    def _sparing(
        self,
        graph: FeedbackGraph,
        t: int,
        arm: int,
        outstanding: int,
        p: np.ndarray,
        trace: np.ndarray,
        mean: np.ndarray,
    ) -> Decision:
        """Return a decision of a learner that does not look at every arm."""
        chance: Any = self._chance
        asked = self._asked(graph, t, p, trace)
        probability = chance(self._setup.params, self._state, graph.arrays, asked, arm)
        drawn = DrawnRound(t, arm, arm, outstanding, p[: graph.row(arm).size].copy(), trace, mean)
        return SparingDecision(self._setup.tag, graph, drawn, probability, self._every_chance)

    def _asked(self, graph: FeedbackGraph, t: int, p: np.ndarray, trace: np.ndarray) -> Asked:
        there = self._room.present
        if self._setup.learner.sleeps:
            np.less(graph.arrays.start, graph.arrays.stop, out=there)
        return Asked.new(t, p, trace, there, seed=self._setup.seed)

    def _every_chance(self, t: int, graph: FeedbackGraph) -> np.ndarray | None:
        """Return the probabilities of all arms in round t, or None if that is not the one just drawn."""
        if t != self._drawn:
            return None
        p = np.empty(graph.n_arms)
        asked = self._asked(graph, t, p, np.empty(self._setup.n_traces))
        known = self._setup.params, self._state, graph.arrays, asked
        if self._all_chances is None:  # compiled when it is first needed, which may be never
            bind(self, "_all_chances", all_probabilities(self._setup.learner), *known)
        self._all_chances(*known)  # type: ignore[misc]  # it is there now
        return p

    def graph_of_round(
        self, graph: FeedbackGraph | None = None, available: Iterable[int | str | bool] | None = None
    ) -> FeedbackGraph:
        """Return the graph that `ask` would draw an arm for: without the edges of the arms that are absent."""
        return self._bank.of_round(graph, available)

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
        made = self._pending.get(decision._drawn.t) if isinstance(decision, Decision) else None  # noqa: SLF001
        if made is not decision:  # most are the very object that `ask` returned
            made = self._find(decision)
        # The short way, for what most are told. Whatever does not fit here is read again by `rules`, which knows why.
        if made is not None:
            shown, values, key, foreseen = made._graph, losses, 0, True  # noqa: SLF001  # what users see is slower
            if graph is not None or isinstance(losses, Revealed):
                shown, values, key, foreseen = self._outcome(made, losses, graph)
            drawn = made._drawn  # noqa: SLF001
            arms = shown.row_list(drawn.carried)
            count = read_floats(values, arms, self._slots)
            if count >= 0 and self._learn(made, shown, count, self._ends, foreseen):
                told = drawn.t, arms, self._slots[:count].tobytes(), key
                self._remember(drawn.t, told if count <= _FEW else _marks([told])[0])
                return True
        return self._tell_any(decision, made, losses, graph)

    def _outcome(self, made: Decision, losses: Any, graph: Any) -> tuple[FeedbackGraph, Any, int, bool]:
        """Return the graph of an outcome, its losses, what the graph is remembered by, and whether it was foreseen.

        The losses are None where the short way is not for them.
        """
        asked, foreseen = made.graph, False
        if isinstance(losses, Revealed):
            usual = graph is None and losses.arm == made.carried_out and self._setup.scale is None
            if not usual or asked.arms_without_self_loop.size:
                return asked, None, 0, False
            losses, graph, foreseen = losses.losses, losses.graph, losses.foreseen
        shown = self._bank.of_outcome(graph, asked)
        refused = shown is not asked and (foreseen or self._setup.learner.is_sparing)
        return shown, None if refused else losses, int(graph.arrays.key), foreseen

    def _tell_any(
        self, decision: Decision | str, made: Decision | None, losses: Any, graph: FeedbackGraph | None
    ) -> bool:
        """Do the same for all that can be told, also of a decision that is not pending."""
        t = self._round_of(decision) if made is None else made.round
        bank = (
            self._bank
            if made is None
            else Bank(self._setup.learner, self._setup.options, [self._graph, made.graph], "agent")
        )
        revealed = RevealedColumns.of_one(losses) if isinstance(losses, Revealed) else None
        named = self._named(t, made, bank)
        if revealed is None:
            heard = rules.read_one(losses, named, self.remembers)
        else:
            heard = LossColumns(revealed.losses, revealed.losses)
        feedback = rules.FeedbackCheck(self._setup.learner, bank, named, heard, self.remembers)
        accepted = feedback.accept(graph, revealed)
        if made is None:
            return False
        shown = made.graph if accepted.shown[0] == bank.place(made.graph) else bank.graphs[accepted.shown[0]]
        self._room.losses[: accepted.losses.size] = accepted.losses
        self._learn(made, shown, accepted.losses.size, (0.0, 1.0), accepted.foreseen)  # they are losses now
        self._remember(t, accepted.marks[0])
        return True

    def _remember(self, t: int, told: Any) -> None:
        """Remember what a decision was told."""
        if self._most_told:
            self._told[t] = told
            if len(self._told) > self._most_told:
                self._forget()

    def _forget(self) -> None:
        """Forget what was told longest ago, some at once: to find the first of a dict is slow where many are gone."""
        extra = max(0, len(self._told) - self._remembers)
        for t in list(itertools.islice(self._told, extra)):
            del self._told[t]

    def _learn(
        self,
        made: Decision,
        shown: FeedbackGraph,
        count: int,
        ends: tuple[float, float],
        foreseen: bool,  # noqa: FBT001  # its own
    ) -> bool:
        """Learn the values in the slots, if they fit; the decision is pending no longer."""
        drawn = made._drawn  # noqa: SLF001  # what users see is slower
        best, worst = ends
        asked = made._graph.packed  # noqa: SLF001
        if self._tell(self._key, shown.packed, asked, drawn, count, best, worst, self._round, foreseen) != FITS:
            return False
        self._drawn = 0
        del self._pending[drawn.t]
        if drawn.outstanding >= 0:
            self._outstanding -= 1
        return True

    def _named(self, t: int, made: Decision | None, bank: Bank) -> rules.NamedDecisions:
        """Return what the rules know of one decision."""
        before = _marks([self._told[t]]) if made is None and t in self._told else np.zeros((1, 4), np.int64)
        if rules.is_cancelled(before[0]):  # then it was told nothing
            before = np.zeros((1, 4), np.int64)
        arm, place = (0, 0) if made is None else (made.carried_out, bank.place(made.graph))
        round_, carried, asked = np.array([[t], [arm], [place]], np.int64)
        pending, ends = np.array([made is not None]), np.array([self._setup.ends])
        return rules.NamedDecisions(
            lambda _: self._name(t), lambda _: "", round_, pending, carried, asked, before, ends
        )

    def _name(self, t: int) -> str:
        return f"{t}-{self._setup.tag}"

    def _find(self, decision: Decision | str) -> Decision | None:
        """Return a decision if it is pending, and refuse one that this agent did not make."""
        if isinstance(decision, Decision):
            made = self._pending.get(decision._drawn.t)  # noqa: SLF001  # quicker than what users see
            if made is decision:  # as most are
                return made
        return self._pending.get(self._round_of(decision))

    def _round_of(self, decision: Decision | str) -> int:
        """Return the round of a decision, or of the name of one, if this agent made it."""
        if isinstance(decision, Decision):
            number, ours = decision.round, decision.id == self._name(decision.round)
            made = self._pending.get(number)
            # An agent alike names its decisions alike, but has drawn others as soon as it was told something else.
            ours = ours and (made is None or _are_alike(made.drawn, decision.drawn))
        elif str(decision) in self._names:
            return self._names[str(decision)]
        else:
            digits, _, tag = str(decision).partition("-")
            number = int(digits) if digits.isdecimal() and len(digits) < 19 else 0
            ours = tag == self._setup.tag
        if not ours or not 1 <= number <= self._round:
            raise UnknownDecisionError(
                f"This agent made no decision {short(getattr(decision, 'id', decision))}. It has made {self._round}, "
                f"named like 1-{self._setup.tag}. Tell the agent that was asked, or load its saved state."
            )
        return number

    def _must_find(self, decision: Decision | str, what: str) -> Decision:
        made = self._find(decision)
        if made is None:
            raise rules.not_pending(self._name(self._round_of(decision)), what)
        return made

    def override(self, decision: Decision | str, arm: int | str) -> Decision:
        """Say that a pending decision was carried out with another arm, before its losses are told.

        `tell` then takes the losses that this arm revealed. Means learn from them, and so does a regressor. The learner
        does not: its estimates are without bias only for arms that it drew itself. For its bounds, the certificate and
        the alarm the round counts as if its losses had been lost; `health` says how many there are.

        Args:
            decision: the decision, or its id.
            arm: the arm that was carried out, by number or label. It must have been there in that round. Once said, it
                stays.

        Returns:
            The decision as it is now: its `reveals` are those of the arm that was carried out.
        """
        made = self._must_find(decision, "be overridden")
        number = rules.overriding_arm(made.graph, arm, made.id, made.arm, made.carried_out)
        self._pending[made.round] = now = made.with_arms(made.graph, made.drawn._replace(carried=number))
        return now

    def cancel(self, decision: Decision | str, *, lost: bool = False) -> bool:
        """Give up a decision: nothing is learned from it.

        Args:
            decision: the decision, or its id.
            lost: that it was carried out, and that its losses will never be known. The certificate and the bound of
                `lateness` take the worst of it. A decision that was never carried out does not count there, which is
                right if neither the arm nor its loss was the reason.

        Returns:
            True if it was pending, False if it was cancelled in the same way before, as far as that is remembered.

        Raises:
            DecisionError: it was told, or has expired; or it was carried out with another arm, and is not said to be
                lost.
        """
        made = self._find(decision)
        t = self._round_of(decision) if made is None else made.round
        mark = rules.cancelled_mark(t, lost=lost)
        if made is None:
            if not np.array_equal(_marks([self._told[t]] if t in self._told else []), [mark]):
                raise rules.not_pending(self._name(t), "be cancelled")
            return False
        rules.check_cancelled(made.id, overridden=made.carried_out != made.arm, lost=lost)
        self._give_up(made, lost=lost)
        self._remember(t, mark)
        return True

    def expire(self, age: int, *, lost: bool = False) -> list[str]:
        """Give up the decisions after which the agent has made `age` others, or more; return their ids.

        One that was carried out with another arm counts as lost.
        """
        age = check_whole(LearnerError, "age", age, 0)
        expired = [made for made in self._pending.values() if self._round - made.round >= age]
        for made in expired:
            self._give_up(made, lost=lost)
        return [made.id for made in expired]

    def _give_up(self, made: Decision, *, lost: bool) -> None:
        """Let go of a pending decision."""
        setup, drawn = self._setup, made.drawn
        known = setup.params, self._state, made.graph.arrays, drawn, self._observers, self._room, bool(lost)
        if self._drop is None:  # compiled when it is first needed, which may be never
            bind(self, "_drop", kernels_of(setup.learner).drop_one, *known, of=str(setup.learner.name))
        self._drop(*known)  # type: ignore[misc]  # it is there now
        del self._pending[drawn.t]
        if drawn.outstanding >= 0:
            self._outstanding -= 1

    def certificate(self, confidence: float = 0.95) -> Certificate:
        """Return how much was lost so far, at most, beyond any fixed arm.

        It holds at every moment at once with the given confidence, whatever the losses are, and whoever chooses them
        watching the draws; `docs/proofs.md` has the proof. Decisions that wait, and those that are lost, count as
        the worst they can be.

        Raises:
            EvaluationError: the agent was not made with `certificate=True`.
        """
        return observers.certificate_of(self._observers, self._pending.values(), confidence)

    def stop(self, confidence: float = 0.95) -> int | None:
        """Return the arm with the least expected loss, if that is known by now; else None.

        With the given confidence no answer of a run is ever wrong, however often one asks, whichever learner plays: if
        the expected losses stay as they are, and feedback is not missing because of what was lost. `docs/stopping.md`
        has more.

        Raises:
            EvaluationError: some outcome decided which losses were revealed (`tell` with a graph).
        """
        return observers.best_arm_of(self._observers, self._graph, confidence)

    def advisers(self, confidence: float = 0.95) -> AdvisersTable:
        """Return what is known of each adviser: what its advice would have lost, beside what was paid in its rounds.

        The intervals of all advisers together hold at every moment at once with the given confidence, whoever chooses
        the losses watching the draws. Decisions that wait, and those that are lost, count as the worst they can be. The
        losses are of rounds that the agent's own plays have led to: not what would have happened, had you followed an
        adviser alone. `trust` is the share of the agent's own choice that follows the adviser now.
        """
        known = self._setup, self._observers, self._state, self._pending.values()
        return AdvisersTable(observers.advisers_of(*known, confidence, self._ends))

    @property
    def allowance_left(self) -> float:
        """What is left of the allowance for falling behind the incumbent, in numbers of the scale.

        Decisions that wait, and those that are lost or cancelled, count as the most that they can cost. Where the agent
        does better than the incumbent, it grows.
        """
        return self._setup.allowance_left(self._state, self._ends)

    def lateness(self) -> Lateness:
        """Return how late feedback was, and, for exp3.g++ and exp3-set, the bound on the regret that this leaves."""
        outstanding = [made.drawn.outstanding for made in self._pending.values()]
        return observers.lateness_of(self._setup, self._observers.delays, outstanding, self._round)

    def learn(self, log: Any) -> int:
        """Learn the rounds of a log, without bias, whoever drew their arms; return how many had losses.

        A log that lacks the probabilities of revealing its losses is refused: what was seen more often because it did
        well would mislead. So is one in which some arm could not be seen, which would look as if it had cost nothing.

        Args:
            log: the path of a Parquet file, such as the service exports; or a table or a dict with its columns: action,
                loss or reward, and pscore, or beside these the lists observed, losses and observe_probabilities of each
                round.
        """
        rounds = logs.replay(self._setup, self._state, log)
        self._observers.delays[LOGGED] += rounds
        self._drawn = 0
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
        setup = self._setup
        wider = graphs.with_new_arm(setup.learner, self._graph, reveals, revealed_by, label)
        grow: Any = setup.learner.grow  # it was checked that there is one
        params, state = grow(setup.params, self._state)
        first = grow(setup.params, setup.state)[1]
        counted = self._observers.grown(self._outstanding > 0)
        self._play(replace(setup, params=params, state=first, graph=wider), state, counted)
        for t, made in self._pending.items():
            before, drawn = with_absent_arm(made.graph, wider.labels), made.drawn
            mean = np.append(drawn.mean, 0.5) if drawn.mean.size else drawn.mean
            trace = widen_trace(setup.learner, drawn.trace, before.n_arms - 1)
            self._pending[t] = made.with_arms(before, drawn._replace(p=np.append(drawn.p, 0.0), trace=trace, mean=mean))
        return wider.n_arms - 1

    def retire(self, arm: int | str) -> None:
        """Take an arm out of the agent's graph for good: it is neither played nor revealed any more.

        Its number stays with it. Decisions that wait are told as they were asked.
        """
        graph = graphs.without_arm(self._setup.learner, self._graph, arm)
        self._setup = replace(self._setup, graph=graph)
        self._graph = graph
        self._bank = Bank(self._setup.learner, self._setup.options, [graph], "agent")
        self._observers.delays[observers.ABSENT] = 1.0

    def estimates(self) -> Estimates:
        """Return what the agent knows about each arm, and which is the cheapest as far as it knows."""
        return estimates_of(self._observers, *self._look_ahead(self._graph), self._graph)

    def outlook(self, graph: FeedbackGraph | None = None) -> np.ndarray:
        """Return the probability of each arm in the next round, which is not drawn; NaN if the learner has none.

        Args:
            graph: the graph of that round, as for `ask`.
        """
        return self._look_ahead(self.graph_of_round(graph))[1]

    def _look_ahead(self, graph: FeedbackGraph) -> tuple[np.ndarray, np.ndarray]:
        """Return the gap and the probability of each arm before the next round, which is not drawn."""
        setup, before = self._setup, self._state
        state = self._state = type(before)(*(array.copy() for array in before))
        t, p, trace = self._round + 1, np.empty(graph.n_arms), np.zeros(setup.n_traces)
        drawn = self._drawn
        try:
            self._ask(self._packed(state), graph.packed, t, p, trace)
            if setup.learner.is_sparing:
                self._drawn = t
                p = self._every_chance(t, graph)  # type: ignore[assignment]  # it was just drawn
        finally:
            self._state, self._drawn = before, drawn
        return setup.gaps(state), p

    def health(self) -> WorldHealth:
        """Return whether the world has turned: whether some arm's expected loss is another one than it was.

        It compares guaranteed intervals of windows of rounds. `WorldHealth.level` is the chance that this is ever said
        though nothing turned, however often one looks.
        """
        return observers.health_of(self._setup, self._observers, self._round)

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as the header and the arrays of a state file."""
        header, arrays = codec.write("agent", self._saved())
        header |= {"remembers": self.remembers}
        header |= {"round": self._round}  # for whoever reads it; `rows.round` is what counts
        return header | ({"fresh": self._drawn} if self._setup.learner.is_sparing else {}), arrays

    def _saved(self) -> codec.Saved:
        """Return what is saved, as one key."""
        setup, K = self._setup, self._graph.n_arms
        bank = Bank(setup.learner, setup.options, [self._graph], "agent")
        told = list(self._told.values())[max(0, len(self._told) - self._remembers) :]
        made = list(self._pending.values())
        n = len(made)
        pending = {
            "key": np.zeros(n, np.int64),
            "round": np.array([each.drawn.t for each in made], np.int64),
            "arm": np.array([each.drawn.arm for each in made], np.int64),
            "carried": np.array([each.drawn.carried for each in made], np.int64),
            "graph": np.array([bank.place(each.graph) for each in made], np.int64),
            "outstanding": np.array([each.drawn.outstanding for each in made], np.int64),
            "probability": np.array([each.probability for each in made], np.float64),
            "p": _table([each.drawn.p for each in made], K),
            "trace": _table([each.drawn.trace for each in made], setup.n_traces),
            "mean": _table([each.drawn.mean for each in made], setup.n_means, 0.5),
            "x": np.empty((n, 0)),
        }
        return codec.Saved(
            setup,
            {name: getattr(self._state, name)[None] for name in kept_names(setup.learner, self._state)},
            np.array([self._seed]),
            np.array([self._round], np.int64),
            _marks(told)[::-1][None],  # as a family has them, the last one first
            np.empty((1, 0)),
            Observers(*(array[None] for array in self._observers)),
            bank.graphs,
            pending,
            self._names,
        )

    def _resume(self, path: Any, header: dict[str, Any], arrays: dict[str, np.ndarray], learner: Any) -> None:
        """Go on, in a new object, from what was saved."""
        self._go_on(codec.read(path, "agent", header, arrays, learner), header)

    def _go_on(self, saved: codec.Saved, header: dict[str, Any]) -> None:
        """Go on from what was read."""
        setup = saved.setup
        self._begin(setup, Observers(*(np.ascontiguousarray(array[0]) for array in saved.observers)))
        for name, array in saved.state.items():
            getattr(self._state, name)[...] = array[0]
        self._round, self._names = int(saved.round[0]), saved.names
        self._drawn = check_whole(LearnerError, "fresh", header.get("fresh", 0), 0)
        self.remembers = header["remembers"]
        self._told.update((int(mark[0]), mark) for mark in saved.told[0][::-1])
        for place, graph in enumerate(saved.pending["graph"].tolist()):
            made = decision_at(setup, saved.pending, place, saved.graphs[graph], setup.tag, self._every_chance)
            self._pending[made.round] = made
            self._outstanding += made.drawn.outstanding >= 0

    def __repr__(self) -> str:
        pending = f", {len(self._pending)} pending" if self._pending else ""
        return f"<Agent {self.learner} on {self._graph!r}: {self.round} decisions{pending}>"

    def _repr_html_(self) -> str:
        options = ", ".join(f"{key} = {value}" for key, value in self._setup.options.items())
        rows = [
            ["learner", self.learner + (f" with {options}" if options else "")],
            ["graph", repr(self._graph).strip("<>")],
            ["decisions", f"{self.round:,}, of which {len(self._pending):,} wait for their losses"],
        ]
        return html_table([], rows, type(self).__name__) + self.estimates()._repr_html_()  # a name of notebooks


def _marks(told: Collection[Any]) -> np.ndarray:
    """Return what is remembered of decisions, as `rules.marks_of` makes it; what was told may be kept as it was."""
    raw = [each for each in told if isinstance(each, tuple)]
    made = iter(())
    if raw:
        rounds, arms, losses, keys = zip(*raw, strict=True)
        offsets = np.append(0, np.cumsum([*map(len, arms)]))
        values, listed = np.frombuffer(b"".join(losses)), np.array([*itertools.chain(*arms)], np.int64)
        made = iter(rules.marks_of(np.array(rounds, np.int64), values, listed, offsets, np.array(keys, np.int64)))
    return np.array([next(made) if isinstance(each, tuple) else each for each in told], np.int64).reshape(-1, 4)


def _table(rows: list[np.ndarray], width: int, more: float = 0.0) -> np.ndarray:
    """Return rows as a table; what a shorter one lacks is `more`."""
    table = np.full((len(rows), width), more)
    for place, row in zip(table, rows, strict=True):
        place[: row.size] = row
    return table


def _are_alike(one: DrawnRound, other: DrawnRound) -> bool:
    size = other.p.size  # arms may have come since, with a probability of 0
    return one.arm == other.arm and np.array_equal(one.p[:size], other.p, equal_nan=True)
