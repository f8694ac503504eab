"""Routing among models with shadow runs: which of six should answer.

Each question goes to one of six classifiers. A wrong answer costs 0.8, and the price of the model is up to 0.2. By
night there is capacity to spare: the other models answer too, in the shadow, and their answers are judged. By day there
is none. Half-way a new product comes out: half of the questions by day are about it, and no model can answer them.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import comparison
import sidelong as sl

if TYPE_CHECKING:
    import numpy.typing as npt

    from comparison import Comparison, Floats

ROUNDS, STREAMS = 6000, 24
# What a test checks: the share that looking to the side saves, and the rival's loss after the turn over ours.
SAVES, FACTOR = 0.4, 8.0
FIGURE = {
    "title": "Which of six models should answer",
    "x": "questions",
    "y": "loss beyond the best model of each half",
    "turn": "from here on, half by day have no answer",
}
MODELS = {  # and what a question costs, of 1 for the dearest that one could rent
    DecisionTreeClassifier(max_depth=6, random_state=0): 0.05,
    GaussianNB(): 0.1,
    RidgeClassifier(): 0.2,
    LogisticRegression(max_iter=1000): 0.2,
    RandomForestClassifier(60, random_state=0): 0.5,
    SVC(): 0.7,
}
DAY, NIGHT = 120, 80  # questions


@cache
def wrong() -> npt.NDArray[np.bool_]:
    """Return which model errs on which question."""
    images, labels = load_digits(return_X_y=True)
    seen, images, truth, labels = train_test_split(images / 16, labels, train_size=900, random_state=0)
    return np.array([model.fit(seen, truth).predict(images) != labels for model in MODELS]).T


def world(rounds: int, stream: int) -> Floats:
    """Return the losses of a stream of questions."""
    rng = np.random.default_rng(stream)
    t = np.arange(rounds)
    unanswerable = (t >= rounds // 2) & (t % (DAY + NIGHT) < DAY) & (rng.random(rounds) < 0.5)
    errs = wrong()[rng.integers(len(wrong()), size=rounds)] | unanswerable[:, None]
    return 0.8 * errs + 0.2 * np.array(list(MODELS.values()))


def compare(rounds: int = ROUNDS, streams: int = STREAMS) -> Comparison:
    """Let the three contestants route the same questions."""
    alone, shadowed = sl.graphs.self_loops(len(MODELS)), sl.graphs.complete(len(MODELS))
    graphs = sl.graphs.scheduled([alone, shadowed], [0] * DAY + [1] * NIGHT)
    return comparison.compare_on(graphs, world, rounds, streams)


if __name__ == "__main__":
    comparison.main(sys.modules[__name__])
