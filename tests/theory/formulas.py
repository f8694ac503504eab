"""The formulas of the paper and of the rivals' bounds, typed again with fifty digits: the oracle of tests/theory."""

from itertools import chain

from mpmath import ceil, e, exp, findroot, floor, inf, ln, log, mp, mpf, pi, sqrt

mp.dps = 50


def exactly(number):
    """Return a float, or a list of them, without rounding."""
    return [mpf(each) for each in number] if isinstance(number, list) else mpf(number)


def bad(gaps):
    return [gap for gap in exactly(gaps) if gap > 0]


# The paper. `printed` says how a formula stands there.


def theorem_1(K, T, strong, W):
    return sqrt(mpf(strong) * T * ln(K)), ln(T) ** 2 * W


def theorem_2(K, T, strong):
    return 4 * sqrt(mpf(strong) * T * ln(K)) + K


def theorem_3(T, gaps, strong, W, beta, *, printed):
    K, D = len(gaps), min(bad(gaps))
    first = 4 * mpf(beta) * ln(T) ** 2 * mpf(W)
    third = mpf(beta) * K / D**2 * ln(6 * mpf(beta) ** 2 * K**2 / D**4)
    if printed:
        return first + 2 * mpf(strong) * ln(T) + 81 * third + sum(4 * mpf(strong) / gap for gap in bad(gaps))
    last = sum(16 * mpf(strong) / (gap * ln(K)) for gap in bad(gaps))
    return first + 2 * ln(T) + 80 * third + last + 13 * K + 3


def theorem_4_adversarial(K, T, total):
    return 9 * sqrt(ln(K)) * sqrt(ln(mpf(K) * T)) * sqrt(mpf(total)) + 2 * K


def theorem_4_theta(K, T, total):
    first = sqrt(2 * ln(K)) * sqrt(mpf(total)) + sqrt(2 * ln(K) * K)  # ln K / eta_T
    second = sqrt(ln(K) / 2) * (2 * sqrt(mpf(total)) + sqrt(K))  # the sum of eta_t theta_t, by the offset lemma
    return K + first + second + sqrt(mpf(T) * ln(K))


def theorem_4_stochastic(T, gaps, rounds, beta, *, printed):
    """Try every n, one round after another."""
    K, D = len(gaps), min(bad(gaps))
    numbers = sorted(chain.from_iterable([a] * count for a, count in rounds.items()), reverse=True)
    if printed:
        numbers = sorted(set(numbers), reverse=True)
    smallest = sorted(bad(gaps))
    costs = []
    for n in range(len(numbers) + (not printed)):
        size = numbers[n] if n < len(numbers) else 0
        costs.append(sum(4 * mpf(beta) * ln(T) ** 2 / gap for gap in smallest[:size]) + n)
    middle = sum(16 * mpf(K) / (gap * (1 if printed else ln(K))) for gap in smallest)
    last = 181 * mpf(beta) * mpf(K) ** mpf("1.5") / D**2 * ln(20 * mpf(beta) ** 2 * mpf(K) ** mpf("2.5") / D**4) ** 2
    return min(costs) + 2 * ln(T) + middle + last


def theorem_5(n, rate):
    return exp(-mpf(n) * mpf(rate) / 8)


def theorem_6(nu, kappa, delta):
    return sqrt(2 * mpf(nu) * ln(1 / mpf(delta))) + mpf(kappa) * ln(1 / mpf(delta)) / 3


def t_min(K, gap, lam, beta):
    """Find the larger root of t = c (ln t)^2, in s = ln t."""
    c = 4 * mpf(beta) ** 2 * K**2 / (mpf(lam) * ln(K) * mpf(gap) ** 4)
    guess = ln(c) + 2 * ln(ln(c) + 2 * ln(ln(c)))
    return exp(findroot(lambda s: s - ln(c) - 2 * ln(s), guess))


def o_t(K, t, gap, lam, beta):
    third = mpf(beta) * ln(t) / (mpf(t) * mpf(gap) ** 2) if gap else inf
    return min(1 / mpf(2 * K), sqrt(mpf(lam) * ln(K) / (mpf(t) * K**2)) / 2, third)


def lemma_1_upper(K, t, gamma, *, printed):
    return 1 / ((K if printed else 1) * mpf(t) ** (mpf(gamma) - 1))


def lemma_9(t, gap, gamma, *, printed):
    m = mpf(t) * mpf(gap) ** 2 / ln(t)
    return 1 / m ** (mpf(gamma) - 2) if printed else lemma_2(mpf(gamma) - 1, m, printed=False)


