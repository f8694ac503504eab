"""The text of a study file, and how to say that something in it is wrong: with the line, the key and what is near."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any, NoReturn

from sidelong.checks import nearest
from sidelong.errors import SidelongError, StudyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pydantic import ValidationError

    Place = tuple[str | int, ...]  #: keys, and places in lists

#: What may complete a value of several lines that was cut after one of them: a list, a list of lists, a long text.
_ENDS = ("", "\n]", "\n]]", "\n]]]", '\n"""', "\n'''")


class MisplacedError(StudyError):
    """Something is wrong with a key of a table; the reader of the file adds where that stands."""

    def __init__(self, message: str, *key: str | int) -> None:
        super().__init__(message)
        self.key = key


class Source:
    """A study file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._text = path.read_bytes().decode("utf-8-sig")  # some editors begin a file with a mark
            self.content = self._of_results() if path.name == "study.json" else tomllib.loads(self._text)
        except OSError as error:
            raise StudyError(f"{path}: cannot be read: {error.strerror or error}.") from error
        except UnicodeDecodeError as error:
            raise StudyError(f"{path}: a study file is text in UTF-8: {error}.") from error
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"line (\d+)", str(error))
            number = line[1] if line else self._text.count("\n") + 1
            raise StudyError(f"{path}:{number}: this is not TOML: {error}.") from error

    def _of_results(self) -> dict[str, Any]:
        """Return what the study of a folder of results says, of which study.json is a part."""
        try:
            told = json.loads(self._text)
            return {"name": told["name"], **told["study"]}
        except (ValueError, KeyError, TypeError) as error:
            raise StudyError(f"{self.path}: this is no study.json of a folder of results.") from error

    def refuse(self, message: str, place: Place) -> NoReturn:
        """Raise an error that says where."""
        key = ".".join(part for part in place if isinstance(part, str))
        raise StudyError(f"{self.path}:{line_of(self._text, place)}: {key}{': ' * bool(key)}{message}")

    def refuse_first(self, error: ValidationError, known: list[str]) -> NoReturn:
        """Raise the first error of pydantic, with the nearest of the known keys."""
        # A misspelt key is missing too.
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        key = first["loc"][0]
        if first["type"] == "extra_forbidden":
            message = f"there is no key {key!r}.{nearest(str(key), known)} The keys are: {', '.join(known)}."
        elif first["type"] == "missing":
            message = f"{key} is missing."
        else:
            message = f"{first['msg'].removeprefix('Value error, ')}; got {first['input']!r}."
        self.refuse(message, first["loc"])

    def attempt(self, place: Place, make: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function makes from the table at a place; what it refuses is an error there."""
        try:
            return make(*arguments)
        except MisplacedError as error:
            self.refuse(str(error), (*place, *error.key))
        except (SidelongError, TypeError, ValueError) as error:
            self.refuse(str(error), (*place, *self._key_in(str(error), place)))

    def _key_in(self, message: str, place: Place) -> Place:
        """Return the key of a table that a message speaks of."""
        table: Any = self.content
        for key in place:
            table = table if isinstance(table, dict) and key == 0 else table[key]
        keys = table if isinstance(table, dict) else {}
        found = {key: re.search(rf"\b{re.escape(key)}\b", message) for key in keys if key != "name"}
        places = {key: match.start() for key, match in found.items() if match}
        return (min(places, key=lambda key: places[key]),) if places else ()


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
