"""What was run: how long, with which versions and seeds, and how to make it again."""

from __future__ import annotations

import html
import json
import shlex
from typing import TYPE_CHECKING, Any

from sidelong._version import __version__
from sidelong.studies.cell import describe
from sidelong.studies.report.markup import Entry, Section, Table, paragraph, section

if TYPE_CHECKING:
    from pathlib import Path

    from sidelong.studies.report.reading import StudyReading


_VERSIONS = {
    "seeds": "seed",
    "sidelong": "version",
    "its sources": "source",
    "platform": "platform",
    "Python": "python",
    "NumPy": "numpy",
    "Numba": "numba",
}


def facts(reading: StudyReading) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page."""
    told = [each for curve in reading.curves for each in curve.provenance]
    rounds = sum(each["cell"]["rounds"] * each["cell"]["runs"] for each in told)
    return [
        ("learners", f"{len(reading.styles)}"),
        ("instances", f"{len(reading.instances)}"),
        ("runs of each", _span([len(curve.runs) for curve in reading.curves])),
        ("rounds in all", f"{rounds:,}"),
    ]


def origin(reading: StudyReading, folder: Path) -> Section:
    """Return the section."""
    told = [each for curve in reading.curves for each in curve.provenance]
    slowest = max(told, key=lambda each: float(each["seconds"]))
    rows: list[list[str | Entry]] = [
        ["cells", f"{len(told):,}{f', and {reading.missing:,} without results' * (reading.missing > 0)}"],
        ["rounds in all", f"{sum(each['cell']['rounds'] * each['cell']['runs'] for each in told):,}"],
        ["time", f"{sum(each['seconds'] for each in told):,.1f} s, summed over cells"],
        ["slowest cell", f"{slowest['seconds']:,.1f} s, {describe(slowest['cell']['learner'])}"],
        ["finished", max(each["finished"] for each in told)],
    ]
    rows += [[title, ", ".join(sorted({str(each[key]) for each in told}))] for title, key in _VERSIONS.items()]
    again = ""
    if reading.study is not None:
        path, out = shlex.quote(f"{reading.name}.toml"), shlex.quote(folder.name)
        command = f"sidelong run {path} --out {out} && sidelong report {out}"
        again = (
            f"<h3>To make it again</h3>\n{paragraph('Save this as ' + reading.name + '.toml, and run the command.')}\n"
            f"<pre class=command><code>{html.escape(command)}</code></pre>\n"
            f"<pre><code>{html.escape(toml(reading.name, reading.study))}</code></pre>"
        )
    note = paragraph(f"Written by sidelong {__version__}. It asks for nothing from any network.", "note")
    return section("What was run", Table("origin", [], rows), again, note)


def toml(name: str, content: dict[str, Any]) -> str:
    """Return a study as the file that says it. Files that it names must lie beside it."""
    lines = [f"name = {_value(name)}"]
    lines += [
        f"{key} = {_value(value)}" for key, value in content.items() if not _is_tables(value) and value is not None
    ]
    for kind, tables in content.items():
        if _is_tables(tables):
            for each in tables:
                lines += ["", f"[[{kind}]]", *(f"{key} = {_value(value)}" for key, value in each.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        if value.keys() == {"name", "sha256"}:  # a file
            return json.dumps(value["name"])
        return f"{{ {', '.join(f'{key} = {_value(each)}' for key, each in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _span(numbers: list[int]) -> str:
    return f"{min(numbers)}" if min(numbers) == max(numbers) else f"{min(numbers)} to {max(numbers)}"
