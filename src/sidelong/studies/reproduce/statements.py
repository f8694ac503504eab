"""What the reference studies are expected to give: statements beside each study file, and what was measured.

::

    [[statement]]
    says = "Regret on nested graphs of EXP3.G++ against that of EXP3"
    value = "ratio"                       # of two mean regrets; or regret, rise, worst, slope
    of = { learner = "exp3.g++", "graph.n" = 512 }
    over = { learner = "exp3", "graph.n" = 512 }
    expected = 0.11
    tolerance = 0.03

A tolerance is five standard errors of the value, by the bootstrap over runs, so that any seed reproduces it.
"""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from sidelong.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sidelong.studies.reproduce.cells import PlayedCell

Facts = dict[str, Any]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Statement(_Strict):
    """One number that a study is expected to give."""

    says: str
    value: Literal["regret", "ratio", "rise", "worst", "slope"]
    of: Facts  #: the cells that it speaks of
    over: Facts = {}  #: of a ratio or a rise: the cells to compare with
    per: float = 1.0  #: of a rise: what the difference is divided by
    against: str = "round"  #: of a slope: a fact, or round
    since: int = 1  #: of a slope against the round: where it begins
    column: str = "regret"
    expected: float
    tolerance: float


class Figure(_Strict):
    """What the figure of a study shows."""

    title: str
    x: str = "round"
    y: str = "regret"
    of: Facts = {}
    across: str = ""  #: a fact: one panel for each of its values
    scale: Literal["log", "linear", "names"] = "log"


class Expected(_Strict):
    """What stands beside a study file."""

    about: str
    long: bool = False  #: whether it is left out unless it is asked for
    figure: Figure
    statement: list[Statement]


class Judged(NamedTuple):
    """A statement and what was measured."""

    statement: Statement
    measured: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether what was measured is what was expected."""
        return abs(self.measured - self.statement.expected) <= self.tolerance

    @property
    def texts(self) -> tuple[str, str, str, str]:
        """What is said, expected, measured and found."""
        expected = f"{self.statement.expected:.4g} ± {self.tolerance:.2g}"
        found = "reproduced" if self.holds else "NOT reproduced"
        return self.statement.says, expected, f"{self.measured:.4g}", found


def read_expected(path: Path) -> Expected:
    """Read what is expected of the study that a file holds, from the file beside it."""
    beside = path.with_suffix(".expected.toml")
    try:
        return Expected.model_validate(tomllib.loads(beside.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        raise StudyError(f"{beside}: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from error
    except ValueError as error:
        raise StudyError(f"{beside}: this is not TOML: {error}.") from error


def judge(statement: Statement, cells: Sequence[PlayedCell], runs: float = 1.0) -> Judged:
    """Measure what a statement speaks of.

    Args:
        statement: what is said.
        cells: the results of its study.
        runs: which share of the runs was played: the fewer, the wider the tolerance.

    """
    measure = {"regret": _regret, "ratio": _ratio, "rise": _rise, "worst": _worst, "slope": _slope}[statement.value]
    return Judged(statement, measure(statement, cells), statement.tolerance / math.sqrt(runs))


def _chosen(cells: Sequence[PlayedCell], wanted: Facts) -> list[PlayedCell]:
    chosen = [cell for cell in cells if cell.fits(wanted)]
    if not chosen:
        raise StudyError(f"no cell of the study has {wanted}.")
    return chosen


def _last(cells: Sequence[PlayedCell], column: str = "regret") -> float:
    return float(np.mean([cell.means(column)[-1] for cell in cells]))


def _regret(statement: Statement, cells: Sequence[PlayedCell]) -> float:
    return _last(_chosen(cells, statement.of), statement.column)


def _ratio(statement: Statement, cells: Sequence[PlayedCell]) -> float:
    return _regret(statement, cells) / _last(_chosen(cells, statement.over), statement.column)


def _rise(statement: Statement, cells: Sequence[PlayedCell]) -> float:
    return (_regret(statement, cells) - _last(_chosen(cells, statement.over), statement.column)) / statement.per


def _worst(statement: Statement, cells: Sequence[PlayedCell]) -> float:
    """Return the worst of (regret + K) / (smallest regret of the instance + K), as the scoreboard has it."""
    ratios = []
    for cell in _chosen(cells, statement.of):
        rivals = [each for each in cells if _instance(each) == _instance(cell)]
        best = min(_last([each]) for each in rivals)
        ratios.append((_last([cell]) + _arms(cell)) / max(best + _arms(cell), 1.0))
    return max(ratios)


def _instance(cell: PlayedCell) -> Facts:
    return {key: value for key, value in cell.spec.items() if key != "learner"}


def _arms(cell: PlayedCell) -> int:
    return int(cell.table["arms"][0].as_py())


def _slope(statement: Statement, cells: Sequence[PlayedCell]) -> float:
    """Return the slope of the line that fits best on a log-log scale."""
    chosen = _chosen(cells, statement.of)
    if statement.against == "round":
        kept = chosen[0].rounds >= statement.since
        x = chosen[0].rounds[kept].astype(float)
        y = np.mean([cell.means(statement.column)[kept] for cell in chosen], axis=0)
    else:
        x = np.unique([cell.facts[statement.against] for cell in chosen]).astype(float)
        y = np.array([_last([cell for cell in chosen if cell.facts[statement.against] == each]) for each in x])
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
