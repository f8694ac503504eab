"""The orders that the arms of a product stand for on a day: multiples of what is advised.

Arm k stands for about m_k times the reference, which is the blend of all advice: 0, and from half of it to twice as
much. So the range of a product moves with what it sells, and what was learned of an arm, such as that a fifth more than
the advice is too much, stays true. An arm moves to an advice that is near it, and stands for exactly that on this day.
So each advice is an arm, and is played and judged as it was given. Orders ascend with the arms in any case: an order
shows the cost of those of lower arms.

Arms are not mixed for that. The mixture of the two neighbours of an advice costs at least as much as the advice itself,
since costs are convex; and on a day that sells out, an order between two arms does not show the cost of the higher one,
so that the mixture would be judged without what it cost. An arm that moves is always seen when it is played. What it
moves by is less than a step, of 6.5 %, unless advisers crowd or are far outside.
"""

from __future__ import annotations

import numpy as np

#: How many arms there are, and how far their orders go above the reference and below it.
N_ARMS, SPAN = 24, 2.0
#: So many may advise a product on a day, so that there is an arm for each of them.
MOST_ADVISERS = 16
#: What is believed before the first day: demand is spread by about a third, and the reference is right. It counts for
#: so many days.
_SPREAD, _DAYS = 0.35, 20.0

MULTIPLES = np.append(0.0, np.geomspace(1.0 / SPAN, SPAN, N_ARMS - 1))


def prior(level: float) -> dict[int | str, tuple[float, float]]:
    """Return the expected loss of each arm if demand is log-normal and the reference is its quantile."""
    z = np.linspace(-2.5, 2.5, 41)
    chance = np.exp(-0.5 * z * z)
    chance /= chance.sum()
    demand = np.exp(_SPREAD * z)
    demand /= demand[np.searchsorted(np.cumsum(chance), min(level, 1.0 - 1e-9))]
    orders, most = MULTIPLES[:, None], MULTIPLES[-1]
    sold = np.minimum(orders, demand)
    losses = ((1.0 - level) * (orders - sold) + level * (most - sold)) / most
    return {arm: (float(loss), _DAYS) for arm, loss in enumerate(np.clip(losses @ chance, 0.0, 1.0))}


def place(advice: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of each arm, a row for each product, and the arm of each advice, -1 for silence.

    Args:
        advice: whole orders, a column for each adviser; NaN for silence.
        reference: what the arms are multiples of.
    """
    n, M = advice.shape
    orders = np.rint(MULTIPLES * np.maximum(reference, 1.0)[:, None])
    by_size = np.argsort(advice, axis=1)  # NaN comes last
    values = np.take_along_axis(advice, by_size, axis=1)
    arms = np.full((n, M), -1)
    above, larger = np.full(n, N_ARMS), np.full(n, np.inf)
    for m in reversed(range(M)):  # each takes the highest arm whose order is not above it, and different ones differ
        speaks = ~np.isnan(values[:, m])
        below = (orders <= np.where(speaks, values[:, m], 0.0)[:, None]).sum(axis=1) - 1
        own = np.where(values[:, m] == larger, above, np.maximum(np.minimum(below, above - 1), 0))
        arms[:, m] = np.where(speaks, own, -1)
        above, larger = np.where(speaks, own, above), np.where(speaks, values[:, m], larger)
    low, high = np.zeros((n, N_ARMS)), np.full((n, N_ARMS), np.inf)
    below, smaller = np.full(n, -1), np.full(n, -1.0)
    for m in range(M):  # those near 0 found no room below
        speaks = np.flatnonzero(arms[:, m] >= 0)
        value = values[speaks, m]
        own = np.where(value == smaller[speaks], below[speaks], np.maximum(arms[speaks, m], below[speaks] + 1))
        arms[speaks, m] = below[speaks] = own
        low[speaks, own] = high[speaks, own] = smaller[speaks] = value
    orders = np.clip(orders, np.maximum.accumulate(low, axis=1), np.minimum.accumulate(high[:, ::-1], axis=1)[:, ::-1])
    orders[:, -1] = np.maximum(orders[:, -1], 1.0)  # losses are shares of the largest order
    placed = np.empty_like(arms)
    np.put_along_axis(placed, by_size, arms, axis=1)
    return orders, placed
