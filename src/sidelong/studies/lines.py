"""Where in a TOML file something stands. The parser of the standard library does not tell."""

from __future__ import annotations

import tomllib
from typing import Any

from sidelong.errors import StudyError

__all__ = ["MisplacedError", "line_of"]

#: What may complete a value of several lines that was cut after one of them: a list, a list of lists, a long text.
_ENDS = ("", "\n]", "\n]]", "\n]]]", '\n"""', "\n'''")


class MisplacedError(StudyError):
    """Something is wrong with a key of a table; the reader of the file adds where that stands."""

    def __init__(self, message: str, *key: str | int) -> None:
        super().__init__(message)
        self.key = key


def line_of(text: str, path: tuple[str | int, ...]) -> int:
    """Return the line, from 1, on which a key of a TOML file stands; that of its table, if it does not stand there.

    Longer and longer beginnings of the file are parsed until one has the key. So it is TOML's own parser that knows
    about dotted keys, lists of tables and tables in braces, and only a file that is refused pays for it.

    Args:
        text: a valid TOML file.
        path: keys, and places in lists: ``("world", 0, "means")``.

    """
    lines = text.splitlines(keepends=True)
    while path:
        for number in range(1, len(lines) + 1):
            beginning = "".join(lines[:number]).rstrip("\r\n")
            if any(_has(_parsed(beginning + end), path) for end in _ENDS):
                return number
        path = path[:-1]
    return 1


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def _has(content: Any, path: tuple[str | int, ...]) -> bool:
    for key in path:
        if key in content if isinstance(content, dict) else isinstance(content, list) and key in range(len(content)):
            content = content[key]
        elif not (isinstance(content, dict) and key == 0):  # [graph] stands for a list of one, [[graph]]
            return False
    return True
