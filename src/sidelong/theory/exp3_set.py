"""What EXP3-SET promises where arms come and go, where the best arm moves, and after a head start.

The proofs stand in the files of the learner: ``absent.py``, ``exp3set_tracking.py`` and ``prior.py`` of
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
