"""Reading the exported log of an experiment, so that another experiment can begin with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sidelong._install import pip_install
from sidelong.errors import EvaluationError

if TYPE_CHECKING:
    import os

_COLUMNS = ("action", "observed", "losses", "observe_probabilities")
_UNSEEN = ("frozen", "fallback")  # rounds in which most arms could not be seen


def read(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """Return the columns that `log` of an experiment takes: of the rounds that were told, in their order."""
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
        from pyarrow import compute, parquet  # noqa: PLC0415
    except ImportError as error:
        raise EvaluationError(f"An exported log is read with pyarrow. {pip_install('pyarrow')}") from error
    try:
        table = parquet.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise EvaluationError(f"The log cannot be read as Parquet: {error}") from error
    lacks = {*_COLUMNS, "round", "drawn_by"} - set(table.column_names)
    if lacks:
        raise EvaluationError(f"{path} is not the exported log of an experiment: it has no column {min(lacks)}.")
    seen = compute.invert(compute.is_in(table["drawn_by"], pa.array(_UNSEEN)))
    table = table.filter(compute.and_(seen, compute.is_valid(table["losses"]))).sort_by("round")
    names = (*_COLUMNS, "key") if "key" in table.column_names else _COLUMNS
    return {name: table[name].to_pylist() for name in names}
