"""Logs from Parquet files: those of the service, and those of plain bandits."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sidelong.errors import EvaluationError
from sidelong.evaluation.decision_log import from_table, read_log

TOLD = {
    "round": 2,
    "action": 1,
    "reward": 0.7,
    "pscore": 0.5,
    "status": "told",
    "observed": [0, 1],
    "losses": [0.2, 0.3],
    "observe_probabilities": [1.0, 0.5],
}
SILENT = {"reward": None, "observed": None, "losses": None, "observe_probabilities": None}


def table(*rows):
    return pa.Table.from_pylist([TOLD | row for row in rows])


def test_rounds_are_in_order_and_cancelled_ones_are_left_out(tmp_path):
    rows = table(
        {}, SILENT | {"round": 1, "status": "cancelled"}, SILENT | {"round": 3, "status": "expired"}, {"round": 0}
    )
    about = {"sidelong.experiment": json.dumps({"n_arms": 4})}
    parquet.write_table(rows.replace_schema_metadata(about), tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet")
    assert log.n_arms == 4
    assert log.told.tolist() == [True, True, False]
    assert log.round.tolist() == [0, 0, 1, 1]
    assert log.arm.tolist() == [0, 1, 0, 1]
    assert log.loss.tolist() == [0.2, 0.3, 0.2, 0.3]
    assert log.probability.tolist() == [1.0, 0.5, 1.0, 0.5]
    np.testing.assert_allclose(log.cost, [0.3, 0.3, np.nan])


def test_rows_without_a_status_count_with_the_feedback_that_they_have():
    log = from_table(table({}, {"round": 3, "status": None}, SILENT | {"round": 4, "status": None}))
    assert log.told.tolist() == [True, True, False]
    assert log.round.tolist() == [0, 0, 1, 1]
    assert log.loss.tolist() == [0.2, 0.3, 0.2, 0.3]
    unknown = table({}, {"round": 3})
    unknown = unknown.set_column(unknown.column_names.index("status"), "status", pa.nulls(2))
    assert from_table(unknown).n_told == 2


def test_a_status_that_is_no_text_is_refused():
    rows = table({"status": [1]})
    with pytest.raises(EvaluationError, match="The column status must hold text"):
        from_table(rows)


def test_a_plain_bandit_reveals_what_it_plays(tmp_path):
    plain = pa.table({"action": [2, 0, 1], "reward": [1.0, 0.0, None], "pscore": [0.5, 0.25, 0.25]})
    parquet.write_table(plain, tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet")
    assert (log.n_arms, log.n_rounds, log.n_told) == (3, 3, 2)
    assert (log.arm.tolist(), log.loss.tolist(), log.probability.tolist()) == ([2, 0], [0.0, 1.0], [0.5, 0.25])
    costs = from_table(pa.table({"action": [2], "loss": [0.25], "pscore": [0.5]}), n_arms=7)
    assert (costs.n_arms, costs.loss.tolist()) == (7, [0.25])


@pytest.mark.parametrize("about", ["{", "[]", "{}", '{"n_arms": "4"}', '{"n_arms": 0}'])
def test_metadata_that_does_not_say_how_many_arms_is_refused(tmp_path, about):
    parquet.write_table(table({}).replace_schema_metadata({"sidelong.experiment": about}), tmp_path / "log.parquet")
    with pytest.raises(EvaluationError, match="how many arms"):
        read_log(tmp_path / "log.parquet")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"losses": [0.2, 1.5]}, "a loss, and a reward, is a number in .0, 1.; in row 1"),
        ({"losses": [0.2, None]}, "a loss, and a reward"),
        ({"observe_probabilities": [1.0, 0.0]}, "above 0, and at most 1; in row 1"),
        ({"observe_probabilities": [1.0, 1.1]}, "above 0, and at most 1"),
        ({"observe_probabilities": [1.0]}, "equally long"),
        ({"observe_probabilities": None}, "as ts-n does"),
        ({"observed": [0, -1]}, "a whole number from 0"),
        ({"observed": [1, 1]}, "twice"),
        ({"observed": [0, 9]}, "an arm 9, and there are 3"),
    ],
)
def test_what_cannot_be_is_refused(row, says):
    with pytest.raises(EvaluationError, match=says):
        from_table(table(row), n_arms=3)


def test_columns_that_are_missing_or_no_numbers_are_named():
    with pytest.raises(EvaluationError, match="this one has: arm, reward"):
        from_table(pa.table({"arm": [1], "reward": [0.5]}))
    with pytest.raises(EvaluationError, match="pscore, or all of observed"):
        from_table(pa.table({"action": [1], "reward": [0.5]}))
    with pytest.raises(EvaluationError, match="reward must hold numbers"):
        from_table(pa.table({"action": [1], "reward": ["high"], "pscore": [0.5]}))


def test_what_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "log.parquet").write_bytes(b"PAR1 but no more")
    for name in ("log.parquet", "none.parquet"):
        with pytest.raises(EvaluationError, match="cannot be read as Parquet"):
            read_log(tmp_path / name)


def test_the_room_needs_neither_the_service_nor_its_extras():
    code = (
        "import sys, sidelong.evaluation; print({'pyarrow', 'numba', 'scipy', 'sidelong.service'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"set()\n"
