"""Cliques as rows of programs: against networkx."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from sidelong import graphs
from sidelong.graphs.solvers import conflicts
from sidelong.graphs.solvers.budget import Budget
from sidelong.graphs.solvers.cliques import edge_cliques, maximal_cliques

pytestmark = pytest.mark.interpreted


def pieces(groups):
    return [tuple(sorted(arms.tolist())) for arms in np.split(groups.arms, groups.start[1:-1])]


@pytest.mark.parametrize("seed", range(10))
def test_all_maximal_cliques_and_a_cover_of_all_edges(seed):
    graph = graphs.erdos_renyi(5 + 3 * seed, 0.1 + 0.08 * seed, seed)
    network = graph.to_networkx().to_undirected()
    network.remove_edges_from(nx.selfloop_edges(network))
    want = {tuple(sorted(clique)) for clique in nx.find_cliques(network)}
    found = pieces(maximal_cliques(conflicts.mutual(graph), 10_000, Budget(100)))
    assert len(found) == len(want)
    assert set(found) == want
    some = pieces(edge_cliques(conflicts.mutual(graph)))
    assert set(some) <= want
    covered = {pair for clique in some for pair in combinations(clique, 2)}
    assert covered == {tuple(sorted(edge)) for edge in network.edges}
    assert {arm for clique in some for arm in clique} == set(range(graph.n_arms))


def test_too_many_cliques_or_no_time_is_no_answer():
    many = conflicts.mutual(graphs.cocktail_party(20))  # 2^10 maximal cliques
    assert maximal_cliques(many, 1024, Budget(100)).number == 1024
    assert maximal_cliques(many, 1023, Budget(100)) is None
    assert maximal_cliques(many, 1024, Budget(0)) is None
