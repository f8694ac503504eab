"""Decisions with features, head to head with Vowpal Wabbit's --graph_feedback: `python benchmarks/contexts.py [PART]`.

Both get the same features, graph and losses. Losses are expected ones, given the probabilities of each round, so that
the luck of the draw counts only for what is learned. Vowpal Wabbit plays once, since it takes a minute per problem;
ours is the mean over eight seeds. It gets a feature for each pair of a feature and an arm, and is told the losses of
all revealed arms with the probability of the played one, as its documentation has it.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from early_exits import NAMES, Problem, linear, orders, problem
from measure import Row, best_within, machine, print_table, seconds

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["main", "rows"]

SEEDS = 8


def ours(
    graph: sl.FeedbackGraph, given: Problem, *, told: str = "all", seed: int = 1, **options: Any
) -> tuple[float, float]:
    """Return the mean expected loss, and the seconds of a round; `told` is "all", or "own" for the played arm alone."""
    agent = sl.ContextualAgent("squarecb.g", graph if told == "all" else sl.graphs.self_loops(graph.n_arms), seed=seed)
    agent.tell(first := agent.ask(given.x[0]), given.losses[0][first.reveals])  # compiled before the clock runs
    agent = sl.ContextualAgent("squarecb.g", agent.graph, seed=seed, **options)
    made = []

    def play() -> None:
        for x, losses in zip(given.x, given.losses, strict=True):
            decision = agent.ask(x)
            agent.tell(decision, losses[decision.reveals])
            made.append(decision)

    taken = seconds(play) / len(given.x)
    paid = [float(each.probabilities @ losses) for each, losses in zip(made, given.losses, strict=True)]
    return float(np.mean(paid)), taken


def vowpal_wabbit(graph: sl.FeedbackGraph, given: Problem) -> tuple[float, float]:
    """Return the same for Vowpal Wabbit."""
    import vowpalwabbit  # noqa: PLC0415  # it may not be installed

    arms, rng, paid = range(graph.n_arms), np.random.default_rng(1), []
    workspace = vowpalwabbit.Workspace("--cb_explore_adf --graph_feedback -q xa --random_seed 1 --quiet")
    edges = " ".join(f"{i},{j},1" for i in arms for j in graph.out_neighbors(i))

    def play() -> None:
        for x, losses in zip(given.x, given.losses, strict=True):
            shared = f"shared graph {edges} |x " + " ".join(f"f{k}:{value:.6f}" for k, value in enumerate(x))
            p = np.array(workspace.predict([shared, *(f"|a arm{i}" for i in arms)]))
            paid.append(float(p @ losses))
            arm = int(rng.choice(graph.n_arms, p=p / p.sum()))
            labels = {j: f"{j}:{losses[j]:.6f}:{p[arm]:.6f} " for j in graph.out_neighbors(arm)}
            workspace.learn([shared, *(f"{labels.get(i, '')}|a arm{i}" for i in arms)])

    try:
        taken = seconds(play) / len(given.x)
    finally:
        workspace.finish()
    return float(np.mean(paid)), taken


def rows() -> Iterator[Row]:
    """Measure a round of ten arms on a nested graph with 16 features, and one of a thousand arms."""
    given, graph = linear(10, rounds=2_000), sl.graphs.nested(10)
    [mine] = best_within(2.0, lambda: ours(graph, given)[1])
    what = "ask + tell, 16 features, nested, K = 10"
    if importlib.util.find_spec("vowpalwabbit") is None:
        yield Row(what, mine, "Vowpal Wabbit: not installed", at_most=20e-6)
    else:
        few = Problem(given.name, given.x[:3], given.losses[:3])
        _, theirs = vowpal_wabbit(graph, few)
        yield Row(what, mine, "Vowpal Wabbit graph_feedback", theirs, at_least=10_000, at_most=20e-6)
    many = linear(1_000, rounds=300)
    [mine] = best_within(2.0, lambda: ours(sl.graphs.nested(1_000), many)[1])
    yield Row("ask + tell, 16 features, nested, K = 1,000", mine, at_most=200e-6)


def families(K: int) -> dict[str, sl.FeedbackGraph]:
    """Return the graphs on which both play."""
    half = K // 2
    return {
        "self-loops": sl.graphs.self_loops(K),
        "cliques": sl.graphs.cliques([half, K - half]),
        "nested": sl.graphs.nested(K),
    }


def times() -> Iterator[str]:
    """Yield lines of a table: the time of a round of both, and what both lost, where there were enough rounds."""
    yield "| K | graph | a round of sidelong | of Vowpal Wabbit | ratio | loss | its loss |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for K, rounds in ((4, 200), (24, 3), (10, 200)):
        given = linear(K, rounds=rounds)
        for name, graph in families(K).items():
            loss, mine = _mean(graph, given)
            lost, theirs = vowpal_wabbit(graph, given)
            losses = f"{loss:.4f} | {lost:.4f}" if rounds > 3 else "|"
            yield f"| {K} | {name} | {mine * 1e6:.1f} us | {theirs * 1e3:,.0f} ms | {theirs / mine:,.0f} | {losses} |"


def losses(problems: Iterable[Problem]) -> Iterator[str]:
    """Yield lines of a table: what both lost in 2,000 rounds, and who learns from the played arm alone."""
    graph = sl.graphs.nested(4)
    yield "| problem | sidelong | Vowpal Wabbit | ratio | played arm alone | best fixed arm | best arm of each round |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for given in problems:
        mine, alone = _mean(graph, given)[0], _mean(graph, given, told="own")[0]
        theirs, _ = vowpal_wabbit(graph, given)
        best = given.losses.min(axis=1).mean()
        fixed = given.losses.mean(axis=0).min()
        found = f"{mine:.4f} | {theirs:.4f} | {mine / theirs:.3f} | {alone:.4f} | {fixed:.4f} | {best:.4f}"
        yield f"| {given.name} | {found} |"


def tuned() -> Iterator[str]:
    """Compare on the four problems by which `gamma_scale` was chosen when Vowpal Wabbit's losses were known."""
    yield from losses(problem(name) for name in NAMES)


