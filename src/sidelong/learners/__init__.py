"""The learners: one algorithm a file, each readable beside its paper."""

from __future__ import annotations

from sidelong.learners.catalogue import names
from sidelong.learners.interface import Learner, Need, kernel

__all__ = ["Learner", "Need", "kernel", "names"]
