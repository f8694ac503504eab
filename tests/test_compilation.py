"""What is compiled, how often, and that old machine code is never run: in processes of their own."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core import caching

import sidelong
from sidelong import _cache

ROOT = Path(__file__).parent.parent
PACKAGE = Path(sidelong.__file__).parent

# Reports every kernel of the package by name: how many signatures it has, and whether it was compiled or loaded.
REPORT = """
import gc
import json
from collections import Counter

from numba.core import event
from numba.core.dispatcher import Dispatcher

compiled = event.RecordingListener()
event.register("numba:compile", compiled)


def report():
    names = Counter(
        each.data["dispatcher"].py_func.__qualname__
        for _, each in compiled.buffer
        if each.is_start and each.data["dispatcher"].py_func.__module__ != "sidelong._numba"  # its check
    )
    kernels = [each for each in gc.get_objects() if issubclass(type(each), Dispatcher)]
    signatures = {}  # of a kernel as a part of others, and of what Python calls
    for each in kernels:
        if each.py_func.__module__.startswith(("sidelong", "__main__")):
            name = f"{each.py_func.__module__}.{each.py_func.__qualname__}"
            signatures.setdefault(name, set()).update(str(one) for one in each.signatures)
    signatures = {name: sorted(each) for name, each in signatures.items()}
    print(json.dumps({"compiled": names, "signatures": signatures}))
"""

EVERYTHING = """
import importlib
import pkgutil

import numpy as np

import sidelong as sl

