"""`sidelong demo`: the main job, in small."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

__all__ = ["demo"]


def demo(
    rounds: Annotated[int, typer.Option(min=100, help="How many rounds to play.")] = 100_000,
    runs: Annotated[int, typer.Option(min=2, help="How many times to play them.")] = 16,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")] = 0,
) -> None:
    """Play EXP3.G++ in two worlds on two graphs, and print what it lost against the best arm."""
    import sidelong as sl  # noqa: PLC0415  # the compiler takes half a second to load

    console = Console()
    arms, gap, turn = 10, 0.2, rounds // 20
    graphs = {"bandit": sl.graphs.self_loops(arms), "nested": sl.graphs.nested(arms)}
    before, after = ([0.5 + gap / 2 - gap * (arm == best) for arm in range(arms)] for best in (3, 8))
    worlds = {
        "stochastic": sl.losses.bernoulli(before),
        "switching": sl.losses.switching([before, after], at=turn),
    }
    table = Table(title=f"EXP3.G++: regret after {rounds:,} rounds, {arms} arms, {runs} runs", title_justify="left")
    for heading in ("graph", "world"):
        table.add_column(heading)
    for heading in ("paper", "practical", "a random arm"):
        table.add_column(heading, justify="right")
    for graph_name, graph in graphs.items():
        for world_name, world in worlds.items():
            cells = []
            for preset in ("paper", "practical"):
                regret = sl.simulate(
                    "exp3.g++", graph, world, rounds=rounds, runs=runs, seed=seed, checkpoints=[rounds], preset=preset
                ).regret[:, -1]
                cells.append(f"{regret.mean():,.0f} ± {regret.std(ddof=1) / runs**0.5:,.0f}")
            blind = rounds * sum(before) / arms - world.best_total(seed, 0, [rounds])[0]
            table.add_row(graph_name, world_name, *cells, f"{blind:,.0f}")
    console.print(table)
    console.print(_LEGEND.format(turn=turn), soft_wrap=True)


_LEGEND = """\
graph       bandit: a play reveals its own loss. nested: it reveals those of all smaller arms too.
world       stochastic: arm 3 is best by 0.2. switching: arm 8 is best after round {turn:,}.
regret      what was lost beyond the arm that is best over all rounds; ± is one standard error.
columns     the presets of EXP3.G++: the paper's constants, and practical ones; and playing at random.

Next: the ten lines at the top of README.md, or `sidelong demo --rounds 1000000`."""
