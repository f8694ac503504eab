"""The learners by name, and how to find one."""

from __future__ import annotations

import importlib
import inspect
import json
from numbers import Real
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sidelong.errors import LearnerError, ObservabilityError
from sidelong.learners.options import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.graphs.sequences import GraphSequence

__all__ = ["check_graph", "configure", "find", "names", "plain_options"]

#: The name of each learner and the module beside this one that is it.
_MODULES = {"exp3.g++": "exp3gpp"}


def names() -> tuple[str, ...]:
    """Return the names of all learners: what `Agent` and `simulate` take."""
    return tuple(_MODULES)


def find(learner: str | ModuleType) -> ModuleType:
    """Return the module of a learner; a module is taken for a learner of the caller's own."""
    if isinstance(learner, ModuleType):
        missing = [
            each
            for each in (
                "NAME",
                "NEEDS_SELF_LOOPS",
                "TRACES",
                "Params",
                "configure",
                "init",
                "distribution",
                "update",
            )
            if not hasattr(learner, each)
        ]
        if missing:
            raise LearnerError(
                f"A learner's module defines NAME, NEEDS_SELF_LOOPS, TRACES, Params, configure, init, distribution and "
                f"update; {learner.__name__} lacks {', '.join(missing)}."
            )
        return learner
    if not isinstance(learner, str) or learner not in _MODULES:
        raise LearnerError(
            f"There is no learner named {learner!r}.{nearest(str(learner).lower(), _MODULES)} "
            f"The learners are: {', '.join(_MODULES)}."
        )
    return importlib.import_module(f"sidelong.learners.{_MODULES[learner]}")


def plain_options(learner: ModuleType, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with NumPy's and other numbers as plain ones, so that they can be written to a file."""
    plain = {name: _plain(value) for name, value in options.items()}
    for name, value in plain.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise LearnerError(
                f"Options are numbers, text, and lists of them; {name} of {learner.NAME} is {value!r}."
            ) from None
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Real) and not isinstance(value, int | float):
        return int(float(value)) if float(value).is_integer() else float(value)
    return value


def configure(learner: ModuleType, graph: FeedbackGraph, options: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the learner's constants for these options."""
    options = plain_options(learner, options)
    known = [
        name
        for name, parameter in inspect.signature(learner.configure).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    for name in options:
        if name not in known:
            raise LearnerError(
                f"{learner.NAME} has no option {name!r}.{nearest(name, known)} "
                f"Its options are: {', '.join(known) or 'none'}."
            )
    check_graph(learner, graph)
    return cast("tuple[Any, ...]", learner.configure(graph, **options))


def check_graph(learner: ModuleType, graph: FeedbackGraph | GraphSequence) -> None:
    """Refuse a graph that the learner cannot play on, naming the arm."""
    if learner.NEEDS_SELF_LOOPS and graph.arms_without_self_loop.size:
        arm = int(graph.arms_without_self_loop[0])
        raise ObservabilityError(
            f"{learner.NAME} needs every arm to reveal itself, and arm {arm} of {graph!r} does not. "
            f"Add the edge ({arm}, {arm}), or all of them with graph.with_self_loops()."
        )
