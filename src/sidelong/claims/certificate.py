"""Beyond the paper: what the certificate of regret is made of (docs/proofs.md)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from sidelong import graphs, losses
from sidelong.claims.algorithm import ROUNDING, largest
from sidelong.claims.chance import least_probability, probability_fails_from
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

_PAGE = "docs/proofs.md"
_RISK = 0.05


@claim("certificate-mean", "the products behind the certificate have the mean 1", f"{_PAGE}, the proof")
def mean(trial: Trial) -> Outcome:
    """E exp(W - s L) = 1 for every arm and rate s, where losses depend on the draw before: somebody watches.

    By enumeration of all draws of a rule that adapts to what it sees. Where an arm cannot be seen, it is at most 1.
    """
    excess = []
    for world in range(trial.size(4, 1)):
        found = _means(trial, world, lambda _arm, _loss: True)
        excess += [
            float(np.abs(found - 1.0).max()),
            float(_means(trial, world, lambda *_: True, blind=True).max()) - 1.0,
        ]
    return _compared(excess)


@claim(
    "certificate-lost", "feedback that is lost, for whatever reason, keeps their mean at most 1", f"{_PAGE}, the proof"
)
def lost(trial: Trial) -> Outcome:
    """E exp(W - s L) <= 1, where feedback of one arm, of high losses or of low losses never comes, by enumeration."""
    reasons = (lambda arm, _: arm != 1, lambda _, l: l < 0.5, lambda _, l: l >= 0.5)
    games = itertools.product(range(trial.size(2, 1)), reasons)
    return _compared([float(_means(trial, world, told).max()) - 1.0 for world, told in games])


@claim("certificate-holds", "all certificates of a run hold together", f"{_PAGE}, the statement", random=True)
def holds(trial: Trial) -> Outcome:
    """With a probability of at least 95 %, regret is below the certificate at every checkpoint of a run."""
    runs, T, K = trial.size(2000, 100), 200, 5
    table = trial.rng("certificate-holds").integers(0, 2, (T, K)).astype(np.float64)
    marks = np.arange(5, T + 1, 5)
    best = np.cumsum(table, axis=0)[marks - 1].min(axis=1)
    played = graphs.path(K), losses.table(table), T
    found = simulate(
        trial.learner, *played, runs=runs, seed=trial.seed, checkpoints=marks.tolist(), progress=False, certificate=True
    )
    if found.certificate is None:
        return Outcome(np.nan, _RISK, "none", "")
    wrong = int((found.loss - best > found.certificate).any(axis=1).sum())
    least = least_probability(wrong, runs, trial.risk)
    shown = f"{wrong:,} of {runs:,} runs ever wrong, at least {least:.2g}"
    fails_from = probability_fails_from(runs, _RISK, trial.risk)
    return Outcome(least, _RISK, shown, f"{_RISK}", fails_from=fails_from)


def _means(trial: Trial, world: int, told: Callable[[int, float], bool], *, blind: bool = False) -> Floats:
    """Return the mean of the products over all draws of four rounds, for each arm and rate."""
    made, rng = trial.certificate, trial.rng(f"certificate {world}")
    graph = graphs.erdos_renyi(3, 0.4, seed=world, directed=True) if world else graphs.nested(3)
    after = rng.random((3, 3)).round(1)  # the losses of a round, by the arm that was drawn before
    rates = 0.5 ** np.arange(made.RATES)
    total = np.zeros((3, made.RATES))
    for arms in itertools.product(range(3), repeat=4):
        standing, chance, truth = made.Standing.new(3), 1.0, np.zeros(3)
        for t, arm in enumerate(arms):
            row = after[arms[t - 1] if t else 0]
            w = np.exp(-standing.arms[1])
            p = 0.02 + 0.94 * w / w.sum()
            if blind and t == 1:  # an initial round
                p = np.eye(3)[0]
            chance *= p[arm]
            if chance == 0.0:
                break
            truth += row
            known, seen = np.empty(3), np.zeros(3)
            made.freeze(standing, known)
            reveals = graph.out_neighbors(arm)
            seen[: reveals.size] = row[reveals]
            how = made.TOLD if told(arm, row[arm]) else made.NOT_TOLD
            made.settle(standing, graph.arrays, arm, p, known, seen, how, np.empty(3))
        if chance > 0.0:
            total += chance * np.exp(standing.W - np.multiply.outer(truth, rates))
    return total


def _compared(excess: list[float]) -> Outcome:
    worst = largest(excess)
    return Outcome(worst, ROUNDING, f"above 1 by up to {worst:.2g}, in {len(excess):,} games", f"{ROUNDING:.0e}")
