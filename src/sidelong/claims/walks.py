"""Walks: a learner stepped by hand through short games, with all that it does written down beside what it should.

Claims about single rounds look at these. What "it should" is computed here from the losses alone, by the formulas of
Algorithm 1, with matrices, and shares no code with the learner.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong import graphs
from sidelong.graphs import FeedbackGraph
from sidelong.learners.interface import Asked, Told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from sidelong.claims.claim import Trial

    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rules:
    """The constants of a walk, as its options say."""

    K: int
    alpha: float  #: the strong independence number of the graph; of the first, if they change
    gamma: float
    beta: float
    lambda_: float
    rate: str
    ties: str


@dataclass(frozen=True)
class WalkedRound:
    """A round with t > K: what the learner did, and sums over the rounds before as they should be."""

    rules: Rules
    t: int
    A: npt.NDArray[np.bool_]  #: A[i, j]: playing i reveals j
    p: Floats
    eps: Floats
    gap: Floats
    S: npt.NDArray[np.int64]
    eta: float
    Lhat: Floats  #: as it should be before the round
    O: Floats
    Ltilde: Floats
    Theta: float
    own: dict[str, Floats]  #: the learner's Lhat, O and Ltilde before the round
    losses: Floats
    estimate: Floats  #: the mean, over the draw of the arm, of what Ltilde grows by
    square: Floats  #: and of its square
    theta: float  #: what the learner took for theta
    played: bool  #: or only looked at: then own, losses, estimates and theta are of an earlier round

    @property
    def P(self) -> Floats:
        """The probability of observing each arm."""
        return self.p @ self.A

    @property
    def q(self) -> Floats:
        """The exponential weights, as they should be."""
        w = np.exp(-self.eta * (self.Ltilde - self.Ltilde.min()))
        return w / w.sum()  # type: ignore[no-any-return]

    @property
    def cap(self) -> float:
        """The first two terms of equation (2)."""
        K, rules = self.rules.K, self.rules
        return min(1 / (2 * K), 0.5 * math.sqrt(rules.lambda_ * math.log(K) / (self.t * K**2)))


def digraphs(rng: np.random.Generator, count: int, largest: int = 6) -> list[FeedbackGraph]:
    """Return random digraphs with self-loops, from 2 arms on, sparse and dense."""
    drawn = []
    for _ in range(count):
        K = int(rng.integers(2, largest + 1))
        A = rng.random((K, K)) < rng.uniform(0.05, 0.7)
        np.fill_diagonal(A, val=True)
        drawn.append(FeedbackGraph.from_matrix(A))
    return drawn


def walks(trial: Trial) -> list[list[WalkedRound]]:
    """Return the walks of a trial, made once: every rate, both tie rules, fixed and changing graphs."""
    if "walks" not in trial.shared:
        trial.shared["walks"] = list(_walks(trial))
    return trial.shared["walks"]  # type: ignore[no-any-return]


def rounds_of(trial: Trial, *, played: bool = False) -> list[WalkedRound]:
    """Return the rounds of all walks; with `played` only those that were played, not only looked at."""
    return [each for walk in walks(trial) for each in walk if each.played or not played]


def _walks(trial: Trial) -> Iterator[list[WalkedRound]]:
    rng = trial.rng("walks")
    families = [graphs.star(4), graphs.nested(5), graphs.self_loops(2), graphs.directed_cycle(4), graphs.complete(3)]
    rounds = min(trial.size(60, 20), 200)
    for number, graph in enumerate(families + _large(rng) + digraphs(rng, trial.size(7, 3))):
        for rate in ("fixed", "adaptive"):
            # The paper's constants, under which gaps stay 0 for long, and small ones, under which everything moves.
            constants = {"gamma": 4.0, "beta": 320.0} if number % 3 == 0 else {"gamma": 0.1, "beta": 0.02}
            bank = [graph]
            if rate == "adaptive" and number % 2:
                bank += [g for g in digraphs(rng, 40) if g.n_arms == graph.n_arms][:3]
            ties = "paper" if number % 4 else "practical"
            yield _walk(trial, rng, bank, graph.n_arms + rounds, rate=rate, ties=ties, **constants)


def _large(rng: np.random.Generator) -> list[FeedbackGraph]:
    """Return graphs for the code that treats many arms in a row, and intervals in no order, in its own way."""
    centre = np.arange(20)
    low, high = np.maximum(centre - rng.integers(0, 20, 20), 0), np.minimum(centre + rng.integers(1, 20, 20), 20)
    arcs = rng.random((18, 18)) < 0.2
    return [
        graphs.nested(18),
        FeedbackGraph.from_intervals(low, np.maximum(high, centre + 1)),
        FeedbackGraph.from_matrix(arcs).with_self_loops(),
    ]


def _walk(
    trial: Trial, rng: np.random.Generator, bank: Sequence[FeedbackGraph], n: int, **options: Any
) -> list[WalkedRound]:
    learner, K = trial.learner, bank[0].n_arms
    alpha = float(bank[0].numbers().strong_independence.upper)
    height = alpha if options["rate"] == "fixed" else 1.0
    rules = Rules(K, alpha=alpha, lambda_=height, **options)
    params = learner.configure(bank[0], **options)
    state = learner.init(params, bank[0])
    p, trace, told = np.zeros(K), np.zeros(len(learner.traces)), np.zeros(K)
    Lhat, O, Ltilde, Theta = np.zeros(K), np.zeros(K), np.zeros(K), float(K)
    means = rng.random(K)
    rounds: list[WalkedRound] = []

    def learn(into: Any, graph: FeedbackGraph, t: int, arm: int, losses: Floats) -> None:
        arms = graph.out_neighbors(arm)
        told[: arms.size] = losses[arms]
        learner.update(params, into, graph.arrays, Told.new(t, arm, p, told, trace))

    for t in range(1, n + 1):
        graph = bank[int(rng.integers(len(bank)))]
        A = graph.matrix()
        losses = np.where(rng.random(K) < 0.5, rng.random(K) < means, means).astype(float)
        learner.distribution(params, state, graph.arrays, Asked.new(t, p, trace))
        arm = int(np.argmax(np.cumsum(p) > rng.random() * p.sum()))
        if t > K:
            before, noted = copy_of(state), trace.copy()
            P = p @ A
            estimate, square = np.zeros(K), np.zeros(K)
            for i in range(K):
                copy = copy_of(state)
                learn(copy, graph, t, i, losses)
                grown = copy.Ltilde - before.Ltilde
                estimate, square = estimate + p[i] * grown, square + p[i] * grown**2
            trace[:] = noted
            learn(state, graph, t, arm, losses)
            rounds.append(
                WalkedRound(
                    rules=rules,
                    t=t,
                    A=A,
                    p=p.copy(),
                    eps=before.eps,
                    gap=before.gap,
                    S=np.flatnonzero(before.S),
                    eta=float(noted[learner.traces.index("learning_rate")]),
                    Lhat=Lhat.copy(),
                    O=O.copy(),
                    Ltilde=Ltilde.copy(),
                    Theta=Theta,
                    own={name: getattr(before, name) for name in ("Lhat", "O", "Ltilde")},
                    losses=losses,
                    estimate=estimate,
                    square=square,
                    theta=float(trace[learner.traces.index("theta")]),
                    played=True,
                )
            )
            Ltilde += np.where(A[arm], losses / P, 0.0)
            Theta += float((p / P).sum())
        else:
            learn(state, graph, t, arm, losses)
        Lhat += np.where(A[arm], losses, 0.0)
        O += A[arm]
    rounds += [_leap(trial, rounds[-1], params, state, bank[-1], t) for t in (10**4, 10**7, 10**10)]
    return rounds


def _leap(trial: Trial, last: WalkedRound, params: Any, state: Any, graph: FeedbackGraph, t: int) -> WalkedRound:
    """Look at a round far on, as if all that was seen had been seen many times."""
    learner, K = trial.learner, last.rules.K
    p, trace = np.zeros(K), np.zeros(len(learner.traces))
    far = copy_of(state)
    grown = t // (10 * int(state.O.sum()) + 1)
    remember(far, state.O * grown, state.Lhat / state.O)
    far.Ltilde[:] *= t / last.t  # so that most arms are played by exploration alone
    learner.distribution(params, far, graph.arrays, Asked.new(t, p, trace))
    return replace(
        last,
        t=t,
        A=graph.matrix(),
        p=p,
        eps=far.eps,
        gap=far.gap,
        S=np.flatnonzero(far.S),
        eta=float(trace[learner.traces.index("learning_rate")]),
        Lhat=far.Lhat,
        O=far.O,
        Ltilde=far.Ltilde,
        played=False,
    )


def remember(state: Any, O: Floats, mean: Floats) -> None:
    """Let a learner believe that it has seen each arm O times, with these mean losses."""
    state.O[:], state.Lhat[:], state.mean[:], state.width[:] = O, O * mean, mean, 1 / np.sqrt(O)


def copy_of(state: Any) -> Any:
    """Return a state of its own, with the same numbers."""
    return type(state)(*(np.copy(array) for array in state))
