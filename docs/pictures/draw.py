"""Draw the pictures of the documentation: `make pictures`."""

from __future__ import annotations

import math
import re
import sys
import tomllib
from pathlib import Path

import features
import numpy as np
from canvas import DARK, LIGHT, RULES, Canvas, variables

import sidelong as sl

DOCS = Path(__file__).parent.parent
sys.path.insert(0, str(DOCS.parent / "research"))
from tails import GRAPHS, play


def main() -> None:
    """Draw all of them, and the rules by which the site colours them."""
    own = (side, loop, cases, sale, prices, choose, late, once, study, cluster, sets, speed, worlds, tails, packages)
    for draw in (*own, features.draw):
        draw()
    dark = variables(DARK, "#131416")
    text = (
        "/* Made by docs/pictures/draw.py. */\n"
        f"body {{ {variables(LIGHT, '#ffffff')} }}\n"
        f'body[data-theme="dark"] {{ {dark} }}\n'
        f'@media (prefers-color-scheme: dark) {{ body:not([data-theme="light"]) {{ {dark} }} }}\n'
        f"{RULES.replace(', svg > text', '')}"
    )
    (DOCS / "_static" / "pictures.css").write_text(text, "utf-8")


def _row(sheet: Canvas, y: float, played: int, seen: set[int], arcs: bool, n: int = 8, x: float = 32) -> None:  # noqa: FBT001
    for k in range(n):
        kind = "play" if k == played else "seen" if k in seen else "hidden"
        sheet.circle(x + 59 * k, y, 17, kind, str(k))
        if arcs and k in seen and k != played:
            bend = (10 + 8 * abs(played - k)) * (1 if k > played else -1)
            sheet.arrow(x + 59 * played, y - 18, x + 59 * k, y - 19, "arc", bend)


def side() -> None:
    """Bandit, feedback graph, full information."""
    sheet = Canvas(480, 330)
    sheet.text(12, 24, "A bandit: you ordered 6, and learn what 6 cost", "head")
    _row(sheet, 56, 6, {6}, arcs=False)
    sheet.text(12, 118, "A feedback graph: and what 0 to 5 would have cost", "head")
    _row(sheet, 198, 6, set(range(7)), arcs=True)
    sheet.text(12, 266, "Full information: you learn what all would have cost", "head")
    _row(sheet, 300, 6, set(range(8)), arcs=False)
    sheet.save("side")


def loop() -> None:
    """Ask and tell."""
    sheet = Canvas(480, 170)
    sheet.box(10, 45, 130, 80, "seen")
    sheet.text(75, 80, "agent", "head", "middle")
    sheet.text(75, 102, "probabilities", "", "middle")
    sheet.box(340, 45, 130, 80)
    sheet.text(405, 80, "your product", "head", "middle")
    sheet.text(405, 102, "and the world", "", "middle")
    sheet.arrow(140, 65, 340, 65, "arc")
    sheet.text(240, 55, "ask: play arm 5", "", "middle")
    sheet.arrow(340, 105, 140, 105, "arc")
    sheet.text(240, 124, "tell: losses of arms 0 to 5", "note", "middle")
    sheet.text(240, 158, "now or later, in any order, from anywhere", "small", "middle")
    sheet.save("loop")


def cases() -> None:
    """Draw four graphs that people have."""
    kinds = (
        ("A large order shows the smaller ones", "stock, early exit, training length", 3, {0, 1, 2, 3}),
        ("A bid that won shows the higher ones", "first-price auctions", 1, {1, 2, 3, 4}),
        ("Today's spare capacity shadows two models", "another graph each day, known before the draw", 2, {0, 2, 4}),
        ("Nothing else is seen: a bandit", "no graph, and sidelong still works", 2, {2}),
    )
    sheet = Canvas(480, 126 * len(kinds) - 20)
    for k, (title, who, played, seen) in enumerate(kinds):
        top = 126 * k
        sheet.text(12, top + 20, title, "head")
        sheet.text(12, top + 39, who, "small")
        _row(sheet, top + 84, played, seen, arcs=True, n=5, x=32)
    sheet.save("cases")


def sale() -> None:
    """Show a graph that only the outcome shows: what an order reveals depends on what was sold."""
    sheet = Canvas(480, 250)
    sheet.text(12, 24, "Ordered 4, all were sold: the smaller orders", "head")
    _row(sheet, 92, 4, {0, 1, 2, 3, 4}, arcs=True, n=6)
    sheet.text(12, 146, "Ordered 4, one was left over: all orders", "head")
    _row(sheet, 214, 4, set(range(6)), arcs=True, n=6)
    sheet.save("sale")


