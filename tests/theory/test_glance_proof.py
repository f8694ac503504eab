"""The steps of docs/glance-proof.md on random states: any bold half, any predictions, any exploration, any graph.

Nothing here is the learner: a state is drawn, and not reached by playing, so that rates occur which no game reaches.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import brentq

from graphs_brute import acyclic
from sidelong.theory import glance

pytestmark = pytest.mark.interpreted

ROUNDING = 1 + 1e-9


class State(NamedTuple):
    """A round before its draw, and all that the proof says about."""

    A: np.ndarray
    n: int
    H: float
    x: float
    L: np.ndarray
    q: np.ndarray
    D: np.ndarray
    beta: float
    eps: float
    p: np.ndarray
    d: np.ndarray
    l: np.ndarray

    @property
    def K(self):
        return self.q.size

    @property
    def r(self):
        return self.q ** (1 / self.n)

    @property
    def w(self):
        return self.n / (self.n - 1) * self.q * self.r

    @property
    def P(self):
        return self.p @ self.A

    @property
    def rho(self):
        return min(0.5, (10 + self.x) / 500)

    @property
    def y(self):
        return (self.w / self.P).sum()

    @property
    def y_others(self):
        return np.delete(self.w / self.P, self.q.argmax()).sum()

    @property
    def h(self):
        return entropy(self.q, self.n)

    def estimates(self, arm):
        b = np.minimum(self.d, 0.45 * self.P * self.x / self.r)
        return b + self.A[arm] * (self.l - b) / self.P

    def spent(self, arm):
        """Line 14."""
        estimate = self.d + self.A[arm] * (self.l - self.d) / self.P
        return (1 - self.eps) * self.beta * ((self.D - self.q) * estimate).sum()

    def shift(self, a):
        """Line 13: the limit of the half line, and c."""
        weights = self.q * self.r
        limit = (a + self.x / (2 * self.r)).min()
        return limit, min((weights * a).sum() / weights.sum(), limit)

    def cost(self, a):
        """S, with phi as in step 4, which is exact for small s too."""
        N = self.n - 1
        s = (a - self.shift(a)[1]) * self.r / (self.x * N)
        v = 1 / (1 + s)
        phi = s**2 * sum((N - j) * v ** (j + 1) for j in range(N))
        assert np.allclose(phi, v**N - 1 + N * s, rtol=1e-9, atol=1e-13)
        return self.x * (self.q / self.r * phi).sum()


def entropy(q, n):
    return n * ((q ** (1 - 1 / n)).sum() - 1)


def weights(L, x, n):
    """Line 2, by bisection."""
    slope = (L - L.min()) / (x * (n - 1))
    y = brentq(lambda y: ((slope + y) ** -float(n)).sum() - 1, 1, L.size ** (1 / n) + 1e-9, xtol=1e-15)
    q = (slope + y) ** -float(n)
    return q / q.sum()


def explore(state, U, e):
    """Lines 8 to 10, from any eps that is asked for."""
    base = (1 - state.beta) * state.q + state.beta * state.D
    made = state._replace(eps=e, p=(1 - e) * base + e * U)
    limit = 4 / state.x * made.y_others
    if e > limit:
        made = made._replace(eps=limit / 2, p=(1 - limit / 2) * base + limit / 2 * U)
    return made


def sparse(rng, K):
    return rng.dirichlet(np.full(K, 10 ** rng.uniform(-2, 1)))


def states(seed, count, least_x=0.0, leader=None):
    """Draw states with x at least `least_x`; a leader has more than half of q."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < count:
        K = int(rng.choice([2, 3, 5, 6, 13, 40] if leader is None else [2, 3, 5, 6]))
        n = max(2, math.floor(math.log(K) + 0.5))
        H = n * (K ** (1 / n) - 1)
        A = np.eye(K, dtype=bool) | (rng.random((K, K)) < rng.choice([0, 0.1, 0.3, 0.7, 1]))
        if K > 6:  # their acyclic sets are known: all arms, or one
            A = np.tri(K, dtype=bool) if rng.random() < 0.5 else np.eye(K, dtype=bool)
        x = max(math.sqrt(2 / H) / 3.2, least_x) * 10 ** rng.uniform(0, 3)
        L = rng.exponential(x * 10 ** rng.uniform(-3, 3), K)
        q = weights(L, x, n)
        if leader and q.max() <= 0.5:
            continue
        made += 1
        rho = min(0.5, (10 + x) / 500)
        beta = (1 - rho) * min(1.0, 2 * rng.random())
        l, d = ((rng.random(K) < rng.random()).astype(float) if rng.random() < 0.7 else rng.random(K) for _ in "ld")
        state = State(A, n, H, x, L, q, sparse(rng, K), beta, 0.0, q, d, l)
        yield explore(state, sparse(rng, K), rng.uniform(0, 0.5) if rng.random() < 0.8 else 0.5)


