"""Graphs over time: the graph of a round is a pure function, has the law it should have, and is what a run meets."""

import math
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import GraphError, ObservabilityError
from sidelong.graphs import alternating, drawn, resampled, scheduled, shadows
from sidelong.learners.interface import Need
from simulation import round_robin

A, B, C = sl.graphs.nested(4), sl.graphs.complete(4), sl.graphs.directed_cycle(4)
WORLD = sl.losses.bernoulli([0.2, 0.4, 0.6, 0.8])

SEQUENCES = {
    "alternating": alternating([A, B, C]),
    "scheduled": scheduled([A, B, C], [2, 2, 0, 1, 2]),
    "drawn": drawn([A, B, C]),
    "resampled": resampled(4, 0.4),
    "resampled, directed": resampled(4, 0.4, directed=True),
    "shadows": shadows(4, 2),
}
RANDOM = [name for name in SEQUENCES if name not in {"alternating", "scheduled"}]


# Purity


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.interpreted
def test_the_graph_of_a_round_depends_on_seed_run_and_round_alone(name):
    sequence = SEQUENCES[name]
    places = [(t, seed, run) for t in (1, 2, 3, 40, 2**40) for seed in (0, 2**64 - 1) for run in (0, 7)]
    first = {place: sequence.graph_of_round(place[0], seed=place[1], run=place[2]) for place in places}
    for k in np.random.default_rng(0).permutation(len(places)):
        t, seed, run = places[k]
        assert sequence.graph_of_round(t, seed=seed, run=run) == first[places[k]]
    assert all(graph.n_arms == 4 for graph in first.values())


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.interpreted
def test_seed_run_and_round_each_make_a_difference(name):
    """Of 30 graphs in a row, two sequences of different seeds have all in common with probability 3**-30 at most."""
    sequence = SEQUENCES[name]

    def graphs(first=1, **place):
        return [sequence.graph_of_round(t, **place).content_hash for t in range(first, first + 30)]

    variants = [graphs(), graphs(seed=1), graphs(seed=2**63), graphs(run=1), graphs(first=31), graphs(first=2**40)]
    assert len({tuple(variant) for variant in variants}) == len(variants)
    assert all(len(set(variant)) > 1 for variant in variants)


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_simulation_meets_the_graphs_of_the_rounds(name):
    """In another run than 0, which the agent cannot replay: each arm in turn, and what it revealed."""
    result = sl.simulate(round_robin, SEQUENCES[name], WORLD, rounds=50, runs=[3], seed=11)
    observed = np.zeros(4, int)
    for t in range(1, 51):
        observed[SEQUENCES[name].graph_of_round(t, seed=11, run=3).out_neighbors((t - 1) % 4)] += 1
    assert result.observations[0].tolist() == observed.tolist()


