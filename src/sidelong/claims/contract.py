"""The contract of a learner, as checks that run: what `sidelong.learners.check` says about one of your own.

The rounds are played in plain Python first, where an index that is out of bounds is an error, with feedback that comes
at once, late, and never. Then an agent and a simulation play the same rounds in machine code, and must decide the same,
to the bit.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong import graphs, losses
from sidelong._jit import Kernel
from sidelong.agent import Agent
from sidelong.errors import CodeError, SidelongError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.learners import catalogue
from sidelong.learners.interface import Asked, Learner, Need, Told, drawing, is_distribution, release, trace_size
from sidelong.simulation import simulate
from sidelong.user_code import failing_line

if TYPE_CHECKING:
    from types import ModuleType

    import numpy.typing as npt

    Losses = npt.NDArray[np.float64]

_ARMS = 6


@dataclass(frozen=True)
class Violation:
    """A rule of the contract that a learner breaks, and where it was seen first."""

    rule: str
    said: str
    round: int = 0  #: 0 if it is of no round
    arm: int = -1  #: -1 if it is of no arm
    line: str = ""  #: of the learner's file, with its number and text, if one line is known

    def __str__(self) -> str:
        place = [f"round {self.round}"] * (self.round > 0) + [f"arm {self.arm}"] * (self.arm >= 0)
        line = f"\n    {self.line}" * bool(self.line)
        return f"{self.rule}: {', '.join(place)}{': ' * bool(place)}{self.said}{line}"


@dataclass(frozen=True)
class ContractReport:
    """What was checked of a learner, and what it breaks."""

    learner: str
    rounds: int
    rules: tuple[str, ...]  #: that were checked
    violations: tuple[Violation, ...]
    unchecked: tuple[str, ...] = ()  #: rules that could not be checked, because of the violations

    @property
    def holds(self) -> bool:
        """Whether the learner keeps the contract, as far as was seen."""
        return not self.violations

    def __str__(self) -> str:
        broken = {each.rule for each in self.violations}
        kept = [f"  {rule}: holds" for rule in self.rules if rule not in broken]
        left = [f"  not checked, because of the above: {', '.join(self.unchecked)}"] * bool(self.unchecked)
        verdict = "keeps the contract" if self.holds else "breaks the contract"
        return "\n".join(
            [f"{self.learner} {verdict}, in {self.rounds} rounds:", *map("  {}".format, self.violations), *kept, *left]
        )


class _BrokenError(Exception):
    """A rule that is broken, so that no later round can be played."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


SETUP = "configure and init"
RUNS = "kernels raise no error"
DISTRIBUTION = "probabilities"
BOUNDS = "bounds of arrays"
LATE = "late feedback"
COMPILES = "kernels compile"
SAME_BITS = "machine code decides as plain Python"
SIMULATION = "a simulation decides as an agent"
RESUME = "a saved agent goes on as the other"
ABSENT = "absent arms are not played"


def check(
    learner: str | ModuleType | Learner, graph: FeedbackGraph | None = None, *, rounds: int = 200, **options: Any
) -> ContractReport:
    """Check the contract of a learner: `sidelong.learners.check`, which has the rules."""
    own = catalogue.choose(learner, options)
    needs = catalogue.needs(own, options)
    shown = _graph_for(needs) if graph is None else graph
    if Need.HORIZON in needs:
        options.setdefault("horizon", rounds)
    return _Contract(own, shown, rounds, options, binary=Need.BINARY_LOSSES in needs).report()


def _graph_for(needs: frozenset[Need]) -> FeedbackGraph:
    """Return a graph of few arms that meets the needs."""
    if Need.FULL_INFORMATION in needs:
        return graphs.complete(_ARMS)
    if Need.UNDIRECTED in needs:
        return graphs.cliques([3, 2, 1])
    return FeedbackGraph.from_edges([(0, 2), (2, 5), (5, 0), (1, 4), (3, 0), (3, 5)], self_loops=True)


