"""Logs of a rule that adapts, on a small graph: of given draws with their probability, and of random ones."""

import numpy as np

from sidelong.evaluation import DecisionLog

#: Playing 0 reveals 0 and 1, playing 1 reveals 1 and 2, playing 2 reveals itself.
A = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], bool)


def rule(sums, counts):
    """Return the probabilities of a learner that adapts, fast and badly."""
    weights = np.exp(-3.0 * sums / np.maximum(counts, 1.0))
    return 0.1 / sums.shape[-1] + 0.9 * weights / weights.sum(axis=-1, keepdims=True)


def play(losses, graph, arms, told=None):
    """Return the log of these draws, and the probability of drawing them."""
    K = len(graph)
    sums, counts = np.zeros((2, K))
    chance, rows = 1.0, []
    told = np.ones(len(losses), bool) if told is None else told
    for t, played in enumerate(arms):
        p = rule(sums, counts)
        chance *= p[played]
        if not told[t]:
            continue
        for a in np.flatnonzero(graph[played]):
            rows.append((t, a, losses[t, a], (p @ graph)[a]))
            sums[a] += losses[t, a]
            counts[a] += 1
    cost = np.where(told, losses[np.arange(len(losses)), arms], np.nan)
    t, a, l, P = np.array(rows).reshape(-1, 4).T
    return DecisionLog(K, told, cost, t.astype(np.int64), a.astype(np.int64), l, P), chance


def draw(losses, graph, rng, runs=1, told=None):
    """Return the logs of several runs of the rule, each with its own losses: losses[run, t, arm]."""
    losses = np.broadcast_to(losses, (runs, *losses.shape[-2:]))
    sums, counts = np.zeros((2, runs, len(graph)))
    arms = np.empty(losses.shape[:2], int)
    for t in range(losses.shape[1]):
        cumulative = rule(sums, counts).cumsum(axis=1)
        arms[:, t] = (rng.random((runs, 1)) > cumulative[:, :-1]).sum(axis=1)
        if told is None or told[t]:
            sums += graph[arms[:, t]] * losses[:, t]
            counts += graph[arms[:, t]]
    return [play(losses[run], graph, arms[run], told)[0] for run in range(runs)]
