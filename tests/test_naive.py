"""The oracles are right: published numbers, and facts that can be counted by hand."""

import copy
import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

import naive

# Three arms on a path; in all there are twelve rounds, and every play is forced.
PATH3 = [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
PLAYS = [0, 1, 2, 0, 2, 1, 1, 0, 2, 2, 1, 0]
PATH4 = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]


def graph(n, arcs, *, both=True):
    A = np.eye(n, dtype=bool)
    for i, j in arcs:
        A[i % n, j % n] = True
        A[j % n, i % n] |= both
    return A


def reveal(A, arm, losses):
    return {int(j): float(losses[j]) for j in np.flatnonzero(np.array(A)[arm])}


def play_path(learner):
    """Return the rounds, and the state after each."""
    rounds, states = {}, {}
    for t, arm in enumerate(PLAYS, start=1):
        rounds[t] = learner.distribution(PATH3)
        learner.update(rounds[t], arm, reveal(PATH3, arm, [(t * (i + 2)) % 5 / 4 for i in range(3)]))
        states[t] = learner.Ltilde.copy(), learner.Lhat.copy(), learner.O.copy(), learner.Theta
    return rounds, states


def close(value, expected):
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-8)


def test_golden_values_of_the_fixed_rate():
    rounds, states = play_path(naive.Exp3Gpp(3, "fixed", strong_independence=2))
    for t in (1, 2, 3):
        close(rounds[t].p, np.eye(3)[t - 1])
    assert {0, 2} == rounds[4].S
    close(rounds[4].eta, 0.2620367685)
    close(rounds[4].eps, [0.1235253173] * 3)
    close(rounds[4].p, [1 / 3] * 3)
    close(rounds[4].P, [2 / 3, 1, 2 / 3])
    Ltilde, Lhat, O, _ = states[4]
    close(Ltilde, [1.125, 0.5, 0])
    close(Lhat, [2.25, 2.5, 1.25])
    close(O, [3, 4, 2])
    close(rounds[5].eta, 0.2343728108)
    close(rounds[5].p, [0.30373657, 0.33422311, 0.36204032])
    close(rounds[12].eps, [0.07131738, 0.02777778, 0.07131738])
    close(rounds[12].p, [0.33332478, 0.32506768, 0.34160754])


def test_golden_values_of_the_adaptive_rate():
    rounds, states = play_path(naive.Exp3Gpp(3, "adaptive"))
    assert states[3][3] == 3
    close(rounds[4].eta, 0.4279042511)
    close(rounds[4].eps, [0.08734559] * 3)
    close(states[4][3], 13 / 3)
    close(rounds[5].p, [0.28273568, 0.33373003, 0.38353429])
    close(rounds[12].p, [0.31778602, 0.34548389, 0.33673010])
    close(states[12][3], 14.8287925778)


def test_golden_values_where_the_gaps_bind():
    learner = naive.Exp3Gpp(4, "fixed", strong_independence=2, beta=1)
    learner.t = 10**6 - 1
    learner.O = np.array([4e5, 9e5, 5e5, 2.5e5])
    learner.Lhat = learner.O * [0.1, 0.5, 0.9, 0.6]
    found = learner.distribution(PATH4)
    assert found.t == 10**6
    assert {0, 3} == found.S
    close(found.gap, [0, 0.38597518, 0.78405860, 0.48094102])
    np.testing.assert_allclose(found.eps, [2.0813865e-4, 4e-12, 4e-12, 5.9728733e-5], rtol=1e-7)


def test_without_initial_rounds_nothing_is_known_at_first():
    learner = naive.Exp3Gpp(4, "adaptive", start=[])
    first = learner.distribution(PATH4)
    assert learner.Theta == 1
    assert first.gap.tolist() == [0, 0, 0, 0]
    close(first.p, [1 / 4] * 4)
    close(first.eta, math.sqrt(math.log(4) / 2))


def test_an_arm_that_was_never_seen_has_the_widest_interval():
    gap = naive.gaps([0.0, 9e5], [0, 1e6], t=2 * 10**6, gamma=4.0)
    rad = math.sqrt((4 * math.log(2e6) + math.log(2)) / 2e6)
    assert gap.tolist() == [0, 0]  # the smallest UCB is that of arm 1
    gap = naive.gaps([0.0, 9e5, 1e5], [0, 1e6, 1e6], t=2 * 10**6, gamma=4.0)
    assert gap[0] == 0
    assert gap[1] == pytest.approx(0.8 - 2 * rad, rel=1e-3)


