"""What an agent knows before it is asked: what its maker believes of the arms, and logged rounds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._install import pip_install
from sidelong.checks import check_number, short
from sidelong.errors import EvaluationError, GraphError, LearnerError
from sidelong.evaluation.decision_log import DecisionLog, from_table, read_log
from sidelong.graphs.presence import arm_of, present

if TYPE_CHECKING:
    from sidelong.agent.running import RunningLearner
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner
    from sidelong.outcomes.scale import Scale


def tilt(learner: Learner, params: Any, state: Any, graph: FeedbackGraph, prior: Any, scale: Scale | None) -> float:
    """Let a learner begin with a prior; return the most that it can add to the bound on the regret."""
    if learner.tilt is None:
        raise LearnerError(f"prior needs a learner with a bound for it, and {learner.title} has none. Use exp3-set.")
    if not isinstance(prior, Mapping):
        raise LearnerError(f"prior is {{arm: (mean, weight)}}, not {short(prior)}.")
    believed = {}
    for arm, pair in prior.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise LearnerError(f"The prior of an arm is (mean, weight); that of {short(arm)} is {short(pair)}.")
        mean, weight = pair
        try:
            number = arm_of(graph, arm, "prior")
        except GraphError as error:
            raise LearnerError(str(error)) from error
        if number in believed:
            raise LearnerError(f"prior names arm {graph.arm_name(number)} twice, by number and by label.")
        mean = mean if scale is None else scale.losses([mean])[0]
        name = graph.arm_name(number)
        believed[number] = (
            check_number(LearnerError, f"The mean that is believed of arm {name}", mean, least=0, most=1),
            check_number(LearnerError, f"The weight of the prior of arm {name}", weight, least=0, most=1e6),
        )
    return float(learner.tilt(params, state, believed))


def learn(learner: RunningLearner, graph: FeedbackGraph, log: Any) -> int:
    """Let a learner learn the rounds of a log; return how many had losses."""
    if learner.module.replay is None:
        raise LearnerError(
            f"learn needs a learner with a rule for it, and {learner.module.title} has none. Use exp3-set."
        )
    found = _read(log, graph.n_arms)
    told = np.flatnonzero(found.told)
    _check_seen(found, told, graph)
    ends = np.searchsorted(found.round, told, "right")
    room = np.empty(graph.n_arms)
    learner.module.replay(learner.params, learner.state, ends, found.arm, found.loss, found.probability, room)
    learner.drawn = 0
    return int(told.size)


def _check_seen(found: DecisionLog, told: np.ndarray, graph: FeedbackGraph) -> None:
    """Refuse a log in which an arm could not be seen: it would count as if it had cost nothing."""
    if found.chances is not None:
        hidden = (found.chances[told] <= 0.0).sum(axis=0)
    else:  # an arm that is as likely as the average is not seen in so many rounds with a chance of exp(-20)
        enough = told.size >= 20 * graph.n_arms
        hidden = np.where(np.bincount(found.arm, minlength=graph.n_arms) > 0, 0, told.size * enough)
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
