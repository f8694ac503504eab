"""Plain Python at first and machine code when it is there: the same bits, one process that compiles, nothing lost."""

import concurrent.futures
import contextlib
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import sidelong as sl
from sidelong import _at_once, _background, _jit, _kernel, _recipe
from sidelong.agent import state_file
from sidelong.agent.learning import learning
from sidelong.agent.seen import Seen, note
from sidelong.evaluation.turning import Turning
from sidelong.learners import catalogue
from sidelong.learners.interface import Need, drawing
from sidelong.losses.kernels import loss

pytestmark = pytest.mark.skipif(_kernel.jit_is_off(), reason="nothing is compiled")

#: Learners with a distribution, one that draws itself, one that does not look at every arm, one that counts what is
#: outstanding, one that keeps more than probabilities with a decision; and the certificate.
SWITCHED = {
    "exp3.g++": ("exp3.g++", {"certificate": True}),
    "exp3.g++ epochs": ("exp3.g++", {"refresh": "epoch"}),
    "exp3-set guarded": ("exp3-set", {"late": "guarded"}),
    "ts-n": ("ts-n", {}),
    "glance": ("glance", {}),
    "uniform": ("uniform", {}),
}
ROUNDS = 7


class Gate:
    """Whether machine code is there."""

    open = False


@pytest.fixture
def gate(monkeypatch):
    """Let agents begin in plain Python, and take the machine code when the gate opens."""
    gate, found = Gate(), _jit.at_hand
    _jit.load_compiler()  # which is not waited for then
    monkeypatch.setenv("SIDELONG_BACKGROUND", "1")
    monkeypatch.setattr(_at_once, "at_hand", lambda *call: found(*call) if gate.open else None)
    monkeypatch.setattr(_background, "is_done", lambda words: gate.open)  # noqa: ARG005
    monkeypatch.setattr(_background, "ask_for", lambda wanted: None)  # noqa: ARG005
    return gate


def play(learner, options, before_step):
    """Return all bits of a run; `before_step` is called with the agent before each `ask` and each `tell`."""
    agent = sl.Agent(learner, sl.graphs.nested(5), seed=3, **options)
    seen, step = [], 0
    waiting = []
    for t in range(ROUNDS):
        before_step(agent, step)
        decision = agent.ask()
        seen.append((decision.arm, decision.probabilities.tobytes(), decision._trace.tobytes()))
        waiting.append(decision)
        before_step(agent, step + 1)
        if t % 3:  # some feedback is late
            for each in waiting:
                agent.tell(each, [float((t + int(i)) % 3 == 0) for i in each.reveals])
            waiting = []
        step += 2
    if waiting:
        agent.cancel(waiting[0])
    return seen, state_file.pack(*agent.contents()), agent.estimates().weights.tobytes()


def is_plain(agent):
    return isinstance(agent._learner._draw, _at_once._Beginner)


@pytest.mark.parametrize("label", SWITCHED)
def test_a_switch_before_any_step_changes_no_bit(label, gate):
    learner, options = SWITCHED[label]
    gate.open = True
    expected = play(learner, options, lambda *_: None)
    for switched in range(2 * ROUNDS + 1):
        gate.open = False
        kinds = []

        def before(agent, step, switched=switched, kinds=kinds):
            kinds.append(is_plain(agent))
            gate.open = step >= switched

        assert play(learner, options, before) == expected, switched
        # `_draw` is looked at before each step, and gives its place in the first `ask` after the gate opened.
        assert kinds == [step <= switched + switched % 2 for step in range(2 * ROUNDS)]


