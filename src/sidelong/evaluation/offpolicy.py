"""Off-policy estimates: what a fixed arm, or another distribution, would have cost in the rounds of a log.

In round t the loss l_a of arm a was revealed with a probability P_a that the log holds, whatever arm was played. So,
for any number c_a that does not depend on the draw,

    x_t = sum over a of pi_a (c_a + [a was revealed] (l_a - c_a) / P_a)

has the mean sum of pi_a l_a: what a draw from pi would have cost in round t. Each c_a is the mean of the losses of
the arm that earlier rounds revealed (and one of 1/2), so that x_t varies little. Three things are made of it.

The **estimate** is the mean of x_t over the rounds with feedback. It has no bias.

The **guaranteed interval** takes sums of variables that are never negative, for which no bound on 1 / P is needed: x_t
with c = 0 for the lower end, and for the upper end 1 - x_t with c = 1. For X >= 0 with mean mu, any b in [0, 1] that
does not depend on the draw and 0 < s < 1,

    E exp(s (X - mu) - psi(s) (X - b)^2) <= 1,    psi(s) = -log(1 - s) - s

(Fan, Grama, Liu 2015; Howard, Ramdas, McAuliffe, Sekhon 2021). So the product over rounds, averaged over some s,
ever exceeds 1 / risk with a probability of at most `risk` (Ville). It assumes three things: losses are in [0, 1]; the
log's probabilities are those of the draws; what a round costs each arm does not depend on that round's draw. Rounds may
depend on each other and on earlier draws in any way, and the losses may follow no law. A loss that was never reported
may be any, since a round without feedback adds 0 to both sums. Where every round is told before the next one is drawn,
all intervals of a growing log hold at once, and one may look as often as one likes; else each look by itself.

The **normal interval** is the estimate with its standard error. It is shorter, and an approximation: it needs many
effective rounds, probabilities that do not die away, feedback that is not missing for a reason, and one look.

Both also hold for the mean of an arm, where losses are drawn from a law with one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from sidelong.errors import EvaluationError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.evaluation.decision_log import DecisionLog

    Floats = npt.NDArray[np.float64]

__all__ = [
    "Estimates",
    "Regret",
    "Sums",
    "compare",
    "evaluate_arms",
    "evaluate_distribution",
    "limits",
    "regret",
    "value",
]

#: The s over which products are averaged: the best one is near sqrt(2 log(1 / risk) / sum of squares).
_S = 0.5 ** np.arange(1.0, 17.0)
_PSI = -np.log1p(-_S) - _S


class Estimates(NamedTuple):
    """What was estimated, one element an arm or a distribution. Costs are mean losses a round."""

    value: Floats  #: the estimate; NaN if no loss of it was ever revealed
    error: Floats  #: its standard error
    lower: Floats  #: the guaranteed interval
    upper: Floats
    normal_lower: Floats  #: the normal interval
    normal_upper: Floats
    rounds: npt.NDArray[np.int64]  #: in how many rounds some of its losses were revealed
    effective: Floats  #: how many rounds with equal weights would tell as much
    weight: Floats  #: the mean weight; far from 1, the probabilities are not those of the draws, or were sometimes 0


class Regret(NamedTuple):
    """How much more the rounds of a log cost than the best arm would have in the same rounds, in total."""

    value: float
    lower: float  #: the guaranteed interval, for whichever arm is best
    upper: float
    best: int  #: the arm with the lowest upper end, or else with the lowest estimate; -1 if no loss was revealed


class Sums(NamedTuple):
    """Of each candidate, over the rounds: what the estimate and the guaranteed interval are made of."""

    base: Floats  # of the baseline c, rounds with feedback only
    residual: Floats  # of x - c
    low: Floats  # of x with c = 0
    low_squares: Floats  # of its squared distances from the baseline
    high: Floats  # of 1 - x with c = 1
    high_squares: Floats
    rounds: npt.NDArray[np.int64]


class _Spread(NamedTuple):
    """And what the normal interval is made of besides."""

    squares: Floats  # of x - c
    weights: Floats
    weights_squared: Floats


def evaluate_arms(log: DecisionLog, confidence: float = 0.95) -> Estimates:
    """Estimate what each arm would have cost, had it been played in every round.

    Each interval holds with the given confidence by itself; `regret` has one for all of them together.
    """
    return _combine(*_sum_arms(log), log.n_rounds, log.n_told, _risk(confidence))


def _sum_arms(log: DecisionLog) -> tuple[Sums, _Spread]:
    K, n, m = log.n_arms, log.n_rounds, log.n_told
    before, after = _baselines(log)
    told_round = (np.cumsum(log.told) - 1)[log.round]

    def total(values: Floats) -> Floats:
        return np.bincount(log.arm, values, K).astype(np.float64)  # without values, 0 is an int

    def over_time(first: float, change: Floats, round_: npt.NDArray[np.int64], rounds: int) -> Floats:
        """Return the sums over all rounds of what begins with `first` and changes after some of them."""
        return rounds * first + total(change * (rounds - 1 - round_))

    w = 1.0 / log.probability
    r, x, y = (log.loss - before) * w, log.loss * w, (1.0 - log.loss) * w
    sums = Sums(
        base=over_time(0.5, after - before, told_round, m),
        residual=total(r),
        low=total(x),
        low_squares=over_time(0.25, after**2 - before**2, log.round, n) + total(x * (x - 2 * before)),
        high=total(y),
        high_squares=over_time(0.25, (1 - after) ** 2 - (1 - before) ** 2, log.round, n)
        + total(y * (y - 2 * (1 - before))),
        rounds=np.bincount(log.arm, minlength=K),
    )
    return sums, _Spread(total(r * r), total(w), total(w * w))


def evaluate_distribution(log: DecisionLog, probabilities: npt.ArrayLike, confidence: float = 0.95) -> Estimates:
    """Estimate what draws from a distribution over the arms would have cost. The result has one element."""
    pi = _distribution(probabilities, log.n_arms)
    n = log.n_rounds
    before, after = _baselines(log)

    def each_round(values: Floats) -> Floats:
        return np.bincount(log.round, values, n).astype(np.float64)

    share = pi[log.arm]
    w = share / log.probability
    W, r = each_round(w), each_round((log.loss - before) * w)
    x, y = each_round(log.loss * w), each_round((1.0 - log.loss) * w)
    b = 0.5 + np.append(0.0, np.cumsum(each_round(share * (after - before)))[:-1])  # the baseline of each round
    columns = {
        "base": b[log.told],
        "residual": r,
        "low": x,
        "low_squares": (x - b) ** 2,
        "high": y,
        "high_squares": (y - (1 - b)) ** 2,
        "rounds": W > 0,
    }
    sums = Sums(**{name: np.atleast_1d(column.sum()) for name, column in columns.items()})
    spread = _Spread(*(np.atleast_1d(column.sum()) for column in (r * r, W, W * W)))
    return _combine(sums, spread, n, log.n_told, _risk(confidence))


def regret(log: DecisionLog, confidence: float = 0.95) -> Regret:
    """Estimate the regret: what was paid, less what the best single arm would have cost in the same rounds."""
    unknown = int(np.isnan(log.cost).sum())
    sums, _ = _sum_arms(log)
    return compare(sums, log.n_rounds, log.n_told, float(np.nansum(log.cost)), unknown, _risk(confidence))


def compare(sums: Sums, n: int, m: int, paid: float, unknown: int, risk: float) -> Regret:
    """Return the regret of n rounds, m of which have feedback, from the sums of all arms and what was paid.

    In `unknown` rounds the loss of the arm that was played is not known.
    """
    costs = value(sums, m)
    if m == 0 or np.isnan(costs).all():
        return Regret(math.nan, -float(n), float(n), -1)
    # All intervals hold together. The ends of the best arm's are found without those of arms that cannot be it.
    each = risk / costs.size / 2
    least, most = _bracket(sums.low, sums.low_squares, n, each)
    may = least <= most.min()
    lower = _least_mean(sums.low[may], sums.low_squares[may], n, each).min()
    least, most = _bracket(sums.high, sums.high_squares, n, each)
    may = most >= least.max()
    upper = 1.0 - _least_mean(sums.high[may], sums.high_squares[may], n, each).max()
    # Of many estimates the lowest is one that errs. Best is what is surely cheap; while nothing is, the lowest.
    best = int(np.lexsort((costs, -np.clip(least, 0.0, 1.0)))[0])
    lower, upper = min(lower, costs[best]), max(upper, costs[best])
    estimate = n * (paid / (n - unknown) - costs[best]) if unknown < n else math.nan
    return Regret(float(estimate), float(paid - n * upper), float(paid + unknown - n * lower), best)


def _baselines(log: DecisionLog) -> tuple[Floats, Floats]:
    """Return, for each revealed loss, the arm's mean of those that earlier rounds revealed, and the mean with it.

    One loss of 1/2 counts in both, so that they are defined from the beginning.
    """
    order = np.argsort(log.arm, kind="stable")  # rounds stay ascending within an arm
    loss = log.loss[order]
    counts = np.bincount(log.arm, minlength=log.n_arms)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    total = np.append(0.0, np.cumsum(loss))
    seen = np.arange(loss.size) - first
    sums = 0.5 + total[:-1] - total[first]
    before, after = np.empty((2, loss.size))
    before[order] = np.clip(sums / (1.0 + seen), 0.0, 1.0)
    after[order] = np.clip((sums + loss) / (2.0 + seen), 0.0, 1.0)
    return before, after


def value(sums: Sums, m: int) -> Floats:
    """Return the estimates alone, of m rounds with feedback."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums.rounds > 0, (sums.base + sums.residual) / m, np.nan)


