"""`sidelong cite`: what to cite."""

from __future__ import annotations

from typing import Annotated

import typer

from sidelong.cli.completion import learner_names

EXAMPLES = ("sidelong cite exp3.g++ ucb-n > references.bib",)


def cite(
    learner: Annotated[
        list[str] | None,
        typer.Argument(
            help="The learners that you used.",
            metavar="LEARNER",
            show_default="exp3.g++",
            autocompletion=learner_names,
        ),
    ] = None,
) -> None:
    """Print the BibTeX of this package and of the papers that learners come from."""
    from sidelong.errors import LearnerError  # noqa: PLC0415  # the compiler takes half a second to load
    from sidelong.learners.citations import bibtex  # noqa: PLC0415

    try:
        typer.echo(bibtex(*learner or ()))
    except LearnerError as error:
        raise typer.BadParameter(str(error), param_hint="LEARNER") from None
