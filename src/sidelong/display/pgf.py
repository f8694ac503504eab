"""Figures as PGF, which LaTeX sets in the fonts of the paper. LaTeX itself is not needed to write them.

Matplotlib's own writer asks a running LaTeX how wide each text is. Here Matplotlib's font says so: a text is anchored
where it belongs, so that the paper's font may be a little wider or narrower.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.backends.backend_pgf import RendererPgf

from sidelong.display.tables import latex_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AROUND = r"""% \usepackage{{pgf}} in the preamble; \input{{this file}} where the figure shall stand
\begingroup
\makeatletter
\begin{{pgfpicture}}
\pgfpathrectangle{{\pgfpointorigin}}{{\pgfqpoint{{{width:f}in}}{{{height:f}in}}}}
\pgfusepath{{use as bounding box, clip}}
{inside}\end{{pgfpicture}}
\makeatother
\endgroup
"""


class _Renderer(RendererPgf):  # type: ignore[misc]
    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> tuple[float, float, float]:  # noqa: ARG002
        size: tuple[float, float, float] = RendererAgg(1, 1, self.dpi).get_text_width_height_descent(s, prop, False)  # noqa: FBT003
        return size

    def draw_text(self, gc: Any, x: float, y: float, s: str, *others: Any, **more: Any) -> None:
        super().draw_text(gc, x, y, latex_text(s), *others, **more)


def pgf(figure: Figure) -> str:
    """Return a figure as PGF."""
    sink = io.StringIO()
    figure.draw(_Renderer(figure, sink))
    width, height = figure.get_size_inches()
    return _AROUND.format(width=width, height=height, inside=sink.getvalue())