def fresh() -> Iterator[str]:
    """Compare on problems that nothing was chosen by: four others, and the four with another split and draw."""
    others = [problem("classification"), problem("hastie"), orders("diabetes"), orders("friedman1")]
    anew = [problem(name, seed=1, split=1) for name in NAMES]
    yield from losses([*others, *(each._replace(name=f"{each.name}, drawn anew") for each in anew)])


def side() -> Iterator[str]:
    """Compare what is paid with what decisions reveal on the side and without, on four problems."""
    yield "| problem | from the played arm alone | from all that is revealed | less |"
    yield "|---|---:|---:|---:|"
    ten, four = linear(10, seed=1), problem("classification", seed=1, split=1)
    stages = problem("breast_cancer", arms=12, seed=1, split=1)
    for what, graph, given in (
        ("ten arms, nested", sl.graphs.nested(10), ten),
        ("ten arms, two cliques", sl.graphs.cliques([5, 5]), ten),
        ("classification, four stages", sl.graphs.nested(4), four),
        ("breast cancer, twelve stages", sl.graphs.nested(12), stages),
    ):
        alone, both = _mean(graph, given, told="own")[0], _mean(graph, given)[0]
        yield f"| {what} | {alone:.3f} | {both:.3f} | {1 - both / alone:.0%} |"


def _mean(graph: sl.FeedbackGraph, given: Problem, told: str = "all") -> tuple[float, float]:
    found = np.array([ours(graph, given, told=told, seed=seed) for seed in range(SEEDS)])
    return float(found[:, 0].mean()), float(found[:, 1].min())


def main(*parts: str) -> None:
    """Print the parts that are named, or all."""
    begun = time.perf_counter()
    print(machine(), flush=True)
    if not parts:
        print_table(rows())
    for part in (side, times, tuned, fresh):
        if not parts or part.__name__ in parts:
            print(f"\n{part.__name__}\n", flush=True)
            for line in part():
                print(line, flush=True)
    print(f"\n{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
