"""What became of a study."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from sidelong.studies.cell import Cell


@dataclass
class Summary:
    """What became of a study. While it runs, what became of it so far."""

    cells: int
    rounds: int  #: of the cells that were not done before
    done_before: int = 0
    played: int = 0
    done_by_others: int = 0  #: another runner of the same folder
    failed: dict[Cell, str] = field(default_factory=dict)
    set_aside: list[Path] = field(default_factory=list)  #: damaged result files
    other_source: int = 0  #: cells that were done before, by another version of the package
    other_learner: int = 0  #: and by another version of their learner, which decides otherwise
    rounds_played: int = 0
    rounds_wasted: int = 0  #: of those played: by cells that failed
    slowest: tuple[float, Cell] | None = None  #: of the finished ones: seconds and cell
    seconds: float = 0.0
    stopped: str = ""  #: why it ended before its end: "interrupted", "terminated", or what could not be written

    @property
    def done(self) -> int:
        """How many cells have results."""
        return self.done_before + self.played + self.done_by_others
