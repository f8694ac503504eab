"""What a learner is: the record `Learner`, what its kernels are given, and how the kernels become one loop.

A learner's module ends with ``LEARNER = Learner(...)``, whose fields say what it decides by and what it needs. `Agent`,
`simulate` and all others take the module or the record. Some of the kernels are only names here:
`sidelong._jit.specialise` puts a learner's own in their place.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel, specialise
from sidelong.errors import LearnerError
from sidelong.graphs.arrays import GraphArrays
from sidelong.numerics import DRAWS, sample, uniform

if TYPE_CHECKING:
    from collections.abc import Callable

# `kernel` is here for learners outside the package, which need one place to import from.
__all__ = [
    "SAME_GRAPH",
    "About",
    "Asked",
    "Learner",
    "Need",
    "Told",
    "all_probabilities",
    "bound",
    "checking",
    "distribution",
    "draw",
    "drawing",
    "is_checked",
    "is_distribution",
    "kernel",
    "mark_present",
    "marking",
    "name_of",
    "probability",
    "refusal",
    "release",
    "trace_size",
    "update",
    "widen_trace",
]


class Need(Enum):
    """Something that a learner cannot do without.

    ``GRAPH_BEFORE`` is a need of the draw: what is played depends on the graph. Where only the outcome shows the graph,
    an agent may still be asked with a guess and told the true one: the estimates have no bias then, and if the learner
    says so in ``about.guess``, its adversarial bound holds whatever the guess was. So is a simulation with ``guess``.
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

    paper: str = ""  #: authors and year
    proved: tuple[str, ...] = ()  #: the worlds with a theorem, without options: "adversarial", "stochastic"
    cost: str = ""  #: of a round
    bound: str = ""  #: on the regret, the leading term
    theorem: str = ""  #: where the bound is proved
    published: bool = True  #: whether the pseudo-code is a paper's; its reference is the docstring's second paragraph
    cite: tuple[str, ...] = ()  #: its entries in references.bib
    guess: bool = False  #: whether the adversarial bound holds if it draws for a guess, and is told the graph after


_UNKNOWN = About()  # a learner of the user's own need not say anything


class Asked(NamedTuple):
    """A round that a learner decides: what its `distribution` or `draw` is given."""

    t: int  #: the round, from 1
    p: np.ndarray  #: (K,), where the probabilities go
    #: Where what the learner's `traces` name goes. If people advise, its last numbers are their advice: K of each
    #: adviser, the probabilities with which they would play each arm, and zeros of one who is silent.
    trace: np.ndarray
    present: np.ndarray  #: bool, (K,): which arms can be played; always all, unless the learner `sleeps`
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


def _no_graph() -> GraphArrays:
    """Return the arrays of a graph without arms, which cannot be written to, as those of all graphs."""
    long, arms, flags = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.bool_)
    for array in (long, arms, flags):
        array.setflags(write=False)
    return GraphArrays(0, False, 0, long, long, arms, long, long, arms, arms, flags)  # noqa: FBT003  # a record


#: Stands for the graph of a round that was asked with the graph that it is told with. It has no arms.
SAME_GRAPH = _no_graph()


class Told(NamedTuple):
    """A round whose losses have come: what the `update` of a learner is given."""

    t: int
    arm: int  #: that was played
    p: np.ndarray  #: what `distribution` wrote for this round, whatever was asked or told since
    losses: np.ndarray  #: ``losses[k]`` is that of arm ``graph.targets[graph.start[arm] + k]``
    trace: np.ndarray  #: what `distribution` wrote; what `traces` name and is only known now is written here
    present: np.ndarray  #: as in `Asked`
    absent: int
    asked: GraphArrays  #: the graph it was asked with, which may be another than that of the outcome; or `SAME_GRAPH`

    @classmethod
    def new(
        cls,
        t: int,
        arm: int,
        p: np.ndarray,
        losses: np.ndarray,
        trace: np.ndarray,
        present: np.ndarray | None = None,
        asked: GraphArrays | None = None,
    ) -> Told:
        """Return a round for a kernel that Python calls; without `present`, one in which all arms were."""
        there = np.ones(p.size, np.bool_) if present is None else present
        absent = int(there.size - np.count_nonzero(there))
        return cls(t, arm, p, losses, trace, there, absent, SAME_GRAPH if asked is None else asked)


