"""What is counted beside the learner: means of losses, how late they came, an alarm, certificate and advisers.

All of it is one NamedTuple of arrays, `Observers`: of an agent as it is, of a family with a row for each key. It is
made, grown, saved and restored as a whole, and the kernel that learns takes it as one argument. What is not kept has
arrays of size 0. No decision depends on it, but by the price of a ceiling, which is counted here too.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.agent.ceiling import HIGHEST, PRICE, SHARED, UNIT
from sidelong.errors import EvaluationError
from sidelong.evaluation.advisers import SIZE, assess_advisers, judge
from sidelong.evaluation.certificates import (
    AWAY,
    NOT_TOLD,
    PAID,
    RATES,
    ROUNDS,
    SPARED,
    Certificate,
    Standing,
    assess,
    freeze,
    look_at_round,
    settle,
)
from sidelong.evaluation.stopping import best_arm
from sidelong.evaluation.turning import FIRST, UPPER, Turning, WorldHealth, health, look
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.graphs.presence import present
from sidelong.learners.interface import trace_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sidelong.agent.decision import Decision
    from sidelong.agent.setup import Setup
    from sidelong.evaluation.advisers import Adviser
    from sidelong.graphs.graph import FeedbackGraph

#: What `Observers.delays` counts and sums, in this order. Counts are whole numbers there too.
(
    N_TOLD,
    N_LATE,
    SIGMAS,
    MOST,
    RATE,
    THETA,
    RATED_THETA,
    RATED_DELAY,
    EXPLORATION,
    CANCELLED,
    LOST,
    OVERRIDDEN,
    ABSENT,
    LOGGED,
    PRIOR,
    SELECTED,
    HIDDEN,
) = range(17)
#: What is summed of each told round, by the names of what a learner traces.
TRACED = ("learning_rate", "theta", "exploration_mass")


class DrawnRound(NamedTuple):
    """A decision as kernels see it: all that was fixed when it was drawn."""

    t: int  #: the round
    arm: int  #: that was drawn
    carried: int  #: the arm that was carried out: `arm`, unless somebody overrode it
    outstanding: int  #: how many others were outstanding when it was drawn; -1 for an initial round
    p: np.ndarray  #: what `update` gets: of all arms, or of a sparing learner, of those that are revealed
    trace: np.ndarray
    mean: np.ndarray  #: for the certificate, the mean of each arm before the draw; of size 0 where none is kept


#: What makes one of a tuple of its fields, in half the time that `DrawnRound(...)` takes: every decision has one.
drawn_round: Callable[[tuple[Any, ...]], DrawnRound] = partial(tuple.__new__, DrawnRound)


class Observers(NamedTuple):
    """The arrays of all observers."""

    # Of the losses of each arm that were told. Where outcomes decide what is revealed, large orders are seen on days of
    # low demand, say, and their mean would be of selected days. From the first such round on only losses count that the
    # outcome could not have hidden, and neighbours are compared by the rounds that show both. A family for whose keys
    # this never happened has arrays of size 0 for the first three.
    sure: np.ndarray  #: int64, (K,): how many losses could not have been hidden
    pairs: np.ndarray  #: int64, (K,): in how many rounds neither this arm nor the one before it could
    differences: np.ndarray  #: (K,): by how much it lost more than the one before it in these rounds, on average
    counts: np.ndarray  #: int64, (K,): how many losses were told
    means: np.ndarray  #: (K,): the mean of those that count
    squares: np.ndarray  #: (K,): the sum of their squared deviations from it
    delays: np.ndarray  #: (17,): how late feedback came and more, named above
    # As in `evaluation.turning` and `evaluation.certificates`; of size 0 where there is no alarm, or no certificate.
    alarm: np.ndarray  #: (6, K)
    window: np.ndarray  #: int64, (3,)
    W: np.ndarray  #: (K, 17)
    standing: np.ndarray  #: (4, K)
    sums: np.ndarray  #: (4,)
    advisers: np.ndarray  #: (M, 38): of each adviser, as in `evaluation.advisers`
    spending: np.ndarray  #: (7,): as in `ceiling`; of size 0 without one. The price in it is what a learner is told by

    @classmethod
    def new(cls, setup: Setup) -> Observers:
        """Return those of a key before its first round."""
        K = setup.graph.n_arms
        delays = np.zeros(HIDDEN + 1)
        traced = set(TRACED[:2]) <= set(setup.learner.traces)
        delays[RATE] = math.inf if traced else math.nan
        delays[[THETA, RATED_THETA, RATED_DELAY]] = 0.0 if traced else math.nan
        delays[PRIOR] = setup.prior_cost
        delays[ABSENT] = setup.graph.arms_without_self_loop.size > 0
        alarm, window = Turning.new(K) if setup.alarm else (np.zeros((6, 0)), np.zeros(0, np.int64))
        W, arms, sums = Standing.new(K) if setup.certificate else (np.zeros((0, RATES)), np.zeros((4, 0)), np.zeros(0))
        (means, squares), counts, none = np.zeros((2, K)), np.zeros(K, np.int64), np.zeros(0, np.int64)
        advisers = np.zeros((len(setup.advisers), SIZE))
        spending = np.zeros(0) if setup.ceiling is None else setup.ceiling.spending()
        few = none, none, np.zeros(0), counts, means, squares
        return cls(*few, delays, alarm, window, W, arms, sums, advisers, spending)

    def selecting(self) -> Observers:
        """Return them with what is kept where outcomes decide what is revealed."""
        if self.sure.shape[-1]:
            return self
        none = np.zeros_like(self.counts)
        return self._replace(sure=none, pairs=none.copy(), differences=np.zeros_like(self.means))

    def with_advisers(self, n: int) -> Observers:
        """Return them with so many advisers more; of one key, or with a row for each."""
        more = np.zeros((*self.advisers.shape[:-2], n, SIZE))
        return self._replace(advisers=np.concatenate([self.advisers, more], axis=-2))

    def grown(self, waits: Any) -> Observers:
        """Return them with one more arm, of which nothing was seen; of one key, or with a row for each.

        Until now it was absent, also in the pending rounds of a key that `waits`. Certificates are then against more
        arms: those since it came hold together.
        """
        made = {
            name: np.concatenate([array, np.zeros((*array.shape[:-1], 1), array.dtype)], axis=-1)
            for name, array in self._asdict().items()
            if name in _OF_ARMS and array.shape[-1]
        }
        if self.alarm.shape[-1]:  # not its size, which is 0 of a family without keys
            more = np.zeros((*self.alarm.shape[:-1], 1))
            more[..., UPPER, :] = 1.0
            made["alarm"] = np.concatenate([self.alarm, more], axis=-1)
        if self.W.shape[-2]:
            more = np.zeros((*self.standing.shape[:-1], 1))
            more[..., AWAY, 0], more[..., SPARED, 0] = self.sums[..., ROUNDS], self.sums[..., PAID]
            made["standing"] = np.concatenate([self.standing, more], axis=-1)
            made["W"] = np.concatenate([self.W, np.zeros((*self.W.shape[:-2], 1, RATES))], axis=-2)
        delays = self.delays.copy()
        delays[..., ABSENT] = np.maximum(delays[..., ABSENT], waits)
        return self._replace(delays=delays, **made)


_OF_ARMS = ("sure", "pairs", "differences", "counts", "means", "squares")
_FINITE = float(np.finfo(np.float64).max)
#: The least and the most that each array may hold, for `codec`.
RANGES: dict[str, tuple[float, float] | None] = {
    "sure": (0, 2**62),
    "pairs": (0, 2**62),
    "differences": (-1.0, 1.0),
    "counts": (0, 2**62),
    "means": (0.0, 1.0),
    "squares": (0.0, _FINITE),
    "delays": None,  # see `consistent`
    "alarm": (-_FINITE, _FINITE),
    "window": (0, 2**62),
    "W": (-_FINITE, _FINITE),
    "standing": (0.0, _FINITE),
    "sums": (0.0, _FINITE),
    "advisers": (-_FINITE, _FINITE),
    "spending": (0.0, _FINITE),
}


def consistent(observers: Observers, first: Observers) -> bool:
    """Tell whether observers, a row for each key, can be those of keys that began with `first`.

    Windows must be those of `evaluation.turning`: a kernel would look for others for ever. Of the delays only what a
    learner does not trace is NaN, and only a rate that is not known infinite.
    """
    delays, selecting = observers.delays, observers.selecting()
    sums = np.delete(np.where(np.isnan(delays), 0.0, delays), RATE, axis=-1)
    fits = (
        (selecting.sure <= observers.counts).all()
        and (selecting.pairs <= selecting.sure).all()
        and (np.isnan(delays) == np.isnan(first.delays)).all()
        and ((sums >= 0.0) & (sums <= _FINITE)).all()
        and not (delays[..., RATE] < 0.0).any()
        and (observers.spending[..., : UNIT + 1] == first.spending[: UNIT + 1]).all()
        and (observers.spending[..., PRICE : PRICE + 1] <= HIGHEST).all()
        and (observers.spending[..., SHARED:] == first.spending[SHARED:]).all()
    )
    if not fits or not observers.window.size:
        return bool(fits)
    start, last, number = np.moveaxis(observers.window, -1, 0)
    length = FIRST * 2 ** np.minimum(number, 50)
    return bool(((number <= 50) & (start == 1 + length - FIRST) & (last == start + length - 1)).all())


@kernel
def row_of(observers: Observers, row: int) -> Observers:
    """Return the observers of one key of a family, as views."""
    return Observers(
        observers.sure[row],
        observers.pairs[row],
        observers.differences[row],
        observers.counts[row],
        observers.means[row],
        observers.squares[row],
        observers.delays[row],
        observers.alarm[row],
        observers.window[row],
        observers.W[row],
        observers.standing[row],
        observers.sums[row],
        observers.advisers[row],
        observers.spending[row],
    )


@kernel
def note_asked(observers: Observers, absent: int, mean: np.ndarray) -> None:
    """Take notice of a draw: `mean` gets what a certificate and the evidence on advisers must know of it."""
    if absent > 0:
        observers.delays[ABSENT] = 1.0
    if observers.W.shape[0] > 0:
        freeze(Standing(observers.W, observers.standing, observers.sums), mean)
    elif observers.advisers.shape[0] > 0:
        for k in range(mean.size):
            mean[k] = (observers.counts[k] * observers.means[k] + 0.5) / (observers.counts[k] + 1.0)


@kernel
def add_loss(i: int, loss: float, n: float, means: np.ndarray, squares: np.ndarray) -> None:
    """Add the n-th loss of arm i to the means (Welford 1962)."""
    away = loss - means[i]
    means[i] += away / n
    squares[i] += away * (loss - means[i])


@kernel
def note_told(
    observers: Observers,
    graphs: tuple[GraphArrays, GraphArrays, GraphArrays],
    drawn: DrawnRound,
    losses: np.ndarray,
    P: np.ndarray,
    scratch: np.ndarray,
    known: bool,  # noqa: FBT001  # kernels have no names
    foreseen: bool,  # noqa: FBT001
) -> None:
    """Count the losses of a round; the e-th revealed arm would be revealed with probability P[e], if that is `known`.

    The graphs are that of the outcome, the one that was asked with and the own one; the first is `foreseen` if it was
    known before the draw.
    """
    graph, counts = graphs[0], observers.counts
    arms = graph.targets[graph.start[drawn.carried] : graph.stop[drawn.carried]]
    if known and observers.alarm.shape[1] > 0:
        look(Turning(observers.alarm, observers.window), arms, P, losses, drawn.t)
    if foreseen and observers.delays[SELECTED] == 0.0:
        for e in range(arms.size):
            counts[arms[e]] += 1
            add_loss(arms[e], losses[e], float(counts[arms[e]]), observers.means, observers.squares)
    else:
        _note_selected(observers, graphs, drawn.carried, losses, scratch, foreseen)


@rare_kernel
def _note_selected(
    observers: Observers,
    graphs: tuple[GraphArrays, GraphArrays, GraphArrays],
    arm: int,
    losses: np.ndarray,
    certain: np.ndarray,
    foreseen: bool,  # noqa: FBT001
) -> None:
    """Count the losses of a round, where outcomes have decided what is revealed; `certain` is scratch.

    An outcome could not have hidden what the arm reveals both in the own graph and in the one that was asked with. If
    one does hide some of that, these were guesses: from then on only the loss of the played arm counts.
    """
    graph, delays = graphs[0], observers.delays
    first, last = graph.start[arm], graph.stop[arm]
    if delays[SELECTED] == 0.0:
        for i in range(observers.counts.size):
            observers.sure[i] = observers.counts[i]
    delays[SELECTED] += 0.0 if foreseen else 1.0
    for e in range(first, last):
        observers.counts[graph.targets[e]] += 1
        certain[graph.targets[e]] = 1.0 if foreseen or graph.targets[e] == arm else 0.0
    if not foreseen and delays[HIDDEN] == 0.0 and _mark_certain(graphs, arm, certain):
        delays[HIDDEN] = 1.0
        observers.sure[:] = 0
        observers.pairs[:] = 0
        observers.squares[:] = 0.0
    before = -2
    for e in range(first, last):
        i = int(graph.targets[e])
        if i == arm or (certain[i] > 0.0 and delays[HIDDEN] == 0.0):
            loss = losses[e - first]
            observers.sure[i] += 1
            add_loss(i, loss, float(observers.sure[i]), observers.means, observers.squares)
            if before == i - 1:
                observers.pairs[i] += 1
                more = loss - losses[e - first - 1] - observers.differences[i]
                observers.differences[i] += more / float(observers.pairs[i])
            before = i


@kernel
def _mark_certain(graphs: tuple[GraphArrays, GraphArrays, GraphArrays], arm: int, certain: np.ndarray) -> bool:
    """Mark the arms that `arm` reveals in all graphs; tell whether the outcome hid one that the others reveal."""
    graph, asked, own = graphs
    hidden, e, a = False, graph.start[arm], asked.start[arm]
    for k in range(own.start[arm], own.stop[arm]):
        i = own.targets[k]
        while e < graph.stop[arm] and graph.targets[e] < i:
            e += 1
        while a < asked.stop[arm] and asked.targets[a] < i:
            a += 1
        if a < asked.stop[arm] and asked.targets[a] == i:
            if e < graph.stop[arm] and graph.targets[e] == i:
                certain[i] = 1.0
            else:
                hidden = True
    return hidden


@kernel
def note_delay(
    delays: np.ndarray,
    drawn: DrawnRound,
    late: bool,  # noqa: FBT001
    eta: float,
    theta: float,
    mass: float,
) -> None:
    """Count how late the feedback of a decision came, with what the learner traced."""
    if drawn.outstanding < 0:  # an initial round: what it shows enters no weights
        return
    sigma = float(drawn.outstanding)
    delays[SIGMAS] += sigma
    delays[MOST] = max(delays[MOST], sigma)
    delays[N_TOLD] += 1.0
    delays[N_LATE] += 1.0 if late else 0.0
    if eta != 0.0 and eta < delays[RATE]:  # of a single arm it is 0, and nothing can be lost
        delays[RATE] = eta
    delays[THETA] += theta
    delays[RATED_THETA] += eta * theta
    delays[RATED_DELAY] += eta * sigma
    delays[EXPLORATION] += mass


@kernel
def note_dropped(delays: np.ndarray, drawn: DrawnRound, why: int) -> None:
    """Count a round that the learner does not learn from; `why` is CANCELLED, LOST or OVERRIDDEN.

    One that was lost was carried out, and so was one that was overridden. As the reason may be the draw itself, both
    count in the bounds as the worst they can be.
    """
    if drawn.outstanding >= 0:
        delays[SIGMAS] += drawn.outstanding
        delays[MOST] = max(delays[MOST], float(drawn.outstanding))
        delays[CANCELLED if why == CANCELLED else LOST] += 1.0
    if why == OVERRIDDEN:
        delays[OVERRIDDEN] += 1.0


def certificate_of(observers: Observers, pending: Iterable[Decision], confidence: float) -> Certificate:
    """Return how much was lost so far, at most, beyond any fixed arm; rounds that are pending count as lost.

    Raises:
        EvaluationError: none is kept.
    """
    if not observers.W.size:
        raise EvaluationError("No certificate is kept. Make the agent or the family with certificate=True.")
    standing = Standing(observers.W, observers.standing, observers.sums).copy()
    P = np.empty(observers.counts.size)
    for made in pending:
        settle(standing, made.graph.arrays, made.arm, made.drawn.p, made.drawn.mean, P, NOT_TOLD, P)
    return assess(standing, confidence)


def best_arm_of(observers: Observers, graph: FeedbackGraph, confidence: float) -> int | None:
    """Return the arm with the least mean, if that is known: `sidelong.evaluation.stopping`."""
    if observers.delays[SELECTED]:
        raise EvaluationError(
            "stop needs graphs that were known before the draw: here the outcome decided which losses were revealed, "
            "so that their means may be those of selected rounds."
        )
    return best_arm(observers.counts, observers.means, confidence, np.flatnonzero(~present(graph)).tolist())


def advisers_of(
    setup: Setup,
    observers: Observers,
    state: Any,
    pending: Iterable[Decision],
    confidence: float,
    ends: tuple[float, float],
) -> list[Adviser]:
    """Return what is known of each adviser; rounds that are pending count as the worst they can be."""
    counted, first = observers.advisers.copy(), trace_size(setup.learner, setup.graph.n_arms)
    P = np.empty(setup.graph.n_arms)
    for made in pending:
        drawn, advice = made.drawn, made.drawn.trace[first:]
        if advice.size:
            graph = made.graph.arrays
            own = look_at_round(graph, drawn.arm, drawn.p, P, NOT_TOLD, P)
            judge(counted, advice, graph, made.graph.row(drawn.arm), P, drawn.mean, P, own, NOT_TOLD)
    shares = np.array(list(trust_of(setup, state).values()))
    return assess_advisers(counted, setup.advisers, shares, confidence, ends)


def trust_of(setup: Setup, state: Any) -> dict[str, float]:
    """Return how far a learner follows each adviser; NaN if it does not say so."""
    trust, n = setup.learner.trust, len(setup.advisers)
    shares = [math.nan] * n if trust is None else np.asarray(trust(state))[1:].tolist()
    return dict(zip(setup.advisers, shares, strict=True))


def health_of(setup: Setup, observers: Observers, last: int) -> WorldHealth:
    """Return whether the world has turned, after the draw of round `last`."""
    if not observers.alarm.size:
        raise EvaluationError("No alarm is kept. Make the family with health=True.")
    found = health(Turning(observers.alarm, observers.window), last)
    found = found._replace(overridden=int(observers.delays[OVERRIDDEN]))
    blind = setup.learner.draws_itself and not setup.learner.is_sparing
    return found._replace(unknown="the learner draws without knowing the probabilities") if blind else found


class Lateness(NamedTuple):
    """What an agent knows about the delay of its feedback.

    The initial rounds of a learner are not counted, but in `initial`: what they show enters no weights.
    """

    told: int  #: how many decisions were told
    late: int  #: of these, how many were told after a later one was drawn
    outstanding: int  #: how many are pending
    cancelled: int  #: how many were cancelled, because they were never carried out
    lost: int  #: how many were carried out and given up, or carried out with another arm: each costs at most 1
    initial: int  #: how many initial rounds were asked for
    sum: int  #: D: over all decisions, how many others were outstanding when it was drawn
    most: int  #: the largest number that was ever outstanding when one was drawn
    rate: float  #: the smallest learning rate of a told decision; NaN if the learner does not trace it
    theta_sum: float  #: the sum of theta over the told decisions; NaN if the learner does not trace it
    rated_theta: float  #: the sum of theta times the learning rate
    rated_delay: float  #: the sum, over the told decisions, of those outstanding before times the learning rate
    exploration: float  #: the sum of the rates of exploration over the told decisions
    #: The regret so far is, in the mean, at most this, if delays depend on neither draws nor losses. None if no such
    #: bound is proved for the learner with its options.
    bound: float | None
    absent: bool  #: whether an arm was ever absent


def lateness_of(setup: Setup, delays: np.ndarray, outstanding: Sequence[int], rounds: int) -> Lateness:
    """Return how late feedback was; `outstanding` has what `DrawnRound` says of each decision that is pending."""
    sigmas = [each for each in outstanding if each >= 0]
    initial = min(setup.initial, rounds)
    counted = delays.tolist()
    return Lateness(
        told=int(counted[N_TOLD]),
        late=int(counted[N_LATE]),
        outstanding=len(sigmas),
        cancelled=int(counted[CANCELLED]),
        lost=int(counted[LOST]),
        initial=initial,
        sum=int(counted[SIGMAS]) + sum(sigmas),
        most=max([int(counted[MOST]), *sigmas]),
        rate=counted[RATE],
        theta_sum=counted[THETA],
        rated_theta=counted[RATED_THETA],
        rated_delay=counted[RATED_DELAY],
        exploration=counted[EXPLORATION],
        bound=_late_bound(setup, counted, initial, sigmas),
        absent=counted[ABSENT] > 0,
    )


def _late_bound(setup: Setup, counted: list[float], initial: int, sigmas: list[int]) -> float | None:
    from sidelong.learners import exp3gpp, exp3set  # noqa: PLC0415  # with the theory of all learners, which
    from sidelong.theory import delay  # noqa: PLC0415  # takes a while to load

    options: Mapping[str, Any] = setup.options
    name, K = str(setup.learner.name), setup.graph.n_arms
    is_late = counted[SIGMAS] or any(sigmas)
    if counted[LOGGED] or (counted[ABSENT] and is_late):  # nothing is proved where arms are absent and feedback is late
        return None
    proved = options.get("estimator", "plain") == "plain" and options.get("track") is None and K > 1
    if not proved or name not in {exp3gpp.LEARNER.name, exp3set.LEARNER.name}:
        return None
    untold = len(sigmas) + int(counted[LOST])
    if not counted[N_TOLD] or counted[RATE] == math.inf:
        return float(initial + untold)
    sums = {"rate": counted[RATE], "rated_theta": counted[RATED_THETA], "rated_delay": counted[RATED_DELAY]}
    if name == exp3set.LEARNER.name:
        return counted[PRIOR] + delay.exp3_set_so_far(K=K, untold=untold, **sums)
    return delay.exp3_gpp_so_far(K=K, exploration=counted[EXPLORATION], initial=initial, untold=untold, **sums)


@kernel
def chances(graph: GraphArrays, arm: int, p: np.ndarray, P: np.ndarray) -> None:
    """Write into the first places of `P` with which probability each arm that `arm` reveals would be revealed."""
    observe(graph, p, P)
    first = graph.start[arm]
    for e in range(graph.stop[arm] - first):
        P[e] = P[graph.targets[first + e]]  # arms ascend, so that none is overwritten before it is read
