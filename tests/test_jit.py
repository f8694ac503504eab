"""Plain Python at first and machine code when it is there: the same bits, one process that compiles aside."""

import concurrent.futures
import contextlib
import copy
import fcntl
import gc
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

import sidelong as sl
from sidelong import _aside, _jit
from sidelong._cache import LockSettings
from sidelong._packed import pack
from sidelong.agent import observers, state_file
from sidelong.agent.kernels import kernels_of
from sidelong.agent.rounds import Rounds
from sidelong.agent.setup import prepare
from sidelong.learners import catalogue
from sidelong.learners.interface import Need
from sidelong.losses.world_kernels import loss

pytestmark = pytest.mark.skipif(_jit.jit_is_off(), reason="nothing is compiled")

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
    gate, choose = Gate(), _jit.choose
    _jit.load_compiler()  # which is not waited for then
    monkeypatch.setenv("SIDELONG_BACKGROUND", "1")
    monkeypatch.setattr(_jit, "choose", lambda *call, **named: choose(*call, **named) if gate.open else None)
    monkeypatch.setattr(_jit, "is_done", lambda request: True)  # noqa: ARG005
    monkeypatch.setattr(_jit, "ask_for", lambda requests: None)  # noqa: ARG005
    return gate


def play(learner, options, before_step):
    """Return all bits of a run; `before_step` is called with the agent before each `ask` and each `tell`."""
    agent = sl.Agent(learner, sl.graphs.nested(5), seed=3, **options)
    seen, step = [], 0
    waiting = []
    for t in range(ROUNDS):
        before_step(agent, step)
        decision = agent.ask()
        seen.append((decision.arm, decision.probabilities.tobytes(), decision.drawn.trace.tobytes()))
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
    return isinstance(agent._ask, _jit._PlainCall)


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
        # `_ask` is looked at before each step, and gives its place in the first `ask` after the gate opened.
        assert kinds == [step <= switched + switched % 2 for step in range(2 * ROUNDS)]


