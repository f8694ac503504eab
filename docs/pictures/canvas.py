"""A sheet to draw on: shapes with classes, whose colours are those of a light or a dark page."""

from __future__ import annotations

import html
import math
from pathlib import Path

#: What each class looks like. The site has the same rules, with its own switch between light and dark.
LIGHT = {
    "ink": "#1f2328",
    "soft": "#6a737d",
    "rule": "#c9ced4",
    "seen": "#9fd0f0",
    "play": "#1769aa",
    "warn": "#b3541e",
}
DARK = {"ink": "#e6e8ea", "soft": "#a0a8b0", "rule": "#4b535b", "seen": "#2c5f85", "play": "#6bb8f0", "warn": "#f0a070"}
RULES = """
.picture text, svg > text { font: 15px system-ui, sans-serif; fill: var(--ink); }
.picture text.small { font-size: 13px; fill: var(--soft); } .picture text.head { font-weight: 600; }
.picture text.note { font-size: 13px; }
.picture text.onplay { fill: var(--paper); font-weight: 600; }
.picture .play { fill: var(--play); stroke: var(--play); } .picture .seen { fill: var(--seen); stroke: var(--play); }
.picture .paper { fill: var(--paper); }
.picture .hidden { fill: none; stroke: var(--rule); stroke-width: 1.5; } .picture .warn { fill: var(--warn); }
.picture .arc { fill: none; stroke: var(--play); stroke-width: 1.5; }
.picture .line { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.picture .rule { stroke: var(--rule); fill: none; } .picture .head-of-arc { fill: var(--play); }
.picture .head-of-line { fill: var(--soft); }
.picture .a { stroke: var(--play); fill: none; stroke-width: 2.5; }
.picture .b { stroke: var(--play); fill: none; stroke-width: 2; stroke-dasharray: 7 4; }
.picture .c { stroke: var(--warn); fill: none; stroke-width: 2; }
.picture .d { stroke: var(--warn); fill: none; stroke-width: 2; stroke-dasharray: 2 3; }
"""


def variables(colours: dict[str, str], paper: str) -> str:
    """Return colours as CSS variables."""
    return " ".join(f"--{name}: {value};" for name, value in {**colours, "paper": paper}.items())


def style() -> str:
    """Return the style of a drawing that stands alone, where the reader's system says whether it is dark."""
    dark = f"@media (prefers-color-scheme: dark) {{ svg {{ {variables(DARK, '#131416')} }} }}"
    return f"svg {{ {variables(LIGHT, '#ffffff')} }}\n{dark}{RULES}".replace(".picture ", "")


class Canvas:
    """A drawing."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """Write, with the baseline at y."""
        css = f' class="{kind}"' if kind else ""
        self._parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{css}>{html.escape(words)}</text>')

    def circle(self, x: float, y: float, r: float, kind: str, label: str = "") -> None:
        """Draw an arm."""
        self._parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{r:g}" class="{kind}"/>')
        if label:
            self.text(x, y + 5, label, "onplay" if kind == "play" else "", "middle")

    def box(self, x: float, y: float, width: float, height: float, kind: str = "hidden", r: float = 8) -> None:
        """Draw a box with round corners."""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{r:g}" class="{kind}"/>'
        )

    def path(self, d: str, kind: str) -> None:
        """Draw along a path."""
        self._parts.append(f'<path d="{d}" class="{kind}"/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float, kind: str = "line", bend: float = 0) -> None:
        """Draw an arrow, bent to its left by so much."""
        dx, dy = x2 - x1, y2 - y1
        long = math.hypot(dx, dy) or 1
        mx, my = (x1 + x2) / 2 + bend * dy / long, (y1 + y2) / 2 - bend * dx / long
        ex, ey = (x2 - mx, y2 - my) if bend else (dx, dy)
        size = math.hypot(ex, ey)
        ux, uy = ex / size, ey / size
        bx, by = x2 - 9 * ux, y2 - 9 * uy
        curve = f"Q{mx:g} {my:g} {bx:.1f} {by:.1f}" if bend else f"L{bx:.1f} {by:.1f}"
        self.path(f"M{x1:g} {y1:g} {curve}", kind)
        tip = f"M{x2:.1f} {y2:.1f} L{bx - 4.5 * uy:.1f} {by + 4.5 * ux:.1f} L{bx + 4.5 * uy:.1f} {by - 4.5 * ux:.1f} Z"
        self.path(tip, f"head-of-{kind}")

    def curve(self, points: list[tuple[float, float]], kind: str) -> None:
        """Draw a line through points."""
        self.path("M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points), kind)

    def save(self, name: str) -> None:
        """Write it beside this file."""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}">'
        body = "\n".join([head, f"<style>{style()}</style>", *self._parts, "</svg>\n"])
        (Path(__file__).parent / f"{name}.svg").write_text(body, "utf-8")