def acyclic_of(state):
    if state.K > 6:
        return state.K
    return acyclic(state.A)


def capped(state):
    return min(state.A.sum(axis=1).max(), acyclic_of(state))


def test_what_a_round_costs_and_spends_is_bounded_whatever_the_bold_half_is():
    """Steps 2, 3, 5 and 6, in 250 states: every arm drawn."""
    nearest = np.zeros(3)
    for s in states(1, 250):
        d, Ea, Ez, ES = capped(s), np.zeros(s.K), 0.0, 0.0
        assert s.eps <= 4 / s.x * s.y_others * ROUNDING
        assert (s.p >= s.rho / 2 * s.q / ROUNDING).all()
        assert s.p.sum() == pytest.approx(1, abs=1e-9)
        most_spent, most = 1 + (1 / s.rho - 1) * d, 4.5 * (1 + 2 * d / s.rho) + 0.15
        assert glance._game(s.K, acyclic_of(s), int(s.A.sum(axis=1).max()), 1).most(s.x) == pytest.approx(most)
        for arm in range(s.K):
            a, limit = s.estimates(arm), s.shift(s.estimates(arm))[0]
            S, J = s.cost(a), s.spent(arm)
            assert (a >= -0.45 * s.x / s.r * ROUNDING).all()
            assert (np.abs(a) <= np.where(s.A[arm], 1 / s.P, 1) * ROUNDING).all()
            assert limit >= 0.05 * s.x / ROUNDING
            assert most_spent * ROUNDING >= J
            assert S + 0.3 * s.eps <= most * ROUNDING
            Ea, Ez, ES = Ea + s.p[arm] * a, Ez + s.p[arm] * J, ES + s.p[arm] * S
            nearest = np.maximum(nearest, [J / most_spent, S / most, 0])
        assert Ea == pytest.approx(s.l, abs=1e-7)
        assert Ez == pytest.approx((1 - s.eps) * s.beta * ((s.D - s.q) * s.l).sum(), abs=1e-7)
        assert s.y / s.x * ROUNDING >= ES
        nearest[2] = max(nearest[2], ES * s.x / s.y)
    assert (nearest > [0.5, 0.1, 0.3]).all(), nearest  # the states are hard enough to come near


def test_the_stability_is_at_most_S():
    """Step 4, in 100 states: the largest <q - q', a> - x D(q', q) is reached where q' are the weights after a."""
    for s in states(2, 100):
        for arm in np.flatnonzero(s.p > 1e-9):
            a = s.estimates(arm)
            after = weights(s.L + a, s.x, s.n)
            slope = (s.n - 1) * (1 / s.r) - s.n  # minus the derivative of F at q
            divergence = s.h - entropy(after, s.n) + (slope * (after - s.q)).sum()
            scale = 1 + s.x + np.abs(a).max()
            assert ((s.q - after) * a).sum() - s.x * divergence <= s.cost(a) + 1e-9 * scale


def test_weights_and_entropy_grow_by_a_factor_at_most_once_the_rate_is_large():
    """Step 7, in 250 states with x at least x0: the new q, at any x up to (1 + 1/n) x, is at most g times the old."""
    rng, largest = np.random.default_rng(3), 0.0
    for s in states(3, 250, least_x=350):
        if s.x < 70 * (1 + 4 * capped(s)):
            continue
        growth = glance._game(s.K, acyclic_of(s), 1, 1).growth
        for arm in np.flatnonzero(s.p > 0):
            after = weights(s.L + s.estimates(arm), s.x * (1 + rng.choice([0, rng.random(), 1]) / s.n), s.n)
            assert (after <= growth * s.q * (1 + 1e-7)).all()
            assert entropy(after, s.n) <= growth * s.h + 1e-9
            largest = max(largest, float((after / s.q).max()))
    assert largest > 1.5


def test_with_one_leader_the_costs_go_with_what_it_has_not():
    """Step 11, in 250 states with x at least 240 and q_* > 1/2."""
    nearest = 0.0
    for s in states(4, 250, least_x=240, leader=True):
        best, mas = int(s.q.argmax()), acyclic(s.A)
        Q = float(np.delete(s.q, best).sum())
        z = sum(s.p[arm] * s.x * (s.cost(s.estimates(arm)) + 0.3 * s.eps) for arm in range(s.K))
        assert z <= (glance.MOMENT + 1.2) * s.y_others * ROUNDING
        assert s.y_others <= 4 * s.n / (s.n - 1) * mas * Q ** (1 / s.n) * ROUNDING
        assert s.h <= 3.5 * s.n * Q ** (1 - 1 / s.n) + 1e-9
        assert 1 - s.p[best] >= Q / 4 / ROUNDING
        nearest = max(nearest, z / s.y_others)
    assert nearest > 1
