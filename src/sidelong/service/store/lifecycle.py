"""The life of an experiment: what somebody may change while it goes on, and what it plays meanwhile.

An experiment runs, and its learner decides; it is *frozen*, and plays what it was told to; it is *stopped*, and plays a
fallback arm or nothing; or it is *archived*, and is in nobody's way. Each change is an event of the journal, which says
who made it, and takes its place among the decisions: those behind it are made by the new state, on every server.

A round that the learner did not decide does not exist for it. It is neither drawn nor counted nor learned there, so
that the learner's state is unchanged by it, bit for bit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sidelong.errors import GraphError
from sidelong.numerics import sample, uniform

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
        after = spec.expire_after if spec.sticky is None else spec.sticky.seconds
        return cls("running", spec.description, spec.labels, after)

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


class Holdout(NamedTuple):
    """A share of the rounds, drawn at random, that follows an arm and not the learner."""

    arm: int
    share: float

    def is_held(self, seed: int, number: int) -> bool:
        """Toss the coin of a round. It depends on nothing but the seed and the number of the round."""
        return bool(uniform(np.uint64(seed), _STREAM, 0, number, 1) < self.share)

    def mixed(self, p: Any, is_arm: Any) -> np.ndarray:
        """Return probabilities before the toss, of probabilities that the learner gives and whether it is the arm."""
        return np.asarray((1.0 - self.share) * p + self.share * np.asarray(is_arm))


def to_play(life: Life, graph: FeedbackGraph) -> np.ndarray | None:
    """Return the probabilities of what is played in place of the learner in a round of this graph, if anything is.

    A frozen experiment plays what it was told to, without the arms that are absent; a stopped one its fallback arm.
    """
    p = np.zeros(graph.n_arms)
    if life.play is not None:
        for name, share in life.play.items():
            p[int(name)] = share
        p[~playable(graph)] = 0.0
        whole = p.sum()
        if not whole > 0.0:
            raise GraphError("The experiment is frozen, and no arm that it is to play is available in this round.")
        return np.asarray(p / whole)
    if life.fallback is not None:
        if not playable(graph)[life.fallback]:
            raise GraphError(
                f"The experiment is stopped, and its fallback arm {life.fallback} is not available in this round."
            )
        p[life.fallback] = 1.0
        return p
    return None


def draw(seed: int, number: int, p: np.ndarray) -> int:
    """Draw the arm of a round that is not the learner's."""
    return int(sample(p, uniform(np.uint64(seed), _STREAM, 0, number, 0)))


def playable(graph: FeedbackGraph) -> np.ndarray:
    """Tell for each arm whether it can be played in a round of this graph: whether it reveals anything."""
    arrays = graph.arrays
    return np.asarray(arrays.start < arrays.stop)


def written(change: Mapping[str, Any]) -> str:
    """Return a change as the journal has it."""
    return json.dumps(change, sort_keys=True)
