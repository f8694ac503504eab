r"""What `glance` promises, with all constants: the two theorems of ``docs/glance-proof.md``.

The names are those of the page. N is the number of experts, which are the arms alone here; d' = min(d, M) where a play
reveals at most d arms and no set of more than M arms is without a cycle; rho = 0.002 is the least cautious share::

    B = d' / rho                                     the most that a round costs
    J = 1 + (1 / rho - 1) d'                         the most that a round takes from the budget
    g = 24 > 2 sqrt(e) e (sqrt(e) + 1)               by how much the entropy may exceed what the rate grew by
    a = (0.3 + 2.4 B) ln N                           what the rate costs while it is small
    c = 1 + ln(N T)

They are large: at the horizons that people play the theorems say how regret grows, and not how large it is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from sidelong.theory.checks import at_least_two, horizon, number, positive_gap, whole

RHO = 0.002  # the least cautious share
FIRST_RATE = 0.3  # x_1
PLAIN = 1000  # c / t times this is the least entropy of the rate
SLACK = 1.03  # by which x may exceed the rate of the weights
GROWTH = 24.0  # g


class _Game(NamedTuple):
    """What both theorems are made of."""

    log_N: float
    largest: float  #: M
    T: float
    first: float
    B: float
    J: float

    @property
    def c(self) -> float:
        return 1 + self.log_N + math.log(self.T)

    @property
    def small(self) -> float:
        """What the rate costs while it is small: a."""
        return (FIRST_RATE + 2.4 * self.B) * self.log_N

    @property
    def plain(self) -> float:
        """At most how many rounds have the plain rate: those with 1000 (1 + ln(N t)) >= t ln N."""
        return min(self.T, PLAIN * self.c / self.log_N)

    def cost(self, rounds: float) -> float:
        """Return the most that rounds cost which are not clipped, and add C / ln N or more to x."""
        return self.B + math.sqrt(SLACK * self.log_N / RHO * self.largest) * math.sqrt(rounds)


def adversarial(*, K: int, T: float, acyclic: float, revealed: int, first: int) -> float:
    """Return the bound against any adversary.

    With M the size of the largest acyclic set of any round::

        first + 4 + J + a + (3 + g) (E + B + sqrt(1.03 ln N M T / rho)) + 2 sqrt(2 (1 + 1 / rho) M T),
        E = B (1 + (2 c + 1) max(0, ln(2 c B / (0.3 ln N))))

    Args:
        K: the number of arms.
        T: the number of rounds.
        acyclic: M, or more.
        revealed: d, the largest number of arms that a play reveals.
        first: how many rounds there are before every arm was asked for: at most K.

    """
    game = _game(K, T, acyclic, revealed, first)
    clipped = game.B * (1 + (2 * game.c + 1) * max(0.0, math.log(2 * game.c * game.B / (FIRST_RATE * game.log_N))))
    noise = 2 * math.sqrt(2 * (1 + 1 / RHO) * game.largest) * math.sqrt(game.T)
    return game.first + 4 + game.J + game.small + (3 + GROWTH) * (clipped + game.cost(game.T)) + noise


def stochastic(
    *, K: int, T: float, gap: float, acyclic: float, revealed: int, first: int, corruption: float = 0.0
) -> float:
    """Return the bound where one arm is the best by `gap` in every round, but for a corruption.

    With Lambda = ln(1 + 0.75 B T (T + 1) / 0.3), T' = min(T, 1000 c / ln N), and Q for gamma s + a::

        v = 0.65 Lambda M c / (rho gap),  gamma = 1 + g
        s = 2 c_0 + v gamma + 2 sqrt(v (a + corruption)),
        c_0 = B + sqrt(1.03 ln N M T' / rho) + B (2 c + 1) Lambda + sqrt(0.65 Lambda M c (1001 + 1000 ln T) / rho)
        m = 2 (1 + 1 / rho) M / gap
        first + Q + 2 (4 + J + 2 s) + 4 m + 4 sqrt(m (2 (Q + corruption) / gap + corruption))

    Args:
        K: the number of arms.
        T: the number of rounds.
        gap: the smallest gap of an arm that is not best.
        acyclic: M, or more.
        revealed: the largest number of arms that a play reveals.
        first: how many rounds there are before every arm was asked for.
        corruption: by how much the regret may be below gap times the expected number of plays of other arms; twice the
            sum, over all rounds, of the largest change of a loss.

    """
    game = _game(K, T, acyclic, revealed, first)
    gap, corruption = positive_gap(gap), number("corruption", corruption, least=0)
    growth = math.log1p(0.75 / FIRST_RATE * game.B * game.T * (game.T + 1))
    moment = 0.65 * growth * game.largest * game.c / RHO
    start = game.cost(game.plain) + game.B * (2 * game.c + 1) * growth
    start += math.sqrt(moment * (PLAIN + 1 + PLAIN * math.log(game.T)))
    v = moment / gap
    s = 2 * start + v * (1 + GROWTH) + 2 * math.sqrt(v) * math.sqrt(game.small + corruption)
    own = (1 + GROWTH) * s + game.small
    m = 2 * (1 + 1 / RHO) * game.largest / gap
    spread = 4 * math.sqrt(m) * math.sqrt(2 * (own + corruption) / gap + corruption)
    return game.first + own + 2 * (4 + game.J + 2 * s) + 4 * m + spread


def _game(K: int, T: float, acyclic: float, revealed: int, first: int) -> _Game:
    K = at_least_two(K)
    largest = number("acyclic", acyclic, least=1, most=K)
    d = min(largest, number("revealed", whole("revealed", revealed), least=1, most=K))
    start = number("first", whole("first", first), least=1, most=K)
    return _Game(math.log(K), largest, horizon(T), start, d / RHO, 1 + (1 / RHO - 1) * d)
