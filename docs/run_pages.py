"""Do what the pages say, in order, as a person would who has only the wheel: `python docs/run_pages.py [PAGE ...]`.

A block of ``python`` is run, one of ``pycon`` is run and must print what it shows; all blocks of a page are one
session. The lines of a ``console`` block that begin with $ are run by the shell, and must succeed and print the lines
below them, if there are any; one that ends with & goes on beside the others until the page is done. A block whose first
line goes on with the name of a file is that file. One that goes on with "long" is left out by the tests, and one with
any other word is never run. Everything happens in one folder, which is empty at first.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

import contents


class Block(NamedTuple):
    """A fenced block of a page."""

    line: int
    kind: str
    file: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that are code."""
    text = page.read_text("utf-8")
    found = re.finditer(r"^```(\w+)(?: +(\S+))? *\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [Block(text.count("\n", 0, match.start()) + 1, match[1], match[2] or "", match[3]) for match in found]


def do(page: Path, *, long: bool = False) -> dict[str, Any]:
    """Do what a page says, in the present folder, and return the names that its session has at the end."""
    session = types.ModuleType("__main__")
    with contextlib.ExitStack() as until_done:
        for block in blocks(page):
            _do(page, block, session.__dict__, until_done, long=long)
    return session.__dict__


def _do(page: Path, block: Block, session: dict[str, Any], until_done: contextlib.ExitStack, *, long: bool) -> None:
    if "." in block.file:
        Path(block.file).write_text(block.text, "utf-8")
    elif block.file and not (long and block.file == "long"):
        return
    elif block.kind == "python":
        # Lines are counted as in the page, for a traceback.
        exec(compile("\n" * block.line + block.text, str(page), "exec"), session)  # noqa: S102
    elif block.kind == "pycon":
        _check(page, block, session)
    elif block.kind == "console":
        for command, shown in re.findall(r"^\$ (.*?)(?: +# .*)?\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
            if command.endswith("&"):
                until_done.enter_context(_beside(command.removesuffix("&")))
            else:
                _shell(page, block, command, shown)


def _check(page: Path, block: Block, names: dict[str, Any]) -> None:
    example = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(example, out=report.append, clear_globs=False)
    names.update(example.globs)
    if runner.failures:
        raise AssertionError("".join(report))


@contextlib.contextmanager
def _beside(command: str) -> Iterator[None]:
    with subprocess.Popen(f"exec {command}", shell=True, env=_environment()) as running:  # noqa: S602  # what the page says
        try:
            yield
        finally:
            running.terminate()


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return os.environ | {"PATH": path}


def _shell(page: Path, block: Block, command: str, shown: str) -> None:
    done = subprocess.run(  # noqa: S602  # what the page says
        command, shell=True, env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise AssertionError(
            f"{page}, line {block.line}: {command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        )
    printed = re.sub(r" +$", "", done.stdout, flags=re.MULTILINE).strip() + "\n"  # tables fill their last column
    if shown and not doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS):
        raise AssertionError(f"{page}, line {block.line}: {command}\nExpected:\n{shown}Got:\n{printed}")


def pages() -> list[Path]:
    """Return the pages in the order of the site."""
    return [DOCS / f"{name}.md" for name in ["index", *(name for names in contents.listed() for name in names)]]


def main() -> None:
    """Do the pages that are named, or all."""
    chosen = [DOCS / f"{name.removesuffix('.md')}.md" for name in sys.argv[1:]] or pages()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        for page in chosen:
            begun = time.monotonic()
            do(page, long=True)
            print(f"{page.relative_to(DOCS)}: {len(blocks(page))} blocks, {time.monotonic() - begun:.1f} s", flush=True)  # noqa: T201
        os.chdir(DOCS)


if __name__ == "__main__":
    main()