def test_all_learners_and_a_family_make_their_first_decisions_without_the_compiler(tmp_path):
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
family = sl.Family("glance", sl.graphs.nested(24), seed=1)
batch = family.ask(range(1000))
family.tell(batch, [0.5] * len(batch.reveals))
agent = sl.Agent("glance", sl.graphs.nested(4), seed=1, certificate=True)
decision = agent.ask()
agent.tell(decision, [1.0] * len(decision.reveals))
agent.certificate()
assert "numba" not in sys.modules
"""
    environment = os.environ | {"SIDELONG_BACKGROUND": "1", "SIDELONG_CACHE_DIR": str(tmp_path)}
    program = f"from sidelong import _jit\n_jit.ask_for = lambda _: None\n{program}"  # or all are compiled
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Requests


@pytest.mark.parametrize("name", sl.learners.names())
def test_another_process_compiles_for_the_same_types(name):
    graph = sl.graphs.complete(3)
    options = {"horizon": 10} if Need.HORIZON in catalogue.find(name).needs else {}
    rounds = Rounds(prepare(name, graph, seed=1, scale=None, prior=None, options=options), single=True)
    known, made = (pack(rounds.attach()), pack(rounds.pending), graph.packed), kernels_of(rounds.setup.learner)
    for kernel, call in (
        (made.ask_one, (*known, 0, 0)),
        (made.tell_one, (*known, graph.packed, 0, 1, 0.0, 1.0, True, 0)),
    ):
        request = _aside.request(kernel, call, kernel.code.key)
        made, arguments = pickle.loads(request.content)  # noqa: S301  # what was written above
        assert _jit.signature_of(*arguments) == _jit.signature_of(*call)
        assert made.code == kernel.code
        assert _aside.request(made, arguments, made.code.key) == request


def test_arrays_of_all_kinds_and_numbers_come_back_with_their_types():
    frozen = np.zeros(3, np.int32)
    frozen.flags.writeable = False
    wide = np.zeros((4, 6))
    call = (frozen, wide, wide.T, wide[::2, ::2], wide[0, ::2], 3, 2.0, True, np.uint64(1), np.float32(1), (1, wide))
    _, arguments = pickle.loads(_aside.request(loss, call, "").content)  # noqa: S301  # what was written here
    assert _jit.signature_of(*arguments) == _jit.signature_of(*call)


@pytest.mark.parametrize("name", ["exp3-set", "exp3.g++", "glance"])
def test_all_that_needs_the_same_machine_code_asks_for_the_same(name):
    """Whatever the seed, the graph and the constants are, so that one mark says that it is done."""
    found = set()
    for graph, seed, scale in ((sl.graphs.complete(2), 0, None), (sl.graphs.path(4), 1, sl.outcomes.Scale(2, 0))):
        rounds = Rounds(prepare(name, graph, seed=seed, scale=scale, prior=None, options={}), single=True)
        call = (
            pack(rounds.attach()),
            pack(rounds.pending),
            graph.packed,
            graph.packed,
            seed,
            1,
            *rounds.setup.ends,
            True,
            0,
        )
        kernel = kernels_of(rounds.setup.learner).tell_one
        found.add(_aside.request(kernel, call, kernel.code.key))
    assert len(found) == 1


# Arguments that stay the same


class Inner(NamedTuple):
    wide: np.ndarray
    whole: int
    flag: bool


class Outer(NamedTuple):
    numbers: np.ndarray
    factor: float
    inner: Inner
    word: np.uint64
    single: np.float32
    flags: np.ndarray


@_jit.kernel
def summed(packed):
    """Use every field once, and write into an array."""
    own = packed.value
    s = own.factor + own.inner.whole + float(own.single)
    for i in range(own.inner.wide.shape[0]):
        for j in range(own.inner.wide.shape[1]):
            s = 2.0 * s + own.inner.wide[i, j]
    for k in range(own.numbers.size):
        own.numbers[k] += 1.0 if own.flags[k] and own.inner.flag else 0.5
        s += own.numbers[k]
    return s + float(own.word >> np.uint64(63))


def outer(wide):
    frozen = np.array([True, False, True])
    frozen.flags.writeable = False
    return Outer(np.arange(3.0), -0.25, Inner(wide, -3, flag=True), np.uint64(2**63), np.float32(0.1), frozen)


WIDE = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize("wide", [WIDE, WIDE.T, WIDE[::-2, 1::2], WIDE[:0]], ids=["C", "F", "strided", "empty"])
def test_what_is_packed_is_read_as_it_is(wide):
    one, other = pack(outer(wide)), pack(outer(wide))
    compiled = _jit.compiled(summed, one)
    for _ in range(2):  # what arrays hold may change between calls
        assert compiled(one) == summed.plain(other)
        assert one.value.numbers.tolist() == other.value.numbers.tolist()


def test_what_is_packed_is_packed_anew_in_a_copy():
    packed = pack(outer(WIDE))
    copies = copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))  # noqa: S301  # what was written here
    before = packed.value.numbers.tolist()
    for each in copies:
        assert each.address == each.words.ctypes.data != packed.address
        _jit.compiled(summed, each)(each)
        assert packed.value.numbers.tolist() == before != each.value.numbers.tolist()


def test_what_is_no_number_is_not_packed():
    with pytest.raises(TypeError, match="numbers, arrays and NamedTuples of them, not str"):
        pack((1.0, "two"))


# The rule

NOTED = (0, 0.5, 1.0, *np.zeros((2, 1)))


@pytest.fixture
def note(monkeypatch):
    """Return a kernel of the package of which nothing is compiled, in a process that has loaded Numba."""
    _jit.load_compiler()
    monkeypatch.setenv("SIDELONG_BACKGROUND", "1")
    monkeypatch.setattr(_jit, "_process", _jit._Process())
    monkeypatch.setattr(_jit, "is_done", lambda request: False)  # noqa: ARG005
    monkeypatch.setattr(_jit, "can_start", lambda: True)
    return _jit.Kernel(observers.add_loss.py_func, inline=True)


def test_plain_python_runs_while_another_process_compiles(note, monkeypatch):
    assert _jit.choose(note, NOTED) is None
    note.plain_seconds = 100.0
    assert _jit.choose(note, NOTED) is None
    monkeypatch.setattr(_jit, "is_done", lambda request: True)  # noqa: ARG005
    code = _jit.choose(note, NOTED)
    assert code is note.entries[_jit._types(NOTED)]
    monkeypatch.setattr(_jit, "is_done", lambda request: False)  # noqa: ARG005
    assert _jit.choose(note, NOTED) is code


def test_machine_code_is_waited_for_where_there_is_much_to_do(note):
    assert _jit.choose(note, NOTED, few=4) is not None


def test_machine_code_is_waited_for_where_one_call_took_long(note):
    note.longest = 10.0
    assert _jit.choose(note, NOTED) is not None


def test_machine_code_is_waited_for_where_no_other_process_can_compile(note, monkeypatch):
    monkeypatch.setattr(_jit, "can_start", lambda: False)
    assert _jit.choose(note, NOTED) is None
    note.plain_seconds = 1.0
    assert _jit.choose(note, NOTED) is not None


def test_machine_code_is_waited_for_where_plain_python_is_turned_off(note, monkeypatch):
    monkeypatch.setenv("SIDELONG_BACKGROUND", "0")
    assert _jit.choose(note, NOTED) is not None


def test_a_kernel_of_a_user_is_compiled_at_once(note):  # noqa: ARG001  # it lets others be plain
    mine = _jit.kernel(lambda x: 2.0 * x)
    assert not mine.code.own
    assert _jit.choose(mine, (1.0,))(1.0) == 2.0


def test_a_kernel_of_a_user_is_compiled_again_only_if_something_that_it_uses_has_changed():
    factor = 0.5
    scale = _jit.kernel(lambda x: factor * x)
    shifted = _jit.kernel(lambda x: 1.0 + scale(x))
    first = _jit.compiled(shifted, 2.0)
    parts = scale.dispatcher, shifted.dispatcher
    assert _jit.compiled(shifted, 2.0) is first
    assert (scale.dispatcher, shifted.dispatcher) == parts
    factor = 3.0
    assert (first(2.0), _jit.compiled(shifted, 2.0)(2.0)) == (2.0, 7.0)


def test_nobody_waits_for_a_thread_that_compiles(note, monkeypatch):
    """A server that has many threads makes an agent while one of them compiles."""
    monkeypatch.setattr(_jit, "is_done", lambda request: True)  # noqa: ARG005
    compiling, done = threading.Event(), threading.Event()

    def slow():
        compiling.set()
        assert done.wait(120)
        return 1.0

    @numba.extending.overload(slow)
    def slow_to_compile():
        return slow() and (lambda: 1.0)

    thread = threading.Thread(target=_jit.kernel(lambda: slow()))  # noqa: PLW0108  # the name is what is compiled
    thread.start()
    assert compiling.wait(120)
    decided = []

    def decide():
        agent = sl.Agent("elp", sl.graphs.nested(3), seed=1)
        decided.append(agent.ask().arm)
        _jit.bind(agent, "_note", note, *NOTED)
        decided.append(type(agent._note))

    other = threading.Thread(target=decide, daemon=True)
    other.start()
    other.join(60)
    still = thread.is_alive()
    done.set()
    thread.join()
    other.join()
    assert still
    assert decided[1:] == [_jit._PlainCall]


def test_what_is_said_to_be_there_and_is_not_is_compiled_here(gate, monkeypatch):
    agent = sl.Agent("uniform", sl.graphs.nested(5), seed=1)
    assert is_plain(agent)
    gate.open = True
    done = []
    monkeypatch.setattr(_jit, "note_done", done.append)
    for each in gc.get_objects():
        if type(each) is _jit.Kernel and each.__name__ == "ask_uniform_uniform":
            each.entries.clear()
    agent.ask()
    assert not is_plain(agent)
    assert len(done) == 1


def test_where_numba_cannot_be_loaded_plain_python_goes_on_and_says_so_once(gate, monkeypatch):
    def fail():
        raise ImportError("Numba needs NumPy 2.9 or less")

    agent = sl.Agent("uniform", sl.graphs.nested(5), seed=1)
    monkeypatch.setattr(_jit, "_process", _jit._Process())
    monkeypatch.setattr(_jit, "private_parts", fail)
    for each in gc.get_objects():
        if type(each) is _jit.Kernel:
            monkeypatch.setattr(each, "entries", {})
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


def test_what_is_not_done_after_a_long_time_is_asked_for_again(monkeypatch):
    """The process that compiled it may have been killed."""
    asked, process = [], _jit._Process()
    monkeypatch.setattr(_jit, "ask_for", lambda wanted: asked.append(list(wanted)))
    for seconds in (0.0, 1.0, 21.0, 40.0):
        process.plain_seconds = seconds
        process.ask_for("a")
    assert asked == [["a"], ["a"]]
    process.ask_for("b")
    process.plain_seconds = 43.0
    process.ask_for("b")
    assert asked[2:] == [["b"], ["a", "b"]]


# The process in the background


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of what is asked for, of an empty cache."""
    (tmp_path / "kernels" / "requests").mkdir(parents=True)
    monkeypatch.setattr(_aside, "cache_folder", lambda: tmp_path / "kernels")
    monkeypatch.setattr(_aside, "is_writable", lambda: True)
    _aside._folder.cache_clear()
    yield tmp_path / "kernels" / "requests"
    _aside._folder.cache_clear()


