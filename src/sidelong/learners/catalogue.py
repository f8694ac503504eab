"""The learners by name, and how to find one."""

from __future__ import annotations

import functools
import inspect
import json
from numbers import Real
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sidelong._jit import kernel
from sidelong.checks import nearest
from sidelong.errors import LearnerError, ObservabilityError
from sidelong.graphs.presence import present
from sidelong.learners.interface import Learner, Need
from sidelong.learners.options import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.graphs.sequences import GraphSequence

#: The name of each learner and the module beside this one that is it.
_MODULES = {
    "glance": "glance",
    "exp3.g++": "exp3gpp",
    "exp3.g": "exp3g",
    "exp3-set": "exp3set",
    "exp3-dom": "exp3dom",
    "exp3-ix": "exp3ix",
    "elp": "elp",
    "exp3": "exp3",
    "exp3++": "exp3pp",
    "tsallis-inf": "tsallis",
    "hedge": "hedge",
    "ucb-n": "ucbn",
    "ucb-maxn": "ucbmaxn",
    "ts-n": "tsn",
    "maillard": "maillard",
    "ucb-lp": "ucblp",
    "alphasample": "alphasample",
    "tas-fg": "tasfg",
    "ito-2022": "ito2022",
    "q-tsallis": "qtsallis",
    "spm-2024": "spm2024",
    "luo-2023": "luo2023",
    "uniform": "uniform",
}

#: Those that play by what a regressor predicts from features: what `ContextualAgent` and `Family` take.
_WITH_FEATURES = {"squarecb.g": "squarecb"}

#: Those that may be advised by what a regressor predicts.
_ADVISED = ("glance",)

_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


def names() -> tuple[str, ...]:
    """Return the names of all learners: what `Agent` and `simulate` take."""
    return tuple(_MODULES)


def names_with_features() -> tuple[str, ...]:
    """Return the names of the learners that play by features and nothing else."""
    return tuple(_WITH_FEATURES)


def names_seeing_features() -> tuple[str, ...]:
    """Return the names of all learners that `ContextualAgent` takes, those too that predictions are advice for."""
    return _ADVISED + names_with_features()


def find(learner: str | ModuleType | Learner, *, features: bool = False) -> Learner:
    """Return a learner by its name; a module or a record is taken for one of the caller's own.

    With `features`, also one that plays by them.
    """
    if isinstance(learner, ModuleType):
        found = vars(learner).get("LEARNER")
        if not isinstance(found, Learner):
            raise LearnerError(
                f"The module {learner.__name__} has no LEARNER. That of a learner ends with LEARNER = Learner("
                f"name=..., params=..., configure=..., init=..., distribution=..., update=...)."
            )
        learner = found
    if isinstance(learner, Learner):
        return _checked(learner)
    if not isinstance(learner, str) or learner not in _MODULES | _WITH_FEATURES:
        raise LearnerError(
            f"There is no learner named {learner!r}.{_suggestion(str(learner).lower())} "
            f"The learners are: {', '.join(_MODULES)}."
        )
    if learner in _WITH_FEATURES and not features:
        raise LearnerError(f"{learner} plays by features: make a ContextualAgent or a Family, whose `ask` takes them.")
    return load((_MODULES | _WITH_FEATURES)[learner])


def _checked(learner: Learner) -> Learner:
    """Refuse a learner with a function in the place of a kernel, which no loop could call."""
    for name, function in learner.kernels.items():
        if not hasattr(function, "py_func") and kernel(function) is not function:  # with the JIT off it is
            raise LearnerError(f"{name} of the learner {learner.name!r} is no kernel: write @kernel above it.")
    return learner


def _suggestion(name: str) -> str:
    """Return " Did you mean ...?" for the name of a module, with any signs in it, or for a name that is close."""
    letters = "".join(filter(str.isalnum, name.replace("+", "p")))
    return nearest(next((known for known, module in _MODULES.items() if module == letters), name), _MODULES)


