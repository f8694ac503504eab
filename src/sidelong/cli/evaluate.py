"""`sidelong evaluate`: what other arms, or another distribution, would have cost in the rounds of a log."""

from __future__ import annotations

import io
import json
from pathlib import Path  # noqa: TC003  # typer reads the annotation
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sidelong.cli.refusal import require
from sidelong.errors import EvaluationError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.evaluation import DecisionLog, Regret

EXAMPLES = ("sidelong evaluate log.parquet --arms 5", "sidelong evaluate http://localhost:8431/v1/experiments/NAME")


def evaluate(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A Parquet file, or an experiment, http://HOST:8431/v1/experiments/NAME.",
            show_default=False,
        ),
    ],
    *,
    token: Annotated[
        str | None,
        typer.Option(envvar="SIDELONG_TOKEN", help="A token, if the service needs one. Better set SIDELONG_TOKEN."),
    ] = None,
    distribution: Annotated[
        list[Path] | None,
        typer.Option(
            help='A JSON file with the probability of each arm: [0.5, 0.5] or {"3": 1}. May be repeated.',
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="The confidence of each interval.")] = 0.95,
    arms: Annotated[int, typer.Option(min=0, help="How many arms to print, the cheapest first.")] = 20,
    n_arms: Annotated[
        int | None, typer.Option("--n-arms", min=1, help="How many arms there are.", show_default="as the log says")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Use only decisions whose context has this value. May be repeated.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all arms as JSON.")] = False,
) -> None:
    """Estimate what each arm, or another distribution, would have cost in the same rounds.

    Losses are weighted by the probabilities of observing them, which the log has. docs/evaluate.md says what the
    intervals assume.
    """
    require("evaluate", "pyarrow", *["httpx"] * _is_address(log))
    from sidelong import evaluation  # noqa: PLC0415

    given = _read_where(where or [])
    found = evaluation.read_log(_fetch(log, token) if _is_address(log) else log, n_arms, where=given)
    rows = {f"arm {arm}": row for arm, row in enumerate(evaluation.evaluate_arms(found, confidence).rows())}
    others = {"uniform": np.full(found.n_arms, 1 / found.n_arms)}
    others |= {path.name: _read_distribution(path, found.n_arms) for path in distribution or []}
    mixed = {name: evaluation.evaluate_distribution(found, pi, confidence).rows()[0] for name, pi in others.items()}
    summary = _summary(found, evaluation.regret(found, confidence), confidence)
    summary["certificate"] = evaluation.certificate(found, confidence).row()
    if as_json:
        typer.echo(json.dumps(summary | {"arms": [*rows.values()], "distributions": mixed}, indent=2, allow_nan=False))
    else:
        _print(summary, rows, mixed, arms)


def _read_where(pairs: list[str]) -> dict[str, Any]:
    """Read weekday=Monday and size=3: what is a value of JSON is that, and anything else is a word."""
    given = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not name or not sign:
            raise EvaluationError(f"--where must be NAME=VALUE, such as weekday=Monday, not {pair!r}.")
        try:
            given[name] = json.loads(text)
        except ValueError:
            given[name] = text
    return given


def _is_address(log: str) -> bool:
    return log.startswith(("http://", "https://"))


def _fetch(address: str, token: str | None) -> io.BytesIO:
    import httpx  # noqa: PLC0415  # an extra

    try:
        parts = urlsplit(address)
    except ValueError:  # such as half an IPv6 address
        parts = urlsplit("")
    if not parts.path.startswith("/v1/experiments/"):
        raise EvaluationError(
            f"{address} is not the address of an experiment, which looks like http://HOST:8431/v1/experiments/NAME."
        )
    path = parts.path.rstrip("/").removesuffix("/log") + "/log"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        reply = httpx.get(parts._replace(path=path, query="", fragment="").geturl(), headers=headers, timeout=60.0)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise EvaluationError(f"{address} cannot be reached: {error}.") from error
    if reply.status_code != httpx.codes.OK:
        try:
            detail = reply.json()["detail"]
        except (ValueError, KeyError, TypeError):
            detail = reply.reason_phrase
        hint = " Give a token with --token or SIDELONG_TOKEN." if reply.status_code in {401, 403} else ""
        raise EvaluationError(f"{address} answers {reply.status_code}: {detail}{hint}")
    return io.BytesIO(reply.content)


