"""Play a learner against a world, many times, as fast as compiled code goes."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._aside import has_free_core
from sidelong._jit import compile_all, compiled
from sidelong.checks import check_flag
from sidelong.errors import BinaryLossError, SimulationError
from sidelong.evaluation.certificates import NOT_TOLD, assess, settle
from sidelong.graphs.bank import pick, select
from sidelong.learners.catalogue import check_certifiable
from sidelong.learners.interface import refusal
from sidelong.machine import cores
from sidelong.progress import ProgressLine
from sidelong.simulation.game import Game, prepare
from sidelong.simulation.game import whole as _whole
from sidelong.simulation.interrupt import interrupts_repeated
from sidelong.simulation.loop import Tally, loop_for, new_tally
from sidelong.simulation.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    import numpy.typing as npt
    from typing_extensions import TypeIs

    from sidelong.graphs.bank import BankArrays
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.graphs.sequences import GraphSequence
    from sidelong.learners.interface import Learner
    from sidelong.losses.world import World
    from sidelong.simulation.delays import Delay

#: As plain Python: a kernel cannot give slices to it.
_selected = getattr(select, "py_func", select)
#: How long a thread plays before it looks whether to stop: this bounds the wait after Ctrl-C.
_STRETCH = 0.05


def simulate(
    learner: str | ModuleType | Learner,
    graph: FeedbackGraph | GraphSequence,
    losses: World,
    rounds: int,
    runs: int | Sequence[int] = 1,
    seed: int = 0,
    checkpoints: int | Sequence[int] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,  # noqa: FBT001  # as keyword, by all who can read
    delay: int | str | Delay = 0,
    *,
    guess: FeedbackGraph | None = None,
    certificate: bool = False,
    switches: int | None = None,
    **options: Any,  # each learner has its own
) -> Result:
    """Play `learner` against the world `losses` on `graph`, and return its regret.

    A run depends only on the learner, its options, the graph, the world, the seed and its own number, and not on
    other runs or the number of threads. Every learner meets the same losses. An `Agent` with the same seed
    that is told the same losses makes the choices of run 0.

    Args:
        learner: the name of a learner, or a module that is one.
        graph: the graph, or a sequence of graphs.
        losses: the world, made by a function of `sidelong.losses`.
        rounds: how many rounds to play.
        runs: how many runs, numbered from 0; or the numbers of the runs.
        seed: a whole number from 0 to 2**64 - 1.
        checkpoints: at which rounds to measure, or at most how many (100), evenly spread on a logarithmic scale.
        threads: how many runs to play at once; by default one per core.
        progress: whether to show progress; on a terminal after two seconds if not given. Or a function that is called
            with the rounds done and the rounds in all.
        delay: how many rounds later the feedback of a round comes. With 1, round t is learned after the draw of round t
            + 1. Or a distribution of random delays: ``"uniform:0:20"``, ``"geometric:5:100"`` (the mean, and from where
            on feedback never comes), ``"pareto:1:1.5:200"`` (least, shape, most) or ``"by_arm:0:0:9"``. See
            `sidelong.simulation.delays`. exp3.g++ and exp3-set have a bound with delays, except by arm (docs/late.md).
            `Result.traces` are of the rounds that were learned.
        guess: the graph that the learner is asked with, where only an outcome shows the graph of its round, and the
            sequence is therefore one with ``shown="after"``. The learner is told that graph if the played arm reveals
            all arms, or others than by the guess. Otherwise nothing shows that the guess is wrong, and it is told that.
        certificate: whether to keep certificates. `Result.certificate` has what an agent would say at each checkpoint.
        switches: also measure the regret against the best sequence of arms with at most so many changes, as
            `Result.tracking_regret`. For that the loss of every arm in every round is computed, in each run if runs
            differ in their losses.
        **options: the options of the learner; for "exp3.g++" see `help(sidelong.learners.exp3gpp.configure)`.

    Example:
        >>> import sidelong as sl
        >>> world = sl.losses.bernoulli([0.3, 0.5, 0.5])
        >>> result = sl.simulate("exp3.g++", sl.graphs.complete(3), world, rounds=1000, runs=4, seed=0)
        >>> result.regret.shape
        (4, 75)
    """
    game = prepare(learner, graph, losses, rounds, delay, options, guess)
    return play_game(game, runs, seed, checkpoints, threads, progress, certificate=certificate, switches=switches)


def play_game(
    game: Game,
    runs: int | Sequence[int] = 1,
    seed: int = 0,
    checkpoints: int | Sequence[int] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,  # noqa: FBT001
    *,
    certificate: bool = False,
    switches: int | None = None,
) -> Result:
    """Play a game; the arguments are those of `simulate`."""
    if check_flag(SimulationError, "certificate", certificate):
        check_certifiable(game.learner)
    seed = _whole("seed", seed, 0, 2**64 - 1)
    numbers = runs if _is_list(runs) else range(_whole("runs", runs, 1, 2**32 - 1))
    numbers = [_whole("A run's number", each, 0, 2**32 - 1) for each in numbers]
    if not numbers:
        raise SimulationError("runs must name at least one run.")
    switches = None if switches is None else _whole("switches", switches, 0, 10_000)
    at_once = _threads(threads, len(numbers))
    marks = _checkpoints(game.rounds, checkpoints)
    line = ProgressLine(shown=False if callable(progress) else progress)
    with line.saying(f"Compiling {game.learner.name}, once for all later runs"), interrupts_repeated():
        simulation = _Simulation(game, seed, marks, switches, certify=certificate)
        simulation.prepare()
    begun = time.monotonic()
    try:
        rows = simulation.play_all(numbers, at_once, progress if callable(progress) else line)
    finally:
        line.close()
    plain = [np.stack(part) for part in zip(*rows, strict=True)]
    regret, loss, plays, observations, traces, certified, tracking = plain
    return Result(
        rounds=marks,
        regret=regret,
        loss=loss,
        plays=plays,
        observations=observations,
        traces={name: traces[:, :, k] for k, name in enumerate(game.learner.traces)},
        runs=np.array(numbers),
        seconds=time.monotonic() - begun,
        certificate=certified if certificate else None,
        tracking_regret=None if switches is None else tracking,
        switches=switches,
        learner=game.label,
        world=game.world.name,
    )


def compile_together(games: Iterable[Game], progress: bool | None = None) -> None:  # noqa: FBT001  # as `simulate`
    """Compile what several games need, on all cores, so that none of them waits for it."""
    kinds = {game.kind: game for game in games}
    if len(kinds) < 2 or not has_free_core():
        return
    names = ", ".join(dict.fromkeys(str(game.learner.name) for game in kinds.values()))
    line = ProgressLine(shown=progress)
    with line.saying(f"Compiling {names}, once for all later runs"), interrupts_repeated():
        each = [_Simulation(game, 0, np.array([1]), None) for game in kinds.values()]
        compile_all([(one.loop, one.call()) for one in each])


class _Simulation:
    """What all runs of a game share."""

    def __init__(
        self, game: Game, seed: int, marks: npt.NDArray[np.int64], switches: int | None, *, certify: bool = False
    ) -> None:
        self._learner = game.learner
        self._sequence = game.sequence
        self._world = game.world
        self._seed = np.uint64(seed)
        self._marks = marks
        self._rounds = game.rounds
        self._first, self._params = game.configure(seed)
        self._bank = game.sequence.arrays if game.guess is None else game.sequence.arrays_with(game.guess)
        self._delay = game.delay
        self._guess = game.guess
        self._certify = certify
        how = {"anew": not game.sequence.bank, "late": not game.delay.is_none, "certify": certify}
        how["guessed"] = game.guess is not None
        self.loop = self._play = loop_for(game.learner, game.world, **how)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._best_lock = threading.Lock()
        self._switches = switches
        self._best_of_all: tuple[npt.NDArray[np.float64], ...] | None = None
        self._done = 0
        self._tell: Callable[[], None] = lambda: None  # is called between two stretches

    def call(self) -> tuple[Any, ...]:
        """Return what the loop is called with, to play no round."""
        tally = new_tally(self._learner, self._sequence.n_arms, self._delay, certify=self._certify)
        state = self._learner.first_state(self._params, self._first)
        return self._params, state, self._bank, self._world.arrays, self._seed, 0, 1, 0, tally

    def prepare(self) -> None:
        """Compile, or load what was compiled before, outside of what is measured."""
        self._play = compiled(self._play, *self.call())

    def play_all(
        self, numbers: list[int], threads: int, report: Callable[[int, int], None]
    ) -> list[tuple[np.ndarray, ...]]:
        if threads == 1:  # to start a thread takes as long as a thousand rounds
            self._tell = lambda: report(self._done, self._rounds * len(numbers))
            return [self._run(number) for number in numbers]
        futures: list[concurrent.futures.Future[tuple[np.ndarray, ...]]] = []
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            try:
                futures.extend(pool.submit(self._run, number) for number in numbers)
                waiting = set(futures)
                while waiting:
                    finished, waiting = concurrent.futures.wait(waiting, 0.1, concurrent.futures.FIRST_EXCEPTION)
                    for future in finished:
                        future.result()
                    report(self._done, self._rounds * len(numbers))  # the last time with all done
            finally:  # also on Ctrl-C: the threads look at this between two stretches
                self._stop.set()
                pool.shutdown(cancel_futures=True)
        return [future.result() for future in futures]

    def _run(self, number: int) -> tuple[np.ndarray, ...]:
        learner, width = self._learner, len(self._learner.traces)
        state = learner.init(self._params, self._first)
        # A sequence that draws graphs anew writes into its arrays, so that each run has its own.
        bank = self._bank if self._sequence.bank else self._sequence.arrays
        tally = new_tally(learner, self._sequence.n_arms, self._delay, certify=self._certify)
        loss, expected = np.zeros(self._marks.size), np.zeros(self._marks.size)
        traces, certified = np.zeros((self._marks.size, width)), np.zeros(self._marks.size)
        t, stretch = 0, 1
        for column, mark in enumerate([*self._marks, self._rounds]):
            tally.traces[:] = 0.0
            since = t
            while t < mark and not self._stop.is_set():
                last = min(t + stretch, int(mark))
                begun = time.monotonic()
                at = self._play(self._params, state, bank, self._world.arrays, self._seed, number, t + 1, last, tally)
                if at:
                    self._refuse(number, at, tally)
                seconds = time.monotonic() - begun
                stretch = max(1, min(int((last - t) * _STRETCH / max(seconds, 1e-6)), 8 * stretch, 2**40))
                with self._lock:
                    self._done += last - t
                t = last
                self._tell()
            if column == self._marks.size or self._stop.is_set():  # after the last checkpoint, or after Ctrl-C
                break
            loss[column] = tally.suffered.sum()
            expected[column] = tally.expected.sum()
            traces[column] = tally.traces / max(t - since, 1)
            if self._certify:
                certified[column] = self._bound(bank, number, t, tally)
        cost = expected if self._world.has_means else loss
        arm, sequence = self._best(number)
        observations = tally.observations + np.cumsum(tally.ranges)[:-1]
        return cost - arm, loss, tally.plays, observations, traces, certified, cost - sequence

    def _bound(self, bank: BankArrays, number: int, t: int, tally: Tally) -> float:
        """Return the certificate after round t: rounds that wait count as an agent's do that were not told."""
        standing = tally.standing.copy()
        for s in range(max(t - self._delay.most, 0) + 1, t + 1):
            row = s % tally.arms.size
            if tally.due[row] <= t:  # it was told, or given up
                continue
            place = pick(bank, self._seed, number, s) if self._guess is None else bank.keys.size - 1
            graph = _selected(bank, place)
            made = int(tally.arms[row]), tally.p[row], tally.means[row], tally.losses[row]
            settle(standing, graph, *made, NOT_TOLD, tally.scratch)
        return assess(standing).bound

    def _best(self, number: int) -> tuple[npt.NDArray[np.float64], ...]:
        """Return what the best arm and the best sequence have lost at each checkpoint; once, if all runs agree."""
        if not self._world.same_in_all_runs:
            return self._find_best(number)
        with self._best_lock:
            if self._best_of_all is None:
                self._best_of_all = self._find_best(number)
            return self._best_of_all

    def _find_best(self, number: int) -> tuple[npt.NDArray[np.float64], ...]:
        seed, stopped = int(self._seed), self._stop.is_set
        arm = self._world.best_total(seed, number, self._marks, stopped)
        if self._switches is None:
            return arm, arm
        return arm, self._world.best_sequence_total(seed, number, self._marks, self._switches, stopped)

    def _refuse(self, number: int, t: int, tally: Tally) -> None:
        arm = int(tally.fault[0])
        if tally.fault[1]:
            p = tally.p[t % tally.arms.size]
            raise refusal(self._learner, t, p, arm, p.size)
        value = float(self._world.kernels[0](self._world.arrays, self._seed, number, t, arm))
        gave = f"the world gave {value!r} in run {number}, round {t}, for arm {self._first.arm_name(arm)}."
        if 0.0 <= value <= 1.0:
            raise BinaryLossError(f"{self._learner.name} needs losses that are 0 or 1; {gave}")
        raise SimulationError(f"A loss must be in [0, 1]; {gave}")


def _is_list(value: object) -> TypeIs[Iterable[Any]]:
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0  # an array may be a single number


def _threads(threads: int | None, runs: int) -> int:
    return min(cores() if threads is None else _whole("threads", threads, 1, 4096), runs)


def _checkpoints(rounds: int, wanted: int | Sequence[int] | None) -> npt.NDArray[np.int64]:
    if wanted is None or not _is_list(wanted):
        count = 100 if wanted is None else _whole("checkpoints", wanted, 1, 1_000_000)
        spread = np.geomspace(1, rounds, count) if count > 1 else [rounds]
        marks = np.unique(np.round(spread).astype(np.int64))
        marks[-1] = rounds
        return marks
    marks = np.array([_whole("A checkpoint", each, 1, rounds) for each in wanted], np.int64)
    if not marks.size or (np.diff(marks) <= 0).any():
        raise SimulationError(f"checkpoints must be ascending rounds, at least one, not {list(wanted)!r}.")
    return marks
