"""The docstring of `sidelong.evaluation.weighing`, round by round: an oracle for what the service keeps of an arm."""

import math

import numpy as np

RATES = [2.0**-k for k in range(1, 17)]


def wealth(X, squares, cost):
    """What Ville's inequality bounds, if this is the sum of the means: the mean over the rates."""
    exponents = [s * (X - cost) - (-math.log(1 - s) - s) * squares for s in RATES]
    return np.mean([math.exp(min(each, 700.0)) for each in exponents])


def naive(rounds, arm, before=None):
    """Return the estimate of an arm, and X with its squares for both ends.

    `rounds` has, in the order of the draws, None for a round that was never told, and else a dictionary: of each
    revealed arm its loss, and the probability that it would be revealed. `before[t]` are the rounds that were told when
    round t was drawn; all earlier ones if not given.
    """
    baselines, residuals, ends = [], [], np.zeros((2, 2))
    for t, revealed in enumerate(rounds):
        known = [rounds[s][arm][0] for s in (range(t) if before is None else before[t]) if arm in (rounds[s] or ())]
        b = (0.5 + sum(known)) / (1 + len(known))
        loss, P = (revealed or {}).get(arm, (0.0, math.inf))
        baselines.append(b)
        if revealed is not None:
            residuals.append((loss - b) / P)
        X = np.array([loss / P, (1 - loss) / P])
        ends += np.stack([X, (X - [b, 1 - b]) ** 2], axis=1)
    return np.mean(baselines) + np.mean(residuals), ends


def limit(X, squares, rounds, risk):
    """Return the least mean cost that is not ruled out, by trying."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if wealth(X, squares, rounds * middle) >= 1 / risk else (low, middle)
    return low
