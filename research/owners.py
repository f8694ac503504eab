"""Owners' problems: what shops, sites and routers decide, in 50 to 5,000 rounds, as tables of losses.

Eighteen kinds of problems whose world stays as it is, and nine whose world turns; `told.py` has those in which the
outcome decides what is seen. The numbers of a problem (arms, prices, rates, noise) are drawn from its half, its kind
and its horizon: a learner is tuned on half 0, and half 1 is only reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Rng = np.random.Generator
    Maker = Callable[[Rng, int, int], "Drawn"]

HORIZONS = (52, 200, 365, 1_000, 3_000, 5_000)


class Drawn(NamedTuple):
    """The numbers of a problem."""

    graphs: list[sl.FeedbackGraph]
    losses: Floats  #: by run, round and arm
    which: npt.NDArray[np.int64] | None = None  #: the graph of each round, by run; the only one if there is one


class Problem(NamedTuple):
    """A problem of one kind and one horizon."""

    name: str
    kind: str
    rounds: int
    graphs: list[sl.FeedbackGraph]
    losses: Floats
    which: npt.NDArray[np.int64]

    @property
    def runs(self) -> int:
        """How many tables there are."""
        return self.losses.shape[0]

    @property
    def charged(self) -> Floats:
        """What a play is charged, by run, round and arm; the mean of its arm where nothing changes, for less noise."""
        if self.kind in TURNING or self.kind == "stock, seasonal":
            return self.losses
        return np.broadcast_to(self.losses.mean((0, 1)), self.losses.shape)


def problems(kinds: dict[str, Maker], half: int) -> Iterator[Problem]:
    """Yield a problem of each kind and horizon, with more tables where there are few rounds."""
    for kind, make in kinds.items():
        for rounds in HORIZONS:
            runs = 48 if rounds <= 365 else 24 if rounds <= 1_000 else 8
            rng = np.random.default_rng([half, list(KINDS).index(kind), rounds])
            drawn = make(rng, runs, rounds)
            while kind not in TURNING and not _matters(drawn.losses):
                drawn = make(rng, runs, rounds)
            which = np.zeros((runs, rounds), np.int64) if drawn.which is None else drawn.which
            name = f"{kind}, K = {drawn.losses.shape[2]}, T = {rounds}"
            yield Problem(name, kind, rounds, drawn.graphs, drawn.losses, which)


def _matters(losses: Floats) -> bool:
    """Tell whether random play loses clearly more than the best arm; where it does not, a share of it is noise."""
    runs, rounds, _ = losses.shape
    total = losses.sum(1)
    lost = (total.mean(1) - total[:, total.mean(0).argmin()]).mean()
    return bool(lost > max(4 * losses.std(2).mean() * np.sqrt(rounds / runs), 1.0))


# Stock orders


def cost_of_orders(demand: Floats, K: int, missing: float) -> Floats:
    """Return the losses of ordering 0 to K - 1: a unit left over costs 1, one that is missing `missing`."""
    orders = np.arange(K)
    sold = np.minimum(orders, demand[..., None])
    return ((orders - sold) + missing * (K - 1 - sold)) / ((1.0 + missing) * (K - 1))


def demand_of(kind: str, rng: Rng, shape: tuple[int, int], K: int) -> Floats:
    """Return how many customers come, by run and round."""
    mean, rounds = rng.uniform(0.25, 0.65) * K, np.arange(shape[1])
    if kind == "Poisson":
        return rng.poisson(mean, shape).astype(float)
    if kind == "negative binomial":
        r = rng.uniform(1, 5)
        return rng.negative_binomial(r, r / (r + mean), shape).astype(float)
    if kind == "seasonal":
        week = 1 + rng.uniform(0.2, 0.5) * np.sin(2 * np.pi * rounds / 7)
        year = 1 + rng.uniform(0.2, 0.5) * np.sin(2 * np.pi * (rounds / 365 + rng.random()))
        return rng.poisson(mean * week * year * np.ones(shape)).astype(float)
    if kind == "promotions":
        promoted = rng.random(shape) < rng.uniform(0.05, 0.25)
        return rng.poisson(np.where(promoted, rng.uniform(1.5, 3) * mean, 0.8 * mean)).astype(float)
    if kind == "heavy-tailed":
        return np.floor(0.6 * mean * np.exp(rng.uniform(0.6, 1.2) * rng.standard_normal(shape)))
    return np.where(rng.random(shape) < rng.uniform(0.3, 0.6), 0, rng.poisson(1.5 * mean, shape)).astype(float)


def stock(kind: str) -> Maker:
    """Return the maker of orders for a kind of demand: an order shows what every smaller one would have cost."""

    def make(rng: Rng, runs: int, rounds: int) -> Drawn:
        K, missing = int(rng.integers(8, 51)), float(rng.choice([1.5, 2, 3, 5, 9]))
        return Drawn([sl.graphs.nested(K)], cost_of_orders(demand_of(kind, rng, (runs, rounds), K), K, missing))

    return make


# Exits, training, bids, clicks, prices, routes


def exits(rng: Rng, runs: int, rounds: int, most: int = 13) -> Drawn:
    """Leave a deep model early, or later for a better answer: a later exit shows what the earlier ones said."""
    K = int(rng.integers(3, most))
    depth = np.arange(1, K + 1)
    right = rng.uniform(0.4, 0.7) + rng.uniform(0.15, 0.35) * (1 - np.exp(-depth / (K * rng.uniform(0.15, 0.6))))
    flipped = rng.random((runs, rounds, K)) < rng.uniform(0.01, 0.06)
    wrong, price = (rng.random((runs, rounds, 1)) > right) ^ flipped, rng.uniform(0.1, 0.35)
    return Drawn([sl.graphs.nested(K)], (1 - price) * wrong + price * depth / K)


def training(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Train for more or fewer epochs every night: a longer training passes through the shorter ones."""
    K = int(rng.integers(8, 31))
    epochs = np.arange(1, K + 1) / K
    error = rng.uniform(0.05, 0.3) + rng.uniform(0.2, 0.5) * np.exp(-epochs / rng.uniform(0.08, 0.4))
    error = error + rng.uniform(0, 0.1) * epochs**2
    night = rng.normal(0, rng.uniform(0.01, 0.06), (runs, rounds, 1))
    own = rng.normal(0, rng.uniform(0.005, 0.03), (runs, rounds, K))
    return Drawn([sl.graphs.nested(K)], np.clip(0.8 * (error + night + own) + 0.2 * epochs, 0, 1))


