"""`sidelong serve`: the decision service."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sidelong.cli.refusal import refuse, require

EXAMPLES = ("sidelong serve --database sqlite:///decisions.db",)

_NEEDED = (
    "starlette",
    "uvicorn",
    "httptools",
    "sqlalchemy",
    "psycopg",
    "prometheus_client",
    "pydantic_settings",
)


def serve(
    *,
    database: Annotated[
        str | None,
        typer.Option(help="sqlite:///FILE or postgresql://USER@HOST/NAME.", show_default="sqlite:///sidelong.db"),
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="The port. 0 takes any free one.", show_default="8431")
    ] = None,
    keep_days: Annotated[
        float | None, typer.Option(help="Remove decisions that are older from the journals.", show_default="keep all")
    ] = None,
    keep_megabytes: Annotated[
        int | None, typer.Option(help="Cut the journal of each experiment to this size.", show_default="keep all")
    ] = None,
    export_before_cut: Annotated[
        str | None, typer.Option(help="A folder for the log of what is cut.", show_default="export nothing")
    ] = None,
) -> None:
    """Run the decision service: it decides over HTTP and takes feedback later. Nothing is lost or counted twice.

    Each setting may also come from the environment: SIDELONG_DATABASE, SIDELONG_PORT and so on. Other machines can
    reach it only if there is a token. See sidelong token.
    """
    kept = {"keep_days": keep_days, "keep_megabytes": keep_megabytes, "export_before_cut": export_before_cut}
    settings = load_service("serve", database=database, host=host, port=port, **kept)
    from sidelong.service.serve import serve as run  # noqa: PLC0415  # takes a second to load

    run(settings, lambda address: print(f"sidelong serves {address}", flush=True))  # noqa: T201


def load_service(command: str, **given: Any) -> Any:
    """Return the settings of the service, from the command line and the environment."""
    require(command, *_NEEDED)
    from pydantic import ValidationError  # noqa: PLC0415

    from sidelong.service.settings import Settings  # noqa: PLC0415

    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = "_".join(map(str, first["loc"])).upper()
        refuse(command, f"SIDELONG_{name.removeprefix('SIDELONG_')} is {first['input']!r}: {first['msg']}.")
