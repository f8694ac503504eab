"""Results as Arrow tables."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sidelong as sl
from sidelong.errors import GraphError, WorldError
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


FRAMES = {"arrow": lambda table: table, "pandas": pa.Table.to_pandas, "polars": pl.from_arrow}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_table_is_taken_by_its_rows(frame):
    # Two rows of two, which would also make sense as columns.
    edges = frame(pa.table({"played": [0, 1], "revealed": [2, 3]}))
    assert sl.FeedbackGraph.from_edges(edges, 4).edges().tolist() == [[0, 2], [1, 3]]
    world = sl.losses.table(frame(pa.table({"a": [0.1, 0.2], "b": [0.3, 0.4]})))
    assert [[world.loss(0, 0, t, arm) for arm in (0, 1)] for t in (1, 2)] == [[0.1, 0.3], [0.2, 0.4]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"played": [0, None], "revealed": [2, 3]},
        {"played": ["0", "1"], "revealed": ["2", "3"]},
        {"played": [0, 1], "revealed": [2, 3], "weight": [1, 1]},
    ],
)
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_table_that_holds_no_pairs_is_refused(frame, wrong):
    with pytest.raises(GraphError, match="whole numbers with two columns"):
        sl.FeedbackGraph.from_edges(frame(pa.table(wrong)), 4)


def test_a_loss_that_is_missing_is_named():
    with pytest.raises(WorldError, match="round 2, arm 0 has nan"):
        sl.losses.table(pa.table({"a": [0.1, None], "b": [0.3, 0.4]}))