class _OutOfBoundsError(IndexError):
    """A kernel reads or writes where it must not."""


class _Guarded(np.ndarray[Any, Any]):
    """An array that says its name where an index is out of its bounds, as no kernel checks in machine code."""

    name = ""

    def __array_finalize__(self, made_from: Any) -> None:
        self.name = getattr(made_from, "name", "")

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except IndexError:
            raise _OutOfBoundsError(f"reads {self.name}[{index}], which has {self.size} numbers") from None

    def __setitem__(self, index: Any, value: Any) -> None:
        try:
            super().__setitem__(index, value)
        except IndexError:
            raise _OutOfBoundsError(f"writes {self.name}[{index}], which has {self.size} numbers") from None
        except ValueError as error:
            raise _OutOfBoundsError(f"writes {self.name}[{index}]: {error}") from None


def _guarded(name: str, array: Any, *, writeable: bool = True) -> Any:
    if not isinstance(array, np.ndarray):
        return array
    made = array.copy().view(_Guarded)
    made.name = name
    made.flags.writeable = writeable
    return made


def _plain(function: Any) -> Any:
    return function.plain if isinstance(function, Kernel) else function


class _PlainRun:
    """A learner in plain Python, with guards around all arrays that it is given."""

    def __init__(self, learner: Learner, graph: FeedbackGraph, params: Any, seed: int) -> None:
        self.learner, self.graph, self.seed = learner, graph, seed
        self.params = type(params)(*(_guarded(f"params.{n}", x, writeable=False) for n, x in params._asdict().items()))
        state = learner.init(params, graph)
        self.state = type(state)(*(_guarded(f"state.{name}", array) for name, array in state._asdict().items()))
        arrays = graph.arrays
        self.arrays = type(arrays)(
            *(_guarded(f"graph.{name}", array, writeable=False) for name, array in arrays._asdict().items())
        )
        self._draw = _plain(drawing(learner))

    def ask(self, t: int, present: np.ndarray | None = None, arrays: Any = None) -> tuple[int, Any, Any]:
        """Return the arm of round t, p and the trace."""
        K = self.graph.n_arms
        p = _guarded("p", np.full(K, np.nan))
        trace = _guarded("trace", np.zeros(trace_size(self.learner, K)))
        asked = Asked.new(t, p, trace, self._present(present), seed=self.seed)
        arm = self._call("draw" if self.learner.draws_itself else "distribution", t, self._draw, asked, arrays)
        if self.learner.is_sparing:
            known = [self._call("probability", t, self._probability(i), asked, arrays) for i in range(K)]
            self._check_distribution(t, np.array(known))
        elif not self.learner.draws_itself:
            self._check_distribution(t, np.asarray(p))
        if not 0 <= arm < K:
            raise _BrokenError(Violation(DISTRIBUTION, f"draw returned {arm}, and the arms are 0 to {K - 1}", t))
        return int(arm), p, trace

    def tell(
        self, t: int, arm: int, p: Any, trace: Any, losses: Losses, present: Any = None, arrays: Any = None
    ) -> None:
        """Let it learn."""
        drawn, seen = _guarded("told.p", p, writeable=False), _guarded("told.losses", losses, writeable=False)
        told = Told.new(t, arm, drawn, seen, trace, self._present(present))
        self._call("update", t, _plain(self.learner.update), told, arrays, arm)

    def release(self, t: int, p: Any, trace: Any) -> None:
        """Let it know that a round will never be told."""
        if self.learner.release is not release:
            asked = Asked.new(t, p, trace, seed=self.seed)
            self._call("release", t, _plain(self.learner.release), asked)

    def _present(self, present: Any) -> Any:
        there = np.ones(self.graph.n_arms, np.bool_) if present is None else present
        return _guarded("present", there, writeable=False)

    def _probability(self, arm: int) -> Any:
        of = _plain(self.learner.probability)
        return lambda params, state, graph, asked: of(params, state, graph, asked, arm)

    def _call(self, name: str, t: int, kernel: Any, record: Any, arrays: Any = None, arm: int = -1) -> Any:
        try:
            return kernel(self.params, self.state, self.arrays if arrays is None else arrays, record)
        except _OutOfBoundsError as error:
            raise _BrokenError(Violation(BOUNDS, f"`{name}` {error}", t, arm, failing_line(error))) from None
        except Exception as error:
            said = f"`{name}` raises {type(error).__name__}: {error}"
            raise _BrokenError(Violation(RUNS, said, t, arm, failing_line(error))) from error

    def _check_distribution(self, t: int, p: np.ndarray) -> None:
        if is_distribution(p):
            return
        wrong = np.flatnonzero(~(p >= 0.0))
        if wrong.size:
            raise _BrokenError(Violation(DISTRIBUTION, f"its probability is {p[wrong[0]]}", t, int(wrong[0])))
        raise _BrokenError(Violation(DISTRIBUTION, f"the probabilities sum to {p.sum():.6g}, and not to 1", t))


