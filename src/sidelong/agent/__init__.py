"""Ask and tell over the same kernels that the simulation runs."""

from __future__ import annotations

from sidelong.agent.agent import Agent, Estimates
from sidelong.agent.decision import Decision

__all__ = ["Agent", "Decision", "Estimates"]
