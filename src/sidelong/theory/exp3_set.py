"""What EXP3-SET promises where arms come and go, where the best arm moves, and after a head start.

The proofs stand in the files of the learner: ``absent.py``, ``exp3set_tracking.py`` and ``head_start.py`` of
`sidelong.learners`. `theta_sum` is the expected sum of theta over the rounds that count, or a bound on it, such as the
number of rounds times the size of the largest acyclic set of arms.
"""

from __future__ import annotations

import math

from sidelong.errors import TheoryError
from sidelong.theory.checks import at_least_two, number, whole


def absent(*, K: int, theta_sum: float, K_first: int | None = None) -> float:
    """Return 2 sqrt(ln K theta_sum) + sqrt(K ln K): the regret against an arm, over the rounds in which it is there.

    Args:
        K: how many arms there have been by the end, retired ones among them.
        theta_sum: the expected sum of theta over all rounds.
        K_first: how many arms there were in the beginning, if more were added later. Then the bound is
            ln K sqrt((K + theta_sum) / ln K_first) + sqrt(ln K_first theta_sum), with K_first at least 2.
    """
    K = at_least_two(K)
    theta_sum = number("theta_sum", theta_sum, least=0)
    first = K if K_first is None else max(2, whole("K_first", K_first))
    if first > K:
        raise TheoryError(f"K_first is how many of the {K} arms there were in the beginning, not {K_first}.")
    if first == K:
        return 2 * math.sqrt(math.log(K) * theta_sum) + math.sqrt(K * math.log(K))
    return math.log(K) * math.sqrt((K + theta_sum) / math.log(first)) + math.sqrt(math.log(first) * theta_sum)


def tracking(
    *,
    K: int,
    T: float,
    switches: int,
    theta_sum: float,
    track: int | str = "unknown",
    horizon: int | None = None,
    eta_scale: float = 1.0,
) -> float:
    """Return the bound on the regret against every sequence of arms with at most so many switches.

    (B / sqrt(c) + sqrt(c)) sqrt(theta_sum) + B sqrt(K / c), where B = (S + 1) ln(K T) + ln T and c = (S' + 1) ln K with
    the S' that the learner was told, or 0. With the horizon, ln T in B is 1, and c = (S' + 1) ln(K horizon) + 1.

    Args:
        K: the number of arms.
        T: the number of rounds.
        switches: S, how often the sequence changes its arm.
        theta_sum: the expected sum of theta over all rounds.
        track: what the learner was told: how often the best arm changes, or "unknown".
        horizon: the horizon that it was told, if any.
        eta_scale: its factor on the learning rate, m: c is m^2 times as large.
    """
    K, T = at_least_two(K), number("T", T, least=1, most=1e100)
    S, theta_sum = whole("switches", switches, least=0), number("theta_sum", theta_sum, least=0)
    told = 0 if track == "unknown" else whole("track", track, least=0)
    m = number("eta_scale", eta_scale, above=0)
    if horizon is not None and whole("horizon", horizon) < T:
        raise TheoryError(f"The bound holds within the horizon: T is {T:g}, and the horizon {horizon}.")
    H = T if horizon is None else horizon
    B = (S + 1) * math.log(K * H) + (math.log(T) if horizon is None else 1)
    c = (told + 1) * math.log(K) if horizon is None else (told + 1) * math.log(K * H) + 1
    c *= m**2
    return (B / math.sqrt(c) + math.sqrt(c)) * math.sqrt(theta_sum) + B * math.sqrt(K / c)


def prior(*, K: int, theta_sum: float, q_1: float, eta_scale: float = 1.0) -> float:
    """Return the bound on the regret against an arm that a prior gives the probability `q_1` in round 1.

    2 sqrt(ln K theta_sum) + ln(1 / q_1) sqrt(K / ln K); for another factor m on the rate,
    (m + 1 / m) sqrt(ln K theta_sum) + ln(1 / q_1) sqrt(K / ln K) / m.
    """
    K, theta_sum = at_least_two(K), number("theta_sum", theta_sum, least=0)
    q_1, m = number("q_1", q_1, above=0, most=1), number("eta_scale", eta_scale, above=0)
    log_K = math.log(K)
    return (m + 1 / m) * math.sqrt(log_K * theta_sum) + math.log(1 / q_1) * math.sqrt(K / log_K) / m
