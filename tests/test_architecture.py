"""The walks of docs/architecture.md are the files that really run, and no two classes share a name."""

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"

STUDY = """
rounds = 100
runs = 2
seed = 1
learner = { name = "exp3.g++" }
graph = { name = "nested", n = 8 }
world = { name = "bernoulli", means = { gap = 0.1 } }
"""
TRACE = """
import json, os, sys
import sidelong as sl

root = os.path.dirname(sl.__file__) + os.sep
passed = []

def enter(frame, event, _):
    file, reply = frame.f_code.co_filename, False
    if file.endswith("httptools_impl.py") and frame.f_code.co_name == "send":
        reply = frame.f_locals["message"]["type"] == "http.response.body"
    name = "reply" if reply else file[len(root):] if file.startswith(root) else None
    if event == "call" and name and name not in passed:
        passed.append(name)

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
import pathlib, tempfile
from sidelong.studies import spec
from sidelong.studies.provenance import source_hash
from sidelong.studies.work import Task, play

with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "study.toml")
    file.write_text(STUDY)
    for traced in (False, True):
        sys.setprofile(enter if traced else None)
        study = spec.load(file)
        played = play(Task(study.cells[0].spec, 1, source_hash()), study.files)
assert not played.error, played.error
""",
    "A request": """
import os, pathlib, signal, tempfile, threading, urllib.request
from sidelong.service import logs
from sidelong.service.serve import serve
from sidelong.service.settings import Settings
from sidelong.service.store.tokens import Tokens

Tokens.fresh_for = 3600.0  # what is read once a second is not on the page, however long the requests take
folder = tempfile.mkdtemp()

def post(address, body):
    request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)

emit, written = logs._Lines.emit, threading.Semaphore(0)

def emit_and_tell(handler, record):
    emit(handler, record)
    if record.getMessage() == "request":
        written.release()

logs._Lines.emit = emit_and_tell

def wait_for_the_log():
    # A line of the log is the last that follows a reply.
    assert written.acquire(timeout=120)

def drive(address):
    post(f"{address}/v1/experiments", {"name": "orders", "graph": {"name": "nested", "n": 8}, "learner": "exp3.g++"})
    for traced in (False, True):
        wait_for_the_log()
        passed.clear()
        made = post(f"{address}/v1/experiments/orders/decisions", {})
        if not traced:  # the next decision comes after feedback, as most do
            wait_for_the_log()
            passed.clear()
            losses = {arm: 0.5 for arm in made["reveals"]}
            post(f"{address}/v1/decisions/{made['id']}/feedback", {"losses": losses})
    wait_for_the_log()
    print(json.dumps(passed), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

threading.setprofile(enter)
sys.setprofile(enter)
aside = lambda address: threading.Thread(target=drive, args=(address,), daemon=True).start()
settings = Settings(port=0, database=f"sqlite:///{folder}/walk.db", sweep_every=3600)
serve(settings, aside)
""",
}


def on_the_page(walk):
    section = PAGE.read_text("utf-8").split(f"### {walk}\n")[1].split("\n### ")[0]
    return re.findall(r"^\d+\. `([a-z_/0-9]+\.py)`", section, flags=re.MULTILINE)


def after_the_reply():
    return re.findall(r"^\d+\. `([a-z_/0-9]+\.py)`: after the reply", PAGE.read_text("utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_on_the_page_is_the_one_that_runs(walk):
    program = f"STUDY = {STUDY!r}\n{TRACE}{WALKS[walk]}\nsys.setprofile(None)\nprint(json.dumps(passed))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    passed = json.loads(done.stdout.splitlines()[-1])
    if walk == "A request":
        before = passed[: passed.index("reply")]
        passed.remove("reply")
        assert len(before) <= 13, before
        assert {file for file in on_the_page(walk) if file not in before} == set(after_the_reply())
    assert sorted(passed) == sorted(on_the_page(walk))


def test_no_two_classes_have_the_same_name():
    """Each learner has its Params and its State; elsewhere a name that is read means one thing."""
    parsed = [ast.parse(path.read_text("utf-8")) for path in (ROOT / "src").rglob("*.py")]
    names = Counter(node.name for tree in parsed for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1 and name not in {"Params", "State"}] == []
