"""Arguments that are more than a value: means by their gap, and what a file holds, numbers or code."""

from __future__ import annotations

import importlib.util
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import is_whole, plain
from sidelong.studies.source import MisplacedError

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    Table = dict[str, Any]


def means_of(value: Table, n_arms: int) -> list[float]:
    """Return the means of one arm that is better than all others by a gap."""
    gap, best, center = value["gap"], value.get("best", 0), value.get("center", 0.5)
    if not np.isfinite([plain(gap), plain(center)]).all():
        raise MisplacedError(f"gap and center are numbers, not {gap!r} and {center!r}.", "means")
    if not is_whole(best) or not 0 <= best < n_arms:
        raise MisplacedError(f"best is one of the arms 0 to {n_arms - 1}, not {best!r}.", "means", "best")
    return [center - gap / 2 if arm == best else center + gap / 2 for arm in range(n_arms)]


def from_file(key: str, value: Table, path: Path) -> Any:
    """Return what an argument takes from a file: a table of numbers, or a function."""
    if "function" in value:
        function = getattr(import_file(path), str(value["function"]), None)
        if not callable(function):
            raise MisplacedError(f"{path.name} has no function {value['function']!r}.", key, "function")
        return function
    try:
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        if path.suffix in {".csv", ".txt"}:
            return np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None)
    except (ValueError, OSError) as error:
        raise MisplacedError(f"{path.name} is not a table of numbers: {error}.", key, "file") from error
    raise MisplacedError(
        f"{key} is read from a file .npy, .csv or .txt, or is a function of a file .py, with function = ...; "
        f"not {path.name!r}.",
        key,
        "file",
    )


def import_file(path: Path) -> ModuleType:
    """Import a file of a user. Its name comes from its folder too, which is named by its content."""
    name = f"{path.stem}_{path.parent.name[:12]}"
    with _importing:
        return sys.modules.get(name) or _import(name, path)


_importing = threading.Lock()  # a worker of a cluster has several threads


def _import(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if path.suffix != ".py" or spec is None or spec.loader is None:
        raise MisplacedError(f"Code is in a file .py, not {path.name!r}.", "file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise MisplacedError(f"{path.name} cannot be imported: {type(error).__name__}: {error}", "file") from error
    return module
