"""`sidelong demo`: the main job, in small. Learners in both worlds on several graphs, and who did best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

if TYPE_CHECKING:
    from sidelong.simulation.scoreboard import Contestant, Instance, Scoreboard

__all__ = ["demo"]

_ARMS, _GAP, _BEST = 10, 0.2, 3


def demo(
    *,
    rounds: Annotated[int, typer.Option(min=100, help="How many rounds to play.")] = 100_000,
    runs: Annotated[int, typer.Option(min=2, help="How many times to play them.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")] = 0,
    every: Annotated[bool, typer.Option("--all", help="Let all learners play, not only those that matter.")] = False,
) -> None:
    """Play learners in a stochastic and in an adversarial world, on several graphs, and print the scoreboard."""
    from sidelong.simulation.scoreboard import compete  # noqa: PLC0415  # the compiler takes half a second to load

    console = Console()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("compiling and playing", total=None)
        board = compete(
            _contestants(every=every),
            _instances(rounds),
            runs,
            seed,
            progress=lambda done, games: bar.update(task, completed=done, total=games),
        )
    console.print(_table(board, f"Regret after {rounds:,} rounds, {_ARMS} arms, mean of {runs} runs"))
    console.print(_LEGEND, soft_wrap=True)


def _instances(rounds: int) -> list[Instance]:
    from sidelong import graphs, losses  # noqa: PLC0415
    from sidelong.simulation.scoreboard import Instance  # noqa: PLC0415

    kinds = {
        "bandit": graphs.self_loops(_ARMS),
        "clique": graphs.cliques([5, 5]),
        "nested": graphs.nested(_ARMS),
        "star": graphs.star(_ARMS),
    }
    means = [0.5 + _GAP / 2 - _GAP * (arm == _BEST) for arm in range(_ARMS)]
    worlds = {
        "stoch": losses.bernoulli(means),
        "advers": losses.constrained(gaps=_GAP, n_arms=_ARMS, best=_BEST),
    }
    return [
        Instance(f"{kind}\n{name}", graph, world, rounds)
        for name, world in worlds.items()
        for kind, graph in kinds.items()
    ]


def _contestants(*, every: bool) -> list[Contestant]:
    from sidelong.learners import names  # noqa: PLC0415
    from sidelong.simulation.scoreboard import Contestant  # noqa: PLC0415

    chosen = names() if every else ("exp3-set", "exp3-ix", "ucb-n", "ts-n", "uniform")
    return [
        Contestant("exp3.g++ practical", "exp3.g++", {"preset": "practical"}),
        Contestant("exp3.g++", "exp3.g++"),
        Contestant("tsallis-inf rv", "tsallis-inf", {"estimator": "rv"}),
        *(Contestant(name, name) for name in chosen if name != "exp3.g++"),
    ]


def _table(board: Scoreboard, title: str) -> Table:
    table = Table(title=title, title_justify="left", row_styles=["", "dim"], padding=(0, 1, 0, 0))
    table.add_column("learner", no_wrap=True)
    table.add_column("worst\nratio", justify="right")
    for name in board.instances:
        table.add_column(name, justify="right")
    for row in board.standing:
        plays_all = not any(math.isnan(regret) for regret in board.regret[row])
        worst = f"[{_colour(board.worst[row])}]{board.worst[row]:.1f}[/]" if plays_all else "-"
        cells = [
            "-" if math.isnan(regret) else f"{regret:,.0f} [{_colour(ratio)}]{ratio:.1f}[/]"
            for regret, ratio in zip(board.regret[row], board.ratio[row], strict=True)
        ]
        table.add_row(board.contestants[row], worst, *cells)
    return table


def _colour(ratio: float) -> str:
    return "green" if ratio <= 3 else "yellow" if ratio <= 10 else "red"


_LEGEND = """\
cells   the regret: what was lost beyond the best arm. And its ratio to the smallest in the column, 10 added to both.
ratio   best first: by the largest ratio in the row. "-": the learner cannot play on this graph.
graphs  bandit: a play reveals its own loss. clique: those of its five. nested: of all smaller arms. star: arm 0
        reveals all, and each other arm itself and arm 0.
worlds  stoch: arm 3 is best by 0.2, on average. advers: by 0.2 in every round, while the level of all losses jumps
        between low and high, in phases that grow.

Next: the ten lines at the top of README.md; `sidelong learners` for what each learner is; `sidelong demo --all`."""
