"""Rounds of a log, which an agent or a key learns without having played them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._install import pip_install
from sidelong.checks import short
from sidelong.errors import EvaluationError, LearnerError
from sidelong.evaluation.decision_log import DecisionLog, from_table, read_log
from sidelong.graphs.presence import present

if TYPE_CHECKING:
    from sidelong.agent.setup import Setup
    from sidelong.graphs.graph import FeedbackGraph


def replay(setup: Setup, state: Any, log: Any) -> int:
    """Let a learner learn the rounds of a log; return how many had losses."""
    learner, graph = setup.learner, setup.graph
    if learner.replay is None:
        title = learner.title
        raise LearnerError(f"learn needs a learner with a rule for it, and {title} has none. Use exp3-set.")
    found = _read(log, graph.n_arms)
    told = np.flatnonzero(found.told)
    _check_seen(found, told, graph)
    ends = np.searchsorted(found.round, told, "right")
    learner.replay(setup.params, state, ends, found.arm, found.loss, found.probability, np.empty(graph.n_arms))
    return int(told.size)


def _check_seen(found: DecisionLog, told: np.ndarray, graph: FeedbackGraph) -> None:
    """Refuse a log in which an arm could not be seen: it would count as if it had cost nothing.

    Where the log does not say how likely each arm was to be seen, what it reveals says something. A play that was
    certain and revealed itself alone left no chance to the others. In a log in which all that was seen was certain to
    be, an arm that was never seen had no chance either; and one that is as likely as the average stays unseen in 20
    rounds for each arm with a chance of exp(-20).
    """
    K = graph.n_arms
    if found.chances is not None:
        hidden = (found.chances[told] <= 0.0).sum(axis=0)
    else:
        certain = found.probability >= 1.0 - 1e-9
        alone = certain & bool((np.bincount(found.round, minlength=found.n_rounds)[told] == 1).all())
        hidden = int(alone.sum()) - np.bincount(found.arm[alone], minlength=K)
        never = np.bincount(found.arm, minlength=K) == 0
        hidden = np.where(never & (certain.all() or told.size >= 20 * K), told.size, hidden)
    arms = np.flatnonzero((hidden > 0) & present(graph))
    if arms.size:
        raise EvaluationError(
            f"In {hidden[arms[0]]:,} of the {told.size:,} rounds of the log, arm {graph.arm_name(int(arms[0]))} could "
            f"not be seen, and would count as if it had cost nothing. Learn rounds in which each arm could be; for an "
            f"arm that is new, learn first and then use add_arm."
        )


def _read(log: Any, n_arms: int) -> DecisionLog:
    """Return a log from wherever it is."""
    if isinstance(log, DecisionLog):
        found = log
    else:
        try:
            import pyarrow as pa  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise EvaluationError(f"A log is read with pyarrow. {pip_install('pyarrow')}") from error
        if isinstance(log, str | os.PathLike):
            return _fitting(read_log(log, n_arms), n_arms)
        try:
            table = log if isinstance(log, pa.Table) else pa.table(log if not isinstance(log, Mapping) else dict(log))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise EvaluationError(
                f"A log is the path of a Parquet file, a table, or a dict of columns, and {short(log)} is none: {error}"
            ) from error
        found = from_table(table, n_arms)
    return _fitting(found, n_arms)


def _fitting(found: DecisionLog, n_arms: int) -> DecisionLog:
    if found.n_arms != n_arms:
        raise EvaluationError(f"The log is of {found.n_arms} arms, and the agent has {n_arms}.")
    return found