for module in pkgutil.walk_packages(sl.__path__, "sidelong."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

K = 4
nested, arcs = sl.graphs.nested(K), sl.graphs.directed_cycle(K)
intervals = sl.FeedbackGraph.from_intervals([0, 0, 1, 0], [2, 4, 3, 4])
bank = [nested, arcs, intervals]
graphs = [
    nested,
    sl.graphs.nested(K, reveals="higher"),
    intervals,
    arcs,
    sl.graphs.complete(K).as_arcs(),
    sl.graphs.self_loops(K),
    sl.graphs.alternating(bank),
    sl.graphs.scheduled(bank, np.array([0, 2, 1], np.int32)),
    sl.graphs.drawn(bank, [1, 2, 3]),
    sl.graphs.resampled(K, 0.5),
    sl.graphs.shadows(K, 2),
]
means = [0.5, 0.2, 0.9, 0.4]


def plain(seed, run, t, arm):
    return (t * arm) % 5 / 4


worlds = [
    sl.losses.bernoulli(means),
    sl.losses.beta(means, 3),
    sl.losses.constrained(0.2, K),
    sl.losses.corrupted(means, 5),
    sl.losses.corrupted(means, 5, "swap"),
    sl.losses.switching(means, at=6),
    sl.losses.switching([means, means[::-1]], every=4),
    sl.losses.drifting(means, every=4),
    sl.losses.lower_bound(nested, gap=0.25),
    sl.losses.breaker(nested, 30),
    sl.losses.table(np.full((30, K), 0.5)),
    sl.losses.function(plain, n_arms=K),
]
options = [
    {},
    {"rate": "fixed", "strong_independence": 4},
    {"ties": "practical", "start": "cover"},
    {"start": "none"},
]
for k in range(max(len(graphs), len(worlds)) + 1):
    graph, world = graphs[k % len(graphs)], worlds[k % len(worlds)]
    seed = [3, 2**64 - 1, np.uint64(5), np.int32(7)][k % 4]
    checkpoints = [None, 5, [30]][k % 3]
    runs = [1, [np.int64(4), 2]][k % 2]
    sl.simulate("exp3.g++", graph, world, 30, runs, seed, checkpoints, **options[k % 4])
    first = graph if isinstance(graph, sl.FeedbackGraph) else graph.graph_of_round(1, seed=seed, run=np.int32(2))
    agent = sl.Agent("exp3.g++", first, seed=seed, **options[k % 4])
    for t in range(1, 9):
        decision = agent.ask(bank[t % 3] if t % 2 else None)
        agent.tell(decision, [world.loss(3, 0, t, int(i)) for i in decision.reveals])
        decision.observe_probabilities
    agent.estimates()
report()
"""


def run(program, folder, cache, **environment):
    """Run a program in a folder, as a new process with this cache; any warning is an error."""
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-W", "error", folder / "program.py"],
        env=os.environ
        | {
            "SIDELONG_CACHE_DIR": str(cache),
            "PYTHONDONTWRITEBYTECODE": "1",  # an edit within a second, of the same length, would not be seen
            "NUMBA_DISABLE_JIT": "0",
            "NUMBA_OPT": "0",  # what is compiled here need not be fast
        }
        | environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return json.loads(done.stdout)


@pytest.mark.nightly
def test_each_kernel_is_compiled_once_for_all_and_a_second_process_compiles_nothing(tmp_path):
    """One test, since the first process takes its time: it has an empty cache."""
    first = run(REPORT + EVERYTHING, tmp_path, tmp_path / "cache")
    offenders = {name: signatures for name, signatures in first["signatures"].items() if len(signatures) > 1}
    assert not offenders, "\n".join(f"{name}: {len(each)} signatures {each}" for name, each in offenders.items())
    reached = [name for name, signatures in first["signatures"].items() if signatures]
    assert len(reached) > 20
    assert any(name.startswith("sidelong.simulation.loop.play_exp3.g++_exp3gpp_builtin") for name in reached)
    assert first["compiled"]

    second = run(REPORT + EVERYTHING, tmp_path, tmp_path / "cache")
    assert second["compiled"] == {}
    # A kernel that is part of another is not even loaded.
    assert any(second["signatures"].values())
    assert all(set(each) <= set(first["signatures"][name]) for name, each in second["signatures"].items())


WARM_UP = """
from sidelong.cli import warm_up

warm_up._compile("uniform")
report()
"""
LATER = """
import sidelong as sl

graph = sl.graphs.complete(3)
agent = sl.Agent("uniform", graph, certificate=True)
agent.tell(agent.ask(), [1.0] * 3)
family = sl.Family("uniform", graph, seed=1)
family.cancel(family.ask(["a"]).ids)
family.tell(family.ask(["a", "b"]), [1.0] * 6)
for world in (sl.losses.beta([0.5] * 3, 4), sl.losses.switching([[0.0, 1.0, 0.0]] * 2, every=4)):
    sl.simulate("uniform", graph, world, 30)
    sl.simulate("uniform", graph, world, 30, delay="uniform:0:3")
    sl.simulate("uniform", sl.graphs.resampled(3, 0.5), world, 30)
report()
"""


WARM_UP_LOGS = """
from sidelong.cli import warm_up

warm_up._compile("exp3-set")
warm_up._compile("squarecb.g")
report()
"""
LATER_LOGS = """
import sidelong as sl

graph = sl.graphs.complete(3)
agent = sl.Agent("exp3-set", graph)
agent.learn({"action": [0, 1, 2], "loss": [0.5] * 3, "pscore": [0.5] * 3})
decision = agent.ask()
for _ in range(2):
    agent.tell(decision, [1.0] * 3)
agent.add_arm()
agent.ask()
family = sl.Family("exp3-set", graph, seed=1)
plan = family.ask(["a", "b"])
family.observe_probabilities(plan)
family.tell(plan, [1.0] * 6)
for x in ([1.0, 2.0], [[1.0]] * 3):
    agent = sl.ContextualAgent("squarecb.g", graph)
    agent.predict(x)
    agent.tell(agent.ask(x), [1.0] * 3)
    family = sl.Family("squarecb.g", graph)
    family.tell(family.ask(["a"], x=[x]), [1.0] * 3)
report()
"""


WARM_UP_GLANCE = """
from sidelong.cli import warm_up

warm_up._compile("glance")
report()
"""
LATER_GLANCE = """
import sidelong as sl

graph = sl.graphs.nested(4)


def play(family, costs=None, **known):
    plan = family.ask(["a", "b"], **known)
    n = plan.reveals.size
    family.tell(plan, [0.5] * n, costs=None if costs is None else [costs] * n)
    family.estimates()
    return family


play(sl.Family("glance", graph, certificate=True, health=True))["a"].certificate()
play(sl.Family("glance", graph, pooled=True), advice={"team": [1, 2]}).advisers()
play(sl.Family("glance", graph, prior={0: (0.1, 3.0)}))
play(sl.Family("glance", graph, incumbent="team", allowance=4.0), advice={"team": [1, 2]})
play(sl.Family("glance", graph, ceiling=0.5, cost_bounds=[1.0] * 4, overspend=2.0), costs=0.1)
for x in ([1.0, 2.0], [[1.0]] * 4):
    play(sl.Family("glance", graph, regressor="ridge"), x=[x, x])
    agent = sl.ContextualAgent("glance", graph, certificate=True)
    decision = agent.ask(x, advice={"team": 1})
    agent.tell(decision, [1.0] * decision.reveals.size)
    agent.certificate()
report()
"""


@pytest.mark.nightly
def test_what_families_and_features_need_of_glance_is_compiled_ahead(tmp_path):
    assert run(REPORT + WARM_UP_GLANCE, tmp_path, tmp_path / "cache")["compiled"]
    assert run(REPORT + LATER_GLANCE, tmp_path, tmp_path / "cache")["compiled"] == {}


def test_logs_new_arms_and_features_are_compiled_ahead(tmp_path):
    assert run(REPORT + WARM_UP_LOGS, tmp_path, tmp_path / "cache")["compiled"]
    assert run(REPORT + LATER_LOGS, tmp_path, tmp_path / "cache")["compiled"] == {}


def test_what_was_compiled_ahead_is_not_compiled_later(tmp_path):
    assert run(REPORT + WARM_UP, tmp_path, tmp_path / "cache")["compiled"]
    assert run(REPORT + LATER, tmp_path, tmp_path / "cache")["compiled"] == {}


# Other processes

BESIDE = """
import os
import sys

from sidelong import _aside, _jit
from sidelong.numerics import exp, log

os.environ.pop("SIDELONG_BACKGROUND", None)
_aside.cores = _jit.cores = lambda: 2
BEFORE
_jit.compile_all([(exp, (1.0,)), (log, (1.0,))])
_jit.compiled(log, 1.0)
report()
"""


def test_what_was_compiled_in_the_second_process_is_not_compiled_in_the_first(tmp_path):
    report = run(REPORT + BESIDE.replace("BEFORE", ""), tmp_path, tmp_path / "cache")
    assert "exp" in report["compiled"]
    assert "log" not in report["compiled"]
    assert report["signatures"]["sidelong.numerics.log"]


@pytest.mark.parametrize("command", ["/no/such/python", "/bin/false"])
def test_a_second_process_that_fails_does_no_harm(tmp_path, command):
    report = run(REPORT + BESIDE.replace("BEFORE", f"sys.executable = {command!r}"), tmp_path, tmp_path / "cache")
    assert "log" in report["compiled"]


# Processes at the same time

AT_ONCE = """
import os
import pathlib
import signal
import sys
import time

from sidelong import _cache
from sidelong._jit import kernel, load_compiler

here = pathlib.Path(__file__).parent


@kernel
def double(x):
    return 2.0 * x


class Slow(event.Listener):
    def on_start(self, each):  # the other one asks for what is being compiled here
        (here / "begun").touch()
        while not (here / "asked").exists():
            time.sleep(0.01)
        time.sleep(0.5)
        if FATE != "lives":
            os.kill(os.getpid(), signal.SIGKILL if FATE == "killed" else signal.SIGSTOP)

    def on_end(self, each):
        pass


load_compiler()  # now, since its check compiles something too
if ROLE == "first":
    _cache.LockSettings.low_priority = FATE == "gives way"
    event.register("numba:compile", Slow())
else:
    _cache.LockSettings.timeout = 1.0 if FATE == "stopped" else 1e9
    while not (here / "begun").exists():
        time.sleep(0.01)
    (here / "asked").touch()
double(1.0)
assert FATE != "stopped" or _cache.LockSettings.timeout == 0  # it does not wait for each kernel anew
report()
"""


@pytest.mark.parametrize("fate", ["lives", "killed", "stopped", "gives way"])
def test_of_two_processes_that_want_the_same_code_one_compiles(tmp_path, fate):
    """The other waits for it, but not if the first is killed, not for ever if it is stopped, and never if it gives way.

    The one that gives way is stopped here, as a process of a low priority is on a busy machine.
    """
    program, environment = (
        tmp_path / "both.py",
        os.environ
        | {
            "SIDELONG_CACHE_DIR": str(tmp_path / "cache"),
            "NUMBA_DISABLE_JIT": "0",
        },
    )
    program.write_text("import sys\nROLE, FATE = sys.argv[1:]\n" + REPORT + AT_ONCE)
    both = [
        subprocess.Popen([sys.executable, program, role, fate], env=environment, stdout=subprocess.PIPE, text=True)
        for role in ("first", "second")
    ]
    second = both[1].communicate()[0]
    if fate in {"stopped", "gives way"}:
        both[0].kill()
    first = both[0].communicate()[0]
    if fate != "lives":
        assert not first
        assert json.loads(second)["compiled"] == {"double": 1}
    else:
        assert json.loads(first)["compiled"]
        assert json.loads(second)["compiled"] == {}


# Edits

#: the learner of the guide; and files of a user, which take from each other
LEARNER = re.findall(r"^```python\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)[0]
FILES = {
    "learner": LEARNER.replace("import numpy", "import far\nfrom helper import CONSTANT, helper\nimport numpy").replace(
        "trace[0] = params.share", "trace[0] = 1.0 + CONSTANT + helper(params.share) + far.TABLE[1500] + far.away()"
    ),
    "far": """
import numpy as np
from sidelong._jit import kernel

TABLE = np.zeros(2000)
TABLE[1500] = 0.0


@kernel
def away():
    return 0.0
""",
    "helper": """
from sidelong._jit import kernel

CONSTANT = 0.5


@kernel
def helper(x):
    return 8.0 * x
""",
    "world": """
import sidelong as sl
from constants import FACTOR


@sl.losses.compiled
def loss(seed, run, t, arm):
    return FACTOR * 0.125
""",
    "constants": "FACTOR = 1.0\n",
}
USE = """
import json

import sidelong as sl
from world import loss

graph, world, seen = sl.graphs.star(4), sl.losses.function(loss, n_arms=4), []
for learner in [__import__(name) for name in LEARNERS]:
    result = sl.simulate(learner, graph, world, rounds=8, checkpoints=1)
    seen.append([result.traces["largest"][0, 0], sl.Agent(learner, graph).ask().drawn.trace[0], result.loss[0, 0]])
print(json.dumps(seen))
"""


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Return a folder with links to the machine code that is kept, so that the package's own is not compiled anew."""
    root, folder = tmp_path_factory.mktemp("cache"), _cache.cache_folder()
    if folder is not None:
        (root / "kernels").mkdir()
        for file in folder.glob("*.code"):
            (root / "kernels" / file.name).symlink_to(file)
    return root


ADDED = """
import json
from sidelong._jit import compiled, kernel, load_compiler, rare_kernel

load_compiler()

def made(step):
    @rare_kernel
    def add(x):
        return x + step

    @kernel
    def twice(x):
        return add(add(x))

    return twice

kernels = [made(step) for step in STEPS]
print(json.dumps([compiled(each, 1.0)(1.0) for each in kernels]))
"""


def test_functions_of_one_name_that_two_processes_have_compiled_are_not_mistaken_for_each_other(tmp_path):
    """Numba numbers the functions of a process, and gives those of the first two programs the same numbers."""

    def results(steps):
        return run(ADDED.replace("STEPS", str(steps)), tmp_path, tmp_path / "cache")

    assert results([]) == []  # which compiles a check of Numba, once for each folder
    assert results([2.0]) == [5.0]
    assert results([5.0]) == [11.0]
    assert results([2.0, 5.0]) == [5.0, 11.0]


#: Edits of files, two at once where one shows in what the learner writes and one in the loss; and what is seen then.
EDITS = [
    ([("learner", "= 1.0 + C", "= 3.0 + C"), ("world", "0.125", "0.250")], [5.5, 5.5, 2.0]),
    ([("helper", "CONSTANT = 0.5", "CONSTANT = 4.5"), ("constants", "1.0", "2.0")], [9.5, 9.5, 4.0]),
    ([("helper", "8.0 * x", "9.0 + x")], [16.75, 16.75, 4.0]),
    ([("far", "TABLE[1500] = 0.0", "TABLE[1500] = 5.0")], [21.75, 21.75, 4.0]),
    ([("far", "return 0.0", "return 7.0")], [28.75, 28.75, 4.0]),
]


@pytest.mark.long
@pytest.mark.parametrize("edits", [EDITS[:2], pytest.param(EDITS, marks=pytest.mark.nightly)], ids=["some", "all"])
def test_an_edit_is_seen_in_whichever_file_it_is(tmp_path, cache, edits):
    """What the learner writes in the loop and in the agent, and the loss of eight rounds; after one edit more each."""
    program = USE.replace("LEARNERS", "['learner']")
    write(tmp_path, **FILES)
    assert run(program, tmp_path, cache) == [[3.5, 3.5, 1.0]]
    for edited, seen in edits:
        for file, old, new in edited:
            path = tmp_path / f"{file}.py"
            assert path.read_text().count(old) == 1
            path.write_text(path.read_text().replace(old, new))
        assert run(program, tmp_path, cache) == [seen], edited


def test_learners_in_one_process_do_not_run_the_code_of_another(tmp_path, cache):
    """Two learners of different names, and a third that has the name of the first."""
    write(tmp_path, **FILES)
    for k, name in enumerate(["first", "second", "first"]):
        text = LEARNER.replace('"my-uniform"', f'"{name}"').replace("trace[0] = params.share", f"trace[0] = {k}.0")
        write(tmp_path, **{f"learner_{k}": text})
    program = USE.replace("LEARNERS", "['learner_0', 'learner_1', 'learner_2'] * 2")
    for _ in range(2):  # compiled, and from the cache
        assert run(program, tmp_path, cache) == [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [2.0, 2.0, 1.0]] * 2


RELOAD = """
import importlib
import json
from pathlib import Path

import learner
import sidelong as sl

graph, world, seen = sl.graphs.star(4), sl.losses.bernoulli([0.5] * 4), []
for k in range(2):
    result = sl.simulate(learner, graph, world, rounds=8, checkpoints=1)
    seen.append([result.traces["largest"][0, 0], sl.Agent(learner, graph).ask().drawn.trace[0]])
    file = Path(learner.__file__)
    file.write_text(file.read_text().replace("= 1.0 + C", "= 3.0 + C"))
    importlib.reload(learner)
print(json.dumps(seen))
"""


def test_a_learner_that_is_loaded_again_is_run_as_it_is_now(tmp_path, cache):
    write(tmp_path, **FILES)
    assert run(RELOAD, tmp_path, cache) == [[3.5, 3.5], [5.5, 5.5]]


CHANGED = """
import sys

import constants
import sidelong as sl
import world

for factor in sys.argv[1:] or [None]:
    constants.FACTOR = world.FACTOR = float(factor or constants.FACTOR)
    losses = sl.losses.function(world.loss, n_arms=4)
    print(sl.simulate("uniform", sl.graphs.star(4), losses, rounds=8).loss[0, -1])
"""


def test_a_number_that_was_changed_while_a_program_ran_is_not_mistaken_for_another(tmp_path, cache):
    write(tmp_path, **FILES, program=CHANGED)

    def seen(*factors):
        program = [sys.executable, "-W", "error", tmp_path / "program.py", *factors]
        environment = os.environ | {
            "SIDELONG_CACHE_DIR": str(cache),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_DISABLE_JIT": "0",
            "NUMBA_OPT": "0",
        }
        done = subprocess.run(program, env=environment, check=True, capture_output=True, text=True)
        return [float(line) for line in done.stdout.split()]

    assert seen("1", "4", "1") == [1.0, 4.0, 1.0]
    assert seen("4") == [4.0]
    write(tmp_path, constants="FACTOR = 4.0\n")
    assert seen() == [4.0]


#: What an agent and its certificate need.
TELL = """
import sidelong as sl

agent = sl.Agent("uniform", sl.graphs.nested(3), seed=1, certificate=True)
decision = agent.ask()
agent.tell(decision, [1.0] * len(decision.reveals))
report()
"""


def reword(file):
    """Edit all docstrings of a file, and add comments."""
    text = re.sub(r'^( *)"""(?=[A-Z])', r'\1"""Once upon a time. ', file.read_text(), flags=re.MULTILINE)
    file.write_text(re.sub(r"^@(kernel|rare_kernel)$", r"# A comment.\n@\1", text, flags=re.MULTILINE))


@pytest.mark.nightly
def test_an_edit_of_the_package_recompiles_what_depends_on_it_and_words_recompile_nothing(tmp_path, monkeypatch):
    """The limits of the alarm run in every `tell`, and not in `ask`."""
    package = tmp_path / "sidelong"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    first = run(REPORT + TELL, tmp_path, tmp_path / "cache")["compiled"]
    assert {"ask_uniform_uniform", "learn_uniform_uniform", "settle", "_close"} <= first.keys()
    for file in package.rglob("*.py"):
        reword(file)
    assert run(REPORT + TELL, tmp_path, tmp_path / "cache")["compiled"] == {}
    alarm = package / "evaluation" / "turning.py"
    alarm.write_text(alarm.read_text().replace("\n_RATES = 16", "\n_RATES = 15"))
    second = run(REPORT + TELL, tmp_path, tmp_path / "cache")["compiled"]
    assert {"learn_uniform_uniform", "_close"} <= second.keys()
    assert not {"ask_uniform_uniform", "settle", "update"} & second.keys()


PAIR = """
from typing import NamedTuple


class Pair(NamedTuple):
    first: float
    second: float
"""
FIELDS = """
from pair import Pair
from sidelong._jit import kernel


@kernel
def difference(pair):
    return pair.first - pair.second


print(difference(Pair(first=3.0, second=1.0)))
"""


def test_fields_that_change_places_are_seen(tmp_path, cache):
    """A kernel that only takes a tuple does not name its class."""
    write(tmp_path, pair=PAIR)
    assert run(FIELDS, tmp_path, cache) == 2.0
    write(tmp_path, pair=PAIR.replace("first: float\n    second: float", "second: float\n    first: float"))
    assert run(FIELDS, tmp_path, cache) == 2.0


EDITED = """
import pathlib

from sidelong import numerics

here = pathlib.Path(numerics.__file__)
if WHEN == "before":
    here.write_text(here.read_text().replace(OLD, NEW))
import numpy as np

print(numerics.total(np.array([0.5, 1.0])))
"""


def test_sources_that_are_edited_while_a_process_runs_are_not_mistaken_for_what_it_has_loaded(tmp_path, monkeypatch):
    shutil.copytree(PACKAGE, tmp_path / "sidelong", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    program = f"OLD, NEW = {TOTAL!r}, {TOTAL + ' + 1.0'!r}\n{EDITED}"
    assert run(f"WHEN = 'before'\n{program}", tmp_path, tmp_path / "cache") == 1.5
    assert run(f"WHEN = 'later'\n{program}", tmp_path, tmp_path / "cache") == 2.5


SAYS = """
import json
import numba
from sidelong._jit import kernel


@kernel
def inner(x):
    print("seen", x)
    return x + 1.0


@kernel
def outer(x):
    return inner(x)


outer(1.0)
print(json.dumps(outer(x=1.0)))
"""


def test_a_kernel_that_is_part_of_another_can_print(tmp_path, cache):
    (tmp_path / "program.py").write_text(SAYS)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, tmp_path / "program.py"],
            env=os.environ | {"SIDELONG_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"},
            check=False,
            capture_output=True,
            text=True,
        )
        assert sorted(done.stdout.split("\n")) == ["", "2.0", "seen 1.0", "seen 1.0"], done.stderr