@kernel
def is_distribution(p: np.ndarray) -> bool:
    """Tell whether these are probabilities that sum to 1, but for rounding. NaN compares as false."""
    signed, absolute = 0.0, 0.0
    for i in range(p.size):
        signed += p[i]
        absolute += abs(p[i])
    return abs(signed - 1.0) <= _ROUNDING and abs(absolute - 1.0) <= _ROUNDING


@kernel
def is_taken_for_one(p: np.ndarray) -> bool:
    """Stand for `is_distribution` where the learner is one of the package, which tests have checked: at no cost."""
    return True


_ROUNDING = 1e-6  # what a sum of many probabilities, or one that was formed in float32, may be off


def distribution(params: Any, state: Any, graph: GraphArrays, asked: Asked) -> None:
    """Write the probabilities of a round into `asked.p`, and into `asked.trace` what the learner's `traces` name."""


def update(params: Any, state: Any, graph: GraphArrays, told: Told) -> None:
    """Learn what playing `told.arm` revealed. Rounds may be told late and in any order."""


def draw(params: Any, state: Any, graph: GraphArrays, asked: Asked) -> int:
    """Return the arm of a round, or -1 if `distribution` gave no probabilities.

    A learner's own `draw` writes NaN into `asked.p` where it does not know the numbers.

    Random numbers come from `numerics.uniform(asked.seed, DRAWS, asked.run, asked.t, k)`, k = 0, 1, ..., and from
    nowhere else.
    """
    distribution(params, state, graph, asked)
    if not is_distribution(asked.p):
        return -1
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
    """Stand for `mark_present` where the learner does not sleep: all flags stay set, at no cost."""
    return 0


def _write_all(params: Any, state: Any, graph: GraphArrays, asked: Asked) -> None:
    """Write into `asked.p` what `probability` says of each arm."""
    for i in range(asked.p.size):
        asked.p[i] = probability(params, state, graph, asked, i)


