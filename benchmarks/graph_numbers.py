"""Numbers of graphs, side by side with networkx and with HiGHS on textbook integer programs.

`python benchmarks` measures independence numbers only. `python benchmarks/graph_numbers.py` compares all numbers that
are NP-hard on some sixty graphs, each within the same budget, and prints bounds and processor time: this table decides
which searches are worth their lines. Names of numbers, and ``--budget``, choose a part of it.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx
import numpy as np
from measure import Row, best_within, machine, print_table, seconds
from scipy import optimize, sparse
from scipy.sparse import csgraph

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Find = Callable[[sl.FeedbackGraph], int]

_MANY_CLIQUES = 20_000  # more than these are not listed
_MANY_CYCLES = 50_000
_LARGE_PROGRAM = 2_000_000  # entries of a matrix that takes too long to set up


def rows() -> Iterator[Row]:
    """Measure the independence number of a graph with few edges, a dense one, and a large one with hubs."""
    sparse_, dense = sl.graphs.erdos_renyi(120, 0.1, 1), sl.graphs.erdos_renyi(300, 0.5, 1)
    hubs = _undirected(nx.barabasi_albert_graph(2000, 3, seed=1))
    yield from compare("G(120, 0.1)", sparse_, {"HiGHS": by_highs, "networkx": by_networkx}, 10)
    yield from compare("G(300, 0.5)", dense, {"networkx": by_networkx}, 10)
    yield from compare("Barabasi-Albert(2000, 3)", hubs, {"HiGHS": by_highs}, 1)


def compare(name: str, graph: sl.FeedbackGraph, rivals: dict[str, Find], at_least: float) -> Iterator[Row]:
    """Measure the independence number of a graph, by sidelong for two seconds and by others once; all must agree."""
    found = graph.numbers().independence  # which also compiles
    doubt = "" if found.exact and found.holds_for(graph) else "not proved"
    (ours,) = best_within(2.0, lambda: seconds(lambda: graph.numbers().independence))
    for rival, find in rivals.items():
        answers: list[int] = []
        theirs = seconds(lambda find=find, answers=answers: answers.append(find(graph)))
        warning = doubt if answers == [found.value] else f"{rival} finds {answers[0]}, not {found}"
        yield Row(f"independence of {name}", ours, rival, theirs, at_least=at_least, warning=warning)


def by_networkx(graph: sl.FeedbackGraph) -> int:
    """Find a largest clique of the complement."""
    conflicts = nx.from_numpy_array(_joined(graph, np.logical_or))
    return int(nx.max_weight_clique(nx.complement(conflicts), weight=None)[1])


def by_highs(graph: sl.FeedbackGraph) -> int:
    """Maximise the number of arms with at most one of each edge, without a limit on time."""
    return independence_program(graph, math.inf).lower


# Textbook integer programs, for HiGHS


class Bounds(NamedTuple):
    """What is known about a number when the time is over."""

    lower: int
    upper: int

    def __str__(self) -> str:
        return str(self.lower) if self.lower == self.upper else f"{self.lower} to {self.upper}"


def independence_program(graph: sl.FeedbackGraph, budget: float) -> Bounds:
    """Take at most one end of each edge."""
    return _most_arms(_joined(graph, np.logical_or), budget)


def strong_independence_program(graph: sl.FeedbackGraph, budget: float) -> Bounds:
    """Take at most one of two arms that reveal each other."""
    return _most_arms(_joined(graph, np.logical_and), budget)


def _most_arms(conflicts: Any, budget: float) -> Bounds:
    n = len(conflicts)
    ends = np.argwhere(np.triu(conflicts))
    value, bound, _ = _maximise(np.ones(n), _incidence(ends, n), -np.inf, np.ones(len(ends)), budget)
    return Bounds(max(1, value), min(n, bound))


def domination_program(graph: sl.FeedbackGraph, budget: float) -> Bounds:
    """Cover every arm by an arm that reveals it."""
    reveals = graph.to_scipy().astype(np.float64)
    n = graph.n_arms
    value, bound, _ = _maximise(np.full(n, -1.0), reveals.T.tocsr(), np.ones(n), np.inf, budget)
    return Bounds(max(1, -bound), min(n, -value))


def clique_cover_program(graph: sl.FeedbackGraph, budget: float) -> Bounds:
    """Cover every arm by a maximal clique; where these are too many, assign arms to groups."""
    joined = _joined(graph, np.logical_and)
    n = graph.n_arms
    cliques: list[list[int]] = []
    for clique in nx.find_cliques(nx.from_numpy_array(joined)):
        cliques.append(clique)
        if len(cliques) > _MANY_CLIQUES:
            return _assign(joined, budget)
    value, bound, _ = _maximise(np.full(len(cliques), -1.0), _incidence(cliques, n).T, np.ones(n), np.inf, budget)
    return Bounds(max(1, -bound), min(n, -value))


def _assign(joined: Any, budget: float) -> Bounds:
    """Colour the complement: arm v in group g, of which as many are allowed as a greedy colouring takes."""
    n = len(joined)
    apart = np.argwhere(np.triu(~joined, 1))
    known = max(nx.greedy_color(nx.complement(nx.from_numpy_array(joined)), "DSATUR").values()) + 1
    if 3 * known * len(apart) > _LARGE_PROGRAM:
        return Bounds(1, known)
    group = np.arange(known)

    def at(v: Any, g: Any) -> Any:
        return np.broadcast_to(v * known + g, np.broadcast_shapes(np.shape(v), np.shape(g))).ravel()

    used = n * known + group
    once = sparse.csr_array((np.ones(n * known), np.arange(n * known), np.arange(0, n * known + 1, known)))
    once.resize(n, n * known + known)
    pairs = np.stack(
        [at(apart[:, :1], group), at(apart[:, 1:], group), np.broadcast_to(used, (len(apart), known)).ravel()]
    )
    signs = np.repeat([[1.0], [1.0], [-1.0]], pairs.shape[1], axis=1)
    row = np.broadcast_to(np.arange(pairs.shape[1]), pairs.shape)
    conflicts = sparse.csr_array(
        (signs.ravel(), (row.ravel(), pairs.ravel())), shape=(pairs.shape[1], n * known + known)
    )
    step = np.arange(known - 1)
    order = sparse.csr_array(  # an earlier group is used first
        (
            np.repeat([1.0, -1.0], known - 1),
            (np.tile(step, 2), np.concatenate([used[1:], used[:-1]])),
        ),
        shape=(known - 1, n * known + known),
    )
    matrix = sparse.vstack([once, conflicts, order]).tocsr()
    low = np.concatenate([np.ones(n), np.full(matrix.shape[0] - n, -np.inf)])
    high = np.concatenate([np.full(n, np.inf), np.zeros(matrix.shape[0] - n)])
    objective = np.concatenate([np.zeros(n * known), np.full(known, -1.0)])
    value, bound, _ = _maximise(objective, matrix, low, high, budget)
    return Bounds(max(1, -bound), min(known, -value))


def acyclic_program(graph: sl.FeedbackGraph, budget: float) -> Bounds:
    """Leave out an arm of each short cycle, and of each cycle of the last solution, until it has none.

    The short cycles are pairs that reveal each other and, unless they are too many, triangles. A solution that still
    has cycles becomes one without by leaving out an arm of each cycle that is found.
    """
    n, begun = graph.n_arms, time.perf_counter()
    arcs = graph.matrix()
    np.fill_diagonal(arcs, val=False)
    cycles: list[list[int]] = np.argwhere(np.triu(arcs & arcs.T)).tolist()
    one_way = (arcs & ~arcs.T).astype(np.int64)
    if np.trace(one_way @ one_way @ one_way) <= 3 * _MANY_CYCLES:
        for i, j in np.argwhere(one_way).tolist():
            cycles += [[i, j, k] for k in np.flatnonzero(one_way[j] & one_way[:, i]).tolist() if i < min(j, k)]
    lower, upper = 1, n
    while lower < upper and (left := budget - (time.perf_counter() - begun)) > 0:
        most = np.array([len(cycle) - 1.0 for cycle in cycles])
        _, bound, x = _maximise(np.ones(n), _incidence(cycles, n), -np.inf, most, left)
        upper = min(upper, bound)
        if x is None:
            break
        arms = np.flatnonzero(x > 0.5)
        while found := _disjoint_cycles(arcs[np.ix_(arms, arms)]):
            cycles += [arms[cycle].tolist() for cycle in found]
            arms = np.delete(arms, [cycle[0] for cycle in found])
        lower = max(lower, len(arms))
    return Bounds(lower, upper)


def _disjoint_cycles(arcs: Any) -> list[list[int]]:
    """Return short cycles that have no arm in common: none if there is no cycle."""
    _, label = csgraph.connected_components(sparse.csr_array(arcs), connection="strong")
    free = np.bincount(label)[label] > 1
    found = []
    for v in np.flatnonzero(free).tolist():
        inside = np.flatnonzero(free & (label == label[v]))
        if not free[v]:
            continue
        start = int(np.searchsorted(inside, v))
        part = arcs[np.ix_(inside, inside)]
        far, last = csgraph.dijkstra(sparse.csr_array(part), indices=start, unweighted=True, return_predecessors=True)
        into = np.flatnonzero(part[:, start] & np.isfinite(far))
        if not into.size:
            continue
        cycle = [int(into[far[into].argmin()])]
        while cycle[-1] != start:
            cycle.append(int(last[cycle[-1]]))
        found.append(inside[cycle[::-1]].tolist())
        free[found[-1]] = False
    return found


def _maximise(
    objective: Any, matrix: Any, low: Any, high: Any, budget: float
) -> tuple[int, int, np.ndarray[Any, Any] | None]:
    """Return the value of the solution that HiGHS found, its bound, and the solution."""
    n = objective.size
    if budget <= 0 or not matrix.shape[0]:
        return (-n, n, None) if matrix.shape[0] else (n, n, np.ones(n))
    found = optimize.milp(
        -objective,
        integrality=np.ones(n),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(matrix, low, high),
        options={"mip_rel_gap": 0.0} | ({"time_limit": budget} if math.isfinite(budget) else {}),
    )
    bound = n if found.mip_dual_bound is None else math.floor(1e-6 - found.mip_dual_bound)
    return (-n if found.x is None else round(objective @ np.rint(found.x))), bound, found.x


def _incidence(groups: Any, n: int) -> sparse.csr_array:
    """Return the matrix with a row for each group of arms."""
    sizes = np.array([len(group) for group in groups], np.int64)
    arms = np.concatenate([np.empty(0, np.int64), *map(np.asarray, groups)])
    start = np.append(0, np.cumsum(sizes))
    return sparse.csr_array((np.ones(arms.size), arms, start), shape=(sizes.size, n))


def _joined(graph: sl.FeedbackGraph, both: Any) -> Any:
    matrix = graph.matrix()
    np.fill_diagonal(matrix, val=False)
    return both(matrix, matrix.T)


# The table of all numbers

PROGRAMS = {
    "independence": independence_program,
    "strong_independence": strong_independence_program,
    "acyclic": acyclic_program,
    "domination": domination_program,
    "clique_cover": clique_cover_program,
}


def graphs() -> dict[str, sl.FeedbackGraph]:
    """Return the graphs of the table: known networks, named families, and random graphs of various densities."""
    found = {
        "karate club": _undirected(nx.karate_club_graph()),
        "Les Miserables": _undirected(nx.les_miserables_graph()),
        "Davis women": _undirected(nx.davis_southern_women_graph()),
        "Florentine families": _undirected(nx.florentine_families_graph()),
        "Petersen": sl.graphs.petersen(),
        "hypercube(6)": sl.graphs.hypercube(6),
        "grid(10, 10)": sl.graphs.grid(10, 10),
        "circulant(60, 4)": sl.graphs.circulant(60, 4),
        "Mycielski(5)": _undirected(nx.complement(nx.mycielski_graph(5))),
        "Barabasi-Albert(200, 3)": _undirected(nx.barabasi_albert_graph(200, 3, seed=1)),
        "Watts-Strogatz(100, 6)": _undirected(nx.watts_strogatz_graph(100, 6, 0.1, seed=1)),
        "geometric(150, 0.15)": _undirected(nx.random_geometric_graph(150, 0.15, seed=1)),
        "rotational tournament(31)": sl.graphs.rotational_tournament(31),
        "directed circulant(60, 7)": sl.graphs.directed_circulant(60, 7),
        "karate club, directed": _directed(nx.karate_club_graph(), 1),
        "Les Miserables, directed": _directed(nx.les_miserables_graph(), 1),
        "Davis women, directed": _directed(nx.davis_southern_women_graph(), 1),
        "random tournament(30)": _directed(nx.complete_graph(30), 2, both=0.0),
        "random tournament(60)": _directed(nx.complete_graph(60), 3, both=0.0),
        "3 out of 100": sl.FeedbackGraph.from_networkx(
            nx.DiGraph(nx.random_k_out_graph(100, 3, 1.0, seed=1))
        ).with_self_loops(),
    }
    for n, r in ((50, 0.1), (50, 0.5), (100, 0.05), (100, 0.1), (100, 0.3), (100, 0.5), (100, 0.8), (200, 0.05)):
        found[f"G({n}, {r})"] = sl.graphs.erdos_renyi(n, r, 1)
    for n, r in ((200, 0.3), (200, 0.7), (300, 0.1), (300, 0.5)):
        found[f"G({n}, {r})"] = sl.graphs.erdos_renyi(n, r, 1)
    for n, r in ((30, 0.1), (30, 0.3), (60, 0.05), (60, 0.1), (60, 0.3), (100, 0.03), (100, 0.1), (100, 0.3)):
        found[f"D({n}, {r})"] = sl.graphs.erdos_renyi(n, r, 1, directed=True)
    for n, r in ((200, 0.02), (200, 0.1), (200, 0.5), (300, 0.02)):
        found[f"D({n}, {r})"] = sl.graphs.erdos_renyi(n, r, 1, directed=True)
    return found


def _undirected(network: Any) -> sl.FeedbackGraph:
    return sl.FeedbackGraph.from_networkx(network).with_self_loops()


def _directed(network: Any, seed: int, both: float = 0.3) -> sl.FeedbackGraph:
    """Keep both directions of some edges and one direction of the others."""
    rng = np.random.default_rng(seed)
    ends = np.array(nx.convert_node_labels_to_integers(network).edges)[:, :2]
    turned = np.where(rng.random((len(ends), 1)) < 0.5, ends, ends[:, ::-1])
    two_way = turned[rng.random(len(ends)) < both][:, ::-1]
    return sl.FeedbackGraph.from_edges(np.concatenate([turned, two_way]), len(network), self_loops=True)


class Timed(NamedTuple):
    """Bounds, and the processor time that they took."""

    bounds: Bounds
    seconds: float

    @classmethod
    def of(cls, find: Callable[[], Any]) -> Timed:
        """Measure once."""
        found: list[Any] = []
        taken = seconds(lambda: found.append(find()))
        return cls(Bounds(found[0].lower, found[0].upper), taken)


def compare_all(names: list[str], budget: float, keep: Path | None) -> None:
    """Print the table; keep its figures in a file of JSON lines."""
    print(f"{machine()}; {budget:g} seconds each")
    line = "| {:25} | {:19} | {:>10} | {:>10} | {:>9} | {:>9} | {:>8} |"
    print(line.format("graph", "number", "sidelong", "HiGHS", "sidelong", "HiGHS", "ratio"))
    print(line.format(*("-" * width for width in (25, 19, 10, 10, 9, 9, 8))))
    for title, graph in graphs().items():
        for name in names:
            if graph.is_undirected and name in {"acyclic", "strong_independence"}:
                continue  # equal to independence
            getattr(graph.numbers(min(1.0, budget)), name)  # which also compiles
            ours = Timed.of(functools.partial(getattr, graph.numbers(budget), name))
            theirs = Timed.of(functools.partial(PROGRAMS[name], graph, budget))
            if max(ours.bounds.lower, theirs.bounds.lower) > min(ours.bounds.upper, theirs.bounds.upper):
                raise ValueError(f"{name} of {title}: sidelong finds {ours.bounds}, and HiGHS {theirs.bounds}.")
            times = f"{1e3 * ours.seconds:,.1f} ms", f"{1e3 * theirs.seconds:,.1f} ms"
            ratio = f"{theirs.seconds / ours.seconds:.2g} x"
            print(line.format(title, name, str(ours.bounds), str(theirs.bounds), *times, ratio), flush=True)
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([title, name, ours, theirs]) + "\n")


def main() -> None:
    """Print the table of all numbers, and that of `python benchmarks`."""
    parser = argparse.ArgumentParser(description="Compare graph numbers with integer programs that HiGHS solves.")
    parser.add_argument("names", nargs="*", help=f"the numbers, all if none is named: {', '.join(PROGRAMS)}")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds for each (%(default)s)")
    parser.add_argument("--keep", type=Path, help="append the figures to this file, as JSON lines")
    given = parser.parse_args()
    compare_all(given.names or list(PROGRAMS), given.budget, given.keep)
    print_table(rows())


if __name__ == "__main__":
    main()
