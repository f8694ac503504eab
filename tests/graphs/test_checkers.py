"""Checkers against oracles that look at every pair, and certificates that were tampered with."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import graphs_brute
import sidelong as sl
from nightly import share
from sidelong import graphs
from sidelong.graphs import checkers
from sidelong.graphs.checkers import Cover, Shares

pytestmark = pytest.mark.interpreted


def random_graph(rng, *, intervals):
    K = int(rng.integers(1, 8))
    if intervals:
        low = [rng.integers(0, i + 1) for i in range(K)]
        return sl.FeedbackGraph.from_intervals(low, [rng.integers(i + 1, K + 1) for i in range(K)])
    A = rng.random((K, K)) < rng.uniform(0.1, 0.9)
    return sl.FeedbackGraph.from_matrix(A | np.eye(K, dtype=bool) if rng.random() < 0.5 else A)


def some_arms(rng, K):
    return np.flatnonzero(rng.random(K) < rng.uniform(0.2, 0.9))


def cover_of(groups, weight, unit=1, cycles=()):
    return Cover(
        np.append(0, np.cumsum([len(group) for group in groups])),
        np.concatenate([np.empty(0, np.int64), *(np.array(group, np.int64) for group in groups)]),
        np.isin(np.arange(len(groups)), cycles),
        np.array(weight, np.int64),
        unit,
    )


# Oracles


def joined(A, i, j, how):
    return A[i][j] and A[j][i] if how == "mutual" else A[i][j] or A[j][i]


def is_cover(A, cover, how, weights):
    groups = np.split(cover.arms, cover.start[1:-1])
    for group, is_cycle in zip(groups, cover.is_cycle, strict=True):
        if is_cycle and (len(group) < 2 or not all(A[i][j] for i, j in zip(group, np.roll(group, -1), strict=True))):
            return False
        if not is_cycle and not all(joined(A, i, j, how) for i, j in combinations(group, 2)):
            return False
    shares = [Fraction(int(w)) / Fraction(cover.unit) for w in cover.weight]
    return all(
        sum(share for share, group in zip(shares, groups, strict=True) if v in group) >= Fraction(float(weights[v]))
        for v in range(len(A))
    )


@pytest.mark.parametrize("intervals", [False, True])
@pytest.mark.parametrize("seed", share(range(8), 4))
def test_checkers_of_sets(seed, intervals):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        graph = random_graph(rng, intervals=intervals)
        A, K = graph.matrix(), graph.n_arms
        arms = some_arms(rng, K)
        pairs = list(combinations(arms.tolist(), 2))
        assert checkers.is_independent(graph, arms) == (not any(A[i, j] or A[j, i] for i, j in pairs))
        assert checkers.is_strongly_independent(graph, arms) == (not any(A[i, j] and A[j, i] for i, j in pairs))
        assert checkers.is_acyclic(graph, arms) == graphs_brute._has_no_cycle(A, arms.tolist())
        assert checkers.dominates(graph, arms) == bool(A[arms].any(axis=0).all())
        targets = some_arms(rng, K)
        assert checkers.dominates(graph, arms, targets) == bool(A[arms].any(axis=0)[targets].all())


@pytest.mark.parametrize("intervals", [False, True])
@pytest.mark.parametrize("seed", share(range(8), 4))
def test_checkers_of_groups_and_shares(seed, intervals):
    rng = np.random.default_rng(seed)
    seen = set()
    for _ in range(150):
        graph = random_graph(rng, intervals=intervals)
        A, K = graph.matrix(), graph.n_arms
        group = rng.integers(0, rng.integers(1, K + 1), K)
        pairs = [(i, j) for i, j in combinations(range(K), 2) if group[i] == group[j]]
        assert checkers.is_clique_cover(graph, group) == all(A[i, j] and A[j, i] for i, j in pairs)
        shares = Shares(rng.integers(0, 3, K), int(rng.integers(1, 5)))
        assert checkers.packs(graph, shares) == bool((A @ shares.weight <= shares.unit).all())
        assert checkers.dominates_in_shares(graph, shares) == bool((shares.weight @ A >= shares.unit).all())
        # Few groups of up to three arms, beside single ones, so that both answers come up.
        groups = [rng.choice(K, min(K, rng.integers(1, 4)), replace=False) for _ in range(rng.integers(0, 3))]
        groups += [[i] for i in range(K) if rng.random() < 0.9] or [[0]]
        cycles = [k for k in range(len(groups)) if len(groups[k]) > 1 and rng.random() < 0.3]
        cover = cover_of(groups, rng.integers(0, 6, len(groups)), 2, cycles)
        weights = rng.choice([0.0, 0.25, 0.5, 1.0], K)
        for how in ("either", "mutual"):
            want = is_cover(A, cover, how, weights)
            seen.add(want)
            assert checkers.covers(graph, cover, how, cycles=True, weights=weights) == want
            allowed = want and not cycles
            assert checkers.covers(graph, cover, how, weights=weights) == allowed
    assert seen == {True, False}


@pytest.mark.parametrize(
    "arms", [[0, 0], [0, 5], [-1], [0.5], [[0, 2]], ["a"]], ids=["twice", "too high", "negative", "half", "2-D", "text"]
)
@pytest.mark.parametrize("graph", [graphs.cycle(5), graphs.self_loops(5)], ids=["arcs", "intervals"])
def test_arms_that_are_no_set_are_refused(graph, arms):
    for check in (
        checkers.is_independent,
        checkers.is_strongly_independent,
        checkers.is_acyclic,
        checkers.dominates,
    ):
        assert not check(graph, np.array(arms))
    assert checkers.is_independent(graph, [])
    assert not checkers.dominates(graph, [])


# Tampering

GRAPHS = [
    graphs.cycle(5),
    graphs.petersen(),
    graphs.directed_cycle(7),
    graphs.rotational_tournament(9),
    graphs.banded(11, 2),
    graphs.nested(6),
    graphs.star(6),
    graphs.cliques([3, 2, 4]),
    graphs.erdos_renyi(14, 0.3, 1),
    graphs.erdos_renyi(14, 0.3, 2, directed=True),
]
SETS = ("independence", "acyclic", "strong_independence")


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
@pytest.mark.parametrize("name", SETS)
def test_a_set_that_was_tampered_with_fails(graph, name):
    number = getattr(graph.numbers(), name)
    assert number.holds_for(graph)
    arms = number.certificate
    others = np.setdiff1d(np.arange(graph.n_arms), arms)
    corrupted = [arms[1:], np.append(arms[:-1], graph.n_arms), np.append(arms[:-1], -1), np.append(arms, arms[-1])]
    corrupted += [np.append(arms, other) for other in others]  # the set is a largest one: no arm can be added
    for wrong in corrupted:
        assert not replace(number, certificate=wrong).holds_for(graph)
        assert (
            not replace(number, certificate=wrong, lower=wrong.size, upper=max(wrong.size, number.upper)).holds_for(
                graph
            )
            or wrong.size < arms.size
        )
    assert not replace(number, lower=number.lower + 1).holds_for(graph)
    assert not replace(number, upper=number.lower - 1).holds_for(graph)
    assert not replace(number, upper=number.proved[1] + 1).holds_for(graph)
    assert not replace(number, dual=None).holds_for(graph)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
@pytest.mark.parametrize("name", SETS)
def test_a_cover_that_was_tampered_with_fails(graph, name):
    number = getattr(graph.numbers(), name)
    cover = number.dual
    assert number.holds_for(graph)
    size = np.diff(cover.start)
    for g in range(size.size):  # an arm that is covered no more than it needs to be loses a part
        lower = cover.weight.copy()
        lower[g] -= 1
        members = cover.arms[cover.start[g] : cover.start[g + 1]]
        covered = np.zeros(graph.n_arms, np.int64)
        np.add.at(covered, cover.arms, np.repeat(cover.weight, size))
        if (covered[members] == cover.unit).any():
            assert not replace(number, dual=replace(cover, weight=lower)).holds_for(graph)
    corrupted = [
        replace(cover, arms=cover.arms + 1),
        replace(cover, arms=cover.arms[:-1]),
        replace(cover, weight=-cover.weight),
        replace(cover, weight=cover.weight[1:]),
        replace(cover, unit=0),
        replace(cover, unit=cover.unit * 4),
        replace(cover, unit=3),
        replace(cover, start=cover.start + 1),
    ]
    if size.size > 1:  # an arm is left out; all groups become one
        corrupted.append(replace(cover, arms=np.where(cover.arms == cover.arms[0], cover.arms[-1], cover.arms)))
        one = {"start": np.array([0, cover.arms.size]), "weight": cover.weight[:1], "is_cycle": cover.is_cycle[:1]}
        corrupted.append(replace(cover, **one))
    if name != "acyclic":  # for which a clique is a cycle too
        corrupted.append(replace(cover, is_cycle=np.ones(size.size, np.bool_)))
    if cover.is_cycle.any():
        corrupted.append(replace(cover, is_cycle=np.zeros(size.size, np.bool_)))
        corrupted.append(replace(cover, arms=cover.arms[::-1], start=cover.arms.size - cover.start[::-1]))
    for wrong in corrupted:
        assert not replace(number, dual=wrong).holds_for(graph), wrong


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_a_dominating_set_or_its_packing_that_was_tampered_with_fails(graph):
    number = graph.numbers().domination
    assert number.holds_for(graph)
    for k in range(number.upper):  # the set is a smallest one: no arm can be left out
        wrong = np.delete(number.certificate, k)
        assert not replace(number, certificate=wrong).holds_for(graph)
        assert not replace(number, certificate=wrong, upper=wrong.size, lower=min(wrong.size, number.lower)).holds_for(
            graph
        )
    packing = number.dual
    some = np.flatnonzero(packing.weight)
    for wrong in (
        replace(packing, weight=packing.weight + packing.unit),
        replace(packing, weight=-packing.weight),
        replace(packing, weight=packing.weight[1:]),
        replace(packing, weight=np.where(np.arange(graph.n_arms) == some[0], packing.unit + 1, packing.weight)),
        replace(packing, unit=0),
    ):
        assert not checkers.packs(graph, wrong)
        if wrong.unit:
            assert not replace(number, dual=wrong).holds_for(graph)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_a_clique_cover_that_was_tampered_with_fails(graph):
    number = graph.numbers().clique_cover
    assert number.holds_for(graph)
    groups = number.certificate
    for a, b in combinations(np.unique(groups), 2):  # they are the fewest: no two can be one
        wrong = np.where(groups == a, b, groups)
        assert not replace(number, certificate=wrong, upper=number.upper - 1, lower=1).holds_for(graph)
    assert not replace(number, certificate=groups[1:]).holds_for(graph)
    assert not replace(number, certificate=groups.astype(float)).holds_for(graph)
    assert not replace(number, dual=np.arange(graph.n_arms + 1)).holds_for(graph)
    if number.dual.size > 1:
        assert not replace(number, dual=np.repeat(number.dual[:1], number.dual.size)).holds_for(graph)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_real_numbers_that_were_tampered_with_fail(graph):
    numbers = graph.numbers()
    weighted = numbers.weighted_strong_independence(1 / (1 + np.arange(graph.n_arms)))
    for number in (weighted, numbers.fractional_domination, numbers.fractional_clique_cover):
        assert number.holds_for(graph)
        assert not replace(number, lower=number.upper + 1).holds_for(graph)
        assert not replace(number, upper=number.lower - 1).holds_for(graph)
    assert not replace(weighted, certificate=weighted.certificate[1:]).holds_for(graph)
    assert not replace(weighted, certificate=np.arange(graph.n_arms + 1)).holds_for(graph)
    assert not replace(weighted, weights=2 * weighted.weights).holds_for(graph)
    assert not replace(weighted, upper=2 * weighted.upper * graph.n_arms).holds_for(graph)
    domination = numbers.fractional_domination
    for part in ("certificate", "dual"):
        shares = getattr(domination, part)
        factor = {"certificate": 0, "dual": 2}[part]
        assert not replace(domination, **{part: replace(shares, weight=factor * shares.weight)}).holds_for(graph)
    cover = numbers.fractional_clique_cover.certificate
    wrong = replace(cover, weight=cover.weight // 2)
    assert not replace(numbers.fractional_clique_cover, certificate=wrong).holds_for(graph)


def test_a_certificate_is_for_one_graph():
    number = graphs.cycle(9).numbers().independence
    assert number.holds_for(graphs.cycle(9).as_arcs())
    assert not number.holds_for(graphs.circulant(9, 2))
    assert not number.holds_for(graphs.path(9))  # without the edge that joins the ends, a clique is none


@pytest.mark.parametrize("seed", share(range(60), 30))
def test_certificates_of_random_graphs_hold_until_they_are_tampered_with(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, intervals=seed % 3 == 0)
    numbers = graph.numbers()
    for name in SETS:  # a largest set: one arm less has another size, and one more does not exist
        number = getattr(numbers, name)
        assert number.holds_for(graph)
        others = np.setdiff1d(np.arange(graph.n_arms), number.certificate)
        assert not replace(number, certificate=number.certificate[:-1]).holds_for(graph)
        for other in others:
            larger = np.sort(np.append(number.certificate, other))
            assert not replace(number, certificate=larger, lower=larger.size, upper=larger.size).holds_for(graph)
    cover = numbers.clique_cover
    assert cover.holds_for(graph)
    if cover.upper > 1:  # the fewest groups: the last two cannot be one
        wrong = np.minimum(cover.certificate, cover.upper - 2)
        assert not replace(cover, certificate=wrong, lower=1, upper=cover.upper - 1).holds_for(graph)
    if graph.observability.kind == "none":
        return
    for number in (numbers.domination, numbers.weak_domination):
        assert number.holds_for(graph)
        for k in range(number.upper):  # the fewest arms: none can be left out
            fewer = np.delete(number.certificate, k)
            assert not replace(number, certificate=fewer, lower=0, upper=fewer.size).holds_for(graph)
