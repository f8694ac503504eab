"""The docstring of `sidelong.evaluation.weighing`, round by round: an oracle for what the service keeps of an arm."""

import math

import numpy as np

RATES = [2.0**-k for k in range(1, 17)]


def wealth(X, squares, cost):
    """What Ville's inequality bounds, if this is the sum of the means: the mean over the rates."""
    exponents = [s * (X - cost) - (-math.log(1 - s) - s) * squares for s in RATES]
    return np.mean([math.exp(min(each, 700.0)) for each in exponents])


def naive(told, arm, rounds):
    """Return the estimate of an arm, and X with its squares for both ends.

    `told` has a dictionary for each told round, in the order in which they came: of each revealed arm its loss, and the
    probability that it would be revealed. There were `rounds` rounds in all.
    """
    total, seen, value = 0.5, 1, 0.0
    ends = np.zeros((2, 2))
    for revealed in told:
        b = total / seen
        loss, P = revealed.get(arm, (0.0, math.inf))
        value += b + (loss - b) / P
        X = np.array([loss / P, (1 - loss) / P])
        ends += np.stack([X, (X - [b, 1 - b]) ** 2], axis=1)
        if arm in revealed:
            total, seen = total + loss, seen + 1
    ends[:, 1] += rounds - len(told)
    return value / max(len(told), 1), ends


def limit(X, squares, rounds, risk):
    """Return the least mean cost that is not ruled out, by trying."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if wealth(X, squares, rounds * middle) >= 1 / risk else (low, middle)
    return low
