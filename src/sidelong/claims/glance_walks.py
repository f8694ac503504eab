"""Walks of `glance`: the learner stepped by hand, with what it did in each round and would have done on other draws.

What a round should cost and spend is computed here from p, q, d, the losses and the advice alone, with matrices, and
shares no code with the learner. In every other walk somebody advises, and is silent now and then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong import graphs
from sidelong.claims.walks import copy_of, digraphs
from sidelong.learners.glance_cautious import Z
from sidelong.learners.interface import Asked, Told, trace_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from sidelong.claims.claim import Trial
    from sidelong.graphs import FeedbackGraph

    Floats = npt.NDArray[np.float64]


class Drawn(NamedTuple):
    """What the learner made of a round, had this arm been drawn."""

    a: Floats  #: what L grew by, of each expert
    J: float  #: what Z grew by
    C: float


class Round(NamedTuple):
    """A round after all arms were seen: what the learner fixed before the draw, and what it learned after."""

    A: npt.NDArray[np.bool_]
    L: Floats
    y: float  #: the rate of the weights
    p: Floats
    q: Floats
    d: Floats
    E: Floats  #: what each expert would play; zeros of a silent adviser
    beta: float
    losses: Floats
    drawn: Drawn
    arm: int
    others: list[Drawn]  #: one for each arm, or none if nobody looked

    @property
    def P(self) -> Floats:
        """The probability of observing each arm."""
        return self.p @ self.A

    @property
    def there(self) -> npt.NDArray[np.bool_]:
        """Which experts are there."""
        return np.asarray(self.E.sum(axis=1) > 0)

    @property
    def entropy(self) -> float:
        """The entropy of the weights of all experts."""
        w = np.exp(-(self.L - self.L.min()) / self.y)
        w /= w.sum()
        return float(-(w * np.log(np.maximum(w, 1e-300))).sum())

    @property
    def noise(self) -> float:
        """The part of J that depends on the draw."""
        return float(((self.p - self.q) * self.A[self.arm] * (self.losses - self.d) / self.P).sum())

    @property
    def spent(self) -> float:
        """What Z should grow by: line 10."""
        return float((self.p - self.q) @ self.d) + self.noise


class Walk(NamedTuple):
    """A game, and the constants of its proof."""

    d: float  #: d', the smaller of what a play reveals and of the largest acyclic set
    rounds: list[Round]


def walks(trial: Trial) -> list[Walk]:
    """Return the walks of a trial, made once: many graphs, fixed and changing, in worlds that stay and that turn."""
    if "glance" not in trial.shared:
        trial.shared["glance"] = list(_walks(trial))
    return trial.shared["glance"]  # type: ignore[no-any-return]


def rounds_of(trial: Trial, *, every_draw: bool = False) -> Iterator[tuple[Walk, Round]]:
    """Yield all rounds with their walks; with `every_draw` only those in which all draws were tried."""
    for walk in walks(trial):
        for each in walk.rounds:
            if each.others or not every_draw:
                yield walk, each


def _walks(trial: Trial) -> Iterator[Walk]:
    rng = trial.rng("glance-walks")
    families = [graphs.self_loops(2), graphs.star(5), graphs.nested(6), graphs.self_loops(4), graphs.complete(3)]
    rounds = min(trial.size(400, 200), 2000)
    for number, graph in enumerate([*families, graphs.nested(14), *digraphs(rng, trial.size(12, 3))]):
        bank = [graph]
        if number % 2:
            bank += [each for each in digraphs(rng, 40) if each.n_arms == graph.n_arms][:3]
        world = _world(rng, rounds, graph.n_arms, turns=number % 3 != 1)
        yield _walk(trial, rng, bank, world, advised=number % 2 == 0)
    for graph in (graphs.self_loops(4), graphs.nested(5)):
        yield _walk(trial, rng, [graph], np.zeros((rounds, graph.n_arms)), fools=True)


def _world(rng: np.random.Generator, rounds: int, K: int, *, turns: bool) -> Floats:
    """Return losses with means that stay; or, against all that was learned, whose best arm becomes the worst."""
    if not turns:
        means = np.tile(rng.random(K), (rounds, 1))
        return (rng.random((rounds, K)) < means).astype(float)
    losses = np.where(np.arange(K) == rng.integers(K), 0.0, 0.9) + rng.uniform(0, 0.1, (rounds, K))
    turn = rounds // 3
    losses[turn:] = 1.0 - losses[turn:]
    return losses


def _walk(
    trial: Trial,
    rng: np.random.Generator,
    bank: Sequence[FeedbackGraph],
    losses: Floats,
    *,
    fools: bool = False,
    advised: bool = False,
) -> Walk:
    """Play a game; if it `fools`, only the arm that the bold half would play most has a loss, in every round."""
    learner, K = trial.glance, bank[0].n_arms
    params: Any = learner.configure(bank[0])
    state = learner.init(params, bank[0])
    if advised:
        params, state = learner.add_adviser(params, state)  # type: ignore[misc]  # it has one
    p, trace, told = np.zeros(K), np.zeros(trace_size(learner, K, int(advised))), np.zeros(K)
    eta, beta, C = map(learner.traces.index, ("learning_rate", "bold_share", "stability"))
    first, rounds = trace_size(learner, 0), list[Round]()

    def row(name: str) -> Floats:
        begin = first + K * learner.kept.index(name)
        return trace[begin : begin + K].copy()

    def learn(into: Any, graph: FeedbackGraph, t: int, arm: int, noted: Floats) -> Drawn:
        arms = graph.out_neighbors(arm)
        told[: arms.size] = losses[t - 1, arms]
        L, spent = into.L.copy(), float(into.rate[Z])
        learner.update(params, into, graph.arrays, Told.new(t, arm, p, told, noted))
        return Drawn(into.L - L, float(into.rate[Z]) - spent, float(noted[C]))

    for t in range(1, len(losses) + 1):
        graph = bank[int(rng.integers(len(bank)))]
        if advised:
            trace[-K:] = rng.dirichlet(np.full(K, 0.3)) if t % 4 else 0.0
        learner.distribution(params, state, graph.arrays, Asked.new(t, p, trace))
        arm = int(np.argmax(np.cumsum(p) > rng.random() * p.sum()))
        if trace[eta] == 0.0:  # a round of line 1
            learn(state, graph, t, arm, trace)
            continue
        E = np.concatenate([np.eye(K), trace[-K:][None]]) if advised else np.eye(K)
        fixed: dict[str, Any] = {"q": row("q"), "d": row("d"), "E": E.copy(), "beta": float(trace[beta])}
        if fools:
            losses[t - 1] = np.arange(K) == row("D").argmax()
        look = t % 10 == 0 or t < 20
        others = [learn(copy_of(state), graph, t, i, trace.copy()) for i in range(K)] if look else []
        L, y = state.L.copy(), 1.0 / float(trace[eta])
        drawn = learn(state, graph, t, arm, trace)
        rounds.append(
            Round(graph.matrix(), L, y, p.copy(), **fixed, losses=losses[t - 1], drawn=drawn, arm=arm, others=others)
        )
    revealed = max(float(graph.matrix().sum(axis=1).max()) for graph in bank)
    acyclic = max(graph.numbers().acyclic.upper for graph in bank)
    return Walk(min(revealed, acyclic), rounds)