def test_ties():
    star = graph(4, [(3, 0), (3, 1), (3, 2)])
    assert naive.exploration_set([0, 0, 0, 0], star, "paper") == {0, 1, 2}
    assert naive.exploration_set([0, 0, 0, 0], star, "practical") == {3}
    assert naive.exploration_set([0, 0, 0, 0.1], star, "practical") == {0, 1, 2}
    # Arms 2 and 5 reveal four arms each; after 2, arm 4 reveals two new ones and 5 only itself.
    A = graph(6, [(2, 0), (2, 1), (2, 3), (5, 0), (5, 1), (5, 3), (4, 5)], both=False)
    assert naive.exploration_set([0] * 6, A, "practical") == {2, 4}
    path = graph(6, [(i, i + 1) for i in range(5)])
    assert naive.exploration_set([0] * 6, path, "paper") == {0, 2, 4}
    assert naive.exploration_set([0] * 6, path, "practical") == {1, 4}


def test_rates_never_fall_below_those_outside_the_exploration_set():
    eps = naive.exploration_rates([0.0, 0.5, 0.5], {0, 1}, t=100, lam=1.0, beta=1e-9)
    close(eps, [0.5 * math.sqrt(math.log(3) / 900), 4e-4, 4e-4])


def test_outcomes_may_come_late_and_in_any_order():
    A, B = np.array(PATH4), graph(4, [])
    prompt, late = (naive.Exp3Gpp(4, "adaptive", start=[1]) for _ in range(2))
    first = [late.distribution(G) for G in (A, B, A)]
    assert late.t == 3
    close(first[1].p, [1 / 4] * 4)
    close(first[2].p, [1 / 4] * 4)
    for begun, arm in zip(reversed(first), (3, 2, 1), strict=True):
        late.update(begun, arm, reveal(begun.A, arm, [1.0] * 4))
    # A round's own p and graph count, not those of the round in which it is told.
    close(late.Ltilde, [0, 0, 1 / first[1].P[2] + 1 / first[2].P[2], 1 / first[2].P[3]])
    close(late.Theta, 1 + first[1].theta + first[2].theta)
    close(late.O, [1, 1, 3, 1])
    # A graph that is known only after the outcome.
    begun = prompt.distribution(B)
    prompt.update(begun, 1, reveal(A, 1, [1.0] * 4), A)
    begun = prompt.distribution(B)
    prompt.update(begun, 3, reveal(A, 3, [1.0] * 4), A)
    close(prompt.Ltilde, [0, 0, 1 / 0.75, 1 / 0.5])
    close(prompt.Theta, 1 + naive.theta(begun.p, A))


def test_theta():
    p = [0.1, 0.2, 0.3, 0.4]
    close(naive.observation(p, PATH4), [0.3, 0.6, 0.9, 0.7])
    assert naive.theta(p, PATH4) == pytest.approx(11 / 7)
    assert naive.theta([0.5, 0.5, 0, 0], PATH4) == pytest.approx(1)
    uniform = [1 / 6] * 6
    assert naive.theta(uniform, graph(6, itertools.combinations(range(6), 2), both=False)) == pytest.approx(
        sum(1 / i for i in range(1, 7))
    )
    assert naive.theta(uniform, graph(6, [(0, i) for i in range(6)], both=False)) == pytest.approx(1 + 5 / 2)