def lemma_1_lower(K, t, gap, gamma, beta, *, printed):
    first = lemma_9(t, gap, gamma, printed=printed) * (1 if printed else 2)
    return first + 2 / (K * mpf(t) ** (mpf(gamma) - 1)) + 2 * (1 / mpf(t)) ** (mpf(beta) / 10)


def lemma_2(gamma, m, *, printed):
    gamma, m = mpf(gamma), mpf(m)
    return 1 / (2 * m ** (gamma - 1)) if printed else m**-gamma + m ** (1 - gamma) / (gamma - 1)


def lemma_10(K, alpha, floor):
    return 4 * mpf(alpha) * ln(4 * mpf(K) / (mpf(alpha) * mpf(floor)))


def proposition_2(T, gaps, strong, beta, *, printed):
    K = len(gaps)
    first = sum((6 if printed else 16 / ln(K)) * mpf(strong) / gap for gap in bad(gaps))
    return first + ln(T) * (mpf(strong) * ln(K) / (4 * K * mpf(beta) ** 2) + 1)


def proposition_3(K, T, strong, W, beta):
    return 4 * mpf(beta) * ln(T) ** 2 * mpf(W) + mpf(strong) * ln(T) * ln(K) / (4 * K * mpf(beta) ** 2) + 12 * K + 3


def proposition_5(c):
    return 25 * mpf(c) * ln(c) ** 2


def proposition_6(K, gap, strong, lam, beta):
    beta, gap = mpf(beta), mpf(gap)
    return 80 * beta * K / gap**2 * sqrt(mpf(strong) / mpf(lam)) * ln(6 * beta**2 * K**2 / gap**4) + K


def proposition_7(K, t, gap, eta, lam, beta):
    failing = mpf(lam) * ln(K) / (4 * K**2 * mpf(beta) ** 2) + 1 / mpf(K)
    return exp(-mpf(t) * mpf(eta) * mpf(gap) / 2) + failing / mpf(t)


# The rivals


def exp3(K, T):
    return 2 * sqrt(mpf(K) * T * ln(K))


def exp3_set(K, T, mas):
    return 2 * sqrt(ln(K) * mpf(mas) * T) + sqrt(K * ln(K))


def exp3_dom(K, T, cover, mas):
    B = 2 ** int(floor(log(cover, 2) + mpf(10) ** -30))
    X = B * ln(K)
    Q = mpf(T) * (1 + mpf(mas) / (2 * B))
    phases = 1 + max(0, log(2 * Q / X, 2))
    return 2 * (2 + sqrt(2)) * sqrt(X * 2 * max(X, Q)) + phases * (1 + mpf(mas) / (2 * B))


def exp3_g(K, T, alpha, mas):
    g = min(1 / sqrt(mpf(alpha) * T), mpf(1) / 2)
    theta = min(mpf(mas), 4 * mpf(alpha) * ln(4 * K / (mpf(alpha) * (g / K))))
    return ln(K) / (2 * g) + g * T * theta + g * T


def exp3_ix(K, T, alpha):
    H = ln(1 + (ceil(K**2 * sqrt(mpf(T) * K / ln(K))) + K) / mpf(alpha))
    return 4 * sqrt((K + 2 * mpf(T) * (H * mpf(alpha) + 1)) * ln(K))


def elp(K, T, mas, spread):
    v = 1 / mpf(spread)
    C = (e - 2) * K + 1 / v + mpf(T) * ((e - 2) * mpf(mas) + 1 / v)
    return 2 * sqrt(2 * C * ln(K)) + (2 + log(mpf(T) + 1, 2)) * ln(K) / v


def hedge(K, T):
    return sqrt(mpf(T) * ln(K))


def hedge_stochastic(gaps):
    return (4 * ln(len(gaps)) + 25) / min(bad(gaps))


def tsallis_inf(K, T):
    return 4 * sqrt(mpf(K) * T) + 1


def tsallis_inf_rv(K, T, *, printed):
    return 2 * sqrt(mpf(K) * T) + (10 if printed else 14) * K * ln(T) + 16


def tsallis_inf_rv_stochastic(T, gaps):
    K = len(gaps)
    X = sum((ln(T) + 3) / gap for gap in bad(gaps)) + 2 / min(bad(gaps))
    return X + 28 * K * ln(T) + mpf("1.5") * sqrt(K) + 32


def ito_2022(K, T, Z):
    c = sqrt(mpf(Z) * (1 + ln(T)) / ln(K)) / 2
    return 2 * sqrt(mpf(Z) * (1 + ln(T)) * (ln(K) + mpf(T) * ln(K))) + max(1, c) * ln(K)


