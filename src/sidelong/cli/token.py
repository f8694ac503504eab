"""`sidelong token`: who may use the decision service."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import TYPE_CHECKING, Annotated

import typer

from sidelong.cli.serve import load_service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sidelong.service.store.tokens import Tokens

app = typer.Typer(
    help="Make, list and revoke the tokens of the decision service.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Database = Annotated[
    str | None,
    typer.Option(help="The database of the service, as for sidelong serve.", show_default="sqlite:///sidelong.db"),
]
_SCOPES = ("decide", "feedback", "read", "admin")


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the token is for.", show_default=False)],
    *,
    scope: Annotated[
        list[str], typer.Option(help="What it allows: decide, feedback, read, or admin (all). May be repeated.")
    ],
    experiment: Annotated[
        str | None, typer.Option(help="The only experiment that it is for. It reaches no other.", show_default="all")
    ] = None,
    database: Database = None,
) -> None:
    """Make a token and print it. It cannot be shown again."""
    unknown = [each for each in scope if each not in _SCOPES]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(_SCOPES)}.", param_hint="--scope")
    if not 1 <= len(name) <= 64 or not name.isprintable():
        raise typer.BadParameter("a name has 1 to 64 printable characters.", param_hint="NAME")
    with _tokens(database) as tokens:
        print(tokens.create(name, scope, experiment))  # noqa: T201


@app.command("list")
def list_(*, database: Database = None) -> None:
    """List the tokens, without their secrets."""
    with _tokens(database) as tokens:
        found = tokens.list()
        names = tokens.experiments()
    for token in found:
        state = "revoked" if token.revoked_at is not None else "active"
        made = dt.datetime.fromtimestamp(token.created_at / 1e6, dt.UTC)
        only = "" if token.experiment is None else f", for {names.get(token.experiment, 'an experiment that is gone')}"
        print(f"{token.id}  {state:7}  {made:%Y-%m-%d %H:%M}  {','.join(token.scopes):28}  {token.name}{only}")  # noqa: T201


@app.command()
def revoke(
    id_: Annotated[
        str, typer.Argument(metavar="ID", help="The ID that sidelong token list shows.", show_default=False)
    ],
    *,
    database: Database = None,
) -> None:
    """Revoke a token for ever. A running server notices within a second."""
    with _tokens(database) as tokens:
        token = tokens.revoke(id_)
    print(f"Token {token.id} ({token.name}) is revoked.")  # noqa: T201


@contextlib.contextmanager
def _tokens(database: str | None) -> Iterator[Tokens]:
    settings = load_service("token", database=database)
    from sidelong.service.store.kinds import open_database  # noqa: PLC0415
    from sidelong.service.store.tokens import Tokens  # noqa: PLC0415

    with contextlib.closing(open_database(settings.database, settings.busy_timeout)) as opened:
        yield Tokens(opened)
