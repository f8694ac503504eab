"""The study file: TOML that says which learners play which worlds on which graphs.

::

    rounds = [10_000, 100_000]        # a list stands for each of its values
    runs = 16
    seed = 0

    [[learner]]
    name = "exp3.g++"                 # any name of `sidelong learners`, "all", or file = "my_learner.py"
    gamma = [4.0, 1.0]                # its options

    [[graph]]
    name = "nested"                   # a function of sidelong.graphs, with its arguments; or file = "graph.json"
    n = 24

    [[world]]
    name = "bernoulli"                # a function of sidelong.losses, with its arguments
    means = { gap = 0.2 }

The study is the product of all lists. ``docs/study-file.md`` has the rest: values that go in step, arguments that are
lists themselves, files, worlds of your own.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from sidelong.checks import is_whole
from sidelong.errors import BinaryLossError, ObservabilityError, SimulationError, StudyError
from sidelong.learners import names
from sidelong.studies.build import build, build_graph, build_learner, build_world, is_own_graph, takes_list
from sidelong.studies.cell import Cell, canonical
from sidelong.studies.files import Files, is_code
from sidelong.studies.source import Source
from sidelong.studies.sweeps import expand, steps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    from sidelong.simulation.game import Game
    from sidelong.studies.source import Place

MAX_CELLS = 100_000
_NUMBERS = ("rounds", "runs", "seed", "delay", "checkpoints")
_TABLES = ("learner", "graph", "world")


class _File(BaseModel):
    """The keys of a study file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = ""
    rounds: Any
    runs: Any = 1
    seed: Any = 0
    delay: Any = 0
    checkpoints: Any = None
    learner: list[dict[str, Any]] = Field(min_length=1)
    graph: list[dict[str, Any]] = Field(min_length=1)
    world: list[dict[str, Any]] = Field(min_length=1)

    @field_validator("learner", mode="before")
    @classmethod
    def _all_learners(cls, value: Any) -> Any:
        """Let a name stand for its table, and "all" for every learner, by name: so results say which they were."""
        listed = value if isinstance(value, list) else [value]
        tables = [{"name": each} if isinstance(each, str) else each for each in listed]
        return [each | {"name": [*names()]} if _is_all(each) else each for each in tables]

    @field_validator(*_TABLES, mode="before")
    @classmethod
    def _one_is_a_list_too(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value


def _is_all(table: Any) -> bool:
    return isinstance(table, dict) and table.get("name") == "all"


class _Numbers(BaseModel):
    """The numbers of a cell."""

    model_config = ConfigDict(strict=True)

    rounds: int = Field(ge=1, lt=2**48)
    runs: int = Field(ge=1, lt=2**32)
    seed: int = Field(ge=0, lt=2**64)
    delay: int | str
    checkpoints: Any

    @field_validator("delay")
    @classmethod
    def _is_a_law(cls, value: int | str) -> int | str:
        if isinstance(value, int) and not 0 <= value < 2**20:
            raise ValueError("a whole number from 0 to 1048575, or a law such as geometric:5:100")
        return value

    @field_validator("checkpoints")
    @classmethod
    def _are_ascending(cls, value: Any, info: ValidationInfo) -> Any:
        listed = value if isinstance(value, list) else [value]
        whole = all(is_whole(each) and each >= 1 for each in listed)
        if value is not None and not (listed and whole and all(a < b for a, b in itertools.pairwise(listed))):
            raise ValueError("how many, or a list of ascending rounds")
        if isinstance(value, list) and value[-1] > info.data.get("rounds", math.inf):
            raise ValueError(f"a checkpoint is beyond the last round, {info.data['rounds']:,}")
        return value


@dataclass(frozen=True)
class Study:
    """A study: its cells, and what they need."""

    name: str
    content: dict[str, Any]  #: what the file says, with other files by content
    cells: tuple[Cell, ...]
    unplayable: tuple[tuple[Cell, str], ...]  #: cells whose learner cannot play there, and why
    files: Files
    unchecked: frozenset[str] = frozenset()  #: names of the cells that need code which was not loaded


def load(path: str | PathLike[str], *, code: bool = True, outside: bool = False, **changes: Any) -> Study:
    """Read a study file, and make every learner, graph and world in it once.

    Args:
        path: the file, in TOML; or the study.json of a folder of results.
        code: whether to load the code that the study names. Without it, cells that need it are not checked.
        outside: whether the study may name files outside of its folder.
        **changes: keys of the file that shall have another value.

    Raises:
        StudyError: something in it is wrong; the message begins with the file and the line.

    """
    try:
        source = Source(Path(path))
        source.content.update(changes)
        return _Reader(source, code=code, outside=outside).study()
    except RecursionError:
        raise StudyError(f"{path}: its lists or tables are nested too deep.") from None


class _Reader:
    """Turns the content of a file into cells."""

    def __init__(self, source: Source, *, code: bool, outside: bool) -> None:
        self._source = source
        self._files = Files()
        self._locate = self._files.locate if code else self._files.locate_data
        self._code = code
        self._within = None if outside else source.path.parent
        try:
            file = _File.model_validate(source.content)
        except ValidationError as error:
            source.refuse_first(error, list(_File.model_fields))
        self._name = file.name or source.path.stem
        self._content = self._by_content(file.model_dump(exclude={"name"}), ())
        self._known: dict[str, tuple[str, int, str | None]] = {}
        self._configured: set[str] = set()

    def study(self) -> Study:
        cells: dict[str, Cell] = {}
        unplayable: dict[str, tuple[Cell, str]] = {}
        for cell, reason in self._cells():
            if reason is None:
                cells.setdefault(cell.name, cell)
            else:
                unplayable.setdefault(cell.name, (cell, reason))
            if len(cells) + len(unplayable) > MAX_CELLS:
                raise StudyError(
                    f"{self._source.path}: a study has at most {MAX_CELLS:,} cells, and this one has more."
                )
        if not cells:
            reasons = "; ".join(sorted({reason for _, reason in unplayable.values()})[:3])
            raise StudyError(f"{self._source.path}: no learner of this study can play there: {reasons}")
        unchecked = frozenset(() if self._code else (name for name, cell in cells.items() if _has_code(cell.spec)))
        return Study(
            self._name, self._content, tuple(cells.values()), tuple(unplayable.values()), self._files, unchecked
        )

    def _cells(self) -> Iterator[tuple[Cell, str | None]]:
        for step in range(self._source.attempt((), steps, self._content)):
            tables = {key: [*self._variants(key, step)] for key in _TABLES}
            numbers = [*self._numbers(step)]
            for graph, world, number, learner in itertools.product(
                tables["graph"], tables["world"], numbers, tables["learner"]
            ):
                places, variants = zip(learner, graph, world, strict=True)
                spec = {**dict(zip(_TABLES, variants, strict=True)), **number}
                kind, n_arms, reason = self._check_once(spec, places)
                yield Cell(spec, kind, n_arms), reason

    def _numbers(self, step: int) -> Iterator[dict[str, Any]]:
        table = {key: self._content[key] for key in _NUMBERS}
        for variant in self._source.attempt((), _variants, table, lambda _, key: key == "checkpoints", step):
            try:
                yield _Numbers.model_validate(variant).model_dump()
            except ValidationError as error:
                self._source.refuse_first(error, [])

    def _variants(self, key: str, step: int) -> Iterator[tuple[Place, dict[str, Any]]]:
        for number, table in enumerate(self._content[key]):
            for variant in self._source.attempt((key, number), _variants, table, takes_list, step):
                yield (key, number), variant

    def _check_once(self, spec: dict[str, Any], places: tuple[Place, ...]) -> tuple[str, int, str | None]:
        """Return what a cell runs, its number of arms, and why it cannot be played; seeds make no difference."""
        key = canonical([spec[name] for name in (*_TABLES, "rounds", "delay")])
        if key not in self._known:
            self._known[key] = self._check(spec, *places)
        return self._known[key]

    def _check(self, spec: dict[str, Any], learner: Place, graph: Place, world: Place) -> tuple[str, int, str | None]:
        attempt, locate = self._source.attempt, self._locate
        if not self._code and _has_code(spec):
            own = is_own_graph(spec["graph"])  # nobody knows how many arms it has before it is made
            return "", 0 if own else attempt(graph, build_graph, spec["graph"], locate).n_arms, None
        attempt(learner, build_learner, spec["learner"], locate)
        made = attempt(graph, build_graph, spec["graph"], locate)
        attempt(world, build_world, spec["world"], spec["graph"], spec["rounds"], locate)
        game = attempt(learner, self._fit, spec)
        if isinstance(game, BinaryLossError | ObservabilityError):
            return "", made.n_arms, str(game)
        if isinstance(game, SimulationError):
            self._source.refuse(f"{game} The cell is {Cell(spec)}.", ("delay",) if "delay" in str(game) else world)
        return game.kind, made.n_arms, None

    def _fit(self, spec: dict[str, Any]) -> Game | ObservabilityError | SimulationError:
        """Return the game of a cell, or why its parts do not fit."""
        try:
            game = build(spec, self._locate)
            key = canonical([spec["learner"], spec["graph"], spec["rounds"]])
            if key not in self._configured:
                game.configure()
                self._configured.add(key)
        except (ObservabilityError, SimulationError) as error:
            return error
        return game

    def _by_content(self, value: Any, place: Place) -> Any:
        """Return what the file says with files by content, and refuse what JSON does not have."""
        if place[-1:] == ("file",) and isinstance(value, dict):  # as in study.json, which lies beside its files
            return self._source.attempt(place, self._files.take, self._source.path.parent / "files", value)
        if isinstance(value, dict):
            return {key: self._by_content(each, (*place, key)) for key, each in value.items()}
        if isinstance(value, list):
            return [self._by_content(each, (*place, number)) for number, each in enumerate(value)]
        if place[-1:] == ("file",) and not isinstance(value, str):
            self._source.refuse(f"a file is named by text, not {value}.", place)
        if isinstance(value, str) and "file" in place:
            return self._source.attempt(place, self._files.read, self._source.path.parent / value, self._within)
        if not isinstance(value, str | int | float | None) or (isinstance(value, float) and not math.isfinite(value)):
            self._source.refuse(f"a value is text, a finite number, true or false, not {value}.", place)
        return value


def _has_code(value: Any) -> bool:
    """Tell whether a part of a cell names a file of code."""
    if isinstance(value, list):
        return any(map(_has_code, value))
    if not isinstance(value, dict):
        return False
    return ("file" in value and is_code(value["file"])) or any(map(_has_code, value.values()))


def _variants(table: dict[str, Any], is_list: Any, step: int) -> list[dict[str, Any]]:
    """Return what a table stands for, and stop early where that is too much."""
    found = [*itertools.islice(expand(table, is_list, step), MAX_CELLS + 1)]
    if len(found) > MAX_CELLS:
        raise StudyError(f"a study has at most {MAX_CELLS:,} cells, and these lists alone make more.")
    return found
