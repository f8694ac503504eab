"""A threshold cascade: how sure the small model must be for its answer to stand.

A small classifier of handwritten digits sees 16 coarse pixels and says how sure it is; a large one sees all 64, costs
0.2 to ask, and also judges the small one's answer. A wrong answer that stands costs 1, and nobody tells. An arm is the
threshold of confidence from which on the small model's answer stands. Half-way the camera is knocked askew by 8
degrees: the small model errs more, and is as sure of itself as before; the large one has seen such images.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import comparison
import sidelong as sl
from comparison import Comparison

if TYPE_CHECKING:
    import numpy.typing as npt

    from comparison import Floats

ROUNDS, STREAMS = 20_000, 16
# What a test checks: in each half, what exp3.g loses over what the better of the two constant rules loses.
SHARE = 0.85
FIGURE = {
    "title": "From which confidence on the small model's answer stands",
    "x": "images",
    "y": "loss beyond the best threshold of each half",
    "turn": "from here on, the camera hangs askew",
}
CASCADE = sl.outcomes.Cascade([0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], price=0.2)
OURS, LUO, SMALL, LARGE = "exp3.g, adaptive rate", "luo-2023", "always the small model", "always the large model"


class Stream(NamedTuple):
    """Images one after the other, as the small model sees them."""

    confidence: Floats
    wrong: npt.NDArray[np.bool_]  #: by the large model's word


@dataclass
class Cascades(Comparison):
    """What each contestant lost, and which threshold exp3.g played most in each half."""

    found: list[tuple[float, float]] = field(default_factory=list)  #: one pair for each stream

    @property
    def shares(self) -> tuple[float, float]:
        """What exp3.g lost in each half, over what the better of the two constant rules did."""
        ours, small, large = (np.array(self.lost(label)) for label in (OURS, SMALL, LARGE))
        before, after = (ours / np.minimum(small, large)).tolist()
        return before, after

    def __str__(self) -> str:
        rows = [f"{'lost beyond the best threshold of each half':45}{'before':>9}{'after':>9}{'in all':>9}"]
        for label in self.regret:
            before, after = self.lost(label)
            rows.append(f"{label:45}{before:9.1f}{after:9.1f}{before + after:9.1f}")
        before, after = np.median(self.found, axis=0)
        rows.append(f"exp3.g played the threshold {before:g} most before the turn, and {after:g} after it (medians).")
        return "\n".join(rows)


@cache
def shown() -> tuple[Stream, Stream]:
    """Return how sure the small model is of each image, and whether it errs: as they are, and askew."""
    images, labels = load_digits(return_X_y=True)
    seen, images, truth, _ = train_test_split(images, labels, train_size=900, random_state=0)
    small = LogisticRegression(C=0.02, max_iter=2000).fit(_coarse(seen), truth)
    turns = (-20, -10, 0, 10, 20)
    large = SVC(C=10).fit(np.concatenate([_turned(seen, by) for by in turns]), np.tile(truth, len(turns)))

    def judged(images: Floats) -> Stream:
        chances = small.predict_proba(_coarse(images))
        return Stream(chances.max(axis=1), small.classes_[chances.argmax(axis=1)] != large.predict(images))

    return judged(images), judged(_turned(images, -8))


def _coarse(images: Floats) -> Floats:
    return images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)


def _turned(images: Floats, degrees: float) -> Floats:
    return np.asarray(rotate(images.reshape(-1, 8, 8), degrees, axes=(1, 2), reshape=False, order=1).reshape(-1, 64))


def stream_of(rounds: int, number: int) -> Stream:
    """Return a stream of images: half of them as they are, half askew."""
    straight, askew = shown()
    drawn = np.random.default_rng(number).integers(len(straight.wrong), size=rounds)
    first, second = np.split(drawn, [rounds // 2])
    return Stream(*(np.concatenate([a[first], b[second]]) for a, b in zip(straight, askew, strict=True)))


def losses_of(stream: Stream) -> Floats:
    """Return the losses of all arms, one row for each image."""
    pairs = zip(stream.confidence.tolist(), stream.wrong.tolist(), strict=True)
    # Cascade has a loss for each threshold, confidence and verdict: computed once where they come again.
    kept: dict[tuple[float, bool], Floats] = {}
    return np.array([kept[pair] if pair in kept else kept.setdefault(pair, CASCADE.losses(*pair)) for pair in pairs])


def graphs_of(stream: Stream) -> sl.GraphSequence:
    """Return what each arm reveals, image by image."""
    bank = [CASCADE.graph(threshold) for threshold in CASCADE.thresholds.tolist()]
    return sl.graphs.scheduled(bank, np.searchsorted(CASCADE.thresholds, stream.confidence, "right") - 1)


def play(learner: str, stream: Stream, losses: Floats, seed: int, **options: Any) -> tuple[Floats, tuple[float, float]]:
    """Return what a learner has suffered in all, at the `marks`, and the threshold that it played most in each half."""
    graphs, world, rounds = graphs_of(stream), sl.losses.table(losses), len(losses)
    half, whole = (
        sl.simulate(learner, graphs, world, until, seed=seed, checkpoints=comparison.marks(until), **options)
        for until in (rounds // 2, rounds)
    )
    names = [*CASCADE.thresholds.tolist(), np.inf]
    most = [int(plays.argmax()) for plays in (half.plays[0], whole.plays[0] - half.plays[0])]
    return whole.loss[0], (names[most[0]], names[most[1]])


def compare(rounds: int = ROUNDS, streams: int = STREAMS) -> Cascades:
    """Let the learners and the two constant rules decide about the same images."""
    regret: dict[str, list[Floats]] = {label: [] for label in (OURS, LUO, SMALL, LARGE)}
    found, measured = [], comparison.marks(rounds)
    luo = {"horizon": rounds, "observability": "weak", "independence": 1, "domination": 1}
    for number in range(streams):
        stream = stream_of(rounds, number)
        losses = losses_of(stream)
        halves = np.split(losses, [rounds // 2])
        best = np.concatenate([half[:, half.sum(axis=0).argmin()] for half in halves]).cumsum()[measured - 1]
        ours, came_to = play("exp3.g", stream, losses, number, rate="adaptive")
        found.append(came_to)
        regret[OURS].append(ours - best)
        regret[LUO].append(play("luo-2023", stream, losses, number, **luo)[0] - best)
        for label, arm in ((SMALL, 0), (LARGE, -1)):
            regret[label].append(comparison.in_all(losses[:, arm].tolist()) - best)
    return Cascades(measured, {label: np.array(rows) for label, rows in regret.items()}, found)


if __name__ == "__main__":
    comparison.main(sys.modules[__name__])
