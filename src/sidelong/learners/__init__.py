"""The learners: one algorithm a file, each readable beside its paper."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sidelong.learners.catalogue import names
from sidelong.learners.interface import Learner, Need, kernel

if TYPE_CHECKING:
    from types import ModuleType

    from sidelong.graphs.graph import FeedbackGraph

__all__ = ["Learner", "Need", "check", "kernel", "names"]


def check(
    learner: str | ModuleType | Learner, graph: FeedbackGraph | None = None, *, rounds: int = 200, **options: Any
) -> Any:
    """Check the contract of a learner, such as one of your own, and report what it breaks, with round and arm.

    Kernels raise no error, and compile. Its probabilities are not negative and sum to 1. No kernel reads or writes
    beyond the end of an array that it is given, which machine code does not notice, nor writes what is not its own.
    Feedback may come late, in any order, or never. An agent, a simulation and plain Python decide the same, to the
    bit. An agent that was saved goes on as the one that was not. And if it lets arms be absent, it plays none of those.

    Args:
        learner: a module that ends with LEARNER, the record itself, or a name.
        graph: one that the learner can play on; if not given, a small one that meets its needs.
        rounds: how many are played.
        **options: the options of the learner.

    Returns:
        A report: `report.holds`, and `report.violations` with `.rule`, `.round`, `.arm`, `.said` and the `.line` of
        your file. `print(report)` says it in words, as `sidelong check FILE` does.

    Example:
        >>> import sidelong as sl
        >>> print(sl.learners.check("uniform", rounds=20))
        uniform keeps the contract, in 20 rounds:
          configure and init: holds
          kernels raise no error: holds
          probabilities: holds
          bounds of arrays: holds
          late feedback: holds
          kernels compile: holds
          machine code decides as plain Python: holds
          a simulation decides as an agent: holds
          a saved agent goes on as the other: holds
    """
    # Agents and simulations are built on learners, and not the other way round: this is found when it is called.
    return importlib.import_module("sidelong.claims.contract").check(learner, graph, rounds=rounds, **options)
