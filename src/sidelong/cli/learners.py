"""`sidelong learners`: the catalogue as a table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

__all__ = ["learners"]


def learners() -> None:
    """List the learners: paper, worlds with a proof, what each needs, its cost a round and its bound."""
    from sidelong.learners import catalogue  # noqa: PLC0415  # the compiler takes half a second to load

    console = Console()
    table = Table(show_lines=True)
    for heading in ("name", "paper", "proved", "needs", "a round", "bound on the regret"):
        table.add_column(heading, no_wrap=heading == "name", overflow="fold")
    for name in catalogue.names():
        module = catalogue.find(name)
        needs = sorted(need.value for need in module.NEEDS)
        about = module.ABOUT
        table.add_row(
            name, about.paper, "\n".join(about.proved) or "-", "\n".join(needs) or "-", about.cost, about.bound or "-"
        )
    console.print(table)
    console.print(_LEGEND, soft_wrap=True)


_LEGEND = """\
K arms, E edges, T rounds, gap: by how much an arm is worse than the best one. Of the graph: alpha is its independence
number, alpha~ the strong one, mas its largest acyclic set, chi its clique cover number, delta its weak domination one.
Erez and Koren (2021), the first learner for both worlds on graphs, is not here: no public source gives its regulariser
exactly.

Options of a learner: python -c "from sidelong.learners import exp3gpp; help(exp3gpp.configure)\""""
