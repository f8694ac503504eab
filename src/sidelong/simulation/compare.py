"""Many learners in many worlds on one graph, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sidelong.errors import BinaryLossError, LearnerError, ObservabilityError, SimulationError
from sidelong.learners import catalogue
from sidelong.learners.interface import Learner
from sidelong.losses.world import World
from sidelong.simulation.comparison import Comparison
from sidelong.simulation.game import prepare
from sidelong.simulation.simulate import compile_together, play_game

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.graphs.sequences import GraphSequence
    from sidelong.simulation.delays import Delay
    from sidelong.simulation.game import Game

    Given = str | ModuleType | Learner | Mapping[str, Any]  # a learner, or its name with options

ALL = "all"


def compare(
    learners: Given | Iterable[Given] | Mapping[str, Given],
    graph: FeedbackGraph | GraphSequence,
    worlds: World | Iterable[World] | Mapping[str, World],
    rounds: int,
    runs: int | Sequence[int] = 13,
    seed: int = 0,
    *,
    checkpoints: int | Sequence[int] | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    delay: int | str | Delay = 0,
    guess: FeedbackGraph | None = None,
) -> Comparison:
    """Play several learners in several worlds on one graph, and return all results side by side.

    Every learner meets the same losses. A learner that cannot play on the graph, or in one of the worlds, is listed
    with the reason; the others play. Anything else that is wrong, such as an option that a learner does not take, is
    refused before the first round.

    Args:
        learners: a list. Each is a name, a module, or a name with options, as in
            ``{"name": "exp3.g++", "gamma": 2.0}``; "all" stands for every learner. As a mapping, the keys are what
            tables and figures call them.
        graph: the graph, or a sequence of graphs.
        worlds: one world or a list. As a mapping, the keys are what tables and figures call them.
        rounds: how many rounds to play.
        runs: how many runs, numbered from 0; or the numbers of the runs.
        seed: a whole number from 0 to 2**64 - 1.
        checkpoints: as for `simulate`.
        threads: as for `simulate`.
        progress: as for `simulate`.
        delay: as for `simulate`.
        guess: as for `simulate`.

    Raises:
        ObservabilityError: no learner can play on the graph.
        SidelongError: something does not fit, or is not what it should be.

    Example:
        >>> import sidelong as sl
        >>> settings = [{"name": "exp3.g++", "gamma": gamma} for gamma in (1.0, 4.0)]
        >>> worlds = {"easy": sl.losses.bernoulli([0.3, 0.7]), "hard": sl.losses.bernoulli([0.45, 0.55])}
        >>> found = sl.compare([*settings, "uniform"], sl.graphs.nested(2), worlds, rounds=1000, runs=4)
        >>> found.learners
        ('exp3.g++ gamma=1.0', 'exp3.g++ gamma=4.0', 'uniform')
    """
    tables = _learners(learners)
    places = _worlds(worlds)
    games: dict[tuple[str, str], Game] = {}
    unplayable: dict[tuple[str, str], str] = {}
    for label, (learner, options) in tables.items():
        for world, losses in places.items():
            try:
                game = prepare(learner, graph, losses, rounds, delay, options, guess)
                game.configure(seed)
            except (ObservabilityError, BinaryLossError) as error:
                unplayable[label, world] = str(error)
            else:
                games[label, world] = game
    if not games:
        raise ObservabilityError(f"No learner can play there. {next(iter(unplayable.values()))}")
    compile_together(games.values(), progress)
    results = {place: play_game(game, runs, seed, checkpoints, threads, progress) for place, game in games.items()}
    return Comparison(tuple(tables), tuple(places), graph.n_arms, results, unplayable)


def _learners(given: Any) -> dict[str, tuple[str | ModuleType | Learner, dict[str, Any]]]:
    """Return each learner and its options, by what it is called."""
    if isinstance(given, Mapping) and "name" not in given:
        return {str(label): _learner(each) for label, each in given.items()}
    listed = [given] if isinstance(given, str | ModuleType | Learner | Mapping) else _listed("learners", given)
    every = [each for one in listed for each in (catalogue.names() if _is_all(one) else [one])]
    if not every:
        raise LearnerError("learners must be a list of at least one learner, and it is empty.")
    found = [_learner(each) for each in every]
    return _apart(found, [_label(*each) for each in found])


def _is_all(given: object) -> bool:
    return isinstance(given, str) and given == ALL


def _learner(given: Any) -> tuple[str | ModuleType | Learner, dict[str, Any]]:
    if isinstance(given, Mapping):
        if "name" not in given:
            raise LearnerError(f'A learner with options is {{"name": "exp3.g++", "gamma": 2.0}}, not {given!r}.')
        options = {key: value for key, value in given.items() if key != "name"}
        return _learner(given["name"])[0], options
    catalogue.find(given)
    return given, {}


def _label(learner: str | ModuleType | Learner, options: dict[str, Any]) -> str:
    name = learner if isinstance(learner, str) else catalogue.find(learner).name
    return " ".join([name, *(f"{key}={value}" for key, value in options.items())])


def _worlds(given: Any) -> dict[str, World]:
    """Return the worlds, by what they are called."""
    if isinstance(given, Mapping):
        found, labels = [*given.values()], [*map(str, given)]
    else:
        found = [given] if isinstance(given, World) else _listed("worlds", given)
        labels = [getattr(each, "name", "") for each in found]
    wrong = [each for each in found if not isinstance(each, World)]
    if wrong or not found:
        raise SimulationError(f"worlds are made by sidelong.losses; not {wrong[0] if wrong else given!r}.")
    return _apart(found, labels)


def _listed(what: str, given: Any) -> list[Any]:
    if not isinstance(given, Iterable):
        raise SimulationError(f"{what} is a list, not {given!r}.")
    return [*given]


def _apart(found: list[Any], labels: list[str]) -> dict[str, Any]:
    """Return things by their labels, which get numbers where two are equal."""
    counts, seen, named = Counter(labels), Counter[str](), {}
    for each, label in zip(found, labels, strict=True):
        seen[label] += 1
        named[f"{label} #{seen[label]}" if counts[label] > 1 else label] = each
    return named
