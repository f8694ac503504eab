"""What an outcome revealed, and checks of what it is made from."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.errors import OutcomeError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

__all__ = ["Revealed", "ascending", "checked_arm", "in_order", "number", "plain", "yes_or_no"]


class Revealed(NamedTuple):
    """What `Agent.tell` wants to know after the decision: ``agent.tell(decision, *revealed)``."""

    losses: npt.NDArray[np.float64]  #: of the arms that were revealed, in their order
    graph: FeedbackGraph  #: of the round: what every arm would have revealed


def plain(value: Any) -> Any:
    """Return `value` as a number of Python if it is one, else NaN; NumPy's would overflow in some comparisons."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, Real) and not isinstance(value, bool) else math.nan


def number(name: str, value: Any, least: float, most: float = math.inf) -> float:
    """Return `value` as a float if it is a finite number from `least` to `most`."""
    if not float(least) <= plain(value) <= min(float(most), sys.float_info.max):
        until = f"from {least:g} to {most:g}" if most < math.inf else f"of at least {least:g}"
        raise OutcomeError(f"{name} must be a number {until}, not {value!r}.")
    return float(value)


def yes_or_no(name: str, value: Any) -> bool:
    """Return `value` as a bool if it is one; 0 and 1 are not."""
    if not isinstance(value, bool | np.bool_):
        raise OutcomeError(f"{name} must be True or False, not {value!r}.")
    return bool(value)


def in_order(values: Any) -> bool:
    """Tell whether `values` are several, one after the other: a list, an array, but no set, text or mapping."""
    if isinstance(values, np.ndarray):
        return values.ndim > 0
    return isinstance(values, Iterable) and not isinstance(values, str | bytes | AbstractSet | Mapping)


def ascending(name: str, values: Any, most: float = math.inf) -> npt.NDArray[np.float64]:
    """Return `values` as an array, if they are two or more numbers from 0 to `most`, each above the one before."""
    given: list[Any] = list(values) if in_order(values) else []
    array = np.array([number(f"Each of {name}", value, 0.0, most) for value in given], np.float64)
    if array.size < 2 or (np.diff(array) <= 0).any():
        raise OutcomeError(f"{name} must be two or more numbers, each above the one before, not {values!r}.")
    array.setflags(write=False)
    return array


def checked_arm(arm: Any, n_arms: int) -> int:
    """Return `arm` as an int if it is one of the arms."""
    if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < n_arms:
        raise OutcomeError(f"arm must be one of 0 to {n_arms - 1}, as decision.arm is, not {arm!r}.")
    return int(arm)
