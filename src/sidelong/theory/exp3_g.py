"""What EXP3.G with rate="adaptive" promises: without a horizon, on graphs that change, with self-loops or without.

``docs/bounds.md`` has the proof.
"""

from __future__ import annotations

import math

from sidelong.errors import TheoryError
from sidelong.theory.checks import at_least_two, horizon, number


def adaptive(
    *, K: int, T: float, domination: float, acyclic: float, independence: float, all_loops: bool = False
) -> float:
    """Return the bound on the regret against any adversary who does not watch.

    With h = min(mas, 4 alpha ln(16 K^2 T / alpha)), a = h if every arm reveals itself or is weakly observable and
    2 h + 6 if not::

        2 (2.25 T)^(2/3) (d ln K)^(1/3) + 2 sqrt(2 a T ln K) + 8 (2 max(1, d) - 1) ln K + a / 2 + (1 + ln T) / 2

    and 2 + d / 2 more if d is not 0. Numbers of graphs that change are the largest of all rounds.

    Args:
        K: the number of arms.
        T: the number of rounds.
        domination: d, how many arms the learner takes to reveal the weakly observable ones; 0 if there are none.
        acyclic: mas, of the arms that reveal themselves; 0 if none does.
        independence: alpha, of the arms that reveal themselves; 0 if none does.
        all_loops: whether in every round each arm reveals itself or is weakly observable.
    """
    K, T = at_least_two(K), horizon(T)
    d = number("domination", domination, least=0, most=K)
    mas, alpha = number("acyclic", acyclic, least=0, most=K), number("independence", independence, least=0, most=K)
    if (mas > 0) != (alpha > 0):
        raise TheoryError(f"acyclic and independence are both 0 or neither; they are {mas:g} and {alpha:g}.")
    h = min(mas, 4 * alpha * math.log(16 * K**2 * T / alpha)) if alpha else 0.0
    a, log_K = h if all_loops else 2 * h + 6, math.log(K)
    weak = 2 * math.cbrt((2.25 * T) ** 2 * d * log_K) + (2 + d / 2 if d else 0.0)
    return weak + 2 * math.sqrt(2 * a * T * log_K) + 8 * (2 * max(1.0, d) - 1) * log_K + a / 2 + (1 + math.log(T)) / 2
