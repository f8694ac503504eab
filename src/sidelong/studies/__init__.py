"""Studies: a file that says what to compare, its cells run anywhere, and their results as one table."""

from __future__ import annotations

try:
    from sidelong.studies.results import read_results
except ModuleNotFoundError as error:
    if error.name not in {"pyarrow", "pydantic"}:
        raise
    raise ModuleNotFoundError(
        f"Studies need {error.name}. Install with: pip install 'sidelong[study]'", name=error.name
    ) from error

__all__ = ["read_results"]
