"""How a command says that it cannot be run: one sentence, and exit code 2."""

from __future__ import annotations

import importlib.util
import sys
from typing import NoReturn

import typer

from sidelong._install import pip_install

WRONG = 2


def require(command: str, *modules: str) -> None:
    """Refuse to go on where modules are missing."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        are = "are" if len(missing) > 1 else "is"
        listed = " and ".join([", ".join(missing[:-1]), missing[-1]] if len(missing) > 1 else missing)
        refuse(command, f"{listed} {are} missing. {pip_install(*missing)}")


def refuse(command: str, message: str) -> NoReturn:
    """Say in one sentence why a command cannot be run."""
    print(f"sidelong {command}: {message}", file=sys.stderr)  # noqa: T201
    raise typer.Exit(WRONG)
