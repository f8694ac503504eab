r"""What `glance` promises, with all constants: the two theorems of ``docs/glance-proof.md``.

The names are those of the page: n and H of the entropy, m of the rate x, d' = min(d, M) where a play reveals at most d
arms and no set of more than M arms is without a cycle. With rho(x) = min(1/2, (10 + x) / 500)::

    B(x) = 4.5 (1 + 2 d' / rho(x)) + 0.15            the most that a round costs
    z_k = x_1 (1 + 1/n)^k                            the least x of the clipped round number k + 1
    g = ((1 + 1/n) / (1 - 1/(2 (n - 1))))^n          by how much the entropy of a round may exceed that of the last
    a = first + 6 + 49 d' + 70 (1 + 4 d') (1 + 1/n) H
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from sidelong.theory.checks import at_least_two, horizon, number, positive_gap, whole

M = 1.6  # the default of `eta_scale`, which the theorems are stated for
LATE = 240.0  # from this x on half of every round is cautious
CHARGE = 0.3  # what exploration counts for in the rate
MOMENT = (1 + math.sqrt(8)) ** 2  # of a difference of two estimates, times P, where one arm has half of q or more


class _Game(NamedTuple):
    """What both theorems are made of."""

    n: int
    H: float
    d: float  #: d'
    start: float  #: a

    @property
    def growth(self) -> float:
        return math.pow((1 + 1 / self.n) / (1 - 1 / (2 * (self.n - 1))), self.n)

    @property
    def early(self) -> float:
        """The most that the rounds with x < 240 cost which are not clipped."""
        return LATE * (1 + 1 / self.n) * M**2 * self.H

    @property
    def first_rate(self) -> float:
        return math.sqrt(2 / self.H) / (2 * M)

    def most(self, x: float) -> float:
        return 4.5 * (1 + 2 * self.d / min(0.5, (10 + x) / 500)) + 0.5 * CHARGE

    def clipped(self) -> itertools.takewhile[float]:
        """Yield z_0, z_1 and so on, as far as a round that is clipped even at the largest entropy can have it."""
        steps = (self.first_rate * math.pow(1 + 1 / self.n, k) for k in itertools.count())
        return itertools.takewhile(lambda z: z < self.n * self.most(z) / (M**2 * self.H), steps)


def adversarial(*, K: int, T: float, acyclic: float, revealed: int, first: int) -> float:
    """Return the bound against any adversary.

    With M the size of the largest acyclic set of any round, Y = 4 n/(n - 1) M T, and both sums over all k with
    z_k < n B(z_k) / (m^2 H)::

        a + (3 + g/m^2) (sum of B(z_k) + 240 (1 + 1/n) m^2 H + B(240) + sqrt(4.4) m sqrt(H Y))
          + 0.7 (sum of 1/2 + 800 (1 + 1/n) m^2 H + 1/2 + sqrt(80/3) m sqrt(H Y))

    Args:
        K: the number of arms.
        T: the number of rounds.
        acyclic: M, or more.
        revealed: d, the largest number of arms that a play reveals.
        first: how many rounds there are before every arm was seen: at most K.

    """
    game, largest, T = _game(K, acyclic, revealed, first), float(acyclic), horizon(T)
    clipped = list(game.clipped())
    root = M * math.sqrt(game.H) * math.sqrt(4 * game.n / (game.n - 1) * largest) * math.sqrt(T)
    cost = math.fsum(map(game.most, clipped)) + game.early + game.most(LATE) + math.sqrt(4.4) * root
    explored = len(clipped) / 2 + game.early / CHARGE + 0.5 + math.sqrt(80 / 3) * root
    return game.start + (3 + game.growth / M**2) * cost + 0.7 * explored


def stochastic(
    *, K: int, T: float, gap: float, acyclic: float, revealed: int, first: int, corruption: float = 0.0
) -> float:
    """Return the bound where one arm is the best by `gap` in every round, but for a corruption.

    With M the size of the largest acyclic set of any round, the sum over all k with z_k < 240, kappa = 16/3 + g/m^2 and
    Lambda = ln(1 + B(0) T (T + 1) / (m sqrt(2 H)))::

        A + b/2 + sqrt(b (b/4 + A + corruption)),  where
        A = a + kappa (sum of B(z_k) + B(240) (n + 1) Lambda + 240 (1 + 1/n) m^2 H
                  + m sqrt((1 + 1/n) Lambda 8 c M H (1 + ln T))),
        b = 112 c kappa^2 m^2 (n + 1) M Lambda / gap,  c = (1 + sqrt(8))^2 + 1.2

    Args:
        K: the number of arms.
        T: the number of rounds.
        gap: the smallest gap of an arm that is not best.
        acyclic: M, or more.
        revealed: the largest number of arms that a play reveals.
        first: how many rounds there are before every arm was seen.
        corruption: by how much the regret may be below gap times the expected number of plays of other arms; twice the
            sum, over all rounds, of the largest change of a loss.

    """
    game, largest, T = _game(K, acyclic, revealed, first), float(acyclic), horizon(T)
    gap, corruption = positive_gap(gap), number("corruption", corruption, least=0)
    n, H = game.n, game.H
    growth = math.log1p(game.most(0) * T * (T + 1) / (M * math.sqrt(2 * H)))
    factor, moment = 16 / 3 + game.growth / M**2, MOMENT + 4 * CHARGE
    steps = (game.first_rate * math.pow(1 + 1 / n, k) for k in itertools.count())
    cost = math.fsum(map(game.most, itertools.takewhile(lambda z: z < LATE, steps)))
    cost += game.most(LATE) * (n + 1) * growth + game.early
    cost += M * math.sqrt((1 + 1 / n) * growth * 8 * moment * largest * H * (1 + math.log(T)))
    A = game.start + factor * cost
    b = 112 * moment * factor**2 * M**2 * (n + 1) * largest * growth / gap
    return A + b / 2 + math.sqrt(b) * math.sqrt(b / 4 + A + corruption)


def _game(K: int, acyclic: float, revealed: int, first: int) -> _Game:
    K = at_least_two(K)
    n = max(2, math.floor(math.log(K) + 0.5))
    H = n * (math.pow(K, 1 / n) - 1)
    largest = number("acyclic", acyclic, least=1, most=K)
    d = min(largest, number("revealed", whole("revealed", revealed), least=1, most=K))
    start = number("first", whole("first", first), least=1, most=K) + 6 + 49 * d
    return _Game(n, H, d, start + 70 * (1 + 4 * d) * (1 + 1 / n) * H)
