r"""What the other learners promise, with all constants: bounds on the regret of T rounds, on a fixed graph of K arms.

Each function is named after its learner. Some bounds stand in the learner's paper, others are derived for the learner
as it is here; ``docs/bounds.md`` says which, and has the derivations. `acyclic` and the like are numbers of the graph,
or upper bounds on them. Not here, since no bound with constants is known to us: UCB-MaxN, TS-N, Maillard sampling,
UCB-LP, AlphaSample, and in stochastic worlds EXP3++ and Tsallis-INF with importance weighting.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong.errors import TheoryError
from sidelong.theory.checks import Gaps, at_least_two, horizon, number, read_gaps, whole

if TYPE_CHECKING:
    import numpy.typing as npt


def exp3(*, K: int, T: float) -> float:
    """Return 2 sqrt(K T ln K): EXP3 against any adversary (Bubeck and Cesa-Bianchi 2012, Theorem 3.1)."""
    K, T = _game(K, T)
    return 2 * math.sqrt(K * T * math.log(K))


def exp3_plus_plus(*, K: int, T: float) -> float:
    """Return 4 sqrt(K T ln K): EXP3++ against any adversary (Seldin and Slivkins 2014, Theorem 1)."""
    K, T = _game(K, T)
    return 4 * math.sqrt(K * T * math.log(K))


def exp3_set(*, K: int, T: float, acyclic: float) -> float:
    """Return 2 sqrt(mas T ln K) + sqrt(K ln K): EXP3-SET against any adversary, with the rate that needs no horizon."""
    K, T = _game(K, T)
    log_K = math.log(K)
    return 2 * math.sqrt(log_K * _part("acyclic", acyclic, K) * T) + math.sqrt(K * log_K)


def exp3_dom(*, K: int, T: float, cover: int, acyclic: float) -> float:
    """Return the bound of EXP3-DOM against any adversary, whose dominating set has `cover` arms.

    With B = 2^floor(log2 cover), X = B ln K and Q = T (1 + mas / (2 B))::

        (4 + 2 sqrt(2)) sqrt(2 X max(X, Q)) + (1 + max(0, log2(2 Q / X))) (1 + mas / (2 B))
    """
    K, T = _game(K, T)
    B = 1 << (whole("cover", cover).bit_length() - 1)
    step = 1 + _part("acyclic", acyclic, K) / (2 * B)
    X, Q = B * math.log(K), T * step
    return (4 + 2 * math.sqrt(2)) * math.sqrt(2 * X * max(X, Q)) + (1 + max(0.0, math.log2(2 * Q / X))) * step


def exp3_g(*, K: int, T: float, independence: float, acyclic: float) -> float:
    """Return the bound of EXP3.G against any adversary, on a graph in which every arm reveals itself.

    ln K / (2 g) + g T (1 + min(mas, 4 alpha ln(4 K^2 / (alpha g)))), where g = min(1 / sqrt(alpha T), 1/2) is its
    share of exploration.
    """
    K, T = _game(K, T)
    alpha = _part("independence", independence, K)
    g = min(math.sqrt(1 / (alpha * T)), 0.5)
    theta = min(_part("acyclic", acyclic, K), 4 * alpha * math.log(4 * K**2 / (alpha * g)))
    return math.log(K) / (2 * g) + g * T * (1 + theta)


def exp3_ix(*, K: int, T: float, independence: float) -> float:
    """Return the bound of EXP3-IX against any adversary (Kocak, Neu, Valko and Munos 2014, Theorem 1).

    4 sqrt(ln K (K + 2 T (H alpha + 1))), H = ln(1 + (ceil(K^2 sqrt(T K / ln K)) + K) / alpha). The theorem has H_t for
    each round, which grows with t: T times the last is a bound on the sum.
    """
    K, T = _game(K, T)
    alpha, log_K = _part("independence", independence, K), math.log(K)
    H = math.log(1 + (math.ceil(K**2 * math.sqrt(T * K / log_K)) + K) / alpha)
    return 4 * math.sqrt(log_K * (K + 2 * T * (H * alpha + 1)))


def elp(*, K: int, T: float, acyclic: float, fractional_domination: float) -> float:
    """Return the bound of ELP against any adversary, with the rate that needs no horizon.

    2 sqrt(2 C ln K) + (2 + log2(T + 1)) ln K / v, where 1 / v is the fractional domination number and
    C = (e - 2) (K + mas T) + (1 + T) / v.
    """
    K, T = _game(K, T)
    log_K, spread = math.log(K), _part("fractional_domination", fractional_domination, K)
    C = (math.e - 2) * (K + _part("acyclic", acyclic, K) * T) + (1 + T) * spread
    return 2 * math.sqrt(2 * C * log_K) + (2 + math.log2(T + 1)) * log_K * spread


def hedge(*, K: int, T: float) -> float:
    """Return sqrt(T ln K): Hedge with full information, against any adversary."""
    K, T = _game(K, T)
    return math.sqrt(T * math.log(K))


def hedge_stochastic(*, gaps: npt.ArrayLike | Gaps) -> float:
    """Return (4 ln K + 25) / gap with the smallest gap: Hedge in a stochastic world (Mourtada and Gaiffas 2019)."""
    g = read_gaps(gaps)
    return (4 * math.log(g.K) + 25) / g.least


def tsallis_inf(*, K: int, T: float) -> float:
    """Return 4 sqrt(K T) + 1: Tsallis-INF with importance weighting, against any adversary (Zimmert, Seldin 2021).

    With feedback from the graph it holds too.
    """
    K, T = _game(K, T)
    return 4 * math.sqrt(K * T) + 1


def tsallis_inf_rv(*, K: int, T: float, as_printed: bool = False) -> float:
    """Return 2 sqrt(K T) + 14 K ln T + 16: Tsallis-INF with reduced variance, against any adversary.

    Printed with 10 in the place of 14, which is not what its proof gives.
    """
    K, T = _game(K, T)
    return 2 * math.sqrt(K * T) + (10 if as_printed else 14) * K * math.log(T) + 16


def tsallis_inf_rv_stochastic(*, T: float, gaps: npt.ArrayLike | Gaps) -> float:
    """Return the bound of the same in a stochastic world with one best arm.

    sum_i (ln T + 3) / gap_i + 2 / gap + 28 K ln T + 1.5 sqrt(K) + 32, with the smallest gap.
    """
    g, T = _one_best(gaps), horizon(T)
    log_T = math.log(T)
    return (log_T + 3) * g.inverse_sum + 2 / g.least + 28 * g.K * log_T + 1.5 * math.sqrt(g.K) + 32


def ito_2022(*, K: int, T: float, strong_independence: float) -> float:
    """Return the bound of Ito, Tsuchiya and Honda's learner against any adversary.

    2 sqrt(Z (1 + ln T) (1 + T) ln K) + b ln K with Z the strong independence number, b = max(1, c) and
    c = sqrt(Z (1 + ln T) / ln K) / 2.
    """
    A, start = _ito(K, T, strong_independence)
    return 2 * math.sqrt(A * (1 + T) * math.log(K)) + start


def ito_2022_stochastic(*, T: float, gaps: npt.ArrayLike | Gaps, strong_independence: float) -> float:
    """Return the bound of the same in a stochastic world with one best arm.

    4 Z (1 + ln T) ln(e K T) / gap + 4 sqrt(Z (1 + ln T) ln K) + 2 b ln K, with the smallest gap.
    """
    g = _one_best(gaps)
    A, start = _ito(g.K, T, strong_independence)
    return 4 * A * math.log(math.e * g.K * T) / g.least + 4 * math.sqrt(A * math.log(g.K)) + 2 * start


def q_tsallis(*, K: int, T: float, independence: float) -> float:
    """Return the bound of q-Tsallis against any adversary (Eldowa, Esposito, Cesari and Cesa-Bianchi 2023, Theorem 1).

    sqrt(2 K^(1-q) alpha^q T / (q (1 - q))), q = (1 + L / (sqrt(L^2 + 4) + 2)) / 2, L = ln(K / alpha), on an undirected
    graph.
    """
    K, T = _game(K, T)
    alpha = _part("independence", independence, K)
    L = math.log(K / alpha)
    q = (1 + L / (math.sqrt(L**2 + 4) + 2)) / 2
    return math.sqrt(2 * math.pow(K, 1 - q) * math.pow(alpha, q) * T / (q * (1 - q)))


def spm_2024(*, K: int, T: float, independence: float) -> float:
    """Return the bound of SPM with its default power against any adversary, on an undirected graph.

    16 sqrt(h Z T) + k with a = 1 - 1 / (2 (1 + ln(K / alpha))), h = (K^(1-a) - 1) / a,
    Z = (1 + alpha^a) (1 - 1/K)^(1-a) / (1 - a) and k = 8 (2 + sqrt 2) Z / b + b h + b' (K^a - 1) / (1 - a), where
    b = 4 K / (1 - a), b' = 8 / (1 - a) if a > 1/2 and 0 if not.
    """
    K, T = _game(K, T)
    _, product, start = _spm(K, independence)
    return 16 * math.sqrt(product * T) + start


def spm_2024_stochastic(*, T: float, gaps: npt.ArrayLike | Gaps, independence: float) -> float:
    """Return the bound of the same in a stochastic world with one best arm.

    The least of 512 J w + 32 sqrt(h Z T / 2^J) over J = 1, 2, ..., and 2 k, where
    w = (1 + alpha^a) / (a (1 - a)) gap^(a-1) (sum_i gap_i^(-a / (1 - a)))^(1-a) with the smallest gap.
    """
    g, T = _one_best(gaps), horizon(T)
    a, product, start = _spm(g.K, independence)
    # In powers of gap / gap_i, which are at most 1, where those of 1 / gap_i might overflow.
    spread = math.fsum(math.exp(a / (1 - a) * (math.log(g.least) - math.log(gap))) for gap in g.positive)
    w = (1 + math.pow(independence, a)) / (a * (1 - a)) * math.pow(spread, 1 - a) / g.least
    least = math.inf
    for J in itertools.count(1):
        value = 512 * J * w + 32 * math.sqrt(product * T / 2**J)
        if value >= least:  # it is convex in J
            return least + 2 * start
        least = value
    raise AssertionError  # pragma: no cover  # the loop above ends by itself


def luo_2023(*, K: int, T: float, independence: float, failure: float, delta: float = 0.05) -> float:
    """Return what the regret of Luo, Tong, Zhang and Zhang's learner exceeds with probability `failure` at most.

    For strongly observable graphs, against every arm at once and an adversary who watches. With
    r = min(1/2, sqrt(ln(1 / delta) / (alpha T))), n = failure / 6, L = ln(1 / n), i = ln(K / n), e' = e - 2,
    th = min(K, 2 alpha ln(1 + (ceil(K^2 / r) + K) / alpha) + 2) / (1 - r) and Th = T th::

        sqrt(T L / 2) + 41 r T + 24 r^2 T + i (1 + 2.5 / r + 8 e' / r) + ln K / r + 25 L + 24 sqrt(2 e' r T L)
        + 2 sqrt(e' Th L) + r Th + 6 r ((1 + e') Th + L th / r)

    Args:
        K: the number of arms.
        T: the number of rounds, and the learner's `horizon`.
        independence: the independence number, for which the learner is tuned.
        failure: how likely more regret may be.
        delta: the learner's option, which sets its rate.

    """
    K, T = _game(K, T)
    alpha, L, i, log_delta = _likely(K, "independence", independence, failure / 6, delta)
    r = min(0.5, math.sqrt(log_delta / (alpha * T)))
    th = _observed(K, alpha, r) / (1 - r)
    Th, e2 = T * th, math.e - 2
    drift = 41 * r * T + 24 * r**2 * T + i * (1 + 2.5 / r + 8 * e2 / r) + math.log(K) / r
    chance = math.sqrt(T * L / 2) + 25 * L + 24 * math.sqrt(2 * e2 * r * T * L) + 2 * math.sqrt(e2 * Th * L)
    return drift + chance + r * Th + 6 * r * ((1 + e2) * Th + L * th / r)


def luo_2023_weak(
    *, K: int, T: float, domination: float, loop_independence: float, failure: float, delta: float = 0.05
) -> float:
    """Return the same for weakly observable graphs.

    With n = failure / 7, L, i and e' as there, d arms that reveal all that do not reveal themselves, a the independence
    number among those that do, g = min(1/2, sqrt(ln(1 / delta) / (a T))), the learner's eps and eta,
    th = min(K, 2 a ln(1 + (ceil(K^2 / g) + K) / a) + 2) / (1 - eps d) and Th = T th::

        sqrt(T L / 2) + eps d T + 2 L + 2 sqrt(e' T L / eps) + i / eps + 2 sqrt(e' T i / eps) + ln K / eta
        + (eta / 2) (T / eps + L / eps^2 + 2 sqrt(e' T L / eps^3))
        + 2 sqrt(e' Th L) + g Th + i / (2 g) + (eta / 2) ((1 + e') Th + L th / g)

    Where no arm reveals itself, a is 0, and the last line falls away.
    """
    K, T = _game(K, T)
    d, L, i, log_delta = _likely(K, "domination", domination, failure / 7, delta)
    a = number("loop_independence", loop_independence, least=0, most=K)
    g = min(0.5, math.sqrt(log_delta / (a * T))) if a else 0.5
    eps = min(0.5 / d, math.cbrt(log_delta / (d * d * T)))
    eta = min(1 / math.cbrt(d * T * T * log_delta), g)
    e2 = math.e - 2
    first = math.sqrt(T * L / 2) + eps * d * T + 2 * L + 2 * math.sqrt(e2 * T * L / eps)
    second = i / eps + 2 * math.sqrt(e2 * T * i / eps) + math.log(K) / eta
    third = eta / 2 * (T / eps + L / eps**2 + 2 * math.sqrt(e2 * T * L / eps**3))
    if not a:
        return first + second + third
    th = _observed(K, a, g) / (1 - eps * d)
    Th = T * th
    loops = 2 * math.sqrt(e2 * Th * L) + g * Th + i / (2 * g) + eta / 2 * ((1 + e2) * Th + L * th / g)
    return first + second + third + loops


def ucb_n_stochastic(*, T: float, gaps: npt.ArrayLike | Gaps, groups: npt.ArrayLike) -> float:
    """Return the bound of UCB-N in a stochastic world (Caron, Kveton, Lelarge and Bhagat 2012).

    8 ln T times the sum over groups of max gap / (min gap)^2, and (1 + pi^2 / 3) times the sum of all gaps. In each
    group all arms reveal each other; of its arms, only those that are not best count.

    Args:
        T: the number of rounds.
        gaps: by how much each arm is worse than the best, which has 0.
        groups: the number of each arm's group: the certificate of a clique cover, or 0, ..., K - 1 for no groups.

    """
    g, T = read_gaps(gaps), horizon(T)
    group = np.asarray(groups)
    if group.shape != g.all.shape or not np.issubdtype(group.dtype, np.integer):
        raise TheoryError(f"groups are {g.K} whole numbers, one for each arm; their shape is {group.shape}.")
    some = np.flatnonzero(g.all > 0)
    some = some[np.argsort(group[some], kind="stable")]
    first = np.flatnonzero(np.diff(group[some], prepend=group.min() - 1))
    largest, least = np.maximum.reduceat(g.all[some], first), np.minimum.reduceat(g.all[some], first)
    total = math.fsum((largest / least**2).tolist())
    return 8 * math.log(T) * total + (1 + math.pi**2 / 3) * math.fsum(g.positive)


def uniform(*, K: int, T: float) -> float:
    """Return T (1 - 1 / K): what drawing arms with equal probability loses at most, against any adversary."""
    K, T = _game(K, T)
    return T * (1 - 1 / K)


def uniform_stochastic(*, T: float, gaps: npt.ArrayLike | Gaps) -> float:
    """Return T times the mean gap: what drawing arms with equal probability loses, exactly."""
    g = read_gaps(gaps)
    return horizon(T) * math.fsum(g.positive) / g.K


def _ito(K: int, T: float, strong_independence: float) -> tuple[float, float]:
    K, T = _game(K, T)
    A, log_K = _part("strong_independence", strong_independence, K) * (1 + math.log(T)), math.log(K)
    return A, max(1.0, math.sqrt(A / log_K) / 2) * log_K


def _likely(K: int, name: str, value: float, chance: float, delta: float) -> tuple[float, float, float, float]:
    """Return a number of the graph, ln(1 / chance), ln(K / chance) and ln(1 / delta)."""
    L = -math.log(number("failure", chance, least=1e-200, most=0.2))
    return _part(name, value, K), L, math.log(K) + L, -math.log(number("delta", delta, least=1e-100, most=0.5))


def _observed(K: int, alpha: float, gamma: float) -> float:
    """Return what the sum of p_i / (P_i + gamma) over the arms that reveal themselves is at most."""
    return min(K, 2 * alpha * math.log(1 + (math.ceil(K**2 / gamma) + K) / alpha) + 2)


def _spm(K: int, independence: float) -> tuple[float, float, float]:
    """Return a, h Z and k."""
    alpha = _part("independence", independence, K)
    rest = 1 / (2 * (1 + math.log(K / alpha)))  # 1 - a
    a = 1 - rest
    h = math.expm1(rest * math.log(K)) / a
    Z = (1 + math.pow(alpha, a)) * math.pow(1 - 1 / K, rest) / rest
    b, b_other = 4 * K / rest, 8 / rest if alpha < K else 0.0
    return a, h * Z, 8 * (2 + math.sqrt(2)) * Z / b + b * h + b_other * (math.pow(K, a) - 1) / rest


def _one_best(gaps: npt.ArrayLike | Gaps) -> Gaps:
    g = read_gaps(gaps)
    if len(g.positive) < g.K - 1:
        raise TheoryError(f"This bound is proved for one best arm, and {g.K - len(g.positive)} arms have gap 0.")
    return g


def _game(K: int, T: float) -> tuple[int, float]:
    return at_least_two(K), horizon(T)


def _part(name: str, value: float, K: int) -> float:
    return number(name, value, least=1, most=K)