def test_all_learners_make_their_first_decision_without_the_compiler(tmp_path):
    program = """
import sys
import sidelong as sl
from sidelong.learners.interface import Need

for name in sl.learners.names():
    needs = sl.learners.catalogue.find(name).needs
    graph = sl.graphs.complete(24) if Need.FULL_INFORMATION in needs else sl.graphs.nested(24)
    graph = sl.graphs.cliques([4] * 6) if Need.UNDIRECTED in needs else graph
    agent = sl.Agent(name, graph, **{"horizon": 100} if Need.HORIZON in needs else {})
    for _ in range(2):
        decision = agent.ask()
        agent.tell(decision, [1.0] * len(decision.reveals))
        decision.observe_probabilities
assert "numba" not in sys.modules
"""
    environment = os.environ | {"SIDELONG_BACKGROUND": "1", "SIDELONG_CACHE_DIR": str(tmp_path)}
    program = f"import os\nos.posix_spawn = lambda *_, **__: None\n{program}"  # which would compile all of them
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# In words


@pytest.mark.parametrize("name", sl.learners.names())
def test_another_process_compiles_for_the_same_types(name):
    module = catalogue.find(name)
    graph = sl.graphs.complete(3)
    options = {"horizon": 10} if Need.HORIZON in module.needs else {}
    params = catalogue.configure(module, graph, options)
    known = (params, module.init(params, graph), graph.arrays, 1)
    room = np.empty(3)
    told = (0, room, room, room, True, Seen.nothing(3), Turning.new(3), room, room, 0, 1)
    for kernel, call in (
        (drawing(module), (*known, np.uint64(1), 0, room, room)),
        (learning(module), (*known, *told)),
    ):
        made, arguments = _recipe.follow(_recipe.describe(kernel, call))
        assert _jit.signature_of(*arguments) == _jit.signature_of(*call)
        assert made.__name__ == kernel.__name__
        assert made.py_func.__code__ == kernel.py_func.__code__


def test_arrays_of_all_kinds_and_numbers_come_back_with_their_types():
    frozen = np.zeros(3, np.int32)
    frozen.flags.writeable = False
    wide = np.zeros((4, 6))
    call = (frozen, wide, wide.T, wide[::2, ::2], wide[0, ::2], 3, 2.0, True, np.uint64(1), np.float32(1), (1, wide))
    _, arguments = _recipe.follow(_recipe.describe(loss, call))
    assert _jit.signature_of(*arguments) == _jit.signature_of(*call)


def test_what_is_not_the_package_s_is_not_described():
    mine = _jit.kernel(lambda x: x)
    assert _recipe.describe(mine, (1.0,)) is None
    assert _recipe.describe(loss, ("text",)) is None
    assert _recipe.describe(_jit.specialise(drawing, "another", name_of=mine), (1.0,)) is None


