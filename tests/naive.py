"""Slow and obvious oracles, typed from the pseudo-code: they share no code with the package.

A graph is a boolean matrix A: A[i][j] says that playing i reveals j. Every arm reveals itself.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

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
    ):
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
        for i, l in losses.items():
            if told.t > len(self.start):
                self.Ltilde[i] += l / P[i]
            self.Lhat[i] += l
            self.O[i] += 1
        if told.t > len(self.start) and self.rate == "adaptive":
            self.Theta += theta(told.p, A)


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
    e = [math.exp(each - max(x)) for each in x]
    return np.array([each / math.fsum(e) for each in e])


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
