"""Slow and obvious oracles, typed from the pseudo-code: they share no code with the package.

A graph is a boolean matrix A: A[i][j] says that playing i reveals j. Every arm reveals itself.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize

# EXP3.G++: Rouyer, van der Hoeven, Cesa-Bianchi, Seldin, "A near-optimal best-of-both-worlds algorithm for
# online learning with feedback graphs", NeurIPS 2022, Algorithms 1 and 2. Each round t, for all arms i:
#
#  1  UCB_i = min(1, Lhat_i / O_i + rad_i), LCB_i = max(0, Lhat_i / O_i - rad_i),
#     rad_i = sqrt((gamma ln t + ln K) / (2 O_i))
#  2  gap_i = max(0, LCB_i - min_j UCB_j)
#  3  S = {}; for i by ascending gap: unless i is covered, add i to S and cover all that i reveals
#  4  eps_i = min(1 / (2 K), sqrt(lambda ln K / (t K^2)) / 2, xi_i),
#     xi_i = beta ln t / (t gap_i^2) if i in S, else 4 / t^2
#  5  q_i ~ exp(-eta Ltilde_i), eta = sqrt(ln K / (2 Theta)) where Theta is the sum of theta over past rounds,
#     or sqrt(ln K / (2 alpha t)) if the strong independence number alpha is known
#     p_i = (1 - sum_j eps_j) q_i + eps_i
#  6  play I ~ p; Ltilde_i += l_i / P_i, Lhat_i += l_i, O_i += 1 for each i that I reveals,
#     P_i = sum of p_j over the arms j that reveal i; theta = sum_i p_i / P_i
#
# In the first rounds each arm is played once; these rounds count in t, Lhat and O, but not in Ltilde.


class Round(NamedTuple):
    """One round: what `distribution` found, and all that `update` needs to know of it."""

    t: int
    A: np.ndarray
    p: np.ndarray
    P: np.ndarray
    theta: float
    # The rest is None in an initial round, whose arm is forced.
    eta: float | None = None
    gap: np.ndarray | None = None
    S: set[int] | None = None
    eps: np.ndarray | None = None
    q: np.ndarray | None = None


class Exp3Gpp:
    """EXP3.G++, where the outcome of a round may be told late, and out of order."""

    def __init__(
        self,
        n_arms,
        rate="fixed",  # or "adaptive"
        strong_independence=None,  # for the fixed rate
        gamma=4.0,
        beta=320.0,
        exploration=None,  # lambda
        eta_scale=1.0,
        ties="paper",  # or "practical"
        start=None,  # the arms of the initial rounds
        estimator="plain",  # or "shifted"
    ):
        self.estimator = estimator
        self.K = n_arms
        self.rate = rate
        self.alpha = strong_independence
        self.gamma = gamma
        self.beta = beta
        self.lam = exploration if exploration is not None else {"fixed": self.alpha, "adaptive": 1.0}[rate]
        self.eta_scale = eta_scale
        self.ties = ties
        self.start = list(range(n_arms)) if start is None else list(start)
        self.t = 0  # the last round that was begun
        self.Ltilde = np.zeros(n_arms)
        self.Lhat = np.zeros(n_arms)
        self.O = np.zeros(n_arms)
        self.Theta = float(len(self.start) or 1)

    def distribution(self, A) -> Round:
        """Begin a round, in which the graph is A."""
        A = np.array(A, dtype=bool)
        assert A.shape == (self.K, self.K)
        assert A.diagonal().all()
        self.t += 1
        t = self.t
        if t <= len(self.start):
            p = np.zeros(self.K)
            p[self.start[t - 1]] = 1.0
            return Round(t, A, p, observation(p, A), theta(p, A))
        gap = gaps(self.Lhat, self.O, t, self.gamma)  # 1, 2
        S = exploration_set(gap, A, self.ties)  # 3
        eps = exploration_rates(gap, S, t, self.lam, self.beta)  # 4
        Theta = self.alpha * t if self.rate == "fixed" else self.Theta
        eta = self.eta_scale * math.sqrt(math.log(self.K) / (2 * Theta))
        q = softmax([-eta * L for L in self.Ltilde])  # 5
        p = (1 - sum(eps)) * q + eps  # 5
        return Round(t, A, p, observation(p, A), theta(p, A), eta, gap, S, eps, q)

    def update(self, told: Round, arm, losses, A=None):
        """Learn what a round revealed; A is its graph, if that was not known when the round began."""
        A = told.A if A is None else np.array(A, dtype=bool)
        assert told.p[arm] > 0
        assert set(losses) == {i for i in range(self.K) if A[arm, i]}
        P = observation(told.p, A)  # 6
        learning = told.t > len(self.start)
        shifted = [learning and self.estimator == "shifted" and P[i] >= told.eta for i in range(self.K)]
        for i in range(self.K):
            if learning and shifted[i]:
                self.Ltilde[i] += (losses[i] - 0.5) / P[i] + 0.5 if i in losses else 0.5
            elif learning and i in losses:
                self.Ltilde[i] += losses[i] / P[i]
            if i in losses:
                self.Lhat[i] += losses[i]
                self.O[i] += 1
        if learning and self.rate == "adaptive":
            self.Theta += math.fsum(
                told.p[i] / P[i] * (0.25 if shifted[i] else 1) for i in range(self.K) if told.p[i] > 0
            )


def gaps(Lhat, O, t, gamma):
    """Lines 1 and 2. An arm that was never seen has LCB 0 and UCB 1."""
    K = len(O)
    LCB = np.zeros(K)
    UCB = np.ones(K)
    for i in range(K):
        if O[i] > 0:
            rad = math.sqrt((gamma * math.log(t) + math.log(K)) / (2 * O[i]))
            UCB[i] = min(1.0, Lhat[i] / O[i] + rad)
            LCB[i] = max(0.0, Lhat[i] / O[i] - rad)
    return np.array([max(0.0, LCB[i] - min(UCB)) for i in range(K)])


def exploration_set(gap, A, ties="paper"):
    """Line 3. Of equal gaps the lowest index is first; with practical ties, what reveals most new arms."""
    K = len(gap)
    S = set()
    covered = set()
    while len(covered) < K:
        left = [i for i in range(K) if i not in covered]
        tied = [i for i in left if gap[i] == min(gap[j] for j in left)]
        if ties == "paper":
            i = tied[0]
        else:
            new = {i: sum(A[i][j] for j in left) for i in tied}
            i = min(tied, key=lambda i: (-new[i], i))
        S.add(i)
        covered |= {j for j in range(K) if A[i][j]}
    return S


def exploration_cap(K, t, lam):
    """The part of line 4 that is the same for all arms."""
    return min(1 / (2 * K), 0.5 * math.sqrt(lam * math.log(K) / (t * K**2)))


def exploration_rates(gap, S, t, lam, beta):
    """Line 4. A gap of 0 gives the cap, and no arm gets less than an arm outside of S."""
    eps = np.zeros(len(gap))
    for i in range(len(gap)):
        xi = 4 / t**2
        if i in S:
            xi = max(xi, beta * math.log(t) / (t * gap[i] ** 2)) if gap[i] > 0 else math.inf
        eps[i] = min(exploration_cap(len(gap), t, lam), xi)
    return eps


def o_lower(gap, t, lam, beta):
    """Return the paper's lower bound o_{t,i} on P_i: an arm of S reveals i, and its gap is at most gap_i."""
    cap = exploration_cap(len(gap), t, lam)
    return np.array([min(cap, beta * math.log(t) / (t * g**2)) if g > 0 else cap for g in gap])


def softmax(x):
    most = max(x)
    e = [math.exp(each - most) for each in x]
    sum_ = math.fsum(e)
    return np.array([each / sum_ for each in e])


def observation(p, A):
    """Return P_i, the probability that i is revealed."""
    K = len(p)
    return np.array([math.fsum(p[j] for j in range(K) if A[j][i]) for i in range(K)])


def theta(p, A):
    """Return the sum of p_i / P_i, where 0 / 0 is 0."""
    P = observation(p, A)
    return math.fsum(p[i] / P[i] for i in range(len(p)) if p[i] > 0)


# Numbers of a graph, by trying all sets of arms.


def independence(A):
    """Return the size of the largest set without an arc between two of its arms."""
    return _largest(A, lambda i, j: not A[i][j] and not A[j][i])


def strong_independence(A):
    """Return the size of the largest set without two arms that reveal each other."""
    return _largest(A, lambda i, j: not (A[i][j] and A[j][i]))


def _largest(A, compatible):
    return max(len(arms) for arms in _subsets(A) if all(compatible(i, j) for i, j in itertools.combinations(arms, 2)))


def maximum_acyclic(A):
    """Return the size of the largest set on which the graph, without its loops, has no directed cycle."""
    return max(len(arms) for arms in _subsets(A) if _is_acyclic(A, arms))


def _is_acyclic(A, arms):
    left = set(arms)
    while True:
        free = {i for i in left if not any(A[j][i] for j in left if j != i)}
        if not free:
            return not left
        left -= free


def domination(A):
    """Return the size of the smallest set that reveals all arms."""
    return min(len(arms) for arms in _subsets(A) if all(any(A[i][j] for i in arms) for j in range(len(A))))


def clique_cover(A):
    """Return the smallest number of sets, of arms that all reveal each other, that make up all arms."""

    def smallest(cliques, i):
        if i == len(A):
            return len(cliques)
        counts = [smallest([*cliques, [i]], i + 1)]
        for k, clique in enumerate(cliques):
            if all(A[i][j] and A[j][i] for j in clique):
                counts.append(smallest([*cliques[:k], [*clique, i], *cliques[k + 1 :]], i + 1))
        return min(counts)

    return smallest([], 0)


def _subsets(A):
    return itertools.chain.from_iterable(itertools.combinations(range(len(A)), n) for n in range(len(A) + 1))


# Exponential weights: EXP3, EXP3-SET, EXP3-IX, Hedge and EXP3.G. In every round, for all arms i:
#
#  1  q_i ~ exp(-eta L_i), and p = q, but for EXP3.G: p_i = (1 - gamma) q_i + gamma [i in U] / |U|
#  2  play I ~ p, and be shown l_i of each arm i that I reveals; each adds an estimate of l_i to L_i:
#
#     EXP3      eta = sqrt(ln K / (t K))                           l_I / p_I, of the played arm alone
#     EXP3-SET  eta = sqrt(ln K / (K + sum of theta before t))     l_i / P_i; theta = sum_i p_i / P_i
#     EXP3-IX   eta = sqrt(ln K / (K + sum of Q before t))         l_i / (P_i + eta); Q = sum_i p_i / (P_i + eta)
#     Hedge     eta = 2 sqrt(ln K / t)                             l_i
#     EXP3.G    eta = 2 gamma, gamma = min(sqrt(1 / (alpha T)), 1/2), U all arms, if each arm reveals itself or is
#               revealed by all others; if not, eta = gamma^2 / |U|, gamma = min((|U| ln K / T)^(1/3), 1/2), where
#               U reveals all arms of which that is not true        l_i / P_i


