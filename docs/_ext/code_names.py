"""A block of code that is a file shows its name above it: one whose first line is, for example, ```python market.py."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_NAMED = re.compile(r"^```(\w+) +([\w-]+\.\w+) *$", re.MULTILINE)


def _read(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = _NAMED.sub(r"```{code-block} \1\n:caption: \2\n", source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
