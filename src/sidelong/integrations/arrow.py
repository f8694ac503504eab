"""Arrow: what a simulation measured, as a table that pandas, Polars and DuckDB take as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._install import pip_install

try:
    import pyarrow as pa
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"This needs {error.name}. {pip_install(str(error.name))}", name=error.name) from None

if TYPE_CHECKING:
    from sidelong.simulation import Result


def table(result: Result) -> pa.Table:
    """Return a result as a table: a row is one run at one checkpoint, and columns are named as in `read_results`.

    Example:
        >>> import sidelong as sl
        >>> from sidelong.integrations import arrow
        >>> world = sl.losses.bernoulli([0.3, 0.5])
        >>> result = sl.simulate("hedge", sl.graphs.complete(2), world, rounds=10, checkpoints=[5, 10])
        >>> arrow.table(result).column_names
        ['run', 'round', 'regret', 'loss', 'trace_learning_rate']
    """
    runs, marks = result.regret.shape
    columns = {
        "run": np.repeat(result.runs, marks),
        "round": np.tile(result.rounds, runs),
        "regret": result.regret.ravel(),
        "loss": result.loss.ravel(),
        **{f"trace_{name}": values.ravel() for name, values in result.traces.items()},
    }
    return pa.table(columns)
