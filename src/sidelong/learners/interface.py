"""What every learner's module has, and what it may need.

A module defines ``NAME``, ``VERSION`` (a whole number that goes up whenever what it decides changes, and 1 if it is not
there), ``NEEDS`` (a set of `Need`), ``TRACES`` (names of the numbers that it writes in each round),
``Params``, ``configure``, ``State``, ``init``, ``update``, and ``distribution`` or, where no closed form tells the
probabilities, ``draw``. One that must not look at every arm in each round has ``draw`` and ``probability``, and is
*sparing*: what its ``draw`` writes into `p` and its ``update`` gets are not the probabilities of the arms, but the
probabilities of observing those that the drawn arm reveals, one after the other. Those of the package also have
``ABOUT``. One whose estimates depend on more than `p` names it in ``KEPT``: behind the traces there is one number for
its own use in `trace`, and then for each name a row of as many numbers as arms, kept with the decision until it is
told. One names in ``ROOM`` the arrays of its state that no round leaves anything in for the next: those that it
computes in, and those that never change. The keys of a family share them. One whose options lead to another module
has ``variant``, and one that needs more or less than ``NEEDS`` with some options has ``needs``; both take the options.
One whose theorems are lost with some options has ``proved``, which takes them and returns the worlds with a theorem.
One that counts the decisions that are outstanding has ``release``, which is called for a round that will never be told;
its ``distribution`` is called once for each round, as that of all is. One
with a rule for arms that are absent, which reveal nothing in the graph of their round, has ``SLEEPS``; and one that
more arms may come to has ``grow``, which takes and returns Params and State. ``tilt`` and ``replay`` are for a prior
and a log.
Some of the kernels are only names here: `sidelong._jit.specialise` puts a learner's own in their place.
"""

from __future__ import annotations

import functools
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel, specialise
from sidelong.numerics import DRAWS, sample, uniform

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from sidelong.graphs.arrays import GraphArrays

# `kernel` is here for learners outside the package, which need one place to import from.
__all__ = [
    "About",
    "Asked",
    "Need",
    "Told",
    "all_probabilities",
    "bound",
    "distribution",
    "draw",
    "drawing",
    "is_sparing",
    "kernel",
    "mark_present",
    "marking",
    "name_of",
    "probability",
    "release",
    "trace_size",
    "update",
]


class Need(Enum):
    """Something that a learner cannot do without.

    ``GRAPH_BEFORE`` is a need of the draw: what is played depends on the graph. Where only the outcome shows the graph,
    an agent may still be asked with a guess and told the true one: the estimates have no bias then, and if the learner
    says so in ``ABOUT.guess``, its adversarial bound holds whatever the guess was. A simulation has no guess.
    """

    SELF_LOOPS = "self-loops"
    UNDIRECTED = "undirected graph"
    FULL_INFORMATION = "full information"
    OBSERVABLE = "observable graph"
    STRONGLY_OBSERVABLE = "strongly observable graph"
    FIXED_GRAPH = "one graph for all rounds"
    GRAPH_BEFORE = "graph before the draw"
    HORIZON = "horizon"
    BINARY_LOSSES = "losses 0 or 1"


class About(NamedTuple):
    """What the list of learners says about one."""

    paper: str  #: authors and year
    proved: tuple[str, ...]  #: the worlds with a theorem, without options: "adversarial", "stochastic"
    cost: str  #: of a round
    bound: str  #: on the regret, the leading term
    theorem: str = ""  #: where the bound is proved
    published: bool = True  #: whether the pseudo-code is a paper's; its reference is the docstring's second paragraph
    cite: tuple[str, ...] = ()  #: its entries in references.bib
    guess: bool = False  #: whether the adversarial bound holds if it draws for a guess, and is told the graph after


class Asked(NamedTuple):
    """A round that a learner decides: what its `distribution` or `draw` is given."""

    t: int  #: the round, from 1
    p: np.ndarray  #: (K,), where the probabilities go
    trace: np.ndarray  #: where what TRACES names goes
    present: np.ndarray  #: bool, (K,): which arms can be played; always all, unless the learner has SLEEPS
    absent: int  #: how many cannot; at 0, as in most rounds, there is no need to look at `present`
    seed: int  #: for a `draw`; a `distribution` makes nothing random
    run: int

    @classmethod
    def new(
        cls, t: int, p: np.ndarray, trace: np.ndarray, present: np.ndarray | None = None, *, seed: int = 0, run: int = 0
    ) -> Asked:
        """Return a round for a kernel that Python calls; without `present`, one in which all arms are."""
        there = np.ones(p.size, np.bool_) if present is None else present
        return cls(t, p, trace, there, int(there.size - np.count_nonzero(there)), np.uint64(seed), run)  # type: ignore[arg-type]