def cost_of_bids(rng: Rng, runs: int, rounds: int, K: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the losses of shading a bid more or less, and which shares would have won."""
    shares = np.linspace(0.05, 1, K) if rng.random() < 0.5 else np.arange(1, K + 1) / (K + 1)
    value = rng.beta(4, rng.uniform(2, 5), (runs, rounds, 1))
    price = np.exp(rng.normal(np.log(rng.uniform(0.1, 0.4)), rng.uniform(0.3, 0.8), (runs, rounds, 1)))
    won = shares * value >= price
    return 1 - value * (1 - shares) * won, won


def bids(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Bid, and see what every higher bid would have paid."""
    K = int(rng.integers(10, 31))
    return Drawn([sl.graphs.nested(K, reveals="higher")], cost_of_bids(rng, runs, rounds, K)[0])


def bids_shown(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Bid where some auctions publish the winning price, which shows what every bid would have paid."""
    K, shown = int(rng.integers(10, 31)), rng.uniform(0.2, 0.8)
    which = (rng.random((runs, rounds)) < shown).astype(np.int64)
    graphs = [sl.graphs.nested(K, reveals="higher"), sl.graphs.complete(K)]
    return Drawn(graphs, cost_of_bids(rng, runs, rounds, K)[0], which)


def rare(least: float, most: float, arms: int, *, gains: bool, pair: bool = False) -> Maker:
    """Return the maker of clicks, errors and conversions: events at small rates, with nothing to see on the side."""

    def make(rng: Rng, runs: int, rounds: int) -> Drawn:
        K = int(rng.integers(2 + pair, arms))
        happened = rng.random((runs, rounds, K)) < rng.uniform(least, most, K)
        graph = sl.graphs.cliques([2] + [1] * (K - 2)) if pair else sl.graphs.self_loops(K)
        return Drawn([graph], 1.0 - happened if gains else 1.0 * happened)

    return make


def prices(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Post a price to customers who buy if it is worth it to them."""
    K = int(rng.integers(5, 13))
    price = np.linspace(0.2, 1, K)
    worth = rng.beta(rng.uniform(1.5, 4), rng.uniform(1.5, 4), (runs, rounds, 1))
    graph = sl.graphs.self_loops(K) if rng.random() < 0.5 else sl.graphs.banded(K, 1)
    return Drawn([graph], 1 - price * (worth >= price))


def cost_of_models(rng: Rng, runs: int, rounds: int, K: int) -> Floats:
    """Return the losses of models of different quality and price."""
    quality, price, weight = rng.uniform(0.5, 0.9, K), np.sort(rng.uniform(0, 1, K)), rng.uniform(0.5, 0.9)
    hard = rng.normal(0, 0.12, (runs, rounds, 1))
    if rng.random() < 0.5:
        judged = np.clip(quality + hard + rng.normal(0, 0.1, (runs, rounds, K)), 0, 1)
    else:
        judged = 1.0 * (rng.random((runs, rounds, K)) < quality)
    return weight * (1 - judged) + (1 - weight) * price


def routing(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Route requests to models, with shadow runs of others as capacity allows."""
    K, share = int(rng.integers(3, 11)), rng.uniform(0.1, 0.6)
    chances = share * rng.random(40) * 1.5
    matrices = [(rng.random((K, K)) < chance) | np.eye(K, dtype=bool) for chance in chances]
    graphs = [sl.FeedbackGraph.from_matrix(each) for each in matrices]
    return Drawn(graphs, cost_of_models(rng, runs, rounds, K), rng.integers(0, 40, (runs, rounds)))


def hub(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Route where arm 0 shows all others, and is the best, the second best, middling or the worst."""
    K = int(rng.integers(3, 13))
    losses = cost_of_models(rng, runs, rounds, K)
    order = losses.mean((0, 1)).argsort()
    place = [0, 1, K // 2, K - 1][int(rng.choice(4, p=[0.35, 0.15, 0.25, 0.25]))]
    rest = rng.permutation(np.delete(order, place))
    graph = sl.graphs.out_star(K) if rng.random() < 0.5 else sl.graphs.star(K)
    return Drawn([graph], losses[..., [order[place], *rest]])


def scores(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Choose by scores between 0 and 1, of small or large spread, on one of four graphs."""
    K = int(rng.integers(5, 25))
    means = 0.5 + (rng.uniform(0.2, 0.8, K) - 0.5) * rng.uniform(0.2, 1)
    sharp = float(rng.choice([5, 20, 100]))
    random = (rng.random((K, K)) < 0.2) | np.eye(K, dtype=bool)
    graphs = [
        sl.FeedbackGraph.from_matrix(random),
        sl.graphs.banded(K, 2),
        sl.graphs.star(K, hub=K // 2),
        sl.graphs.self_loops(K),
    ]
    losses = rng.beta(means * sharp, (1 - means) * sharp, (runs, rounds, K))
    return Drawn([graphs[rng.integers(4)]], losses)


# Worlds that turn


def stock_turns(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Order where demand changes half-way."""
    K, missing = int(rng.integers(8, 51)), float(rng.choice([2, 3, 5]))
    first, then = rng.permutation(np.sort(rng.uniform(0.15, 0.8, 2))) * K
    mean = np.where(np.arange(rounds) < rounds // 2, first, then)
    return Drawn([sl.graphs.nested(K)], cost_of_orders(rng.poisson(mean * np.ones((runs, rounds))), K, missing))


def turned(make: Maker) -> Maker:
    """Return the maker of the same kind of problem with other numbers in the second half."""

    def glued(rng: Rng, runs: int, rounds: int) -> Drawn:
        first = make(rng, runs, rounds)
        then = make(rng, runs, rounds)
        while then.losses.shape != first.losses.shape:
            then = make(rng, runs, rounds)
        losses = first.losses.copy()
        losses[:, rounds // 2 :] = then.losses[:, rounds // 2 :]
        return first._replace(losses=losses)

    return glued


def some_graph(rng: Rng, K: int) -> sl.FeedbackGraph:
    """Return one of six graphs."""
    random = (rng.random((K, K)) < 0.3) | np.eye(K, dtype=bool)
    return [
        sl.graphs.self_loops(K),
        sl.graphs.nested(K),
        sl.graphs.star(K),
        sl.graphs.star(K, hub=K - 1),
        sl.FeedbackGraph.from_matrix(random),
        sl.graphs.nested(K, reveals="higher"),
    ][rng.integers(6)]


def _coins(rng: Rng, runs: int, means: Floats) -> Floats:
    return 1.0 * (rng.random((runs, *means.shape)) < means)


def _one_gap(rng: Rng) -> tuple[int, float, Floats]:
    K, gap = int(rng.integers(2, 13)), float(rng.choice([0.05, 0.1, 0.2, 0.3]))
    gaps = np.full(K, gap)
    gaps[rng.integers(K)] = 0.0
    return K, gap, gaps


def levels_jump(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Keep the gaps, while the level of all losses jumps in phases that grow."""
    K, gap, gaps = _one_gap(rng)
    level, begin, length, high = np.zeros((rounds, 1)), 0, 1, False
    while begin < rounds:
        level[begin : begin + length] = (1 - gap) * high
        begin, length, high = begin + length, -(-8 * length // 5), not high
    return Drawn([some_graph(rng, K)], _coins(rng, runs, level + gaps))


def corrupted(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Flip all losses of the first rounds."""
    K, _, gaps = _one_gap(rng)
    losses = _coins(rng, runs, np.tile(rng.uniform(0.1, 0.6) + gaps, (rounds, 1)))
    first = int(rng.choice([np.sqrt(rounds), rounds / 10]))
    losses[:, :first] = 1 - losses[:, :first]
    return Drawn([some_graph(rng, K)], losses)


def switching(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Let another arm be the best from some round on."""
    K, gap, _ = _one_gap(rng)
    one, other = rng.choice(K, 2, replace=False)
    before, after = np.full((2, K), gap)
    before[one], after[other] = 0.0, -float(rng.choice([0, gap]))
    at = int(rounds * rng.choice([0.1, 0.3, 0.5]))
    means = np.where((np.arange(rounds) < at)[:, None], before, after) + rng.uniform(0.31, 0.6)
    return Drawn([some_graph(rng, K)], _coins(rng, runs, means))


def drifting(rng: Rng, runs: int, rounds: int) -> Drawn:
    """Let the mean of every arm come and go like a season."""
    K = int(rng.integers(3, 13))
    phase = rng.uniform(0.5, 2) * np.arange(rounds)[:, None] / rounds + rng.random(K)
    means = 0.5 + 0.25 * np.sin(2 * np.pi * phase)
    return Drawn([some_graph(rng, K)], np.clip(means + rng.normal(0, 0.1, (runs, rounds, K)), 0, 1))


STAYING: dict[str, Maker] = {
    **{
        f"stock, {kind}": stock(kind)
        for kind in ("Poisson", "negative binomial", "seasonal", "promotions", "heavy-tailed", "some days none")
    },
    "early exits": exits,
    "short cascades": lambda rng, runs, rounds: exits(rng, runs, rounds, most=6),
    "nightly training": training,
    "bids": bids,
    "bids, price often shown": bids_shown,
    "clicks": rare(0.02, 0.1, 7, gains=True),
    "errors": rare(0.02, 0.15, 9, gains=False),
    "landing pages": rare(0.05, 0.3, 7, gains=True, pair=True),
    "posted prices": prices,
    "model routing": routing,
    "one arm shows all": hub,
    "scores": scores,
}
TURNING: dict[str, Maker] = {
    "stock turns": stock_turns,
    "exits turn": turned(exits),
    "routing turns": turned(routing),
    "bids turn": turned(bids),
    "training turns": turned(training),
    "levels jump": levels_jump,
    "corrupted": corrupted,
    "switching": switching,
    "drifting": drifting,
}
KINDS = STAYING | TURNING