class _Contract:
    def __init__(
        self, learner: Learner, graph: FeedbackGraph, rounds: int, options: dict[str, Any], *, binary: bool
    ) -> None:
        self._learner, self._graph, self._rounds, self._options = learner, graph, rounds, options
        rng = np.random.default_rng(0)
        table = rng.random((rounds, graph.n_arms))
        self._table = np.round(table) if binary else table
        self._world = losses.table(self._table)
        self._rules: list[str] = []
        self._broken: list[Violation] = []

    def report(self) -> ContractReport:
        """Check one rule after the other; what machine code decides is of no use where plain Python fails."""
        parts = [
            ((SETUP,), self._configure),
            ((RUNS, DISTRIBUTION, BOUNDS), self._prompt),
            ((LATE,), self._late),
            *([((ABSENT,), self._absent)] if self._learner.sleeps else []),
            ((COMPILES, SAME_BITS, SIMULATION), self._same),
            ((RESUME,), self._resume),
        ]
        unchecked = [rule for rules, _ in parts for rule in rules]
        for rules, look in parts:
            if self._try(rules, look):
                self._rules += rules
            else:
                self._rules.append(self._broken[-1].rule)
                break
        left = tuple(rule for rule in unchecked if rule not in self._rules)
        return ContractReport(self._learner.title, self._rounds, tuple(self._rules), tuple(self._broken), left)

    def _try(self, rules: tuple[str, ...], look: Any) -> bool:
        """Check some rules; return whether they hold, and keep what is broken if not."""
        try:
            look()
        except _BrokenError as error:
            self._broken.append(error.violation)
        except CodeError as error:
            self._broken.append(Violation(COMPILES, str(error)))
        except SidelongError as error:
            if rules == (SETUP,):  # it was asked for something that it does not take, and nothing was played
                raise
            self._broken.append(Violation(rules[-1], str(error)))
        else:
            return True
        return False

    def _configure(self) -> None:
        try:
            self._params = catalogue.configure(self._learner, self._graph, self._options)
            state = self._learner.init(self._params, self._graph)
        except SidelongError:  # an option that it does not take, or a graph that it cannot play on
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise _BrokenError(Violation(SETUP, said, line=failing_line(error))) from error
        if wrong := self._learner.fault_of(state):
            raise _BrokenError(Violation(SETUP, wrong.removesuffix(".")))

    def _run(self) -> _PlainRun:
        return _PlainRun(self._learner, self._graph, self._params, 7)

    def _losses(self, t: int, arm: int) -> Losses:
        return np.array(self._table[t - 1, self._graph.out_neighbors(arm)])

    def _prompt(self) -> None:
        run = self._run()
        self._played = []
        for t in range(1, self._rounds + 1):
            arm, p, trace = run.ask(t)
            asked = np.array(p)
            run.tell(t, arm, p, trace, self._losses(t, arm))
            self._played.append((arm, asked, np.array(trace)))

    def _late(self) -> None:
        """Round t comes t mod 5 rounds late, the later ones first, and each thirteenth never."""
        run = self._run()
        waiting: list[tuple[int, int, Any, Any]] = []
        for t in range(1, self._rounds + 1):
            waiting.append((t, *run.ask(t)))
            due = [each for each in waiting if each[0] + each[0] % 5 <= t]
            waiting = [each for each in waiting if each[0] + each[0] % 5 > t]
            for s, arm, p, trace in reversed(due):
                if s % 13 == 0:
                    run.release(s, p, trace)
                else:
                    run.tell(s, arm, p, trace, self._losses(s, arm))

    def _absent(self) -> None:
        """In each round another arm is absent."""
        run = self._run()
        for t in range(1, self._rounds + 1):
            present = np.ones(self._graph.n_arms, np.bool_)
            present[t % present.size] = False
            shown = graphs.presence.only(self._graph, present)
            arm, p, trace = run.ask(t, present, shown.arrays)
            if p[t % present.size] != 0.0 or arm == t % present.size:
                said = f"it is absent, and has the probability {p[t % present.size]}"
                raise _BrokenError(Violation(ABSENT, said, t, t % present.size))
            run.tell(t, arm, p, trace, self._table[t - 1, shown.out_neighbors(arm)], present, shown.arrays)

    def _agent(self) -> Agent:
        return Agent(self._learner, self._graph, seed=7, **self._options)

    def _same(self) -> None:
        agent = self._agent()
        result = simulate(
            self._learner, self._graph, self._world, self._rounds, seed=7,
            checkpoints=range(1, self._rounds + 1), threads=1, **self._options,
        )  # fmt: skip
        lost = np.diff(result.loss[0], prepend=0.0)
        for t, (arm, p, trace) in enumerate(self._played, 1):
            decision = agent.ask()
            if decision.arm != arm:
                raise _BrokenError(Violation(SAME_BITS, f"machine code drew arm {decision.arm}", t, arm))
            if not self._learner.draws_itself and decision.probabilities.tobytes() != p.tobytes():
                other = int(np.flatnonzero(decision.probabilities != p)[0])
                said = f"its probability is {p[other]!r}, and {decision.probabilities[other]!r} in machine code"
                raise _BrokenError(Violation(SAME_BITS, said, t, other))
            agent.tell(decision, self._losses(t, arm).tolist())
            if abs(lost[t - 1] - self._table[t - 1, arm]) > 1e-9:
                raise _BrokenError(Violation(SIMULATION, "the simulation drew another arm", t, arm))
            for k, name in enumerate(self._learner.traces):
                if result.traces[name][0, t - 1] != trace[k] and not np.isnan(trace[k]):
                    said = f"{name} is {trace[k]!r}, and {result.traces[name][0, t - 1]!r} in the simulation"
                    raise _BrokenError(Violation(SIMULATION, said, t))

    def _resume(self) -> None:
        agent, half = self._agent(), self._rounds // 2
        for t in range(1, half + 1):
            decision = agent.ask()
            agent.tell(decision, self._losses(t, decision.arm).tolist())
        with tempfile.TemporaryDirectory() as folder:
            agent.save(Path(folder) / "agent")
            other = Agent.load(Path(folder) / "agent", learner=self._learner)
        for t in range(half + 1, self._rounds + 1):
            one, two = agent.ask(), other.ask()
            if one.arm != two.arm or one.probabilities.tobytes() != two.probabilities.tobytes():
                said = f"the one that was saved in round {half} and loaded decides otherwise"
                raise _BrokenError(Violation(RESUME, said, t, one.arm))
            for each, decision in ((agent, one), (other, two)):
                each.tell(decision, self._losses(t, decision.arm).tolist())
