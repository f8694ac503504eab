"""Tables, as text for a terminal, as HTML for a notebook and as LaTeX for a paper. All text is escaped here."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

from sidelong._install import pip_install
from sidelong.errors import SidelongError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Rows = Sequence[Sequence[str]]

_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\ensuremath{<}",
    ">": r"\ensuremath{>}",
    "\N{MINUS SIGN}": r"\ensuremath{-}",
    "±": r"\ensuremath{\pm}",
    "·": r"\ensuremath{\cdot}",
    "²": r"\ensuremath{^2}",
    "√": r"\ensuremath{\surd}",
    "θ": r"\ensuremath{\theta}",
    "…": r"\dots{}",
} | {each: f"\\{each}" for each in "&%$#_{}"}
_SPECIAL = re.compile("|".join(map(re.escape, _TEX)))
# No colour but the page's own, so that a table is right on a light page and on a dark one.
_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;background:transparent;color:inherit"
_CELL = "padding:0.2em 0.8em;border:0;border-bottom:1px solid rgb(128 128 128 / 35%);background:transparent"


def text_table(head: Sequence[str], rows: Rows) -> str:
    """Return a table for a terminal: the first column begins at the left, numbers end at the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *others = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)]
        numbers = [f"{cell.strip():>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        return "  ".join([first, *numbers]).rstrip()

    return "\n".join([line(head), "  ".join("-" * width for width in widths), *map(line, rows)])


def html_table(head: Sequence[str], rows: Rows, title: str = "", notes: Sequence[str] = ()) -> str:
    """Return a table for a notebook, with a title above it and notes below it."""
    above = f"<div><strong>{html.escape(title)}</strong></div>" if title else ""
    top = "".join(_html_cell("th", each, k) for k, each in enumerate(head))
    lines = ["".join(_html_cell("th" if k == 0 else "td", each, k) for k, each in enumerate(row)) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    table = f'<table style="{_TABLE}">{f"<thead><tr>{top}</tr></thead>" if head else ""}<tbody>{body}</tbody></table>'
    below = "".join(f'<div style="font-size:0.9em;opacity:0.8">{html.escape(each)}</div>' for each in notes)
    return f'<div style="max-width:100%;overflow-x:auto">{above}{table}{below}</div>'


def _html_cell(tag: str, text: str, column: int) -> str:
    side = "left" if column == 0 else "right"
    said = "\N{EN DASH}" if text.strip() == "nan" else html.escape(text)  # what is not known
    return f'<{tag} style="{_CELL};text-align:{side}">{said}</{tag}>'


def latex_table(head: Sequence[str], rows: Rows, comment: str = "", caption: str = "") -> str:
    r"""Return a table for a paper: a ``tabular`` with the rules of booktabs, in a ``table`` if it has a caption."""
    says = "".join(f"% {line}\n" for line in comment.splitlines())
    lines = [" & ".join(map(latex_text, row)) + r" \\" for row in rows]
    top = [" & ".join(map(latex_text, head)) + r" \\", r"\midrule"] if head else []
    columns = "l" + "r" * (len(head or rows[0]) - 1)
    inside = "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *top, *lines, r"\bottomrule"])
    made = f"{inside}\n\\end{{tabular}}\n"
    if caption:
        made = f"\\begin{{table}}\n\\centering\n\\caption{{{latex_text(caption)}}}\n{made}\\end{{table}}\n"
    return f"{says}% \\usepackage{{booktabs}}\n{made}"


def latex_text(text: str) -> str:
    """Return text as LaTeX shows it: what LaTeX would take for a command is escaped."""
    return _SPECIAL.sub(lambda found: _TEX[found[0]], text)


def data_frame(columns: Mapping[str, Any]) -> Any:  # pandas is optional
    """Return columns as a pandas.DataFrame."""
    try:
        import pandas as pd  # noqa: PLC0415
    except ImportError as error:
        raise SidelongError(f"to_pandas needs pandas. {pip_install('pandas')}") from error
    return pd.DataFrame(columns)
