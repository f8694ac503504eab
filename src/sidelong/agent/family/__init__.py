"""One problem for many keys, in arrays: ask and tell over the same kernels that an agent runs."""

from __future__ import annotations

from sidelong.agent.family.batch import Batch
from sidelong.agent.family.family import Family
from sidelong.agent.family.known import EstimatesTable
from sidelong.agent.family.member import Member

__all__ = ["Batch", "EstimatesTable", "Family", "Member"]