class Exponential:
    """What these learners share; each says how its rate comes about and what it adds to L."""

    def __init__(self, n_arms):
        self.K = n_arms
        self.t = 0
        self.L = np.zeros(n_arms)
        self.past = float(n_arms)  # K and what EXP3-SET and EXP3-IX add up

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        eta = self.rate(self.t)
        p = self.mix(softmax([-eta * L for L in self.L]))
        return Round(self.t, A, p, observation(p, A), math.nan, eta)

    def update(self, told: Round, arm, losses, A=None):
        A = told.A if A is None else np.array(A, dtype=bool)
        assert set(losses) == {i for i in range(self.K) if A[arm, i]}
        P = observation(told.p, A)
        for i, l in losses.items():
            self.L[i] += self.estimate(l, i, arm, told, P)
        self.past += self.grown(told, P)

    def mix(self, q):
        return q

    def grown(self, told, P):  # noqa: ARG002
        return 0.0


class Exp3(Exponential):
    def rate(self, t):
        return math.sqrt(math.log(self.K) / (t * self.K))

    def estimate(self, l, i, arm, told, P):  # noqa: ARG002
        return l / told.p[arm] if i == arm else 0.0


class Exp3Set(Exponential):
    def __init__(self, n_arms, eta_scale=1.0):
        super().__init__(n_arms)
        self.eta_scale = eta_scale

    def rate(self, t):  # noqa: ARG002
        return self.eta_scale * math.sqrt(math.log(self.K) / self.past)

    def estimate(self, l, i, arm, told, P):  # noqa: ARG002
        return l / P[i]

    def grown(self, told, P):
        return math.fsum(told.p[i] / P[i] for i in range(self.K) if told.p[i] > 0)


# EXP3-SET and EXP3.G++ with late="guarded": feedback comes late, and the rate counts what has not come. With
# Theta = K before round 1, in round t, where sigma is the number of rounds before t that enter the weights and were
# neither told nor given up:
#
#  1  ask:   Theta += 2 sigma (EXP3-SET) or sigma (EXP3.G++)
#  2         eta = m sqrt(ln K / Theta) (EXP3-SET) or m sqrt(ln K / (2 Theta)) (EXP3.G++), p as without delay
#  3         Theta += theta(p), with the graph that is known at ask
#  4  tell:  as without delay, in any order, but Theta grows only by what the theta of the graph that was shown at
#            tell is above that of the graph that was known at ask
#  5  give up: nothing, but that the round is not in sigma any more
#
# The initial rounds of EXP3.G++ do not enter the weights, and are in no sigma.


class GuardedExp3Set:
    def __init__(self, n_arms, eta_scale=1.0):
        self.K = n_arms
        self.m = eta_scale
        self.t = 0
        self.L = np.zeros(n_arms)
        self.Theta = float(n_arms)
        self.missing = set()

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        self.Theta += 2 * len(self.missing)  # 1
        eta = self.m * math.sqrt(math.log(self.K) / self.Theta)  # 2
        p = softmax([-eta * L for L in self.L])
        self.Theta += theta(p, A)  # 3
        self.missing.add(self.t)
        return Round(self.t, A, p, observation(p, A), theta(p, A), eta)

    def update(self, told: Round, arm, losses, A=None):
        A = told.A if A is None else np.array(A, dtype=bool)
        assert set(losses) == {i for i in range(self.K) if A[arm, i]}
        P = observation(told.p, A)
        for i, l in losses.items():
            self.L[i] += l / P[i]  # 4
        self.Theta += max(0.0, theta(told.p, A) - told.theta)
        self.missing.remove(told.t)

    def give_up(self, told: Round):
        self.missing.remove(told.t)  # 5


class GuardedExp3Gpp(Exp3Gpp):
    """The exploration, the weights and what is learned are those of EXP3.G++ with the adaptive rate."""

    def __init__(self, n_arms, **options):
        super().__init__(n_arms, "adaptive", **options)
        self.missing = set()

    def distribution(self, A) -> Round:
        if self.t >= len(self.start):
            self.Theta += len(self.missing)  # 1
        made = super().distribution(A)  # 2
        if self.t > len(self.start):
            self.Theta += made.theta  # 3
            self.missing.add(made.t)
        return made

    def update(self, told: Round, arm, losses, A=None):
        Theta = self.Theta
        super().update(told, arm, losses, A)
        if told.t > len(self.start):
            shown = theta(told.p, told.A if A is None else np.array(A, dtype=bool))
            self.Theta = Theta + max(0.0, shown - told.theta)  # 4
            self.missing.remove(told.t)

    def give_up(self, told: Round):
        self.missing.discard(told.t)  # 5


# EXP3-SET where arms may be absent. R = 0, Theta = K. Each round, with the arms A_t that are there:
#
#  1  eta = sqrt(ln K / Theta); p_i ~ exp(eta R_i) on A_t, and 0 elsewhere; P = pA
#  2  draw; x_i = l_i / P_i for the revealed i in A_t, else 0; m = sum p_i x_i; v = (eta / 2) sum p_i x_i^2
#  3  R_i += m - x_i - v for i in A_t only
#  4  Theta += sum over A_t of p_i / P_i


class Exp3SetAbsent:
    """`A` is the matrix without absent arms: an arm is there if it reveals itself."""

    def __init__(self, n_arms, eta_scale=1.0):
        self.K, self.eta_scale = n_arms, eta_scale
        self.t, self.Theta = 0, float(n_arms)
        self.R = np.zeros(n_arms)

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        eta = self.eta_scale * math.sqrt(math.log(self.K) / self.Theta)
        there = [i for i in range(self.K) if A[i, i]]
        top = max(self.R[i] for i in there)
        w = {i: math.exp(eta * (self.R[i] - top)) for i in there}
        p = np.array([w.get(i, 0.0) / math.fsum(w.values()) for i in range(self.K)])
        return Round(self.t, A, p, observation(p, A), math.nan, eta)

    def update(self, told: Round, arm, losses, A=None):
        A = told.A if A is None else np.array(A, dtype=bool)
        there = [i for i in range(self.K) if A[i, i]]
        P = observation(told.p, A)
        x = {i: losses[i] / P[i] if A[arm, i] else 0.0 for i in there}
        m = math.fsum(told.p[i] * x[i] for i in there)
        v = told.eta / 2 * math.fsum(told.p[i] * x[i] ** 2 for i in there)
        for i in there:
            self.R[i] += m - x[i] - v
        self.Theta += math.fsum(told.p[i] / P[i] for i in there if told.p[i] > 0)


# EXP3-SET for a best arm that moves. q = uniform, Theta = K, c > 0 is the tuning. Each round:
#
#  1  eta = sqrt(c / Theta); p = q; P = qA; draw; x_i = l_i / P_i for the revealed i, else 0; Theta += theta(q)
#  2  v ~ q exp(-eta x)
#  3  q = (1 - zeta) v + zeta / K, with zeta = 1 / T, or 1 / (t + 1) after the t-th round that was told


class Exp3SetTracking:
    def __init__(self, n_arms, c, horizon=None, eta_scale=1.0):
        self.K, self.c, self.T, self.eta_scale = n_arms, c, horizon, eta_scale
        self.t, self.told, self.Theta = 0, 0, float(n_arms)
        self.q = np.full(n_arms, 1 / n_arms)

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        eta = self.eta_scale * math.sqrt(self.c / self.Theta)
        return Round(self.t, A, self.q.copy(), observation(self.q, A), math.nan, eta)

    def update(self, told: Round, arm, losses, A=None):
        A = told.A if A is None else np.array(A, dtype=bool)
        P = observation(told.p, A)
        v = [self.q[i] * (math.exp(-told.eta * losses[i] / P[i]) if A[arm, i] else 1.0) for i in range(self.K)]
        self.told += 1
        zeta = 1 / (self.told + 1) if self.T is None else 1 / self.T
        self.q = np.array([(1 - zeta) * each / math.fsum(v) + zeta / self.K for each in v])
        self.Theta += math.fsum(told.p[i] / P[i] for i in range(self.K) if told.p[i] > 0)


class Exp3Ix(Exponential):
    def rate(self, t):  # noqa: ARG002
        return math.sqrt(math.log(self.K) / self.past)

    def estimate(self, l, i, arm, told, P):  # noqa: ARG002
        return l / (P[i] + told.eta)

    def grown(self, told, P):
        return math.fsum(told.p[i] / (P[i] + told.eta) for i in range(self.K))


class Hedge(Exponential):
    def rate(self, t):
        return 2 * math.sqrt(math.log(self.K) / t)

    def estimate(self, l, i, arm, told, P):  # noqa: ARG002
        return l


class Exp3G(Exponential):
    def __init__(self, A, horizon, alpha=None, eta=None, gamma=None, eta_power=0, gamma_power=0, explored=None):
        super().__init__(len(A))
        self.powers = eta_power, gamma_power
        weak = weakly_observable(A)
        if weak:
            self.U = weak_dominating_set(A, weak)
            self.gamma = min((len(self.U) * math.log(self.K) / horizon) ** (1 / 3), 1 / 2)
            self.eta = self.gamma**2 / len(self.U)
        else:
            alpha = independence(A) if alpha is None else alpha
            self.U = list(range(self.K))
            self.gamma = min(math.sqrt(1 / (alpha * horizon)), 1 / 2)
            self.eta = 2 * self.gamma
        self.eta = self.eta if eta is None else eta
        self.gamma = self.gamma if gamma is None else gamma
        self.U = self.U if explored is None else explored

    def rate(self, t):
        self.share = self.gamma / t ** self.powers[1]
        return self.eta / t ** self.powers[0]

    def mix(self, q):
        return np.array([(1 - self.share) * q[i] + self.share * (i in self.U) / len(self.U) for i in range(self.K)])

    def estimate(self, l, i, arm, told, P):  # noqa: ARG002
        return l / P[i]


# EXP3.G without a horizon, our own (docs/bounds.md, 7). b = 8; in each round t, on its graph A:
#  1  eta = 1 / b, q_i ~ exp(-eta L_i)
#  2  U = greedy arms that reveal all weakly observable ones, w = sum of q_i over the weakly observable i
#  3  j = arm with q_j > 1/2, no self-loop, revealed by all others; g = 1 / (4 t), or max(1 / (4 t), 2 eta) with a j
#  4  c = min(1/4, sqrt(eta w |U| / 2)),  p_i = (1 - g - c) q_i + g / K + (c / |U| if i in U)
#  5  V = sum_i q_i / P_i, or 2 sum_{i != j} q_i (1 / P_i + 1 / P_j);  b += (g + c + eta V / 2) / ln K


class Exp3GAdaptive:
    def __init__(self, n_arms):
        self.K = n_arms
        self.t = 0
        self.b = 8.0
        self.L = np.zeros(n_arms)

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        K, eta = self.K, 1 / self.b
        self.t += 1
        q = softmax([-eta * L for L in self.L])
        weak = weakly_observable(A)
        U = weak_dominating_set(A, weak)
        special = [i for i in range(K) if not A[i][i] and i not in weak and q[i] > 1 / 2]
        g = max(1 / (4 * self.t), 2 * eta) if special else 1 / (4 * self.t)
        c = min(1 / 4, math.sqrt(eta * sum(q[i] for i in weak) * len(U) / 2))
        p = np.array([(1 - g - c) * q[i] + g / K + (c / len(U) if i in U else 0) for i in range(K)])
        P = observation(p, A)
        if special:
            (j,) = special
            V = 2 * sum(q[i] * (1 / P[i] + 1 / P[j]) for i in range(K) if i != j)
        else:
            V = sum(q[i] / P[i] for i in range(K))
        return Round(self.t, A, p, P, g + c + eta * V / 2, eta)

    def update(self, told: Round, arm, losses, A=None):  # noqa: ARG002
        P = observation(told.p, told.A if A is None else np.array(A, dtype=bool))
        for i, l in losses.items():
            self.L[i] += l / P[i]
        self.b += told.theta / math.log(self.K)


