"""What is private to Numba: it stands in one module, is tried before it is used, and can be done without."""

import ast
import gc
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import sidelong
from sidelong import _jit
from sidelong.errors import CodeError

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

PACKAGE = Path(sidelong.__file__).parent
PRIVATE = PACKAGE / "_numba.py"
#: What Numba documents, of what other modules use.
PUBLIC = {"__version__", "config", "errors", "njit", "typeof"}


def test_one_module_uses_private_names():
    for file in set(PACKAGE.rglob("*.py")) - {PRIVATE}:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").partition(".")[0] not in {"numba", "llvmlite"}, file
            elif isinstance(node, ast.Import):
                assert not any(each.name.startswith(("numba.", "llvmlite")) for each in node.names), file
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "numba":
                assert node.attr in PUBLIC, file


@pytest.fixture
def load():
    """Return what makes the module anew, with a check that has not been done."""

    def load():
        spec = importlib.util.spec_from_file_location("sidelong._numba_anew", PRIVATE)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        module.cache_folder = lambda: None
        return module

    yield load
    sys.modules.pop("sidelong._numba_anew", None)


def test_this_numba_is_as_expected(load):
    load().check()


def test_words_of_the_module_do_not_make_it_check_again(load, tmp_path):
    module = load()
    module.cache_folder = lambda: tmp_path
    module.check()
    copy = tmp_path / "copy.py"
    for text in (PRIVATE.read_text().replace('"""Return', '"""Say and return'), PRIVATE.read_text() + "# A comment.\n"):
        copy.write_text(text)
        module.__file__ = str(copy)
        module.check()
        assert len(list(tmp_path.glob("checked-*"))) == 1
    copy.write_text(PRIVATE.read_text() + "MORE = 1\n")
    module.check()
    assert len(list(tmp_path.glob("checked-*"))) == 2


def names():
    """Return every name of a module of Numba or llvmlite that the module uses."""
    tree = ast.parse(PRIVATE.read_text())
    imported = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith(("numba", "llvmlite")):
            imported |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return sorted(
        f"{imported[node.value.id]}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported
    )


@pytest.mark.parametrize("name", sorted(set(names())))
def test_a_name_that_is_missing_is_noticed(load, monkeypatch, name):
    module, _, attribute = name.rpartition(".")
    monkeypatch.delattr(importlib.import_module(module), attribute)
    with pytest.raises((AttributeError, ImportError, NameError, RuntimeError)):
        load().check()


@pytest.mark.parametrize(
    "name",
    [
        "codegen.CPUCodegen._module_pass_manager",
        "codegen.JITCodeLibrary._finalize_dynamic_globals",
        "codegen.JITCodeLibrary.serialize_using_bitcode",
        "compiler.CompileResult._find_referenced_environments",
        "compiler.CompileResult._rebuild",
        "compiler.CompileResult._reduce",
        "compiler.Compiler.compile_extra",
        "dispatcher.Dispatcher.add_overload",
        "cpu.CPUContext.insert_user_function",
    ],
)
def test_a_method_that_takes_other_arguments_is_noticed(load, monkeypatch, name):
    module, class_, method = name.split(".")
    owner = getattr(importlib.import_module(f"numba.core.{module}"), class_)

    monkeypatch.setattr(owner, method, lambda: None)
    with pytest.raises((TypeError, RuntimeError)):
        load().check()


@pytest.mark.parametrize("often", [700, 0])
def test_to_compile_leaves_the_collector_of_garbage_as_it_was(often, tmp_path, monkeypatch):
    monkeypatch.setattr("sidelong._numba.cache_folder", lambda: tmp_path)  # where an earlier run has left nothing
    before, seen = gc.get_threshold(), []

    def look():
        seen.append(gc.get_threshold()[0])
        return 1.0

    @numba.extending.overload(look)
    def look_while_it_is_compiled():
        look()
        return lambda: 1.0

    try:
        gc.set_threshold(often)
        assert _jit.compiled(_jit.kernel(lambda: look()))() == 1.0  # noqa: PLW0108  # the name is what is compiled
        assert seen[0] == (100_000 if often else 0)
        assert gc.get_threshold()[0] == often
        with pytest.raises(CodeError):
            _jit.compiled(_jit.kernel(lambda: look(1)))
        assert gc.get_threshold()[0] == often
    finally:
        gc.set_threshold(*before)


