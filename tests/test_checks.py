"""The small rules that all packages share, and files that are never half of one."""

import math
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import sidelong as sl
from sidelong.checks import check_number, check_one_of, check_whole, nearest, short
from sidelong.errors import GraphError, LearnerError
from sidelong.machine import replacing

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_a_whole_number_may_be_of_any_kind(value):
    found = check_whole(GraphError, "n", value, 0, 3)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, np.array([3]), -1, 11, 10**400])
def test_what_is_no_whole_number_or_beyond_its_limits(value):
    with pytest.raises(GraphError, match=r"^n must be a whole number from 0 to 10, not .+\.$"):
        check_whole(GraphError, "n", value, 0, 10)


def test_limits_of_a_whole_number_are_said_as_people_write_them():
    with pytest.raises(LearnerError, match=r"seed must be a whole number from 0 to 2\*\*64 - 1, not -1\."):
        check_whole(LearnerError, "seed", -1, 0, 2**64 - 1)
    with pytest.raises(LearnerError, match=r"t must be a whole number from 1 to 1,000,000, not 0\."):
        check_whole(LearnerError, "t", 0, 1, 1_000_000)
    with pytest.raises(LearnerError, match=r"t must be a whole number of at least 1, not 0\."):
        check_whole(LearnerError, "t", 0, 1)


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.int8(1), Fraction(1), np.array(1.0)])
def test_a_number_may_be_of_any_kind(value):
    found = check_number(GraphError, "x", value, least=0, most=1)
    assert found == 1.0
    assert type(found) is float


@pytest.mark.parametrize("value", [True, np.True_, "1", None, math.nan, np.array([1.0]), 10**400, 1j])
@pytest.mark.parametrize("limits", [{}, {"above": 0}, {"least": 0}, {"least": 0, "most": 2}, {"above": 0, "most": 2}])
def test_what_is_no_number(value, limits):
    with pytest.raises(GraphError, match=r"^x must be a (finite )?number.*, not .+\.$"):
        check_number(GraphError, "x", value, **limits)


@pytest.mark.parametrize(
    ("limits", "value", "says"),
    [
        ({}, math.inf, "x must be a finite number, not inf."),
        ({"above": 0}, 0, "x must be a finite number above 0, not 0."),
        ({"least": 1}, 0.5, "x must be a finite number of at least 1, not 0.5."),
        ({"least": 1, "most": 4}, math.inf, "x must be a number from 1 to 4, not inf."),
        ({"above": 0, "most": 0.25}, 0.3, "x must be a number above 0 and at most 0.25, not 0.3."),
    ],
)
def test_a_number_beyond_its_limits(limits, value, says):
    with pytest.raises(GraphError) as caught:
        check_number(GraphError, "x", value, **limits)
    assert str(caught.value) == says


def test_a_word_beside_those_allowed():
    assert check_one_of(LearnerError, "rate", "fixed", ("adaptive", "fixed")) == "fixed"
    with pytest.raises(LearnerError, match=r"rate must be 'adaptive' or 'fixed', not 'fixd'\. Did you mean 'fixed'\?"):
        check_one_of(LearnerError, "rate", "fixd", ("adaptive", "fixed"))


def test_what_is_near_is_named_and_what_is_far_is_not():
    assert nearest("nestd", ["star", "nested"]) == " Did you mean 'nested'?"
    assert not nearest("zzz", ["star", "nested"])


def test_another_word_for_the_same_is_near_in_both_directions():
    assert nearest("rounds", ["horizon", "variant"]) == " Did you mean 'horizon'?"
    assert nearest("horizon", ["rounds", "runs"]) == " Did you mean 'rounds'?"
    assert nearest("learning_rate", ["rate", "eta_scale"]) == " Did you mean 'eta_scale'?"
    assert not nearest("learning_rate", ["width"])


def test_what_is_long_is_shortened():
    assert short([1, 2]) == "[1, 2]"
    assert max(len(short(value)) for value in ("x" * 1000, 10**400, [9] * 1000, sl.graphs.nested(9))) <= 60


def test_files_of_one_name_that_are_written_at_once_do_not_mix(tmp_path):
    """Both drafts are open before one is complete; whichever comes last stays, whole, and no draft is left."""
    path, both = tmp_path / "file", threading.Barrier(2)

    def write(letter):
        with replacing(path) as file:
            file.write(letter * 1000)
            both.wait(120)
            file.write(letter * 1000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in {b"a" * 2000, b"b" * 2000}
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_not_completed_leaves_the_old_one(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail():
        with replacing(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
from sidelong.machine import replacing

with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_save_removes_what_killed_processes_left(tmp_path):
    path = tmp_path / "agent.sidelong"
    path.write_bytes(b"old")
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
        assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 4
    others = [tmp_path / ".agent.sidelong.mine.tmp", tmp_path / ".other.0123abcd.tmp"]  # names that it does not make
    for other in others:
        other.write_bytes(b"")
    with replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert set(tmp_path.iterdir()) == {path, *others}


def test_a_save_does_not_remove_what_another_process_is_still_writing(tmp_path):
    path = tmp_path / "file"
    slow = "import sys; from sidelong.machine import replacing\n"
    slow += "with replacing(sys.argv[1]) as file: file.write(b'slow'); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", slow, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "open\n"
        for _ in range(3):
            with replacing(path) as file:
                file.write(b"quick")
        assert len(list(tmp_path.iterdir())) == 2
        writer.communicate("", timeout=120)
    assert writer.returncode == 0
    assert path.read_bytes() == b"slow"
    assert list(tmp_path.iterdir()) == [path]


def test_many_threads_that_save_the_same_name_all_succeed(tmp_path):
    path = tmp_path / "file"

    def save(letter):
        for _ in range(50):
            with replacing(path, flushed=False) as file:
                file.write(letter * 5000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, [bytes([97 + k]) for k in range(8)]))  # raises what a save raises
    content = path.read_bytes()
    assert len(content) == 5000
    assert len(set(content)) == 1
    assert list(tmp_path.iterdir()) == [path]
