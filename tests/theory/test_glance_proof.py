"""The steps of docs/glance-proof.md on random states: any bold half, any predictions, any advice, any graph.

Nothing here is the learner: a state is drawn, and not reached by playing, so that rates occur which no game reaches.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest

from graphs_brute import acyclic
from sidelong.theory import glance

pytestmark = pytest.mark.interpreted

ROUNDING = 1 + 1e-9


class State(NamedTuple):
    """A round before its draw, and all that the proof says about."""

    A: np.ndarray
    y: float
    L: np.ndarray
    E: np.ndarray
    D: np.ndarray
    beta: float
    d: np.ndarray
    l: np.ndarray

    @property
    def w(self):
        return weights(self.L, self.y)

    @property
    def q(self):
        return self.w @ self.E

    @property
    def p(self):
        return (1 - self.beta) * self.q + self.beta * self.D

    @property
    def P(self):
        return self.p @ self.A

    @property
    def K(self):
        return self.l.size

    def estimates(self, arm):
        """What each expert is charged if this arm is drawn."""
        return self.E @ (self.A[arm] * self.l / self.P)

    def cost(self, arm):
        a, w = self.estimates(arm), self.w
        least = a[w > 0].min()
        mix = least - self.y * math.log((w * np.exp(-np.maximum(a - least, 0) / self.y)).sum())
        return w @ a - mix

    def noise(self, arm):
        return ((self.p - self.q) * self.A[arm] * (self.l - self.d) / self.P).sum()


def weights(L, y):
    w = np.exp(-(L - L.min()) / y)
    return w / w.sum()


def entropy(w):
    return -(w * np.log(np.maximum(w, 1e-300))).sum()


def sparse(rng, K):
    return rng.dirichlet(np.full(K, 10 ** rng.uniform(-2, 1)))


def states(seed, count):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        K = int(rng.choice([2, 3, 5, 6]))
        A = np.eye(K, dtype=bool) | (rng.random((K, K)) < rng.choice([0, 0.1, 0.3, 0.7, 1]))
        E = np.array([*np.eye(K), *(sparse(rng, K) for _ in range(int(rng.integers(3))))])
        y = 0.3 * 10 ** rng.uniform(0, 4)
        L = rng.exponential(y * 10 ** rng.uniform(-3, 1.5), len(E))
        rho = rng.choice([0.002, 0.02, 0.5])
        beta = (1 - rho) * min(1.0, 2 * rng.random())
        l, d = ((rng.random(K) < rng.random()).astype(float) if rng.random() < 0.7 else rng.random(K) for _ in "ld")
        yield State(A, y, L, E, sparse(rng, K), beta, d, l)


def test_what_a_round_costs_and_spends_is_bounded_whatever_the_bold_half_is():
    """Steps 2 and 3, in 400 states: every arm drawn."""
    nearest = np.zeros(4)
    for s in states(1, 400):
        rho, d = 1 - s.beta, min(int(s.A.sum(axis=1).max()), acyclic(s.A))
        Ea, EJ, EC, EV = np.zeros(len(s.E)), 0.0, 0.0, 0.0
        most = 1 + max(1, 1 / rho - 1) * d
        for arm in np.flatnonzero(s.p > 0):
            C, noise = s.cost(arm), s.noise(arm)
            J = (s.p - s.q) @ s.d + noise
            assert -1e-9 * s.y <= C
            assert d / rho * ROUNDING >= C
            assert most * ROUNDING >= J
            Ea, EJ, EC = Ea + s.p[arm] * s.estimates(arm), EJ + s.p[arm] * J, EC + s.p[arm] * C
            EV += s.p[arm] * noise**2
            nearest = np.maximum(nearest, [C * rho / d, J / most, 0, 0])
        theta, over = (s.p / s.P).sum(), (s.q / s.P).sum()
        assert Ea == pytest.approx(s.E @ s.l, abs=1e-7)
        assert pytest.approx((s.p - s.q) @ s.l, abs=1e-7) == EJ
        assert over / 2 * ROUNDING + 1e-9 * s.y >= s.y * EC
        assert 2 * (theta + over) * ROUNDING >= EV
        assert over <= theta / rho * ROUNDING
        nearest = np.maximum(nearest, [0, 0, s.y * EC / (over / 2), EV / (2 * (theta + over))])
    assert (nearest > [0.4, 0.4, 0.4, 0.2]).all(), nearest  # the states are hard enough to come near


def test_the_potential_grows_by_the_mix_loss_and_by_no_less_if_the_rate_falls():
    """Step 1, in 300 states; some experts are absent, and are charged the mix loss."""
    rng = np.random.default_rng(5)
    for s in states(2, 300):
        there = rng.random(len(s.L)) < 0.7
        there[0] = True
        a = rng.exponential(s.y * 10 ** rng.uniform(-2, 1), len(s.L))
        w = np.where(there, np.exp(-(s.L - s.L[there].min()) / s.y), 0)
        mix = -s.y * math.log((w / w.sum() * np.exp(-a / s.y)).sum())
        after = s.L + np.where(there, a, mix)
        assert potential(after, s.y) - potential(s.L, s.y) == pytest.approx(mix, rel=1e-7, abs=1e-9 * s.y)
        y = s.y * (1 + rng.random())
        grown = potential(after, y) - potential(after, s.y)
        h = entropy(weights(after, y))
        assert grown >= (y - s.y) * (math.log(len(s.L)) - h) - 1e-9 * y
        assert (potential(after, y) <= after + y * math.log(len(s.L)) + 1e-9 * y).all()


def potential(L, y):
    return L.min() - y * math.log(np.exp(-(L - L.min()) / y).mean())


def test_the_entropy_moves_slowly_once_the_rate_is_large():
    """Step 4: one round multiplies it by sqrt(e) at most, and a larger rate h + c/t by e."""
    rng, largest = np.random.default_rng(7), np.zeros(2)
    for s in states(3, 600):
        t = 10 ** rng.uniform(3, 6)
        N = len(s.L)
        c = 1 + math.log(N * t)
        B = s.y / 2
        a = B * rng.random(N) ** rng.choice([0.3, 1, 8])  # what any round can charge where y is at least 2 B
        h, after = entropy(s.w), entropy(weights(s.L + a, s.y))
        assert after <= math.sqrt(math.e) * h * ROUNDING + 1e-12
        y = s.y * (1 + 1 / (2 * c)) ** 2
        moved = entropy(weights(s.L + a, y))
        assert moved + c / t <= math.e * (after + c / t) * ROUNDING
        assert moved <= glance.GROWTH / (2 * math.sqrt(math.e)) * max(h, c / t) * ROUNDING
        if h > 1e-6:
            largest = np.maximum(largest, [after / h, moved / after])
    assert (largest > [1.2, 1.2]).all(), largest


def test_the_entropy_is_small_where_one_expert_has_the_weight():
    """Step 7: h <= Q ln(e N / Q), and the sum of such terms is at most (the sum of Q + 1) (1 + ln(N T))."""
    rng = np.random.default_rng(9)
    for _ in range(300):
        N, T = int(rng.integers(2, 40)), int(rng.integers(1, 400))
        w = rng.dirichlet(np.full(N, 10 ** rng.uniform(-2, 1)))
        Q = 1 - w.max()
        assert entropy(w) <= Q * math.log(math.e * N / max(Q, 1e-300)) + 1e-12
        Qs = rng.random(T) ** rng.choice([1, 5, 30])
        sum_ = (Qs * np.log(math.e * N / np.maximum(Qs, 1e-300))).sum()
        assert sum_ <= (Qs.sum() + 1) * (1 + math.log(N * T)) * ROUNDING


def test_the_last_inequalities_are_solved():
    """Step 7: s <= c0 + sqrt(v (a + gamma s + Cor)) and z <= alpha + 2 sqrt(m (z + r)), at the largest s and z."""
    rng = np.random.default_rng(11)
    for _ in range(300):
        c0, v, gamma, a, m, r, alpha = 10 ** rng.uniform(-1, 5, 7)
        s = largest_fixed_point(lambda s, c0=c0, v=v, a=a, gamma=gamma: c0 + math.sqrt(v * (a + gamma * s)))
        assert s <= (2 * c0 + v * gamma + 2 * math.sqrt(v * a)) * ROUNDING
        z = largest_fixed_point(lambda z, alpha=alpha, m=m, r=r: alpha + 2 * math.sqrt(m * (z + r)))
        assert z <= (2 * alpha + 4 * m + 4 * math.sqrt(m * r)) * ROUNDING


def largest_fixed_point(f):
    s = 1e15
    for _ in range(200):
        s = f(s)
    return s
