"""`sidelong bounds`: what the theorems promise for a graph, gaps and a horizon."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from sidelong.cli.bounds_table import show
from sidelong.cli.completion import graph_names
from sidelong.cli.graph_argument import HELP, read_graph
from sidelong.errors import ObservabilityError, TheoryError

if TYPE_CHECKING:
    from sidelong.theory import Promise, Setting

EXAMPLES = ("sidelong bounds nested:24 --gaps 0.2 --rounds 1e6",)


def bounds(
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help=HELP, autocompletion=graph_names)],
    *,
    rounds: Annotated[float, typer.Option(min=1, help="The horizon T, such as 100000 or 1e12.")] = 1e5,
    gaps: Annotated[
        str | None,
        typer.Option(help="By how much each arm is worse than the best: one number for all but the best, or a list."),
    ] = None,
    best: Annotated[int, typer.Option(min=0, help="The best arm, if --gaps is one number.")] = 0,
    best_loss: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Mean loss of the best arm, for c*. By default all means are around 1/2."),
    ] = None,
    self_loops: Annotated[bool, typer.Option("--self-loops", help="Let every arm also reveal itself.")] = False,
    as_printed: Annotated[bool, typer.Option("--as-printed", help="Evaluate theorems as they are printed.")] = False,
    budget: Annotated[float, typer.Option(min=0, help="Seconds for each number of the graph.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the bound of each learner on a graph, which bound is smallest, and a lower bound for all learners.

    Without --gaps, bounds are against any adversary. With --gaps, those in that stochastic world are printed too.
    """
    from sidelong.theory import Setting  # noqa: PLC0415  # the compiler takes half a second to load

    played = read_graph(graph, self_loops=self_loops)
    setting = Setting(played, read_gaps_option(gaps, best, played.n_arms), budget=budget, as_printed=as_printed)
    answer = _answer(setting, rounds, best_loss)
    if as_json:
        typer.echo(json.dumps(_document(answer), indent=2))
    else:
        show(Console(), answer)


@dataclass(frozen=True)
class Row:
    """A promise, and what it is worth at the horizon."""

    promise: Promise
    adversarial: float | None
    stochastic: float | None
    likely: float | None  #: what no more than one run of twenty exceeds, against any adversary
    crossing: float | None  #: the T from which the stochastic bound is the smaller one
    worth_from: float | None  #: the T from which the adversarial bound is below what random play can lose


@dataclass(frozen=True)
class Answer:
    """All that the command has found."""

    setting: Setting
    T: float
    rows: list[Row]  #: the smallest adversarial bound first
    unable: dict[str, str]  #: the learners that cannot play, and why
    floor: float | None  #: what no learner can do better than, against any adversary
    floor_from: float
    c_star: float | None
    why_no_c_star: str

    def least(self, world: Literal["adversarial", "stochastic"]) -> tuple[Row, float] | None:
        """Return the row with the smallest bound in a world, and that bound, if it says something.

        What holds against any adversary holds in a stochastic world too.
        """
        worlds = ("adversarial", "stochastic") if world == "stochastic" else ("adversarial",)
        found = [
            (row, value)
            for row in self.rows
            for value in (getattr(row, each) for each in worlds)
            if value is not None and row.promise.learner != "uniform"
        ]
        least = min(found, key=lambda each: each[1], default=None)
        return None if least is None or least[1] >= self.chance(world) else least

    def chance(self, world: Literal["adversarial", "stochastic"]) -> float:
        """Return what drawing arms at random loses; it may be anything where no gaps are given."""
        losses = [getattr(row, world) for row in self.rows if row.promise.learner == "uniform"]
        return min((loss for loss in losses if loss is not None), default=math.inf)

    def is_vain(self, row: Row, world: Literal["adversarial", "stochastic"]) -> bool:
        """Tell whether a bound is not below what drawing arms at random loses."""
        value = getattr(row, world)
        return row.promise.learner != "uniform" and value is not None and value >= self.chance(world)


