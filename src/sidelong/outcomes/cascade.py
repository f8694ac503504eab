"""A threshold cascade: a small model answers if it is sure enough; if not, a large one answers and judges it.

A small model answers each question and says how sure it is, its confidence c. An arm is a threshold s. If c >= s, the
small model's answer is used. If not, the large model is asked, which costs `price`. It also shows whether the small one
was wrong. A wrong answer that is used costs `mistake`. In units of the larger of the two costs,

    loss of s = mistake if the small model is wrong, else 0   if c >= s,   and price if not.

The confidence is known before the threshold is drawn, and so is the graph of the round. Thresholds above c ask, and
reveal the losses of all. Those up to c do not reveal themselves, since nobody judged: they only show that asking would
have cost `price`. So in most rounds some arms are revealed only by others. If all thresholds were below c, nothing
would be learned. That is why one more arm, the last, always asks. On such graphs, which are weakly observable, no
learner has a regret below the order T^(2/3).
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import check_flag, short
from sidelong.errors import OutcomeError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.outcomes.revealed import Revealed, ascending, checked_arm, number
from sidelong.outcomes.revealed_columns import (
    RevealedColumns,
    checked_arms,
    checked_numbers,
    column_of,
    columns,
    graphs_by_mark,
    kept_if_small,
    refuse_first,
    takes_batch,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


class Cascade:
    """Turn what the large model said into the losses of every threshold that it reveals.

    Args:
        thresholds: from 0 to 1, ascending, one for each arm but the last, which always asks the large model.
        price: what asking the large model costs.
        mistake: what a wrong answer of the small model costs that nobody corrects.

    Example:
        >>> import sidelong as sl
        >>> cascade = sl.outcomes.Cascade([0.0, 0.5, 0.8], price=0.2)
        >>> agent = sl.Agent("exp3.g", cascade.graph(), rate="adaptive", seed=7)
        >>> decision = agent.ask(cascade.graph(confidence=0.6))
        >>> asks = cascade.asks(decision.arm, confidence=0.6)
        >>> wrong = True if asks else None  # what the large model says of the small one's answer
        >>> agent.tell(decision, cascade.outcome(decision.arm, confidence=0.6, wrong=wrong))
        True
        >>> cascade.outcome(2, confidence=0.6, wrong=True).losses  # of all: two would have erred, two would have asked
        array([1. , 1. , 0.2, 0.2])
        >>> cascade.outcome(1, confidence=0.6).losses  # of those that would have asked
        array([0.2, 0.2])
    """

    def __init__(
        self,
        thresholds: Sequence[float] | npt.NDArray[np.float64],
        *,
        price: float,
        mistake: float = 1.0,
    ) -> None:
        self._thresholds = ascending("thresholds", thresholds, 1.0, least=1)
        self._price = number("price", price, least=0)
        self._mistake = number("mistake", mistake, above=0)

    @property
    def thresholds(self) -> npt.NDArray[np.float64]:
        """The threshold of each arm but the last, which always asks."""
        return self._thresholds

    @property
    def n_arms(self) -> int:
        """One more than there are thresholds."""
        return int(self._thresholds.size) + 1

    @property
    def unit(self) -> float:
        """What a loss of 1 is worth: multiply a difference of losses, such as a regret, to have it as cost."""
        return max(self._price, self._mistake)

    def asks(self, arm: int, confidence: float) -> bool:
        """Tell whether an arm asks the large model, for a question of which the small one is so sure."""
        return checked_arm(arm, self.n_arms) >= self._answering(confidence)

    def graph(self, confidence: float = 1.0) -> FeedbackGraph:
        """Return what each arm reveals, for `ask`; without a confidence that of a question where only one arm asks."""
        return _graph(self.n_arms, self._answering(confidence))

    def graphs(self, confidence: npt.ArrayLike) -> tuple[tuple[FeedbackGraph, ...], npt.NDArray[np.int64]]:
        """Return the graphs of many questions, for `Family.ask`, from the confidence of each."""
        sure = column_of(confidence)
        if sure.ndim != 1:
            raise OutcomeError(
                f"graphs takes a column of confidences, not {short(confidence)}; one alone goes to graph."
            )
        return graphs_by_mark(self._answering_each(sure), partial(_graph, self.n_arms))

    def losses(self, confidence: float, wrong: bool) -> npt.NDArray[np.float64]:  # noqa: FBT001
        """Return the loss of every arm: `wrong` is whether the small model is."""
        answers = np.arange(self.n_arms) < self._answering(confidence)
        costs = np.where(answers, self._mistake if check_flag(OutcomeError, "wrong", wrong) else 0.0, self._price)
        return np.asarray(costs / self.unit)

    def outcome(self, arm: int, *, confidence: float, wrong: bool | None = None) -> Revealed:
        """Return what a round revealed.

        Args:
            arm: the arm that was played, `decision.arm`.
            confidence: of the small model, from 0 to 1. It must be the one that the arm was asked for with: `tell`
                refuses an outcome whose graph is not that of the decision.
            wrong: whether the small model was wrong, by the large one's word; None if the large one was not asked.
        """
        played = [checked_arm(arm, self.n_arms)]
        return self.outcomes(played, confidence=[confidence], wrong=None if wrong is None else [wrong]).alone()

    @takes_batch
    def outcomes(
        self, arms: npt.ArrayLike, *, confidence: npt.ArrayLike, wrong: npt.ArrayLike | None = None
    ) -> RevealedColumns:
        """Return what many questions revealed, for a `Family` that was asked for all of them.

        Args:
            arms: the batch itself, so that `tell` takes the outcomes in its order alone; or the arm that was played for
                each, if there is no batch.
            confidence: of the small model, for each, as it was for `graphs`.
            wrong: whether the small model was wrong, by the large one's word; None where that one was not asked.

        Example:
            >>> import sidelong as sl
            >>> cascade = sl.outcomes.Cascade([0.0, 0.5, 0.8], price=0.2)
            >>> shops = sl.Family("exp3.g", cascade.graph(), rate="adaptive", seed=7)
            >>> sure = [0.6, 0.9]  # of a question in each shop
            >>> plan = shops.ask(["north", "south"], cascade.graphs(sure))
            >>> wrong = [False if cascade.asks(int(arm), c) else None for arm, c in zip(plan.arms, sure)]
            >>> shops.tell(plan, cascade.outcomes(plan, confidence=sure, wrong=wrong))
            2
        """
        played = checked_arms(arms, self.n_arms)
        given = columns(played.size, confidence=confidence, wrong=wrong)
        answering = self._answering_each(given["confidence"])
        asks, (judged, errs) = played >= answering, _verdicts(given["wrong"])
        refuse_first(
            asks != judged,
            lambda at: _mismatch(given["confidence"][at], played[at], given["wrong"][at], asks=asks[at]),
        )
        answers = np.arange(self.n_arms) < answering[:, None]
        costs = np.where(answers, np.where(errs[:, None], self._mistake, 0.0), self._price) / self.unit
        first, last = np.where(asks, 0, answering), np.full_like(played, self.n_arms)
        graphs = graphs_by_mark(answering, partial(_graph, self.n_arms))
        return RevealedColumns.of_ranges(played, first, last, costs, graphs, foreseen=True)

    def _answering_each(self, confidence: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return of each question how many arms let the small model answer."""
        return np.searchsorted(self._thresholds, checked_numbers("confidence", confidence, 0.0, 1.0), "right")

    def _answering(self, confidence: float) -> int:
        """Return how many arms let the small model answer: the first ones."""
        sure = number("confidence", confidence, least=0, most=1)
        return int(np.searchsorted(self._thresholds, sure, "right"))

    def __repr__(self) -> str:
        first, last, size = self._thresholds[0], self._thresholds[-1], self._thresholds.size
        which = f"{size} thresholds from {first:g} to {last:g}" if size > 1 else f"one threshold, {first:g}"
        return f"<Cascade: {which}, price {self._price:g}, mistake {self._mistake:g}>"


def _verdicts(given: npt.NDArray[Any]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return of each verdict whether there is one, and whether it says that the small model was wrong."""
    listed = [None if isinstance(value, float) and math.isnan(value) else value for value in given.tolist()]
    kinds = np.array([value is None or isinstance(value, bool) for value in listed], np.bool_)
    refuse_first(~kinds, lambda at: f"wrong must be True, False or None, not {short(listed[at])}.")
    return np.array([value is not None for value in listed], np.bool_), np.array(listed, np.bool_)


def _mismatch(confidence: float, arm: int, wrong: object, *, asks: bool) -> str:
    """Say that there is a verdict where nobody was asked, or none where somebody was."""
    does = "asks the large model, which says whether it was wrong" if asks else "does not ask, so nobody judged"
    return (
        f"At a confidence of {confidence:g} arm {arm} {does}; wrong is {short(wrong)}. "
        f"What a round reveals must not depend on luck: a verdict that comes now and then cannot be used."
    )


@kept_if_small
def _graph(n: int, answering: int) -> FeedbackGraph:
    """Return the graph in which the first arms reveal the later ones, and the later ones all."""
    first = np.where(np.arange(n) < answering, answering, 0)
    return FeedbackGraph.from_intervals(first, np.full(n, n))
