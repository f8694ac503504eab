"""Apply each patch of this folder to a copy of the repository, and see whether the tests notice.

A patch is a small fault. It counts as caught if a test fails with it twice and passes without it. Otherwise the run
fails: the fault survived, the patch no longer applies or applies in several places, pytest could not run, or a mutant
took too long.

``python tests/mutants/run.py`` tries all of them, ``python tests/mutants/run.py NAME ...`` some.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PATCHES = Path(__file__).parent
ROOT = PATCHES.parents[1]
GIT = shutil.which("git") or "git"
LIMIT = 900.0  # seconds for one mutant
SIDE_BY_SIDE = 2
PASSED, FAILED, NOTHING_SELECTED = 0, 1, 5  # exit codes of pytest


class RunError(Exception):
    """Why nothing can be said about a mutant."""


@dataclass
class Mutant:
    """A patch: which files it changes, and which tests to try first."""

    patch: Path

    def __post_init__(self) -> None:
        about, _, diff = self.patch.read_text().partition("\n--- ")
        self.name = self.patch.stem
        self.touched = re.findall(r"^\+\+\+ b/(\S+)$", diff, re.MULTILINE)
        named = re.search(r"^tests: (.+)$", about, re.MULTILINE)
        self.first = named[1].split() if named else []

    @property
    def is_core(self) -> bool:
        """Whether other machine code may be made of the package; the service has no kernels."""
        return not all(path.startswith("src/sidelong/service/") for path in self.touched)

    def replaced(self) -> Iterator[tuple[str, str]]:
        """Yield the lines that each part of the patch expects to find, with their file."""
        for part in re.split(r"^--- ", self.patch.read_text(), flags=re.MULTILINE)[1:]:
            head, *hunks = re.split(r"^@@ .*\n", part, flags=re.MULTILINE)
            path = head.partition("+++ b/")[2].strip()
            for hunk in hunks:
                yield path, "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[0] in " -")

    def packages(self) -> list[str]:
        """Return the tests of the packages that it changes; a module that is in none has its tests beside theirs."""
        found: set[str] = set()
        for path in self.touched:
            package, *rest = Path(path).relative_to("src/sidelong").parts
            modules = (str(file.relative_to(ROOT)) for file in (ROOT / "tests").glob("test_*.py"))
            found.update([f"tests/{package}"] if rest else modules)
        return sorted(found)


class Copy:
    """A copy of the repository, with what is not committed yet."""

    def __init__(self, folder: Path) -> None:
        self._tree, self._cache = folder / "tree", folder / "cache"
        listed = [GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0"):
            if name and os.path.lexists(ROOT / name):  # one that is deleted is still listed
                (self._tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self._tree / name, follow_symlinks=False)
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(self._tree / "src"),
            # If the folder is within a repository, git would take paths as those of that one, and apply nothing.
            "GIT_CEILING_DIRECTORIES": str(folder),
        }
        self._check_import()

    def _check_import(self) -> None:
        """Make sure that programs which are started here import the copy, and not what is installed."""
        code = "import sidelong; print(sidelong.__file__)"
        imported = subprocess.check_output(
            [sys.executable, "-c", code], cwd=self._tree, env=self._environment, text=True
        ).strip()
        if self._tree / "src" not in Path(imported).parents:
            raise RunError(f"sidelong is imported from {imported}, and not from the copy")

    def check_place(self, mutant: Mutant) -> None:
        """Refuse a patch whose lines stand in a file more than once: git would choose the place, and may be wrong."""
        for path, lines in mutant.replaced():
            if f"\n{(self._tree / path).read_text()}".count(f"\n{lines}") > 1:
                raise RunError(f"the patch applies in several places of {path}: give it more context")

    def apply(self, mutant: Mutant, *options: str) -> None:
        """Apply a patch, or with ``--reverse`` take it back."""
        command = [GIT, "apply", *options, str(mutant.patch)]
        done = subprocess.run(
            command, cwd=self._tree, env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode or not mutant.touched:
            raise RunError(f"the patch does not apply: {done.stderr.strip()}")

    def check_syntax(self, mutant: Mutant) -> None:
        """Refuse a mutant that is no Python: any test would catch it."""
        for path in mutant.touched:
            try:
                compile((self._tree / path).read_text(), path, "exec")
            except SyntaxError as error:
                raise RunError(f"with the patch it is no Python any more: {error}") from error

    def pytest(self, *arguments: str, jit: bool, mutated: bool, until: float) -> tuple[int, str]:
        """Run pytest, and return its exit code and what it printed."""
        environment = {**self._environment, "NUMBA_DISABLE_JIT": "0" if jit else "1"}
        if mutated:  # its machine code must not push that of the repository out of the cache
            environment["SIDELONG_CACHE_DIR"] = str(self._cache)
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-x", "-rf", "-p", "no:cacheprovider", *arguments],
            cwd=self._tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that the servers which tests start can be ended with them
        ) as running:
            try:
                printed, _ = running.communicate(timeout=max(1.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise RunError(f"it took more than {LIMIT:.0f} seconds, with {' '.join(arguments)}") from None
            finally:
                if running.poll() is None:
                    os.killpg(running.pid, signal.SIGKILL)
        return running.returncode, printed

    def drop_machine_code(self) -> None:
        """Forget the machine code of a mutant."""
        shutil.rmtree(self._cache, ignore_errors=True)


def try_out(mutant: Mutant, copy: Copy) -> str:
    """Return the id of a test that fails with a mutant and passes without it; nothing if all pass with it."""
    until = time.monotonic() + LIMIT
    copy.check_place(mutant)
    copy.apply(mutant)
    try:
        copy.check_syntax(mutant)
        found = _failing(mutant, copy, until)
        if found is None:
            return ""
        test, jit = found
        code, printed = copy.pytest(test, jit=jit, mutated=mutant.is_core, until=until)
        if code != FAILED:
            raise RunError(f"{test} failed with the mutant, but not a second time:\n{printed}")
    finally:
        copy.apply(mutant, "--reverse")
        copy.drop_machine_code()
    code, printed = copy.pytest(test, jit=jit, mutated=False, until=until)
    if code != PASSED:
        raise RunError(f"{test} does not pass without the mutant:\n{printed}")
    return test


def _failing(mutant: Mutant, copy: Copy, until: float) -> tuple[str, bool] | None:
    """Return the first test that fails, and whether the JIT was on.

    The named tests come first. Of the core, tests in plain Python come before those that wait for the compiler.
    """
    rest = [*mutant.packages(), *(f"--ignore={path}" for path in mutant.first)]
    for selected in filter(None, (mutant.first, rest)):
        for jit in (False, True) if mutant.is_core else (True,):
            marked = () if jit else ("-m", "interpreted")
            code, printed = copy.pytest(*selected, *marked, jit=jit, mutated=mutant.is_core, until=until)
            failed = re.search(r"^FAILED (.+?)(?: - .*)?$", printed, re.MULTILINE)
            if code == FAILED and failed and "[XPASS(strict)]" not in failed[0]:
                return failed[1], jit
            if code not in {PASSED, NOTHING_SELECTED}:
                raise RunError(f"pytest ended with {code}, but no test failed:\n{printed}")
    return None


def main() -> int:
    """Try mutants side by side, print what became of each, and return 0 if all were caught."""
    parser = argparse.ArgumentParser(description="Apply faults one by one, and see whether the tests notice.")
    parser.add_argument("names", nargs="*", help="the names of patches, without .patch; all if none is given")
    names = parser.parse_args().names
    mutants = {patch.stem: Mutant(patch) for patch in sorted(PATCHES.glob("*.patch"))}
    unknown = sorted(set(names) - mutants.keys())
    if unknown:
        parser.error(f"there is no mutant {', '.join(unknown)}")
    begun, own = time.monotonic(), threading.local()

    def judge(mutant: Mutant) -> bool:
        started, caught = time.monotonic(), False
        try:
            if not hasattr(own, "copy"):
                own.copy = Copy(Path(tempfile.mkdtemp(dir=folder)))
            detail = try_out(mutant, own.copy)
            caught = bool(detail)
            verdict = "caught" if caught else "SURVIVED"
        except RunError as error:
            verdict, detail = "ERROR", str(error)
        print(f"{mutant.name:<38} {verdict:<8} {time.monotonic() - started:4.0f} s  {detail}", flush=True)  # noqa: T201
        return caught

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        caught = list(pool.map(judge, [mutants[name] for name in names] or mutants.values()))
    seconds = time.monotonic() - begun
    print(f"{sum(caught)} passed, {len(caught) - sum(caught)} failed in {seconds:.0f} s")  # noqa: T201
    return 0 if caught and all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
