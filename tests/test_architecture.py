"""The walks of docs/architecture.md are the files that really run."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"

TRACE = """
import json, os, sys
import sidelong as sl

root = os.path.dirname(sl.__file__) + os.sep
passed = []

def enter(frame, event, _):
    file = frame.f_code.co_filename
    if event == "call" and file.startswith(root) and file[len(root):] not in passed:
        passed.append(file[len(root):])

graph = sl.graphs.nested(8)
"""
WALKS = {
    "A decision": """
agent = sl.Agent("exp3.g++", graph, seed=1)
for traced in (False, True):  # the first makes or loads machine code
    sys.setprofile(enter if traced else None)
    decision = agent.ask()
    agent.tell(decision, [0.5] * len(decision.reveals))
""",
    "A simulation": """
world = sl.losses.bernoulli([0.4] + [0.5] * 7)
for traced in (False, True):
    sys.setprofile(enter if traced else None)
    sl.simulate("exp3.g++", graph, world, rounds=100, threads=1)
""",
    "A cell of a study": """
import tempfile, pathlib
from sidelong.studies import read_study
from sidelong.studies.work import Task, play
from sidelong.studies.provenance import source_hash

CELL
""",
}


def on_the_page(walk):
    section = PAGE.read_text("utf-8").split(f"### {walk}\n")[1].split("\n### ")[0]
    return re.findall(r"^\d+\. `([a-z_/0-9]+\.py)`", section, flags=re.MULTILINE)


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_on_the_page_is_the_one_that_runs(walk):
    program = f"{TRACE}{WALKS[walk]}\nsys.setprofile(None)\nprint(json.dumps(passed))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == on_the_page(walk)
