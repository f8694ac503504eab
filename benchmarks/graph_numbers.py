"""Independence numbers, side by side with networkx and with HiGHS on one inequality an edge, on the same graphs.

Both take up to a quarter of a minute, so each is measured once; sidelong is measured for two seconds, best time first.
All must find the same number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from measure import Row, best_within, print_table, seconds
from scipy import optimize, sparse

import sidelong as sl
from sidelong.graphs.numbers import independence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Find = Callable[[sl.FeedbackGraph], int]


def rows() -> Iterator[Row]:
    """Measure a graph with few edges, a dense one, and a large one with hubs."""
    import networkx as nx  # noqa: PLC0415  # it may not be installed

    sparse_, dense = sl.graphs.erdos_renyi(120, 0.1, 1), sl.graphs.erdos_renyi(300, 0.5, 1)
    hubs = sl.FeedbackGraph.from_networkx(nx.barabasi_albert_graph(2000, 3, seed=1)).with_self_loops()
    yield from compare("G(120, 0.1)", sparse_, {"HiGHS": by_highs, "networkx": by_networkx}, 10)
    yield from compare("G(300, 0.5)", dense, {"networkx": by_networkx}, 10)
    yield from compare("Barabasi-Albert(2000, 3)", hubs, {"HiGHS": by_highs}, 1)


def compare(name: str, graph: sl.FeedbackGraph, rivals: dict[str, Find], at_least: float) -> Iterator[Row]:
    """Measure the independence number of a graph, by sidelong and by others."""
    found = independence(graph)  # which also compiles
    doubt = "" if found.exact and found.holds_for(graph) else "not proved"
    (ours,) = best_within(2.0, lambda: seconds(lambda: independence(graph)))
    for rival, find in rivals.items():
        answers: list[int] = []
        theirs = seconds(lambda find=find, answers=answers: answers.append(find(graph)))
        warning = doubt if answers == [found.value] else f"{rival} finds {answers[0]}, not {found}"
        yield Row(f"independence of {name}", ours, rival, theirs, at_least=at_least, warning=warning)


def by_networkx(graph: sl.FeedbackGraph) -> int:
    """Find a largest clique of the complement."""
    import networkx as nx  # noqa: PLC0415  # it may not be installed

    return int(nx.max_weight_clique(nx.complement(_edges(graph)), weight=None)[1])


def by_highs(graph: sl.FeedbackGraph) -> int:
    """Maximise the number of arms with at most one of each edge."""
    ends = np.array(_edges(graph).edges)
    edge = np.arange(len(ends))
    incidence = sparse.csr_array(
        (np.ones(2 * len(ends)), (np.concatenate([edge, edge]), ends.T.ravel())), shape=(len(ends), graph.n_arms)
    )
    found = optimize.milp(
        -np.ones(graph.n_arms),
        integrality=np.ones(graph.n_arms),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(incidence, -np.inf, 1),
    )
    return round(-found.fun)


def _edges(graph: sl.FeedbackGraph) -> Any:
    network = graph.to_networkx().to_undirected()
    network.remove_edges_from([(i, i) for i in range(graph.n_arms)])
    return network


if __name__ == "__main__":
    print_table(rows())
