"""Ask and tell over the same kernels that the simulation runs."""

from __future__ import annotations

from sidelong.agent.agent import Agent
from sidelong.agent.contextual import ContextualAgent, ContextualDecision
from sidelong.agent.decision import Decision
from sidelong.agent.family import Batch, EstimatesTable, Family, Member
from sidelong.agent.lateness import Lateness
from sidelong.estimates import Estimates

__all__ = [
    "Agent",
    "Batch",
    "ContextualAgent",
    "ContextualDecision",
    "Decision",
    "Estimates",
    "EstimatesTable",
    "Family",
    "Lateness",
    "Member",
]
