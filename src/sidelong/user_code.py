"""Code of users: files of theirs are imported, and what fails in them is named by file, line and text of the line."""

from __future__ import annotations

import dis
import importlib.util
import linecache
import re
import sys
import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidelong.errors import CodeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

#: Where the code lies that no user has written.
_OTHERS = tuple({str(Path(__file__).parent), *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))})


def import_file(path: Path, name: str) -> ModuleType:
    """Import a file as a module of this name; a file that fails leaves no module behind.

    Raises:
        CodeError: it is no Python, or fails; the message has the line.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if path.suffix != ".py" or spec is None or spec.loader is None:
        raise CodeError(f"Code is in a file .py, not {path.name!r}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        place = failing_line(error)
        said = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
        raise CodeError(f"{path.name} cannot be imported: {said}{f', at {place}' * bool(place)}") from error
    return module


def failing_line(error: BaseException) -> str:
    """Return where a user's code failed: file, line and the text of the line; nothing if no line of a user is known."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _place(error.filename, error.lineno, error.text or "")
    frames = [each for each in traceback.extract_tb(error.__traceback__) if _is_users(each.filename)]
    return _place(frames[-1].filename, frames[-1].lineno or 0, frames[-1].line or "") if frames else ""


def compile_failure(error: Exception, kernels: Iterable[Any]) -> CodeError | None:
    """Return what a user must know of an error of the compiler: the line of theirs, and what is wrong with it.

    Args:
        error: of Numba, whose own text begins with its internals and ends with our loop.
        kernels: of users, those that were to be compiled.
    """
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    kernels = [*kernels]
    places = re.findall(r'File "([^"]+)", line (\d+):', text)
    places += re.findall(r"^During: .* at (.+) \((\d+)\)$", text, re.MULTILINE)
    lines = [(str(Path(file).resolve()), int(number)) for file, number in places]
    lines = [line for line in lines if _is_users(line[0])] or _lines_with_unknown_name(text, kernels)
    if not kernels:
        return None
    names = ", ".join(f"`{each.__name__}`" for each in kernels)
    where = f"At {_place(*lines[0])}" if lines else f"One of {names}"
    return CodeError(f"A kernel cannot be compiled: {_reason(text)} {where}")


def _lines_with_unknown_name(text: str, kernels: list[Any]) -> list[tuple[str, int]]:
    """Find a name that is defined nowhere, for which Numba names no line, in the code of kernels."""
    found = re.search(r"[Nn]ame '(\w+)' is not defined", text)
    return [
        (each.py_func.__code__.co_filename, line)
        for each in kernels
        for line in _lines_that_load(each.py_func, found[1] if found else "")
    ]


def _lines_that_load(function: Any, name: str) -> Iterable[int]:
    line = function.__code__.co_firstlineno
    for step in dis.get_instructions(function):
        line = step.starts_line if type(step.starts_line) is int else getattr(step, "line_number", None) or line
        if step.opname.startswith("LOAD") and step.argval == name:
            yield line


def _reason(text: str) -> str:
    """Return the first sentence of Numba's text that says something, with what follows its colon."""
    if re.search("NRT required|Only accept returning of array passed into", text):  # all that needs new memory
        return "It makes a new array, list, dict or text, and a kernel has only the arrays that it is given."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    while len(lines) > 1 and lines[0].startswith("Failed in "):
        lines.pop(0)
    reason = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return reason if reason.endswith(".") else f"{reason}."


def _place(file: str, number: int, text: str = "") -> str:
    text = (text or linecache.getline(file, number)).strip()
    return f"{Path(file).name}, line {number}{f': {text}' * bool(text)}"


def _is_users(file: str) -> bool:
    return not file.startswith(("<frozen", *(f"{folder}/" for folder in _OTHERS)))
