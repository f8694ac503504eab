"""The one loop that every simulation runs: a template, compiled once for each learner.

It calls the learner's kernels by the names of `learners.interface`, and `loop_for` puts a learner's own in their
place. The built-in worlds share `loss` and `mean`; a user's world brings its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel, rebind, specialise
from sidelong.graphs.bank import BankArrays, keep, pick, redraw, select
from sidelong.learners.interface import Need, draw, drawing, update
from sidelong.losses.kernels import loss, mean

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from sidelong.losses.world import World

__all__ = ["Tally", "loop_for", "new_tally"]


class Tally(NamedTuple):
    """What one run counts, and its room to work in."""

    suffered: np.ndarray  #: the sum of the losses of the played arms, and the rounding error of that sum
    expected: np.ndarray  #: the same for their means
    traces: np.ndarray  #: the sum of each traced quantity since it was last read
    plays: np.ndarray  #: int64, (K,)
    observations: np.ndarray  #: int64, (K,)
    fault: np.ndarray  #: the arm whose loss stopped the run
    p: np.ndarray
    losses: np.ndarray
    trace: np.ndarray


def new_tally(n_arms: int, n_traces: int) -> Tally:
    """Return a tally of nothing."""
    counts = np.zeros((2, n_arms), np.int64)
    return Tally(
        np.zeros(2),
        np.zeros(2),
        np.zeros(n_traces),
        counts[0],
        counts[1],
        np.zeros(1, np.int64),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(n_traces),
    )


@kernel
def add(sum_: np.ndarray, x: float) -> None:
    """Add with the rounding error kept: a billion terms lose nothing."""
    s = sum_[0] + x
    part = s - sum_[0]
    sum_[1] += (sum_[0] - (s - part)) + (x - part)
    sum_[0] = s


@kernel
def fits(l: float) -> bool:
    """Tell whether a loss is one that the learner takes."""
    return 0.0 <= l <= 1.0


@kernel
def is_binary(l: float) -> bool:
    """Stand for `fits` where losses are 0 or 1."""
    return l in (0.0, 1.0)


def play(
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
    """Play the rounds from `first` to `last`; return the round of a loss that does not fit, or 0."""
    p, trace = tally.p, tally.trace
    index = pick(bank, seed, run, first)
    redraw(bank, seed, run, first)
    graph = select(bank, index)
    for t in range(first, last + 1):
        shown = pick(bank, seed, run, t)
        if shown != index:
            index = shown
            redraw(bank, seed, run, t)
            graph = select(bank, index)
        arm = draw(params, state, graph, t, seed, run, p, trace)
        count = graph.stop[arm] - graph.start[arm]
        suffered = -1.0
        for k in range(count + 1):
            # After the revealed arms comes the played one, if it has not been among them. (One call of `loss` in the
            # code, since it is copied here.)
            if k == count and suffered >= 0.0:
                break
            i: Any = np.int64(graph.targets[graph.start[arm] + k]) if k < count else arm
            l = loss(world, seed, run, t, i)
            if not fits(l):
                tally.fault[0] = i
                return t
            if i == arm:
                suffered = l
            if k < count:
                tally.losses[k] = l
                tally.observations[i] += 1
        tally.plays[arm] += 1
        add(tally.suffered, suffered)
        add(tally.expected, mean(world, seed, run, t, arm))
        update(params, state, graph, t, arm, p, tally.losses, trace)
        for k in range(trace.size):
            tally.traces[k] += trace[k]
    return 0


def loop_for(learner: ModuleType, world: World, *, anew: bool) -> Callable[..., int]:
    """Return `play` for a learner and a world; all built-in worlds share one.

    A world in plain Python is played by the same loop in plain Python, around the learner's compiled kernels.
    `anew` says whether graphs are drawn anew.
    """
    name = f"play_{learner.NAME}_{world.code}{'_anew' * anew}{'' if world.compiled else '_plain'}"
    if (learner, name) not in _loops:
        world_loss, world_mean = world.kernels
        _loops[learner, name] = (specialise if world.compiled else rebind)(
            play,
            name,
            draw=drawing(learner),
            fits=is_binary if Need.BINARY_LOSSES in learner.NEEDS else fits,
            update=learner.update,
            loss=world_loss,
            mean=world_mean,
            redraw=redraw if anew else keep,
            # A kernel cannot give slices to plain Python, where there is nobody to count who holds them.
            select=select if world.compiled else getattr(select, "py_func", select),
        )
    return _loops[learner, name]


_loops: dict[tuple[ModuleType, str], Callable[..., int]] = {}
