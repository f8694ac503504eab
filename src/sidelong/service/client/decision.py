"""A decision that came over the network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


class RemoteDecision:
    """What a service answers to `ask`, with the names of an agent's `Decision`."""

    __slots__ = ("_experiment", "_reply", "_reveals")

    def __init__(self, reply: dict[str, Any], experiment: str) -> None:
        self._reply = reply
        self._experiment = experiment
        self._reveals = np.array(reply["reveals"], np.int32)
        self._reveals.setflags(write=False)

    @property
    def id(self) -> str:
        """What names this decision: pass it to `tell`, from anywhere."""
        return str(self._reply["id"])

    @property
    def experiment(self) -> str:
        """The name of the experiment that made it."""
        return self._experiment

    @property
    def round(self) -> int:
        """The number of the round, from 1."""
        return int(self._reply["round"])

    @property
    def arm(self) -> int:
        """The arm to play."""
        return int(self._reply["arm"])

    @property
    def probability(self) -> float:
        """The probability with which `arm` was drawn; NaN if the learner draws without knowing it, as ts-n does."""
        p = self._reply["probability"]
        return math.nan if p is None else float(p)

    @property
    def drawn_by(self) -> str:
        """What has drawn it: "learner", or "holdout", "frozen" or "fallback", from which the learner does not learn."""
        return str(self._reply["drawn_by"])

    @property
    def reveals(self) -> npt.NDArray[np.int32]:
        """The arms whose losses playing `arm` reveals: what `tell` wants to know."""
        return self._reveals

    @property
    def expires_at(self) -> str | None:
        """Until when the service waits for feedback, in UTC; None if it always does."""
        expires: str | None = self._reply["expires_at"]
        return expires

    def __getattr__(self, name: str) -> Any:
        if name in {"probabilities", "observe_probabilities", "revealed_probabilities", "graph"}:
            raise AttributeError(
                f"A decision that came over the network has no {name}. experiment.look_up(decision) has the "
                f"probabilities of observing the revealed arms, experiment.estimates().weights those of the next draw."
            )
        raise AttributeError(f"'RemoteDecision' object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<RemoteDecision {self.id}: play arm {self.arm}, drawn with probability {self.probability:.4g}>"