def prices() -> None:
    """Draw the trap: what a sale at a price shows, and what it does not."""
    sheet = Canvas(480, 226)
    sheet.text(12, 24, "Price 4 was posted, and the buyer bought", "head")
    for k in range(8):
        kind = "play" if k == 4 else "seen" if k < 4 else "hidden"
        sheet.circle(32 + 59 * k, 70, 17, kind, str(k))
    sheet.path("M20 100 L20 108 L282 108 L282 100", "line")
    sheet.text(151, 128, "would have sold too: known", "", "middle")
    sheet.path("M311 100 L311 108 L460 108 L460 100", "c")
    sheet.text(385, 128, "up to which price?", "", "middle")
    sheet.text(12, 166, "How likely was it to learn about price 2?")
    sheet.text(12, 188, "Every price from 2 up that would have sold shows it,")
    sheet.text(12, 210, "and which ones those are, nobody learns.")
    sheet.save("prices")


def choose() -> None:
    """Which learner."""
    sheet = Canvas(480, 372)
    steps = (
        ("Does every arm reveal all arms?", "hedge"),
        ("Does some arm not reveal itself?", "exp3.g"),
        ("Losses 0 or 1, and nothing changes?", "ts-n"),
        ("The paper's theorem in both worlds?", "exp3.g++"),
    )
    for k, (question, answer) in enumerate(steps):
        y = 12 + 76 * k
        sheet.box(6, y, 322, 42)
        sheet.text(18, y + 27, question)
        sheet.arrow(328, y + 21, 374, y + 21)
        sheet.text(348, y + 13, "yes", "small", "middle")
        sheet.box(374, y + 3, 100, 36, "seen")
        sheet.text(424, y + 26, answer, "head", "middle")
        sheet.arrow(166, y + 42, 166, y + 76)
        sheet.text(174, y + 64, "no", "small")
    sheet.box(16, 316, 300, 42, "play")
    sheet.text(166, 342, "glance", "onplay", "middle")
    sheet.save("choose")


def late() -> None:
    """Feedback that comes late."""
    sheet = Canvas(480, 214)
    sheet.text(12, 24, "Each decision keeps its own probabilities", "head")
    asked, told = (80, 150, 220), {0: 430, 1: 300, 2: 365}
    sheet.path("M20 66 L470 66", "rule")
    sheet.path("M20 176 L470 176", "rule")
    sheet.text(12, 58, "ask", "small")
    sheet.text(12, 196, "tell", "small")
    for k, x in enumerate(asked):
        sheet.arrow(x, 84, told[k], 160, "arc")
        sheet.circle(x, 66, 17, "play", str(k + 1))
        sheet.circle(told[k], 176, 17, "seen", str(k + 1))
    sheet.text(240, 210, "2 is told first and 1 last: each with its own p", "small", "middle")
    sheet.save("late")


def once() -> None:
    """One file, two drivers."""
    sheet = Canvas(480, 206)
    sheet.box(10, 50, 170, 90, "seen")
    sheet.text(95, 84, "my_learner.py", "head", "middle")
    sheet.text(95, 106, "distribution, update", "", "middle")
    sheet.text(95, 126, "compiled once", "note", "middle")
    for y, title, words in (
        (14, "sl.Agent", "one decision at a time"),
        (112, "sl.simulate", "millions of rounds a second"),
    ):
        sheet.box(262, y, 208, 64)
        sheet.text(366, y + 28, title, "head", "middle")
        sheet.text(366, y + 49, words, "small", "middle")
    sheet.arrow(180, 80, 262, 46, "arc")
    sheet.arrow(180, 110, 262, 144, "arc")
    sheet.text(240, 198, "the same kernels, and so the same bits", "small", "middle")
    sheet.save("once")


def study() -> None:
    """From a file to a report."""
    sheet = Canvas(480, 250)
    sheet.box(10, 20, 130, 60, "seen")
    sheet.text(75, 46, "study.toml", "head", "middle")
    sheet.text(75, 66, "what to compare", "note", "middle")
    sheet.arrow(140, 50, 186, 50, "arc")
    for row in range(3):
        for column in range(4):
            done = row < 2 or column < 1
            sheet.box(190 + 26 * column, 14 + 26 * row, 22, 22, "play" if done else "hidden", r=4)
    sheet.text(12, 112, "cells: on cores or a cluster,", "small")
    sheet.text(12, 131, "stopped and resumed at will", "small")
    sheet.arrow(296, 50, 340, 50, "arc")
    sheet.box(340, 20, 130, 60)
    sheet.text(405, 46, "Parquet", "head", "middle")
    sheet.text(405, 66, "one file per cell", "small", "middle")
    sheet.arrow(405, 80, 405, 160, "arc")
    sheet.box(330, 162, 144, 60)
    sheet.text(402, 188, "report.html", "head", "middle")
    sheet.text(402, 208, "figures, scoreboard", "small", "middle")
    sheet.arrow(370, 80, 262, 160, "arc")
    sheet.box(180, 162, 136, 60)
    sheet.text(248, 188, "read_results", "head", "middle")
    sheet.text(248, 208, "one Arrow table", "small", "middle")
    sheet.save("study")