def choose(learner: str | ModuleType | Learner, options: Mapping[str, Any], *, features: bool = False) -> Learner:
    """Return the learner that plays with these options: some lead to a variant.

    With `features`, also one that plays by them.
    """
    found = find(learner, features=features)
    return (found.variant(options) if found.variant is not None else None) or found


def needs(learner: Learner, options: Mapping[str, Any]) -> frozenset[Need]:
    """Return what a learner needs with these options."""
    return learner.needs if learner.needs_with is None else learner.needs_with(options)


def names_where(can: Callable[[Learner], bool]) -> str:
    """Return the learners that can do something with their default options, for a message: "a or b"."""
    return " or ".join(name for name in names() if can(choose(name, {})))


def check_absence(learner: Learner, what: str) -> None:
    """Refuse absent arms, which `what` asks for, unless the learner has a rule for them."""
    if not learner.sleeps:
        raise LearnerError(
            f"{what} needs a learner with a bound for arms that come and go, and {learner.title} has none. "
            f"Use {names_where(lambda each: each.sleeps)}, with default options."
        )


def proved(learner: Learner, options: Mapping[str, Any], rounds: int = 0) -> tuple[str, ...]:
    """Return the worlds for which a theorem bounds the regret with these options, after so many rounds."""
    horizon = options.get("horizon")
    if horizon is not None and rounds > horizon:
        return ()
    return learner.about.proved if learner.proved_with is None else learner.proved_with(options)


def plain_options(learner: Learner, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with NumPy's and other numbers as plain ones, so that they can be written to a file."""
    plain = {name: _plain(value) for name, value in options.items()}
    for name, value in plain.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise LearnerError(
                f"Options are numbers, text, and lists of them; {name} of {learner.name} is {value!r}."
            ) from None
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Real) and not isinstance(value, int | float):
        return int(float(value)) if float(value).is_integer() else float(value)
    return value


