"""Bounds on the regret where feedback is late: docs/proofs.md has the statements and the proofs.

M_t are the rounds before t that enter the weights and are not told yet when t is drawn, sigma_t is how many they are,
and D is the sum of sigma_t over all rounds. All bounds are against any adversary, also one who watches what was told,
and hold if the delay of a round depends neither on its draw nor on its losses, nor on draws that are outstanding when
it is asked for. They are bounds on expectations: those that are made of what happened are bounds in the mean over what
could have happened.
"""

from __future__ import annotations

import math

from sidelong.theory.checks import at_least_two, horizon, number


def exp3_set_so_far(*, K: int, rate: float, rated_theta: float, rated_delay: float, untold: float = 0) -> float:
    """Return the bound of EXP3-SET, plain or guarded, that is made of what happened.

    ln K / eta_T + sum eta_t (theta_t / 2 + sigma_t) over the rounds that were told, and 1 for each other one.

    Args:
        K: the number of arms.
        rate: eta_T, the smallest learning rate of a round that was told.
        rated_theta: the sum of eta_t theta_t over the rounds that were told.
        rated_delay: the sum of eta_t sigma_t over them.
        untold: how many rounds were carried out and not told: outstanding now, or given up.

    """
    log_K, rate, theta, delay = _happened(K, rate, rated_theta, rated_delay)
    return log_K / rate + theta / 2 + delay + number("untold", untold, least=0)


def exp3_gpp_so_far(
    *,
    K: int,
    rate: float,
    rated_theta: float,
    rated_delay: float,
    exploration: float,
    initial: float,
    untold: float = 0,
) -> float:
    """Return the bound of EXP3.G++, plain or guarded, that is made of what happened.

    ln K / eta_T + sum eta_t (theta_t + sigma_t) + sum_t sum_i eps_(t,i) over the rounds that were told, and 1 for each
    initial round and each that was not told.

    Args:
        K: the number of arms.
        rate: eta_T, the smallest learning rate of a round that was told.
        rated_theta: the sum of eta_t theta_t over the rounds that were told.
        rated_delay: the sum of eta_t sigma_t over them.
        exploration: the sum of the rates of exploration over them; it is at most sqrt(lambda T ln K).
        initial: how many initial rounds there were.
        untold: how many other rounds were carried out and not told: outstanding now, or given up.

    """
    log_K, rate, theta, delay = _happened(K, rate, rated_theta, rated_delay)
    lost = number("initial", initial, least=0) + number("untold", untold, least=0)
    return log_K / rate + theta + delay + number("exploration", exploration, least=0) + lost


def exp3_set_guarded(
    *, K: int, T: float, theta_sum: float, delay_sum: float, given_up: float = 0, eta_scale: float = 1.0
) -> float:
    """Return the closed bound of EXP3-SET with late="guarded".

    (m + 1/m) sqrt(ln K (Theta + 2 D)) + sqrt(K ln K) / m, where Theta is the expected sum of theta_t and D that of
    sigma_t, and 1 for each round that was given up.

    Args:
        K: the number of arms.
        T: the number of rounds.
        theta_sum: Theta, or a bound on it: the sum of the sizes of the largest acyclic sets.
        delay_sum: D: the sum, over all rounds, of the decisions that were outstanding when it was asked for.
        given_up: how many rounds were given up.
        eta_scale: m, the learner's option.

    """
    K, total, D, m = _guarded(K, T, theta_sum, delay_sum, eta_scale)
    log_K = math.log(K)
    closed = (m + 1 / m) * math.sqrt(log_K * (total + 2 * D)) + math.sqrt(K * log_K) / m
    return closed + number("given_up", given_up, least=0)


def exp3_gpp_guarded(
    *,
    K: int,
    T: float,
    theta_sum: float,
    delay_sum: float,
    given_up: float = 0,
    eta_scale: float = 1.0,
    exploration: float = 1.0,
) -> float:
    """Return the closed bound of EXP3.G++ with late="guarded" and start="all".

    (m + 1/m) sqrt(2 ln K (K + Theta + D)) + sqrt(lambda T ln K) + K, where Theta is the expected sum of theta_t, t > K,
    and D that of sigma_t, and 1 for each round that was given up.

    Args:
        K: the number of arms.
        T: the number of rounds.
        theta_sum: Theta, or a bound on it: the sum of the sizes of the largest acyclic sets.
        delay_sum: D: the sum, over all rounds, of the decisions that were outstanding when it was asked for.
        given_up: how many rounds were given up.
        eta_scale: m, the learner's option.
        exploration: lambda, the learner's option.

    """
    K, total, D, m = _guarded(K, T, theta_sum, delay_sum, eta_scale)
    log_K, lambda_ = math.log(K), number("exploration", exploration, least=1, most=K)
    closed = (m + 1 / m) * math.sqrt(2 * log_K * (K + total + D)) + math.sqrt(lambda_ * T * log_K) + K
    return closed + number("given_up", given_up, least=0)


def _happened(K: int, rate: float, theta: float, delay: float) -> tuple[float, float, float, float]:
    rate, theta = number("rate", rate, above=0), number("rated_theta", theta, least=0)
    return math.log(at_least_two(K)), rate, theta, number("rated_delay", delay, least=0)


def _guarded(K: int, T: float, theta: float, delay: float, m: float) -> tuple[int, float, float, float]:
    K, T = at_least_two(K), horizon(T)
    total, D = number("theta_sum", theta, least=0, most=K * T), number("delay_sum", delay, least=0, most=T * T)
    return K, total, D, number("eta_scale", m, above=0)
