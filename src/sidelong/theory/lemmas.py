r"""The lemmas and propositions of the paper whose statements are formulas, by their numbers.

=============  =====================================================================================================
Lemma 1        the estimates of the gaps: too large (`lemma_1_upper`), too small (`lemma_1_lower`)
Lemma 2        a series: Lemma 11 of Seldin and Lugosi (2017); false as printed
Lemma 3        a series: Lemma 8 of Seldin, Bartlett, Crammer and Abbasi-Yadkori (2014)
Lemma 4        a series that is one term behind
Lemma 5        two series: Lemma 3 of Thune and Seldin (2018)
Lemma 6        exponential weights: Lemma 7 of Seldin and Slivkins (2014)
Lemma 7        theta is at most the size of the largest acyclic set: Lemma 10 of Alon et al. (2014); no formula
Lemma 8        the confidence intervals
Lemma 9        the rate of observation
Lemma 10       theta and the independence number: Lemma 5 of Alon et al. (2015)
Proposition 1  the exploration set dominates and is strongly independent; no formula
Proposition 2  the exponential weights' share of the regret, as the proof of Theorem 3 has it
Proposition 3  the exploration's share, as the proof of Theorem 3 has it
Proposition 4  mas <= alpha~; no formula
Proposition 5  t_min in closed form
Proposition 6  R_tmin in closed form
Proposition 7  the exponential weights in one round
Proposition 8  the exploration's share, for the sets that were played
=============  =====================================================================================================

``as_printed=True`` and the numbers of errata are as in `sidelong.theory.bounds`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sidelong.errors import TheoryError
from sidelong.theory.bounds import BETA, GAMMA
from sidelong.theory.checks import at_least_two, horizon, number, positive_gap, read_gaps, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sidelong.theory.checks import Gaps


def lemma_1_upper(*, K: int, t: float, gamma: float = GAMMA, as_printed: bool = False) -> float:
    """Return a bound on the chance that an estimated gap exceeds the arm's gap, or the smallest one if that is larger.

    1 / t^(gamma - 1). Printed: 1 / (K t^(gamma - 1)), which forgets that any of K arms may fail (E6); the paper never
    uses the K.
    """
    K, t, gamma = at_least_two(K), number("t", t, least=1), number("gamma", gamma, least=1)
    return math.pow(t, 1 - gamma) / (K if as_printed else 1)


def lemma_1_lower(
    *, K: int, t: float, gap: float, gamma: float = GAMMA, beta: float = BETA, as_printed: bool = False
) -> float:
    """Return a bound on the chance that the estimate of a positive gap is at most half of it, in a round after t_min.

    2 B + 2 / (K t^(gamma - 1)) + 2 / t^(beta / 10), where B is Lemma 9. Printed: (ln t / (t gap^2))^(gamma - 2) in the
    place of 2 B, from Lemma 2, which is false (E9); at the paper's constants the two differ by less than one part in a
    million.
    """
    K, t, gamma = at_least_two(K), number("t", t, above=1), number("gamma", gamma, least=3)
    beta = number("beta", beta, least=64 * (gamma + 1))
    rare = lemma_9(t=t, gap=gap, gamma=gamma, as_printed=as_printed)
    return (1 if as_printed else 2) * rare + 2 * math.pow(t, 1 - gamma) / K + 2 * math.pow(t, -beta / 10)


def lemma_2(*, gamma: float, m: float, as_printed: bool = False) -> float:
    """Return a bound on the sum of 1 / k^gamma over all k >= m.

    1 / m^gamma + 1 / ((gamma - 1) m^(gamma - 1)): the first term and an integral. Printed: 1 / (2 m^(gamma - 1)),
    which is false (E9): for gamma = 3 and m = 1 the sum is 1.202.
    """
    gamma, m = number("gamma", gamma, least=2), number("m", m, least=1)
    if as_printed:
        return math.pow(m, 1 - gamma) / 2
    return math.pow(m, -gamma) + math.pow(m, 1 - gamma) / (gamma - 1)


def lemma_3(*, total: float, power: float) -> float:
    """Return a bound on sum_t a_t / (a_1 + ... + a_t)^power: total^(1 - power) / (1 - power)."""
    total, power = number("total", total, above=0), number("power", power, above=0)
    if power >= 1:
        raise TheoryError(f"power is above 0 and below 1; it is {power!r}.")
    return math.pow(total, 1 - power) / (1 - power)


def lemma_4(*, K: float, total: float) -> float:
    """Return a bound on sum_t a_t / sqrt(K + a_1 + ... + a_{t-1}) for a_t in [1, K]: 2 sqrt(total) + sqrt(K)."""
    return 2 * math.sqrt(number("total", total, least=0)) + math.sqrt(number("K", K, least=1))


def lemma_5_root(*, c: float) -> float:
    """Return a bound on the sum of exp(-c sqrt(t)) over t >= 1: 2 / c^2."""
    return 2 / number("c", c, above=0) ** 2


def lemma_5_linear(*, c: float) -> float:
    """Return a bound on the sum of exp(-c t) over t >= 1: 1 / c."""
    return 1 / number("c", c, above=0)


def lemma_6(*, K: int, learning_rates: Sequence[float], second_moments: Sequence[float]) -> float:
    """Return the bound on the regret of exponential weights: ln K / eta_T + sum_t (eta_t / 2) sum_i q_i X_i^2.

    Args:
        K: the number of arms.
        learning_rates: eta_t of each round, none larger than the one before.
        second_moments: sum_i q_i X_i^2 of each round.

    """
    etas = [number("A learning rate", eta, above=0) for eta in learning_rates]
    moments = [number("A second moment", moment, least=0) for moment in second_moments]
    if not etas or len(etas) != len(moments):
        raise TheoryError(
            f"Each round has a learning rate and a second moment; there are {len(etas)} and {len(moments)}."
        )
    if sorted(etas, reverse=True) != etas:
        raise TheoryError("The learning rates never grow from one round to the next, and some of these do.")
    return math.log(whole("K", K)) / etas[-1] + math.fsum(eta / 2 * X for eta, X in zip(etas, moments, strict=True))


def lemma_8(*, K: int, t: float, gamma: float = GAMMA) -> float:
    """Return a bound on the chance that a confidence limit is on the wrong side of the mean: 1 / (K t^(gamma - 1)).

    For UCB < mean, and for LCB > mean; with equality it is false for a mean of 1 or 0 (E8). Printed with T for t (E7).
    """
    return math.pow(number("t", t, least=1), 1 - number("gamma", gamma, least=1)) / at_least_two(K)


def lemma_9(*, t: float, gap: float, gamma: float = GAMMA, as_printed: bool = False) -> float:
    """Return a bound on the chance that some round up to t > t_min has observed an arm too rarely.

    Lemma 2 from m = t gap^2 / ln t on, with the power gamma - 1. Printed: 1 / m^(gamma - 2), twice what the printed
    Lemma 2 gives; that holds where m >= 2 and gamma >= 4 (E9).
    """
    t, gap, gamma = number("t", t, above=1), positive_gap(gap), number("gamma", gamma, least=3)
    m = t * gap**2 / math.log(t)
    if m < 1:
        raise TheoryError(
            f"The lemma is for rounds after t_min, where t gap^2 is above ln t; t is {t:g} and gap {gap:g}."
        )
    return math.pow(m, 2 - gamma) if as_printed else lemma_2(gamma=gamma - 1, m=m)


def lemma_10(*, K: int, independence: float, floor: float) -> float:
    """Return a bound on theta, 4 alpha ln(4 K / (alpha floor)), if no arm has a probability below `floor`."""
    K, floor = whole("K", K), number("floor", floor, above=0)
    if floor >= 0.5:
        raise TheoryError(f"floor is below 1/2; it is {floor!r}.")
    alpha = number("independence", independence, least=1, most=K)
    return 4 * alpha * math.log(4 * K / (alpha * floor))


def proposition_2(
    *, T: float, gaps: npt.ArrayLike | Gaps, strong_independence: float, beta: float = BETA, as_printed: bool = False
) -> float:
    """Return a bound on the exponential weights' share of the regret after t_min, at the fixed rate.

    sum_i 16 alpha~ / (gap_i ln K) + (alpha~ ln K / (4 K beta^2) + 1) ln T. Printed, in the proof of Theorem 3:
    6 alpha~ / gap_i (E10).
    """
    g, T = read_gaps(gaps), horizon(T)
    K, beta = g.K, number("beta", beta, least=BETA)
    strong, log_K = number("strong_independence", strong_independence, least=1, most=K), math.log(K)
    weights = (6.0 if as_printed else 16 / log_K) * strong * g.inverse_sum
    return weights + (strong * log_K / (4 * K * beta**2) + 1) * math.log(T)


def proposition_3(*, K: int, T: float, strong_independence: float, inverse_gap_sum: float, beta: float = BETA) -> float:
    """Return a bound on the exploration's share of the regret after t_min, at the fixed rate.

    4 beta (ln T)^2 W + alpha~ ln T ln K / (4 K beta^2) + 12 K + 3, with W as in Theorem 3.
    """
    T, beta = horizon(T), number("beta", beta, least=BETA)
    exploration = 4 * beta * math.log(T) ** 2 * number("inverse_gap_sum", inverse_gap_sum, least=0)
    return proposition_8(K=K, T=T, exploration=exploration, lambda_=strong_independence, beta=beta)


def proposition_5(*, c: float) -> float:
    """Return a bound on the largest t <= c (ln t)^2, for c > e^2: 25 c (ln c)^2."""
    c = number("c", c, above=math.e**2)
    return 25 * c * math.log(c) ** 2


def proposition_6(*, K: int, gap: float, strong_independence: float, lambda_: float, beta: float = BETA) -> float:
    """Return a bound on R_tmin, the regret of the first t_min rounds, at the fixed rate.

    (80 beta K / gap^2) sqrt(alpha~ / lambda) ln(6 beta^2 K^2 / gap^4) + K with the smallest gap. 40 would do (E11).
    """
    K, gap, beta = at_least_two(K), positive_gap(gap), number("beta", beta, least=BETA)
    strong = number("strong_independence", strong_independence, least=1, most=K)
    height = math.sqrt(strong / number("lambda_", lambda_, least=1, most=K))
    return 80 * beta * K / gap**2 * height * math.log(6 * beta**2 * K**2 / gap**4) + K


def proposition_7(*, K: int, t: float, gap: float, learning_rate: float, lambda_: float, beta: float = BETA) -> float:
    """Return a bound on the expected exponential weight of an arm with a positive gap, in a round t after its t_min.

    exp(-t eta gap / 2) + (lambda ln K / (4 K^2 beta^2) + 1 / K) / t; the proposition is the sum over the rounds.
    """
    K, t, gap = at_least_two(K), number("t", t, least=1), positive_gap(gap)
    beta, lambda_ = number("beta", beta, least=BETA), number("lambda_", lambda_, least=1, most=K)
    weight = math.exp(-t * number("learning_rate", learning_rate, above=0) * gap / 2)
    return weight + (lambda_ * math.log(K) / (4 * K**2 * beta**2) + 1 / K) / t


def proposition_8(*, K: int, T: float, exploration: float, lambda_: float, beta: float = BETA) -> float:
    """Return a bound on the exploration's share of the regret after t_min.

    exploration + lambda ln T ln K / (4 K beta^2) + 12 K + 3. One line of the proof lacks a factor 4 (E17).

    Args:
        K: the number of arms.
        T: the number of rounds.
        exploration: the expected sum of 4 beta ln t / (t gap_i) over the rounds t and the arms i of their exploration
            sets that are not best.
        lambda_: the height of the cap on exploration.
        beta: 320 or more.

    """
    K, T, beta = at_least_two(K), horizon(T), number("beta", beta, least=BETA)
    failures = number("lambda_", lambda_, least=1, most=K) * math.log(T) * math.log(K) / (4 * K * beta**2)
    return number("exploration", exploration, least=0) + failures + 12 * K + 3
