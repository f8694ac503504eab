"""`sidelong rebase`: experiments of an older version of their learner go on where there is no snapshot."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from sidelong.cli.refusal import refuse
from sidelong.cli.serve import load_service
from sidelong.cli.token import Database  # noqa: TC001  # typer reads the annotations

EXAMPLES = (
    "sidelong rebase --from 0.1.0                   all experiments that need it",
    "sidelong rebase orders --from sidelong-0.1.0-py3-none-any.whl",
)


def rebase(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[EXPERIMENT ...]", help="Which experiments. By default, all that need it."),
    ] = None,
    *,
    older: Annotated[
        str | None,
        typer.Option("--from", metavar="VERSION", help="The sidelong that wrote them: a version, a wheel or a folder."),
    ] = None,
    python: Annotated[
        Path | None, typer.Option(help="The Python of an environment that has it, instead of --from.")
    ] = None,
    database: Database = None,
) -> None:
    """Let experiments go on that an older version of their learner has made, by snapshots of the older sidelong.

    If an experiment is of an older version of its learner, a server goes on from its last snapshot. If there is none,
    the server refuses the experiment. This command installs the older sidelong into an environment of its own, lets it
    replay a copy of the journals, and keeps the snapshots that it makes. Restart the servers afterwards. Stop all
    servers first if you can; if not, decisions that are made meanwhile are not lost.
    """
    if (older is None) == (python is None):
        refuse("rebase", "give either --from VERSION, or --python for an environment that has that version.")
    settings = load_service("rebase", database=database)
    from sidelong.service import rebase as rebasing  # noqa: PLC0415  # takes a second to load
    from sidelong.service.store.kinds import open_database  # noqa: PLC0415

    with contextlib.closing(open_database(settings.database, settings.busy_timeout)) as opened:
        found = rebasing.find_older(opened, names or ())
        if not found:
            print("No experiment was made with an older version of its learner: there is nothing to do.")  # noqa: T201
            return
        with tempfile.TemporaryDirectory(prefix="sidelong-") as folder:
            runs = python or rebasing.make_environment(Path(folder) / "environment", str(older))
            for name, event in rebasing.snapshots_by(runs, opened, found, Path(folder)):
                print(f"{name}: a snapshot after event {event}. Restart the service, and it goes on.")  # noqa: T201