@dataclass(frozen=True, kw_only=True, eq=False)
class Learner:
    """A learner: what it decides by, and what it needs.

    Without a `distribution`, where no closed form tells the probabilities, there is a `draw`. A learner that must not
    look at every arm in each round has `draw` and `probability`, and is *sparing*: what its `draw` writes into `p` and
    its `update` gets are not the probabilities of the arms, but the probabilities of observing those that the drawn arm
    reveals, one after the other. All other kernels are called once for each round too.

    Example:
        >>> from dataclasses import replace
        >>> from sidelong.learners import uniform
        >>> replace(uniform.LEARNER, name="mine", traces="observed")
        Traceback (most recent call last):
        sidelong.errors.LearnerError: traces of the learner 'mine' is 'observed', and must be a tuple of names.
    """

    name: str
    params: type[Any]  #: the NamedTuple of constants that `configure` returns
    configure: Callable[..., Any]  #: takes the graph, and options by name, which it checks; returns the params
    init: Callable[..., Any]  #: (params, graph) -> state, a NamedTuple of arrays
    update: Callable[..., None]  #: a kernel
    distribution: Callable[..., None] = distribution  #: a kernel, as are the next three
    draw: Callable[..., Any] = draw  #: from `distribution`, if there is no other
    probability: Callable[..., Any] = probability
    release: Callable[..., None] = release
    version: int = 1  #: goes up when what it decides changes; files and journals keep it
    needs: frozenset[Need] = frozenset()  #: what it cannot do without
    needs_with: Callable[[Mapping[str, Any]], frozenset[Need]] | None = None  #: the same, if it depends on the options
    traces: tuple[str, ...] = ()  #: the names of the numbers that it writes into `trace` in each round
    #: Names of rows that are kept with a decision until it is told, for estimates that depend on more than `p`: behind
    #: the traces there is one number for its own use in `trace`, and then for each name as many numbers as arms. What
    #: is known before the draw, such as the predictions of a regressor, is there already when it draws.
    kept: tuple[str, ...] = ()
    #: The arrays of its state that no round leaves anything in for the next: those that it computes in, and those that
    #: never change. The keys of a family share them.
    scratch: tuple[str, ...] = ()
    #: What the numbers of its state and its params are, by the name of the array, and its traces: "arms" from 0 to
    #: K - 1, "sizes" from 0 to K, "counts" that are not negative, "shares" that may be 0 too, "lengths" that may be
    #: infinite too, or "any", also infinite. All whole numbers are stated. What is not stated is finite, and in params
    #: of two arms or more above 0. A tuple has one of these for each number of an array. A state file with a number
    #: outside of that is refused.
    ranges: Mapping[str, str | tuple[str, ...]] = dataclasses.field(default_factory=dict)
    gaps: str = ""  #: the array of its state with its estimates of the gaps of arms, if it has one
    initial: str = ""  #: the array of its params with the arms of initial rounds, which enter no weights, if it has one
    sleeps: bool = False  #: whether it has a rule for arms that are absent, which reveal nothing in that round's graph
    grow: Callable[..., tuple[Any, Any]] | None = None  #: (params, state) -> both with one more arm, the last
    #: (params, state) -> both with one more adviser, the last, if it takes advice; rounds that wait have no row of it.
    add_adviser: Callable[..., tuple[Any, Any]] | None = None
    #: The array of its state with an allowance and what is spent of it, if its first adviser may be an incumbent, to
    #: whom it loses no more than the allowance on average; 0 is no incumbent.
    budget: str = ""
    #: If keys of a family can learn together whom to trust, the two arrays of its state for that, with a number for
    #: itself and one for each adviser: what each would have lost, and, among `scratch`, the logarithms of the weights
    #: that all keys give to each.
    pooled: tuple[str, ...] = ()
    trust: Callable[..., Any] | None = None  #: (state) -> how far it follows itself and each adviser, which sum to 1
    tilt: Callable[..., float] | None = None  #: (params, state, prior) begins with a prior; returns its largest cost
    replay: Callable[..., None] | None = None  #: the kernel that learns the rounds of a log: see `head_start`
    takes_history: bool = False  #: whether it may be given losses with bias, since no theorem depends on them
    variant: Callable[[Mapping[str, Any]], Learner | None] | None = None  #: who plays with these options, if another
    variants: tuple[Mapping[str, Any], ...] = ()  #: the options that lead to another learner, for lists
    chosen_by: str = ""  #: of such a variant: the options that lead to it, as "refresh='epoch'"
    settled: tuple[str, ...] = ()  #: of such a variant: the options that have one value
    proved_with: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None  #: if theorems are lost with some options
    about: About = _UNKNOWN
    module: str = ""  #: the name of the module that is its source; that of `configure`, if not given

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise LearnerError(f"The name of a learner is text, not {self.name!r}.")
        for field, (n, what) in _FUNCTIONS.items():
            function = getattr(self, field)
            if function is not None or field not in _OPTIONAL:
                self._check(field, callable(function) and _takes(function, n), f"a function of {what}")
        self._check("params", hasattr(self.params, "_fields"), "a NamedTuple class")
        self._check("version", type(self.version) is int and self.version > 0, "a whole number from 1 on")
        right = isinstance(self.needs, AbstractSet) and all(isinstance(need, Need) for need in self.needs)
        self._check("needs", right, "a set of `Need`")
        for field in ("traces", "kept", "scratch", "settled", "pooled"):
            names = getattr(self, field)
            listed = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
            self._check(field, listed, "a tuple of names")
        for field in ("gaps", "budget"):
            self._check(field, isinstance(getattr(self, field), str), "the name of an array of its state, or empty")
        self._check("initial", self.initial in ("", *self.params._fields), "the name of one of its params, or empty")
        self._check("about", isinstance(self.about, About), "an `About`")
        rule = f"a mapping of names to {', '.join(RANGES)}"
        self._check("ranges", isinstance(self.ranges, Mapping), rule)
        stated = {kind for each in self.ranges.values() for kind in ([each] if isinstance(each, str) else each)}
        self._check("ranges", stated <= {*RANGES}, rule)
        if self.distribution is distribution and not self.draws_itself:
            raise LearnerError(f"The learner {self.name!r} has neither a `distribution` nor a `draw`.")
        if self.is_sparing and not self.draws_itself:
            raise LearnerError(f"The learner {self.name!r} has a `probability`, and no `draw` that it is of.")
        object.__setattr__(self, "module", self.module or self.configure.__module__)

    def first_state(self, params: Any, graph: Any) -> Any:
        """Return the state before round 1, as `init` makes it.

        Raises:
            LearnerError: it is no NamedTuple of arrays, or lacks one that the record names.
        """
        state = self.init(params, graph)
        if wrong := self.fault_of(state):
            raise LearnerError(wrong)
        return state

    def fault_of(self, state: Any) -> str:
        """Return what is wrong with a state that `init` has made; nothing if it is right."""
        names = getattr(state, "_fields", None)
        if names is None:
            return f"init of the learner {self.name!r} must return a NamedTuple of arrays, not {type(state).__name__}."
        for name, array in zip(names, state, strict=True):
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
                what = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
                return f"{name} in the state of the learner {self.name!r} must be an array of numbers, not {what}."
        for field in ("gaps", "budget", "scratch", "pooled"):
            named = getattr(self, field)
            for name in (named,) if isinstance(named, str) else named:
                if name not in ("", *names):
                    return f"{field} of the learner {self.name!r} names {name!r}; its state has {', '.join(names)}."
        return ""

    def _check(self, field: str, right: bool, rule: str) -> None:  # for itself
        if not right:
            raise LearnerError(f"{field} of the learner {self.name!r} is {getattr(self, field)!r}, and must be {rule}.")

    @property
    def title(self) -> str:
        """The name, and what sets a variant apart from others of that name."""
        return f"{self.name} with {self.chosen_by}" if self.chosen_by else self.name

    @property
    def doc(self) -> str:
        """What its module says of it."""
        return sys.modules[self.module].__doc__ or ""

    @property
    def draws_itself(self) -> bool:
        """Whether it has a `draw` of its own."""
        return self.draw is not draw

    @property
    def is_sparing(self) -> bool:
        """Whether it does not look at every arm in each round."""
        return self.probability is not probability

    @property
    def kernels(self) -> dict[str, Callable[..., Any]]:
        """The kernels that it has, by name."""
        own = {name: getattr(self, name) for name in _TEMPLATES}
        return {name: function for name, function in own.items() if function is not _TEMPLATES[name]}

    def __repr__(self) -> str:
        return f"<learner {self.title} of {self.module}>"