def _read_distribution(path: Path, n_arms: int) -> npt.NDArray[np.float64]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            pi = np.zeros(n_arms)
            for arm, share in content.items():
                if not 0 <= int(arm) < n_arms:
                    raise EvaluationError(f"{path}: there is no arm {arm}; arms go from 0 to {n_arms - 1}.")
                pi[int(arm)] = share
            return pi
        return np.asarray(content, np.float64)
    except OSError as error:
        raise EvaluationError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, TypeError) as error:
        if isinstance(error, EvaluationError):
            raise
        raise EvaluationError(
            f'{path} is not a distribution: it must be a JSON list of probabilities, or {{"arm": probability}}.'
        ) from error


def _summary(log: DecisionLog, regret: Regret, confidence: float) -> dict[str, Any]:
    known = log.cost[~np.isnan(log.cost)]
    return {
        "rounds": log.n_rounds,
        "without_feedback": log.n_rounds - log.n_told,
        "confidence": confidence,
        "played": float(known.mean()) if known.size else None,
        "regret": regret.row(),
    }


def _print(summary: dict[str, Any], rows: dict[str, dict[str, Any]], mixed: dict[str, Any], most: int) -> None:
    console = Console(highlight=False)
    n, lacking, percent = summary["rounds"], summary["without_feedback"], f"{100 * summary['confidence']:g} %"
    console.print(f"{n:,} rounds, {lacking:,} of them without feedback. Costs are mean losses per round.\n")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("instead", min_width=15, overflow="fold")
    for name in ("cost", f"{percent} interval", "seen", "effective"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("[bold]what was played[/]", _number(summary["played"]), "", f"{n - lacking:,}", "")
    table.add_section()
    for name, row in mixed.items():
        _add(table, name, row)
    table.add_section()
    cheapest = sorted(rows, key=lambda name: (rows[name]["value"] is None, rows[name]["value"]))
    for name in cheapest[:most]:
        _add(table, name, rows[name])
    console.print(table)
    if len(rows) > most:
        console.print(f"and {len(rows) - most:,} arms more: --arms {len(rows)}, or --json.")
    regret = summary["regret"]
    if regret["rejected"]:
        console.print(_REJECTED.format(risk=f"{100 - 100 * summary['confidence']:.3g} %"))
    elif regret["value"] is not None:
        console.print(
            f"\nRegret against arm {regret['best']:g}, the one whose interval ends lowest: {regret['value']:z,.1f} in "
            f"all; {percent} interval, for whichever arm is best: {regret['lower']:z,.1f} to {regret['upper']:z,.1f}."
        )
    certificate = summary["certificate"]
    if n and not regret["rejected"]:
        console.print(
            f"\nCertificate: at most {certificate['bound']:z,.1f} was lost beyond any fixed arm, {percent} sure at "
            f"every moment of the log at once. {certificate['why']}".rstrip()
        )
    console.print(_LEGEND)


def _add(table: Table, name: str, row: dict[str, Any]) -> None:
    table.add_row(escape(name), _number(row["value"]), _interval(row), f"{row['rounds']:,}", f"{row['effective']:,.0f}")


def _interval(row: dict[str, Any]) -> str:
    """Return the part of an interval that is in [0, 1]; a question mark for all of that, and where limits cross."""
    if row["rejected"] or (row["lower"] <= 0.0 and row["upper"] >= 1.0):
        return "?"
    return f"{max(row['lower'], 0.0):z.3f} to {min(row['upper'], 1.0):z.3f}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:z.4f}"


_REJECTED = """\

The log contradicts what intervals assume: for some arm both limits cannot be right. Intervals assume three things. \
Losses are between 0 and 1. The log's probabilities are those of the draws. No loss depends on the draw of its own \
round. If all three are true, this happens with a probability of at most {risk}."""

_LEGEND = """\

interval: it assumes that the log's probabilities are right. Then it holds for any losses, also for missing ones, \
however rounds depend on each other, and however often you look. It is about these rounds. Each interval holds by \
itself, not all at once. A question mark means that nothing can be promised: too little was seen, or the log \
contradicts what intervals assume. seen: the number of rounds that revealed a loss of the candidate."""
