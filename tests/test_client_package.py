"""The distribution sidelong-client: the client alone, against a server of the full installation."""

import email
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import installed
import sidelong as sl

pytestmark = pytest.mark.long
ROOT = Path(__file__).parent.parent


def build(out):
    done = subprocess.run(
        [sys.executable, ROOT / "client" / "build.py", out], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    build(folder)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def run(wheel, tmp_path_factory):
    """Return what runs Python where there is only the wheel, with what it says it needs, and pytest."""
    python = installed.client_environment() / "bin" / "python"
    folder = tmp_path_factory.mktemp("installed")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", folder, wheel], check=True)
    server = ["env", f"PYTHONPATH={Path(sl.__file__).parents[1]}", sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(folder), "SIDELONG_TEST_SERVER": shlex.join(server)}

    def run(*arguments):
        done = subprocess.run(
            [python, *arguments], check=False, capture_output=True, text=True, cwd=ROOT, env=environment
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_it_is_a_part_of_sidelong_that_needs_three_packages(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
        names = [name for name in archive.namelist() if name.startswith("sidelong/")]
        for name in names:
            assert archive.read(name) == (ROOT / "src" / name).read_bytes()
    assert "sidelong/py.typed" in names
    assert (metadata["Name"], metadata["Version"]) == ("sidelong-client", sl.__version__)
    needs = [need.partition(">")[0] for need in metadata.get_all("Requires-Dist") if "extra ==" not in need]
    assert sorted(needs) == ["httpx", "numpy", "pydantic-core"]
    again = build(tmp_path)
    assert sorted(again) == [wheel.name, f"sidelong_client-{sl.__version__}.tar.gz"]
    assert again == {path.name: path.read_bytes() for path in wheel.parent.iterdir()}


ALONE = """
import importlib.util, pkgutil, subprocess, sys
import sidelong as sl

for name in ("numba", "llvmlite", "scipy", "pandas", "pydantic", "starlette"):
    assert importlib.util.find_spec(name) is None, name
for module in pkgutil.walk_packages(sl.__path__, "sidelong."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        assert (module.name, error.name) == ("sidelong.integrations.litellm", "litellm"), error  # an extra
        assert "pip install litellm" in str(error)
for name in dir(sl):
    assert getattr(sl, name) is not None
graph = sl.graphs.nested(100_000)
assert graph.observe_probabilities([1.0] + [0.0] * 99_999)[0] == 1.0  # in plain Python


def says(do):
    try:
        do()
    except ModuleNotFoundError as error:
        assert "pip install sidelong" in str(error), error
    else:
        raise AssertionError(do)


for name in set(sl.__all__) - set(dir(sl)):
    says(lambda: getattr(sl, name))
    says(lambda: exec(f"from sidelong import {name}"))
says(lambda: importlib.import_module("sidelong.service.serve"))
says(lambda: sl.graphs.nested(3).numbers())
assert not hasattr(sl, "nothing")
done = subprocess.run([sys.executable, "-m", "sidelong"], capture_output=True, text=True)
assert done.returncode and "pip install sidelong" in done.stderr, done.stderr
"""


def test_all_of_it_can_be_imported_and_the_rest_says_how_to_install_it(run):
    code, said = run("-W", "error", "-c", ALONE)
    assert code == 0, said
    assert run("-m", "pip", "check") == (0, "No broken requirements found.\n")


def test_the_tests_of_the_client_pass_without_the_library(run):
    options = ("-q", "-p", "no:cacheprovider", "-m", "not library", "--confcutdir", "tests/client")
    code, said = run("-m", "pytest", *options, "tests/client")
    assert code == 0, said
    assert int(said.rpartition(" passed")[0].split()[-1]) > 40, said
    assert "skipped" not in said, said
