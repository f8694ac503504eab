"""Errata of the proofs: each step as printed, which fails, and as corrected, which holds."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from sidelong import theory
from sidelong.claims.algorithm import ROUNDING
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.series import tail
from sidelong.theory import BETA, GAMMA

_ARMS = (2, 3, 10, 1000)
_GAPS = (1.0, 0.3, 0.01)


def _t_mins() -> list[tuple[int, float, float]]:
    """Return K, gap and t_min, with lambda = K, which makes it least."""
    return [(K, gap, theory.t_min(K=K, gap=gap, lambda_=K)) for K in _ARMS for gap in _GAPS]


@claim("e5", "the radius has gamma ln t + ln K", "App. C.2, before eq. (11)")
def e5(_: Trial) -> Outcome:
    """gamma ln(t K^(1/gamma)) = ln(t^gamma K) <= (gamma + 1) ln t for t >= K.

    Printed in between: gamma ln(t^gamma K).
    """
    ratios = [GAMMA * math.log(t * K ** (1 / GAMMA)) / ((GAMMA + 1) * math.log(t)) for K in _ARMS for t in (K, 10 * K)]
    K, t = 10, 100
    printed = GAMMA * math.log(t**GAMMA * K), (GAMMA + 1) * math.log(t)
    shown = f"left / right up to {max(ratios):.4g}; printed: {printed[0]:.3g} > {printed[1]:.3g}"
    return Outcome(max(ratios), 1 + ROUNDING, shown, "1", printed)


@claim("e6", "a union over K arms costs a factor K", "Lemma 1, first part")
def e6(_: Trial) -> Outcome:
    """K failures of 1 / (K t^(gamma - 1)) each give 1 / t^(gamma - 1). Printed with a K in the denominator."""
    K, t = 10, 100
    union = K * theory.lemma_8(K=K, t=t)
    printed, right = theory.lemma_1_upper(K=K, t=t, as_printed=True), theory.lemma_1_upper(K=K, t=t)
    shown = f"K = 10, t = 100: the union gives {union:.3g}; printed: {printed:.3g}"
    return Outcome(union, right * (1 + ROUNDING), shown, f"{right:.3g}", (union, printed))


@claim("e7", "confidence bounds are of round t, not T", "Lemma 8")
def e7(_: Trial) -> Outcome:
    """P[UCB < mu] <= 1 / (K t^(gamma - 1)). Printed with T, as if round t knew when the game ends.

    Exactly, in full information with two arms, where after 29 rounds every arm was seen 29 times; gamma = 3, mu =
    1/2 and T = 10^9.
    """
    gamma, t, n = 3.0, 30, 29
    radius = math.sqrt((gamma * math.log(t) + math.log(2)) / (2 * n))
    chance = float(stats.binom.cdf(math.ceil(n * (0.5 - radius)) - 1, n, 0.5))
    right, printed = theory.lemma_8(K=2, t=t, gamma=gamma), theory.lemma_8(K=2, t=10**9, gamma=gamma)
    return Outcome(chance, right, f"P = {chance:.2g}; printed: {printed:.1g}", f"{right:.2g}", (chance, printed))


@claim("e8", "a mean of 1 is never above UCB, and always equal to it", "Lemma 8, clipping")
def e8(_: Trial) -> Outcome:
    """P[UCB < mu] is the same before and after UCB is cut at 1. Printed with <=: for mu = 1 that is certain.

    Exactly, for n Bernoulli losses: the two probabilities, and for mu = 1 that of UCB <= mu.
    """
    n, t = 40, 50
    radius = math.sqrt((GAMMA * math.log(t) + math.log(2)) / (2 * n))
    means = np.arange(n + 1) / n
    worst = 0.0
    for mu in (0.1, 0.5, 0.9, 0.99, 1.0):
        chances = stats.binom.pmf(np.arange(n + 1), n, mu)
        cut = float(chances[np.minimum(1.0, means + radius) < mu].sum())
        worst = max(worst, abs(cut - float(chances[means + radius < mu].sum())), cut - theory.lemma_8(K=2, t=t))
    shown = f"{worst:.1g} apart; printed: P[UCB <= 1] = 1 > {theory.lemma_8(K=2, t=t):.1g}"
    return Outcome(worst, 0.0, shown, "0", (1.0, theory.lemma_8(K=2, t=t)))


@claim("e10", "the last term of Theorem 3 is 16 alpha~ / (Delta ln K)", "Theorem 3 and its proof")
def e10(_: Trial) -> Outcome:
    """Delta times the sum of exp(-t eta_t Delta / 2) over all t is at most 16 alpha~ / (Delta ln K).

    Printed: 4 alpha~ / Delta, and 6 in the proof. A factor 1/2 is lost in the exponent, and then ln K. After t_min the
    sum is next to nothing, so that Theorem 3 is true as printed, though not proved.
    """
    ratios = []
    for K, alpha in ((2, 1), (2, 2), (10, 3), (100, 100)):
        for gap in (0.2, 0.5, 1.0):
            total = gap * tail(gap * math.sqrt(math.log(K) / (8 * alpha)))
            ratios.append(total * gap * math.log(K) / (16 * alpha))
    total = 0.5 * tail(0.5 * math.sqrt(math.log(2) / 8))
    shown = f"sum / bound up to {max(ratios):.4g}; printed, K = 2, Delta = 1/2: {total:.3g} > 6 alpha~ / Delta = 12"
    return Outcome(max(ratios), 1.0, shown, "1", (total, 12.0))


@claim("e11", "81 absorbs 13 K + 3", "Theorem 3")
def e11(_: Trial) -> Outcome:
    """13 K + 3 <= (beta K / Dmin^2) ln(6 beta^2 K^2 / Dmin^4), so that the theorem may print 81 for 80 and drop it."""
    ratios = [
        (13 * K + 3) / (BETA * K / gap**2 * math.log(6 * BETA**2 * K**2 / gap**4)) for K in _ARMS for gap in _GAPS
    ]
    return Outcome(max(ratios), 1.0, f"left / right up to {max(ratios):.2g}", "1")


@claim("e13", "t >= 5 K gives the exponent beta / 10", "App. C.2")
def e13(_: Trial) -> Outcome:
    """exp(-((t - K) / t) beta ln t / 8) <= t^(-beta / 10) for t >= 5 K, and t_min is above 5 K.

    Printed with t >= 4 K, which gives 3 beta / 32 = 30 only, where beta / 10 = 32 is claimed.
    """
    worst = max(5 * K / t for K, _, t in _t_mins())
    worst = max(worst, (BETA / 10) / (4 / 5 * BETA / 8))
    shown = f"largest of 5 K / t_min and 32 over the exponent {worst:.3g}; printed: 32 > {3 / 4 * BETA / 8:.0f}"
    return Outcome(worst, 1 + ROUNDING, shown, "1", (BETA / 10, 3 / 4 * BETA / 8))


@claim("e14", "which confidence bounds the lower half needs", "App. C.2")
def e14(trial: Trial) -> Outcome:
    """If UCB_i >= mu_i and LCB_i* <= mu*, uncut, then LCB_i - UCB_i* >= Delta - 2 rad_i - 2 rad_i*.

    Printed with UCB_i* >= mu* and LCB_i <= mu_i, from which it does not follow.
    """
    rng, n = trial.rng("e14"), trial.size(20_000, 1000)
    mu, best, rad, rad_best = rng.random((4, n))
    mean, mean_best = mu + rng.normal(0, 0.5, n), best + rng.normal(0, 0.5, n)
    short = (mu - best - 2 * rad - 2 * rad_best) - ((mean - rad) - (mean_best + rad_best))
    right = (mean + rad >= mu) & (mean_best - rad_best <= best)
    wrong = (mean_best + rad_best >= best) & (mean - rad <= mu)
    worst, printed = float(short[right].max()), float(short[wrong].max())
    shown = f"short by {max(worst, 0):.1g} at most of {right.sum():,}; printed: by {printed:.2g}"
    return Outcome(worst, ROUNDING, shown, "0", (printed, 0.0))


@claim("e15", "for a best arm too, the series starts at t Delta_i^2 / ln t", "Lemma 9, proof")
def e15(_: Trial) -> Outcome:
    """The series for i* starts at t Delta_i^2 / ln t >= 1. Printed with Delta_i* = 0: then it starts at 0."""
    worst = max(math.log(t) / (t * gap**2) for _, gap, t in _t_mins())
    return Outcome(worst, 1.0, f"1 / start up to {worst:.2g}; printed: starts at 0, where 1 is needed", "1", (1.0, 0.0))


@claim("e16", "Bernstein's deviation leaves half of t Delta", "App. D.2, eq. (14)")
def e16(_: Trial) -> Outcome:
    """(t - 1 - K) - t (sqrt(8 / beta) + 2.5 / (3 beta)) >= t / 2 for t >= 3 (K + 1); ln(K t) <= 2 ln t.

    Printed with t terms where there are t - 1 - K, and once with ln(K t) <= ln t.
    """
    deviation = math.sqrt(8 / BETA) + 2.5 / (3 * BETA)
    worst = max(0.5 / ((t - 1 - K) / t - deviation) for K in _ARMS for t in (3 * (K + 1), 100 * K))
    shown = f"deviation {deviation:.3f} t Delta, t / 2 over what is left {worst:.3g}; printed: ln 200 > ln 100"
    return Outcome(worst, 1.0, shown, "1", (math.log(200), math.log(100)))


@claim("e17", "half a gap costs a factor 4", "Proposition 8, proof")
def e17(_: Trial) -> Outcome:
    """beta ln t / (t gap^2) <= 4 beta ln t / (t Delta^2) for gap >= Delta / 2. One line lacks the 4."""
    t, Delta = 10**9, 0.5
    xi = BETA * math.log(t) / (t * (Delta / 2) ** 2)
    printed = BETA * math.log(t) / (t * Delta**2)
    shown = f"xi / bound {xi / (4 * printed):.3g} at gap = Delta / 2; printed: {xi / printed:.3g}"
    return Outcome(xi / (4 * printed), 1.0, shown, "1", (xi / printed, 1.0))


@claim("e18", "what holds after t_min does not hold at t_min", "Lemma 1, App. C.2")
def e18(_: Trial) -> Outcome:
    """sqrt(lambda ln K / (t K^2)) / 2 >= beta ln t / (t gap^2) for t > t_min.

    Printed for t >= t_min, where it is the other way round.
    """
    K, gap = 2, 0.8
    after: list[float] = []
    at: list[float] = []
    for beta in (0.5, 1.0, 4.0):  # so that the two can be told apart in double precision
        end = math.floor(theory.t_min(K=K, gap=gap, lambda_=K, beta=beta))
        for t, ratios in ((end + 1, after), (end, at)):
            ratios.append(beta * math.log(t) / (t * gap**2) / (0.5 * math.sqrt(math.log(K) / (t * K))))
    shown = f"rate / cap {max(after):.6g} at most after it; printed: {max(at):.6g} at it"
    return Outcome(max(after), 1.0, shown, "1", (max(at), 1.0))


@claim("e22", "theta_K = K is not bounded by alpha, and Theorem 4 has room for it", "Theorem 4, proof")
def e22(_: Trial) -> Outcome:
    """K and the sqrt(K ln K) that the proof forgets fit into 9 and 2 K.

    Printed: theta_t <= 8 alpha_t ln(K T) also for t = K, where theta is set to K.
    """
    ratios = []
    for K in (2, 3, 10, 1000):
        for alpha in {1, max(1, K // 2), K}:
            for T in (K, 10 * K, 10**6 * K):
                total = min(K * T, 8 * alpha * math.log(K * T) * T)
                right = theory.theorem_4_adversarial(K=K, T=T, independence_sum=alpha * T)
                ratios.append(theory.theorem_4_theta(K=K, T=T, theta_sum=total) / right)
    K = T = 200
    printed = 8 * math.log(K * T)
    shown = f"what the proof gives / bound up to {max(ratios):.3g}; printed, complete graph: 200 > {printed:.3g}"
    return Outcome(max(ratios), 1.0, shown, "1", (float(K), printed))


@claim("e26", "the sum of 1 / t is at most ln T after t_min only", "App. E")
def e26(_: Trial) -> Outcome:
    """The sum of 1 / t over m < t <= T is at most ln(T / m). Printed from t = 1 on, and with ln T."""
    inverse = 1 / np.arange(1.0, 10_001)
    ratios = [float(inverse[m:].sum()) / math.log(10_000 / m) for m in (1, 2, 10, 5000)]
    harmonic = float(inverse.sum())
    shown = f"sum / bound up to {max(ratios):.4g}; printed: {harmonic:.3f} > {math.log(10_000):.3f}"
    return Outcome(max(ratios), 1.0, shown, "1", (harmonic, math.log(10_000)))


@claim("e28", "t_min of changing graphs has ln K in its denominator", "App. E, R_tmin")
def e28(_: Trial) -> Outcome:
    """9 sqrt(K t) ln(K t) <= 180 beta K^(3/2) / Delta^2 (ln(20 beta^2 K^(5/2) / Delta^4))^2 at the exact t = t_min.

    Proposition 5 gives t_min <= 25 c (ln c)^2 with c = 4 beta^2 K^2 / (Delta^4 ln K). Printed with d = c ln K, which is
    larger for K >= 3, but smaller for K = 2. There the chain 9 sqrt(25 K c) ln c ln(25 K c^2) exceeds the bound.
    """

    def bound(K: int, gap: float) -> float:
        return 180 * math.log(20 * BETA**2 * K**2.5 / gap**4) ** 2  # in units of beta K^(3/2) / Delta^2

    ratios = []
    for K in _ARMS:
        for gap in _GAPS:
            end = K * theory.t_min(K=K, gap=gap, lambda_=1)
            ratios.append(9 * math.sqrt(end) * math.log(end) / (BETA * K**1.5 / gap**2) / bound(K, gap))
    K, gap = 2, 1.0
    c = 4 * BETA**2 * K**2 / math.log(K)
    chain = 9 * math.sqrt(25 * K * c) * math.log(c) * math.log(25 * K * c**2) / (BETA * K**1.5)
    printed = chain, bound(K, gap)
    shown = f"left / right up to {max(ratios):.3g}; printed, K = 2: {printed[0]:,.0f} > {printed[1]:,.0f}"
    return Outcome(max(ratios), 1.0, shown, "1", printed)


@claim("e29", "the radius has the observations before round t", "App. C.2")
def e29(_: Trial) -> Outcome:
    """The bound on O_t holds for O_(t-1) too: (K + 1) beta ln t / (2 t Delta^2) <= 1, and (t - 1 - K) / t >= 4 / 5.

    The first allows t - 1 - K rounds in the place of t - K, and holds after t_min. The second keeps the exponent
    beta / 10 from t = 5 (K + 1) on. Printed: O_t is bounded, and O_(t-1) used, which is one less if round t reveals
    the arm.
    """
    first = max((K + 1) * BETA * math.log(t) / (2 * t * gap**2) for K, gap, t in _t_mins())
    second = max(0.8 * t / (t - 1 - K) for K in _ARMS for t in (5 * (K + 1), 100 * K))
    least = round(5 * BETA)  # the bound beta ln t / (2 Delta^2) for Delta = 1 and ln t = 10
    shown = f"left / right up to {max(first, second):.4g}; printed: O_t >= {least:,} leaves {least - 1:,}"
    return Outcome(max(first, second), 1.0 + ROUNDING, shown, "1", (float(least), float(least - 1)))


@claim("e30", "the exploration set depends on the gap estimates", "Proposition 8, proof")
def e30(_: Trial) -> Outcome:
    """min{1, c / X^2} <= 4 c / Delta^2 + 1[X <= Delta / 2] for each estimate X, before S is chosen or a mean is taken.

    So the mean over S_t is at most that of 4 c / Delta^2 over S_t, and the chances that any of all K arms fails, which
    is what the remainder of the proposition sums. Printed: the mean of min{1, c / X^2} is taken under the sum over S_t,
    as if S_t were chosen without X. It is not: the smallest estimate comes first, and explores most.
    """
    c, values, chances = 0.01, (0.25, 0.5, 1.0, 2.0), (0.2, 0.1, 0.4, 0.3)
    rates = [min(1.0, c / x**2) for x in values]  # Delta is 1
    lone = sum(chance * rate for chance, rate in zip(chances, rates, strict=True))
    ratios = []
    for K in (2, 3, 5):  # on a complete graph, S_t is the arm with the smallest estimate, of K that are alike
        beyond = [sum(chances[k:]) for k in range(len(chances))]  # the chance that an estimate is at least values[k]
        first = [a**K - b**K for a, b in zip(beyond, [*beyond[1:], 0.0], strict=True)]
        chosen = sum(chance * rate for chance, rate in zip(first, rates, strict=True))
        fails = K * sum(chance for chance, x in zip(chances, values, strict=True) if x <= 0.5)
        ratios.append(chosen / (4 * c + fails))
        printed = chosen, lone
    shown = f"mean over S / bound up to {max(ratios):.3g}; printed: {printed[0]:.3g} > {printed[1]:.3g}"
    return Outcome(max(ratios), 1.0, shown, "1", printed)


@claim("e31", "Bernstein's inequality is applied with the variance that its event allows", "App. D.2")
def e31(_: Trial) -> Outcome:
    """With nu = 2 t^2 Delta^2 / (beta ln t) in the event and in the inequality, the deviation is at most t Delta / 2.

    Printed: the event allows 4 t^2 Delta^2 / (beta ln t), and the inequality is applied with 2. It would even hold
    with 4. The chance that nu is larger is bounded by the event of i* twice, where one of them is the event of i.
    """
    deviations = [math.sqrt(2 * nu * 2 / BETA) + 2.5 / (3 * BETA) for nu in (2.0, 4.0)]
    shown = f"deviation {deviations[0]:.3f} t Delta, and {deviations[1]:.3f} with the 4; printed: 4 where 2 is used"
    return Outcome(max(deviations), 0.5, shown, "1 / 2", (4.0, 2.0))
