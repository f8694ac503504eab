"""Checks of the options that learners take: each returns the value, or says what is wrong with it."""

from __future__ import annotations

import difflib
import math
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from sidelong.errors import LearnerError
from sidelong.graphs.cover import cover_largest_first

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.graphs.numbers import GraphNumber

__all__ = ["initial_arms", "nearest", "number", "one_of", "settled"]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean ...?" where some known name is close, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is among `allowed`."""
    if value not in allowed:
        choices = " or ".join(repr(each) for each in allowed)
        raise LearnerError(f"{name} must be {choices}, not {value!r}.{nearest(str(value), allowed)}")
    return value


def number(
    name: str, value: float | None, *, above: float = -math.inf, least: float = -math.inf, most: float = math.inf
) -> float:
    """Return `value` as a float if it is a finite number, above `above` and from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise LearnerError(f"{name} must be a finite number, not {value!r}.")
    if not (value > above and least <= value <= most):
        bounds = [f"above {above:g}"] if above > -math.inf else []
        bounds += [f"at least {least:g}"] if least > -math.inf else []
        bounds += [f"at most {most:g}"] if most < math.inf else []
        raise LearnerError(f"{name} must be {' and '.join(bounds)}, not {value!r}.")
    return float(value)


def settled(found: GraphNumber, what: str, instead: str = "") -> int:
    """Return a number of a graph that is known exactly; `what` names it, and its option, as in "independence".

    What a time limit leaves open would differ between machines, and so would every bit after it.
    """
    if found.value is None:
        name = what.replace("_", " ")
        raise LearnerError(
            f"The {name} number of this graph is hard: after ten seconds it is only known to lie from {found.lower} to "
            f"{found.upper}. Give {what}={found.upper}, which is valid{instead}."
        )
    return found.value


def initial_arms(graph: FeedbackGraph, start: str) -> np.ndarray:
    """Return the arms of the initial rounds: all, a greedy cover of the graph, or none."""
    one_of("start", start, ("all", "cover", "none"))
    K = graph.n_arms
    arms = np.arange(K, dtype=np.uint32)
    if start == "none":
        return arms[:0]
    if start == "cover":
        chosen = np.zeros(K, np.bool_)
        free, heap = np.zeros(K + 1, np.uint32), np.zeros(K, np.int64)
        cover_largest_first(graph.arrays, arms, np.zeros(K), chosen, free, heap)
        return arms[chosen]
    return arms