def read_gaps_option(text: str | None, best: int, n_arms: int) -> list[float] | None:
    """Return the gaps that --gaps gives, one for each arm."""
    if text is None:
        return None
    try:
        listed = [float(part) for part in text.split(",")]
    except ValueError:
        raise TheoryError(
            f"--gaps takes a number, or one for each arm with commas between them, such as 0,0.1,0.3; not {text!r}."
        ) from None
    if len(listed) not in {1, n_arms}:
        raise TheoryError(f"--gaps takes one number, or one for each of the {n_arms} arms, not {len(listed)}.")
    if len(listed) > 1:
        return listed
    if best >= n_arms:
        raise TheoryError(f"--best is one of the arms 0 to {n_arms - 1}, not {best}.")
    return [0.0 if arm == best else listed[0] for arm in range(n_arms)]


def _answer(setting: Setting, T: float, best_loss: float | None) -> Answer:
    from sidelong import theory  # noqa: PLC0415
    from sidelong.learners import catalogue  # noqa: PLC0415

    able, unable = [], {}
    for name in catalogue.names():
        try:
            catalogue.check_graph(catalogue.find(name), setting.graph)
            able.append(name)
        except ObservabilityError as error:
            unable[name] = str(error)
    rows = [
        Row(
            promise,
            None if promise.adversarial is None else promise.adversarial(setting, T),
            None if promise.stochastic is None else promise.stochastic(setting, T),
            None if promise.likely is None else promise.likely(setting, T, 0.05),
            theory.crossing(setting, promise),
            theory.worth_from(setting, promise),
        )
        for promise in theory.promises(setting, able)
    ]
    rows.sort(key=lambda row: (row.adversarial or math.inf, row.stochastic or math.inf))
    alpha = setting.independence.lower
    floor = theory.lower.adversarial_floor(T=T, independence=alpha)
    floor_from = theory.lower.adversarial_floor_from(independence=alpha)
    return Answer(setting, T, rows, unable, floor, floor_from, *_c_star(setting, best_loss))


def _c_star(setting: Setting, best_loss: float | None) -> tuple[float | None, str]:
    from sidelong.theory import lower  # noqa: PLC0415

    if not setting.best_arms:
        return None, "no gaps are given"
    gaps = setting.gaps.all
    level = (1 - float(gaps.max())) / 2 if best_loss is None else best_loss
    if level + gaps.max() > 1:
        raise TheoryError(f"Losses are at most 1: --best-loss is {level:g}, and the largest gap {gaps.max():g}.")
    try:
        return lower.c_star(setting.graph, level + gaps).value, ""
    except TheoryError as error:  # the graph is too large for it
        return None, str(error)


_WORLDS: tuple[Literal["adversarial", "stochastic"], ...] = ("adversarial", "stochastic")


def _document(answer: Answer) -> dict[str, Any]:
    setting = answer.setting
    return {
        "graph": setting.graph.name,
        "n_arms": setting.K,
        "rounds": answer.T,
        "gaps": setting.gaps.all.tolist() if setting.best_arms else None,
        "as_printed": setting.as_printed,
        "promises": [
            {
                "learner": row.promise.learner,
                "options": row.promise.options,
                "adversarial": row.adversarial,
                "stochastic": row.stochastic,
                "adversarial_with_95_percent": row.likely,
                "stochastic_smaller_from": row.crossing,
                "below_random_from": row.worth_from,
                "proofs": [
                    source or None for source in (row.promise.adversarial_source, row.promise.stochastic_source)
                ],
            }
            for row in answer.rows
        ],
        "least": {
            world: None
            if (found := answer.least(world)) is None
            else {"learner": found[0].promise.title, "bound": found[1]}
            for world in _WORLDS[: 1 + bool(setting.best_arms)]
        },
        "lower_bounds": {
            "adversarial": answer.floor,
            "adversarial_from": answer.floor_from,
            "c_star": answer.c_star,
        },
        "numbers": {
            "independence": setting.independence.upper,
            "acyclic": setting.acyclic,
            "strong_independence": setting.strong_independence,
            "inverse_gap_sum": setting.inverse_gap_sum if setting.best_arms else None,
        },
        "intervals": {name: list(ends) for name, ends in setting.intervals.items()},
        "cannot_play": answer.unable,
    }
