"""Online decisions that learn from what they see on the side.

In each round one of K arms is played, and a feedback graph says whose losses that reveals. sidelong is the reference
implementation of EXP3.G++ (Rouyer, van der Hoeven, Cesa-Bianchi, Seldin 2022). That learner is near-optimal against any
adversary and in a stochastic world. It need not know in which of them it plays, nor for how long. For products we
recommend our own learner, "glance".

    >>> import sidelong as sl
    >>> graph = sl.graphs.nested(24)  # ordering q reveals the cost of every smaller order
    >>> agent = sl.Agent("exp3.g++", graph, seed=7)
    >>> decision = agent.ask()
    >>> agent.tell(decision, {int(arm): 0.5 for arm in decision.reveals})
    True
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from sidelong._install import CLIENT_ONLY, LeftOut
from sidelong._version import __version__
from sidelong.errors import SidelongError

if TYPE_CHECKING:
    from sidelong import evaluation, graphs, learners, losses, outcomes, theory
    from sidelong.agent import Agent, Batch, ContextualAgent, Decision, Family, Forecast, Newsvendor
    from sidelong.graphs import FeedbackGraph, GraphSequence
    from sidelong.service.client import connect
    from sidelong.simulation import Comparison, Result, compare, simulate
    from sidelong.studies import read_results

__all__ = [
    "Agent",
    "Batch",
    "Comparison",
    "ContextualAgent",
    "Decision",
    "Family",
    "FeedbackGraph",
    "Forecast",
    "GraphSequence",
    "Newsvendor",
    "Result",
    "SidelongError",
    "__version__",
    "compare",
    "connect",
    "evaluation",
    "graphs",
    "learners",
    "losses",
    "outcomes",
    "read_results",
    "simulate",
    "theory",
]

#: Where each name lives. They are imported when first used, so that `import sidelong` does not load the compiler.
_HOMES = {
    "Agent": "sidelong.agent",
    "Batch": "sidelong.agent",
    "Comparison": "sidelong.simulation",
    "ContextualAgent": "sidelong.agent",
    "Decision": "sidelong.agent",
    "Family": "sidelong.agent",
    "FeedbackGraph": "sidelong.graphs",
    "Forecast": "sidelong.agent",
    "GraphSequence": "sidelong.graphs",
    "Newsvendor": "sidelong.agent",
    "Result": "sidelong.simulation",
    "compare": "sidelong.simulation",
    "connect": "sidelong.service.client",
    "evaluation": "",
    "graphs": "",
    "learners": "",
    "losses": "",
    "outcomes": "",
    "read_results": "sidelong.studies",
    "simulate": "sidelong.simulation",
    "theory": "",
}

#: What the distribution sidelong-client has of these names.
_OF_A_CLIENT = {"FeedbackGraph", "GraphSequence", "SidelongError", "__version__", "connect", "graphs", "outcomes"}

if CLIENT_ONLY:
    sys.meta_path.append(LeftOut)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'sidelong' has no attribute {name!r}")
    home = _HOMES[name]
    value: object = (
        getattr(importlib.import_module(home), name) if home else importlib.import_module(f"sidelong.{name}")
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_OF_A_CLIENT if CLIENT_ONLY else __all__)
