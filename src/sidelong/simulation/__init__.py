"""The single compiled loop, `simulate`, which drives it, and `compare`, for many learners in many worlds."""

from __future__ import annotations

from sidelong.simulation.compare import compare
from sidelong.simulation.comparison import Comparison
from sidelong.simulation.result import Result
from sidelong.simulation.simulate import simulate

__all__ = ["Comparison", "Result", "compare", "simulate"]
