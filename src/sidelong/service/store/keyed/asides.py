"""Decisions for keys of which some are not the learner's: while frozen, by a fallback arm, or by a holdout.

They are drawn as those of an experiment without keys, by the number of the decision. A key that is held does not exist
for its learner in this round. So it goes on afterwards as if nothing had been between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent import Batch
from sidelong.service.store import life
from sidelong.service.store.journal import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.keyed.blocks import Blocks
    from sidelong.service.store.keyed.columns import Key
    from sidelong.service.store.life import Given, Holdout, Life

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]


class Mixed(NamedTuple):
    """A batch of decisions, of which some are not the learner's."""

    kind: Kind
    batch: Batch  #: with rounds of 0 where the learner did not decide
    given: npt.NDArray[np.bool_]  #: where that is so
    observe: Floats  #: and there, one after the other, the probability of revealing each arm that is revealed


class Drawer:
    """Draws what is not the learner's.

    Args:
        seed: that of the experiment.
        graph: that of the round; None for the experiment's own.
        own: the experiment's own.
        observed: returns with which probability each arm is revealed, of a decision that was drawn.
    """

    def __init__(
        self,
        seed: int,
        graph: FeedbackGraph | None,
        own: FeedbackGraph,
        observed: Callable[[Any, FeedbackGraph], Floats],
    ) -> None:
        self._seed = seed
        self._asked = graph
        self._graph = own if graph is None else graph
        self._observed = observed

    def play(self, tag: str, keys: list[Key], numbers: Integers, now: Life) -> Mixed:
        """Play what a frozen experiment is to play, or the fallback arm of a stopped one."""
        made = [self._given(number, now) for number in numbers.tolist()]
        P = self._observed(made[0], self._graph)  # all are drawn with the same probabilities
        rows = [self._graph.row(each.arm) for each in made]
        batch = self._batch(tag, keys, np.zeros(len(keys), np.int64), made, rows)
        return Mixed(made[0].kind, batch, np.ones(len(keys), np.bool_), P[batch.reveals])

    def _given(self, number: int, now: Life) -> Given:
        if now.play is not None:
            return life.played(self._seed, number, self._graph, now.play)
        return life.fallen_back(self._graph, now.fallback or 0)

    def toss(self, blocks: Blocks, keys: list[Key], rows: Integers, numbers: Integers, holdout: Holdout) -> Mixed:
        """Let a coin decide for each key whether the holdout's arm is played."""
        held = np.array([holdout.is_held(self._seed, number) for number in numbers.tolist()], np.bool_)
        made: list[Any] = [None] * len(keys)
        rounds = np.zeros(len(keys), np.int64)
        for places in in_turns(rows):
            aside, own = places[held[places]], places[~held[places]]
            if aside.size:
                some = [keys[place] for place in aside.tolist()]
                for place, p in zip(aside.tolist(), blocks.outlook(some, rows[aside], self._asked), strict=True):
                    made[place] = holdout.held(self._graph, p)
            if own.size:
                drawn = blocks.ask([keys[place] for place in own.tolist()], rows[own], self._asked)
                rounds[own] = drawn.rounds
                p = holdout.mixed(drawn.probabilities, drawn.arms == holdout.arm)
                for place, arm, each in zip(own.tolist(), drawn.arms.tolist(), p.tolist(), strict=True):
                    made[place] = life.Given(Kind.DECIDED, arm, self._graph, each, None)
        shown = [self._graph.row(each.arm) for each in made]
        batch = self._batch(blocks.tag, keys, rounds, made, shown)
        observe = [self._observe(made[place])[shown[place]] for place in np.flatnonzero(held).tolist()]
        return Mixed(Kind.DECIDED, batch, held, np.concatenate([np.empty(0), *observe]))

    def _observe(self, made: Given) -> Floats:
        if not made.probabilities.size:  # which the learner does not know
            return np.full(self._graph.n_arms, np.nan)
        return self._observed(made, self._graph)

    @staticmethod
    def _batch(tag: str, keys: list[Key], rounds: Integers, made: list[Given], rows: list[np.ndarray]) -> Batch:
        arms = np.array([each.arm for each in made], np.int64)
        p = np.array([each.probability for each in made], np.float64)
        offsets = np.append(0, np.cumsum([row.size for row in rows]))
        return Batch(tag, keys, rounds, arms, p, np.concatenate(rows).astype(np.int32), offsets)


def in_turns(rows: Integers) -> Iterator[Integers]:
    """Yield the places of the first decision of each key, then those of the second ones, and so on."""
    turns = turn_of(rows)
    for turn in range(int(turns.max()) + 1):
        yield np.flatnonzero(turns == turn)


def turn_of(rows: Integers) -> Integers:
    """Return how many decisions of the same key come before each."""
    if (np.diff(rows) > 0).all():
        return np.zeros(rows.size, np.int64)
    order = np.argsort(rows, kind="stable")
    first = np.append(True, np.diff(rows[order]) != 0)
    begin = np.maximum.accumulate(np.where(first, np.arange(rows.size), 0))
    turns = np.empty(rows.size, np.int64)
    turns[order] = np.arange(rows.size) - begin
    return turns
