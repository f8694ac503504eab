"""From a table with several values to the tables with one value each.

A list stands for each of its values, in a product with all other lists. Where an argument takes a list itself, as
`means` does, the list is one value. ``{ each = [...] }`` stands for each of its values everywhere, and ``{ zip = [...]
}`` too, but all of those in a study go in step: the first of each, then the second of each.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from sidelong.studies.source import MisplacedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Table = dict[str, Any]

_NOTHING = "a list stands for each of its values, and this one has none."


def expand(table: Table, takes_list: Callable[[Table, str], bool], step: int) -> Iterator[Table]:
    """Yield the tables that a table stands for, in the given step of what goes in step.

    Args:
        table: what the file says.
        takes_list: tells of a table, whose name is one value already, and a key whether a list is one value there.
        step: from 0.

    """
    names = _choices(table.get("name"), step, takes_list, whole=False)
    if not names:
        raise MisplacedError(_NOTHING, "name")
    for name in names:
        named = table if name is None else {**table, "name": name}
        choices = [
            [value] if key == "name" else _choices(value, step, takes_list, whole=takes_list(named, key))
            for key, value in named.items()
        ]
        for key, found in zip(named, choices, strict=True):
            if not found:
                raise MisplacedError(_NOTHING, key)
        for values in itertools.product(*choices):
            yield dict(zip(named, values, strict=True))


def _choices(value: Any, step: int, takes_list: Callable[[Table, str], bool], *, whole: bool) -> list[Any]:
    if isinstance(value, dict):
        kind = _kind(value)
        if kind == "each":
            return _each(value["each"], step, takes_list)
        if kind == "zip":
            return _each([value["zip"][step]], step, takes_list)
        return list(expand(value, takes_list, step))
    if isinstance(value, list):
        if not whole:
            return _each(value, step, takes_list)
        parts = [_choices(part, step, takes_list, whole=True) for part in value]
        return [list(combined) for combined in itertools.product(*parts)]
    return [value]


def _each(values: list[Any], step: int, takes_list: Callable[[Table, str], bool]) -> list[Any]:
    return [choice for value in values for choice in _choices(value, step, takes_list, whole=True)]


def steps(content: Any) -> int:
    """Return how many values each `zip` of a study has; 1 if there is none."""
    lengths = dict(_zips(content, ()))
    first = next(iter(lengths.values()), 1)
    for place, length in lengths.items():
        if length != first:
            raise MisplacedError(
                f"every zip of a study has as many values; the first has {first}, this one {length}.", *place
            )
    return first


def _zips(content: Any, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """Yield where each `zip` stands and how many values it has."""
    if isinstance(content, dict):
        if _kind(content, place) == "zip":
            yield place, len(content["zip"])
        for key, value in content.items():
            yield from _zips(value, (*place, key))
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from _zips(value, (*place, number))


def _kind(value: Table, place: tuple[str | int, ...] = ()) -> str | None:
    """Tell whether a table in braces says `each` or `zip`."""
    for kind in ("each", "zip"):
        if kind in value:
            if len(value) > 1 or not isinstance(value[kind], list) or not value[kind]:
                raise MisplacedError(
                    f"write {{ {kind} = [...] }}, with at least one value and nothing else, not {value!r}.", *place
                )
            return kind
    return None
