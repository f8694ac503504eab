"""Checks of the options that learners take: each returns the value, or says what is wrong with it."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from sidelong.checks import check_number, check_one_of
from sidelong.errors import GraphError, LearnerError
from sidelong.graphs.cover import greedy_cover

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner

number = partial(check_number, LearnerError)
one_of = partial(check_one_of, LearnerError)


def load(name: str) -> Learner:
    """Return the learner of a module beside this one: imported when it is needed, and few need variants."""
    return cast("Learner", importlib.import_module(f"sidelong.learners.{name}").LEARNER)


def graph_number(graph: FeedbackGraph, what: str, given: float | None, instead: str = "") -> float:
    """Return a number of a graph: what the option of its name gives, or what is computed and then known exactly.

    What a time limit leaves open would differ between machines, and so would every bit after it.
    """
    if given is not None:
        return number(what, given, least=1, most=graph.n_arms)
    try:
        found = getattr(graph.numbers(), what)
    except GraphError as error:
        valid = f"any number from it up to {graph.n_arms}"
        raise LearnerError(f"{error} The graph is too large for that. Give {what}=..., {valid}{instead}.") from None
    if found.value is None:
        name = what.replace("_", " ")
        raise LearnerError(
            f"The {name} number of this graph is hard: after ten seconds it is only known to lie from {found.lower} to "
            f"{found.upper}. Give {what}={found.upper}, which is valid{instead}."
        )
    return float(found.value)


def initial_arms(graph: FeedbackGraph, start: str) -> np.ndarray:
    """Return the arms of the initial rounds: all, a greedy cover of the graph, or none."""
    one_of("start", start, ("all", "cover", "none"))
    if start == "cover":
        return greedy_cover(graph).astype(np.uint32)
    return np.arange(graph.n_arms if start == "all" else 0, dtype=np.uint32)
