"""`sidelong demo`: the main job, in small. Learners in both worlds on several graphs, and who did best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
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

    console = Console(highlight=False)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("compiling and playing", total=None)
        board = compete(
            _contestants(every=every),
            _instances(rounds),
            runs,
            seed,
            progress=lambda done, games: bar.update(task, completed=done, total=games),
        )
    console.print(f"Regret after {rounds:,} rounds, mean of {runs} runs, and its ratio to the best\n")
    half = len(board.instances) // 2
    console.print(_table(board, "In a stochastic world", range(half)))
    console.print(_table(board, "Against an adversary", range(half, 2 * half)))
    nowhere = [board.contestants[row] for row in board.standing if math.isnan(board.worst[row])]
    if nowhere:
        console.print(f"{', '.join(nowhere)}: cannot play on any of these graphs.")
    console.print(_legend())


def _instances(rounds: int) -> list[Instance]:
    from sidelong import graphs, losses  # noqa: PLC0415
    from sidelong.simulation.scoreboard import Instance  # noqa: PLC0415

    kinds = {
        "bandit": graphs.self_loops(_ARMS),
        "cliques": graphs.cliques([5, 5]),
        "nested": graphs.nested(_ARMS),
        "star": graphs.star(_ARMS),
    }
    means = [0.5 + _GAP / 2 - _GAP * (arm == _BEST) for arm in range(_ARMS)]
    worlds = (losses.bernoulli(means), losses.constrained(gaps=_GAP, n_arms=_ARMS, best=_BEST))
    return [Instance(kind, graph, world, rounds) for world in worlds for kind, graph in kinds.items()]


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


def _table(board: Scoreboard, title: str, columns: range) -> Table:
    """Lay out the instances of one world: 80 columns are enough."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0)
    )
    table.add_column("learner", no_wrap=True, min_width=19)
    table.add_column("worst", justify="right", no_wrap=True)
    for column in columns:
        table.add_column(board.instances[column], justify="right", no_wrap=True, min_width=12)
    for row in board.standing:
        if math.isnan(board.worst[row]):
            continue
        plays_all = not any(math.isnan(regret) for regret in board.regret[row])
        cells = [
            "-" if math.isnan(regret) else f"{regret:,.0f} {_painted(ratio)}"
            for regret, ratio in zip(board.regret[row, columns], board.ratio[row, columns], strict=True)
        ]
        table.add_row(board.contestants[row], _painted(board.worst[row]) if plays_all else "-", *cells)
    return table


def _painted(ratio: float) -> str:
    colour = "green" if ratio <= 3 else "yellow" if ratio <= 10 else "red"
    return f"[{colour}]{ratio:>5{'.1f' if ratio < 999 else ',.0f'}}[/]"


def _legend() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for word, meaning in _LEGEND.items():
        table.add_row(f"[bold]{word}[/]", meaning)
    return table


_LEGEND = {
    "regret": "what was lost beyond the best arm. The ratio is to the smallest in the column, with 10, the price of "
    "playing each arm once, added to both.",
    "worst": "the largest ratio of the row in both tables: best first.",
    "-": "the learner cannot play on this graph. It has no worst ratio then, and comes last.",
    "graphs": "bandit: a play reveals its own loss. cliques: those of its five. nested: of all smaller arms. star: "
    "arm 0 reveals all, and each other arm itself and arm 0.",
    "worlds": "arm 3 is best by 0.2: in the stochastic one on average; against the adversary in every round, while the "
    "level of all losses jumps between low and high, in phases that grow.",
    "next": "the ten lines at the top of README.md; `sidelong learners` for what each is; `sidelong demo --all`.",
}