def weakly_observable(A):
    """Return the arms that do not reveal themselves and that not all others reveal."""
    K = len(A)
    return [i for i in range(K) if not A[i][i] and not all(A[j][i] for j in range(K) if j != i)]


def weak_dominating_set(A, weak):
    """Return arms that reveal all of `weak`: always the one that reveals most that are left, the lowest index first."""
    left = set(weak)
    U = []
    while left:
        best = max(range(len(A)), key=lambda i: (sum(A[i][j] for j in left), -i))
        U.append(best)
        left -= {j for j in left if A[best][j]}
    return U


# Luo, Tong, Zhang, Zhang, ALT 2023. q_i ~ exp(-eta L_i). W_i = sum of p_j over the arms j that reveal i. For each i
# that I reveals, L_i += l_i / W_i, with gamma added to W_i if i reveals itself. ln is ln(1 / delta).
#     Algorithm 1 (strong): p = (1 - eta) q + eta / K; eta = gamma = beta = min(1/2, sqrt(ln / (alpha T))); an arm j
#     that does not reveal itself with p_j > 1/2 has L_j += beta / W_j.
#     Algorithm 2 (weak): D reveals all arms that do not reveal themselves, d = |D|, p = (1 - eps d) q + eps 1[D];
#     gamma = min(1/2, sqrt(ln / (a T))), eps = min(1 / (2 d), T^(1/3) (T d)^(-2/3) ln^(1/3)),
#     eta = min(T^(-1/3) (T d)^(-1/3) ln^(-1/3), gamma), a the independence number among those that reveal themselves.


class Luo2023:
    def __init__(self, n_arms, rates, *, weak):
        self.K = n_arms
        self.eta, self.gamma, self.eps = rates
        self.weak = weak
        self.t = 0
        self.L = np.zeros(n_arms)

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        q = softmax([-self.eta * L for L in self.L])
        p = self.explore(q, A) if self.weak else np.array([(1 - self.eta) * x + self.eta / self.K for x in q])
        return Round(self.t, A, p, observation(p, A), math.nan, self.eta)

    def explore(self, q, A):
        D = weak_dominating_set(A, [i for i in range(self.K) if not A[i][i]])
        return np.array([(1 - self.eps * len(D)) * q[i] + self.eps * (i in D) for i in range(self.K)])

    def update(self, told: Round, arm, losses, A=None):  # noqa: ARG002
        A = told.A if A is None else np.array(A, dtype=bool)
        W = observation(told.p, A)
        for i, l in losses.items():
            self.L[i] += l / (W[i] + self.gamma * A[i][i])
        for j in range(self.K):
            if not self.weak and not A[j][j] and told.p[j] > 1 / 2:
                self.L[j] += self.eta / W[j]


def luo_rates(T, delta, *, alpha=None, d=None, a=None, printed=False):
    """Return eta, gamma and eps: with alpha of Algorithm 1, else of Algorithm 2."""
    ln = math.log(1 / delta)
    if alpha is not None:
        rate = min(1 / 2, 1 / math.sqrt(alpha * T * ln) if printed else math.sqrt(ln / (alpha * T)))
        return rate, rate, 0.0
    gamma = min(1 / 2, math.sqrt(ln / (a * T))) if a else 1 / 2
    if not d:
        return gamma, gamma, 0.0
    eps = min(1 / (2 * d), T ** (1 / 3) * (T * d) ** (-2 / 3) * ln ** (1 / 3))
    return min(T ** (-1 / 3) * (T * d) ** (-1 / 3) * ln ** (-1 / 3), gamma), gamma, eps


# Rivals for bandits and graphs beyond exponential weights in their simplest form. In each round t, for all arms i:
#
# EXP3++: Seldin, Lugosi, COLT 2017. EXP3.G++ for bandits: only the played arm is observed. Each is played once first.
#  1  gap_i as in EXP3.G++ with gamma = 3
#  2  eps_i = min(1 / (2 K), sqrt(ln K / (t K)) / 2, beta ln t / (t gap_i^2)), beta = 256
#  3  p_i = (1 - sum_j eps_j) q_i + eps_i, q_i ~ exp(-eta Ltilde_i), eta = sqrt(ln K / (t K)) / 2


class Exp3pp:
    def __init__(self, n_arms, gamma=3.0, beta=256.0):
        self.K = n_arms
        self.gamma = gamma
        self.beta = beta
        self.t = 0
        self.Ltilde = np.zeros(n_arms)
        self.Lhat = np.zeros(n_arms)
        self.O = np.zeros(n_arms)

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        t, K = self.t, self.K
        if t <= K:
            p = np.eye(K)[t - 1]
            return Round(t, A, p, p, math.nan)
        gap = gaps(self.Lhat, self.O, t, self.gamma)  # 1
        eta = 0.5 * math.sqrt(math.log(K) / (t * K))
        xi = [self.beta * math.log(t) / (t * g**2) if g > 0 else math.inf for g in gap]
        eps = np.array([min(1 / (2 * K), eta, x) for x in xi])  # 2
        q = softmax([-eta * L for L in self.Ltilde])
        p = (1 - sum(eps)) * q + eps  # 3
        return Round(t, A, p, p, math.nan, eta, gap, None, eps, q)

    def update(self, told: Round, arm, losses, A=None):  # noqa: ARG002
        if told.t > self.K:
            self.Ltilde[arm] += losses[arm] / told.p[arm]
        self.Lhat[arm] += losses[arm]
        self.O[arm] += 1


# Tsallis-INF: Zimmert, Seldin, JMLR 2021. eta = 2 / sqrt(t) and L_I += l_I / p_I ("iw"), or eta = 4 / sqrt(t) and
# L_i += [i = I] (l_i - B_i) / p_i + B_i with B_i = [p_i >= eta^2] / 2 ("rv"); p_i = 4 / (eta (L_i - x))^2. On a graph,
# "i is revealed" stands for i = I, and P_i for p_i.
#
# q-Tsallis: Eldowa, Esposito, Cesari, Cesa-Bianchi, NeurIPS 2023. L_i += l_i / P_i for each i that I reveals,
# p_i = (q / ((1 - q) (eta L_i + x)))^(1 / (1 - q)); q and eta as in `q_tsallis_constants`.


def tsallis_weights(L, eta):
    """Return p_i = 4 / (eta (L_i - x))^2, where x makes the sum 1, and x."""
    d = np.array(L) - min(L)
    p, y = _weights(lambda y: 4 / (eta * d + y) ** 2, 2, 2 * math.sqrt(len(L)))
    return p, min(L) - y / eta


def q_tsallis_weights(L, eta, q):
    """Return p_i = (q / ((1 - q) (eta L_i + x)))^(1 / (1 - q)), where x makes the sum 1, and x."""
    d, c = np.array(L) - min(L), q / (1 - q)
    p, y = _weights(lambda y: (c / (eta * d + y)) ** (1 / (1 - q)), c, c * len(L) ** (1 - q))
    return p, y - eta * min(L)


def _weights(p, low, high):
    """Halve an interval, at whose ends p sums to at least and at most 1, until it is a point."""
    for _ in range(100):
        middle = (low + high) / 2
        if math.fsum(p(middle)) > 1:
            low = middle
        else:
            high = middle
    return p(high) / math.fsum(p(high)), high


class TsallisInf:
    def __init__(self, n_arms, estimator="iw", feedback="bandit"):
        self.K = n_arms
        self.estimator = estimator
        self.feedback = feedback
        self.t = 0
        self.L = np.zeros(n_arms)

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        eta = {"iw": 2, "rv": 4}[self.estimator] / math.sqrt(self.t)
        p, _ = tsallis_weights(self.L, eta)
        return Round(self.t, A, p, observation(p, A), math.nan, eta)

    def update(self, told: Round, arm, losses, A=None):
        A = told.A if A is None else np.array(A, dtype=bool)
        seen = losses if self.feedback == "graph" else {arm: losses[arm]}
        P = observation(told.p, A) if self.feedback == "graph" else told.p
        for i in range(self.K):
            B = 0.5 if self.estimator == "rv" and P[i] >= told.eta**2 else 0.0
            self.L[i] += B + ((seen[i] - B) / P[i] if i in seen else 0.0)


def q_tsallis_constants(K, alpha, T):
    L = math.log(K / alpha)
    q = 0.5 * (1 + L / (math.sqrt(L**2 + 4) + 2))
    return q, math.sqrt(2 * q * K ** (1 - q) / ((1 - q) * T * alpha**q))


class QTsallis:
    def __init__(self, n_arms, alpha, horizon):
        self.K = n_arms
        self.q, self.eta = q_tsallis_constants(n_arms, alpha, horizon)
        self.t = 0
        self.L = np.zeros(n_arms)

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        p, _ = q_tsallis_weights(self.L, self.eta, self.q)
        return Round(self.t, A, p, observation(p, A), theta(p, A), self.eta)

    def update(self, told: Round, arm, losses, A=None):  # noqa: ARG002
        P = observation(told.p, told.A if A is None else np.array(A, dtype=bool))
        for i, l in losses.items():
            self.L[i] += l / P[i]


# Ito, Tsuchiya, Honda, NeurIPS 2022, where every arm reveals itself. p_i ~ exp(-L_i / beta), L_i += l_i / P_i for each
# i that I reveals; beta += c / sqrt(1 + (sum of H(p) up to t) / ln K), c = sqrt(Z (1 + ln T) / ln K) / 2, from
# max(1, c) on; H is the entropy.


class Ito2022:
    def __init__(self, n_arms, Z, horizon):
        self.K = n_arms
        self.c = 0.5 * math.sqrt(Z * (1 + math.log(horizon)) / math.log(n_arms))
        self.beta = max(1.0, self.c)
        self.t = 0
        self.L = np.zeros(n_arms)
        self.entropies = []

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        p = softmax([-L / self.beta for L in self.L])
        return Round(self.t, A, p, observation(p, A), theta(p, A), 1 / self.beta)

    def update(self, told: Round, arm, losses, A=None):  # noqa: ARG002
        A = told.A if A is None else np.array(A, dtype=bool)
        P = observation(told.p, A)
        for i, l in losses.items():
            self.L[i] += l / P[i]
        self.entropies.append(entropy(told.p))
        self.beta += self.c / math.sqrt(1 + math.fsum(self.entropies) / math.log(self.K))


# SPM: Ito, Tsuchiya, Honda, COLT 2024, appendix D.6. L = 0, b = 4 K / (1 - a), b' = 8 / (1 - a), or 0 if a <= 1/2:
#  1  p = argmin of <L, x> - (b / a) sum_i x_i^a - (b' / a') sum_i x_i^a', a' = 1 - a
#  2  play I ~ p; P_i = sum of p_j over the arms j that reveal i
#  3  m = min(max p, 1 - max p), c_i = min(p_i, m), z = sum_i c_i^(2 - a) / P_i / (1 - a), h = (sum_i p_i^a - 1) / a
#  4  L_i += l_i / P_i for each i that I reveals; b += z / (b h) with the b of the round