TYPED = """
import sidelong as sl

@sl.losses.compiled
def loss(seed, run, t, arm):
    return 0.25

print(sl.simulate("uniform", sl.graphs.star(4), sl.losses.function(loss, n_arms=4), rounds=8).loss[0, -1])
"""


def test_a_function_that_is_in_no_file_can_be_compiled(cache):
    for text, wanted in ((TYPED, "2.0\n"), (TYPED.replace("0.25", "0.5"), "4.0\n"), (TYPED, "2.0\n")):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", text],
            env=os.environ | {"SIDELONG_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0", "NUMBA_OPT": "0"},
            check=False,
            capture_output=True,
            text=True,
        )
        assert (done.stdout, done.stderr) == (wanted, "")


# In each child Numba is told other variables, and then compiles or loads the kernel.
THETA = """
import json
import os

import numba
import numpy as np
from sidelong._jit import load_compiler
from sidelong.learners.weights import theta

load_compiler()
numba.njit(lambda x: x)(1.0)  # what every compilation needs is then loaded once, and not in each child
seen = []
for variables in ALL:
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.environ.update(variables)
        numba.config.reload_config()
        answer = theta(np.array([0.5, 0.5]), np.array([1.0, 0.5]))
        os.write(writing, json.dumps([answer, numba.config.CACHE_LOCATOR_CLASSES]).encode())
        os._exit(0)
    os.close(writing)
    os.wait()
    seen.append(json.loads(os.read(reading, 1000)))
print(json.dumps(seen))
"""
#: Of a user: it never sees that a file was edited.
BLIND = """
from numba.core.caching import InTreeCacheLocator


class Blind(InTreeCacheLocator):
    def get_source_stamp(self):
        return 0
"""
LOCATORS = [
    *(
        name
        for name, each in vars(caching).items()
        if isinstance(each, type) and issubclass(each, caching._CacheLocator) and not inspect.isabstract(each)
    ),
    "locators.Blind",
]
TOTAL = "((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))"  # in `numerics.total`, which `theta` calls
#: What each variable of Numba about a cache is set to.
CACHE_VARIABLES = {
    "CACHE_LOCATOR_CLASSES": LOCATORS,
    "CACHE_DIR": ["numba"],
    "DEBUG_CACHE": ["1"],
    "DISABLE_TYPEINFER_FAIL_CACHE": ["1"],
    "FUNCTION_CACHE_SIZE": ["0"],
}


