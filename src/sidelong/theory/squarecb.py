"""What SquareCB.G promises, given how well its regressor predicts; the proofs stand in ``learners/squarecb.py``.

Regret is against the best arm of each round, whatever the features are. It is bounded by `errors`: the sum, over all
rounds and all arms that were revealed, of the squared difference between the prediction as it was made and the true
mean. Online ridge regression, on losses that are linear in d features, errs by the order of d ln T for each arm.
"""

from __future__ import annotations

import math

from sidelong.theory.checks import number, whole


def value(*, size: int, gamma: float, nested_gap: float | None = None) -> float:
    """Return the bound on the value of what is played, dec(p): (size + 1) / gamma.

    Args:
        size: of S, the arms that may be played: at most the strong independence number of the graph.
        gamma: of the round.
        nested_gap: where the arms of S form a chain, as on nested graphs, how far the largest prediction in S is above
            the least. Then it is (2 + ln(1 + gamma nested_gap)) / gamma if that is less.
    """
    size, gamma = whole("size", size), number("gamma", gamma, above=0)
    bound = (size + 1) / gamma
    if nested_gap is None:
        return bound
    gap = number("nested_gap", nested_gap, least=0, most=1)
    return min(bound, (2 + math.log1p(gamma * gap)) / gamma)


def regret(*, K: int, errors: float, value_sum: float, gamma_scale: float | None = None) -> float:
    """Return (2 / m) sqrt(value_sum) + (m errors / 4) sqrt(K + 1 + value_sum), with the factor m on gamma.

    For m = sqrt(8 / errors), which is taken if none is given, that is at most sqrt(2 errors (K + 1 + value_sum)).

    Args:
        K: the number of arms.
        errors: what the squared errors of the revealed arms sum to, at most, on every path.
        value_sum: the sum over the rounds of gamma times the value of what was played, or of its bounds, such as the
            strong independence number plus 1.
        gamma_scale: m.
    """
    K, errors = whole("K", K), number("errors", errors, above=0)
    value_sum = number("value_sum", value_sum, least=0)
    m = math.sqrt(8 / errors) if gamma_scale is None else number("gamma_scale", gamma_scale, above=0)
    return 2 / m * math.sqrt(value_sum) + m * errors / 4 * math.sqrt(K + 1 + value_sum)