@pytest.fixture
def started(monkeypatch):
    """Return the commands of processes that would have been started."""
    commands = []
    monkeypatch.setattr(_aside, "_start", lambda *call, **_: commands.append(call))
    return commands


def wanted(kernel=observers.add_loss):
    return _aside.request(kernel, NOTED, kernel.code.key)


def test_one_process_is_started_unless_there_is_one(folder, started):
    request = wanted()
    _aside.ask_for([request])
    assert len(started) == 1
    assert [each.read_bytes() for each in folder.glob("*.wanted")] == [request.content]
    with (folder / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _aside.ask_for([request])
        assert len(started) == 1  # the one that holds the lock will find it
    _aside.note_done(request)
    assert _aside.is_done(request)
    _aside.ask_for([request])
    assert len(started) == 1


def test_a_folder_that_can_only_be_read_serves_what_is_done(folder, started, monkeypatch):
    _aside.note_done(wanted())
    monkeypatch.setattr(_aside, "is_writable", lambda: False)
    assert _aside.is_done(wanted())
    _aside.ask_for([wanted(observers.add_loss)._replace(name="another")])
    assert not started
    assert not list(folder.glob("*.wanted"))


@pytest.mark.usefixtures("folder")
def test_a_process_that_has_ended_leaves_nothing_behind(monkeypatch):
    start, children = _aside._start, []
    monkeypatch.setattr(sys, "executable", "/bin/true")
    monkeypatch.setattr(_aside, "_start", lambda *call, **how: children.append(start(*call, **how)) or children[0])
    _aside.ask_for([wanted()])
    end = time.monotonic() + 120
    while Path(f"/proc/{children[0].pid}").exists():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.usefixtures("folder")
def test_the_process_lets_go_of_what_it_inherits_however_many_files_may_be_open(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda _: 2**40)
    with (tmp_path / "locked").open("w") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)
        os.set_inheritable(mine.fileno(), True)  # noqa: FBT003  # it has no name for it
        process = _aside._start(f"open({str(tmp_path / 'ready')!r}, 'w'); sys.stdin.read()", stdin=subprocess.PIPE)
    try:
        end = time.monotonic() + 120
        while not (tmp_path / "ready").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        with (tmp_path / "locked").open() as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        process.communicate()


