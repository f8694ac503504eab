"""Early exit: after which of its stages a classifier should stop.

A boosted classifier of handwritten digits has 16 stages, and may answer after any of them. A wrong answer costs 0.8,
and all 16 stages cost 0.2. Who ran stage k has run those before it, so that once the label is known, he knows what
stopping at each of them would have cost. Half-way somebody knocks against the camera, and it hangs askew by 15 degrees.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import comparison
import sidelong as sl

if TYPE_CHECKING:
    from comparison import Comparison, Floats

ROUNDS, STREAMS = 8000, 16
# What a test checks: the share that looking to the side saves, and the rival's loss after the turn over ours.
SAVES, FACTOR = 0.4, 4.0
FIGURE = {
    "title": "After which stage to stop",
    "x": "images",
    "y": "loss beyond the best stage of each half",
    "turn": "from here on, the camera hangs askew",
}
STAGES = 16
GRAPH = sl.graphs.nested(STAGES)  # stage k shows what the earlier ones would have answered


@cache
def losses_by_image() -> tuple[Floats, Floats]:
    """Return the loss of stopping at each stage, one row an image: as they are, and turned by 15 degrees."""
    images, labels = load_digits(return_X_y=True)
    seen, images, truth, labels = train_test_split(images, labels, train_size=900, random_state=0)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=STAGES, random_state=0)
    model.fit(seen, truth)
    askew = rotate(images.reshape(-1, 8, 8), -15, axes=(1, 2), reshape=False, order=1).reshape(-1, 64)

    def losses(shown: Floats) -> Floats:
        wrong = np.array([answers != labels for answers in model.staged_predict(shown)]).T
        return 0.8 * wrong + 0.2 * np.arange(1, STAGES + 1) / STAGES

    return losses(images), losses(askew)


def world(rounds: int, stream: int) -> Floats:
    """Return the losses of a stream of images: half of them as they are, half askew."""
    straight, askew = losses_by_image()
    drawn = np.random.default_rng(stream).integers(len(straight), size=rounds)
    half = rounds // 2
    return np.concatenate([straight[drawn[:half]], askew[drawn[half:]]])


def compare(rounds: int = ROUNDS, streams: int = STREAMS) -> Comparison:
    """Let the three contestants play the same images."""
    return comparison.compare_on(GRAPH, world, rounds, streams)


if __name__ == "__main__":
    comparison.main(sys.modules[__name__])
