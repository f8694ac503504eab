"""The notebooks: each runs in an empty folder, and gives the outputs that are kept in it, which the site shows."""

import json
import re
import sys
from pathlib import Path

import pytest

from nightly import share

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import notebooks  # noqa: E402

FILES = sorted(notebooks.FOLDER.glob("*.ipynb"))


def told(notebook):
    """Return all outputs; a drawing counts as one, since another Matplotlib may place a tick elsewhere."""
    outputs = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    text = json.dumps(outputs, ensure_ascii=False)
    return re.sub(r"<svg.*?</svg>|<div style=.{2}--ink.*?</div>", "a drawing", text)


@pytest.mark.parametrize("path", share(FILES, 1), ids=lambda path: path.stem)
def test_a_notebook_gives_the_outputs_that_are_kept_in_it(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    kept = json.loads(path.read_text("utf-8"))
    assert told(notebooks.run(kept)) == told(kept)
    assert told(kept).count("execute_result") >= 1


def test_every_notebook_is_in_the_gallery():
    page = (notebooks.FOLDER / "index.md").read_text("utf-8")
    listed = re.search(r"```\{toctree\}\n(.*?)```", page, re.DOTALL)[1].split()
    assert sorted(name for name in listed if not name.startswith(":")) == [path.stem for path in FILES]


def test_outputs_are_shown_and_text_in_them_is_no_markup():
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": ["print('<b>')\n", "7"]},
    ]
    page = notebooks.to_markdown(notebooks.run({"cells": cells}), "title.ipynb")
    assert page.startswith("# Title\n\n{download}`This page as a notebook <title.ipynb>`\n\ntext")
    assert "```python\nprint('<b>')\n7\n```" in page
    assert "```text\n<b>\n```" in page
    assert "```text\n7\n```" in page
