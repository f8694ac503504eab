"""Stopping times of track-and-stop: A. Russo, Y. Song, A. Pacchiano, "Pure Exploration with Feedback Graphs", 2025.

Four families of random, estimated graphs, five arms, Gaussian rewards of deviation 1. Published are means over 50 runs,
from github.com/rssalessio/Pure-Exploration-with-Feedback-Graphs, data/full_data.lzma. The kernels of the learner play,
since no agent takes losses outside of [0, 1].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import sidelong as sl
from sidelong._jit import compiled
from sidelong.learners import tasfg
from sidelong.learners.interface import Asked, Told

K, RUNS = 5, 50
LADDER, LAST = np.linspace(0.0, 1.0, K), np.append(np.full(K - 1, 0.5), 1.0)


def loopless_clique() -> np.ndarray:
    """Return the probabilities with which playing i reveals j."""
    share = 0.5 / np.arange(1, K + 1)
    G = np.where(np.arange(K) % 2 == 0, 1.0 - share[:, None], share[:, None])
    np.fill_diagonal(G, 0.0)
    return G


def loopy_star(p: float, r: float) -> np.ndarray:
    """Return the same for a centre, arm 0, that may reveal all; arm i > 0 reveals itself."""
    G = np.diag([0.25, *[max(0.0, 1.0 - 2.0 * p)] * (K - 2), 1.0 - p])
    G[0, 1:-1], G[0, -1] = r, p
    return G


def ring() -> np.ndarray:
    """Return the same for a ring: the arm before is revealed with 0.7, the one after with 0.3."""
    return 0.7 * np.roll(np.eye(K), -1, axis=1) + 0.3 * np.roll(np.eye(K), 1, axis=1)


#: Family: its graph, the mean rewards, and what is published for delta = e^-1 and e^-7, each with its standard error.
CASES = {
    "loopless clique": (loopless_clique(), LADDER, (1176, 103), (2120, 129)),
    "loopy star": (loopy_star(0.2, 0.25), LAST, (936, 45), (1448, 36)),
    "loopy star, other": (loopy_star(0.0, 0.125 / (K - 1)), LAST[::-1], (1301, 130), (2377, 130)),
    "ring": (ring(), LADDER, (1615, 168), (3105, 183)),
}


def stopping_times(G: np.ndarray, rewards: np.ndarray, logs: tuple[float, ...], seed: int) -> list[tuple[int, bool]]:
    """Return for each ln(1 / delta) the round before which a run stops, and whether its best arm is the best."""
    rng = np.random.default_rng(seed)
    params = tasfg.configure(sl.graphs.complete(K), deviation=1.0, edges="estimated")
    state = tasfg.init(params, sl.graphs.complete(K))
    p, trace, row, found = np.zeros(K), np.zeros(1), np.zeros((K, K), np.bool_), list[tuple[int, bool]]()
    ask = tell = None
    for t in range(1, 1_000_000):
        asked = Asked.new(t, p, trace)
        arrays = sl.FeedbackGraph.from_matrix(row).arrays
        ask = ask or compiled(tasfg.distribution, params, state, arrays, asked)
        ask(params, state, arrays, asked)
        while len(found) < len(logs) and trace[0] >= tasfg.threshold(t, math.exp(-logs[len(found)])):
            found.append((t, int(state.mean.argmin()) == int(rewards.argmax())))
        if len(found) == len(logs):
            return found
        row[:], arm = False, int(p.argmax())
        row[arm] = rng.random(K) < G[arm]
        losses = np.append(1.0 - rng.normal(rewards, 1.0)[row[arm]], np.zeros(K - row[arm].sum()))
        arrays = sl.FeedbackGraph.from_matrix(row).arrays
        told = Told.new(t, arm, p, losses, trace)
        tell = tell or compiled(tasfg.update, params, state, arrays, told)
        tell(params, state, arrays, told)
    raise RuntimeError("It did not stop.")


def play() -> dict[str, Any]:
    """Return for delta = e^-1 and e^-7 the mean rounds with their standard errors, and the share of right answers."""
    found = {}
    for name, (graph, rewards, *known) in CASES.items():
        runs = np.array([stopping_times(graph, rewards, (1.0, 7.0), seed) for seed in range(RUNS)])
        means, right = runs.mean(axis=0).T
        errors = runs[:, :, 0].std(axis=0, ddof=1) / math.sqrt(RUNS)
        found[name] = {"published": [list(each) for each in known], "right": right.tolist()}
        found[name]["ours"] = np.column_stack([means, errors]).tolist()
    return found


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    made = []
    for name, of in found.items():
        both = of["published"], of["ours"]
        published, ours = (" / ".join(f"{mean:,.0f} ± {error:,.0f}" for mean, error in each) for each in both)
        right = " / ".join(f"{100 * share:.0f} %" for share in of["right"])
        setting = f"TaS-FG, {name}, five arms, rounds until it stops with δ = e⁻¹ / e⁻⁷"
        made.append(("Russo and others, AISTATS 2025", setting, published, f"{ours}; right answers {right}"))
    return made
