"""Every error that sidelong raises on purpose.

::

    SidelongError
    ├── GraphError                a graph cannot be built from what was given
    │   ├── GraphFileError        a graph file cannot be read; names the file and the line
    │   └── ObservabilityError    a learner cannot play on this graph; names the arm
    ├── LearnerError              an unknown learner, or an option it does not take
    ├── CodeError                 code of your own cannot be imported or compiled; names the line
    ├── FeatureError              features that cannot be read, or are not like the first ones
    ├── AdviceError               advice that names no arm, or gives probabilities that are none
    ├── CostError                 costs that are missing or beyond their bounds, or no arm that fits under a ceiling
    ├── LossError                 a loss outside [0, 1], missing, or of an arm that was not revealed
    │   └── OutcomeError          what happened contradicts itself, or leaves its range
    ├── WorldError                a world of losses cannot be built from what was given
    ├── DecisionError             a decision cannot be told or cancelled
    │   ├── UnknownDecisionError  this agent did not make it
    │   ├── ConflictError         it was told before, with something else
    │   └── ExpiredError          the service no longer waits for its feedback
    ├── FamilyError               a family has no such key, cannot take it, or parts do not fit together
    ├── StateFileError            a state file is truncated, altered or newer than this program
    ├── SimulationError           a simulation cannot be run as asked
    │   └── BinaryLossError       a learner needs losses 0 or 1, and the world gave another
    ├── TheoryError               a bound cannot be evaluated for what was given
    ├── StudyError                a study file is wrong, or its results cannot be written or read
    │   └── ResultFileError       a result file is truncated or altered
    ├── ServiceError              the decision service cannot start, or refused a request
    └── EvaluationError           a log of decisions cannot be evaluated as asked

A message gives the rule, the value received and what to do. An error is raised before anything changes:
the graph, the agent or the file is as it was.
"""

from __future__ import annotations


class SidelongError(Exception):
    """The root: catching it catches every error that sidelong raises on purpose."""


class GraphError(SidelongError, ValueError):
    """A graph cannot be built from what was given."""


class GraphFileError(GraphError):
    """A graph file cannot be read; the message names the file and, where it has lines, the line."""


class ObservabilityError(GraphError):
    """A learner cannot play on this graph; the message names the arm."""


class LearnerError(SidelongError, ValueError):
    """An unknown learner, or an option that it does not take."""


class CodeError(SidelongError, ValueError):
    """Code of your own that cannot be imported or compiled; the message names the file and the line."""


class FeatureError(SidelongError, ValueError):
    """Features that cannot be read, or that are not like the first ones."""


class AdviceError(SidelongError, ValueError):
    """Advice that names no arm, or gives probabilities that are none; or a learner that takes no advice."""


class CostError(SidelongError, ValueError):
    """Costs that are missing, negative, above their bounds, or of an arm that was not revealed.

    Or no arm is there that may still be played under the ceiling.
    """


class LossError(SidelongError, ValueError):
    """A loss outside [0, 1], missing, or of an arm that was not revealed.

    `arm` is the number of the arm, where it is one, and `place` says which of several outcomes it is, counted from 0.
    """

    def __init__(self, message: str, *, arm: int | None = None, place: int | None = None) -> None:
        super().__init__(message)
        self.arm = arm
        self.place = place


class OutcomeError(LossError):
    """What happened cannot be turned into losses: it contradicts itself, or leaves its range."""


class WorldError(SidelongError, ValueError):
    """A world of losses cannot be built from what was given."""


class DecisionError(SidelongError):
    """A decision cannot be told or cancelled."""


class UnknownDecisionError(DecisionError):
    """The agent that was told did not make the decision."""


class ConflictError(DecisionError):
    """The decision was told before, with something else."""


class ExpiredError(DecisionError):
    """The decision has expired: the service keeps feedback that comes now, and does not learn from it."""


class FamilyError(SidelongError, ValueError):
    """A family has no such key, cannot take it, or parts of families do not fit together."""


class StateFileError(SidelongError):
    """A state file is truncated, altered or newer than this program."""


class SimulationError(SidelongError, ValueError):
    """A simulation cannot be run as asked."""


class BinaryLossError(SimulationError):
    """A learner needs losses that are 0 or 1, and the world gave another."""


class TheoryError(SidelongError, ValueError):
    """A bound cannot be evaluated for what was given."""


class StudyError(SidelongError, ValueError):
    """A study file is wrong, or its results cannot be written or read."""


class ResultFileError(StudyError):
    """A result file is truncated or altered."""


class ServiceError(SidelongError):
    """The decision service cannot start, or refused a request.

    `status` and `code` are those of the reply; the documentation of the service lists them. `path` says which value was
    wrong, and `value` is that value. After `retry_after` seconds the same request may succeed.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 500,
        code: str = "internal",
        path: str | None = None,
        value: object = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.path = path
        self.value = value
        self.retry_after = retry_after


class EvaluationError(SidelongError, ValueError):
    """A log of decisions cannot be evaluated as asked."""
