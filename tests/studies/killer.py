"""Kill a runner with SIGKILL, again and again. Usage: killer.py STUDY FOLDER TIMES MIDDLE

Processes are forked from this one, which has loaded everything, so that a kill costs no start-up. It prints how many
cells were done when each runner died. It goes on until it has killed so often, and so often of these in the middle of a
study: on a busy machine a runner may end before its killer has its turn.
"""

import concurrent.futures
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from sidelong.studies import work
from sidelong.studies.execute import run
from sidelong.studies.provenance import source_hash
from sidelong.studies.spec import load


class Inline(work.Engine):
    """An engine in a thread of the runner itself: it dies with it."""

    slots = 1

    def __init__(self, files):
        self._files = files
        self._pool = concurrent.futures.ThreadPoolExecutor(1)

    def warm(self, _):
        return self._pool.submit(lambda: None)

    def play(self, cell):
        return self._pool.submit(work.play, work.Task(cell.spec, 1, source_hash()), self._files)

    def close(self):
        self._pool.shutdown()


def start(study, folder):
    pid = os.fork()
    if pid:
        return pid
    try:
        summary = run(study, folder, lambda *_: Inline(study.files))
        os._exit(0 if summary.done == summary.cells and not summary.set_aside else 1)
    except BaseException:  # noqa: BLE001  # a child never goes on as its parent
        os._exit(2)


def main(path, folder, times, middle):
    study = load(path)
    work.play(work.Task(study.cells[0].spec, 1, source_hash()), study.files)
    chance = random.Random(7)
    done = []
    while len(done) < times or sum(0 < number < len(study.cells) for number in done) < middle:
        results = folder / str(len(done))
        pid = start(study, results)
        moment = chance.randrange(len(study.cells))
        while len([*results.glob("cells/*.parquet")]) < moment:
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.03))  # some cells later, in the middle of whatever it does
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        done.append(len([*(results / "cells").glob("*.parquet")]))
        assert os.waitpid(start(study, results), 0)[1] == 0
    print(json.dumps({"cells": len(study.cells), "done": done}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
