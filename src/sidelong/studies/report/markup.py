"""HTML: what the sections of a page are written with. Everything that comes in as text is escaped here."""

from __future__ import annotations

import html
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from sidelong.display import figures
from sidelong.display.tables import latex_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure


class Illustration(NamedTuple):
    """A figure with its sentence."""

    name: str  #: of its files, and of its place on the page
    figure: Figure
    headline: str
    note: str = ""  #: how to read it

    def __str__(self) -> str:
        says = html.escape(self.headline, quote=True)
        note = f"<p class=note>{html.escape(self.note)}</p>" if self.note else ""
        picture = figures.svg(self.figure, self.name, says)
        return f'<figure id="{self.name}"><figcaption>{says}</figcaption>{picture}{note}</figure>'


class Entry(NamedTuple):
    """A cell of a table that has more than text."""

    text: str
    small: str = ""
    heat: float | None = None  #: from 0, good, to 1, bad: how it is coloured
    kind: str = ""  #: a class of the style

    def __str__(self) -> str:
        style = "" if self.heat is None else f' style="--heat: {self.heat:.2f}"'
        name = f' class="{self.kind}{" heat" * (self.heat is not None)}"' if self.kind or self.heat is not None else ""
        small = f"<small>{html.escape(self.small)}</small>" if self.small else ""
        return f"<td{name}{style}>{html.escape(self.text)}{small}</td>"


class Table(NamedTuple):
    """A table of the page, whose first column stays in sight while the others are scrolled."""

    name: str  #: of its file, and a class of the style
    head: Sequence[str]
    rows: Sequence[Sequence[str | Entry]]
    caption: str = ""  #: for a paper; on the page it stands below

    def __str__(self) -> str:
        top = "".join(f"<th scope=col>{html.escape(each)}</th>" for each in self.head)
        lines = []
        for name, *cells in self.rows:
            others = "".join(str(each if isinstance(each, Entry) else Entry(each)) for each in cells)
            lines.append(f"<tr><th scope=row>{html.escape(str(name))}</th>{others}</tr>")
        above = f"<thead><tr>{top}</tr></thead>" if top else ""
        inside = "\n".join(lines)
        return f'<div class=wide tabindex=0><table class="{self.name}">{above}<tbody>\n{inside}\n</tbody></table></div>'

    @property
    def latex(self) -> str:
        """The table for a paper."""
        rows = [[_plain(each) for each in row] for row in self.rows]
        return latex_table(self.head, rows, caption=self.caption)


class Section(NamedTuple):
    """A part of the page."""

    title: str
    inside: str
    tables: Sequence[Table] = ()

    def __str__(self) -> str:
        return f"<h2>{html.escape(self.title)}</h2>\n{self.inside}"


def _plain(cell: str | Entry) -> str:
    return f"{cell.text} ({cell.small})" if isinstance(cell, Entry) and cell.small else str(getattr(cell, "text", cell))


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph."""
    return f'<p class="{kind}">{html.escape(text)}</p>' if kind else f"<p>{html.escape(text)}</p>"


def section(title: str, *parts: str | Table | Sequence[Illustration], about: str = "") -> Section:
    """Return a part of the page; figures in a list stand side by side where there is room."""
    inside = "\n".join(
        str(part) if isinstance(part, str | Table) else f"<div class=figures>{''.join(map(str, part))}</div>"
        for part in parts
        if part
    )
    said = f"<p class=about>{html.escape(about)}</p>\n" if about else ""
    return Section(title, f"{said}{inside}", [part for part in parts if isinstance(part, Table)])


def document(title: str, lead: str, facts: Sequence[tuple[str, str]], sections: Sequence[Section]) -> str:
    """Return the page."""
    style = resources.files("sidelong.studies.report").joinpath("style.css").read_text()
    told = "".join(f"<div><dt>{html.escape(what)}</dt><dd>{html.escape(value)}</dd></div>" for what, value in facts)
    links = "".join(f'<li><a href="#part-{k}">{html.escape(each.title)}</a></li>' for k, each in enumerate(sections))
    body = "\n".join(f'<section id="part-{k}">\n{each}\n</section>' for k, each in enumerate(sections))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}: a study with sidelong</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n<header>\n<p class=eyebrow>A study with sidelong</p>\n<h1>{html.escape(title)}</h1>\n"
        f"<p class=lead>{html.escape(lead)}</p>\n<dl class=facts>{told}</dl>\n</header>\n"
        f'<nav aria-label="On this page"><ul>{links}</ul></nav>\n'
        f"{body}\n</main>\n</body>\n</html>\n"
    )
