"""What an outcome revealed, and checks of what it is made from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import check_number, check_whole
from sidelong.errors import OutcomeError
from sidelong.tables import in_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

    #: What an agent, a family and an experiment of the service are told: by arm, or in the order of the revealed arms.
    Losses = Mapping[int, float] | Mapping[str, float] | Sequence[float] | npt.NDArray[np.float64]

number = partial(check_number, OutcomeError)


@dataclass(frozen=True, eq=False)
class Revealed:
    """What an outcome revealed, for `tell` to take whole: ``agent.tell(decision, revealed)``.

    It knows its arm, so that it cannot be told about a decision that plays another one.
    """

    arm: int  #: that was played
    losses: npt.NDArray[np.float64]  #: of the arms that were revealed, in their order
    graph: FeedbackGraph  #: of the round: what every arm would have revealed
    foreseen: bool = False  #: whether the graph was known before the draw, so that `tell` takes no other one


def ascending(name: str, values: Any, most: float = math.inf, *, least: int = 2) -> npt.NDArray[np.float64]:
    """Return `values` as an array, if they are `least` or more numbers from 0 to `most`, each above the one before."""
    given: list[Any] = list(values) if in_order(values) else []
    array = np.array([number(f"Each of {name}", value, least=0, most=most) for value in given], np.float64)
    if array.size < least or (np.diff(array) <= 0).any():
        several = "two" if least == 2 else "one"
        raise OutcomeError(f"{name} must be {several} or more numbers, each above the one before, not {values!r}.")
    array.setflags(write=False)
    return array


def checked_arm(arm: Any, n_arms: int) -> int:
    """Return `arm` as an int if it is one of the arms."""
    return check_whole(OutcomeError, "arm", arm, 0, n_arms - 1)
