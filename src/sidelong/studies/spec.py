"""The study file: TOML that says which learners play which worlds on which graphs.

::

    rounds = [10_000, 100_000]        # a list stands for each of its values
    runs = 16
    seed = 0

    [[learner]]
    name = "exp3.g++"                 # any name of `sidelong learners`, or file = "my_learner.py"
    preset = ["paper", "practical"]   # its options

    [[graph]]
    name = "nested"                   # a function of sidelong.graphs, with its arguments; or file = "graph.json"
    n = 24

    [[world]]
    name = "bernoulli"                # a function of sidelong.losses, with its arguments
    means = { gap = 0.2 }

The study is the product of all lists. ``docs/studies.md`` has the rest: values that go in step, arguments that are
lists themselves, files, worlds of your own.
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from sidelong.errors import ObservabilityError, SidelongError, StudyError
from sidelong.graphs.sequences import GraphSequence, fixed
from sidelong.learners import catalogue
from sidelong.learners.options import nearest
from sidelong.studies.build import build_graph, build_learner, build_world, takes_list
from sidelong.studies.cell import Cell, canonical, options_of
from sidelong.studies.files import Files
from sidelong.studies.lines import MisplacedError, line_of
from sidelong.studies.sweeps import expand, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

__all__ = ["MAX_CELLS", "Study", "load"]

MAX_CELLS = 100_000
_NUMBERS = ("rounds", "runs", "seed", "checkpoints")
_TABLES = ("learner", "graph", "world")

Path_ = tuple[str | int, ...]


class _File(BaseModel):
    """The keys of a study file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = ""
    rounds: Any
    runs: Any = 1
    seed: Any = 0
    checkpoints: Any = None
    learner: list[dict[str, Any]] = Field(min_length=1)
    graph: list[dict[str, Any]] = Field(min_length=1)
    world: list[dict[str, Any]] = Field(min_length=1)

    @field_validator(*_TABLES, mode="before")
    @classmethod
    def _one_is_a_list_too(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value


class _Numbers(BaseModel):
    """The numbers of a cell."""

    model_config = ConfigDict(strict=True)

    rounds: int = Field(ge=1, lt=2**48)
    runs: int = Field(ge=1, lt=2**32)
    seed: int = Field(ge=0, lt=2**64)
    checkpoints: Any

    @field_validator("checkpoints")
    @classmethod
    def _are_ascending(cls, value: Any) -> Any:
        listed = value if isinstance(value, list) else [value]
        whole = all(isinstance(each, int) and not isinstance(each, bool) and each >= 1 for each in listed)
        if value is not None and not (listed and whole and all(a < b for a, b in itertools.pairwise(listed))):
            raise ValueError("how many, or a list of ascending rounds")
        return value


@dataclass(frozen=True)
class Study:
    """A study: its cells, and what they need."""

    name: str
    content: dict[str, Any]  #: what the file says, with other files by content
    cells: tuple[Cell, ...]
    unplayable: tuple[tuple[Cell, str], ...]  #: cells whose learner cannot play on their graph, and why
    files: Files


def load(path: str | PathLike[str]) -> Study:
    """Read a study file, and make every learner, graph and world in it once.

    Raises:
        StudyError: something in it is wrong; the message begins with the file and the line.

    """
    path = Path(path)
    try:
        text = path.read_bytes().decode()
        content = tomllib.loads(text)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise StudyError(f"{path}: a study file is text in UTF-8: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        where = f"{path}:{line[1]}" if line else f"{path}:{text.count(chr(10)) + 1}"
        raise StudyError(f"{where}: this is not TOML: {error}.") from error
    return _Reader(path, text, content).study()


class _Reader:
    """Turns the content of a file into cells, and errors into messages that say where."""

    def __init__(self, path: Path, text: str, content: dict[str, Any]) -> None:
        self._path = path
        self._text = text
        self._files = Files()
        try:
            top = _File.model_validate(content)
        except ValidationError as error:
            self._refuse_first(error, (), list(_File.model_fields))
        self._content = self._checked(top.model_dump(exclude={"name"}), ())
        self._name = top.name or path.stem
        self._made: dict[tuple[Any, ...], Any] = {}

    def study(self) -> Study:
        cells: dict[str, Cell] = {}
        unplayable: dict[str, tuple[Cell, str]] = {}
        for cell, reason in self._cells():
            if reason is None:
                cells.setdefault(cell.name, cell)
            else:
                unplayable.setdefault(cell.name, (cell, reason))
            if len(cells) > MAX_CELLS:
                raise StudyError(f"{self._path}: a study has at most {MAX_CELLS:,} cells, and this one more.")
        if not cells:
            reasons = "; ".join(sorted({reason for _, reason in unplayable.values()})[:3])
            raise StudyError(f"{self._path}: no learner of this study can play on any of its graphs: {reasons}")
        return Study(self._name, self._content, tuple(cells.values()), tuple(unplayable.values()), self._files)

    def _cells(self) -> Iterator[tuple[Cell, str | None]]:
        for step in range(self._try((), steps, self._content)):
            tables = {key: [*self._variants(key, step)] for key in _TABLES}
            numbers = [*self._numbers(step)]
            for graph, world, number, learner in itertools.product(
                tables["graph"], tables["world"], numbers, tables["learner"]
            ):
                yield self._cell(learner, graph, world, number)

    def _numbers(self, step: int) -> Iterator[dict[str, Any]]:
        table = {key: self._content[key] for key in _NUMBERS}
        for variant in self._try((), expand, table, lambda _, key: key == "checkpoints", step):
            try:
                yield _Numbers.model_validate(variant).model_dump()
            except ValidationError as error:
                self._refuse_first(error, (), [])

    def _variants(self, key: str, step: int) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, table in enumerate(self._content[key]):
            for variant in self._try((key, number), lambda table: [*expand(table, takes_list, step)], table):
                yield number, variant

    def _cell(
        self,
        learner: tuple[int, dict[str, Any]],
        graph: tuple[int, dict[str, Any]],
        world: tuple[int, dict[str, Any]],
        numbers: dict[str, Any],
    ) -> tuple[Cell, str | None]:
        tables = {"learner": learner[1], "graph": graph[1], "world": world[1]}
        names = {key: canonical(table) for key, table in tables.items()}
        made_graph = self._once(("graph", graph[0]), build_graph, (names["graph"],), graph[1])
        rounds = numbers["rounds"]
        n_arms, last, code = self._once(
            ("world", world[0]), _facts, (names["world"], names["graph"], rounds), world[1], made_graph, rounds
        )
        if n_arms != made_graph.n_arms:
            self._refuse(
                f"the world has {n_arms} arms and graph number {graph[0] + 1}, {made_graph!r}, has "
                f"{made_graph.n_arms}: they must agree.",
                ("world", world[0]),
            )
        if last is not None and rounds > last:
            self._refuse(f"the world has {last:,} rounds, fewer than rounds = {rounds:,}.", ("rounds",))
        if isinstance(numbers["checkpoints"], list) and numbers["checkpoints"][-1] > rounds:
            self._refuse(f"a checkpoint is beyond the last round, {rounds:,}.", ("checkpoints",))
        module, reason = self._once(
            ("learner", learner[0]),
            _configured,
            (names["learner"], names["graph"], rounds),
            learner[1],
            made_graph,
            rounds,
        )
        anew = isinstance(made_graph, GraphSequence) and not made_graph.bank
        return Cell({**tables, **numbers}, f"{module} {code}{' anew' * anew}", n_arms), reason

    def _once(self, place: Path_, make: Callable[..., Any], key: tuple[Any, ...], *arguments: Any) -> Any:
        """Make something, or return what was made from the same before."""
        if (make, key) not in self._made:
            self._made[make, key] = self._try(place, make, *arguments, self._files.locate)
        return self._made[make, key]

    def _try(self, place: Path_, make: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return make(*arguments)
        except MisplacedError as error:
            self._refuse(str(error), (*place, *error.key))
        except (SidelongError, TypeError, ValueError) as error:
            self._refuse(str(error), (*place, *self._key_in(str(error), place)))

    def _key_in(self, message: str, place: Path_) -> Path_:
        """Return the key of a table that a message speaks of."""
        table = self._content[place[0]][place[1]] if len(place) == 2 else {}
        return tuple(key for key in table if key != "name" and re.search(rf"\b{re.escape(key)}\b", message))[:1]

    def _checked(self, value: Any, place: Path_) -> Any:
        """Return what the file says with files by content, and refuse what JSON does not have."""
        if isinstance(value, dict):
            return {key: self._checked(each, (*place, key)) for key, each in value.items()}
        if isinstance(value, list):
            return [self._checked(each, (*place, number)) for number, each in enumerate(value)]
        if isinstance(value, str) and "file" in place:
            return self._try(place, self._files.read, self._path.parent / value)
        if not isinstance(value, str | int | float | None) or (isinstance(value, float) and not math.isfinite(value)):
            self._refuse(f"a value is text, a finite number, true or false, not {value}.", place)
        return value

    def _refuse_first(self, error: ValidationError, place: Path_, known: list[str]) -> NoReturn:
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")  # a misspelt key is missing too
        path = (*place, *first["loc"])
        key, given = path[-1], first["input"]
        if first["type"] == "extra_forbidden":
            self._refuse(f"there is no key {key!r}.{nearest(str(key), known)} The keys are: {', '.join(known)}.", path)
        if first["type"] == "missing":
            self._refuse(f"{key} is missing.", path)
        self._refuse(f"{first['msg'].removeprefix('Value error, ')}; got {given!r}.", path)

    def _refuse(self, message: str, place: Path_) -> NoReturn:
        key = ".".join(part for part in place if isinstance(part, str))
        line = line_of(self._text, place)
        raise StudyError(f"{self._path}:{line}: {key}{': ' * bool(key)}{message}")


def _facts(table: dict[str, Any], graph: Any, rounds: int, locate: Any) -> tuple[int, int | None, str]:
    """Return of a world, which may be large, its number of arms, its last round and what its machine code is."""
    world = build_world(table, graph, rounds, locate)
    return world.n_arms, world.rounds, f"{world.name} {world.code}"


def _configured(table: dict[str, Any], graph: Any, rounds: int, locate: Any) -> tuple[str, str | None]:
    """Return the module that plays a learner, and why it cannot play on a graph."""
    options = options_of(table)
    module = catalogue.choose(build_learner(table, locate), options)
    sequence = graph if isinstance(graph, GraphSequence) else fixed(graph)
    if "horizon" in catalogue.option_names(module):
        options.setdefault("horizon", rounds)
    try:
        catalogue.check_sequence(module, sequence)
        catalogue.configure(module, sequence.graph_of_round(1), options)
    except ObservabilityError as error:
        return module.__name__, str(error)
    return module.__name__, None
