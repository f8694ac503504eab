"""A game: a learner, graphs and a world that fit each other.

`prepare` has all the rules of what can be played, for `simulate` and for a study that is not run yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sidelong.checks import check_whole
from sidelong.errors import BinaryLossError, GraphError, SimulationError, WorldError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.graphs.presence import present
from sidelong.graphs.sequences import GraphSequence, fixed
from sidelong.learners import catalogue
from sidelong.learners.interface import Learner, Need, name_of
from sidelong.losses.world import World
from sidelong.simulation.delays import Delay, read_delay

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

#: How many numbers may be kept for feedback that comes late.
_MEMORY = 10**8

whole = partial(check_whole, SimulationError)


@dataclass(frozen=True, eq=False)
class Game:
    """What can be played, many times."""

    learner: Learner
    options: dict[str, Any]  #: of the learner, with the horizon if it takes one
    sequence: GraphSequence
    world: World
    rounds: int
    delay: Delay  #: how many rounds later feedback comes
    guess: FeedbackGraph | None = None  #: what the learner is asked with, if it sees the graph of a round afterwards

    @property
    def kind(self) -> str:
        """What machine code it runs, and which world that calls: games of one kind are compiled together."""
        anew, late = " anew" * (not self.sequence.bank), " late" * (not self.delay.is_none)
        guessed = " guessed" * (self.guess is not None)
        return f"{name_of(self.learner)} {self.world.name} {self.world.code}{anew}{late}{guessed}"

    @property
    def label(self) -> str:
        """The learner with its options, for people; a horizon that is the number of rounds is not said."""
        said = {key: value for key, value in self.options.items() if (key, value) != ("horizon", self.rounds)}
        return " ".join([self.learner.name, *(f"{key}={value}" for key, value in said.items())])

    def configure(self, seed: int = 0) -> tuple[FeedbackGraph, tuple[Any, ...]]:
        """Return the graph that the learner sees in round 1, and its constants for it."""
        first = self.sequence.graph_of_round(1, seed=seed) if self.guess is None else self.guess
        return first, catalogue.configure(self.learner, first, self.options)


def prepare(
    learner: str | ModuleType | Learner,
    graph: FeedbackGraph | GraphSequence,
    losses: World,
    rounds: int,
    delay: int | str | Delay = 0,
    options: Mapping[str, Any] | None = None,
    guess: FeedbackGraph | None = None,
) -> Game:
    """Return a game that can be played.

    Raises:
        ObservabilityError: the learner cannot play on the graph.
        BinaryLossError: the learner cannot play in the world.
        SidelongError: something else does not fit, or is not what it should be.

    """
    if not isinstance(graph, FeedbackGraph | GraphSequence):
        raise GraphError(f"graph must be a FeedbackGraph or a GraphSequence, not {type(graph).__name__}.")
    sequence = graph if isinstance(graph, GraphSequence) else fixed(graph)
    if not isinstance(losses, World):
        raise WorldError(f"losses must be a world made by sidelong.losses, not {type(losses).__name__}.")
    if losses.n_arms != sequence.n_arms:
        raise SimulationError(f"The graph has {sequence.n_arms} arms and the world {losses.n_arms}: they must agree.")
    rounds = whole("rounds", rounds, 1, 2**48 - 1)
    if losses.rounds is not None and rounds > losses.rounds:
        raise SimulationError(f"The world has {losses.rounds:,} rounds, and {rounds:,} were asked for.")
    law = read_delay(delay, sequence.n_arms)
    whole("delay", law.most, 0, _MEMORY // sequence.n_arms)
    if not law.is_none and not sequence.bank:
        raise SimulationError(
            f"delay is {law.text}: feedback that comes late needs graphs that are kept; {sequence!r} draws them anew."
        )
    options = dict(options or {})
    module = catalogue.choose(learner, options)
    if guess is not None:
        _check_guess(guess, sequence)
        catalogue.check_graph(module, guess, options)
    catalogue.check_sequence(module, sequence, options, guessed=guess is not None)
    if module.sleeps and not all(present(each).all() for each in sequence.extremes):
        raise SimulationError(
            f"Some arms of {sequence!r} are absent, and `simulate` measures regret against arms that are always there. "
            f"Ask an Agent with available=..., and count against each arm the rounds in which it was there."
        )
    if Need.BINARY_LOSSES in module.needs and losses.binary is False:
        raise BinaryLossError(
            f"{module.name} needs losses that are 0 or 1; those of {losses!r} lie between. Use a learner for any "
            f"losses, such as ucb-n."
        )
    if Need.HORIZON in catalogue.needs(module, options):
        options.setdefault("horizon", rounds)
    return Game(module, options, sequence, losses, rounds, law, guess)


def _check_guess(guess: Any, sequence: GraphSequence) -> None:
    """Refuse what cannot be a guess of the graphs of a sequence."""
    if not isinstance(guess, FeedbackGraph):
        raise GraphError(f"guess must be a FeedbackGraph, not {type(guess).__name__}.")
    if guess.n_arms != sequence.n_arms:
        raise GraphError(f"guess has {guess.n_arms} arms, and {sequence!r} has {sequence.n_arms}: they must agree.")
    if not sequence.bank:
        raise GraphError(f"A guess needs graphs that are kept; {sequence!r} draws them anew.")
    if sequence.shown != "after":
        raise GraphError(
            f"A guess is for graphs that are seen after the draw; {sequence!r} shows them before. Give the sequence "
            f"shown='after', or leave out guess."
        )
