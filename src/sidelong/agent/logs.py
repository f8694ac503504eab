"""Rounds of a log, which an agent or a key learns without having played them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._install import pip_install
from sidelong.agent.ceiling import PRICE, mix_in
from sidelong.checks import short
from sidelong.errors import EvaluationError, LearnerError
from sidelong.evaluation.decision_log import DecisionLog, from_table, read_log
from sidelong.graphs.presence import present
from sidelong.learners import catalogue

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.agent.ceiling import Ceiling
    from sidelong.agent.setup import Setup
    from sidelong.graphs.graph import FeedbackGraph


def replay(setup: Setup, state: Any, log: Any, *, trusted: bool = False, price: float = 0.0) -> int:
    """Let a learner learn the rounds of a log; return how many had losses.

    Under a ceiling with this price it is told losses and costs mixed, as it is told its own rounds.
    """
    learner, graph = setup.learner, setup.graph
    if learner.replay is None:
        title = learner.title
        able = catalogue.names_where(lambda each: each.replay is not None)
        raise LearnerError(
            f"learn needs a learner with a rule for it, and {title} has none. Use {able}, with default options."
        )
    if trusted and not learner.takes_history:
        able = catalogue.names_where(lambda each: each.takes_history)
        raise LearnerError(
            f"What {learner.title} learns from a log must be without bias. Use {able} with trusted=True, or give the "
            f"probabilities with which losses were revealed."
        )
    found = _read(log, graph.n_arms, trusted=trusted)
    told = np.flatnonzero(found.told)
    if not trusted:
        _check_seen(found, told, graph)
    ends = np.searchsorted(found.round, told, "right")
    loss = found.loss if setup.ceiling is None else _mixed(found, setup.ceiling, price)
    learner.replay(setup.params, state, ends, found.arm, loss, found.probability, np.empty(graph.n_arms))
    return int(told.size)


def _mixed(found: DecisionLog, ceiling: Ceiling, price: float) -> npt.NDArray[np.float64]:
    """Return the losses of a log mixed with its costs, or refuse a log that does not say what was paid."""
    if found.spent is None or not (found.spent >= 0.0).all() or not np.isfinite(found.spent).all():
        raise EvaluationError(
            "With a ceiling, a log says what its arms cost, by numbers from 0 on: in a column cost beside loss or "
            "reward, or in a column costs of lists beside losses. Add it, or begin without the log."
        )
    mixed = np.empty_like(found.loss)
    spending = ceiling.spending()
    spending[PRICE] = price
    mix_in(spending, found.loss, found.spent, mixed)
    return mixed


def _check_seen(found: DecisionLog, told: np.ndarray, graph: FeedbackGraph) -> None:
    """Refuse a log in which an arm could not be seen: it would count as if it had cost nothing.

    A log may say how likely each arm was to be seen in each round. One that does not must have seen each arm at least
    once. And what it reveals says something: if arm i was certain to be seen, only arms that reveal i can have been
    played, so that what none of them reveals could not be seen. Where no round reveals more than one arm, each arm
    reveals itself alone, whatever the graph says.
    """
    if found.chances is not None:
        hidden = (found.chances[told] <= 0.0).sum(axis=0)
    else:
        hidden = _hidden(found, graph)
        never = np.bincount(found.arm, minlength=graph.n_arms) == 0
        hidden[never] = told.size
    arms = np.flatnonzero((hidden > 0) & present(graph))
    if arms.size:
        raise EvaluationError(
            f"In {hidden[arms[0]]:,} of the {told.size:,} rounds of the log, arm {graph.arm_name(int(arms[0]))} could "
            f"not be seen, or was not and the log does not say how likely that was, and would count as if it had cost "
            f"nothing. Learn rounds in which each arm could be seen; if some arm never was, with the lists of what was "
            f"revealed and a column all_observe_probabilities. For a new arm, learn first and then use add_arm."
        )


def _hidden(found: DecisionLog, graph: FeedbackGraph) -> npt.NDArray[np.int64]:
    """Return in how many rounds each arm could not be seen, since one that it is never seen with was certain to be."""
    hidden = np.zeros(graph.n_arms, np.int64)
    certain = found.probability >= 1.0 - 1e-9
    alone = np.unique(found.round).size == found.round.size
    for i in np.unique(found.arm[certain]).tolist():
        rounds = found.round[certain & (found.arm == i)]
        could = np.zeros(graph.n_arms, np.bool_)
        for k in [] if alone else graph.in_neighbors(i).tolist():
            could[graph.row(k)] = True
        seen = np.isin(found.round, rounds)
        hidden += np.where(could, 0, rounds.size - np.bincount(found.arm[seen], minlength=graph.n_arms))
    return hidden


def _read(log: Any, n_arms: int, *, trusted: bool) -> DecisionLog:
    """Return a log from wherever it is."""
    if isinstance(log, DecisionLog):
        found = log._replace(probability=np.ones(log.loss.size)) if trusted else log
    else:
        try:
            import pyarrow as pa  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise EvaluationError(f"A log is read with pyarrow. {pip_install('pyarrow')}") from error
        if isinstance(log, str | os.PathLike):
            return _fitting(read_log(log, n_arms, trusted=trusted), n_arms)
        try:
            table = log if isinstance(log, pa.Table) else pa.table(log if not isinstance(log, Mapping) else dict(log))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise EvaluationError(
                f"A log is the path of a Parquet file, a table, or a dict of columns, and {short(log)} is none: {error}"
            ) from error
        found = from_table(table, n_arms, trusted=trusted)
    return _fitting(found, n_arms)


def _fitting(found: DecisionLog, n_arms: int) -> DecisionLog:
    if found.n_arms != n_arms:
        raise EvaluationError(f"The log is of {found.n_arms} arms, and the agent has {n_arms}.")
    return found
