"""What `sidelong graph` prints for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from rich.text import Text

from sidelong.graphs.checkers import Cover, Shares

if TYPE_CHECKING:
    from rich.console import Console

    from sidelong.cli.graph import Report
    from sidelong.graphs import FeedbackGraph
    from sidelong.graphs.numbers import GraphNumber, RealGraphNumber

_MOST_SHOWN = 40


def show(console: Console, report: Report) -> None:
    """Print the numbers, what they mean, and a picture of a small graph."""
    graph = report.graph
    kind = "undirected" if graph.is_undirected else "directed"
    name = graph.name or "graph"
    title = f"{name}: {graph.n_arms:,} arms, {graph.n_edges:,} edges with self-loops, {kind}"
    console.print(Text(title, style="bold"), end="\n\n")
    console.print(_table(report))
    console.print(f"\n{_checks(report)}")
    for reason in dict.fromkeys(report.refused.values()):
        console.print(f"\n{reason}", highlight=False, markup=False)
    console.print("\n" + "\n".join(_meaning(report)), highlight=False, markup=False)
    if graph.n_arms <= _MOST_SHOWN:
        console.print()
        console.print(_picture(report, console.width, ".#" if console.options.ascii_only else "·■"))


def _table(report: Report) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("number", no_wrap=True)
    table.add_column("lower", justify="right")
    table.add_column("upper", justify="right")
    table.add_column("exact")
    table.add_column("certificate")
    table.add_column("seconds", justify="right", no_wrap=True)
    graph = report.graph
    for name, number in report.numbers.items():
        table.add_row(
            _title(name),
            _plain(number.lower),
            _plain(number.upper),
            "yes" if number.exact else "[yellow]no[/]",
            Text(_certificate(number, graph)),
            f"{number.seconds:.2f}",
        )
    for name in report.refused:
        table.add_row(_title(name), "-", "-", "-", "", "")
    return table


def _title(name: str) -> str:
    return name.replace("weighted_strong_independence", "weighted strong").replace("_", " ")


def _certificate(number: GraphNumber | RealGraphNumber, graph: FeedbackGraph) -> str:
    found = number.certificate
    if isinstance(found, Cover):
        return f"{found.weight.size} groups, in shares"
    if isinstance(found, Shares):
        return f"shares of {_count(int(np.count_nonzero(found.weight)))}"
    if number.kind == "clique_cover":
        return f"{found.max() + 1} groups"
    return f"{'arm' if found.size == 1 else 'arms'} {_some(graph, found, 19)}" if found.size else "none is needed"


def _checks(report: Report) -> str:
    """Say whether the certificates, and the duals that prove the other side, were found to hold."""
    failed = [_title(name) for name, number in report.numbers.items() if not number.holds_for(report.graph)]
    if failed:
        return f"[red]These certificates do not hold: {', '.join(failed)}. Please report it.[/]"
    return "All certificates were checked, and hold."


def _some(graph: FeedbackGraph, arms: np.ndarray, room: int) -> str:
    """Return the arms, or the first ones and how many there are, in at most this many characters."""
    from sidelong.display.drawing import called  # noqa: PLC0415  # the compiler takes half a second to load

    gap, rest = " " if graph.labels is None else ", ", f" ... ({arms.size})"
    listed = gap.join(called(graph, arm, room) for arm in arms.tolist())
    if len(listed) <= room:
        return listed
    names = [called(graph, arm, room - len(rest)) for arm in arms[:room].tolist()]
    while len(gap.join(names)) > room - len(rest):
        names.pop()
    return gap.join(names) + rest


def _meaning(report: Report) -> list[str]:
    graph, numbers = report.graph, report.numbers
    lines = [str(graph.observability)]
    kind = graph.observability.kind
    if kind == "none":
        lines.append("No learner can do better than regret in proportion to T.")
    elif kind == "weak":
        delta = numbers.get("weak_domination", "the weak domination number")
        lines.append(f"Regret grows as delta^(1/3) T^(2/3), up to logarithms, with delta = {delta}.")
    else:
        lines.append(_strong(report))
    if report.exploration.size and not graph.arms_without_self_loop.size:
        lines.append(
            f"EXP3.G++ begins to explore with {_count(report.exploration.size)}: "
            f"{_some(graph, report.exploration, 30)}."
        )
    lines.append(f"May play: {', '.join(report.able) or 'no learner'}.")
    if report.unable:
        lines.append(f"May not: {', '.join(report.unable)}.")
    return lines


def _strong(report: Report) -> str:
    numbers = report.numbers
    if "independence" not in numbers:
        return "Regret grows as sqrt(alpha T), up to logarithms."
    alpha, K = numbers["independence"], report.graph.n_arms
    text = (
        f"Regret grows as sqrt(alpha T), up to logarithms, with alpha = {alpha} in the place of K = {K:,} for a bandit."
    )
    if "acyclic" in numbers and numbers["acyclic"].upper > alpha.upper:
        text += (
            f" Edges that go one way do not help every bound: those without a second logarithm have "
            f"mas = {numbers['acyclic']}, and EXP3.G++ at the fixed rate alpha~ = {numbers.get('strong_independence')}."
        )
    return text


def _count(arms: int) -> str:
    return "1 arm" if arms == 1 else f"{arms:,} arms"


def _picture(report: Report, width: int, signs: str) -> Text:
    """Return the matrix: a row for each arm that is played, the second of two signs where it reveals another."""
    from sidelong.display.drawing import called  # noqa: PLC0415  # the compiler takes half a second to load

    graph = report.graph
    A, n = graph.matrix().astype(int), graph.n_arms
    grouped = report.marked.max() > 0
    gap = " " if 2 * n + 6 <= width else ""
    picture = Text()
    if n > 10:
        tens = gap.join(str(arm // 10) if arm and arm % 10 == 0 else " " for arm in range(n))
        picture.append(f"     {tens}\n", style="dim")
    picture.append("     " + gap.join(str(arm % 10) for arm in range(n)) + "\n", style="dim")
    for i, group in enumerate(report.marked.tolist()):
        sign = " " if group < 0 else _SIGNS[group % len(_SIGNS)] if grouped else "*"
        style = "green" if group >= 0 else ""
        picture.append(f"{i:>3}{sign} ", style=style or "dim")
        for j in range(n):
            picture.append(signs[A[i, j]], style=style if A[i, j] else "dim")
            picture.append(gap)
        name = "" if graph.labels is None else called(graph, i, max(4, width - 6 - n * (1 + len(gap))))
        picture.append(f" {name}\n" if name else "\n")
    sign = "letters: groups of the" if grouped else "*:"
    picture.append(f"row i, column j: playing i reveals j; {sign} {report.mark.value.replace('-', ' ')}", style="dim")
    return picture


_SIGNS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"  # as many as there are arms in a picture


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:.6g}"
