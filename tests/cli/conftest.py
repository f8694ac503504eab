"""Commands, run in this process: without the time that a new one takes to load."""

import sys
from typing import NamedTuple

import pytest

from sidelong import __main__


class Done(NamedTuple):
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def sidelong(monkeypatch, capsys):
    """Run `sidelong ...` in a terminal of 80 columns."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["sidelong", *arguments])
        monkeypatch.setenv("COLUMNS", "80")
        with pytest.raises(SystemExit) as stop:
            __main__.main()
        return Done(stop.value.code or 0, *capsys.readouterr())

    return run