def ito_2022_stochastic(T, gaps, Z):
    K = len(gaps)
    A = mpf(Z) * (1 + ln(T))
    c = sqrt(A / ln(K)) / 2
    return 4 * A * ln(e * K * T) / min(bad(gaps)) + 4 * sqrt(A * ln(K)) + 2 * max(1, c) * ln(K)


def q_tsallis(K, T, alpha):
    L = ln(mpf(K) / mpf(alpha))
    q = (1 + L / (sqrt(L**2 + 4) + 2)) / 2
    return sqrt(2 * mpf(K) ** (1 - q) * mpf(alpha) ** q * T / (q * (1 - q)))


def _spm(K, alpha):
    a = 1 - 1 / (2 * (1 + ln(mpf(K) / alpha)))
    h = (mpf(K) ** (1 - a) - 1) / a
    z = (1 + mpf(alpha) ** a) / (1 - a) * (1 - 1 / mpf(K)) ** (1 - a)
    b = 4 * K / (1 - a)
    b_other = 8 / (1 - a) if a > mpf("0.5") else 0
    kappa = 8 * (2 + sqrt(2)) * z / b + b * h + b_other * (mpf(K) ** a - 1) / (1 - a)
    return a, h, z, kappa


def spm_2024(K, T, alpha):
    _, h, z, kappa = _spm(K, alpha)
    return 16 * sqrt(h * z * T) + kappa


def spm_2024_stochastic(T, gaps, alpha):
    a, h, z, kappa = _spm(len(gaps), alpha)
    inside = sum(gap ** (-a / (1 - a)) for gap in bad(gaps))
    omega = (1 + mpf(alpha) ** a) / (a * (1 - a)) * min(bad(gaps)) ** (a - 1) * inside ** (1 - a)
    return min(512 * J * omega + 32 * sqrt(T * h * z / mpf(2) ** J) for J in range(1, 400)) + 2 * kappa


def _observed(K, alpha, gamma):
    return min(mpf(K), 2 * mpf(alpha) * ln(1 + (ceil(mpf(K) ** 2 / gamma) + K) / alpha) + 2)


def luo_2023(K, T, alpha, failure, delta):
    n = mpf(failure) / 6
    Lam, iota, e2 = ln(1 / n), ln(K / n), e - 2
    eta = gamma = beta = min(mpf("0.5"), sqrt(ln(1 / mpf(delta)) / (mpf(alpha) * T)))
    th = _observed(K, alpha, gamma) / (1 - eta)
    Th = T * th
    return (
        sqrt(T * Lam / 2)
        + 37 * eta * T
        + 4 * beta * T
        + 24 * beta**2 * T
        + iota * (1 + 2 / eta + 8 * e2 / beta + 1 / (2 * gamma))
        + ln(K) / eta
        + 25 * Lam
        + 24 * sqrt(2 * e2 * eta * T * Lam)
        + 2 * sqrt(e2 * Th * Lam)
        + gamma * Th
        + 6 * eta * ((1 + e2) * Th + Lam * th / gamma)
    )


def luo_2023_weak(K, T, d, a, failure, delta):
    n, ln_delta = mpf(failure) / 7, ln(1 / mpf(delta))
    Lam, iota, e2 = ln(1 / n), ln(K / n), e - 2
    gamma = min(mpf("0.5"), sqrt(ln_delta / (mpf(a) * T))) if a else mpf("0.5")
    total = mpf(T) * d
    third = mpf(1) / 3
    eps = min(1 / (2 * mpf(d)), mpf(T) ** third * total ** (-2 * third) * ln_delta**third)
    eta = min(mpf(T) ** -third * total**-third * ln_delta**-third, gamma)
    found = sqrt(T * Lam / 2) + eps * total + 2 * Lam + 2 * sqrt(e2 * T * Lam / eps) + iota / eps
    found += 2 * sqrt(e2 * T * iota / eps) + ln(K) / eta
    found += eta / 2 * (T / eps + Lam / eps**2 + 2 * sqrt(e2 * T * Lam / eps**3))
    if a:
        th = _observed(K, a, gamma) / (1 - eps * d)
        Th = T * th
        found += 2 * sqrt(e2 * Th * Lam) + gamma * Th + iota / (2 * gamma)
        found += eta / 2 * ((1 + e2) * Th + Lam * th / gamma)
    return found