def test_no_variable_of_numba_makes_an_edited_kernel_run_its_old_code(tmp_path, monkeypatch):
    """The edit is in a copy of the package, in another file than the kernel. Nothing is kept where variables say."""
    assert {name for name in vars(numba.config) if "CACHE" in name} <= CACHE_VARIABLES.keys()
    alone = [{f"NUMBA_{name}": value} for name, values in CACHE_VARIABLES.items() for value in values]
    every = alone + [each | {"NUMBA_CACHE_DIR": "numba"} for each in alone]
    shutil.copytree(PACKAGE, tmp_path / "sidelong", ignore=shutil.ignore_patterns("__pycache__"))
    write(tmp_path, locators=BLIND)
    monkeypatch.chdir(tmp_path)
    program = f"ALL = {every!r}\n{THETA}"
    # Python would warn of a fork beside the threads of OpenBLAS.
    where = {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "home"), "OPENBLAS_NUM_THREADS": "1"}
    edited = tmp_path / "sidelong" / "numerics.py"
    told = [each.get("NUMBA_CACHE_LOCATOR_CLASSES", "") for each in every]
    assert run(program, tmp_path, tmp_path / "cache", **where) == [[1.5, name] for name in told]
    assert edited.read_text().count(TOTAL) == 1
    edited.write_text(edited.read_text().replace(TOTAL, f"{TOTAL} + 1.0"))
    assert run(program, tmp_path, tmp_path / "cache", **where) == [[2.5, name] for name in told]
    assert not list((tmp_path / "sidelong").rglob("*.n*")) + list((tmp_path / "sidelong").rglob("*.code"))
    assert not (tmp_path / "numba").exists()
    assert not (tmp_path / "home").exists()


