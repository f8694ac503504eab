"""How late the feedback of a round comes in a simulation: a function of seed, run, round and, for one law, the arm.

A delay of 0 is feedback before the next draw; with d, round t is learned after the draw of round t + d. A law has a
largest delay, `most`: what would come later never comes, and is given up when it is that old. `sl.simulate` takes a
law, a whole number, or a text as a study file has it: ``delay="pareto:1:1.5:200"``.

The bounds with late feedback (docs/late.md) cover every law but `by_arm`, which is here to show what breaks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import kernel
from sidelong.checks import check_number, check_whole, nearest, short
from sidelong.errors import SimulationError
from sidelong.numerics import DELAYS, exp, log, uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sidelong.numerics import Whole

_MOST = 2**40
_CONSTANT, _UNIFORM, _GEOMETRIC, _PARETO, _BY_ARM = range(5)

_whole = partial(check_whole, SimulationError)
_number = partial(check_number, SimulationError)


@dataclass(frozen=True, eq=False)
class Delay:
    """A law of delays; the functions of this module make one."""

    text: str  #: how a study file names it
    kind: int
    most: int  #: the largest delay of feedback that comes
    numbers: tuple[float, ...]

    @property
    def is_none(self) -> bool:
        """Whether feedback always comes before the next draw."""
        return self.kind == _CONSTANT and self.most == 0

    @property
    def arrays(self) -> np.ndarray:
        """What `delay_of` takes: the kind, the largest delay, and the numbers of the law."""
        return np.array([self.kind, self.most, *self.numbers], np.float64)

    def __repr__(self) -> str:
        return f"<Delay {self.text}>"


def constant(rounds: int) -> Delay:
    """Let feedback always come so many rounds later."""
    rounds = _whole("delay", rounds, 0, _MOST)
    return Delay(str(rounds), _CONSTANT, rounds, (float(rounds),))


def uniform_from(low: int, high: int) -> Delay:
    """Let each whole number of rounds from `low` to `high` be equally likely."""
    low = _whole("delay: low", low, 0, _MOST)
    high = _whole("delay: high", high, low, _MOST)
    return Delay(f"uniform:{low}:{high}", _UNIFORM, high, (float(low), float(high - low + 1)))


def geometric(mean: float, most: int) -> Delay:
    """Let the feedback that has not come be equally likely to come after each further round."""
    mean = _number("delay: mean", mean, above=0)
    most = _whole("delay: most", most, 0, _MOST)
    return Delay(f"geometric:{mean:g}:{most}", _GEOMETRIC, most, (1.0 / math.log(mean / (1.0 + mean)),))


def pareto(least: float, shape: float, most: int) -> Delay:
    """Let a delay exceed d with the probability (least / d)^shape: with a shape up to 1 it has no mean."""
    least = _number("delay: least", least, above=0)
    shape = _number("delay: shape", shape, least=0.05)
    most = _whole("delay: most", most, 0, _MOST)
    return Delay(f"pareto:{least:g}:{shape:g}:{most}", _PARETO, most, (least, 1.0 / shape))


def by_arm(*rounds: int) -> Delay:
    """Let the feedback of each arm have its own delay, which no bound covers."""
    read = [_whole(f"delay: that of arm {arm}", each, 0, _MOST) for arm, each in enumerate(rounds)]
    if not read:
        raise SimulationError("delay: by_arm takes one number for each arm, and got none.")
    return Delay(":".join(["by_arm", *map(str, read)]), _BY_ARM, max(read), tuple(map(float, read)))


_LAWS: dict[str, tuple[Callable[..., Delay], Sequence[type] | None]] = {
    "constant": (constant, (int,)),
    "uniform": (uniform_from, (int, int)),
    "geometric": (geometric, (float, int)),
    "pareto": (pareto, (float, float, int)),
    "by_arm": (by_arm, None),
}


def read_delay(given: Any, n_arms: int) -> Delay:
    """Return the law that a whole number, a text such as "geometric:5:100" or a law is."""
    law = given if isinstance(given, Delay) else _parse(given) if isinstance(given, str) else constant(given)
    if law.kind == _BY_ARM and len(law.numbers) != n_arms:
        raise SimulationError(f"delay: by_arm has one number for each of the {n_arms} arms, not {len(law.numbers)}.")
    return law


def _parse(text: str) -> Delay:
    name, *parts = text.split(":")
    if name not in _LAWS:
        raise SimulationError(
            f"delay has no law {short(name)}.{nearest(name, _LAWS)} The laws are: {', '.join(_LAWS)}. Write the "
            f"numbers of a law after its name, as in geometric:5:100."
        )
    make, kinds = _LAWS[name]
    kinds = [int] * len(parts) if kinds is None else kinds
    try:
        numbers = [kind(part) for kind, part in zip(kinds, parts, strict=True)]
    except ValueError:
        raise SimulationError(
            f"delay: {name} takes {len(kinds)} numbers with colons between them, not {short(text)}."
        ) from None
    return make(*numbers)


@kernel
def delay_of(law: np.ndarray, seed: Whole, run: Whole, t: Whole, arm: Whole) -> Whole:
    """Return how many rounds later the feedback of round t comes; more than the largest delay if it never does."""
    kind = law[0]
    if kind == _CONSTANT:
        return np.int64(law[2])
    if kind == _BY_ARM:
        return np.int64(law[2 + arm])
    u = uniform(seed, DELAYS, run, t, np.int64(0))
    if kind == _UNIFORM:
        return np.int64(law[2]) + np.int64(u * law[3])
    late = log(1.0 - u) * law[2] if kind == _GEOMETRIC else law[2] * exp(-log(1.0 - u) * law[3])
    return np.int64(min(late, law[1] + 1.0))