def configure(learner: Learner, graph: FeedbackGraph, options: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the learner's constants for these options."""
    options = plain_options(learner, options)
    known = option_names(learner)
    for name in options:
        if name not in known:
            raise LearnerError(
                f"{learner.title} has no option {name!r}.{nearest(name, known)} "
                f"Its options are: {', '.join(known) or 'none'}."
            )
    if Need.HORIZON in needs(learner, options) and options.get("horizon") is None:
        instead = _without(learner, Need.HORIZON)
        raise LearnerError(f"{learner.name} needs to know how many rounds it will play: give horizon=...{instead}")
    check_graph(learner, graph, options)
    params = learner.configure(graph, **options)
    if not isinstance(params, learner.params):
        rule = f"its params, a {learner.params.__name__}, not {type(params).__name__}"
        raise LearnerError(f"configure of the learner {learner.name!r} must return {rule}.")
    return cast("tuple[Any, ...]", params)


def option_names(learner: Learner) -> list[str]:
    """Return the names of the learner's options: the keyword arguments of its `configure`."""
    return [*_keywords(learner.configure)]


@functools.cache
def _keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.items()
    return tuple(name for name, parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY)


def check_certifiable(learner: Learner) -> None:
    """Refuse a learner that does not know the probabilities of all arms at each draw, where a certificate is kept."""
    why = ""
    if learner.is_sparing:
        why = "with refresh='epoch' it does not look at every arm: take refresh='round'"
    elif learner.draws_itself:
        why = "it draws without knowing them: take another learner, such as glance"
    if why:
        raise LearnerError(
            f"A certificate needs the probability of observing every arm in each round. Of {learner.name}, {why}."
        )


def check_graph(learner: Learner, graph: FeedbackGraph, options: Mapping[str, Any] = _NO_OPTIONS) -> None:
    """Refuse a graph that the learner cannot play on with these options, naming the arm."""
    needed = needs(learner, options)
    lacking = graph.arms_without_self_loop
    if lacking.size and learner.sleeps and (there := present(graph)).any():
        lacking = lacking[there[lacking]]
    if Need.SELF_LOOPS in needed and lacking.size:
        arm = int(lacking[0])
        raise ObservabilityError(
            f"{learner.name} needs every arm to reveal itself, and arm {graph.arm_name(arm)} of {graph!r} does not. "
            f"{_instead(graph)} If playing it does show its loss, the edge ({arm}, {arm}) is missing: "
            f"graph.with_self_loops() adds it for all arms."
        )
    if Need.FULL_INFORMATION in needed and graph.n_edges < graph.n_arms**2:
        out_degree = graph.arrays.stop - graph.arrays.start
        arm = int(np.argmin(out_degree))
        raise ObservabilityError(
            f"{learner.name} needs every arm to reveal all arms, and arm {graph.arm_name(arm)} of {graph!r} reveals "
            f"{out_degree[arm]} of {graph.n_arms}. Use a learner for feedback graphs, such as exp3.g++."
        )
    if needed & {Need.OBSERVABLE, Need.STRONGLY_OBSERVABLE} and graph.observability.kind == "none":
        raise ObservabilityError(
            f"{learner.name} needs every arm to be revealed by some arm. {graph!r} is n{str(graph.observability)[1:]}"
        )
    if Need.STRONGLY_OBSERVABLE in needed and graph.observability.kind == "weak":
        raise ObservabilityError(
            f"{learner.name} needs a strongly observable graph here. {graph!r} is w{str(graph.observability)[1:]} "
            f"{_instead(graph)}"
        )
    if Need.UNDIRECTED in needed and not graph.is_undirected:
        raise ObservabilityError(
            f"{learner.name} needs an undirected graph, in which arms reveal each other or neither does; {graph!r} "
            f"is directed. Use a learner for directed graphs, such as exp3.g++."
        )


def _instead(graph: FeedbackGraph) -> str:
    """Name the learner for a graph in which some arm does not reveal itself."""
    kind = graph.observability.kind
    if kind == "none":
        return f"No learner can do well on this graph, which is n{str(graph.observability)[1:]}"
    if kind == "weak":
        return "Use exp3.g with rate='adaptive', or luo-2023 with observability='weak', which do not need that."
    return (
        "Use exp3.g with rate='adaptive', or luo-2023, which do not need that where all other arms reveal it, as here."
    )


def _without(learner: Learner, need: Need) -> str:
    """Return ", or take ..." with the options of a learner that make it do without something, if there are some."""
    for options in learner.variants:
        if need in learner.needs and need not in needs(choose(learner, options), options):
            return ", or take " + ", ".join(f"{name}={value!r}" for name, value in options.items())
    return ""


def check_fixed(learner: Learner, options: Mapping[str, Any], found: str) -> None:
    """Refuse graphs that change, which the sentence `found` says, if the learner needs one with these options."""
    if Need.FIXED_GRAPH not in needs(learner, options):
        return
    # Some are tuned by a number of the graph, and do not need the graph itself if they are given the number.
    open_ = [name for name in option_names(learner) if options.get(name) is None]
    given = [name for name in open_ if Need.FIXED_GRAPH not in needs(learner, {**options, name: 1})]
    tuned = (
        f", unless it is given a number that holds for every graph. Give {given[0]}=...; the number of arms is always "
        f"valid"
        if given
        else _without(learner, Need.FIXED_GRAPH)
    )
    raise ObservabilityError(f"{learner.name} needs one graph for all rounds{tuned}. {found}")


def check_sequence(
    learner: Learner, sequence: GraphSequence, options: Mapping[str, Any], *, guessed: bool = False
) -> None:
    """Refuse graphs over time that the learner cannot play on with these options; it may be asked with a guess."""
    if Need.GRAPH_BEFORE in needs(learner, options) and sequence.shown == "after" and not guessed:
        raise ObservabilityError(
            f"{learner.name} needs to see the graph before the draw; this sequence shows it after. Let it be asked "
            f"with a guess: simulate(..., guess=graph), or agent.ask(guess) and tell(decision, losses, graph)."
        )
    if len(set(sequence.bank)) != 1:
        check_fixed(learner, options, f"{sequence!r} has several.")
    for graph in sequence.extremes:
        check_graph(learner, graph, options)