# The folder


def test_where_no_cache_can_be_written_all_works_without_it(tmp_path):
    write(tmp_path, **FILES)
    (tmp_path / "file").write_text("not a folder")
    assert run(USE.replace("LEARNERS", "['learner']"), tmp_path, tmp_path / "file") == [[3.5, 3.5, 1.0]]
    assert (tmp_path / "file").read_text() == "not a folder"


LOG = "from sidelong.numerics import log\nprint(log(1.0))\n"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits to be set")
def test_a_full_disk_stops_nothing(tmp_path):
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n" + LOG
    assert run(limited, tmp_path, tmp_path / "cache") == 0.0


def test_a_damaged_cache_is_made_anew(tmp_path):
    assert run(LOG, tmp_path, tmp_path / "cache") == 0.0
    files = list((tmp_path / "cache").rglob("*.code"))
    assert files
    for damage in (lambda whole: whole[:20], lambda _: b"", lambda whole: whole[:-9] + b"!" + whole[-8:]):
        for file in files:
            file.write_bytes(damage(file.read_bytes()))
        assert run(LOG, tmp_path, tmp_path / "cache") == 0.0


@pytest.fixture
def choose(monkeypatch):
    """Return what finds the folder for machine code, as in a new process."""

    def find(root):
        monkeypatch.setenv("SIDELONG_CACHE_DIR", str(root))
        return _cache.cache_folder.__wrapped__()

    return find