#: What the numbers in an array of a learner may be.
RANGES = ("arms", "sizes", "counts", "shares", "lengths", "any")
#: The functions of a learner: with how many arguments they are called, and with which.
_FUNCTIONS = {
    "configure": (1, "the graph, and options by name"),
    "init": (2, "params, graph"),
    "update": (4, "params, state, graph, told"),
    "distribution": (4, "params, state, graph, asked"),
    "draw": (4, "params, state, graph, asked"),
    "probability": (5, "params, state, graph, asked, arm"),
    "release": (4, "params, state, graph, asked"),
    "grow": (2, "params, state"),
    "add_adviser": (2, "params, state"),
    "trust": (1, "state"),
    "tilt": (3, "params, state, prior"),
    "replay": (7, "params, state, ends, arms, losses, P, p"),
    "variant": (1, "the options"),
    "needs_with": (1, "the options"),
    "proved_with": (1, "the options"),
}
_OPTIONAL = ("grow", "add_adviser", "trust", "tilt", "replay", "variant", "needs_with", "proved_with")
_TEMPLATES = {
    "distribution": distribution,
    "draw": draw,
    "probability": probability,
    "update": update,
    "release": release,
}


def _takes(function: Callable[..., Any], n: int) -> bool:
    """Tell whether a function can be called with so many arguments."""
    try:
        bound_ = inspect.signature(function).bind_partial(*range(n))
    except TypeError:
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = [each for name, each in inspect.signature(function).parameters.items() if name not in bound_.arguments]
    return not any(each.kind in positional and each.default is inspect.Parameter.empty for each in rest)