def exp3_g_adaptive(K, T, d, mas, alpha, all_loops):
    h = min(mpf(mas), 4 * mpf(alpha) * ln(16 * mpf(K) ** 2 * T / alpha)) if alpha else mpf(0)
    a = h if all_loops else 2 * h + 6
    third = mpf(1) / 3
    found = 2 * (mpf(9) / 4 * T) ** (2 * third) * (d * ln(K)) ** third + (2 + mpf(d) / 2 if d else 0)
    found += 2 * sqrt(2 * a * T * ln(K)) + 8 * (2 * max(1, mpf(d)) - 1) * ln(K)
    return found + a / 2 + (1 + ln(T)) / 2


def ucb_n_stochastic(T, gaps, groups):
    total = mpf(0)
    for group in set(groups):
        inside = [mpf(gap) for gap, number in zip(gaps, groups, strict=True) if number == group and gap > 0]
        if inside:
            total += max(inside) / min(inside) ** 2
    return 8 * ln(T) * total + (1 + pi**2 / 3) * sum(bad(gaps))


def relative_entropy(p, q):
    p, q = mpf(p), mpf(q)
    return sum(a * ln(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def epochs(K, T, mas, d, initial):
    """EXP3.G++ in epochs: steps 6 to 8 of docs/epoch.md with any Theta_0, theta being at most mas."""
    Theta_0 = max(mpf(1), mpf(initial))
    Theta = Theta_0 + mpf(mas) * T
    rates = sqrt((1 + mpf(d)) * ln(K) / 2) * (2 * sqrt(Theta) - 2 * sqrt(Theta_0) + 2 * K / sqrt(Theta_0))
    return sqrt(2 * ln(K) * Theta) + rates + sqrt(mpf(T) * ln(K)) + initial


class Glance:
    """What both theorems of docs/glance-proof.md are made of."""

    def __init__(self, K, T, mas, revealed, first):
        self.rho, self.M, self.T, self.first = mpf("0.002"), mpf(mas), mpf(T), first
        d = min(mpf(mas), mpf(revealed))
        self.lnN = ln(K)
        self.B, self.J = d / self.rho, 1 + (1 / self.rho - 1) * d
        self.g = 24
        self.a = (mpf("0.3") + mpf("2.4") * self.B) * self.lnN
        self.c = 1 + ln(K * mpf(T))

    def unclipped(self, rounds):
        return self.B + sqrt(mpf("1.03") * self.lnN * self.M * rounds / self.rho)


def glance_adversarial(K, T, mas, revealed, first):
    o = Glance(K, T, mas, revealed, first)
    E = o.B * (1 + (2 * o.c + 1) * max(0, ln(2 * o.c * o.B / (mpf("0.3") * o.lnN))))
    V = 2 * sqrt(2 * (1 + 1 / o.rho) * o.M * o.T)
    return first + 4 + o.J + o.a + (3 + o.g) * (E + o.unclipped(o.T)) + V


def glance_stochastic(K, T, gap, mas, revealed, first, cor):
    o, gap, cor = Glance(K, T, mas, revealed, first), mpf(gap), mpf(cor)
    Lambda = ln(1 + mpf("2.5") * o.B * o.T * (o.T + 1))
    v = mpf("0.65") * Lambda * o.M * o.c / (o.rho * gap)
    c_0 = o.unclipped(min(o.T, 1000 * o.c / o.lnN)) + o.B * (2 * o.c + 1) * Lambda
    c_0 += sqrt(v * gap * (1001 + 1000 * ln(o.T)))
    s = 2 * c_0 + v * (1 + o.g) + 2 * sqrt(v * (o.a + cor))
    U, m = (1 + o.g) * s + o.a, 2 * (1 + 1 / o.rho) * o.M / gap
    return first + U + 2 * (4 + o.J + 2 * s) + 4 * m + 4 * sqrt(m * (2 * (U + cor) / gap + cor))


# Late feedback. `initial` and `untold` rounds count 1 each.


def delay_set_so_far(K, rate, theta, late, untold):
    rate, theta, late = exactly([rate, theta, late])
    return ln(K) / rate + theta / 2 + late + untold


def delay_gpp_so_far(K, rate, theta, late, exploration, lost):
    rate, theta, late, exploration = exactly([rate, theta, late, exploration])
    return ln(K) / rate + theta + late + exploration + lost


def delay_set_guarded(K, _T, theta, D, given_up, m):
    theta, D, m = exactly([theta, D, m])
    return (m + 1 / m) * sqrt(ln(K) * (theta + 2 * D)) + sqrt(K * ln(K)) / m + given_up


def delay_gpp_guarded(K, T, theta, D, given_up, m, height):
    theta, D, m = exactly([theta, D, m])
    return (m + 1 / m) * sqrt(2 * ln(K) * (K + theta + D)) + sqrt(height * T * ln(K)) + K + given_up
