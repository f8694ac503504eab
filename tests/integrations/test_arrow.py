"""Results as Arrow tables."""

import pandas as pd
import polars as pl

import sidelong as sl
from sidelong.integrations import arrow


def test_a_row_is_one_run_at_one_checkpoint():
    world = sl.losses.bernoulli([0.3, 0.5, 0.5])
    graph = sl.graphs.nested(3)
    result = sl.simulate("exp3.g++", graph, world, rounds=100, runs=[4, 7], checkpoints=[10, 50, 100])
    table = arrow.table(result)
    assert table["run"].to_pylist() == [4, 4, 4, 7, 7, 7]
    assert table["round"].to_pylist() == [10, 50, 100] * 2
    assert table["regret"].to_pylist() == result.regret.ravel().tolist()
    assert table["trace_theta"].to_pylist() == result.traces["theta"].ravel().tolist()
    assert pl.from_arrow(table).shape == table.to_pandas().shape == table.shape
    assert isinstance(table.to_pandas(), pd.DataFrame)
