"""Ask and tell over the same kernels that the simulation runs."""

from __future__ import annotations

from sidelong.agent.agent import Agent
from sidelong.agent.batch import Batch
from sidelong.agent.contextual import ContextualAgent
from sidelong.agent.decision import ContextualDecision, Decision
from sidelong.agent.estimates import EstimatesTable
from sidelong.agent.family import Family
from sidelong.agent.forecasts import Forecast
from sidelong.agent.member import Member
from sidelong.agent.newsvendor import Newsvendor
from sidelong.agent.newsvendor_report import Money, NewsvendorReport, ReportedAdviser
from sidelong.agent.observers import Lateness
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
    "Forecast",
    "Lateness",
    "Member",
    "Money",
    "Newsvendor",
    "NewsvendorReport",
    "ReportedAdviser",
]
