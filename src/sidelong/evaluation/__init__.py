"""What a log says, without a server: what other arms, or another distribution, would have cost in the same rounds."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from sidelong.evaluation.decision_log import DecisionLog, read_log
from sidelong.evaluation.offpolicy import CostEstimates, evaluate_arms, evaluate_distribution
from sidelong.evaluation.regret import Regret, regret
from sidelong.evaluation.sample_ratio import sample_ratio

if TYPE_CHECKING:
    from sidelong.evaluation.certificates import Certificate, certificate
    from sidelong.evaluation.turning import WorldHealth

__all__ = [
    "Certificate",
    "CostEstimates",
    "DecisionLog",
    "Regret",
    "WorldHealth",
    "certificate",
    "evaluate_arms",
    "evaluate_distribution",
    "read_log",
    "regret",
    "sample_ratio",
]

#: Where the names are that are imported when they are first used: these load the compiler, and estimates do without.
_LATER = {"Certificate": "certificates", "certificate": "certificates", "WorldHealth": "turning"}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