class Told(NamedTuple):
    """A round whose losses have come: what the `update` of a learner is given."""

    t: int
    arm: int  #: that was played
    p: np.ndarray  #: what `distribution` wrote for this round, whatever was asked or told since
    losses: np.ndarray  #: ``losses[k]`` is that of arm ``graph.targets[graph.start[arm] + k]``
    trace: np.ndarray  #: what `distribution` wrote; what TRACES names and is only known now is written here
    present: np.ndarray  #: as in `Asked`
    absent: int

    @classmethod
    def new(
        cls, t: int, arm: int, p: np.ndarray, losses: np.ndarray, trace: np.ndarray, present: np.ndarray | None = None
    ) -> Told:
        """Return a round for a kernel that Python calls; without `present`, one in which all arms were."""
        there = np.ones(p.size, np.bool_) if present is None else present
        return cls(t, arm, p, losses, trace, there, int(there.size - np.count_nonzero(there)))


def distribution(params: Any, state: Any, graph: GraphArrays, asked: Asked) -> None:
    """Write the probabilities of a round into `asked.p`, and into `asked.trace` what the learner's TRACES name."""


def update(params: Any, state: Any, graph: GraphArrays, told: Told) -> None:
    """Learn what playing `told.arm` revealed. Rounds may be told late and in any order."""


def draw(params: Any, state: Any, graph: GraphArrays, asked: Asked) -> int:
    """Return the arm of a round. A learner's own `draw` writes NaN into `asked.p` where it does not know the numbers.

    Random numbers come from `numerics.uniform(asked.seed, DRAWS, asked.run, asked.t, k)`, k = 0, 1, ..., and from
    nowhere else.
    """
    distribution(params, state, graph, asked)
    return sample(asked.p, uniform(asked.seed, DRAWS, asked.run, asked.t, np.int64(0)))


def probability(params: Any, state: Any, graph: GraphArrays, asked: Asked, arm: int) -> float:
    """Return the probability of `arm` in a round that has been drawn, before anything else was drawn or told."""
    return np.nan


@kernel
def release(params: Any, state: Any, graph: GraphArrays, asked: Asked) -> None:
    """Take notice that a round was cancelled or given up and will never be told: most learners need not know.

    `asked.p` and `asked.trace` are what `distribution` wrote for it.
    """


@kernel
def mark_present(graph: GraphArrays, present: np.ndarray) -> int:
    """Write which arms can be played, and return how many cannot: an absent arm reveals nothing, not even itself."""
    absent = 0
    for i in range(present.size):
        present[i] = graph.start[i] < graph.stop[i]
        absent += graph.start[i] == graph.stop[i]
    return absent


@kernel
def all_present(graph: GraphArrays, present: np.ndarray) -> int:
    """Stand for `mark_present` where the learner has no SLEEPS: all flags stay set, at no cost."""
    return 0


def _write_all(params: Any, state: Any, graph: GraphArrays, asked: Asked) -> None:
    """Write into `asked.p` what `probability` says of each arm."""
    for i in range(asked.p.size):
        asked.p[i] = probability(params, state, graph, asked, i)


def trace_size(learner: ModuleType, n_arms: int) -> int:
    """Return how many numbers a learner keeps of a round beside `p`: its traces, one more, and the rows of KEPT."""
    rows = len(getattr(learner, "KEPT", ()))
    return len(learner.TRACES) + (1 + n_arms * rows if rows else 0)


def is_sparing(learner: ModuleType) -> bool:
    """Tell whether a learner does not look at every arm in each round."""
    return hasattr(learner, "probability")


def all_probabilities(learner: ModuleType) -> Callable[..., None]:
    """Return the kernel that writes the probabilities of all arms, for a sparing learner that has drawn."""
    name = f"probabilities_{name_of(learner)}"
    return bound(_write_all, name, probability=learner.probability)  # type: ignore[no-any-return]


def marking(learner: ModuleType) -> Callable[..., int]:
    """Return what stands for `mark_present` in a kernel that asks or tells a learner."""
    return mark_present if getattr(learner, "SLEEPS", False) else all_present


def drawing(learner: ModuleType) -> Callable[..., int]:
    """Return the kernel `draw` of a learner: its own, or the one that draws from its distribution."""
    if hasattr(learner, "draw"):
        return learner.draw  # type: ignore[no-any-return]
    return bound(draw, f"draw_{name_of(learner)}", distribution=learner.distribution)  # type: ignore[no-any-return]


#: Once for the same kernels. A module that is loaded again has new ones.
bound = functools.cache(specialise)


def name_of(learner: ModuleType) -> str:
    """Return what tells the machine code of a learner from that of all others."""
    return f"{learner.NAME}_{learner.__name__.rpartition('.')[2]}"