def trace_size(learner: Learner, n_arms: int, n_advisers: int = 0) -> int:
    """Return how many numbers a learner keeps of a round beside `p`.

    They are its traces, one more, the rows of `kept`, and a row of each adviser.
    """
    rows = len(learner.kept)
    return len(learner.traces) + (1 + n_arms * (rows + n_advisers) if rows else 0)


def widen_trace(learner: Learner, trace: np.ndarray, n_arms: int) -> np.ndarray:
    """Return what was kept of a round in which there were `n_arms`, with a 0 for a new arm at the end of each row."""
    first = trace_size(learner, 0)
    if not learner.kept:
        return trace
    rows = trace[first:].reshape(-1, n_arms)
    return np.concatenate([trace[:first], np.pad(rows, ((0, 0), (0, 1))).ravel()])


def all_probabilities(learner: Learner) -> Callable[..., None]:
    """Return the kernel that writes the probabilities of all arms, for a sparing learner that has drawn."""
    name = f"probabilities_{name_of(learner)}"
    return bound(_write_all, name, probability=learner.probability)  # type: ignore[no-any-return]


def marking(learner: Learner) -> Callable[..., int]:
    """Return what stands for `mark_present` in a kernel that asks or tells a learner."""
    return mark_present if learner.sleeps else all_present


def drawing(learner: Learner) -> Callable[..., int]:
    """Return the kernel `draw` of a learner: its own, or the one that draws from its distribution."""
    if learner.draws_itself:
        return learner.draw
    return bound(draw, f"draw_{name_of(learner)}", distribution=learner.distribution)  # type: ignore[no-any-return]


def is_checked(learner: Learner) -> bool:
    """Tell whether a simulation checks each round of a learner: if what decides is not the package's own.

    Agents and families check every learner, where that takes no time that can be measured. In a simulation of ten arms
    it would take 4 to 20 % of a round.
    """
    decides = learner.draw if learner.draws_itself else learner.distribution
    return not decides.__module__.startswith(f"{__package__}.")


def checking(learner: Learner) -> Callable[..., bool]:
    """Return what stands for `is_distribution` in a simulation."""
    return is_distribution if is_checked(learner) else is_taken_for_one


def refusal(learner: Learner, t: int, p: np.ndarray, arm: int, n_arms: int) -> LearnerError:
    """Return the error for a round in which a learner gave no distribution, or drew no arm."""
    said = f"The learner {learner.title} decided nothing in round {t}:"
    if learner.draws_itself:
        return LearnerError(f"{said} its `draw` returned {arm}, and the arms are 0 to {n_arms - 1}.")
    wrong = np.flatnonzero(~(p >= 0.0))
    if wrong.size and not -_ROUNDING <= p[wrong[0]] < 0.0:
        return LearnerError(f"{said} its `distribution` gave arm {wrong[0]} the probability {p[wrong[0]]}.")
    return LearnerError(f"{said} the probabilities of its `distribution` sum to {p.sum():.6g}, and not to 1.")


#: Once for the same kernels. A module that is loaded again has new ones.
bound = functools.cache(specialise)


def name_of(learner: Learner) -> str:
    """Return what tells the machine code of a learner from that of all others."""
    return f"{learner.name}_{learner.module.rpartition('.')[2]}"
