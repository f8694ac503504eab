"""The rule of `agent.stop`: how often it is ever wrong, where it is most likely to be."""

from __future__ import annotations

import numpy as np

from sidelong.claims.chance import least_probability, probability_fails_from
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.evaluation.stopping import best_arm

_RISK = 0.05


@claim("stop-holds", "no answer of agent.stop is ever wrong", "docs/stopping.md", random=True)
def holds(trial: Trial) -> Outcome:
    """With a probability of at least 95 %, no arm is called the best that is not, at any moment of a run.

    Three arms have the same mean, so that every answer is wrong, and their losses move against each other.
    """
    runs, T = trial.size(1000, 100), 300
    rng, wrong = trial.rng("stop-holds"), 0
    counts = np.arange(1, T + 1)
    for _ in range(runs):
        first = rng.integers(0, 2, T).astype(np.float64)
        means = np.cumsum([first, 1.0 - first, rng.integers(0, 2, T)], axis=1) / counts
        wrong += any(best_arm(np.full(3, t), means[:, t - 1], 1 - _RISK) is not None for t in range(1, T + 1, 3))
    least = least_probability(wrong, runs, trial.risk)
    shown = f"{wrong:,} of {runs:,} runs ever wrong, at least {least:.2g}"
    return Outcome(least, _RISK, shown, f"{_RISK}", fails_from=probability_fails_from(runs, _RISK, trial.risk))
