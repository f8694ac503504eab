r"""The theorems of the paper, by their numbers, and the quantities that they are made of.

C. Rouyer, D. van der Hoeven, N. Cesa-Bianchi, Y. Seldin, "A Near-Optimal Best-of-Both-Worlds Algorithm for Online
Learning with Feedback Graphs", NeurIPS 2022. Its theorems, propositions, lemmas and definitions are each counted on
their own, from the introduction through the appendix:

=============  =====================================================================================================
Theorem 1      informal: what Theorems 2 and 3 say, without constants
Theorem 2      a fixed graph, any adversary
Theorem 3      a fixed graph, a stochastic world
Theorem 4      graphs that change, both worlds
Theorem 5      a concentration inequality: Theorem 8 of Seldin and Lugosi (2017)
Theorem 6      Bernstein's inequality for martingales
=============  =====================================================================================================

K is the number of arms and T that of rounds. Where the paper has a slip, a function returns what its proof gives when
the slip is mended, and with ``as_printed=True`` what is printed; the docstring says what differs, by the number of the
erratum in ``docs/paper.md``. A function without ``as_printed`` is right as printed.

Constants: gamma = 4 and beta = 320 = 64 (gamma + 1), the paper's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from sidelong.errors import TheoryError
from sidelong.theory.checks import Gaps, at_least_two, horizon, number, positive_gap, read_gaps, whole

if TYPE_CHECKING:
    import numpy.typing as npt

GAMMA, BETA = 4.0, 320.0


class Orders(NamedTuple):
    """How the regret grows, up to constants."""

    adversarial: float
    stochastic: float


def theorem_1(*, K: int, T: float, strong_independence: float, inverse_gap_sum: float) -> Orders:
    """Return the orders of the regret against an adversary and in a stochastic world. Theorem 1 has no constants.

    sqrt(alpha~ T ln K), and (ln T)^2 times the largest sum of 1 / gap over strongly independent sets.
    """
    K, T, strong = _game(K, T, strong_independence)
    W = number("inverse_gap_sum", inverse_gap_sum, least=0)
    return Orders(math.sqrt(strong * T * math.log(K)), math.log(T) ** 2 * W)


def theorem_2(*, K: int, T: float, strong_independence: float) -> float:
    """Return the bound against any oblivious adversary, on a fixed graph with the fixed rate.

    4 sqrt(alpha~ T ln K) + K. It is right as printed: the proof has 2 sqrt(2) + 1 = 3.83 in the place of 4.

    Args:
        K: the number of arms.
        T: the number of rounds.
        strong_independence: the strong independence number alpha~, or what the learner was given in its place: any
            number from the size of the largest acyclic set up to K.

    """
    K, T, strong = _game(K, T, strong_independence)
    return 4 * math.sqrt(strong * T * math.log(K)) + K


def theorem_3(
    *,
    T: float,
    gaps: npt.ArrayLike | Gaps,
    strong_independence: float,
    inverse_gap_sum: float,
    beta: float = BETA,
    as_printed: bool = False,
) -> float:
    """Return the bound in a stochastic world, on a fixed graph with the fixed rate.

    With W the largest sum of 1 / gap over strongly independent sets, d the smallest positive gap::

        4 beta (ln T)^2 W + 2 ln T + (80 beta K / d^2) ln(6 beta^2 K^2 / d^4)
            + sum_i 16 alpha~ / (gap_i ln K) + 13 K + 3

    Printed: 2 alpha~ ln T, 81 for 80 and no 13 K + 3 (E11), and 4 alpha~ / gap_i in the last sum. That sum is too
    small: the proof loses a factor 1/2 in an exponent and then ln K (E10). But 81 for 80 leaves room for it, so that
    the printed total is never below this one, and holds.

    Args:
        T: the number of rounds.
        gaps: by how much each arm is worse than the best, which has 0.
        strong_independence: the strong independence number alpha~.
        inverse_gap_sum: W, as `graph.numbers().weighted_strong_independence(weights)` finds it with weights 1 / gap,
            and 0 for best arms.
        beta: 320 or more.
        as_printed: evaluate the theorem as it stands in the paper.

    """
    g = read_gaps(gaps)
    K, T, strong = _game(g.K, T, strong_independence)
    W, beta = _leading(inverse_gap_sum, g), number("beta", beta, least=BETA)
    d, log_T = g.least, math.log(T)
    leading = 4 * beta * log_T**2 * W
    initial = beta * K / d**2 * math.log(6 * beta**2 * K**2 / d**4)
    if as_printed:
        return leading + 2 * strong * log_T + 81 * initial + 4 * strong * g.inverse_sum
    return leading + 2 * log_T + 80 * initial + 16 * strong / math.log(K) * g.inverse_sum + 13 * K + 3


def theorem_4_adversarial(*, K: int, T: float, independence_sum: float) -> float:
    """Return the bound against any oblivious adversary, on graphs that change, with the adaptive rate.

    9 sqrt(ln K ln(K T) sum_t alpha_t) + 2 K. The proof forgets the first term of the learning rate's sum and a factor
    (E22); that adds 2.13 sqrt(K ln K), for which 9 in the place of 8 and 2 K in the place of K have room: right as
    printed.

    Args:
        K: the number of arms.
        T: the number of rounds.
        independence_sum: the sum of the independence numbers of the graphs of all rounds.

    """
    K, T = at_least_two(K), horizon(T)
    total = number("independence_sum", independence_sum, least=T, most=K * T)
    return 9 * math.sqrt(math.log(K)) * math.sqrt(math.log(K * T)) * math.sqrt(total) + 2 * K


def theorem_4_theta(*, K: int, T: float, theta_sum: float) -> float:
    """Return what the proof of Theorem 4 gives before theta is bounded, against any oblivious adversary.

    2 sqrt(2 ln K Theta) + sqrt(T ln K) + K + 3 sqrt(K ln K / 2), where Theta is the expected sum of theta_t, t > K. As
    theta_t is at most the size of the largest acyclic set of G_t, on a fixed graph Theta <= mas T: about
    3.83 sqrt(mas T ln K), without a second logarithm and without anything NP-hard in the learner.

    Args:
        K: the number of arms.
        T: the number of rounds.
        theta_sum: Theta, or a bound on it: the sum of the sizes of the largest acyclic sets.

    """
    K, T = at_least_two(K), horizon(T)
    total, log_K = number("theta_sum", theta_sum, least=0, most=K * T), math.log(K)
    return 2 * math.sqrt(2 * log_K * total) + math.sqrt(T * log_K) + K + 3 * math.sqrt(K * log_K / 2)


def theorem_4_epochs(*, K: int, T: float, theta_sum: float, growth: float = 0.05, initial: int | None = None) -> float:
    """Return what is left of that for refresh="epoch", against any oblivious adversary.

    (1 + sqrt(1 + growth)) sqrt(2 ln K (K + Theta)) + sqrt(T ln K) + K, where Theta is the expected sum of theta_t,
    t > K. With n < K initial rounds and m = max(1, n) it is that with m + Theta under the root and n at the end, and
    sqrt(2 (1 + growth) ln K) (K / sqrt(m) - sqrt(m)) more. It is not in the paper; ``docs/epoch.md`` has the proof.

    Args:
        K: the number of arms.
        T: the number of rounds.
        theta_sum: Theta, or a bound on it: the sum of the sizes of the largest acyclic sets.
        growth: the learner's option, with its default.
        initial: how many initial rounds there are: K (as None says) for start="all", the size of the cover for "cover",
            0 for "none".

    """
    K, T = at_least_two(K), horizon(T)
    total, log_K = number("theta_sum", theta_sum, least=0, most=K * T), math.log(K)
    n = number("initial", K if initial is None else initial, least=0, most=K)
    root, old = math.sqrt(max(1.0, n)), math.sqrt(1 + number("growth", growth, least=0, most=1))
    late = old * math.sqrt(2 * log_K) * (K / root - root)
    return (1 + old) * math.sqrt(2 * log_K * (max(1.0, n) + total)) + math.sqrt(T * log_K) + n + late


def theorem_4_stochastic(
    *,
    T: float,
    gaps: npt.ArrayLike | Gaps,
    strong_independence: float | Mapping[int, float],
    beta: float = BETA,
    as_printed: bool = False,
) -> float:
    """Return the bound in a stochastic world, on graphs that change, with the adaptive rate.

    With f(m) = 4 beta (ln T)^2 times the sum of 1 / gap over the m smallest positive gaps, and d the smallest of them::

        min_n (f(alpha~_n) + n) + 2 ln T + sum_i 16 K / (gap_i ln K)
            + (181 beta K^(3/2) / d^2) (ln(20 beta^2 K^(5/2) / d^4))^2

    where alpha~_n is the largest strong independence number that is left when the n largest of T are struck out.
    Printed: 16 K / gap_i, which drops ln K and is too small for K = 2 (E10; the 181, where the proof has 180, leaves
    room for it), and alpha~_n as the n-th largest of the *set* of numbers, where each counts as often as it occurs
    (E23).

    Args:
        T: the number of rounds.
        gaps: by how much each arm is worse than the best, which has 0.
        strong_independence: the strong independence number of a fixed graph, or for graphs that change, how many rounds
            have each number: ``{1: 500, 10: 500}``.
        beta: 320 or more.
        as_printed: evaluate the theorem as it stands in the paper.

    """
    g, T, beta = read_gaps(gaps), horizon(T), number("beta", beta, least=BETA)
    K, d, log_T = g.K, g.least, math.log(T)
    counts = strong_independence if isinstance(strong_independence, Mapping) else {strong_independence: T}
    least, struck = math.inf, 0.0
    for n, a in enumerate(sorted((whole("A strong independence number", a) for a in counts), reverse=True)):
        number("A strong independence number", a, least=1, most=K)
        largest = 4 * beta * log_T**2 * g.largest_inverses(a)
        least = min(least, largest + (n if as_printed else struck))
        struck += number("A number of rounds", counts[a], least=0)
    if struck != T:
        raise TheoryError(f"The strong independence numbers are those of all T rounds: of {struck:g}, and T is {T:g}.")
    if not as_printed:
        least = min(least, struck)
    weights = 16 * K / (1.0 if as_printed else math.log(K)) * g.inverse_sum
    initial = 181 * beta * math.pow(K, 1.5) / d**2 * math.log(20 * beta**2 * math.pow(K, 2.5) / d**4) ** 2
    return least + 2 * log_T + weights + initial


def theorem_5(*, n: int, rate: float) -> float:
    """Return the chance that n draws, each a success with a chance of at least `rate`, have at most n rate / 2 of them.

    exp(-n rate / 8). Printed: "at least n rate" successes, of which it would be false (E12).
    """
    return math.exp(-whole("n", n) * number("rate", rate, least=0, most=1) / 8)


def theorem_6(*, variance: float, largest: float, delta: float) -> float:
    """Return what a martingale exceeds with a chance of at most delta: sqrt(2 nu ln(1/delta)) + kappa ln(1/delta) / 3.

    Args:
        variance: nu, a bound on the sum of the conditional second moments.
        largest: kappa, a bound on its steps from above.
        delta: the chance.

    """
    log = math.log(1 / number("delta", delta, above=0, most=1))
    return math.sqrt(2 * number("variance", variance, least=0) * log) + number("largest", largest, least=0) * log / 3


def t_min(*, K: int, gap: float, lambda_: float, beta: float = BETA) -> float:
    """Return the time after which exploration of an arm with this gap leaves its cap; its floor is the paper's t_min.

    The largest t with sqrt(lambda ln K / (t K^2)) / 2 <= beta ln t / (t gap^2), which is t <= c (ln t)^2 with
    c = 4 beta^2 K^2 / (lambda ln K gap^4): t = b^2 W(-1/b)^2, b = 2 sqrt(c), with the lower branch of Lambert's
    function. The paper's "t >= t_min" is t > t_min, and the set is read for t >= 2 (E18); it is empty, and this is 0,
    for a beta far below the paper's.

    Args:
        K: the number of arms.
        gap: the gap of the arm; of all arms that are not best, the smallest gap has the largest t_min.
        lambda_: the height of the cap: alpha~ at the fixed rate, 1 at the adaptive one.
        beta: the rate of exploration.

    """
    from scipy.special import lambertw  # noqa: PLC0415  # it takes a while to load

    b = 2 * math.sqrt(_c(K, gap, lambda_, beta))
    return (b * float(lambertw(-1 / b, -1).real)) ** 2 if b >= math.e else 0.0


def o_t(*, K: int, t: float, gap_estimate: float, lambda_: float, beta: float = BETA) -> float:
    """Return a lower bound on the probability that an arm is observed in round t, the paper's (4).

    min(1 / (2 K), sqrt(lambda ln K / (t K^2)) / 2, beta ln t / (t gap^2)), where gap is the arm's *estimated* gap. A
    gap of 0 leaves the first two (E3).
    """
    K, t = at_least_two(K), number("t", t, least=1)
    gap, beta = number("gap_estimate", gap_estimate, least=0, most=1), number("beta", beta, above=0)
    cap = min(1 / (2 * K), math.sqrt(number("lambda_", lambda_, least=1, most=K) * math.log(K) / (t * K**2)) / 2)
    return min(cap, beta * math.log(t) / (t * gap**2)) if gap > 0 else cap


def R_tmin(*, K: int, gap: float, strong_independence: float, lambda_: float, beta: float = BETA) -> float:
    """Return Theorem 2 at t_min: what rounds may cost before the gaps are known. Proposition 6 has a closed form."""
    end = max(1.0, t_min(K=K, gap=gap, lambda_=lambda_, beta=beta))
    return theorem_2(K=K, T=end, strong_independence=strong_independence)


def _c(K: int, gap: float, lambda_: float, beta: float) -> float:
    K, gap = at_least_two(K), positive_gap(gap)
    lambda_, beta = number("lambda_", lambda_, least=1, most=K), number("beta", beta, above=0)
    return 4 * beta**2 * K**2 / (lambda_ * math.log(K) * gap**4)


def _game(K: int, T: float, strong_independence: float) -> tuple[int, float, float]:
    K = at_least_two(K)
    return K, horizon(T), number("strong_independence", strong_independence, least=1, most=K)


def _leading(inverse_gap_sum: float, gaps: Gaps) -> float:
    """Return W, if it can be the sum of 1 / gap over some of the arms, and over one at least."""
    W = number("inverse_gap_sum", inverse_gap_sum)
    if not (1 - _ROUNDING) / gaps.least <= W <= (1 + _ROUNDING) * gaps.inverse_sum:
        raise TheoryError(
            f"inverse_gap_sum is a sum of 1 / gap, from that of the smallest gap, {1 / gaps.least:g}, to that of all, "
            f"{gaps.inverse_sum:g}; it is {W:g}."
        )
    return W


_ROUNDING = 1e-5  # graph.numbers() knows it to within two millionths
