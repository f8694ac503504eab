"""`sidelong demo`: the main job, in small."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

__all__ = ["demo"]


def demo(
    rounds: Annotated[int, typer.Option(min=100, help="How many rounds to play.")] = 100_000,
    runs: Annotated[int, typer.Option(min=2, help="How many times to play them.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")] = 0,
) -> None:
    """Play EXP3.G++ in two worlds on two graphs, and print what it lost against the best arm."""
    import sidelong as sl  # noqa: PLC0415  # the compiler takes half a second to load

    console = Console()
    arms, gap = 10, 0.2
    graphs = {
        "bandit: a play reveals its own loss": sl.graphs.self_loops(arms),
        "nested: it reveals all smaller arms too": sl.graphs.nested(arms),
    }
    before = [0.5 - gap / 2 if arm == 3 else 0.5 + gap / 2 for arm in range(arms)]
    after = [0.5 - gap / 2 if arm == 8 else 0.5 + gap / 2 for arm in range(arms)]
    worlds = {
        "stochastic: arm 3 is best": sl.losses.bernoulli(before),
        "switching: arm 8 is best from half-way": sl.losses.switching([before, after], at=rounds // 2),
    }
    blind = {  # what playing a random arm loses against the best fixed arm
        name: rounds * float(sum(before)) / arms - float(world.best_total(seed, 0, [rounds])[0])
        for name, world in worlds.items()
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
                    "exp3.g++",
                    graph,
                    world,
                    rounds=rounds,
                    runs=runs,
                    seed=seed,
                    checkpoints=[rounds],
                    preset=preset,
                ).regret[:, -1]
                cells.append(f"{regret.mean():,.0f} ± {regret.std(ddof=1) / runs**0.5:,.0f}")
            table.add_row(graph_name, world_name, *cells, f"{blind[world_name]:,.0f}")
    console.print(table)
    console.print(
        "Regret is what was lost beyond the arm that was best over all rounds; it may be negative where the best arm\n"
        "changes. ± is one standard error. Next: the ten lines in README.md, or `sidelong demo --rounds 1000000`."
    )
