"""A certificate: so far no more was lost than this beyond any fixed arm, valid at every moment at once.

In a round arm k is revealed with a probability P_k that is known before the draw. For a rate s and any number
b <= -ln(1 - P / 2) / s that does not depend on the draw, the factor

    exp(s b - s l) (1 + [revealed] (exp(s (l - b)) - 1) / P)

is positive, and given everything before the draw its mean is 1. Where P = 0, b = 0 and the factor is at most 1. So the
product over rounds, exp(W - s L) with L the loss of the arm so far, is a supermartingale, and so is its mean over the
rates. It ever reaches K / risk with a probability of at most risk / K (Ville 1939), and for any of K arms with at most
`risk`. As it falls in L, L is above the root in L of "mean = K / risk", for all arms and at all times together::

    1  at the draw:   mean_k = (sum of told losses + 1/2) / (their number + 1), kept with the round
    2  when told:     a_k = min(s mean_k, -ln(1 - P_k / 2)), which is s b;  W_k += a_k
    3                 revealed arms: W_k += ln(1 + (exp(s l_k - a_k) - 1) / P_k)
    4                 paid += the loss of the arm that was played
    5  certificate:   paid - min over k of max(0, root_k)

An opponent who watches all earlier draws may choose the losses. A round may not be told yet, or never, for whatever
reason. It counts with l = 0 for the arms that it reveals, and with 1 for what was paid. Both only make the certificate
larger. A round that was cancelled does not count, which is right if neither the draw nor the loss was the reason. In
rounds in which an arm was absent, neither what it would have lost nor what was paid counts against it.

Where the graph of a round is told with its losses, b is 0. From the first such round on, a round that is not told might
have had any graph, and adds nothing to the W of an arm that its own graph does not reveal: it would have added more.
Before, it is taken to have the graph that it was asked with.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.evaluation.offpolicy import risk
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.numerics import exp, expm1, log, log1p

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.evaluation.decision_log import DecisionLog

    Floats = npt.NDArray[np.float64]

RATES = 17  #: 1, 1/2, ..., 2^-16
SEEN, TOTAL, AWAY, SPARED = range(4)  #: the rows of `Standing.arms`
PAID, ROUNDS, SILENT, SHOWN = range(4)  #: the elements of `Standing.sums`
TOLD, TOLD_WITH_GRAPH, NOT_TOLD = range(3)  #: how a round ended
_LEAST = 1e-140  # what is less likely counts as this, which only makes a factor smaller


class Standing(NamedTuple):
    """All that a certificate is made of."""

    W: np.ndarray  #: (K, 17)
    #: Of each arm: how often its loss was told, and the sum of these; in how many rounds it was absent, and what was
    #: paid then.
    arms: np.ndarray  #: (4, K)
    #: What was paid; the rounds; how many of them had no feedback; and 1 if some round was told with its graph.
    sums: np.ndarray  #: (4,)

    @classmethod
    def new(cls, n_arms: int) -> Standing:
        """Return what is known before the first round."""
        return cls(np.zeros((n_arms, RATES)), np.zeros((4, n_arms)), np.zeros(4))

    def copy(self) -> Standing:
        """Return one of its own."""
        return Standing(*(array.copy() for array in self))


@kernel
def freeze(standing: Standing, mean: np.ndarray) -> None:
    """Write the mean of each arm for a round that is about to be drawn."""
    for k in range(mean.size):
        mean[k] = (standing.arms[TOTAL, k] + 0.5) / (standing.arms[SEEN, k] + 1.0)  # 1


@kernel
def settle(
    standing: Standing,
    graph: GraphArrays,
    arm: int,
    p: np.ndarray,
    mean: np.ndarray,
    losses: np.ndarray,
    how: int,
    P: np.ndarray,
) -> None:
    """Count a round in which `arm` was drawn from `p`; if it was told, `losses` are those of the arms that it reveals.

    `mean` is what `freeze` wrote before the draw, and `P` is scratch.
    """
    own = look_at_round(graph, arm, p, losses, how, P)
    add(standing, graph.targets[graph.start[arm] : graph.stop[arm]], P, mean, losses, own, how)


@kernel
def look_at_round(graph: GraphArrays, arm: int, p: np.ndarray, losses: np.ndarray, how: int, P: np.ndarray) -> float:
    """Return what was paid in a round, or 1 if it is not known.

    Into `P` goes the probability of revealing each arm; -1 if it is absent: neither played nor revealed.
    """
    observe(graph, p, P)
    for k in range(P.size):
        if graph.start[k] >= graph.stop[k] and graph.in_start[k] >= graph.in_stop[k]:
            P[k] = -1.0
    own = 1.0
    arms = graph.targets[graph.start[arm] : graph.stop[arm]]
    if how != NOT_TOLD:
        for e in range(arms.size):
            if arms[e] == arm:
                own = losses[e]
    return own


@kernel
def add(
    standing: Standing, arms: np.ndarray, P: np.ndarray, mean: np.ndarray, losses: np.ndarray, own: float, how: int
) -> None:
    """Count a round that revealed `arms`; P is -1 for absent arms, and `own` what was paid, or 1 if it is not known."""
    if how == TOLD_WITH_GRAPH and standing.sums[SHOWN] == 0.0:
        standing.sums[SHOWN] = 1.0
        _take_back(standing)
    standing.sums[PAID] += own  # 4
    standing.sums[ROUNDS] += 1.0
    if how == NOT_TOLD:
        standing.sums[SILENT] += 1.0
    sure = how == TOLD or (how == NOT_TOLD and standing.sums[SHOWN] == 0.0)  # which graph it had
    for k in range(P.size):
        if P[k] < 0.0:
            standing.arms[AWAY, k] += 1.0
            standing.arms[SPARED, k] += own
        elif P[k] > 0.0 and sure:
            most = most_of(P[k])
            s = 1.0
            for j in range(RATES):
                standing.W[k, j] += min(s * mean[k], most)  # 2
                s *= 0.5
    for e in range(arms.size):
        k = arms[e]
        if P[k] <= 0.0 and how == NOT_TOLD:
            continue  # it cannot have been revealed
        chance = min(max(P[k], _LEAST), 1.0)
        most = 0.0 if how == TOLD_WITH_GRAPH else most_of(chance)
        l = 0.0 if how == NOT_TOLD else losses[e]
        _reveal(standing.W[k], chance, mean[k], most, l, sure)
        if how != NOT_TOLD:
            standing.arms[SEEN, k] += 1.0
            standing.arms[TOTAL, k] += l


@kernel
def _take_back(standing: Standing) -> None:
    """Take back what rounds without feedback have added, at most s each: they may have had other graphs too."""
    for k in range(standing.W.shape[0]):
        s = 1.0
        for j in range(RATES):
            standing.W[k, j] -= s * standing.sums[SILENT]
            s *= 0.5


@kernel
def _reveal(W: np.ndarray, P: float, mean: float, most: float, l: float, added: bool) -> None:  # noqa: FBT001
    """Add what revealing an arm does; and a, unless that is `added` already."""
    s = 1.0
    for j in range(RATES):
        a = min(s * mean, most)
        W[j] += log1p(expm1(s * l - a) / P)  # 3
        if not added:
            W[j] += a
        s *= 0.5


@kernel
def most_of(P: float) -> float:
    """Return -ln(1 - P / 2): up to this, the bracket of a factor is at least 1/2."""
    return -log1p(-0.5 * min(P, 1.0))


@kernel
def roots(W: np.ndarray, level: float, lower: np.ndarray) -> None:
    """Write for each arm where the mean over the rates reaches exp(level): its loss so far is above that.

    The logarithm of the mean is convex and falls in L. Newton's method begins below the root and never passes it, so
    that each of its steps is valid by itself.
    """
    c = level + log(np.float64(RATES))
    for k in range(lower.size):
        L = -np.inf
        s = 1.0
        for j in range(RATES):
            L = max(L, (W[k, j] - c) / s)
            s *= 0.5
        for _ in range(60):
            most = -np.inf
            s = 1.0
            for j in range(RATES):
                most = max(most, W[k, j] - s * L)
                s *= 0.5
            sum_ = 0.0
            slope = 0.0
            s = 1.0
            for j in range(RATES):
                x = exp(W[k, j] - s * L - most)
                sum_ += x
                slope += s * x
                s *= 0.5
            step = (most + log(sum_) - c) * sum_ / slope
            if not step > 1e-13 * (1.0 + abs(L)):
                break
            L += step
        lower[k] = L


class Certificate(NamedTuple):
    """So far at most `bound` was lost beyond any fixed arm."""

    bound: float  #: what was paid, less what every arm has lost at least, for the arm for which that is most
    arm: int  #: that arm; an arm that was absent at times is compared over the rounds in which it was there
    confidence: float  #: the probability that all certificates of a run hold, however often one looks
    rounds: int  #: without those that were cancelled
    paid: float  #: the losses of the arms that were played, with 1 for each that is not known
    silent: int  #: rounds without feedback: late, or lost
    seen: int  #: how often the loss of `arm` was told
    there: int  #: in how many rounds it could have been
    mean: float  #: the mean of what was told of it, with one of 1/2
    lower: Floats  #: what each arm has lost at least, all of them at once

    @property
    def doubt(self) -> float:
        """How much of the bound comes from not knowing what `arm` has lost, as far as its mean tells."""
        return min(max(0.0, self.mean * self.there - max(0.0, float(self.lower[self.arm]))), max(self.bound, 0.0))

    @property
    def why(self) -> str:
        """Why the bound says little, where more than half of it is about what was not seen; else nothing."""
        if self.rounds == 0:
            return "Nothing was decided yet."
        if self.silent > self.bound / 2:
            return (
                f"{self.silent:,} of {self.rounds:,} rounds have no feedback, and count as if they had cost 1 each, "
                f"and other arms nothing."
            )
        if self.doubt <= self.bound / 2:
            return ""
        if self.seen > self.there / 2:
            return f"{self.there:,} rounds are few: {self.doubt:,.1f} of the bound is left to chance."
        dear = self.mean > self.paid / self.rounds
        looked = f" It was dear where it was seen ({self.mean:.3f}), so that the learner stopped looking at it." * dear
        return (
            f"Arm {self.arm} was seen in {self.seen:,} of {self.there:,} rounds, and what it would have lost in the "
            f"others is hardly known: {self.doubt:,.1f} of the bound comes from that.{looked}"
        )

    def row(self) -> dict[str, Any]:
        """Return a dictionary of numbers, with the reason if it says little; without the limits of all arms."""
        return {name: value for name, value in self._asdict().items() if name != "lower"} | {"why": self.why}

    def __str__(self) -> str:
        """Return a sentence for people."""
        said = (
            f"In {self.rounds:,} rounds at most {self.bound:,.1f} was lost beyond any fixed arm "
            f"({100 * self.confidence:g} % sure, at every moment at once); {self.paid:,.1f} was paid in all."
        )
        return f"{said} {self.why}".strip()


def assess(standing: Standing, confidence: float = 0.95) -> Certificate:
    """Return the certificate of what was counted."""
    K = standing.W.shape[0]
    level = math.log(K / risk(confidence))
    lower = np.empty(K)
    roots(standing.W, level, lower)
    seen, total, away, spared = standing.arms
    paid, rounds, silent, _ = standing.sums.tolist()
    beyond = paid - spared - np.maximum(lower, 0.0)
    arm = int(np.argmax(beyond))
    return Certificate(
        bound=float(beyond[arm]),
        arm=arm,
        confidence=confidence,
        rounds=int(rounds),
        paid=paid,
        silent=int(silent),
        seen=int(seen[arm]),
        there=int(rounds - away[arm]),
        mean=float((total[arm] + 0.5) / (seen[arm] + 1.0)),
        lower=lower,
    )


def certificate(log: DecisionLog, confidence: float = 0.95) -> Certificate:
    """Return the certificate that a log gives: it is valid for the log as it is, and as it grows.

    Where the log holds the probabilities of observing all arms (the column `all_observe_probabilities`), it is what an
    agent says that was told each round before the next draw; but as a log does not say what a round without feedback
    would have revealed, that may have been any arm. Where it holds those of the revealed arms only, b is 0, which is
    valid too, and says less.
    """
    standing, K = Standing.new(log.n_arms), log.n_arms
    standing.sums[SHOWN] = float(log.chances is None)
    ends = np.searchsorted(log.round, np.arange(log.n_rounds + 1))
    paid = np.where(np.isnan(log.cost), 1.0, log.cost)
    chances = np.empty((0, K)) if log.chances is None else log.chances
    _read(standing, log.told, paid, ends, log.arm, log.loss, log.probability, chances, np.empty((2, K)), np.arange(K))
    return assess(standing, confidence)


@kernel
def _read(
    standing: Standing,
    told: np.ndarray,
    paid: np.ndarray,
    ends: np.ndarray,
    arm: np.ndarray,
    loss: np.ndarray,
    probability: np.ndarray,
    chances: np.ndarray,
    scratch: np.ndarray,
    every: np.ndarray,
) -> None:
    """Count the rounds of a log; `chances` has no rows where they are not known."""
    mean, P = scratch[0], scratch[1]
    for t in range(told.size):
        first, last = ends[t], ends[t + 1]
        arms, losses = arm[first:last], loss[first:last]
        how = NOT_TOLD if not told[t] else TOLD if chances.shape[0] > 0 else TOLD_WITH_GRAPH
        if chances.shape[0] > 0:
            for k in range(P.size):
                P[k] = chances[t, k]
            if not told[t]:
                arms, losses = every, mean
        else:
            P[:] = 0.0
            for e in range(first, last):
                P[arm[e]] = probability[e]
        freeze(standing, mean)
        add(standing, arms, P, mean, losses, paid[t], how)