def limits(sums: Sums, n: int, m: int, risk: float) -> tuple[Floats, Floats]:
    """Return both ends of the guaranteed intervals, each of which misses with the given risk."""
    lower = _least_mean(sums.low, sums.low_squares, n, risk / 2)
    upper = 1.0 - _least_mean(sums.high, sums.high_squares, n, risk / 2)
    found = value(sums, m)  # an interval that holds also holds when it is stretched to the estimate
    return np.fmin(lower, found), np.fmax(upper, found)


def _combine(sums: Sums, spread: _Spread, n: int, m: int, risk: float) -> Estimates:
    """Make the estimates of n rounds, m of which have feedback."""
    found = value(sums, m)
    lower, upper = limits(sums, n, m, risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(sums.rounds > 0, np.sqrt(spread.squares) / m, np.nan)
        effective = np.where(sums.rounds > 0, spread.weights**2 / spread.weights_squared, 0.0)
        weight = np.where(sums.rounds > 0, spread.weights / m, 0.0)
    z = special.ndtri(1.0 - risk / 2)
    return Estimates(
        value=found,
        error=error,
        lower=lower,
        upper=upper,
        normal_lower=found - z * error,
        normal_upper=found + z * error,
        rounds=sums.rounds,
        effective=effective,
        weight=weight,
    )


def _least_mean(total: Floats, squares: Floats, n: int, risk: float) -> Floats:
    """Return a lower limit for the mean of the means of n variables that are never negative.

    It is the m at which the averaged product reaches 1 / risk, which halving finds.
    """
    if n == 0:
        return np.zeros_like(total)
    needed = -math.log(risk)
    low, high = _bracket(total, squares, n, risk)
    limit = np.zeros_like(total)
    above = high > 0.0  # of a hundred thousand arms most may be below, and exp takes long
    low, high, total, squares = low[above], high[above], total[above], squares[above]
    for _ in range(25):
        middle = (low + high) / 2
        exponents = _S * (total - n * middle)[:, None] - _PSI * squares[:, None] - needed  # 0: the product is 1 / risk
        rich = np.exp(exponents).mean(axis=1) >= 1.0  # no more than 16 times that, between the ends
        low, high = np.where(rich, middle, low), np.where(rich, high, middle)
    limit[above] = np.clip(low, 0.0, 1.0)
    return limit


def _bracket(total: Floats, squares: Floats, n: int, risk: float) -> tuple[Floats, Floats]:
    """Return what encloses the limit: a product alone is the largest or a 16th of the average or something between."""
    needed, shared = -math.log(risk), math.log(_S.size)
    low, high = np.full((2, total.size), -math.inf)
    for s, psi in zip(_S, _PSI, strict=True):
        limit = total - (needed + psi * squares) / s
        low, high = np.maximum(low, limit - shared / s), np.maximum(high, limit)
    return low / n, high / n


def _risk(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise EvaluationError(f"The confidence must be between 0 and 1, such as 0.95, not {confidence!r}.")
    return 1.0 - confidence


def _distribution(probabilities: npt.ArrayLike, n_arms: int) -> Floats:
    try:
        pi = np.asarray(probabilities, np.float64)
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"A distribution is a list of numbers, one an arm: {error}.") from error
    if pi.shape != (n_arms,):
        raise EvaluationError(f"A distribution has one number for each of the {n_arms} arms, not shape {pi.shape}.")
    if not (pi >= 0.0).all() or abs(pi.sum() - 1.0) > 1e-9:
        raise EvaluationError(f"A distribution has numbers of at least 0 with the sum 1, not {pi.sum():.12g}.")
    return np.asarray(pi / pi.sum())