# The other process


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of what is asked for, of an empty cache."""
    (tmp_path / "kernels" / "hash").mkdir(parents=True)
    monkeypatch.setenv("SIDELONG_BACKGROUND", "1")
    monkeypatch.setattr(_background, "cache_folder", lambda: tmp_path / "kernels" / "hash")
    monkeypatch.setattr(_background, "can_keep", lambda: True)
    _background._folder.cache_clear()
    yield tmp_path / "kernels" / "hash" / "asked"
    _background._folder.cache_clear()


@pytest.fixture
def started(monkeypatch):
    """Return the commands of processes that would have been started."""
    commands = []

    def spawn(*call, **_):
        commands.append(call)
        return 2**22 + 1  # which is no process

    monkeypatch.setattr(os, "posix_spawn", spawn)
    return commands


WORDS = _recipe.describe(note, (0, 0.5, *Seen.nothing(1)))


def test_one_process_is_started_unless_there_is_one(folder, started):
    assert _background.is_possible(WORDS)
    _background.ask_for([WORDS])
    assert len(started) == 1
    assert [each.read_text() for each in folder.glob("*.wanted")] == [WORDS]
    with (folder / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _background.ask_for([WORDS])
        assert len(started) == 1  # the one that holds the lock will find it
    _background.note_done(WORDS)
    _background.ask_for([WORDS])
    assert len(started) == 1
    assert _background.is_done(WORDS)


def test_a_folder_that_can_only_be_read_serves_what_is_done(folder, started, monkeypatch):
    _background.ask_for([WORDS])
    _background.note_done(WORDS)
    monkeypatch.setattr(_background, "can_keep", lambda: False)
    assert _background.is_possible(WORDS)
    assert not _background.is_possible("another")
    assert len(started) == 1
    assert folder.is_dir()


@pytest.mark.usefixtures("folder")
def test_a_process_that_has_ended_leaves_nothing_behind(monkeypatch):
    spawn, children = os.posix_spawn, []
    monkeypatch.setattr(sys, "executable", "/bin/true")
    monkeypatch.setattr(os, "posix_spawn", lambda *call, **named: children.append(spawn(*call, **named)) or children[0])
    _background.ask_for([WORDS])
    end = time.monotonic() + 120
    while Path(f"/proc/{children[0]}").exists():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.usefixtures("folder")
def test_the_process_lets_go_of_locks_that_it_inherits(started, tmp_path):
    _background.ask_for([WORDS])
    ((executable, (_, flag, program), environment),) = started
    assert program.endswith("import work; work()")
    program = program.replace("work()", "print('ready', flush=True); sys.stdin.read()")
    with (tmp_path / "locked").open("w") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)
        process = subprocess.Popen(
            [executable, flag, program],
            env=environment,
            pass_fds=[mine.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    with process, (tmp_path / "locked").open() as other:
        assert process.stdout.readline() == b"ready\n"
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process.stdin.close()


def test_what_is_not_done_after_a_long_time_is_asked_for_again(monkeypatch):
    """The process that compiled it may have been killed."""
    asked, process = [], _at_once._Process()
    monkeypatch.setattr(_background, "ask_for", lambda wanted: asked.append(list(wanted)))
    process.add("a")
    process.add("a")
    for spent in (0.0, 1.0, 21.0, 40.0):
        process.spent = spent
        process.ask()
    assert asked == [["a"], ["a"]]
    process.add("b")
    process.ask()
    process.spent = 43.0
    process.ask()
    assert asked[2:] == [["b"], ["a", "b"]]


def test_the_process_does_what_is_asked_for_and_what_cannot_be_compiled_stops_nothing(folder, monkeypatch):
    compiled, niced = [], []
    monkeypatch.setattr(_background, "entry", lambda kernel, *_: compiled.append(kernel))
    monkeypatch.setattr(_background.signal, "alarm", lambda _: None)
    monkeypatch.setattr(os, "nice", niced.append)
    monkeypatch.setattr(_background.Manners, "gives_way", False)
    monkeypatch.setattr(_background, "_start", lambda: None)
    nonsense = WORDS.replace("note", "nothing")
    _background.ask_for([nonsense, WORDS])
    with (folder / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _background.work()
        assert not compiled  # another one is at work
    _background.work()
    assert compiled == [note]
    assert niced == [19, 19]
    assert _background.Manners.gives_way
    assert _background.is_done(nonsense)
    assert _background.is_done(WORDS)
    assert not list(folder.glob("*.wanted"))


@pytest.mark.parametrize("variable", ["SIDELONG_BACKGROUND=0", "NUMBA_DISABLE_JIT=1", "SIDELONG_CACHE_DIR=/dev/null"])
def test_where_nothing_can_be_compiled_aside_no_process_is_started(variable):
    name, _, value = variable.partition("=")
    program = "from sidelong import _background; print(_background.is_possible(''))"
    environment = os.environ | {"SIDELONG_BACKGROUND": "1"} | {name: value}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.usefixtures("gate")
def test_many_arms_are_not_begun_in_plain_python(monkeypatch):
    monkeypatch.setattr(_at_once, "LITTLE", 10)
    assert not is_plain(sl.Agent("uniform", sl.graphs.nested(5)))
    monkeypatch.setattr(_at_once, "LITTLE", 10_000)
    assert is_plain(sl.Agent("uniform", sl.graphs.nested(5)))


def test_what_is_said_to_be_there_and_is_not_is_compiled_here(gate, monkeypatch):
    agent = sl.Agent("uniform", sl.graphs.nested(5), seed=1)
    monkeypatch.setattr(_at_once, "at_hand", lambda *_: None)
    done = []
    monkeypatch.setattr(_background, "note_done", done.append)
    assert is_plain(agent)
    gate.open = True
    agent.ask()
    assert not is_plain(agent)
    assert len(done) == 1


def test_where_numba_cannot_be_loaded_plain_python_goes_on_and_says_so_once(gate, monkeypatch):
    def fail():
        raise ImportError("Numba needs NumPy 2.9 or less")

    agent = sl.Agent("uniform", sl.graphs.nested(5), seed=1)
    monkeypatch.setattr(_at_once, "_process", _at_once._Process())
    monkeypatch.setattr(_at_once, "load_compiler", fail)
    gate.open = True
    with pytest.warns(RuntimeWarning, match=r"Numba cannot be loaded \(Numba needs NumPy 2.9 or less\).*pip install"):
        first = agent.ask()
    agent.tell(first, [1.0] * len(first.reveals))
    agent.ask()  # a second warning would be an error
    assert is_plain(agent)


def test_threads_that_switch_at_the_same_moment_change_no_bit(gate):
    learner, options = SWITCHED["exp3-set guarded"]
    gate.open = True
    expected = play(learner, options, lambda *_: None)
    gate.open = False
    together = threading.Barrier(6, lambda: setattr(gate, "open", True))

    def before(_agent, step):
        if step == ROUNDS:
            together.wait(120)

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda _: play(learner, options, before), range(6)))
    assert results == [expected] * 6


#: A user's script, which ends long before its kernel is compiled. What it asks for is small.
SCRIPT = """
import json, sys
from sidelong import _at_once
from sidelong.agent.learning import learning
from sidelong.agent.seen import Seen, note