def two_power_weights(L, b, a, b_other):
    """Return the p of line 1: b p_i^(a - 1) + b' p_i^(-a) = L_i - min L + mu, where mu makes the sum 1."""

    def share(y):
        def excess(s):
            return b * math.exp((a - 1) * s) + b_other * math.exp(-a * s) - y

        low = math.log(b / y) / (1 - a)
        low = low if b_other == 0 else max(low, math.log(b_other / y) / a)
        low -= 1e-9
        return math.exp(brentq(excess, low, low + 1e-8 + math.log(2) / min(a, 1 - a), xtol=1e-15, rtol=1e-15))

    def surplus(mu):
        return math.fsum(share(x - min(L) + mu) for x in L) - 1

    K = len(L)
    lowest, highest = b + b_other, b * K ** (1 - a) + b_other * K**a
    mu = brentq(surplus, lowest * (1 - 1e-9), highest * (1 + 1e-9), xtol=1e-13, rtol=1e-15)
    return np.array([share(x - min(L) + mu) for x in L])


class Spm2024:
    def __init__(self, n_arms, a):
        self.K = n_arms
        self.a = a
        self.b = 4 * n_arms / (1 - a)
        self.b_other = 0.0 if a <= 1 / 2 else 8 / (1 - a)
        self.t = 0
        self.L = np.zeros(n_arms)
        self.bs = {}

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        self.bs[self.t] = self.b
        p = two_power_weights(self.L, self.b, self.a, self.b_other)
        return Round(self.t, A, p, observation(p, A), theta(p, A), 1 / self.b)

    def update(self, told: Round, arm, losses, A=None):  # noqa: ARG002
        P = observation(told.p, told.A if A is None else np.array(A, dtype=bool))
        z, h = self.stability(told.p, P), self.penalty(told.p)
        for i, l in losses.items():
            self.L[i] += l / P[i]
        self.b += z / (self.bs[told.t] * h)

    def stability(self, p, P):
        most = int(np.argmax(p))
        m = min(p[most], math.fsum(p[i] for i in range(self.K) if i != most))
        return math.fsum(min(x, m) ** (2 - self.a) / P[i] for i, x in enumerate(p)) / (1 - self.a)

    def penalty(self, p):
        """Return h = (1 / a) sum_i p_i (p_i^(a - 1) - 1), with ln p_i of the largest from the sum of the others."""
        most = int(np.argmax(p))
        rest = math.fsum(p[i] for i in range(self.K) if i != most)
        logs = [math.log1p(-rest) if i == most else math.log(x) for i, x in enumerate(p)]
        return math.fsum(x * math.expm1((self.a - 1) * s) for x, s in zip(p, logs, strict=True)) / self.a


def default_power(K, alpha):
    return 1 - 1 / (2 * (1 + math.log(K / alpha)))


def entropy(p):
    return -math.fsum(x * math.log(x) for x in p if x > 0)


# EXP3-DOM: Alon, Cesa-Bianchi, Gentile, Mansour, NIPS 2013, Algorithm 2. R is a dominating set of the graph, greedily;
# b = floor(log2 |R|); p_i = (1 - g) w_i / sum_j w_j + g [i in R] / |R|; w_i *= exp(-g lhat_i / 2^b) in learner b alone,
# g = sqrt(2^b ln K / M). Q_b adds up 1 + theta / 2^(b+1); when it is above M, learner b begins anew with twice the M.


class Exp3Dom:
    def __init__(self, n_arms):
        self.K = n_arms
        self.t = 0
        self.begun = 0
        self.learners = {}
        for b in range(n_arms.bit_length()):
            M = 1
            while 2**b * math.log(n_arms) > M:
                M *= 2
            self.learners[b] = {"L": np.zeros(n_arms), "Q": 0.0, "M": M}

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        R = greedy_dominating_set(A)
        b = math.floor(math.log2(len(R)))
        g = math.sqrt(2**b * math.log(self.K) / self.learners[b]["M"])
        q = softmax([-g * L / 2**b for L in self.learners[b]["L"]])
        p = np.array([(1 - g) * q[i] + g * (i in R) / len(R) for i in range(self.K)])
        return Round(self.t, A, p, observation(p, A), theta(p, A), g / 2**b, S=set(R), q=q)

    def update(self, told: Round, arm, losses, A=None):  # noqa: ARG002
        A = told.A if A is None else np.array(A, dtype=bool)
        P = observation(told.p, A)
        b = math.floor(math.log2(len(told.S)))
        learner = self.learners[b]
        for i, l in losses.items():
            learner["L"][i] += l / P[i]
        learner["Q"] += 1 + theta(told.p, A) / 2 ** (b + 1)
        if learner["Q"] > learner["M"]:
            self.learners[b] = {"L": np.zeros(self.K), "Q": 0.0, "M": 2 * learner["M"]}
            self.begun += 1


def greedy_dominating_set(A):
    """Return arms that reveal all: always the one that reveals most that are left, the lowest index first."""
    return weak_dominating_set(A, range(len(A)))


# ELP: Mannor, Shamir, NIPS 2011. Gains are 1 - l. s has the largest v = min_i sum of s_j over the j that reveal i;
# p_i = (1 - b / v) w_i / sum_j w_j + (b / v) s_i; w_i *= exp(b ghat_i), ghat_i = (1 - l_i) / P_i for each revealed i.
# b is given; or sqrt(ln K / (2 C)), at most v / 2, where C is (e - 2) K + 1 / v and all (e - 2) theta + 1 / v before.


class Elp:
    def __init__(self, A, s, b=None):
        self.K = len(A)
        self.s = s
        self.v = min(observation(s, A))
        self.b = b
        self.C = (math.e - 2) * self.K + 1 / self.v
        self.t = 0
        self.G = np.zeros(self.K)

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        b = min(self.v / 2, math.sqrt(math.log(self.K) / (2 * self.C))) if self.b is None else self.b
        q = softmax([b * G for G in self.G])
        p = (1 - b / self.v) * q + b / self.v * self.s
        return Round(self.t, A, p, observation(p, A), theta(p, A), b)

    def update(self, told: Round, arm, losses, A=None):  # noqa: ARG002
        for i, l in losses.items():
            self.G[i] += (1 - l) / told.P[i]
        self.C += (math.e - 2) * told.theta + 1 / self.v


# Counting observations: UCB-N, UCB-MaxN, TS-N, Maillard, UCB-LP and AlphaSample. O_i is how often arm i was observed,
# and mean_i the mean of what was. What was told is all that counts, whenever it was asked for.
#
#  UCB-N        play the arm of the smallest mean_i - sqrt(2 ln t / O_i); an arm never observed goes first
#  UCB-MaxN     let J be that arm; play the arm of the smallest mean among those that reveal J and were observed; J if
#               there is none
#  TS-N         play the arm of the smallest theta_i ~ Beta(1 + losses of 1, 1 + losses of 0)
#  Maillard     while some arm was never observed, play the arm that reveals most of those; then play i with a chance in
#               proportion to exp(-c O_i (mean_i - min mean)^2 / v_i), where v_i is 1/4 plus the sum of squares around
#               mean_i, divided by O_i + 1
#  UCB-LP       z are weights that reveal each arm with a weight of 1. B = all arms. For m = 0, 1, ... with D = 2^-m, as
#               long as T D^2 >= e and B has two arms or more: n(m) = ceil(2 ln(T D^2) / D^2); observe each arm of B
#               n(m) times, by plays of each arm ceil(z_i (n(m) - n(m - 1))) times if sum z <= |B| min(1, 4 D), else by
#               plays of the arms of B that lack observations; those who lack something take turns, by t; then drop i
#               from B if mean_i - r > min mean_j + r, r = sqrt(ln(T D^2) / (2 n(m))). At last play the smallest mean.
#  AlphaSample  phase r = 1, 2, ... has eps = 2^-(r + 1) and ceil(2 ln(2 K T) / eps^2) passes. In each, U is first the
#               set of active arms; a uniform one of U is played, and what it reveals leaves U, until U is empty. Then
#               arms leave whose mean in the phase is more than 2 eps above the smallest.


class Counting:
    """What these learners share; each says which arms it plays, with equal probability, and what it looks at."""

    def __init__(self, n_arms):
        self.K = n_arms
        self.t = 0
        self.seen = [[] for _ in range(n_arms)]

    @property
    def O(self):  # noqa: E743
        return [len(each) for each in self.seen]

    def mean(self, i):
        return sum(self.seen[i]) / len(self.seen[i])

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        arms = self.choose(A)
        p = np.array([1 / len(arms) if i in arms else 0.0 for i in range(self.K)])
        return Round(self.t, A, p, observation(p, A), math.nan)

    def update(self, told: Round, arm, losses, A=None):
        A = told.A if A is None else np.array(A, dtype=bool)
        assert set(losses) == {i for i in range(self.K) if A[arm, i]}
        for i, l in losses.items():
            self.seen[i].append(l)
        self.look(arm, losses)

    def look(self, arm, losses):
        pass


class UcbN(Counting):
    def __init__(self, n_arms, width=2.0, delta=None, unseen=None):
        super().__init__(n_arms)
        self.width, self.delta, self.unseen = width, delta, unseen

    def lowest(self):
        if 0 in self.O and self.unseen is None:
            return self.O.index(0)
        log = math.log(self.t if self.delta is None else 1 / self.delta)
        shown = [(self.mean(i), self.O[i]) if self.O[i] else (self.unseen, 1) for i in range(self.K)]
        bound = [mean - math.sqrt(self.width * log / n) for mean, n in shown]
        return bound.index(min(bound))

    def choose(self, A):  # noqa: ARG002
        return {self.lowest()}


class UcbMaxN(UcbN):
    def choose(self, A):
        J = self.lowest()
        candidates = [i for i in range(self.K) if A[i][J] and self.O[i] > 0]
        return {min(candidates, key=lambda i: (self.mean(i), i)) if candidates else J}


class Maillard(Counting):
    def __init__(self, n_arms, sharpness=1.0):
        super().__init__(n_arms)
        self.sharpness = sharpness

    def distribution(self, A) -> Round:
        A = np.array(A, dtype=bool)
        self.t += 1
        if 0 in self.O:
            new = [sum(A[j, i] and self.O[i] == 0 for i in range(self.K)) for j in range(self.K)]
            p = np.eye(self.K)[new.index(max(new))]
        else:
            mean = np.array([self.mean(i) for i in range(self.K)])
            v = [(sum((l - mean[i]) ** 2 for l in self.seen[i]) + 0.25) / (self.O[i] + 1) for i in range(self.K)]
            p = np.exp(-self.sharpness * np.array(self.O) * (mean - min(mean)) ** 2 / v)
            p /= sum(p)
        return Round(self.t, A, p, observation(p, A), math.nan)


class TsN(Counting):
    def distribution(self, A) -> Round:
        self.t += 1
        p = np.full(self.K, math.nan if self.K > 1 else 1.0)
        return Round(self.t, np.array(A, dtype=bool), p, p, math.nan)

    def posterior(self, i, a=1, b=1):
        return a + self.seen[i].count(1), b + self.seen[i].count(0)