def cluster() -> None:
    """Show who does what on a cluster: one process writes, and the cells of a worker that is gone go to others."""
    sheet = Canvas(480, 260)
    sheet.box(10, 92, 130, 66, "seen")
    sheet.text(75, 120, "sidelong run", "head", "middle")
    sheet.text(75, 141, "alone writes", "note", "middle")
    sheet.box(176, 92, 118, 66)
    sheet.text(235, 120, "scheduler", "head", "middle")
    sheet.text(235, 141, "of Dask", "small", "middle")
    sheet.arrow(140, 116, 176, 116, "arc")
    sheet.arrow(176, 138, 140, 138, "arc")
    for k, (name, what) in enumerate((("worker", "plays a cell"), ("worker", "plays a cell"), ("worker", "gone"))):
        top = 14 + 84 * k
        sheet.box(340, top, 130, 60, "hidden" if what == "gone" else "seen")
        sheet.text(405, top + 27, name, "head", "middle")
        sheet.text(405, top + 47, what, "note", "middle")
        sheet.arrow(294, 112 + 13 * k, 340, top + 30, "line" if what == "gone" else "arc")
    sheet.text(12, 226, "cells go out, results come back;", "small")
    sheet.text(12, 245, "those of a lost worker go to another", "small")
    sheet.save("cluster")