def test_a_thousand_graphs_of_a_bank_are_gone_through():
    bank = [sl.FeedbackGraph.from_edges([(k % 4, (k + 1 + k // 4) % 4)], 4, self_loops=True) for k in range(1000)]
    order = np.random.default_rng(3).integers(0, 1000, 700)
    sequence = scheduled(bank, order)
    assert all(sequence.graph_of_round(t) is bank[order[t - 1]] for t in range(1, 701))
    result = sl.simulate(round_robin, sequence, WORLD, rounds=700)
    observed = np.sum([bank[order[t]].matrix()[t % 4] for t in range(700)], axis=0)
    assert result.observations[0].tolist() == observed.tolist()


# Schedules


@pytest.mark.interpreted
def test_alternating_goes_through_the_graphs_in_turn():
    sequence = alternating([A, B, C])
    assert [sequence.graph_of_round(t) for t in range(1, 8)] == [A, B, C, A, B, C, A]
    assert sequence.graph_of_round(3 * 10**11 + 2, seed=5, run=9) is B


@pytest.mark.interpreted
@pytest.mark.parametrize("schedule", [[2, 2, 0, 1], (2, 2, 0, 1), np.array([2, 2, 0, 1], np.uint8)])
def test_scheduled_follows_its_array_and_begins_again(schedule):
    sequence = scheduled([A, B, C], schedule)
    assert [sequence.graph_of_round(t) for t in range(1, 11)] == [C, C, A, B, C, C, A, B, C, C]


@pytest.mark.interpreted
def test_a_schedule_is_not_changed_from_outside():
    order = np.array([0, 1])
    sequence = scheduled([A, B], order)
    order[:] = 1
    assert sequence.graph_of_round(1) is A


# Laws. Each bound fails by chance, over the seeds, with the probability that stands beside it.


def test_drawn_graphs_have_their_frequencies():
    """A chi-square test over 4,000 draws: once in 10,000."""
    weights = np.array([1.0, 2.0, 5.0])
    never = sl.graphs.star(4)
    sequence = drawn([A, never, B, C], [1.0, 0.0, 2.0, 5.0])
    counts = Counter(sequence.graph_of_round(t, seed=1, run=t % 3).content_hash for t in range(1, 4001))
    assert counts[never.content_hash] == 0
    found = np.array([counts[graph.content_hash] for graph in (A, B, C)])
    expected = 4000 * weights / 8
    assert found.sum() == 4000
    assert ((found - expected) ** 2 / expected).sum() < 18.42  # the 0.9999 quantile with 2 degrees of freedom


def test_large_weights_are_weights():
    counts = np.bincount([drawn([A, B], [1e308, 1e308]).bank.index(g) for g in [A, B]], minlength=2)
    assert counts.tolist() == [1, 1]
    of_rounds = [drawn([A, B], [1e308, 1e308]).graph_of_round(t) is A for t in range(1, 101)]
    assert 20 < sum(of_rounds) < 80  # a fair coin leaves this once in 10^9 times


def test_without_weights_all_graphs_are_equally_likely():
    """A chi-square test over 3,000 draws: once in 10,000."""
    counts = Counter(drawn([A, B, C]).graph_of_round(t, seed=2).content_hash for t in range(1, 3001))
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 18.42
    assert len(counts) == 3


@pytest.mark.parametrize("directed", [False, True])
def test_resampled_edges_have_their_chance(directed):
    """Hoeffding's bound, for each of up to 30 edges and for all together: once in a million."""
    r, rounds, K = 0.3, 2000, 6
    matrices = np.array(
        [resampled(K, r, directed=directed).graph_of_round(t, seed=4).matrix() for t in range(1, rounds + 1)]
    )
    off = ~np.eye(K, dtype=bool)
    assert matrices[:, ~off].all()  # self-loops always
    allowed = math.sqrt(math.log(2 * 31 / 1e-6) / (2 * rounds))
    assert np.abs(matrices.mean(axis=0)[off] - r).max() < allowed
    pairs = off if directed else np.triu(off)
    assert abs(matrices[:, pairs].mean() - r) < allowed / math.sqrt(pairs.sum())
    symmetric = (matrices == matrices.transpose(0, 2, 1)).all(axis=(1, 2))
    if directed:
        # An edge and its reverse are independent: they agree with chance r**2 + (1 - r)**2, in each of 15 pairs.
        agree = (matrices == matrices.transpose(0, 2, 1))[:, np.triu(off)].mean()
        assert abs(agree - 0.58) < allowed / math.sqrt(15)
        assert not symmetric.all()
    else:
        assert symmetric.all()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.interpreted
def test_chances_0_and_1_leave_no_choice(directed):
    for t in range(1, 20):
        assert resampled(5, 0.0, directed=directed).graph_of_round(t) == sl.graphs.self_loops(5)
        assert resampled(5, 1.0, directed=directed).graph_of_round(t) == sl.graphs.complete(5)


def shadowed_arms(graph):
    """Return the arms that every arm reveals: with two arms or more, those that are shadowed."""
    return frozenset(np.flatnonzero(graph.matrix().all(axis=0)).tolist())


@pytest.mark.interpreted
@pytest.mark.parametrize(("n_arms", "capacity"), [(2, 1), (5, 0), (5, 2), (5, 5), (9, 4)])
def test_shadows_reveal_the_own_arm_and_the_shadowed_ones(n_arms, capacity):
    sizes = set()
    for t in range(1, 60):
        graph = shadows(n_arms, capacity).graph_of_round(t, seed=6)
        shadowed = shadowed_arms(graph)
        sizes.add(len(shadowed))
        for arm in range(n_arms):
            assert graph.out_neighbors(arm).tolist() == sorted(shadowed | {arm})
            revealed_by = range(n_arms) if arm in shadowed else [arm]
            assert graph.in_neighbors(arm).tolist() == list(revealed_by)
    # Some size is missing in 59 rounds with chance 6 * (5/6)**59 = 1.3e-4 at most.
    assert sizes == set(range(capacity + 1))


def test_every_number_of_shadows_and_every_subset_of_a_number_is_equally_likely():
    """A chi-square test over 5,000 rounds: once in 10,000."""
    counts = Counter(shadowed_arms(shadows(4, 2).graph_of_round(t, seed=7)) for t in range(1, 5001))
    statistic = 0.0
    for size, subsets in ((0, 1), (1, 4), (2, 6)):
        expected = 5000 / 3 / subsets
        statistic += sum((counts[frozenset(each)] - expected) ** 2 / expected for each in combinations(range(4), size))
    assert counts.total() == 5000
    assert len(counts) == 11
    assert statistic < 35.57  # the 0.9999 quantile with 10 degrees of freedom


def test_one_arm_may_be_shadowed_too():
    assert shadows(1, 1).graph_of_round(1) == sl.graphs.complete(1)
    assert resampled(1, 0.5).graph_of_round(1) == sl.graphs.complete(1)


# What is refused

BAD = [
    (lambda: alternating(np.array(0.5)), r"made from a list of FeedbackGraphs, at least one, not"),
    (lambda: sl.graphs.cliques(np.array(0.5)), r"cliques takes a list of sizes"),
    (lambda: A.labelled(5), r"Labels are a list of names, one for each arm, not 5\."),
    (lambda: A.observe_probabilities([10**400] * 4), r"p cannot be read as numbers"),
    (lambda: alternating([]), r"made from a list of FeedbackGraphs, at least one, not"),
    (lambda: alternating(A), r"made from a list of FeedbackGraphs, at least one, not <FeedbackGraph"),
    (lambda: shadows(5, capacity=True), r"capacity must be a whole number from 0 to 5, not True"),
    (lambda: resampled(True, 0.5), r"drawn anew each round must be a whole number from 1 to 10,000, not True"),  # noqa: FBT003
    (lambda: alternating([A, "star"]), r"made from a list of FeedbackGraphs, at least one, not"),
    (lambda: alternating([A, sl.graphs.complete(3)]), r"must have the same number of arms, not 4, 3\."),
    (lambda: alternating([A], shown="never"), r"shown must be 'before' or 'after' the draw, not 'never'\."),
    (lambda: scheduled([A, B], [0, 2]), r"schedule names graphs from 0 to 1, not 2\."),
    (lambda: scheduled([A, B], [-1]), r"schedule names graphs from 0 to 1, not -1\."),
    (lambda: scheduled([A], []), r"schedule is a list of whole numbers, at least one"),
    (lambda: scheduled([A], [0.0]), r"schedule is a list of whole numbers"),
    (lambda: scheduled([A], [[0]]), r"schedule is a list of whole numbers"),
    (lambda: scheduled([A], "0"), r"schedule is a list of whole numbers"),
    (lambda: drawn([]), r"made from a list of FeedbackGraphs, at least one, not"),
    (lambda: drawn([A, B], [1.0]), r"weights must be 2 numbers, none negative and not all 0, not \[1\.0\]\."),
    (lambda: drawn([A, B], [1.0, -1.0]), r"weights must be .*, not \[1\.0, -1\.0\]\."),
    (lambda: drawn([A, B], [0, 0]), r"weights must be .*, not \[0, 0\]\."),
    (lambda: drawn([A, B], [1, math.nan]), r"weights must be .*, not \[1, nan\]\."),
    (lambda: drawn([A, B], [1, math.inf]), r"weights must be .*, not \[1, inf\]\."),
    (lambda: drawn([A, B], ["x", 1]), r"weights must be .*, not \['x', 1\]\."),
    (lambda: drawn([A, B], 5), r"weights must be 2 numbers, .*, not 5\."),
    (lambda: resampled(4, 0.5, directed="yes"), r"directed must be True or False, not 'yes'\."),
    (
        lambda: drawn([A, B]).graph_of_round(1, seed=1.5),
        r"seed must be a whole number from 0 to 2\*\*64 - 1, not 1\.5\.",
    ),
    (lambda: drawn([A, B]).graph_of_round("1"), r"t must be a whole number of at least 1, not '1'\."),
    (lambda: resampled(4, 1.5), r"r must be a number from 0 to 1, not 1\.5\."),
    (lambda: resampled(4, -0.1), r"r must be .*, not -0\.1\."),
    (lambda: resampled(4, math.nan), r"r must be .*, not nan\."),
    (lambda: resampled(4, True), r"r must be .*, not True\."),  # noqa: FBT003
    (lambda: drawn([A, B], [True, 1]), r"weights must be .*, not \[True, 1\]\."),
    (lambda: resampled(4, "x"), r"r must be .*, not 'x'\."),
    (lambda: resampled(0, 0.5), r"drawn anew each round must be a whole number from 1 to 10,000, not 0\."),
    (lambda: resampled(10_001, 0.5), r"drawn anew each round must be a whole number from 1 to 10,000, not 10001\."),
    (lambda: resampled(2.5, 0.5), r"to 10,000, not 2\.5\."),
    (lambda: resampled("4", 0.5), r"to 10,000, not '4'\."),
    (lambda: shadows(4, 5), r"capacity must be a whole number from 0 to 4, not 5\."),
    (lambda: shadows(4, -1), r"capacity must be .*, not -1\."),
    (lambda: shadows(4, 1.5), r"capacity must be .*, not 1\.5\."),
    (lambda: shadows(0, 0), r"drawn anew each round must be a whole number from 1 to 10,000, not 0\."),
    (lambda: shadows("4", 1), r"to 10,000, not '4'\."),
    (lambda: shadows(4, 2, shown=None), r"shown must be 'before' or 'after' the draw, not None\."),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
@pytest.mark.interpreted
def test_what_no_sequence_can_be_made_from(make, message):
    with pytest.raises(GraphError, match=message):
        make()


@pytest.mark.parametrize(
    "sequence", [alternating([A, B], shown="after"), resampled(4, 0.5, shown="after"), shadows(4, 1, shown="after")]
)
def test_a_graph_that_is_shown_after_the_draw_is_for_learners_that_allow_it(sequence):
    with pytest.raises(
        ObservabilityError, match=r"exp3\.g\+\+ needs to see the graph before the draw; .* shows it after"
    ):
        sl.simulate("exp3.g++", sequence, WORLD, rounds=10)
    assert sl.simulate(round_robin, sequence, WORLD, rounds=10).plays.sum() == 10


def test_every_graph_of_a_bank_is_looked_at():
    without = sl.FeedbackGraph.from_edges([(0, 0), (1, 0), (2, 2), (3, 3)])
    sequence = drawn([A, without], [1.0, 1e-9])
    with pytest.raises(ObservabilityError, match="arm 1 of <FeedbackGraph: 4 arms"):
        sl.simulate("exp3.g++", sequence, WORLD, rounds=10)


UNDIRECTED = replace(round_robin.LEARNER, name="undirected", needs=frozenset({Need.UNDIRECTED}))


@pytest.mark.parametrize(
    ("learner", "sequence", "refusal"),
    [
        ("hedge", resampled(3, 0.999), "needs every arm to reveal all arms"),
        ("hedge", shadows(3, 3), "needs every arm to reveal all arms"),
        ("hedge", resampled(3, 1.0), None),
        ("hedge", resampled(1, 0.1), None),
        ("exp3-set", resampled(3, 0.001, directed=True), None),
        (UNDIRECTED, resampled(3, 0.001, directed=True), "needs an undirected graph"),
        (UNDIRECTED, shadows(3, 1), "needs an undirected graph"),
        (UNDIRECTED, shadows(3, 0), None),
        (UNDIRECTED, resampled(3, 0.5), None),
    ],
)
def test_graphs_drawn_anew_are_refused_by_what_they_may_be_and_not_by_what_they_are_first(learner, sequence, refusal):
    module = sl.learners.catalogue.find(learner) if isinstance(learner, str) else learner
    if refusal is None:
        sl.learners.catalogue.check_sequence(module, sequence, {})
    else:
        with pytest.raises(ObservabilityError, match=refusal):
            sl.learners.catalogue.check_sequence(module, sequence, {})


@pytest.mark.interpreted
def test_the_repr_says_what_it_is():
    assert repr(shadows(4, 2)) == "<GraphSequence shadows of up to 2 arms: 4 arms, shown before the draw>"
    assert repr(resampled(7, 0.25, shown="after")) == (
        "<GraphSequence resampled G(7, 0.25): 7 arms, shown after the draw>"
    )
    assert "3 graphs over 5 rounds" in repr(SEQUENCES["scheduled"])
