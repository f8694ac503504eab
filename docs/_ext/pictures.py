"""Put the drawings of `pictures/` into the page itself, so that they follow its light and dark."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _inline(app: Sphinx, doctree: nodes.document, _page: str) -> None:
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        path = Path(app.srcdir) / image["uri"]
        if path.parent.name == "pictures" and path.suffix == ".svg":
            drawing = re.sub(r"<style>.*?</style>", "", path.read_text("utf-8"), flags=re.DOTALL)
            label = html.escape(image.get("alt", ""), quote=True)
            drawing = drawing.replace("<svg ", f'<svg class="picture" role="img" aria-label="{label}" ', 1)
            image.replace_self(nodes.raw("", f'<figure class="picture">{drawing}</figure>', format="html"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", _inline)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
