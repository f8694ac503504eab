"""The life of an experiment: what somebody may change while it goes on, and what it plays meanwhile.

An experiment runs, and its learner decides; it is *frozen*, and plays what it was told to; it is *stopped*, and plays a
fallback arm or nothing; or it is *archived*, and is in nobody's way. Each change is an event of the journal, which says
who made it, and takes its place among the decisions: those behind it are made by the new state, on every server.

A round that the learner did not decide does not exist for it. It is neither drawn nor counted nor learned there, so
that the learner goes on afterwards as if nothing had been between.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sidelong.errors import GraphError
from sidelong.numerics import sample, uniform
from sidelong.service.store.graphs import identify
from sidelong.service.store.journal import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.spec import Spec

State = Literal["running", "frozen", "stopped", "archived"]

#: What the numbers are for that rounds without the learner are drawn with: a stream of `sidelong.numerics.uniform`.
_STREAM = np.int64(64)


class Life(NamedTuple):
    """What somebody may change."""

    state: State
    description: str
    labels: list[str] | None
    expire_after: float | None
    play: dict[str, float] | None = None  #: of a frozen one: the probability of each arm that may be played
    fallback: int | None = None  #: of a stopped one

    @classmethod
    def first(cls, spec: Spec) -> Life:
        """Return that of a new experiment."""
        return cls("running", spec.description, spec.labels, spec.expire_after)

    def after(self, change: Mapping[str, Any]) -> Life:
        """Return what a change makes of it. Another state forgets what was to be played."""
        now = self._replace(play=None, fallback=None) if "state" in change else self
        return now._replace(**{name: change[name] for name in self._fields if name in change})

    def changed_to(self, wanted: Life) -> dict[str, Any]:
        """Return the change that makes another one of it."""
        change = {name: value for name, value in wanted._asdict().items() if value != getattr(self, name)}
        if "state" in change:  # which forgets them anyway
            change = {name: value for name, value in change.items() if value is not None or name in _LASTING}
        return change


_LASTING = {"labels", "expire_after"}  # may be None in every state


class Given:
    """A round that the learner did not decide: what a decision is to it."""

    __slots__ = ("P", "arm", "graph", "kind", "probabilities", "probability")

    def __init__(
        self,
        kind: Kind,
        arm: int,
        graph: FeedbackGraph,
        probability: float,
        p: np.ndarray | None,
        P: np.ndarray | None = None,
    ) -> None:
        self.kind = kind
        self.arm = arm
        self.graph = graph
        self.probability = probability  #: with which the arm was drawn; NaN if that is not known
        self.probabilities = (
            np.empty(0) if p is None else p
        )  #: those of all arms; none if they are not known, or too much to keep
        self.P = P  #: then: the probability of revealing each arm that it reveals

    @property
    def kept_bytes(self) -> int:
        """How many bytes it keeps in memory until it is told, without its graph."""
        return self.probabilities.nbytes + (0 if self.P is None else self.P.nbytes)


def played(seed: int, number: int, graph: FeedbackGraph, play: Mapping[str, float]) -> Given:
    """Draw a round of a frozen experiment. Arms that are absent are left out."""
    p = np.zeros(graph.n_arms)
    for name, share in play.items():
        p[int(name)] = share
    p[~playable(graph)] = 0.0
    whole = p.sum()
    if not whole > 0.0:
        raise GraphError("The experiment is frozen, and no arm that it is to play is available in this round.")
    p /= whole
    arm = int(sample(p, uniform(np.uint64(seed), _STREAM, 0, number, 0)))
    return Given(Kind.PLAYED, arm, graph, float(p[arm]), p)


class Holdout(NamedTuple):
    """A share of the rounds, drawn at random, that follows an arm and not the learner."""

    arm: int
    share: float

    def is_held(self, seed: int, number: int) -> bool:
        """Toss the coin of a round. It depends on nothing but the seed and the number of the round."""
        return bool(uniform(np.uint64(seed), _STREAM, 0, number, 1) < self.share)

    def mixed(self, p: np.ndarray, is_arm: Any) -> np.ndarray:
        """Return probabilities before the toss, of probabilities that the learner gives and whether it is the arm."""
        return np.asarray((1.0 - self.share) * p + self.share * np.asarray(is_arm))

    def held(self, graph: FeedbackGraph, p: np.ndarray) -> Given:
        """Play the arm, where the learner would have drawn with probabilities p."""
        unknown = np.isnan(p).any()
        mixed = self.mixed(p, np.arange(p.size) == self.arm)
        return Given(Kind.HELD, self.arm, graph, float(mixed[self.arm]), None if unknown else mixed)


def fallen_back(graph: FeedbackGraph, arm: int) -> Given:
    """Play the fallback arm of a stopped experiment."""
    if not playable(graph)[arm]:
        raise GraphError(f"The experiment is stopped, and its fallback arm {arm} is not available in this round.")
    p = np.zeros(graph.n_arms)
    p[arm] = 1.0
    return Given(Kind.FALLBACK, arm, graph, 1.0, p)


def playable(graph: FeedbackGraph) -> np.ndarray:
    """Tell for each arm whether it can be played in a round of this graph: whether it reveals anything."""
    arrays = graph.arrays
    return np.asarray(arrays.start < arrays.stop)


def pack(given: list[Given], own: FeedbackGraph) -> tuple[list[str | None], dict[str, np.ndarray]]:
    """Return rounds as the ids of their graphs, None for the experiment's own, and arrays."""
    places: dict[int, int] = {}
    ids: list[str | None] = []
    for each in given:
        if id(each.graph) not in places:
            places[id(each.graph)] = len(ids)
            ids.append(None if each.graph is own else identify(each.graph).id)
    kept = [each.probabilities if each.P is None else each.P for each in given]
    arrays = {
        "given.kind": np.array([each.kind for each in given], np.int64),
        "given.arm": np.array([each.arm for each in given], np.int64),
        "given.graph": np.array([places[id(each.graph)] for each in given], np.int64),
        "given.probability": np.array([each.probability for each in given], np.float64),
        "given.sparing": np.array([each.P is not None for each in given], np.bool_),
        "given.size": np.array([each.size for each in kept], np.int64),
        "given.p": np.concatenate([np.empty(0), *kept]),
    }
    return ids, arrays


def unpack(graphs: list[FeedbackGraph], arrays: Mapping[str, np.ndarray]) -> list[Given]:
    """Return what `pack` was given."""
    found = []
    rows = np.split(arrays["given.p"], np.cumsum(arrays["given.size"]))[:-1]
    names = ("kind", "arm", "graph", "probability", "sparing")
    for kind, arm, place, probability, sparing, row in zip(
        *(arrays[f"given.{name}"].tolist() for name in names), rows, strict=True
    ):
        p, P = (None, row) if sparing else (row, None)
        found.append(Given(Kind(kind), arm, graphs[place], probability, p, P))
    return found


def written(change: Mapping[str, Any]) -> str:
    """Return a change as the journal has it."""
    return json.dumps(change, sort_keys=True)
