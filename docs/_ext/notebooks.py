"""Notebooks: run their cells, and show them as pages. A notebook is JSON, and its outputs are kept in it.

`python docs/_ext/notebooks.py [NAME ...]` runs notebooks anew and writes their outputs. No Jupyter is needed for
that, nor for the site. All names of a notebook live in one session, as in Jupyter, and the value of the last
expression of a cell is shown as its `_repr_html_` says.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = Path(__file__).parent.parent / "notebooks"
_KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Run a notebook in the present folder, and return it with its outputs."""
    session = types.ModuleType("__main__").__dict__
    cells, count = [], 0
    for cell in notebook["cells"]:
        made = dict(cell)
        if cell["cell_type"] == "code":
            count += 1
            made |= {"execution_count": count, "outputs": _run_cell("".join(cell["source"]), session, count)}
        cells.append(made)
    return {"cells": cells, "metadata": _KERNEL, "nbformat": 4, "nbformat_minor": 5}


def _run_cell(source: str, session: dict[str, Any], count: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop().value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    name = f"cell {count}"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), session)  # noqa: S102
        value = None if last is None else eval(compile(ast.Expression(last), name, "eval"), session)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())  # a name of notebooks
        outputs.append({"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def to_markdown(notebook: dict[str, Any], name: str) -> str:
    """Return a notebook as a page: its cells, and what they gave."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", [])})
            html = "".join(data.get("text/html", ()))
            plain = "".join(data["text/plain"]).rstrip()
            parts.append(f"```{{raw}} html\n<div class=output>{html}</div>\n```" if html else f"```text\n{plain}\n```")
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n{{download}}`This page as a notebook <{name}>`\n\n{rest}\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    from myst_parser.parsers.sphinx_ import MystParser  # noqa: PLC0415

    class NotebookParser(MystParser):
        """Reads a notebook as the page that it is."""

        supported = ("notebook",)

        def parse(self, inputstring: str, document: Any) -> None:
            name = Path(document["source"]).name
            super().parse(to_markdown(json.loads(inputstring), name), document)

    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def main() -> None:
    """Run the notebooks that are named, or all, and write their outputs."""
    home = Path.cwd()
    for path in sorted(FOLDER.glob("*.ipynb")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            sys.path.insert(0, folder)
            notebook = run(json.loads(path.read_text("utf-8")))
            os.chdir(home)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
