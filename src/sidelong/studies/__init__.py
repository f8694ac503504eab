"""Studies: a file that says what to compare, its cells run anywhere, and their results as one table."""

from __future__ import annotations

from sidelong._install import pip_install

try:
    from sidelong.studies.results import read_results
except ModuleNotFoundError as error:
    if error.name not in {"pyarrow", "pydantic"}:
        raise
    raise ModuleNotFoundError(f"Studies need {error.name}. {pip_install(error.name)}", name=error.name) from error

__all__ = ["read_results"]
