"""What `sidelong bounds` prints for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from sidelong.cli.bounds import Answer, Row

_WORLDS: tuple[tuple[Literal["adversarial", "stochastic"], str], ...] = (
    ("adversarial", "against any adversary"),
    ("stochastic", "in this stochastic world"),
)


def show(console: Console, answer: Answer) -> None:
    """Print the table, and what to read from it."""
    graph = answer.setting.graph
    printed = " (theorems as printed)" if answer.setting.as_printed else ""
    name = graph.name or f"Graph of {graph.n_arms} arms"
    title = f"{name}: after {amount(answer.T)} rounds the regret is at most{printed}"
    console.print(Text(title, style="bold"), end="\n\n")
    console.print(_table(answer))
    for paragraph in (
        _legend(answer),
        _least(answer),
        _floors(answer),
        _far_away(answer),
        _late(answer),
        _left_out(answer),
    ):
        if paragraph:
            console.print("\n" + "\n".join(paragraph), highlight=False)


def _table(answer: Answer) -> Table:
    both = bool(answer.setting.best_arms)
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("learner", no_wrap=True)
    table.add_column("any\nadversary", justify="right")
    likely = any(row.likely is not None for row in answer.rows)
    if likely:
        table.add_column("with\n95 %", justify="right")
    if both:
        table.add_column("this\nworld", justify="right")
        table.add_column("which is\nsmaller\nfrom T =", justify="right")
    table.add_column(" proof", no_wrap=True)
    least = {world: answer.least(world) for world, _ in _WORLDS}
    for row in answer.rows:
        if row.adversarial is row.stochastic is None:
            continue
        cells = [_cell(answer, row, world, least[world]) for world, _ in _WORLDS[: 1 + both]]
        if likely:
            cells.insert(1, _likely(answer, row))
        if both:
            is_bound = row.crossing is not None and row.promise.learner != "uniform"
            cells.append(amount(math.ceil(row.crossing)) if is_bound and row.crossing else "-")
        table.add_row(row.promise.title, *cells, f" {_proof(row, both=both)}")
    return table


def _cell(
    answer: Answer, row: Row, world: Literal["adversarial", "stochastic"], least: tuple[Row, float] | None
) -> str:
    value = getattr(row, world)
    if value is None:
        return "-"
    if answer.is_vain(row, world):
        return f"[dim]({amount(value)})[/]"
    return f"[green]{amount(value)}[/]" if least == (row, value) else amount(value)


def _likely(answer: Answer, row: Row) -> str:
    if row.likely is None:
        return "-"
    return f"[dim]({amount(row.likely)})[/]" if row.likely >= answer.chance("adversarial") else amount(row.likely)


def _proof(row: Row, *, both: bool) -> str:
    sources = [row.promise.adversarial_source] if row.adversarial is not None else []
    sources += [row.promise.stochastic_source] if both and row.stochastic is not None else []
    joined = ", ".join(dict.fromkeys(sources))
    return joined.replace("Theorem 2, Theorem 3", "Theorems 2, 3")


def _legend(answer: Answer) -> list[str]:
    vain = any(answer.is_vain(row, world) for row in answer.rows for world, _ in _WORLDS)
    lines = ["In brackets: not below what drawing arms at random loses, so not a promise yet."] if vain else []
    if any(row.likely is not None for row in answer.rows):
        lines.append("With 95 %: at most one run of twenty loses more. The other bounds are on the mean over runs.")
    return lines


def _least(answer: Answer) -> list[str]:
    lines = []
    for world, where in _WORLDS[: 1 + bool(answer.setting.best_arms)]:
        found = answer.least(world)
        if found is None:
            lines.append(f"No learner promises anything {where} at this horizon.")
        else:
            row, value = found
            how = " (what holds against any adversary holds here)" if value != getattr(row, world) else ""
            lines.append(f"Least {where}: [green]{row.promise.title}[/], {amount(value)}{how}.")
    return lines


def _floors(answer: Answer) -> list[str]:
    lines = []
    if answer.floor is not None:
        lines.append(
            f"No learner can promise less than 0.06 sqrt(alpha T) = {amount(answer.floor)} against any adversary."
        )
    elif answer.setting.independence.lower > 1:
        lines.append(
            f"0.06 sqrt(alpha T), a lower bound against any adversary, holds from T = 374 alpha^3 = "
            f"{amount(answer.floor_from)} on."
        )
    if answer.c_star is not None:
        lines.append(
            f"In this world (Bernoulli losses) no good learner stays below c* ln T in the long run: c* = "
            f"{answer.c_star:.4g}, and c* ln T = {amount(answer.c_star * math.log(answer.T))} here."
        )
    elif answer.setting.best_arms:
        lines.append(f"The lower bound of this world is not known. {answer.why_no_c_star}")
    return lines


def _far_away(answer: Answer) -> list[str]:
    """Say plainly when the paper's stochastic bounds become of use."""
    rates = {row.promise.title: row.crossing for row in answer.rows}
    adaptive, fixed = rates.get("exp3.g++"), rates.get("exp3.g++ fixed")
    if adaptive is None or fixed is None:
        return []
    text = (
        f"The stochastic bound of exp3.g++ is far away: it is below the adversarial one only from T = "
        f"{amount(adaptive)} on, and with rate=fixed from T = {amount(fixed)} on. At a million rounds per second that "
        f"takes {_duration(fixed / 1e6)}. These are the constants of a proof; `sidelong demo` measures what is really "
        f"lost."
    )
    return [text]


def _late(answer: Answer) -> list[str]:
    """Say when the bound of the learner that we recommend says more than random play."""
    late = [row.worth_from for row in answer.rows if row.promise.learner == "glance" and row.worth_from]
    return [
        f"The adversarial bound of glance is below what random play can lose from T = {amount(math.ceil(T))} on."
        for T in late
    ]


def _left_out(answer: Answer) -> list[str]:
    silent = [row.promise for row in answer.rows if row.adversarial is row.stochastic is None]
    one_best = [row.promise.title for row in answer.rows if row.promise.needs_one_best_arm]
    lists = {
        "Proved for stochastic worlds, so give --gaps": [p.title for p in silent if p.stochastic_source],
        "No bound with constants is known": [p.title for p in silent if not p.stochastic_source],
        "Cannot play on this graph": list(answer.unable),
        "Proved for one best arm, and here are several": one_best if answer.setting.best_arms > 1 else [],
    }
    lines = [f"{reason}: {', '.join(names)}." for reason, names in lists.items() if names]
    for name, (lower, upper) in answer.setting.intervals.items():
        lines.append(f"Only known to lie from {lower:g} to {upper:g}: {name}. Bounds use what is worst of it.")
    return lines


def _duration(seconds: float) -> str:
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{amount(seconds / length)} {unit}"
    return f"{amount(seconds)} seconds"


def amount(value: float) -> str:
    """Return a number as people read it: 28.4, 9,455, 2.90e19."""
    if value < 1e7:
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    digits, _, power = f"{value:.2e}".partition("e")
    return f"{digits}e{int(power)}"