class UcbLp(Counting):
    def __init__(self, z, horizon):
        super().__init__(len(z))
        self.z = z
        self.T = horizon
        self.B = set(range(self.K))
        self.m = 0
        self.plan(before=0)

    def plan(self, before):
        D = 2.0**-self.m
        self.over = math.log(self.T * D * D) < 1
        if not self.over:
            self.n = math.ceil(2 * math.log(self.T * D * D) / D**2)
            cover = sum(self.z) <= len(self.B) * min(1, 4 * D)
            # The weights have rounding errors, which must not make a play more.
            self.left = [math.ceil(z * (self.n - before) - 1e-4) if cover else 0 for z in self.z]

    def choose(self, A):  # noqa: ARG002
        if self.over or len(self.B) == 1:
            return {min(self.B, key=lambda i: (self.mean(i) if self.O[i] else 0.0, i))}
        lacking = [i for i in range(self.K) if self.left[i] > 0] or [i for i in sorted(self.B) if self.O[i] < self.n]
        return {lacking[(self.t - 1) % len(lacking)]}

    def look(self, arm, losses):  # noqa: ARG002
        if self.over:
            return
        self.left[arm] -= 1
        while not self.over and len(self.B) > 1 and all(self.O[i] >= self.n for i in self.B):
            radius = math.sqrt(math.log(self.T * 4.0**-self.m) / (2 * self.n))
            least = min(self.mean(i) for i in self.B)
            self.B = {i for i in self.B if self.mean(i) - radius <= least + radius}
            self.m += 1
            self.plan(before=self.n)


class AlphaSample(Counting):
    def __init__(self, n_arms, horizon):
        super().__init__(n_arms)
        self.T = horizon
        self.active = set(range(n_arms))
        self.begin_phase(1)

    def begin_phase(self, r):
        self.r = r
        self.eps = 2.0 ** -(r + 1)
        self.passes_left = math.ceil(2 * math.log(2 * self.K * self.T) / self.eps**2)
        self.noted = {i: [] for i in self.active}
        self.U = set(self.active)

    def choose(self, A):  # noqa: ARG002
        return self.U

    def look(self, arm, losses):  # noqa: ARG002
        if len(self.active) == 1:
            return
        for i in self.active & set(losses):
            self.noted[i].append(losses[i])
            self.U.discard(i)
        if self.U:
            return
        self.U = set(self.active)
        self.passes_left -= 1
        if self.passes_left == 0:
            mean = {i: sum(self.noted[i]) / len(self.noted[i]) for i in self.active}
            self.active = {i for i in self.active if mean[i] <= min(mean.values()) + 2 * self.eps}
            self.begin_phase(self.r + 1)


# TaS-FG looks for the best arm. G_ij is 1 where playing i reveals j; or, estimated, (1 + times that it did) / N_i, and
# 1 before the first play. N_i counts plays. a is the arm of the smallest mean, where an arm never observed has 0.
#
#  time of w    max over i != a of (1 / m_i + 1 / m_a) 2 s^2 / (mean_i - mean_a)^2, with m = w G
#  evidence     before round t >= K: t / max(1, time of N / sum N), if a is the only best arm; else 0
#  play         the first i with N_i < sqrt(t) - K / 2; if there is none, that of the smallest N_i / t - v_i
#  allocate     after every c rounds told, if a is the only best arm: w of the smallest time; v is the mean of all these


class TasFg(Counting):
    def __init__(self, A, deviation=0.5, every=None, edges="known"):
        super().__init__(len(A))
        self.s, self.c, self.edges = deviation, every or 5 * self.K, edges
        self.A = np.array(A, dtype=float)
        self.N, self.revealed = np.zeros(self.K), np.ones((self.K, self.K))
        self.found, self.evidence = [], 0.0

    @property
    def G(self):
        return self.A if self.edges == "known" else self.revealed / np.maximum(1, self.N)[:, None]

    @property
    def means(self):
        return np.array([np.mean(each) if each else 0.0 for each in self.seen])

    @property
    def single(self):
        """The best arm, if there is one."""
        a = int(self.means.argmin())
        return a if (np.delete(self.means, a) > self.means[a] + 1e-8).all() else None

    def time_of(self, w, a):
        m, means = w @ self.G, self.means
        if (m <= 0).any():
            return math.inf
        return max((1 / m[i] + 1 / m[a]) * 2 * self.s**2 / (means[i] - means[a]) ** 2 for i in range(self.K) if i != a)

    def choose(self, A):  # noqa: ARG002
        a, N = self.single, self.N
        regular = a is not None and self.t >= self.K and N.sum()
        self.evidence = self.t / max(1, self.time_of(N / N.sum(), a)) if regular else 0.0
        for i in range(self.K):
            if N[i] < math.sqrt(self.t) - self.K / 2:
                return {i}
        v = np.mean(self.found, axis=0) if self.found else np.full(self.K, 1 / self.K)
        return {int((N / self.t - v).argmin())}

    def look(self, arm, losses):
        self.N[arm] += 1
        self.revealed[arm, list(losses)] += 1
        if self.N.sum() % self.c == 0 and self.single is not None:
            self.found.append(self.allocation(self.single))

    def allocation(self, a):
        """By a general solver, which knows nothing of the structure: over w and the time, times a constant."""
        start = np.full(self.K, 1 / self.K)
        unit = self.time_of(start, a)
        others = [i for i in range(self.K) if i != a]
        cost = np.array([2 * self.s**2 / (self.means[i] - self.means[a]) ** 2 / unit for i in others])

        def slack(z):
            m = np.maximum(z[:-1] @ self.G, 1e-9)
            return z[-1] - cost * (1 / m[others] + 1 / m[a])

        solved = minimize(
            lambda z: z[-1],
            np.append(start, 1.0),
            method="SLSQP",
            bounds=[(0, 1)] * self.K + [(0, None)],
            constraints=[{"type": "eq", "fun": lambda z: z[:-1].sum() - 1}, {"type": "ineq", "fun": slack}],
            options={"maxiter": 1000, "ftol": 1e-12},
        )
        w = np.maximum(solved.x[:-1], 0)
        return w / w.sum()


# Advice: exponential weights over experts, which are the K arms and M advisers, with a budget for a bold half.
# L = Z = G = X = 0, x = 0.3, m = 1.3, rho = 1/50. Each round t, for the experts e that are there:
#
#  1  while some arm that is there was not yet asked for, play the arm that reveals most of those; L_i = the first loss
#  2  w_e ~ exp(-L_e / x); q = sum w_e E_e, where E_e is the unit vector of an arm, or the advice of an adviser
#  3  D = any distribution on the arms that are there
#  4  W = 4 + 2 G; beta = (1 - rho) min(1, max(0, 2 (1 - max Z / W))); p = (1 - beta) q + beta D
#  5  d_i = any prediction in [0, 1]; b_i = min(d_i, P_i x / 2), or 0
#     Told later, in any order, with w, q, D, beta, P, d and b of the ask:
#  6  a_i = b_i + [i seen] (l_i - b_i) / P_i; a_e = <E_e, a>
#  7  mix = -x ln sum w'_e exp(-a_e / x), with w' as in line 2 now, over the same experts
#  8  C = max(0, <w, a> - mix)
#  9  L_e += a_e; L_e += mix for those that were absent
# 10  Z_e += beta sum (D_i - q_i) (d_i + [i seen] (l_i - d_i) / P_i) for those that were there
# 11  G += C; lambda = 1 + ln(N t); h = the entropy of the weights of all experts before line 9;
#     x += min(C / (m^2 max(h, min(ln N, lambda / t))), x / (2 lambda)), the entropy rate; or C / ln N, the plain one
# 12  X_e += (x_new - x_old) (ln N - h_new), from the round on in which e came
#
# bound(e) = Z_e + G + x ln N - X_e + 1 + first, where `first` counts the rounds of line 1.
# A new expert comes with L = -x ln((1/N) sum exp(-L_e / x)) and Z = X = 0.


class AdvisedRound(NamedTuple):
    """What is fixed at the ask."""

    t: int
    A: np.ndarray
    p: np.ndarray
    experts: dict[int, np.ndarray] | None = None  # E_e of those that are there; None in the rounds of line 1
    w: dict[int, float] | None = None
    q: np.ndarray | None = None
    D: np.ndarray | None = None
    d: np.ndarray | None = None
    beta: float = 0.0
    x: float = 0.0


class Spent(NamedTuple):
    """What a round cost: the measured C, and J, by which Z grew."""

    C: float = 0.0
    J: float = 0.0


class Advised:
    """The rule. An arm is there if it reveals itself; an adviser, if it advises arms that are there."""

    def __init__(self, n_arms, advisers=0, *, rho=1 / 50, m=1.3, rate="entropy", predicts=True, looks=True):
        self.K, self.size = n_arms, n_arms + advisers
        self.rho, self.m, self.rate, self.predicts = rho, m, rate, predicts
        self.unseen = set(range(n_arms)) if looks else set()
        self.L, self.Z, self.X = ([0.0] * self.size for _ in range(3))
        self.charged = set()  # arms whose first loss of line 1 is in L
        self.x = self.y = 0.3  # x, and what stands for it in lines 2, 7 and 8
        self.G, self.t, self.first = 0.0, 0, 0

    def distribution(self, A, D, d, advice=None) -> AdvisedRound:
        """Begin a round; `advice` has by number the distribution of each adviser that is not silent."""
        A = np.array(A, dtype=bool)
        self.t += 1
        there = [i for i in range(self.K) if A[i, i]]
        wanted = self.unseen & set(there)
        if wanted:
            new = [sum(A[j, i] for i in wanted) for j in range(self.K)]
            arm = new.index(max(new))
            self.unseen -= set(np.flatnonzero(A[arm]).tolist())
            self.first += 1
            return AdvisedRound(self.t, A, np.eye(self.K)[arm])  # 1
        experts = {i: np.eye(self.K)[i] for i in there}
        for number, E in (advice or {}).items():
            if all(i in there for i in np.flatnonzero(E)):
                experts[self.K + number] = np.array(E, float)
        w = self.weights(experts)
        q = sum(w[e] * experts[e] for e in experts)  # 2
        most = max(self.Z[e] for e in experts)
        beta = (1 - self.share()) * min(1.0, max(0.0, 2 * (1 - most / self.budget())))  # 4
        D, d = np.array(D, float), np.array(d, float)
        return AdvisedRound(self.t, A, (1 - beta) * q + beta * D, experts, w, q, D, d, beta, self.y)

    def share(self):
        """Return rho."""
        return self.rho

    def budget(self):
        """Return W."""
        return 4 + 2 * self.G

    def renew(self):
        """Let y be x."""
        self.y = self.x

    def weights(self, experts):
        """Line 2."""
        least = min(self.L[e] for e in experts)
        w = {e: math.exp(-(self.L[e] - least) / self.y) for e in experts}
        return {e: w[e] / math.fsum(w.values()) for e in experts}

    def entropy(self):
        """The entropy of the weights of all experts."""
        return -math.fsum(w * math.log(w) for w in self.weights(range(self.size)).values() if w > 0)

    def potential(self):
        """-x ln((1/N) sum exp(-L_e / x)), of all experts."""
        least = min(self.L)
        return least - self.y * math.log(math.fsum(math.exp(-(each - least) / self.y) for each in self.L) / self.size)

    def update(self, told: AdvisedRound, arm, losses, A=None) -> Spent:  # noqa: ARG002
        """Learn what a round revealed."""
        A = told.A if A is None else np.array(A, dtype=bool)
        if told.experts is None:
            self.charge_first(losses)
            return Spent()
        P = observation(told.p, A)
        b = np.minimum(told.d, P * told.x / 2) if self.predicts else np.zeros(self.K)  # 5
        a, loss = b.copy(), told.d.copy()
        for i in losses:
            a[i] += (losses[i] - b[i]) / P[i]  # 6
            loss[i] += (losses[i] - told.d[i]) / P[i]
        a_e = {e: float(E @ a) for e, E in told.experts.items()}
        mix = self.mix(a_e)  # 7
        C = max(0.0, math.fsum(told.w[e] * a_e[e] for e in a_e) - mix)  # 8
        h, x = self.entropy(), self.y
        J = told.beta * math.fsum((told.D - told.q) * loss)
        for e in range(self.size):
            self.L[e] += a_e.get(e, mix)  # 9
            self.Z[e] += J if e in a_e else 0.0  # 10
        self.G += C
        self.x += self.step(C, h, told.t)  # 11
        self.renew()
        for e in range(self.size):
            self.X[e] += (self.y - x) * (math.log(self.size) - self.entropy())  # 12
        return Spent(C, J)

    def charge_first(self, losses):
        """Line 1."""
        for i in set(losses) - self.charged:
            self.L[i] += losses[i]
        self.charged |= set(losses)

    def mix(self, a_e):
        """Line 7, by logarithms of sums: the expert of least a may have no weight that a number can hold."""
        before = min(self.L[e] for e in a_e)
        after = min(self.L[e] + a_e[e] for e in a_e)
        sums = [
            math.fsum(math.exp(-(self.L[e] + more - least) / self.y) for e, more in shifts)
            for least, shifts in ((before, [(e, 0.0) for e in a_e]), (after, a_e.items()))
        ]
        return after - before - self.y * (math.log(sums[1]) - math.log(sums[0]))

    def step(self, C, h, t):
        """Line 11."""
        if self.rate == "plain":
            return C / math.log(self.size)
        lam = 1 + math.log(self.size * t)
        return min(C / (self.m**2 * max(h, min(math.log(self.size), lam / t))), self.x / (2 * lam))

    def add(self):
        """Let an expert come: the last of the advisers."""
        self.L.append(self.potential())
        self.Z.append(0.0)
        self.X.append(0.0)
        self.size += 1

    def bound(self, e):
        """T0, where nothing is outstanding."""
        return self.Z[e] + self.G + self.y * math.log(self.size) - self.X[e] + 1 + self.first


