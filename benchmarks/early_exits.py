"""Classification data sets that come with scikit-learn, as decisions with features.

A boosted classifier may answer after any of its stages. A wrong answer costs 0.8, and all stages together 0.2. Who ran
a stage has run those before it, and so knows what stopping there would have cost: the graph is nested. What is known
before is the example itself: its features, or their first 16 principal components, each of the size of 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["NAMES", "Problem", "linear", "orders", "problem"]

#: How many trees, and how deep.
_MODELS = {
    "digits": (64, 3),
    "wine": (8, 1),
    "iris": (8, 1),
    "breast_cancer": (16, 1),
    "classification": (16, 1),
    "hastie": (64, 1),
}
#: Two that are drawn by scikit-learn, in place of a data set.
_DRAWN = {
    "classification": lambda: datasets.make_classification(2_000, 16, n_informative=8, n_classes=3, random_state=0),
    "hastie": lambda: datasets.make_hastie_10_2(2_000, random_state=0),
}
NAMES = ("digits", "wine", "iris", "breast_cancer")


class Problem(NamedTuple):
    """What is known in each round, and what each arm would cost."""

    name: str
    x: Floats
    losses: Floats


def problem(name: str, arms: int = 4, rounds: int = 2_000, seed: int = 0, split: int = 0) -> Problem:
    """Return a stream of examples that the classifier was not trained on, drawn with the seed.

    Which examples it is trained on is drawn with `split`.
    """
    images, labels = _DRAWN[name]() if name in _DRAWN else getattr(datasets, f"load_{name}")(return_X_y=True)
    seen, shown, truth, answers = train_test_split(images, labels, train_size=0.4, random_state=split, stratify=labels)
    trees, depth = _MODELS[name]
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=trees, random_state=0)
    stages = np.array(list(model.fit(seen, truth).staged_predict(shown)))
    ends = np.round(np.geomspace(1, len(stages), arms)).astype(int)
    losses = 0.8 * (stages[ends - 1] != answers).T + 0.2 * np.arange(1, arms + 1) / arms
    scaler = StandardScaler().fit(seen)
    x = scaler.transform(shown)
    if x.shape[1] > 16:
        x = PCA(16, random_state=0).fit(scaler.transform(seen)).transform(shown)
    x /= np.sqrt((x**2).mean(axis=0))
    drawn = np.random.default_rng(seed).integers(len(x), size=rounds)
    return Problem(name, x[drawn], losses[drawn])


def orders(name: str, arms: int = 4, rounds: int = 2_000, seed: int = 0) -> Problem:
    """Return orders for a demand that a regression problem of scikit-learn predicts, "diabetes" or "friedman1".

    Demand goes from 0 to 1, and orders go up in equal steps to 1. What is left over costs 1, and what is sold brings 2,
    for each unit. A larger order shows what a smaller one would have cost.
    """
    if name == "diabetes":
        x, demand = datasets.load_diabetes(return_X_y=True)
    else:
        x, demand = datasets.make_friedman1(2_000, noise=1.0, random_state=0)
    demand = (demand - demand.min()) / np.ptp(demand)
    order = np.arange(1, arms + 1) / arms
    sold = np.minimum(order, demand[:, None])
    losses = (order - 3 * sold + 2) / 3  # from 0, for 1 sold, to 1, for 1 left over
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    shown = np.random.default_rng(seed).integers(len(x), size=rounds)
    return Problem(name, x[shown], losses[shown])


def linear(arms: int, features: int = 16, rounds: int = 2_000, seed: int = 0) -> Problem:
    """Return losses 0 or 1 whose chances are linear in the features."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rounds, features))
    means = np.clip(0.4 + x @ rng.normal(size=(features, arms)) * 0.2 / np.sqrt(features), 0, 1)
    return Problem(f"linear, {features} features", x, (rng.random((rounds, arms)) < means).astype(np.float64))