# alpha, mas, strong alpha, domination, clique cover
TABLE = {
    "complete": (graph(6, itertools.combinations(range(6), 2)), (1, 1, 1, 1, 1)),
    "loops": (graph(6, []), (6, 6, 6, 6, 6)),
    "star": (graph(6, [(0, i) for i in range(6)]), (5, 5, 5, 1, 5)),
    "out-star": (graph(6, [(0, i) for i in range(6)], both=False), (5, 6, 6, 1, 6)),
    "in-star": (graph(6, [(i, 0) for i in range(6)], both=False), (5, 6, 6, 5, 6)),
    "path": (graph(7, [(i, i + 1) for i in range(6)]), (4, 4, 4, 3, 4)),
    "directed path": (graph(7, [(i, i + 1) for i in range(6)], both=False), (4, 7, 7, 4, 7)),
    "cycle": (graph(7, [(i, i + 1) for i in range(7)]), (3, 3, 3, 3, 4)),
    "directed cycle": (graph(7, [(i, i + 1) for i in range(7)], both=False), (3, 6, 7, 4, 7)),
    "bipartite": (graph(7, itertools.product(range(3), range(3, 7))), (4, 4, 4, 2, 4)),
    "transitive tournament": (
        graph(6, itertools.combinations(range(6), 2), both=False),
        (1, 6, 6, 1, 6),
    ),
    "rotational tournament": (
        graph(7, [(i, i + k) for i in range(7) for k in (1, 2, 3)], both=False),
        (1, 4, 7, 2, 7),
    ),
    "circulant": (graph(8, [(i, i + k) for i in range(8) for k in (1, 2)]), (2, 2, 2, 2, 3)),
    "directed circulant": (
        graph(8, [(i, i + k) for i in range(8) for k in (1, 2)], both=False),
        (2, 6, 8, 3, 8),
    ),
    "wheel": (graph(7, [(6, i) for i in range(6)] + [(i, (i + 1) % 6) for i in range(6)]), (3, 3, 3, 1, 3)),
    "Petersen": (
        graph(10, [e for i in range(5) for e in ((i, (i + 1) % 5), (i, i + 5), (i + 5, (i + 2) % 5 + 5))]),
        (4, 4, 4, 3, 5),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_numbers_of_graphs(name):
    A, expected = TABLE[name]
    assert (
        naive.independence(A),
        naive.maximum_acyclic(A),
        naive.strong_independence(A),
        naive.domination(A),
        naive.clique_cover(A),
    ) == expected


def told_golden_values():
    """Yield the graph, whether estimates have predictions, and the rounds of each block of the file."""
    blocks, lines = [], (Path(__file__).parent / "advice_golden.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith("t="):
            blocks[-1][2].append({key: eval(value) for key, value in re.findall(r"(\w+)=(\([^)]*\)|\S+)", line)})  # noqa: S307
        else:
            blocks.append((line.split()[0], "<=" in line, []))
    return blocks


@pytest.mark.parametrize(("name", "predicts", "rounds"), told_golden_values())
def test_golden_values_of_advice(name, predicts, rounds):
    """Two advisers, one of whom is silent in every fourth round; the arms that are played do not depend on p."""
    A = np.tri(4) if name == "nested(4)" else np.eye(3)
    K = len(A)
    learner, sums, counts = naive.Advised(K, 2, predicts=predicts, looks=False), np.zeros(K), np.zeros(K)
    for t, golden in enumerate(rounds, start=1):
        mean = sums / np.maximum(1, counts)
        D = np.full(K, 0.1 / K)
        D[mean.argmin()] += 0.9
        advice = {0: [0.25, 0.75] + [0] * (K - 2)} | ({1: np.eye(K)[t % K]} if t % 4 else {})
        told = learner.distribution(A, D, np.where(counts > 0, mean, 0.5), advice)
        arm = 3 * t % 4 if K == 4 else t % 3
        losses = [
            (7 * t + 13 * i + 3 * t * i) % 65 / 64 * 0.6 + (i != 1) * 0.3 * (1 if t < 7 else 0.5) for i in range(K)
        ]
        revealed = reveal(A, arm, losses)
        spent = learner.update(told, arm, revealed)
        for i, loss in revealed.items():
            sums[i] += loss
            counts[i] += 1
        found = {"t": t, "arm": arm, "p": told.p, "beta": told.beta, "C": spent.C, "J": spent.J, "x": learner.x}
        found |= {"L_team": learner.L[K + 1], "L_model": learner.L[K], "Z": learner.Z[0]}
        for key, value in golden.items():
            np.testing.assert_allclose(found[key], value, rtol=0, atol=6e-13, err_msg=f"{key} in round {t}")
    assert len(rounds) == 10


def play_all(learner, losses, delay):
    """Return by expert the mean regret and the mean bound, over all draws of a game.

    Losses of round t are `losses[t]`, or mirrored if the last arm was 0; adviser 0 names arm t mod K and is silent in
    every third round; the bold half plays the arm that was not played last. A round that played arm i is told after
    `delay[i]` more asks, and all are told in the end.
    """
    T, K = len(losses), learner.K
    totals = np.zeros((2, learner.size))

    def tell(learner, told, arm, l):
        learner.update(told, arm, reveal(told.A, arm, l))

    def go(learner, t, chance, regret, last, waiting):
        if t == T:
            for told, arm, l, _ in waiting:
                tell(learner, told, arm, l)
            totals[0] += chance * regret
            totals[1] += chance * np.array([learner.bound(e) for e in range(learner.size)])
            return
        l = losses[t] if last else 1 - losses[t]
        advice = {0: np.eye(K)[t % K]} if t % 3 else {}
        told = learner.distribution(np.tri(K), np.eye(K)[1 - min(last, 1)], np.full(K, 0.3), advice)
        for arm in np.flatnonzero(told.p):
            one, more = copy.deepcopy(learner), np.zeros(learner.size)
            for e, E in told.experts.items():
                more[e] = l[arm] - E @ l
            late = [*waiting, (told, arm, l, t + delay[arm])]
            for each in late:
                if each[3] <= t:
                    tell(one, *each[:3])
            go(one, t + 1, chance * told.p[arm], regret + more, arm, [each for each in late if each[3] > t])

    go(learner, 0, 1.0, np.zeros(learner.size), 1, [])
    return totals


@pytest.mark.parametrize("delay", [(0, 0), (3, 0), (0, 2)])
@pytest.mark.parametrize("rate", ["entropy", "plain"])
def test_mean_regret_stays_below_the_mean_bound_over_all_draws(delay, rate):
    """Losses depend on earlier draws, and delays on the arm that was played."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        losses = rng.random((5, 2)) if seed % 2 else rng.integers(0, 2, (5, 2)).astype(float)
        learner = naive.Advised(2, 1, rate=rate, predicts=seed < 2, looks=False)
        regret, bound = play_all(learner, losses, delay)
        assert (regret <= bound - 0.1).all()