# glance. Advice with b = 0, rates that are renewed lazily, another budget and another share of the cautious half:
#
#  1  lines 1 to 11 of advice, without predictions in a and without L in its line 1, which is left out if there are
#     advisers; y in the place of x in lines 2, 7 and 8 and in the entropy;
#     x += C / ln N in line 11 while 1000 lambda / t >= ln N, then min(C / max(h, 1000 lambda / t), x / (2 lambda));
#     y = x as soon as x - y > min(0.03, 1 / (2 lambda)) y, or what C is divided by is above twice its least since then
#  2  W = 4 + 2 G + 2 sqrt(V), V += (sum over i seen of (p_i - q_i) (l_i - d_i) / P_i)^2
#  3  rho = 0.002 + 0.018 (1 - s) K / (K - 1) min(1, 300 / W); s follows the share of arms seen, over 50 rounds
#  4  d_i = clip(b + o_i, 0, 1), or the line of i below
#
# The bold half has lines a to i of `glance_bold`, typed again here: see there. Of more than 32 arms, and after 1,000
# rounds, D is kept for three more rounds, unless another arm leads, the graph is another one, or some arm is absent.
# With advisers D is mixed as `glance_advice` says.


class Glance(Advised):
    """The rule, from all that was ever seen of each arm."""

    def __init__(self, n_arms, advisers=0):
        super().__init__(n_arms, advisers, predicts=False, m=1)
        K = n_arms
        self.V_of_Z = self.s = self.b = self.paid = 0.0
        self.o, self.N, self.V, self.F2 = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
        self.history = [[] for _ in range(K)]  # of each arm: the weight of each loss, and the loss less what all share
        self.f, self.slow, self.together = np.zeros(K), np.zeros(K), set()
        self.was, self.bad, self.n, self.last = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
        self.C = self.X2 = self.Y2 = 0.0
        self.squares = self.number = 0.0
        self.paired = self.weighed = self.hid = False
        self.levels, self.errors = [0.0] * 3, [0.0] * 3
        self.told = self.alarms = self.looks_back = 0
        self.kept = (0, None, None)  # for how many rounds D will do, D and its graph
        self.divided = []  # what C was divided by in each round since y = x
        self.H, self.gap = [0.0] * (1 + advisers), 0.0  # what the own D and each adviser would have lost
        self.others = [0.0] * (1 + advisers)  # logarithms of the weights that other keys of a family give to each
        self.own = {}  # by round, D without advice
        self.line, self.ahead = None, 0.0  # the loss of arm 0 and the slope

    def renew(self):
        if self.x > self.y and (self.x - self.y > self.lazy * self.y or self.divided[-1] > 2 * min(self.divided)):
            self.y, self.divided = self.x, []

    def step(self, C, h, t):
        lam = 1 + math.log(self.size * t)
        self.lazy = min(0.03, 1 / (2 * lam))
        plain = 1000 * lam / t >= math.log(self.size)
        self.divided.append(math.log(self.size) if plain else max(h, 1000 * lam / t))
        return C / self.divided[-1] if plain else min(C / self.divided[-1], self.x / (2 * lam))

    def share(self):
        more = 0.018 * min(1, 300 / self.budget())
        return 0.002 + more * (1 - self.s) * self.K / (self.K - 1) if self.K > 1 else 0.0

    def budget(self):
        return 4 + 2 * self.G + 2 * math.sqrt(self.V_of_Z)

    def charge_first(self, losses):
        """Nothing of line 1 goes into L."""

    def distribution(self, A, advice=None) -> AdvisedRound:
        A = np.array(A, dtype=bool)
        there = np.diag(A)
        if self.K == 1:
            self.unseen = {0}
        elif self.size > self.K:
            self.unseen = set()
        looks = any(there[i] for i in self.unseen)
        D = np.zeros(self.K) if looks else self.bold(A, there)
        self.own[self.t + 1] = D
        if self.size > self.K and not looks:
            advising = {m: E for m, E in (advice or {}).items() if there[np.array(E) > 0].all()}
            D = self.followed(D, A, advising)
        return super().distribution(A, D, self.predictions(), advice)

    def predictions(self):
        """Line 4."""
        return np.clip(self.b + self.o if self.ahead <= 0 else self.line(np.arange(self.K)), 0, 1)

    def draw_line(self, arm, losses):
        """Line i."""
        if self.weighed and len(losses) > 1 and max(losses) == arm < self.K - 1:
            if self.line:
                known, drawn = np.clip(self.b + self.o[arm], 0, 1), np.clip(self.line(arm), 0, 1)
                self.ahead += (losses[arm] - known) ** 2 - (losses[arm] - drawn) ** 2
            before = max(i for i in losses if i != arm)
            slope = (losses[arm] - losses[before]) / (arm - before)
            first = losses[arm] - slope * arm
            self.line = lambda i: first + slope * i

    def trust(self, experts, more=None):
        """Return T of those who are there, by number from 1 on and 0 for the own D, and -y ln of the sum."""
        y = (self.gap + 1e-6) / (2 * math.log(len(self.H)))
        lost = {k: self.H[k] - y * self.others[k] + (more or {}).get(k, 0.0) for k in experts}
        least = min(lost.values())
        T = {k: math.exp(max(-700, -(each - least) / y)) for k, each in lost.items()}
        sum_ = math.fsum(T.values())
        return {k: each / sum_ for k, each in T.items()}, least - y * math.log(sum_)

    def followed(self, own, A, advising):
        T, _ = self.trust([0, *(m + 1 for m in advising)])
        D = T[0] * own + sum(T[m + 1] * np.array(E) for m, E in advising.items())
        for E in map(np.array, advising.values()):
            missing = max(0.0, 0.02 - float(E @ observation(D, A)))
            D = (1 - missing) * D + missing * E
        return D

    def judge_advice(self, told, losses, P):
        l = told.d.copy()
        for i in losses:
            l[i] += (losses[i] - told.d[i]) / P[i]
        advising = {e - self.K + 1: E for e, E in told.experts.items() if e >= self.K}
        c = {0: float(self.own[told.t] @ l)} | {k: float(E @ l) for k, E in advising.items()}
        T, before = self.trust(c)
        mix = self.trust(c, c)[1] - before
        self.gap += max(0.0, sum(T[k] * c[k] for k in c) - mix)
        self.H = [H + c.get(k, mix) for k, H in enumerate(self.H)]

    def add(self):
        super().add()
        self.H.append(min(self.H))
        self.others.append(0.0)

    def new_arm(self, waiting):
        """Let an arm come, the last; there are no advisers. Return the rounds that wait, in which it was absent."""
        super().add()
        self.K += 1
        self.unseen.add(self.K - 1)
        for name in ("o", "N", "V", "F2", "f", "slow", "was", "bad", "n", "last"):
            setattr(self, name, np.append(getattr(self, name), 0.0))
        self.history.append([])
        self.kept = (0, None, None)
        return [
            told._replace(
                A=np.pad(told.A, (0, 1)),
                experts=told.experts and {e: np.append(E, 0.0) for e, E in told.experts.items()},
                **{name: np.append(getattr(told, name), 0.0) for name in "pqDd" if getattr(told, name) is not None},
            )
            for told in waiting
        ]

    def prior(self):
        """Line a."""
        R2 = (self.C + 0.1) ** 2 / ((self.X2 + 0.1) * (self.Y2 + 0.1))
        return 0.05 * max(0.03, 1 - R2) if self.paired else 0.05

    def pooled(self):
        return (self.prior() + self.squares) / (1 + self.number)

    def variances(self):
        """Line b."""
        return (self.V + self.prior() + self.pooled()) / (self.N + 2)

    def leader(self, there=None):
        return min((i for i in range(self.K) if there is None or there[i]), key=lambda i: (self.o[i], i))

    def bold(self, A, there):
        """Lines a to e."""
        t = self.t + 1
        for i in range(self.K):
            if self.n[i] > 0 and i != self.leader() and there[i] and not self.weighed:
                hope = (self.paid - self.was[i]) * (t - self.last[i])
                if hope > 0.25 * self.n[i] * max(self.bad[i] - self.paid, 0.01):
                    self.n[i] += 1
                    self.last[i] = t
                    self.looks_back += 1
                    return np.eye(self.K)[i]  # e
        left, D, graph = self.kept
        if left and there.all() and (graph == A).all():
            self.kept = (left - 1, D, graph)
            return D
        N, v, a = self.N, self.variances(), self.leader(there)
        gap = self.o - self.o[a]
        cover = exploration_set([0] * self.K, A | np.eye(self.K, dtype=bool), "practical")
        cell = [i if i in cover else min(c for c in cover if A[c, i]) for i in range(self.K)]
        u = 4 * N * gap**2 / ((N + 2) * v + 2 * N * gap**2 / (N + 2))
        D = np.where(there, np.exp(np.maximum(-700, -2 * (N + 2) * u / (2 + u))), 0)  # c
        D /= math.fsum(D)
        if not self.hid:
            D = self.moved(D, A, a, cell, gap, v, t)
        self.kept = (3 if there.all() and (self.K > 32 or t > 1000) else 0, D, A)
        return D

    def moved(self, D, A, a, cell, gap, v, t):
        """Line d."""
        own, D = sum(D[A[a]]), np.where(A[a], 0, D)
        D[a] = own
        for i in range(self.K):
            c = cell[i]
            if i not in (c, a) and self.o[c] < self.o[i]:
                D[c] += D[i]
                D[i] = 0.0
        h = cell[a]
        if not A[a, h] and t > 50 and gap[h] ** 2 * self.N[h] < 2 * v[h] * math.log(t / 50):
            D[h] += D[a] / 2
            D[a] /= 2
        return D

    def update(self, told: AdvisedRound, arm, losses, A=None) -> Spent:
        A = told.A if A is None else np.array(A, dtype=bool)
        there = int(np.diag(A).sum())
        self.s += (len(losses) / there - self.s) / min(50, 1 + self.told)
        if told.experts is None:
            if not self.weighed or self.told == 0:
                self.know(told, arm, losses, None)
            return Spent()
        asked, P = observation(told.p, told.A), observation(told.p, A)
        other = np.abs(P - asked) > 1e-9 * asked
        self.weighed |= bool(other.any())
        self.hid |= bool((other & (asked > P)).any())
        self.V_of_Z += math.fsum((told.p[i] - told.q[i]) * (losses[i] - told.d[i]) / P[i] for i in losses) ** 2
        if self.size > self.K:
            self.judge_advice(told, losses, P)
        spent = super().update(told, arm, losses, A)
        self.know(told, arm, losses, P)
        return spent

    def know(self, told, arm, losses, P):
        """Lines f to l."""
        a = self.leader()
        e = {i: losses[i] - self.o[i] for i in losses}
        mean = e[arm] if self.weighed else sum(e.values()) / len(e)
        if self.told == 0:
            self.b, self.levels = mean, [mean] * 3
        b = self.b
        self.paid += (losses[arm] - self.paid) / min(20, 1 + self.told)
        k = max(0.05, 1 - min(1, max(0, self.C / (self.X2 + 0.001)))) if len(e) == 1 and arm in self.together else 1.0
        self.watch(told.t, losses, e, mean, k)  # f to h
        r = 0.0
        if a in e and len(e) > 1:
            s = min((i for i in e if i != a), key=lambda i: (self.before[i], i))
            r = min(1, max(0, self.C / (self.X2 + 0.001))) * (e[a] - b)  # i
            self.C += (e[s] - b) * (e[a] - b)
            self.X2 += (e[a] - b) ** 2
            self.Y2 += (e[s] - b) ** 2
        self.paired |= len(e) > 1
        self.draw_line(arm, losses)
        self.together |= set(e) if len(e) > 1 else set()
        for i in losses:
            error = losses[i] - self.o[i] - b - r
            w = k * min(20 + told.t / 12, 1 / P[i]) if self.weighed else k
            self.squares += w * error**2 * self.N[i] / (self.N[i] + 1)
            self.number += w * (self.N[i] > 0)
            self.history[i].append((w, losses[i] - b - r))
            self.F2[i] += 0 if self.weighed else w**2
        for i in range(self.K):
            self.F2[i] += P[i] * min(20 + told.t / 12, 1 / P[i]) ** 2 if self.weighed and P[i] > 0 else 0
            F = sum(w for w, _ in self.history[i])
            if F > 0 and (i in losses or self.weighed):
                self.o[i] = sum(w * value for w, value in self.history[i]) / F  # j
                self.N[i] = F**2 / self.F2[i]  # k
                self.V[i] = self.N[i] * sum(w * (value - self.o[i]) ** 2 for w, value in self.history[i]) / F
        self.told += 1
        self.follow_level(mean)
        if self.leader() != a:
            self.kept = (0, None, None)

    def watch(self, t, losses, e, mean, part):
        """Lines f to h."""
        self.before = self.o.copy()
        v, pooled, alone, alarm = self.variances(), self.pooled(), len(e) == 1 and not self.weighed, None
        for i in sorted(e):
            self.last[i] = t
            if self.N[i] > 2:
                error = part * (e[i] - self.b) if len(e) == 1 else e[i] - mean
                self.f[i] += (error - self.f[i]) / 30
                raised = self.f[i] ** 2 > 0.6 * max(v[i], pooled)
                if alone:
                    self.slow[i] += (part * (e[i] - self.levels[0]) - self.slow[i]) / 30
                    raised |= self.slow[i] > 0 and self.slow[i] ** 2 > 0.6 * v[i]
                alarm = i if raised and self.N[i] > 30 else alarm  # f
        if alarm is not None:
            self.alarms += 1
            if self.n[alarm] == 0:
                self.was[alarm], self.bad[alarm], self.n[alarm] = self.o[alarm] + self.levels[0], losses[alarm], 1
            self.levels[0] = self.b if len(e) == 1 else self.levels[0]
            for i in range(self.K):
                self.keep_some(i)  # g
            self.f[:] = self.slow[:] = 0
        elif not self.weighed:
            for i in sorted(e):
                self.judge(i, losses[i])  # h

    def judge(self, i, loss):
        if self.n[i] > 0 and i != self.leader():
            if loss < (self.was[i] + self.bad[i]) / 2:
                self.o[i], self.n[i] = self.was[i] - self.b, 0
                N = self.F2[i] = self.N[i] = min(5, self.N[i])
                self.history[i], self.V[i] = [(N, self.o[i])], 0.0
            else:
                self.bad[i] = loss

    def keep_some(self, i):
        if self.N[i] > 5:
            spread = math.sqrt(self.V[i] / self.N[i])
            self.V[i] *= 5 / self.N[i]
            self.N[i] = self.F2[i] = 5
            self.history[i] = [(2.5, self.o[i] - spread), (2.5, self.o[i] + spread)]

    def follow_level(self, mean):
        """Line l."""
        rounds = self.told + 1
        for j, memory in enumerate((math.inf, 32, 4)):
            self.errors[j] += ((mean - self.levels[j]) ** 2 - self.errors[j]) / min(20, rounds)
            self.levels[j] += (mean - self.levels[j]) / min(memory, rounds)
        best = 0
        for j in range(3):
            if self.errors[j] < 0.9 * self.errors[best]:
                best = j
        self.b = self.levels[best]