def test_a_folder_that_cannot_be_read_is_not_used(tmp_path, choose, monkeypatch):
    (tmp_path / "file").touch()
    assert choose(tmp_path / "file") is None
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests may be allowed everything
    assert choose(tmp_path) is None


READ_ONLY = """
import os

from numba.core.base import BaseContext

access = os.access
os.access = lambda path, mode: not mode & os.W_OK and access(path, mode)
from sidelong import _cache
from sidelong.numerics import log

assert not _cache.is_writable()
BaseContext.refresh = None  # what only a compilation needs, and takes as long as to load Numba
log(1.0)
report()
"""


def test_a_folder_that_can_only_be_read_is_read(tmp_path):
    assert run(LOG, tmp_path, tmp_path / "cache") == 0.0
    assert run(REPORT + READ_ONLY, tmp_path, tmp_path / "cache")["compiled"] == {}


def test_files_that_were_used_least_recently_are_removed(tmp_path, choose, monkeypatch):
    folder = choose(tmp_path)
    for age in range(12):
        (folder / f"{age}.code").write_bytes(bytes(10))
        os.utime(folder / f"{age}.code", (1e9 - age, 1e9 - age))
    _cache._remove_least_used.__wrapped__(folder)
    assert len(list(folder.iterdir())) == 12
    monkeypatch.setattr(_cache, "_MOST_BYTES", 100)
    _cache._remove_least_used.__wrapped__(folder)
    assert {file.name for file in folder.iterdir()} == {f"{age}.code" for age in range(5)}
