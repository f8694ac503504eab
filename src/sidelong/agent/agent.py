"""Ask and tell: a learner embedded in a program of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import bind
from sidelong._packed import pack
from sidelong.agent import advice as advising
from sidelong.agent import codec, graphs, naming, rules
from sidelong.agent.ceiling import costs_of_one
from sidelong.agent.decision import Decision, SparingDecision, decision_at
from sidelong.agent.estimates import estimates_of
from sidelong.agent.feedback import LossColumns, read_floats
from sidelong.agent.kernels import kernels_of
from sidelong.agent.key import OneKey
from sidelong.agent.persistent import Persistent
from sidelong.agent.regressors import weights_of
from sidelong.agent.rounds import REMEMBERED_BY_AGENT, Rounds
from sidelong.agent.rules import FITS
from sidelong.agent.setup import prepare
from sidelong.checks import check_whole
from sidelong.display.tables import html_table
from sidelong.errors import LearnerError
from sidelong.learners.interface import Asked, all_probabilities, refusal
from sidelong.outcomes.revealed import Revealed
from sidelong.outcomes.revealed_columns import RevealedColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from sidelong.agent.setup import Prior
    from sidelong.estimates import Estimates
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner
    from sidelong.outcomes.revealed import Losses
    from sidelong.outcomes.scale import Scale


class Agent(OneKey, Persistent):
    """A learner in your program: `ask` it for an arm, and `tell` it the losses that playing the arm revealed.

    The same learner, graph, seed, options and feedback give the same decisions, bit for bit, on any machine.
    An agent is not safe to share between threads.

    Args:
        learner: the name of a learner (`sidelong.learners.names()`), or a module that is one.
        graph: says which losses playing an arm reveals, and how many arms there are.
        seed: a whole number from 0 to 2**64 - 1.
        scale: the range of your own costs or scores. `tell` then takes those instead of losses in [0, 1].
        certificate: whether to record what `certificate` needs, 21 numbers per arm. Decisions stay the same.
        prior: what you believe about some arms, by number or label: the loss per round, and how many rounds of evidence
            that is worth. `glance` and `exp3-set` take a prior.
        incumbent: the name of the adviser who decides today. Every `ask` needs its advice, and the expected loss of all
            decisions together exceeds that of this advice by at most the allowance. `glance` takes an incumbent.
        allowance: how much the trial may lose in total, in expectation, in the unit of the scale.
        ceiling: what a decision may cost on average, in the unit in which costs are told; `tell` then takes costs.
        cost_bounds: the most that each arm can cost, as a list, or by number or label. Together with `overspend` they
            make a limit that holds at every moment: arms that could break it are absent.
        overspend: by how much the total cost may ever exceed the ceiling times the number of decisions.
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
        ceiling: float | None = None,
        cost_bounds: Any = None,
        overspend: float | None = None,
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
            ceiling=(ceiling, cost_bounds, overspend),
        )
        self._play(Rounds(setup, remembers=REMEMBERED_BY_AGENT, single=True))

    def _play(self, rounds: Rounds) -> None:
        """Go on with these rounds of one key; what each ask and tell needs is at hand."""
        self._rounds = rounds
        setup = rounds.setup
        self._own = own = rounds.attach()
        self._key = pack(own)
        self._losses: Any = own.scratch.losses.data  # for numbers one by one
        self._graph, self._n_arms, self._tag, self._ends = setup.graph, setup.graph.n_arms, setup.tag, setup.ends
        self._advisers, self._needs_advice = setup.advisers, bool(setup.incumbent)
        self._ceiling = setup.ceiling
        self._is_sparing = setup.learner.is_sparing
        self._regressor = rounds.regressor
        self._drawn = 0  # the last round, until something is learned
        self._read_tables()
        made, of = kernels_of(setup.learner), str(setup.learner.name)
        graph, table = setup.graph.packed, self._pending
        self._ask: Callable[..., int]
        self._tell: Callable[..., int]
        self._all_chances: Callable[..., None] | None = None
        bind(self, "_ask", made.ask_one, self._key, table, graph, 0, 0, of=of)
        told = 0, 1, *self._ends, True, 0
        bind(self, "_tell", made.tell_one, self._key, table, graph, graph, *told, of=of)

    def _read_tables(self) -> None:
        """Take notice of what has changed in the tables of its key."""
        rounds = self._rounds
        self._table = rounds.pending
        self._pending = pack(rounds.pending)
        self._end = len(rounds.pending.key)
        self._round = int(rounds.rows.round[0])

    def _row(self) -> int:
        return 0

    def _round_of(self, decision: Decision | str) -> int:
        return naming.round_of(self._rounds, decision)

    def _decision(self, slot: int) -> Decision:
        if self._rounds.pending is not self._table:
            self._read_tables()
        return decision_at(self._rounds, slot, self._every_chance)

    @property
    def _state(self) -> Any:
        return self._own.state

    @property
    def remembers(self) -> int:
        """For how many decisions the agent remembers what it was told, to recognise a repetition."""
        return int(self._rounds.rows.told.shape[1])

    @remembers.setter
    def remembers(self, decisions: int) -> None:
        self._rounds.remember(check_whole(LearnerError, "remembers", decisions, 0, 2**20))
        self._play(self._rounds)

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
        shown, place = self._graph, 0
        if graph is not None or available is not None or self._ceiling is not None:
            shown, place = self._shown(graph, available)
        return self._draw(shown, place, advice)

    def _draw(self, shown: FeedbackGraph, place: int, advice: Any) -> Decision:
        if advice is None and not self._needs_advice:
            return self._decide(shown, place)
        return self._decide(shown, place, self._read_advice({} if advice is None else advice, shown))

    def _shown(self, graph: FeedbackGraph | None, available: Any, count: int = 1) -> tuple[FeedbackGraph, int]:
        """Return the graph of a round, or of each of several, and its place in the bank."""
        rounds = self._rounds
        shown = rounds.bank.of_round(graph, available)
        rounds.forget_graphs()
        place = rounds.bank.place(shown)
        if self._ceiling is not None:
            place = int(rounds.fit(np.zeros(count, np.int64), np.full(count, place))[0])
            shown = rounds.bank.graphs[place]
        return shown, place

    def fitted(self, graph: FeedbackGraph | None, count: int) -> FeedbackGraph:
        """Return the graph of each of several rounds, without the arms that do not fit so often under the ceiling."""
        return self._shown(graph, None, count)[0]

    def ask_fitted(self, graph: FeedbackGraph, advice: Any = None) -> Decision:
        """Draw an arm for a graph that `fitted` returned, as often as that was told."""
        return self._draw(graph, self._rounds.bank.place(graph), advice)

    def _read_advice(self, given: Any, shown: FeedbackGraph) -> np.ndarray | None:
        """Return the advice of all advisers, one after the other; None if there are none. New ones join now."""
        rows = advising.read_one(given, self._graph)
        return self._lay_out(rows, self._new_advisers(rows, shown))

    def _new_advisers(self, rows: dict[str, np.ndarray], shown: FeedbackGraph) -> tuple[str, ...]:
        """Return the names of those who advise for the first time, or refuse the advice of a round."""
        setup = self._rounds.setup
        new = advising.new_names(setup.learner, setup.advisers, rows)
        if setup.incumbent:
            advising.check_incumbent(setup.incumbent, rows, [shown])
        return new

    def _lay_out(self, rows: dict[str, np.ndarray], new: tuple[str, ...]) -> np.ndarray | None:
        """Return rows of advice by name as one; new advisers join now."""
        if new:
            self._play(self._rounds.advised(new))
        return advising.laid_out(self._advisers, rows) if rows else None

    def _decide(self, shown: FeedbackGraph, place: int, given: np.ndarray | None = None, x: Any = None) -> Decision:
        """Draw an arm for a graph; `given` is known before the draw, such as advice, and `x` are features, as read."""
        rounds = self._rounds
        slot = rounds.used
        if slot >= self._end or self._table is not rounds.pending:
            slot = self._free_row()
        if given is not None:
            self._table.trace[slot, -given.size :] = given
        if x is not None:
            self._table.x[slot] = self._regressor.stored(x)
        arm = self._ask(self._key, self._pending, shown.packed, slot, place)
        if type(arm) is not int:  # plain Python gives a number of NumPy
            arm = int(arm)
        t = self._round + 1
        if not 0 <= arm < self._n_arms:
            p = self._table.p[slot].copy()
            self._table.trace[slot] = 0.0
            raise refusal(rounds.setup.learner, t, p, arm, self._n_arms)
        self._drawn = self._round = t
        rounds.used = slot + 1
        if self._is_sparing:
            return SparingDecision(self._tag, shown, self._table, slot, (t, arm, arm), self._every_chance)
        return Decision(self._tag, shown, self._table, slot, (t, arm, arm), self._advisers)

    def _free_row(self) -> int:
        """Return a row for the next decision, in a new table if need be."""
        if self._rounds.used >= len(self._rounds.pending.key):
            self._rounds.extend(1)
        self._read_tables()
        return self._rounds.used

    def _asked(self, graph: FeedbackGraph, t: int, p: np.ndarray) -> Asked:
        setup, there = self._rounds.setup, self._own.scratch.present
        if setup.learner.sleeps:
            np.less(graph.arrays.start, graph.arrays.stop, out=there)
        return Asked.new(t, p, np.empty(setup.n_traces), there, seed=setup.seed)

    def _every_chance(self, t: int, graph: FeedbackGraph, state: Any = None) -> np.ndarray | None:
        """Return the probabilities of all arms in round t, or None if that is not the one just drawn."""
        if t != self._drawn and state is None:
            return None
        setup, p = self._rounds.setup, np.empty(graph.n_arms)
        known = setup.params, self._state if state is None else state, graph.arrays, self._asked(graph, t, p)
        if self._all_chances is None:  # compiled when it is first needed, which may be never
            bind(self, "_all_chances", all_probabilities(setup.learner), *known)
        self._all_chances(*known)  # type: ignore[misc]  # it is there now
        return p

    def graph_of_round(
        self, graph: FeedbackGraph | None = None, available: Iterable[int | str | bool] | None = None
    ) -> FeedbackGraph:
        """Return the graph that `ask` would draw an arm for: without the edges of the arms that are absent."""
        return self._rounds.bank.of_round(graph, available)

    def tell(
        self,
        decision: Decision | str,
        losses: Losses | Revealed,
        graph: FeedbackGraph | None = None,
        costs: Losses | None = None,
    ) -> bool:
        """Learn the losses that a decision revealed: now or later, in any order.

        Args:
            decision: the decision, or its id.
            losses: a number in [0, 1], or in the agent's `scale`, for every arm in `decision.reveals`, by number or
                label, or in their order; or what a function of `sidelong.outcomes` returned for the arm of this
                decision, whole.
            graph: where only the outcome shows what is revealed, the graph of the round as the outcome made it. It
                takes the place of the decision's own. It must say what *every* arm would have revealed, so it must not
                depend on the arm that was played. With a demand of 7, an order of 8 or more has something left over and
                reveals all orders. A smaller order reveals itself and those below. A graph that says only what this arm
                revealed would bias the estimates. The adversarial bounds of exp3.g++, exp3-set and glance hold with it,
                whatever graph the arm was drawn for. Their stochastic bounds do not.
            costs: with a ceiling, what each of these arms costs, by arm or in their order. What is spent is the cost of
                the arm that was carried out.

        Returns:
            True if something was learned, False if the same was told before.
        """
        if self._ceiling is not None or costs is not None:
            return self._tell_any(decision, losses, graph, costs)
        # The short way, for what most are told. Whatever does not fit here is read again by `rules`, which knows why.
        if isinstance(decision, Decision) and decision._table is self._table is self._rounds.pending:  # noqa: SLF001
            slot, asked, carried = decision._slot, decision._graph, decision._carried  # noqa: SLF001  # as most are
        else:
            slot = self._find(decision)
            if slot < 0:
                return self._tell_any(decision, losses, graph)
            asked, carried = self._rounds.bank.graphs[self._table.graph[slot]], int(self._table.carried[slot])
        shown, values, key, foreseen = asked, losses, 0, True
        if graph is not None or isinstance(losses, Revealed):
            shown, values, key, foreseen = self._outcome(asked, carried, losses, graph)
        count = read_floats(values, shown.row_list(carried), self._losses)
        if count < 0 or not self._learn(slot, shown, asked, count, self._ends, foreseen, key):
            return self._tell_any(decision, losses, graph)
        return True

    def _find(self, decision: Decision | str) -> int:
        """Return where a decision is pending, -1 if it is not, or refuse one that this agent did not make."""
        slot = int(self._rounds.find(*self._named(decision))[0])
        if self._rounds.pending is not self._table:
            self._read_tables()
        return slot

    def _outcome(
        self, asked: FeedbackGraph, carried: int, losses: Any, graph: Any
    ) -> tuple[FeedbackGraph, Any, int, bool]:
        """Return the graph of an outcome, its losses, what the graph is remembered by, and whether it was foreseen.

        The losses are None where the short way is not for them.
        """
        foreseen, setup = False, self._rounds.setup
        if isinstance(losses, Revealed):
            usual = graph is None and losses.arm == carried and setup.scale is None
            if not usual or asked.arms_without_self_loop.size:
                return asked, None, 0, False
            losses, graph, foreseen = losses.losses, losses.graph, losses.foreseen
        shown = self._rounds.bank.of_outcome(graph, asked)
        refused = shown is not asked and (foreseen or self._is_sparing)
        return shown, None if refused else losses, int(graph.arrays.key), foreseen

    def _learn(
        self,
        slot: int,
        shown: FeedbackGraph,
        asked: FeedbackGraph,
        count: int,
        ends: tuple[float, float],
        foreseen: bool,  # noqa: FBT001  # its own
        key: int,
    ) -> bool:
        """Learn the values in the scratch array, if they fit; the decision is pending no longer."""
        best, worst = ends
        known = self._key, self._pending, shown.packed, asked.packed
        if self._tell(*known, slot, count, best, worst, foreseen, key) != FITS:
            return False
        self._drawn = 0
        if self._regressor is not None:
            self._teach(slot, shown, count, foreseen=foreseen)
        return True

    def _teach(self, slot: int, shown: FeedbackGraph, count: int, *, foreseen: bool) -> None:
        """Let the regressor learn the losses of a decision."""
        table, losses, regressor = self._table, self._own.scratch.losses[:count], self._regressor
        arms, kept = shown.row(int(table.carried[slot])), regressor.kept(table.x[slot])
        weights = np.ones(count)
        if not foreseen:
            P = shown.observe_probabilities(table.p[slot])[arms]
            weights = weights_of(P, np.array([False]), np.array([0, count]))
        regressor.learn(kept, arms, losses, weights)

    def _tell_any(self, decision: Decision | str, losses: Any, graph: FeedbackGraph | None, costs: Any = None) -> bool:
        """Do the same for all that can be told, also of a decision that is not pending."""
        rounds, (row, round_) = self._rounds, self._named(decision)
        revealed = RevealedColumns.of_one(losses) if isinstance(losses, Revealed) else None
        if revealed is None:
            heard = rules.read_one(losses, rounds.named(row, round_)[1], self.remembers, self._graph.labels)
        else:
            heard = LossColumns(revealed.losses, revealed.losses)
        if self._ceiling is not None or costs is not None:
            told = None if costs is None else costs_of_one(costs, self._graph.labels)
            learned = bool(rounds.learn(row, round_, heard, graph, revealed, 1, told))
            self._drawn = 0
            return learned
        slots, accepted = rounds.accept(row, round_, heard, graph, revealed)
        slot, n = int(slots[0]), accepted.losses.size
        if slot < 0:
            return False
        shown, asked = (rounds.bank.graphs[g] for g in (accepted.shown[0], self._table.graph[slot]))
        self._own.scratch.losses[:n] = accepted.losses
        self._learn(slot, shown, asked, n, (0.0, 1.0), accepted.foreseen, 0)  # they are losses now
        rounds.correct_mark(0, accepted.marks[0])
        return True

    def add_arm(
        self,
        *,
        reveals: Iterable[int | str] = (),
        revealed_by: Iterable[int | str] = (),
        label: str | None = None,
        cost_bound: float | None = None,
    ) -> int:
        """Add an arm to the agent's graph, and return its number, which is the next one.

        It enters with the weight of the average of all arms, and regret against it counts from now on. Decisions that
        wait are told as if it had been absent, which it was. All certificates since then hold together.

        Args:
            reveals: the arms that playing it reveals beside itself, by number or label.
            revealed_by: the arms that reveal it.
            label: what to call it, if the other arms have labels.
            cost_bound: the most that it can cost, if the agent was made with `cost_bounds`.
        """
        wider = graphs.with_new_arm(self._setup.learner, self._graph, reveals, revealed_by, label)
        self._play(self._rounds.grown(wider, cost_bound))
        return wider.n_arms - 1

    def retire(self, arm: int | str) -> None:
        """Take an arm out of the agent's graph for good: it is neither played nor revealed any more.

        Its number stays with it. Decisions that wait are told as they were asked.
        """
        self._play(self._rounds.retired(graphs.without_arm(self._setup.learner, self._graph, arm)))

    def estimates(self) -> Estimates:
        """Return what the agent knows about each arm, and which is the cheapest as far as it knows."""
        return estimates_of(self._observers, *self._look_ahead(self._graph), self._graph)

    def outlook(self, graph: FeedbackGraph | None = None, advice: Any = None) -> np.ndarray:
        """Return the probability of each arm in the next round, which is not drawn; NaN if the learner has none.

        Args:
            graph: the graph of that round, as for `ask`.
            advice: the advice for that round, as for `ask`; who is new joins now.
        """
        shown = self.graph_of_round(graph)
        return self._look_ahead(shown, None if advice is None else self._read_advice(advice, shown))[1]

    def _look_ahead(self, graph: FeedbackGraph, given: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the gap and the probability of each arm before the next round, which is not drawn."""
        setup, table = self._setup, self._rounds.new_pending(1)
        if given is not None:
            table.trace[0, -given.size :] = given
        own = self._own
        state, observers = (type(each)(*(array.copy() for array in each)) for each in (own.state, own.observers))
        round_, outstanding, none = own.rows.round.copy(), own.rows.outstanding.copy(), np.full(1, -1)
        rows = own.rows._replace(round=round_, outstanding=outstanding, first=none, last=none.copy())
        copied = own._replace(state=state, rows=rows, observers=observers)
        self._ask(pack(copied), pack(table), graph.packed, 0, 0)
        p = self._every_chance(self._round + 1, graph, state) if setup.learner.is_sparing else table.p[0]
        return setup.gaps(state), p  # type: ignore[return-value]  # with a state there are such

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as the header and the arrays of a state file."""
        header, arrays = codec.write("agent", self._rounds.saved())
        header |= {"remembers": self.remembers}
        header |= {"round": self._round}  # for whoever reads it; `rows.round` is what counts
        return header | ({"fresh": self._drawn} if self._is_sparing else {}), arrays

    def _resume(self, path: Any, header: dict[str, Any], arrays: dict[str, np.ndarray], learner: Any) -> None:
        """Go on, in a new object, from what was saved."""
        self._go_on(codec.read(path, "agent", header, arrays, learner), header)

    def _go_on(self, saved: codec.Saved, header: dict[str, Any]) -> None:
        """Go on from what was read."""
        remembers = check_whole(LearnerError, "remembers", header["remembers"], 0, 2**20)
        self._play(Rounds.resumed(saved, remembers=remembers))
        self._drawn = check_whole(LearnerError, "fresh", header.get("fresh", 0), 0)

    def __repr__(self) -> str:
        n = len(self._slots())
        pending = f", {n} pending" if n else ""
        return f"<Agent {self.learner} on {self._graph!r}: {self.round} decisions{pending}>"

    def _repr_html_(self) -> str:
        options = ", ".join(f"{key} = {value}" for key, value in self._setup.options.items())
        rows = [
            ["learner", self.learner + (f" with {options}" if options else "")],
            ["graph", repr(self._graph).strip("<>")],
            ["decisions", f"{self.round:,}, of which {len(self._slots()):,} wait for their losses"],
        ]
        return html_table([], rows, type(self).__name__) + self.estimates()._repr_html_()  # a name of notebooks