# glance with an incumbent, adviser 0, and an allowance W: Z = 0, and in each round
#
#  1  q = E_0;  D and d as in glance
#  2  Jhat(beta) = sum_i r_i d_i + max over j with p_j > 0 of
#                  sum over i in A(j) of (max(r_i, 0) (1 - d_i) + max(-r_i, 0) d_i) / P_i, with r = p - q
#  3  beta = 1 - rho if Z + Jhat <= W there, else the largest that is allowed of those that 20 bisections look at, or 0
#  4  Z += Jhat;  p = (1 - beta) q + beta D
#  5  told: Z += sum_i r_i d_i + sum over i in A(arm) of r_i (l_i - d_i) / P_i - Jhat, with A and P of the ask, if all
#     those l_i are told; otherwise Z stays


class GlanceKeys:
    """Keys that learn trust together: AdaHedge on what the own D and each adviser would have lost, over all keys."""

    def __init__(self, keys, n_arms, advisers):
        self.keys = {key: Glance(n_arms, advisers) for key in keys}
        self.H, self.gap = np.zeros(1 + advisers), 0.0

    def update(self, told):
        """Learn the rounds of one batch, by key: a round, the arm and the losses."""
        before = {key: np.array(self.keys[key].H) for key in told}
        for key, (round_, arm, losses) in told.items():
            self.keys[key].update(round_, arm, losses)
        c = sum(np.array(self.keys[key].H) - before[key] for key in told)
        y = (self.gap + 1e-6) / math.log(self.H.size)
        T = np.exp(-(self.H - self.H.min()) / y)
        T /= T.sum()
        least = (c[T > 0]).min()
        mix = least - y * math.log(math.fsum(T * np.exp(-(c - least) / y)))
        self.gap += max(0.0, float(T @ c) - mix)
        self.H = self.H + c
        y = (self.gap + 1e-6) / math.log(self.H.size)
        e = np.exp((self.H.min() - self.H) / y)
        e = 0.99 * e / e.sum() + 0.01 / e.size
        for key in self.keys.values():
            key.others = list(np.log(e))


class GlanceWithIncumbent(Glance):
    """The rule."""

    def __init__(self, n_arms, advisers, allowance):
        super().__init__(n_arms, advisers)
        self.allowance, self.spent, self.reserved = allowance, 0.0, {}

    def budget(self):
        return 4.0

    def most(self, p, q, d, A):
        P = observation(p, A)
        worst = [max(r * (0 - d_i), r * (1 - d_i)) for r, d_i in zip(p - q, d, strict=True)]
        sums = [sum(worst[i] / P[i] for i in np.flatnonzero(A[j]) if worst[i] > 0) for j in range(self.K) if p[j] > 0]
        return float((p - q) @ d) + max(sums)

    def distribution(self, A, advice) -> AdvisedRound:
        made = super().distribution(A, advice)
        q, top = np.array(advice[0]), 1 - self.share()

        def play(beta):
            return (1 - beta) * q + beta * made.D

        def fits(beta):
            return self.spent + self.most(play(beta), q, made.d, made.A) <= self.allowance

        low, high = (top, top) if fits(top) else (0.0, top)
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        p = play(low)
        self.reserved[made.t] = self.most(p, q, made.d, made.A)
        self.spent += self.reserved[made.t]
        return made._replace(p=p, q=q, beta=low)

    def update(self, told: AdvisedRound, arm, losses, A=None) -> Spent:
        seen, P = np.flatnonzero(told.A[arm]), observation(told.p, told.A)
        if all(i in losses for i in seen):
            r = told.p - told.q
            J = float(r @ told.d) + sum(r[i] * (losses[i] - told.d[i]) / P[i] for i in seen)
            self.spent += J - self.reserved[told.t]
        return super().update(told, arm, losses, A)


# EXP3.G++ in epochs. Each round t after the initial ones, with d the growth:
#
#  1  an epoch begins, r = t, if t > (1 + d) r, or Theta > (1 + d) Theta_r, or the graph is not that of r
#  2  gap, S and eta as in round r of EXP3.G++; eps_i = the smallest rate of rounds r, ..., floor((1 + d) r) for them
#  3  q_i ~ exp(-eta Ltilde_i), p_i = (1 - sum_j eps_j) q_i + eps_i; the rest as in EXP3.G++, but
#  4  Theta += X: theta if t = r, else sum over i = I and i = J of (p_i / P_i) / (p_i + 1 / K), with J uniform


class Epoch(NamedTuple):
    """What stays the same in an epoch."""

    last: int
    Theta: float
    A: np.ndarray
    eta: float
    gap: np.ndarray
    S: set[int]
    eps: np.ndarray


