"""The one loop that every simulation runs: a template, compiled once for each learner.

It calls the learner's kernels by the names of `learners.interface`, and `loop_for` puts a learner's own in their
place. The built-in worlds share `loss` and `mean`; a user's world brings its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel, rebind
from sidelong.evaluation.certificates import NOT_TOLD, TOLD, Standing, freeze, settle
from sidelong.graphs.bank import BankArrays, keep, pick, redraw, select
from sidelong.learners.interface import (
    Asked,
    Need,
    Told,
    bound,
    checking,
    distribution,
    draw,
    is_checked,
    is_distribution,
    name_of,
    release,
    trace_size,
    update,
)
from sidelong.losses.world_kernels import FEW, has_range, loss, losses_of, mean
from sidelong.numerics import DRAWS, sample, uniform
from sidelong.simulation.delays import constant, delay_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.interface import Learner
    from sidelong.losses.world import World
    from sidelong.numerics import Whole
    from sidelong.simulation.delays import Delay


class Tally(NamedTuple):
    """What one run counts, and its scratch."""

    suffered: np.ndarray  #: the sum of the losses of the played arms, and the rounding error of that sum
    expected: np.ndarray  #: the same for their means
    traces: np.ndarray  #: the sum of each traced quantity since it was last read
    plays: np.ndarray  #: int64, (K,)
    observations: np.ndarray  #: int64, (K,)
    ranges: np.ndarray  #: int64, (K + 1,): the differences of what is to be added to `observations`
    fault: np.ndarray  #: int64: the arm whose loss stopped the run, and whether it was the learner that did
    # Of the rounds that are not learned yet: a row for each, and one row if feedback comes at once.
    arms: np.ndarray  #: int64
    due: np.ndarray  #: int64: after the draw of which round each comes
    comes: np.ndarray  #: whether it comes then, or is given up
    # Of the rounds that are due after the same draw: the first and the last, and after each the next one; 0 is none.
    lists: np.ndarray  #: int64, (3, rows)
    law: np.ndarray  #: of the delays
    draws: np.ndarray  #: the learner's random numbers of some rounds, which are made together
    luck: np.ndarray  #: scratch for the losses of a few arms
    p: np.ndarray
    losses: np.ndarray  #: with a place before the first arm's and one behind the last one's, as `losses_of` asks
    trace: np.ndarray
    present: np.ndarray  #: bool, (K,): all arms are, in every round
    means: np.ndarray  #: for the certificate, as are the next two: of nothing if none is kept
    standing: Standing
    scratch: np.ndarray


_AHEAD = 8  # rounds


def new_tally(learner: Learner, n_arms: int, delay: Delay | None = None, *, certify: bool = False) -> Tally:
    """Return a tally of nothing; with `certify`, what the certificate needs is kept too."""
    law = constant(0) if delay is None else delay
    rows = law.most + 1
    counts = np.zeros((2, n_arms), np.int64)
    certified = n_arms if certify else 0
    return Tally(
        np.zeros(2),
        np.zeros(2),
        np.zeros(len(learner.traces)),
        counts[0],
        counts[1],
        np.zeros(n_arms + 1, np.int64),
        np.zeros(2, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.bool_),
        np.zeros((3, rows), np.int64),
        law.arrays,
        np.zeros(_AHEAD),
        np.zeros(FEW),
        np.zeros((rows, n_arms)),
        np.zeros((rows, 1 + n_arms + 1)),
        np.zeros((rows, trace_size(learner, n_arms))),
        np.ones(n_arms, np.bool_),
        np.zeros((rows, certified)),
        Standing.new(certified),
        np.zeros(certified),
    )


@kernel
def add(sum_: np.ndarray, x: float) -> None:
    """Add with the rounding error kept: a billion terms lose nothing."""
    s = sum_[0] + x
    part = s - sum_[0]
    sum_[1] += (sum_[0] - (s - part)) + (x - part)
    sum_[0] = s


_FIRST, _LAST, _NEXT = range(3)  # in `Tally.lists`
_DECIDED_NOTHING = 1  # in `Tally.fault`


@kernel
def await_feedback(tally: Tally, t: Whole, delay: Whole) -> None:
    """Write down after the draw of which round the feedback of round t comes, or is given up."""
    rows = tally.arms.size
    tally.comes[t % rows] = delay < rows
    due = t + min(delay, rows - 1)
    tally.due[t % rows] = due
    at = due % rows
    if tally.lists[_FIRST, at] == 0:
        tally.lists[_FIRST, at] = t
    else:
        tally.lists[_NEXT, tally.lists[_LAST, at] % rows] = t
    tally.lists[_LAST, at] = t
    tally.lists[_NEXT, t % rows] = 0


@kernel
def take_due(tally: Tally, t: Whole) -> Whole:
    """Return the first of the rounds that are due after the draw of round t, or 0; `lists` has those after it."""
    at = t % tally.arms.size
    first = tally.lists[_FIRST, at]
    tally.lists[_FIRST, at] = 0
    return first  # type: ignore[no-any-return]


DRAWS_ITSELF = False  # whether the learner has a `draw` of its own
CHECKED = False  # whether each arm is checked that it draws
LATE = False  # whether feedback comes some rounds later
GUESSED = False  # whether the learner is asked with a guess, and told the graph of the round if the outcome shows it
CERTIFY = False  # whether a certificate is kept
N_TRACES = 0  # how many numbers the learner writes in each round


@kernel
def fits(l: float) -> bool:
    """Tell whether a loss is one that the learner takes."""
    return 0.0 <= l <= 1.0


@kernel
def is_binary(l: float) -> bool:
    """Stand for `fits` where losses are 0 or 1."""
    return l in (0.0, 1.0)


@kernel
def is_shown(graph: GraphArrays, guess: GraphArrays, arm: Whole) -> bool:
    """Tell whether what an arm revealed shows the graph of a round: all arms, or others than by the guess."""
    low, before = graph.start[arm], guess.start[arm]
    count = graph.stop[arm] - low
    same = count < graph.start.size and count == guess.stop[arm] - before
    for k in range(count):
        same = same and graph.targets[low + k] == guess.targets[before + k]
    return not same


def play(  # noqa: C901, PLR0912, PLR0915  # a round is one thing, and becomes one function anyway
    params: Any,
    state: Any,
    bank: BankArrays,
    world: Any,
    seed: int,
    run: int,
    first: int,
    last: int,
    tally: Tally,
) -> int:
    """Play the rounds from `first` to `last`; return the round that cannot be played, or 0."""
    p, losses, trace = tally.p[0], tally.losses[0, 1:-1], tally.trace[0]
    row = 0
    at_once = has_range(world)
    index = pick(bank, seed, run, first)
    redraw(bank, seed, run, first)
    graph = select(bank, index)
    guess = select(bank, bank.keys.size - 1) if GUESSED else graph
    for t in range(first, last + 1):
        shown = pick(bank, seed, run, t)
        if shown != index:
            index = shown
            redraw(bank, seed, run, t)
            graph = select(bank, index)
        if LATE:
            row = t % tally.arms.size
            p, losses, trace = tally.p[row], tally.losses[row, 1:-1], tally.trace[row]
        if CERTIFY:
            freeze(tally.standing, tally.means[row])
        asked = Asked(t, p, trace, tally.present, 0, seed, run)
        if DRAWS_ITSELF:  # a constant, so that only one of the two is compiled
            arm = draw(params, state, guess if GUESSED else graph, asked)
            if CHECKED and not 0 <= arm < p.size:
                tally.fault[0], tally.fault[1] = arm, _DECIDED_NOTHING
                return t
        else:
            distribution(params, state, guess if GUESSED else graph, asked)
            if not is_distribution(p):
                tally.fault[1] = _DECIDED_NOTHING
                return t
            place = (t - first) % _AHEAD
            if place == 0:
                for n in range(tally.draws.size):  # eight fill a vector, and take as long as one
                    tally.draws[n] = uniform(seed, DRAWS, run, t + n, np.int64(0))
            arm = sample(p, tally.draws[place])
        low, high = graph.start[arm], graph.stop[arm]
        count = high - low
        suffered = -1.0
        done = 0
        if at_once:
            losses_of(world, seed, run, t, graph.targets, low, count, graph.contiguous, tally.losses[row], tally.luck)
            done = count
            if graph.contiguous:
                tally.ranges[low] += 1
                tally.ranges[high] -= 1
                suffered = losses[arm - low] if low <= arm < high else -1.0
            else:
                for k in range(count):
                    i = np.uint64(graph.targets[np.uint64(low + k)])
                    tally.observations[i] += 1
                    suffered = losses[np.uint64(k)] if i == np.uint64(arm) else suffered
        if done < count or suffered < 0.0:
            for k in range(done, count + 1):
                # After the revealed arms comes the played one, if it has not been among them. (One call of `loss` in
                # the code, since it is copied here.)
                if k == count and suffered >= 0.0:
                    break
                one: Any = np.int64(graph.targets[low + k]) if k < count else arm
                l = loss(world, seed, run, t, one)
                if not fits(l):
                    tally.fault[0] = one
                    return t
                if one == arm:
                    suffered = l
                if k < count:
                    losses[k] = l
                    tally.observations[one] += 1
        tally.plays[arm] += 1
        add(tally.suffered, suffered)
        add(tally.expected, mean(world, seed, run, t, arm))
        if LATE:
            tally.arms[row] = arm
            await_feedback(tally, t, delay_of(tally.law, seed, run, t, arm))
        due: Any = take_due(tally, t) if LATE else t
        while due > 0:  # once, unless feedback comes late
            learned = graph
            if LATE:
                row = due % tally.arms.size
                arm, trace = tally.arms[row], tally.trace[row]
                p, losses = tally.p[row], tally.losses[row, 1:-1]
                learned = select(bank, pick(bank, seed, run, due))
                if not tally.comes[row]:
                    release(params, state, learned, Asked(due, p, trace, tally.present, 0, seed, run))
                    if CERTIFY:
                        settle(tally.standing, learned, arm, p, tally.means[row], losses, NOT_TOLD, tally.scratch)
                    due = tally.lists[_NEXT, row]
                    continue
            if GUESSED and not is_shown(learned, guess, arm):
                learned = guess
            before = guess if GUESSED else learned
            update(params, state, learned, Told(due, arm, p, losses, trace, tally.present, 0, before))
            if CERTIFY:
                settle(tally.standing, learned, arm, p, tally.means[row], losses, TOLD, tally.scratch)
            for k in range(N_TRACES):
                tally.traces[k] += trace[k]
            due = tally.lists[_NEXT, row] if LATE else 0
    return 0


def loop_for(
    learner: Learner, world: World, *, anew: bool, late: bool = False, guessed: bool = False, certify: bool = False
) -> Callable[..., int]:
    """Return `play` for a learner and a world; all built-in worlds share one.

    A world in plain Python is played by the same loop in plain Python, around the learner's compiled kernels.
    `anew` says whether graphs are drawn anew, `late` whether feedback comes some rounds later, `guessed` whether the
    last graph of the bank is a guess that the learner is asked with, and `certify` whether a certificate is kept.
    """
    world_loss, world_mean = world.kernels
    bindings = {
        "DRAWS_ITSELF": learner.draws_itself,
        "CHECKED": is_checked(learner),
        "is_distribution": checking(learner),
        "LATE": late,
        "GUESSED": guessed,
        "CERTIFY": certify,
        "N_TRACES": len(learner.traces),
        "draw": learner.draw,
        "distribution": learner.distribution,
        "fits": is_binary if Need.BINARY_LOSSES in learner.needs else fits,
        "update": learner.update,
        "release": learner.release,
        "loss": world_loss,
        "mean": world_mean,
        "redraw": redraw if anew else keep,
    }
    if not world.compiled:
        # A kernel cannot give slices to plain Python, where there is nobody to count who holds them.
        return rebind(play, "play", **bindings, select=getattr(select, "py_func", select))
    name = f"play_{name_of(learner)}_{world.code}{'_anew' * anew}{'_late' * late}{'_guessed' * guessed}"
    name += "_certified" * certify
    return bound(play, name, **bindings)  # type: ignore[no-any-return]
