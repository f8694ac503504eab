"""`sidelong verify`: every numbered claim of the paper, checked."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from sidelong.errors import TheoryError

if TYPE_CHECKING:
    from sidelong.claims import Checked, Claim

EXAMPLES = (
    "sidelong verify",
    "sidelong verify --only prop-1,thm-2",
)


def verify(
    *,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Check only this claim. May be repeated, or a list with commas."),
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Larger samples and longer games: up to an hour.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1, help="The same seed gives the same numbers.")] = 0,
) -> None:
    """Check every numbered claim of the paper on EXP3.G++, and print claim, place, measurement, bound and verdict.

    Below them are the steps of proofs that are not in the paper, such as those of glance and of the certificate.

    The exit code is 0 if all claims hold, and 1 if any fails. An erratum holds if its correction does.
    """
    from sidelong import claims  # noqa: PLC0415  # the compiler takes half a second to load

    ids = None if only is None else [each for part in only for each in part.replace(",", " ").split()]
    if ids == []:
        raise typer.BadParameter("no claim is named.", param_hint="'--only'")
    try:
        chosen = claims.choose(ids)
    except TheoryError as error:
        raise typer.BadParameter(str(error), param_hint="'--only'") from error
    begun = time.monotonic()
    results = _check(chosen, seed, claims.THOROUGH if thorough else 1.0)
    if as_json:
        typer.echo(json.dumps(_as_data(results, seed, claims.FALSE_ALARM, thorough=thorough), indent=2))
    else:
        console = Console()
        console.print(_table(results, console.width))
        console.print(_summary(results, seed, claims.FALSE_ALARM, time.monotonic() - begun), soft_wrap=True)
    if any(result.verdict is claims.Verdict.FAILS for result in results):
        raise typer.Exit(1)


def _check(chosen: tuple[Claim, ...], seed: int, effort: float) -> list[Checked]:
    from sidelong.claims import verify as check  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<18}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=len(chosen))
        results = []
        waiting = check([claim.id for claim in chosen], seed=seed, effort=effort)
        for claim in chosen:
            bar.update(task, description=claim.id)
            results.append(next(waiting))
            bar.advance(task)
    return results


#: What the table says for each verdict, and in which colour.
_WORDS = {
    "holds": ("holds", "green"),
    "fails": ("FAILS", "bold red"),
    "false as printed, holds as corrected": ("corrected", "yellow"),
}


def _table(results: list[Checked], width: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 1, 0), pad_edge=False, width=min(width, 130))
    table.add_column("claim", ratio=1)
    table.add_column("in the paper", width=13)
    table.add_column("measured", ratio=1)
    table.add_column("at most", width=8, justify="right")
    table.add_column("verdict", width=9)
    for result in results:
        claim, outcome = result.claim, result.outcome
        name = Text.assemble((claim.id, "bold"), "\n", claim.title)
        word, colour = _WORDS[result.verdict.value]
        word += f" {'†' if outcome.says_little else '*'}" * (claim.random and word == "holds")
        shown = Text(f"{outcome.shown}; {outcome.remark}" if outcome.remark else outcome.shown)
        table.add_row(name, claim.where, shown, outcome.allowed, Text(word, colour))
    return table


def _summary(results: list[Checked], seed: int, risk: float, seconds: float) -> str:
    verdicts = Counter(_WORDS[result.verdict.value][0] for result in results)
    counts = ", ".join(f"{count} {verdict.lower().removesuffix('s')}" for verdict, count in verdicts.items())
    little = any(result.outcome.says_little for result in results)
    return (
        f"{len(results)} claims in {seconds:.0f} seconds, seed {seed}: {counts}.\n"
        "corrected: false as printed, holds as corrected; docs/paper.md has the errata in plain words.\n"
        "*: it samples, and holds unless a confidence limit contradicts it. The chance that any of these fails\n"
        f"though true is at most {risk:g}, over all of them. The others are exact. More of each: --json."
        + "\n†: the same, and its sample would not have told it from ten times its bound: it says little."
        * little
    )


def _as_data(results: list[Checked], seed: int, risk: float, *, thorough: bool) -> dict[str, object]:
    return {
        "seed": seed,
        "thorough": thorough,
        "false_alarm": risk,
        "claims": [
            {
                "id": result.claim.id,
                "title": result.claim.title,
                "where": result.claim.where,
                "statement": result.claim.statement,
                "verdict": result.verdict.value,
                "measured": _finite(result.outcome.measured),
                "bound": _finite(result.outcome.bound),
                "as_printed": result.outcome.printed and [_finite(x) for x in result.outcome.printed],
                "shown": result.outcome.shown,
                "fails_from": _finite(result.outcome.fails_from),
                "says_little": result.outcome.says_little,
                "confidence": result.confidence,
                "seconds": round(result.seconds, 3),
            }
            for result in results
        ],
    }


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
