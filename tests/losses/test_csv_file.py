"""A world from a CSV file: with a header or without, and what is wrong is named by line and column."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import WorldError

pytestmark = pytest.mark.interpreted
LOSSES = [[0.0, 1.0], [0.5, 0.25], [0.125, 1e-3]]


@pytest.mark.parametrize("header", ["", "small,large\n", '"a, b",c\r\n', "\ufeffa,b\n"])
@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["text", "path"])
def test_a_file_gives_its_losses_with_and_without_a_header(tmp_path, header, kind):
    path = tmp_path / "losses.csv"
    path.write_text(header + "\n".join(",".join(map(str, row)) for row in LOSSES) + "\n", "utf-8")
    world = sl.losses.table(kind(path))
    assert np.array_equal(world.arrays.table, LOSSES)
    assert world.rounds == 3


def test_a_file_of_numpy_is_mapped(tmp_path):
    np.save(tmp_path / "losses.npy", np.array(LOSSES))
    assert np.array_equal(sl.losses.table(tmp_path / "losses.npy").arrays.table, LOSSES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n0.1,0.2\n0.3,x\n", "line 3, column 2 ('b'): a loss is a number from 0 to 1, not 'x'."),
        ("a,b\n0.1,0.2\n\n0.3,1.5\n", "line 4, column 2 ('b'): a loss is a number from 0 to 1, not '1.5'."),
        ("a,b\n0.1,\n", "line 2, column 2 ('b'): a loss is a number from 0 to 1, not ''."),
        ("0.1,nan\n", "line 1, column 2: a loss is a number from 0 to 1, not 'nan'."),
        ("a,b\n0.1,0.2\n0.3\n", "line 3: has 1 columns, and the first line has 2."),
        (",a\n0,0.1\n1,0.1\n2,0.1\n", "line 4, column 1 (''): a loss is a number from 0 to 1, not '2'. If this column"),
        ("a;b\n0.1;0.2\n", "line 1: columns are separated by commas, not by semicolons."),
        ("", "has no losses"),
        ("a,b\n", "has no losses"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_column(tmp_path, text, said):
    path = tmp_path / "losses.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(WorldError) as error:
        sl.losses.table(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)


def test_a_file_that_is_not_there_or_of_another_kind_is_refused(tmp_path):
    with pytest.raises(WorldError, match=r"no.csv: cannot be read: No such file"):
        sl.losses.table(tmp_path / "no.csv")
    with pytest.raises(WorldError, match=r"no.npy: cannot be read: No such file"):
        sl.losses.table(tmp_path / "no.npy")
    with pytest.raises(WorldError, match=r"read from a file .csv or .npy, not 'losses.xlsx'"):
        sl.losses.table("losses.xlsx")
    (tmp_path / "text.npy").write_text("nothing")
    with pytest.raises(WorldError, match="not an array of NumPy"):
        sl.losses.table(tmp_path / "text.npy")
    (tmp_path / "latin.csv").write_bytes(b"gr\xf6\xdfe,b\n0.1,0.2\n")
    with pytest.raises(WorldError, match="not a CSV file in UTF-8"):
        sl.losses.table(tmp_path / "latin.csv")
