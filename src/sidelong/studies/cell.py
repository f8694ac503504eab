"""A cell of a study: one learner in one world on one graph, for some runs.

A cell is plain data: numbers, text, lists and tables, with files by name and content. Its canonical JSON says all
that its results depend on, and nothing else, so that its hash names it wherever and in whichever study it is run.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

FORMAT = 1


def canonical(content: Any) -> str:
    """Return JSON that is the same for the same content: keys in order, no spaces, floats that read back to the bit."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Cell:
    """One learner in one world on one graph."""

    spec: dict[str, Any]  #: learner, graph, world, rounds, runs, seed, checkpoints, and delay if there is one
    kind: str = field(default="", compare=False)  #: cells of one kind run the same machine code
    n_arms: int = field(default=0, compare=False)

    @cached_property
    def json(self) -> str:
        """The canonical JSON."""
        return canonical({"format": FORMAT, **self.spec})

    @cached_property
    def name(self) -> str:
        """The hash of the canonical JSON, which is what its file is called."""
        return hashlib.sha256(self.json.encode()).hexdigest()[:32]

    @property
    def delay(self) -> int | str:
        """How many rounds later feedback comes, or by which law."""
        return self.spec["delay"]  # type: ignore[no-any-return]

    @property
    def n_rounds(self) -> int:
        """How many rounds its runs have together."""
        return int(self.spec["rounds"] * self.spec["runs"])

    def __str__(self) -> str:
        parts = [describe(self.spec[key]) for key in ("learner", "graph", "world")]
        rounds = f"{self.spec['rounds']:,} rounds{late(self.delay)}"
        return f"{parts[0]} on {parts[1]} in {parts[2]}, {rounds}, seed {self.spec['seed']}"

    def __hash__(self) -> int:
        return hash(self.name)


def late(delay: int | str) -> str:
    """Return how late feedback comes, as the end of a sentence: nothing if it comes at once."""
    return (f", {delay:,} late" if isinstance(delay, int) else f", late by {delay}") if delay else ""


def describe(table: dict[str, Any]) -> str:
    """Return a table of a cell as a person would say it: ``nested(n=10)``."""
    shown = options_of(table).items()
    options = ", ".join(f"{key}={_said(value)}" for key, value in shown if not _is_function(value))
    return f"{name_of(table)}({options})" if options else name_of(table)


def name_of(table: dict[str, Any]) -> str:
    """Return the name of a learner, a graph or a world: the one it was given, or else that of its function or file."""
    if _is_function(table.get("f")):
        return str(table["f"]["function"])
    if "name" in table:
        return str(table["name"])
    name = str(table["file"]["name"])
    return name.removesuffix(".py")


def _is_function(value: Any) -> bool:
    """Tell whether a value of a table is a function of a user."""
    return isinstance(value, dict) and value.keys() == {"file", "function"}


def options_of(table: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of a learner, a graph or a world beside its name."""
    return {key: value for key, value in table.items() if key not in {"name", "file"}}


def flat(table: dict[str, Any], place: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return what a table says, by place; a file counts as its name."""
    found: dict[tuple[str, ...], Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and key != "file":
            found |= flat(value, (*place, key))
        else:
            found[*place, key] = value
    return found


def _said(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{key}={_said(each)}" for key, each in value.items())
        return describe(value) if "name" in value or "file" in value else f"{{{inside}}}"
    text = f"[{', '.join(map(_said, value))}]" if isinstance(value, list) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
