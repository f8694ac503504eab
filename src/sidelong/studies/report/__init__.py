"""A report on a study: one page that needs no network, and its figures and tables as files for a paper.

Every figure has a sentence above it that says what it shows, and the numbers decide what that is: `headlines` has the
rules. The way is results, `reading`, sections (`scores`, `parameters`, `instances`, `pictures`, `origin`), the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidelong.display import figures
from sidelong.studies.report import headlines
from sidelong.studies.report.instances import instances
from sidelong.studies.report.markup import document
from sidelong.studies.report.origin import facts, origin
from sidelong.studies.report.parameters import parameters
from sidelong.studies.report.pictures import pictures
from sidelong.studies.report.promised import Promised
from sidelong.studies.report.reading import read
from sidelong.studies.report.scores import scores

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write"]


def write(folder: Path, page: Path, *, files: bool = True) -> list[Path]:
    """Write the report on the results in a folder; return what was written, the page first.

    Args:
        folder: what `sidelong run` wrote to.
        page: the page to write.
        files: whether to write the figures as SVG, PDF, PGF and PNG and the tables as LaTeX too, into a folder beside
            the page.

    """
    reading = read(folder)
    promised = Promised(reading.files)
    parts = [
        *scores(reading),
        *parameters(reading),
        *instances(reading, promised),
        *pictures(reading, promised),
    ]
    sections = [part for part, _ in parts] + [origin(reading, folder)]
    lead = headlines.missing(reading.missing) + headlines.scoreboard(reading.board)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(document(reading.name, lead, facts(reading), sections), encoding="utf-8")
    if not files:
        return [page]
    beside = page.with_name(f"{page.stem}-figures")
    beside.mkdir(exist_ok=True)
    written = [path for _, drawn in parts for each in drawn for path in figures.save(each.figure, beside / each.name)]
    for each in (table for part in sections for table in part.tables):
        written.append(beside / f"{each.name}.tex")
        written[-1].write_text(each.latex, encoding="utf-8")
    return [page, *written]
