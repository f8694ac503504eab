"""Docstrings are written for help(): in the site, |S| is a size and no substitution, and a property's colon a colon."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _escape(_app: Sphinx, _what: str, _name: str, _thing: object, _options: object, lines: list[str]) -> None:
    literal = -1  # the indentation of what announced a literal block, or -1
    for k, line in enumerate(lines):
        indentation = len(line) - len(line.lstrip())
        if literal >= 0 and line.strip() and indentation <= literal:
            literal = -1
        if literal < 0:
            parts = re.split(r"(``.*?``)", line)
            lines[k] = "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts)
            if line.rstrip().endswith("::"):
                literal = indentation


def _keep_colon(_app: Sphinx, what: str, _name: str, _thing: object, _options: object, lines: list[str]) -> None:
    """Keep Napoleon from taking what stands before a colon in the first line of a property for its type."""
    if what in {"attribute", "property"} and lines and ":" in lines[0]:
        lines[0] = f": {lines[0]}"  # nothing is before the first colon


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", _keep_colon, priority=400)  # before Napoleon
    app.connect("autodoc-process-docstring", _escape)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