def packages() -> None:
    """Draw the packages as import-linter has them: each may import those below it."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]
    layers = [[each.strip().removeprefix("sidelong.") for each in layer.split("|")] for layer in contract["layers"]]
    below = layers.index(["numerics"])
    ground = [name for layer in layers[below + 1 :] for name in layer]
    sheet = Canvas(480, 46 * (below + 1) + 90)
    for k, layer in enumerate(layers[: below + 1]):
        width = (460 - 10 * (len(layer) - 1)) / len(layer)
        for j, name in enumerate(layer):
            x = 10 + j * (width + 10)
            sheet.box(x, 10 + 46 * k, width, 34, "seen" if k % 2 == 0 else "hidden")
            sheet.text(x + width / 2, 32 + 46 * k, name, "note" if len(layer) > 2 else "head", "middle")
    y = 10 + 46 * (below + 1)
    sheet.box(10, y, 460, 74, "hidden")
    for k, names in enumerate(np.array_split(ground, 3)):
        sheet.text(240, y + 22 + 20 * k, "   ".join(names), "small", "middle")
    sheet.save("packages")


def sets() -> None:
    """Mark the sets that numbers of a graph count, on a cycle of six."""
    sheet = Canvas(480, 210)
    shown = (("independence: 3", {0, 2, 4}), ("domination: 2", {0, 3}), ("clique cover: 3", set()))
    for k, (title, marked) in enumerate(shown):
        x, y, r = 82 + 158 * k, 96, 58
        place = [(x + r * math.sin(math.pi * i / 3), y - r * math.cos(math.pi * i / 3)) for i in range(6)]
        for i in range(6):
            pair = not marked and i % 2 == 0
            sheet.curve([place[i], place[(i + 1) % 6]], "a" if pair else "line")
        for i, (a, b) in enumerate(place):
            kind = "play" if i in marked else "seen" if k else "hidden"
            sheet.path(f"M{a - 13:.1f} {b:.1f} a13 13 0 1 0 26 0 a13 13 0 1 0 -26 0", "paper")
            sheet.circle(a, b, 13, kind)
        sheet.text(x, 194, title, "", "middle")
    sheet.save("sets")


def speed() -> None:
    """Compare a round with others, from the table of `make bench`: each with ours as it was beside it."""
    table = (DOCS / "benchmarks.md").read_text("utf-8")
    rows = re.findall(
        r"^\| simulate, [\w -]+, K = 10 +\| [\d.]+ \w+ +\| (.+?) +\| [\d.]+ \w+ +\| ([\d.,]+) x",
        table,
        re.MULTILINE,
    )
    wanted = {
        "C, -O3 -ffast-math": "C with -ffast-math",
        "C, -O3, IEEE arithmetic": "C with IEEE arithmetic, as ours",
        "river Exp3": "river",
        "NumPy, whole arrays": "NumPy, whole arrays",
        "MABWiser UCB1": "MABWiser",
        "Vowpal Wabbit graph_feedback": "Vowpal Wabbit (optimises in each round)",
    }
    bars = [("sidelong", [1.0])]
    bars += [
        (label, sorted({float(r.replace(",", "")) for other, r in rows if other == name}))
        for name, label in wanted.items()
    ]
    sheet = Canvas(480, 60 + 44 * len(bars))
    sheet.text(12, 22, "A round with ten arms, as a multiple of ours", "head")

    def x(ratio: float) -> float:
        return 12 + 56 * math.log10(ratio / 0.1)

    for decade in range(8):
        left = x(0.1 * 10**decade)
        sheet.path(f"M{left:.1f} 34 L{left:.1f} {sheet.height - 22}", "rule")
        name = ("", "1", "", "100", "", "10,000", "", "1,000,000")[decade]
        sheet.text(left, sheet.height - 6, name, "small", "middle")
    for k, (name, ratios) in enumerate(bars):
        top, ratio = 42 + 44 * k, ratios[0]  # where there are several graphs, the one on which the other is fastest
        sheet.box(12, top + 20, x(ratio) - 12, 14, "play" if k == 0 else "seen", r=2)
        several = f"{ratios[0]:.2g} to {ratios[-1]:.2g}, by the graph"
        said = f": {ratio:,.0f} times" if len(ratios) == 1 else f": {several}"
        sheet.text(16, top + 15, name + said if k else name)
    sheet.save("speed")


def worlds() -> None:
    """Regret in both worlds, as measured."""
    K, gap, best, rounds = 10, 0.2, 3, 100_000
    means = [0.5 + gap / 2 - gap * (arm == best) for arm in range(K)]
    both = {
        "A stochastic world": sl.losses.bernoulli(means),
        "Against an adversary": sl.losses.constrained(gaps=gap, n_arms=K, best=best),
    }
    learners = (
        ("glance", "glance", {}, "a"),
        ("exp3.g++", "exp3.g++", {}, "b"),
        ("ucb-n", "ucb-n", {}, "c"),
        ("ts-n", "ts-n", {}, "d"),
    )
    marks = [rounds * k // 50 for k in range(1, 51)]
    sheet = Canvas(480, 560)
    most = 6000
    for panel, (title, world) in enumerate(both.items()):
        top = 30 + 230 * panel
        sheet.text(12, top - 8, f"{title}: regret", "head")
        for level in range(0, most + 1, 2000):
            y = top + 180 - 170 * level / most
            sheet.path(f"M50 {y:.1f} L470 {y:.1f}", "rule")
            sheet.text(44, y + 5, f"{level:,}", "small", "end")
        sheet.text(470, top + 200, "100,000 rounds", "small", "end")
        for _, name, options, kind in learners:
            result = sl.simulate(name, sl.graphs.self_loops(K), world, rounds, runs=16, checkpoints=marks, **options)
            regret = result.regret.mean(axis=0)
            curve = [
                (50 + 420 * t / rounds, top + 180 - 170 * value / most) for t, value in zip(marks, regret, strict=True)
            ]
            sheet.curve([(50, top + 180), *curve], kind)
    for k, (label, _, _, kind) in enumerate(learners):
        x, y = 50 + 240 * (k % 2), 500 + 26 * (k // 2)
        sheet.path(f"M{x} {y} L{x + 34} {y}", kind)
        sheet.text(x + 42, y + 5, label)
    sheet.save("worlds")


def tails() -> None:
    """Draw how many runs lost more than so much, as measured: the play of `research/tails.py`."""
    learners = (("exp3-set", "c"), ("exp3-ix", "a"), ("luo-2023", "b"))
    sheet = Canvas(480, 560)
    low, high = -400, 1_200
    for panel, (title, graph) in enumerate(GRAPHS.items()):
        top = 30 + 230 * panel
        sheet.text(12, top - 8, f"{title}: share of runs that lost more", "head")
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            y = top + 180 - 170 * share
            sheet.path(f"M50 {y:.1f} L470 {y:.1f}", "rule")
            sheet.text(44, y + 5, f"{share:.0%}", "small", "end")
        for regret in range(low, high + 1, 400):
            sheet.text(
                50 + 420 * (regret - low) / (high - low),
                top + 200,
                f"{regret:,}",
                "small",
                "end" if regret == high else "middle",
            )
        for name, kind in learners:
            regret = np.sort(play(name, graph))
            levels = np.linspace(low, high, 161)
            shares = 1.0 - np.searchsorted(regret, levels, "right") / regret.size
            across = 50 + 420 * (levels - low) / (high - low)
            sheet.curve(list(zip(across.tolist(), (top + 180 - 170 * shares).tolist(), strict=True)), kind)
    for k, (label, kind) in enumerate(learners):
        x = 50 + 150 * k
        sheet.path(f"M{x} 510 L{x + 34} 510", kind)
        sheet.text(x + 42, 515, label)
    sheet.text(470, 546, "regret of a run after 10,000 rounds", "small", "end")
    sheet.save("tails")


if __name__ == "__main__":
    main()
