"""The single compiled loop, and `simulate`, which drives it."""

from __future__ import annotations

from sidelong.simulation.simulate import Result, simulate

__all__ = ["Result", "simulate"]