def test_the_process_does_what_is_asked_for_and_what_cannot_be_compiled_stops_nothing(folder, started, monkeypatch):
    compiled, niced = [], []
    monkeypatch.setattr(_aside.signal, "alarm", lambda _: None)
    monkeypatch.setattr(os, "nice", niced.append)
    monkeypatch.setattr(LockSettings, "low_priority", False)
    nonsense = _aside.CompileRequest("nonsense", b"nonsense")
    _aside.ask_for([nonsense, wanted()])
    assert len(started) == 1
    with (folder / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _aside.work(compiled.append)
        assert not compiled  # another one is at work
    _aside.work(compiled.append)
    assert [each[0] for each in compiled] == [observers.add_loss]
    assert niced == [19, 19]
    assert LockSettings.low_priority
    assert _aside.is_done(nonsense)
    assert _aside.is_done(wanted())
    assert not list(folder.glob("*.wanted"))


def test_where_nothing_can_be_kept_no_process_is_started():
    program = "from sidelong import _aside; print(_aside.can_start())"
    environment = os.environ | {"SIDELONG_CACHE_DIR": "/dev/null"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


#: A user's script, which ends long before its kernel is compiled. What it asks for is small.
SCRIPT = """
import json, sys
from sidelong import _jit
import numpy as np
from sidelong.agent.observers import add_loss as note

class Owner: pass

owner, seen = Owner(), np.zeros((2, 2))
note.plain_seconds = 1.0  # as if it had run for a while
_jit.bind(owner, "note", note, 0, 0.5, 1.0, *seen)
first = type(owner.note).__name__
owner.note(0, 0.25, 1.0, *seen)
if len(sys.argv) > 1:
    _jit._process.plain_seconds = 10.0
owner.note(0, 0.75, 2.0, *seen)
print(json.dumps([first, type(owner.note).__name__, "numba" in sys.modules, seen[0].tolist()]))
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
        assert run() == ["_PlainCall", "_PlainCall", False, [0.5, 0.0]]
    end = time.monotonic() + 120
    while not list(tmp_path.rglob("*.done")):
        workers = processes(str(tmp_path / "cache"))
        assert len(workers) <= 2  # a second one may look at the lock, and end
        assert all(os.getsid(each) != os.getsid(0) for each in workers if alive(each))
        assert time.monotonic() < end
        time.sleep(0.05)
    assert run("later") == ["_PlainCall", "builtin_function_or_method", True, [0.5, 0.0]]
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
            if b"_aside.work(" in program and cache.encode() in environment:
                found.append(int(each.name))
    return found
