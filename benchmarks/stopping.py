"""When track-and-stop stops, beside the stopping times that its authors have published.

A. Russo, Y. Song, A. Pacchiano, "Pure Exploration with Feedback Graphs", AISTATS 2025: four families of graphs whose
edges are random and estimated, Gaussian rewards of deviation 1, five arms. Published are means over 50 runs with their
standard errors, computed from the data file of their repository
(github.com/rssalessio/Pure-Exploration-with-Feedback-Graphs, data/full_data.lzma).

``python benchmarks/published stopping_times`` plays them for the table of docs/published.md, by the kernels of the
learner, since no agent takes losses outside of [0, 1].
"""

from __future__ import annotations

import math

import numpy as np

import sidelong as sl
from sidelong._jit import compiled
from sidelong.learners import tasfg
from sidelong.learners.interface import Asked, Told

K = 5
LADDER = np.linspace(0.0, 1.0, K)


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
    "loopy star": (loopy_star(0.2, 0.25), np.array([0.5] * (K - 1) + [1.0]), (936, 45), (1448, 36)),
    "loopy star, other": (
        loopy_star(0.0, 0.125 / (K - 1)),
        np.array([1.0] + [0.5] * (K - 1)),
        (1301, 130),
        (2377, 130),
    ),
    "ring": (ring(), LADDER, (1615, 168), (3105, 183)),
}


def stopping_times(G: np.ndarray, rewards: np.ndarray, logs: tuple[float, ...], seed: int) -> list[tuple[int, bool]]:
    """Return for each ln(1 / delta) the round before which a run stops, and whether its best arm is the best."""
    rng = np.random.default_rng(seed)
    params = tasfg.configure(sl.graphs.complete(K), deviation=1.0, edges="estimated")
    state = tasfg.init(params, sl.graphs.complete(K))
    p, trace, row = np.zeros(K), np.zeros(1), np.zeros((K, K), np.bool_)
    ask = tell = None
    found: list[tuple[int, bool]] = []
    for t in range(1, 1_000_000):
        asked = Asked.new(t, p, trace)
        arrays = sl.FeedbackGraph.from_matrix(row).arrays
        ask = ask or compiled(tasfg.distribution, params, state, arrays, asked)
        ask(params, state, arrays, asked)
        while len(found) < len(logs) and trace[0] >= tasfg.threshold(t, math.exp(-logs[len(found)])):
            found.append((t, int(state.mean.argmin()) == int(rewards.argmax())))
        if len(found) == len(logs):
            return found
        arm = int(p.argmax())
        row[:] = False
        row[arm] = rng.random(K) < G[arm]
        losses = 1.0 - rng.normal(rewards, 1.0)[row[arm]]
        arrays = sl.FeedbackGraph.from_matrix(row).arrays
        told = Told.new(t, arm, p, np.append(losses, np.zeros(K - losses.size)), trace)
        tell = tell or compiled(tasfg.update, params, state, arrays, told)
        tell(params, state, arrays, told)
    raise RuntimeError("It did not stop.")