class Owner: pass

owner, seen = Owner(), Seen.nothing(2)
_at_once.begin(owner, "note", note, 0, 0.5, *seen)
first = type(owner.note).__name__
owner.note(0, 0.25, *seen)
if len(sys.argv) > 1:
    _at_once._process.spent = 10.0  # as if it had run for a while
owner.note(0, 0.75, *seen)
print(json.dumps([first, type(owner.note).__name__, "numba" in sys.modules, seen.means.tolist()]))
"""


@pytest.mark.long
def test_a_script_ends_and_a_later_one_finds_the_machine_code(tmp_path):
    """The process that compiles outlives the first script, is in a session of its own, and is alone in its folder."""
    (tmp_path / "script.py").write_text(SCRIPT)
    # At the lowest priority it would wait for all tests beside this one.
    (tmp_path / "sitecustomize.py").write_text("import os\nos.nice = lambda _: 0\n")
    environment = os.environ | {
        "SIDELONG_BACKGROUND": "1",
        "SIDELONG_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }

    def run(*arguments):
        command = [sys.executable, "-W", "error", tmp_path / "script.py", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert not done.stderr
        return json.loads(done.stdout)

    for _ in range(2):
        assert run() == ["_Beginner", "_Beginner", False, [0.5, 0.0]]
    end = time.monotonic() + 120
    while not list(tmp_path.rglob("*.done")):
        workers = processes(str(tmp_path / "cache"))
        assert len(workers) <= 2  # a second one may look at the lock, and end
        assert all(os.getsid(each) != os.getsid(0) for each in workers if alive(each))
        assert time.monotonic() < end
        time.sleep(0.05)
    assert run("later") == ["_Beginner", "builtin_function_or_method", True, [0.5, 0.0]]
    assert not list(tmp_path.rglob("*.wanted"))


def alive(number):
    with contextlib.suppress(OSError):
        return os.getsid(number) > 0
    return False


def processes(cache):
    """Return the processes that compile into a folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            program, environment = (each / "cmdline").read_bytes(), (each / "environ").read_bytes()
            if b"_background import work" in program and cache.encode() in environment:
                found.append(int(each.name))
    return found
