"""From a table with several values to the tables with one value each.

A list stands for each of its values, in a product with all other lists. Where an argument takes a list itself, as `means` does,
the list is one value. ``{ each = [...] }`` stands for each of its values everywhere, and ``{ zip = [...] }`` too, but all of
those in a study go in step: the first of each, then the second of each.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from sidelong.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["expand", "steps"]

Table = dict[str, Any]


def expand(table: Table, takes_list: Callable[[Table, str], bool], step: int) -> Iterator[Table]:
    """Yield the tables that a table stands for, in the given step of what goes in step.

    Args:
        table: what the file says.
        takes_list: tells of a table, whose name is one value already, and a key whether a list is one value there.
        step: from 0.

    """
    for name in _choices(table.get("name"), step, takes_list, whole=False):
        named = table if name is None else {**table, "name": name}
        choices = [
            [value] if key == "name" else _choices(value, step, takes_list, whole=takes_list(named, key))
            for key, value in named.items()
        ]
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
    lengths = sorted(_zip_lengths(content))
    if len(lengths) > 1:
        raise StudyError(f"Every zip of a study has as many values; these have {' and '.join(map(str, lengths))}.")
    return lengths[0] if lengths else 1


def _zip_lengths(content: Any) -> set[int]:
    if isinstance(content, list):
        return set().union(*map(_zip_lengths, content))
    if not isinstance(content, dict):
        return set()
    inside = set().union(*map(_zip_lengths, content.values()))
    return inside | {len(content["zip"])} if _kind(content) == "zip" else inside


def _kind(value: Table) -> str | None:
    """Tell whether a table in braces says `each` or `zip`."""
    for kind in ("each", "zip"):
        if kind in value:
            if len(value) > 1 or not isinstance(value[kind], list) or not value[kind]:
                raise StudyError(f"Write {{ {kind} = [...] }}, with at least one value and nothing else, not {value!r}.")
            return kind
    return None