class Exp3GppEpoch(Exp3Gpp):
    """EXP3.G++ in epochs; `uniform_arm` says which arm J is in round t."""

    def __init__(self, n_arms, growth, uniform_arm, rate="adaptive", **options):
        super().__init__(n_arms, rate, **options)
        self.growth = growth
        self.uniform_arm = uniform_arm
        self.epoch = None
        self.begun = []  # the first rounds of the epochs

    def distribution(self, A) -> Round:
        """Begin a round, in which the graph is A."""
        A = np.array(A, dtype=bool)
        if self.t < len(self.start):
            return super().distribution(A)
        self.t += 1
        t, epoch = self.t, self.epoch
        if epoch is None or t > epoch.last or self.Theta > (1 + self.growth) * epoch.Theta or (A != epoch.A).any():  # 1
            self.epoch = epoch = self._begin(t, A)
        q = softmax([-epoch.eta * L for L in self.Ltilde])
        p = (1 - sum(epoch.eps)) * q + epoch.eps  # 3
        return Round(t, A, p, observation(p, A), theta(p, A), epoch.eta, epoch.gap, epoch.S, epoch.eps, q)

    def _begin(self, t, A):
        self.begun.append(t)
        gap = gaps(self.Lhat, self.O, t, self.gamma)
        S = exploration_set(gap, A, self.ties)
        last = math.floor((1 + self.growth) * t)
        rates = [exploration_rates(gap, S, s, self.lam, self.beta) for s in range(t, last + 1)]
        Theta = self.alpha * t if self.rate == "fixed" else self.Theta
        eta = self.eta_scale * math.sqrt(math.log(self.K) / (2 * Theta))
        return Epoch(last, self.Theta, A, eta, gap, S, np.min(rates, axis=0))  # 2

    def update(self, told: Round, arm, losses, A=None):
        """Learn what a round revealed; its graph is known since it began."""
        assert A is None or (told.A == A).all()
        Theta = self.Theta
        super().update(told, arm, losses)
        if told.t > len(self.start):
            pair = arm, self.uniform_arm(told.t)
            X = sum(told.p[i] / told.P[i] / (told.p[i] + 1 / self.K) for i in pair)
            self.Theta = Theta + (told.theta if told.t in self.begun else X)  # 4


# The certificate of regret. K arms, rates s = 2^-j for j = 0, ..., 16, W[j][k] = 0, n_k = total_k = 0. Each round:
#
#  1  at the draw: P from the p of the draw; mean_k = (total_k + 1/2) / (n_k + 1);
#     b[j][k] = min(mean_k, -ln(1 - P_k / 2) / s_j), 0 where P_k = 0. Keep b and P with the round
#  2  all j, k: W[j][k] += s_j b[j][k]
#  3  revealed k: W[j][k] += ln(1 + (exp(s_j (l_k - b[j][k])) - 1) / P_k)
#  4  revealed k: n_k += 1, total_k += l_k; paid += own loss
#  5  LCB_k = root in L of logsumexp_j(W[j][k] - s_j L) - ln 17 = ln(K / delta); certificate paid - min_k max(0, LCB_k)
#
# Not told, yet or ever: line 3 with l = 0, nothing in line 4 but paid += 1. An arm that is absent: nothing of lines 1
# to 3, and what is paid in that round does not count against it.


class Certifier:
    """The certificate, where rounds are told late, out of order or never, and arms may be absent."""

    RATES = [2.0**-j for j in range(17)]  # noqa: RUF012

    def __init__(self, n_arms):
        self.K = n_arms
        self.n, self.total = [0] * n_arms, [0.0] * n_arms
        self.rounds = []

    def ask(self, A, p, arm, absent=()):
        P = [min(sum(p[i] for i in range(self.K) if A[i][k]), 1.0) for k in range(self.K)]
        mean = [(self.total[k] + 0.5) / (self.n[k] + 1) for k in range(self.K)]
        b = [
            [min(mean[k], -math.log(1 - P[k] / 2) / s) if P[k] > 0 else 0.0 for k in range(self.K)] for s in self.RATES
        ]
        self.rounds.append([A, P, b, arm, set(absent), None])
        return len(self.rounds) - 1

    def tell(self, number, losses):
        self.rounds[number][-1] = losses
        A, arm = self.rounds[number][0], self.rounds[number][3]
        for k in range(self.K):
            if A[arm][k]:
                self.n[k] += 1
                self.total[k] += losses[k]

    def cancel(self, number):
        self.rounds[number] = None

    def wealth(self, k):
        W = [0.0] * 17
        for A, P, b, arm, absent, losses in filter(None, self.rounds):
            for j, s in enumerate(self.RATES):
                if k in absent:
                    continue
                W[j] += s * b[j][k]
                if A[arm][k]:
                    l = 0.0 if losses is None else losses[k]
                    W[j] += math.log1p(math.expm1(s * (l - b[j][k])) / P[k])
        return W

    def lower(self, k, delta):
        W, low, high = self.wealth(k), -1e6, 1e6
        for _ in range(200):
            L = (low + high) / 2
            x = [w - s * L for w, s in zip(W, self.RATES, strict=True)]
            mean = max(x) + math.log(sum(math.exp(each - max(x)) for each in x)) - math.log(17)
            low, high = (L, high) if mean > math.log(self.K / delta) else (low, L)
        return low

    def bound(self, delta):
        beyond = []
        for k in range(self.K):
            met = [each for each in filter(None, self.rounds) if k not in each[4]]
            paid = sum(1.0 if losses is None else losses[arm] for _, _, _, arm, _, losses in met)
            beyond.append(paid - max(0.0, self.lower(k, delta)))
        return max(beyond)


# SquareCB.G: Zhang, Zhang, Vrousgou, Luo, Mineiro, "Practical contextual bandits with feedback graphs", NeurIPS 2023.
# f are the predicted losses. What is to be small is
#
#  dec(p) = p.f + max_a [(1 / gamma) sum_i (p_i - 1[i = a])^2 / P_i - f_a],  P_i = sum of p_j over the j that reveal i
#
#  1  S = (): for i by ascending f: unless an arm of S reveals i, append i to S
#  2  greedy: p_j = 1 / (|S| + gamma gap_j) for j in S but the first, which gets the rest
#  3  nested (i reveals all j <= i): from the top arm down, p_a = max(0, 1 / (1 + gamma gap_a) - the sum of those above)
#  4  played: p_j = 1 / (c + gamma gap_j) for j in S, with the c for which they sum to 1; if each arm of S reveals all
#     that the one before reveals, line 3 over S, or the mean of both, where that has a smaller dec


def squarecb_value(p, f, A, gamma):
    A = np.asarray(A, float)
    P, worst = p @ A, -math.inf
    for a in range(len(f)):
        spread = sum((p[i] - (i == a)) ** 2 / P[i] for i in range(len(f)) if p[i] or i == a)
        worst = max(worst, spread / gamma - f[a])
    return float(p @ f + worst)


def squarecb_set(f, A):
    S = []
    for i in sorted(range(len(f)), key=lambda i: (f[i], i)):
        if not any(A[j][i] for j in S):
            S.append(i)
    return S


def squarecb_greedy(f, A, gamma):
    S, p = squarecb_set(f, A), np.zeros(len(f))
    for j in S[1:]:
        p[j] = 1 / (len(S) + gamma * (f[j] - min(f)))
    p[S[0]] = 1 - p.sum()
    return p


def squarecb_nested(f, gamma):
    p = np.zeros(len(f))
    for a in reversed(range(len(f))):
        p[a] = max(0.0, 1 / (1 + gamma * (f[a] - min(f))) - p.sum())
    return p


def squarecb_played(f, A, gamma):
    S = squarecb_set(f, A)
    gaps = np.array([f[j] - min(f) for j in S])
    c = brentq(lambda c: (1 / (c + gamma * gaps)).sum() - 1, 1.0, len(S) + 1e-9, xtol=1e-15) if len(S) > 1 else 1.0
    p = np.zeros(len(f))
    p[S] = 1 / (c + gamma * gaps)
    if all(A[j][i] for before, j in itertools.pairwise(S) for i in range(len(f)) if A[before][i]):
        nested, above = np.zeros(len(f)), 0.0
        for k in reversed(range(len(S))):
            nested[S[k]] = 1 / (1 + gamma * gaps[k]) - above
            above += nested[S[k]]
        p = min((p, nested, (p + nested) / 2), key=lambda each: squarecb_value(each, f, A, gamma))
    hidden = [a for a in range(len(f)) if not A[S[0]][a]]
    wide = [i for i in range(len(f)) if all(A[i][a] for a in hidden)]
    if len(S) > 1 and wide and gamma * gaps[1] > 2 and min(f[wide]) < f[S[1]]:
        two = np.zeros(len(f))
        two[min(wide, key=lambda i: (f[i], i))] = 1 / (gamma * gaps[1] - 1)
        two[S[0]] = 1 - two.sum()
        p = min((p, two), key=lambda each: squarecb_value(each, f, A, gamma))
    return p


def ridge_weights(X, y, penalty, rho=1.0):
    """Return the weights of ridge regression. Along its x, each loss leaves rho of what was learned before."""
    A, w = penalty * np.eye(X.shape[1]), np.zeros(X.shape[1])
    if rho == 1:
        return np.linalg.solve(A + X.T @ X, X.T @ y)
    for x, l in zip(X, y, strict=True):
        r = x @ np.linalg.solve(A, x)
        w = w + np.linalg.solve(A, x) * (l - w @ x) / (1 + r)
        e = rho - (1 - rho) / r
        beyond = r / rho / (1 + r) > x @ x / penalty  # wider than in the beginning
        A = A + (max(e, 0) if beyond else e) * np.outer(x, x)
    return w


def kaplan_meier(days, level):
    """Return the quantile of what was wanted, from pairs of what was sold and whether it sold out; None if unknown.

    Kaplan and Meier 1958: the share of days on which more than x was wanted is the product over the values y <= x that
    were seen of 1 - d / n, where d days had exactly y and n had y or more.
    """
    survival = 1.0
    for y in sorted({sold for sold, ran_out in days if not ran_out}):
        d = sum(sold == y and not ran_out for sold, ran_out in days)
        n = sum(sold >= y for sold, ran_out in days)
        survival *= 1.0 - d / n
        if survival <= 1.0 - level + 1e-9:
            return y
    return None


class Ceiling:
    """What the learner is told under a ceiling, and which arms fit, typed from the pseudo-code."""

    def __init__(self, ceiling, bounds=None, overspend=None):
        self.b, self.bounds, self.overspend = ceiling, bounds, overspend
        self.u = min([10 * ceiling] + ([] if bounds is None else [max(bounds)]))
        self.price, self.costs = 0.5, []

    def told(self, losses, costs):
        return [(1 - self.price) * l + self.price * min(1, c / self.u) for l, c in zip(losses, costs, strict=True)]

    def pay(self, cost):
        self.costs.append(cost)
        x = [(c - self.b) / self.u for c in self.costs]
        self.price = min(0.95, max(0, 0.5 + sum(x) / math.sqrt(1 + sum(each**2 for each in x))))

    def fits(self, pending):
        free = {i for i, b in enumerate(self.bounds) if b <= self.b} or {self.bounds.index(min(self.bounds))}
        spent = sum(c - self.b for c in self.costs) + sum(self.bounds[i] - self.b for i in pending if i not in free)
        return [i in free or spent + b - self.b <= self.overspend for i, b in enumerate(self.bounds)]
