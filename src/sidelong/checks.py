"""Small rules that all packages share: what a whole number is, what a number is, and how a message says it.

Each check returns the value, or raises the error of the package that asks with the rule and the value it was given.
"""

from __future__ import annotations

import difflib
import math
import operator
import reprlib
import sys
from numbers import Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import TypeIs

#: What people type where one of the other names is meant.
_SAME_THING = (
    {"horizon", "rounds", "T", "n_rounds", "steps", "n_steps", "time_horizon"},
    {"eta_scale", "eta", "lr", "learning_rate", "step_size"},
    {"independence", "alpha", "independence_number"},
    {"strong_independence", "alpha", "independence", "strong_independence_number"},
    {"width", "c", "confidence"},
    {"n_arms", "n", "K", "arms"},
    {"seed", "random_state", "random_seed", "rng"},
    {"runs", "n_runs", "repetitions", "n_repetitions"},
)

_repr = reprlib.Repr()
_repr.maxother = _repr.maxstring = _repr.maxlong = 60


def is_whole(value: Any) -> TypeIs[int]:
    """Tell whether `value` is a whole number, of Python, NumPy or anyone else; True and False are none."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def check_whole(error: type[Exception], name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return `value` as an int if it is a whole number from `least` to `most`."""
    if not is_whole(value) or not least <= operator.index(value) <= (math.inf if most is None else most):
        until = f"of at least {least}" if most is None else f"from {least} to {_large(most)}"
        raise error(f"{name} must be a whole number {until}, not {short(value)}.")
    return operator.index(value)


def plain(value: Any) -> Any:
    """Return `value` as a number of Python if it is one, else NaN; NumPy's would overflow in some comparisons."""
    value = _item(value)
    return value if isinstance(value, Real) and not isinstance(value, bool) else math.nan


def as_float(value: Any) -> float:
    """Return `value` as a float: NaN if it is no number, infinite if it is too large."""
    try:
        return float(plain(value))
    except OverflowError:
        return math.inf


def check_number(
    error: type[Exception],
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
) -> float:
    """Return `value` as a float if it is a finite number, above `above` and from `least` to `most`."""
    read = plain(value)
    above, least, most = float(above), float(least), float(most)
    if not (read > above and least <= read <= most and abs(read) <= sys.float_info.max):
        kind = "a number" if most < math.inf else "a finite number"
        limits = [f"above {above:g}"] * (above > -math.inf) + [f"of at least {least:g}"] * (least > -math.inf)
        limits += [f"at most {most:g}"] * (most < math.inf)
        within = f" from {least:g} to {most:g}" if -math.inf < least and most < math.inf else f" {' and '.join(limits)}"
        raise error(f"{name} must be {kind}{within.rstrip()}, not {short(value)}.")
    return float(read)


def check_flag(error: type[Exception], name: str, value: Any) -> bool:
    """Return `value` as a bool if it is one; 0 and 1 are not."""
    flag = _item(value)
    if not isinstance(flag, bool):
        raise error(f"{name} must be True or False, not {short(value)}.")
    return flag


def check_one_of(error: type[Exception], name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is among `allowed`."""
    if value not in allowed:
        choices = " or ".join(repr(each) for each in allowed)
        raise error(f"{name} must be {choices}, not {short(value)}.{nearest(str(value), allowed)}")
    return value


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean ...?" where some known name is close or means the same, else nothing."""
    known = list(known)
    same = [each for each in known if any({name, each} <= names for names in _SAME_THING)]
    close = same or difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def short(value: Any) -> str:
    """Return a value as code for a message, with the middle left out if it is long."""
    return _repr.repr(_item(value))


def _item(value: Any) -> Any:
    """Return a scalar of NumPy, or an array that is a single value, as Python has it."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


def _large(limit: int) -> str:
    """Return a limit for a message: 2**64 - 1 says more than its twenty digits."""
    return f"2**{limit.bit_length()} - 1" if limit >= 2**31 and limit & (limit + 1) == 0 else f"{limit:,}"