def test_it_is_checked_once(load, tmp_path, monkeypatch):
    """The second time a file says so."""
    module = load()
    module.cache_folder = lambda: tmp_path
    module.check()
    monkeypatch.setattr(module, "_two_kernels", None)
    module.check()
    module._VERSIONS = ("another", "version")
    module.cache_folder = lambda: None
    with pytest.raises(TypeError):
        module.check()


def test_code_that_was_kept_in_another_layout_is_not_read(load, monkeypatch):
    """That of before there were numbers of layouts, and that of a number which development has used."""
    module = load()
    assert module._LAYOUT == 1  # nothing was released yet
    pair, now = module.pack(module._Pair(np.array([0.5, 0.25]), 3.0, 2)), module._VERSIONS
    for versions, hits in ((now[:-1], 0), ((*now[:-1], 2), 0), (now, 1)):
        parts, wholes = module._InMemory(), module._InMemory()
        for each in (versions, now):
            monkeypatch.setattr(module, "_VERSIONS", each)
            part, total = module._two_kernels()
            code = module.code_key(total.py_func)
            part._cache, total.whole._cache = module._PartCache(code, parts), module._Cache(code, wholes)
            assert total.whole.machine_code((module.typeof(pair),))(pair) == 2.25
        assert sum(total.whole._cache_hits.values()) == hits


# Without them

#: An agent and a loop; and a user's world, whose numbers change while it runs.
PROGRAM = """
import hashlib

import sidelong as sl

factor = 0.25


@sl.losses.compiled
def half(x):
    return 0.5 * x


@sl.losses.compiled
def loss(seed, run, t, arm):
    return half(factor * arm)


digest = hashlib.sha256()
agent = sl.Agent("exp3-ix", sl.graphs.nested(40), seed=3)
for t in range(1, 61):
    decision = agent.ask()
    agent.tell(decision, [(t * 7 + int(i) * 3) % 11 / 10 for i in decision.reveals])
    digest.update(decision.probabilities.tobytes())
world = sl.losses.bernoulli([0.4, 0.6, 0.5])
digest.update(sl.simulate("exp3-ix", sl.graphs.nested(3), world, rounds=500, runs=2, seed=5).regret.tobytes())
print(digest.hexdigest())
for factor in (0.25, 1.0):
    print(sl.simulate("uniform", sl.graphs.complete(2), sl.losses.function(loss, n_arms=2), 500).loss[0, -1] / factor)
"""


def run(program):
    """Return what a new process prints, and what it warns of."""
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", program],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout, done.stderr


@pytest.mark.long
def test_without_private_names_the_bits_are_the_same_and_one_warning_says_what_to_do():
    seen, warning = run(f"import public_numba\n{PROGRAM}")
    assert run(PROGRAM) == (seen, "")
    assert len(set(seen.split()[1:])) == 1
    assert warning.count("Warning") == 1
    assert f"RuntimeWarning: Numba {numba.__version__} has other private parts" in warning
    assert "(ImportError: there is no llvmlite any more)" in warning
    assert "pip install 'numba>=0.65,<=0.68.99'" in warning


def test_without_private_names_nothing_is_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDELONG_CACHE_DIR", str(tmp_path))
    run("import public_numba\nfrom sidelong.numerics import log\nlog(2.0)")
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_without_private_names_the_process_in_the_background_compiles_nothing():
    program = "from sidelong import _jit, numerics\n_jit.compile_request((numerics.log, (2.0,)))\n"
    program += "print(len(numerics.log.entries))"
    assert run(f"import public_numba\n{program}")[0] == "0\n"  # what it compiled could not be kept
    assert run(program)[0] == "1\n"
