"""Nightly training length: after how many epochs to stop.

Every night forty shops train a model of their own on what came in that day, for up to 40 epochs. The error of the model
costs up to 0.8, and 40 epochs cost 0.2. Who trained for e epochs, and tested after each, knows what every shorter
training would have cost. Half-way the labels get worse: four in ten are guessed.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

import comparison
import sidelong as sl

if TYPE_CHECKING:
    import numpy.typing as npt

    from comparison import Comparison, Floats

ROUNDS, STREAMS = 4000, 12
# What a test checks: the share that looking to the side saves, and the rival's loss after the turn over ours.
SAVES, FACTOR = 0.5, 3.0
FIGURE = {
    "title": "After how many epochs to stop",
    "x": "trainings",
    "y": "loss beyond the best length of each half",
    "turn": "from here on, labels are worse",
}
EPOCHS = 40
GRAPH = sl.graphs.nested(EPOCHS)  # a training shows what every shorter one would have given
TRAININGS, IMAGES, TESTED = 6, 200, 50  # trainings to draw from, images in each, and images that it is tested on
GUESSED = 0.4  # the share of labels that are, in the second half


@cache
def trainings(guessed: float) -> npt.NDArray[np.bool_]:
    """Return which images a model gets wrong, by training, image and epoch, if a share of the labels is guessed."""
    images, labels = load_digits(return_X_y=True)
    images, tests, labels, truth = train_test_split(images / 16, labels, train_size=900, random_state=0)
    wrong = np.empty((TRAININGS, truth.size, EPOCHS), np.bool_)
    for night in range(TRAININGS):
        rng = np.random.default_rng(night)
        day = rng.integers(len(images), size=IMAGES)
        told = np.where(rng.random(IMAGES) < guessed, rng.integers(10, size=IMAGES), labels[day])
        model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.002, random_state=night)
        for epoch in range(EPOCHS):
            wrong[night, :, epoch] = model.partial_fit(images[day], told, range(10)).predict(tests) != truth
    return wrong


def world(rounds: int, stream: int) -> Floats:
    """Return the losses of a stream of trainings: each is drawn, and the images it is tested on, with replacement."""
    rng = np.random.default_rng(stream)
    half = rounds // 2
    errors = []
    for wrong, length in ((trainings(0.0), half), (trainings(GUESSED), rounds - half)):
        nights = rng.integers(TRAININGS, size=(length, 1))
        errors.append(wrong[nights, rng.integers(wrong.shape[1], size=(length, TESTED))].mean(axis=1))
    return 0.8 * np.concatenate(errors) + 0.2 * np.arange(1, EPOCHS + 1) / EPOCHS


def compare(rounds: int = ROUNDS, streams: int = STREAMS) -> Comparison:
    """Let the three contestants choose the length of the same trainings."""
    return comparison.compare_on(GRAPH, world, rounds, streams)


if __name__ == "__main__":
    comparison.main(sys.modules[__name__])
