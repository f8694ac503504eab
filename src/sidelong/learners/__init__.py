"""The learners: one algorithm a file, each readable beside its paper."""

from __future__ import annotations

from sidelong.learners.catalogue import names

__all__ = ["names"]
