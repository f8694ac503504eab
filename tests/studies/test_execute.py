"""Studies that are killed, doubled, starved and interrupted give the bytes of one that is left alone."""

import contextlib
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from sidelong.errors import StudyError
from sidelong.studies import local
from sidelong.studies.folder import ResultFolder, difference, refuse_another
from sidelong.studies.local import Local
from sidelong.studies.spec import load
from sidelong.studies.work import TaskResult, WorkerDiedError
from studies import small

HERE = Path(__file__).parent
#: Cells that take long enough to be interrupted: some 0.1 s each.
LONG = small.STUDY.replace("rounds = [200, 300]", "rounds = 400_000").replace("runs = 2", "runs = 3")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The results of the small study, run by one worker and left alone."""
    folder = tmp_path_factory.mktemp("whole")
    small.run(small.write(folder), "--out", folder / "results", "--workers", 1)
    return folder / "results"


@pytest.fixture(scope="module")
def long_whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    small.run(small.write(folder, 4, LONG), "--out", folder / "results", "--workers", 2)
    return folder / "results"


def start(*arguments, **options):
    return subprocess.Popen(
        small.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def wait_for_cells(folder, least, seconds=300):
    end = time.monotonic() + seconds
    while len([*(folder / "cells").glob("*.parquet")]) < least:
        assert time.monotonic() < end
        time.sleep(0.01)


def children(pid):
    """Those of all its threads."""
    return [int(each) for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()]


def is_alive(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def has_members(group):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False


# The same bytes


@pytest.mark.parametrize("workers", [2, pytest.param(4, marks=pytest.mark.nightly)])
def test_any_number_of_workers_gives_the_same_bytes(whole, tmp_path, workers):
    small.run(small.write(tmp_path), "--out", tmp_path / "results", "--workers", workers)
    assert small.columns(tmp_path / "results") == small.columns(whole)
    assert len(small.columns(whole)) == 24 * 18


def test_threads_over_runs_give_the_same_bytes(whole, tmp_path):
    """One cell on four workers is played by one process with several threads."""
    text = small.STUDY.replace("[200, 300]", "300").replace('["nested", "star"]', '"star"').replace("[0.1, 0.2]", "0.2")
    small.run(small.write(tmp_path, 1, text), "--out", tmp_path / "results", "--workers", 4)
    one = small.columns(tmp_path / "results")
    assert len(one) == 18
    assert one.items() <= small.columns(whole).items()


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.nightly), 4])
def test_a_dask_cluster_gives_the_same_bytes(whole, tmp_path, workers):
    small.run(small.write(tmp_path), "--out", tmp_path / "results", "--on", "local-cluster", "--workers", workers)
    assert small.columns(tmp_path / "results") == small.columns(whole)


@pytest.mark.nightly
def test_a_dask_worker_that_is_killed_costs_nothing_but_time(long_whole, tmp_path):
    cluster = subprocess.Popen(
        [sys.executable, HERE / "dask_cluster.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        address, pid, _ = cluster.stdout.readline().split()
        results = tmp_path / "results"
        runner = start(small.write(tmp_path, 4, LONG), "--out", results, "--on", address)
        wait_for_cells(results, 2)
        os.kill(int(pid), signal.SIGKILL)
        done = len([*(results / "cells").glob("*.parquet")])
        out, err = runner.communicate(timeout=300)
        assert done < 16, "the worker was killed too late to matter"
        assert runner.returncode == 0, out + err
        assert "16 of 16 cells are done" in out
        assert small.columns(results) == small.columns(long_whole)
    finally:
        cluster.communicate("")


@pytest.mark.nightly
def test_a_dask_scheduler_that_is_killed_stops_the_study_cleanly(long_whole, tmp_path):
    """No cell has failed, and the same study goes on elsewhere."""
    cluster = subprocess.Popen(
        [sys.executable, HERE / "dask_cluster.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    study, results = small.write(tmp_path, 4, LONG), tmp_path / "results"
    try:
        address = cluster.stdout.readline().split()[0]
        runner = start(study, "--out", results, "--on", address)
        wait_for_cells(results, 2)
    finally:
        cluster.kill()
        cluster.communicate()
    _, err = runner.communicate(timeout=300)
    assert runner.returncode == 4, err
    assert "Traceback" not in err
    assert "failed" not in err
    assert "stopped: the Dask scheduler is gone. Run the same command to go on." in err
    small.run(study, "--out", results)
    assert small.columns(results) == small.columns(long_whole)


def test_a_worker_of_this_machine_that_is_killed_costs_nothing_but_time(long_whole, tmp_path):
    results = tmp_path / "results"
    runner = start(small.write(tmp_path, 4, LONG), "--out", results, "--workers", 2)
    wait_for_cells(results, 2)
    workers = [pid for pid in children(runner.pid) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(workers[0], signal.SIGKILL)
    out, err = runner.communicate(timeout=300)
    assert runner.returncode == 0, out + err
    assert small.columns(results) == small.columns(long_whole)


def test_a_worker_that_dies_in_the_middle_of_a_message_keeps_nobody_waiting(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    dying_worker = importlib.import_module("dying_worker")
    engine = Local(2, 2, tmp_path)
    try:
        with pytest.raises(WorkerDiedError):
            engine._lead(dying_worker.die_while_sending, None)
        assert engine._lead(dying_worker.echo, "a new one") == "a new one"
    finally:
        engine.close()


# Death of the runner


@pytest.mark.nightly
def test_twenty_kills_at_random_moments_change_no_byte(whole, tmp_path):
    path = small.write(tmp_path)
    done = subprocess.run(
        [sys.executable, HERE / "killer.py", path, tmp_path, "20", "10"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["cells"] == 24
    assert len(told["done"]) >= 20
    assert sum(0 < number < 24 for number in told["done"]) >= 10  # were in the middle
    expected = small.columns(whole)
    for number in range(len(told["done"])):
        assert small.columns(tmp_path / str(number)) == expected
        assert small.hidden(tmp_path / str(number)) == []  # what a killed runner left was removed


def test_workers_leave_when_the_runner_is_killed_and_the_next_one_goes_on(long_whole, tmp_path):
    path, results = small.write(tmp_path, 4, LONG), tmp_path / "results"
    runner = start(path, "--out", results, "--workers", 2)
    wait_for_cells(results, 1)
    workers = children(runner.pid)
    runner.kill()
    runner.communicate()
    end = time.monotonic() + 120  # they take no time
    while any(map(is_alive, workers)):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert "of them before" in small.run(path, "--out", results).stdout
    assert small.columns(results) == small.columns(long_whole)


@pytest.mark.parametrize(
    ("sign", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.nightly), (signal.SIGTERM, 143)]
)
def test_an_interrupt_gives_a_summary_and_can_be_resumed(long_whole, tmp_path, sign, code):
    path, results = small.write(tmp_path, 4, LONG), tmp_path / "results"
    runner = start(path, "--out", results, "--workers", 1)
    wait_for_cells(results, 1)
    runner.send_signal(sign)
    out, err = runner.communicate(timeout=120)  # it takes less than a second
    assert runner.returncode == code
    assert re.search(r"\d+ of 16 cells are done", out)
    assert "Run the same command to go on" in err
    assert "Traceback" not in err
    assert small.columns(results).items() < small.columns(long_whole).items()
    if sign == signal.SIGINT:
        small.run(path, "--out", results)
        assert small.columns(results) == small.columns(long_whole)


@pytest.mark.parametrize(
    "on",
    [
        pytest.param((), id="processes"),
        pytest.param(("--on", "local-cluster"), marks=pytest.mark.nightly, id="local-cluster"),
    ],
)
def test_ctrl_c_reaches_all_processes_and_one_of_them_speaks(long_whole, tmp_path, on):
    """A terminal sends it to runner and workers alike."""
    results = tmp_path / "results"
    runner = start(small.write(tmp_path, 4, LONG), "--out", results, "--workers", 2, *on, start_new_session=True)
    wait_for_cells(results, 1)
    os.killpg(runner.pid, signal.SIGINT)
    out, err = runner.communicate(timeout=120)  # it takes a second or two
    assert runner.returncode == 130
    assert re.search(r"\d+ of 16 cells are done", out)
    assert err == "stopped: interrupted. Run the same command to go on.\n"
    assert small.columns(results).items() < small.columns(long_whole).items()
    end = time.monotonic() + 120  # they take no time
    while has_members(runner.pid):
        assert time.monotonic() < end
        time.sleep(0.05)


# Two runners


def test_two_runners_do_each_cell_once(long_whole, tmp_path):
    path, results = small.write(tmp_path, 4, LONG), tmp_path / "results"
    runners = [start(path, "--out", results, "--workers", 1) for _ in range(2)]
    told = [runner.communicate(timeout=300) for runner in runners]
    assert [runner.returncode for runner in runners] == [0, 0], told
    played = [int(re.search(r"([\d,]+) rounds in", out)[1].replace(",", "")) // 1_200_000 for out, _ in told]
    assert sum(played) == 16
    assert small.columns(results) == small.columns(long_whole)


def test_a_claim_is_of_one_process_and_dies_with_it(tmp_path):
    study = load(small.write(tmp_path))
    cell = study.cells[0]
    program = (
        "import sys, pathlib\n"
        "from sidelong.studies.spec import load; from sidelong.studies.folder import ResultFolder\n"
        f"study = load({str(tmp_path / 'study.toml')!r})\n"
        f"with ResultFolder(pathlib.Path({str(tmp_path / 'results')!r}), study) as results:\n"
        "    print(results.claim(study.cells[0]), flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "True\n"
    with ResultFolder(tmp_path / "results", study) as results:
        assert not results.claim(cell)
        assert results.claim(study.cells[1])
        with pytest.raises(ValueError, match="already"), ResultFolder(tmp_path / "results", study):
            pass
        other.kill()
        other.communicate()
        assert results.claim(cell)


# Damage


def damage_truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def damage_flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def damage_empty(path):
    path.write_bytes(b"")


def damage_swap(path):
    path.write_bytes(sorted(path.parent.glob("*.parquet"))[3].read_bytes())


def test_damaged_files_are_found_set_aside_and_run_again(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "results")
    path = small.write(tmp_path)
    files = sorted((tmp_path / "results" / "cells").glob("*.parquet"))
    for file, damage in zip(files, (damage_truncate, damage_flip, damage_empty, damage_swap), strict=False):
        if damage is not damage_swap:
            damage(file)
    damage_swap(files[5])
    bad = {files[0].name, files[1].name, files[2].name, files[5].name}
    dry = small.run(path, "--out", tmp_path / "results", "--dry-run").stdout
    assert dry.count("damaged") == 4
    done = small.run(path, "--out", tmp_path / "results", code=3)
    assert done.stderr.count("damaged, set aside and run again") == 4
    assert {each.name for each in (tmp_path / "results" / "damaged").iterdir()} == bad
    assert small.columns(tmp_path / "results") == small.columns(whole)
    small.run(path, "--out", tmp_path / "results", code=0)


def test_a_full_disk_stops_cleanly_and_the_study_goes_on_when_there_is_room(whole, tmp_path):
    path, disk = small.write(tmp_path), tmp_path / "disk"
    disk.mkdir()
    run = " ".join(small.command(path, "--out", disk / "results", "--workers", "1"))
    script = f"""
        mount -t tmpfs -o size=80k tmpfs {disk} || exit 99
        {run}; echo "code $?"; ls -A {disk}/results/cells | grep -c tmp; ls {disk}/results/cells | wc -l
        mount -o remount,size=10m {disk}
        {run}; echo "code $?"
        cp -r {disk}/results {tmp_path}/copy"""
    unshare = shutil.which("unshare") or pytest.skip("this machine has no unshare")
    done = subprocess.run([unshare, "-rm", "/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode == 99 or not done.stdout:
        pytest.skip("this machine lets nobody mount a small disk")
    assert "Traceback" not in done.stderr
    assert done.stdout.count("code 4") == 1
    assert "No space left on device" in done.stderr
    left_over, cells = re.search(r"code 4\n(\d+)\n(\d+)\n", done.stdout).groups()
    assert left_over == "0"
    assert 0 < int(cells) < 24
    assert done.stdout.rstrip().endswith("code 0")
    assert small.columns(tmp_path / "copy") == small.columns(whole)


def test_a_changed_study_is_refused_with_the_difference(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "results")
    path = small.write(tmp_path, text=small.STUDY.replace("0.2", "0.25").replace("runs = 2", "runs = 4"))
    said = small.run(path, "--out", tmp_path / "results", code=2).stderr
    assert "runs: was 2, is 4" in said
    assert "world[0].means.gap: was [0.1, 0.2], is [0.1, 0.25]" in said
    assert small.columns(tmp_path / "results") == small.columns(whole)
    # A new name or another order of keys is no change.
    path = small.write(tmp_path, text='name = "renamed"\n' + small.STUDY.replace("[200, 300]", "[300, 200]"))
    assert "24 of them before" in small.run(path, "--out", tmp_path / "results").stdout


def test_the_difference_names_what_came_and_went():
    before = {"rounds": 5, "learner": [{"name": "a"}, {"name": "b", "x": 1}]}
    now = {"rounds": 5, "seed": 2, "learner": [{"name": "a", "y": [1, 2]}]}
    assert difference(before, now) == [
        "learner[0].y: was nothing, is [1, 2]",
        'learner[1]: was {"name": "b", "x": 1}, is nothing',
        "seed: was nothing, is 2",
    ]


# Worlds that fail


def test_a_nan_fails_its_cell_and_the_others_go_on(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def bad(seed, run, t, arm):\n    return float('nan') if t == 37 and arm == 2 else 0.5\n\n"
        "def raises(seed, run, t, arm):\n    return 0.5 / (0 if t == 12 else 1)\n"
    )
    worlds = "".join(
        f'[[world]]\nname = "function"\nf = {{{{ file = "mine.py", function = "{name}" }}}}\n'
        for name in ("bad", "raises")
    )
    path = small.write(tmp_path, 1, small.STUDY + worlds)
    done = small.run(path, "--out", tmp_path / "results", "--workers", 2, code=1)
    assert "8 of 16 cells are done" in done.stdout
    assert done.stderr.count("failed: ") == 8
    # The learner met it, or the search for the best arm did.
    assert len(re.findall(r"nan in run \d, round 37, for arm 2|run \d, round 37, arm 2 has nan", done.stderr)) == 4
    assert done.stderr.count("ZeroDivisionError: float division by zero (mine.py:5)") == 4
    assert len([*(tmp_path / "results" / "cells").iterdir()]) == 8


def test_rounds_that_were_counted_for_a_cell_before_it_failed_are_told(monkeypatch):
    sent = []

    def play(_task, _files, progress):
        progress(100, 100)
        return TaskResult(b"", "it is broken", 0.0)

    monkeypatch.setattr("sidelong.studies.work.play", play)
    failed = local._play(None, None, SimpleNamespace(send=sent.append))
    assert (sent, failed.wasted) == ([100], 100)


def test_a_cell_that_kills_its_worker_fails_alone(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import os\n\ndef deadly(seed, run, t, arm):\n    return 0.5 if t < 5 or seed != 1 else os._exit(9)\n"
    )
    text = small.STUDY.replace("[200, 300]", "20").replace('["nested", "star"]', '"star"').replace(
        'name = "bernoulli"\nmeans = {{ gap = [0.1, 0.2] }}',
        'name = "function"\nf = {{ file = "mine.py", function = "deadly" }}',
    )  # fmt: skip
    done = small.run(small.write(tmp_path, 4, text), "--out", tmp_path / "results", "--workers", 2, code=1)
    assert "3 of 4 cells are done" in done.stdout
    assert done.stderr.count("failed: ") == 1
    assert "seed 1\n  The process that played it died: killed, or out of memory." in done.stderr


def test_a_folder_whose_cells_another_version_made_of_the_same_file_says_what_to_do(tmp_path):
    study = load(small.write(tmp_path))
    cells = ["0" * 32, *(cell.name for cell in study.cells)]  # one that this version leaves out
    known = {"sidelong": "0.0.9", "study": study.content, "cells": cells}
    (tmp_path / "study.json").write_text(json.dumps(known))
    with pytest.raises(StudyError, match=r"begun by sidelong 0\.0\.9, .* Go on with that version, or .* --out"):
        refuse_another(tmp_path, study)
    (tmp_path / "study.json").write_text(json.dumps({**known, "cells": cells[1:]}))
    refuse_another(tmp_path, study)
