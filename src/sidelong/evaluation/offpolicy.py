"""Off-policy estimates: what a fixed arm, or another distribution, would have cost in the rounds of a log.

In round t the loss l_a of arm a was revealed with a probability P_a, which is in the log. So, for any number c_a that
does not depend on the draw,

    x_t = sum over a of pi_a (c_a + [a was revealed] (l_a - c_a) / P_a)

has the mean sum of pi_a l_a: what a draw from pi would have cost in round t. Each c_a is the mean of the losses of
the arm that earlier rounds revealed (and one of 1/2), so that x_t varies little. The **estimate** is the mean of x_t
over the rounds with feedback. It has no bias.

The **interval** is made of the evidence (`sidelong.evaluation.intervals`) whose factors are, for a rate s,

    1 + sum over revealed a of (exp(s pi_a l_a) - 1) / P_a

with the mean 1 + sum of (exp(s pi_a l_a) - 1), which is at most exp(s sum of pi_a l_a), and exactly that for an arm.
For the upper end 1 - l_a takes the place of l_a. It assumes three things. Losses are in [0, 1]. The log's probabilities
are those of the draws. What a round costs each arm does not depend on that round's draw. Rounds may depend on each
other and on earlier draws in any way. Probabilities may be as small as they like, and the losses need not follow a
distribution. A loss that was never reported, for whatever reason, may have any value: a round without feedback has the
factor 1, which is at most the one it would have had. So the intervals of a growing log hold all at once. You may look
as often as you like, also while feedback is late. They are about the rounds of the log. If losses follow a
distribution, its means may be outside.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.checks import plain as plain_number
from sidelong.errors import EvaluationError
from sidelong.evaluation.intervals import Evidence, interval

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.evaluation.decision_log import DecisionLog

    Floats = npt.NDArray[np.float64]

#: The best one is near sqrt(2 log(1 / risk) / sum of 1 / P), and twice or half of that is nearly as good.
_RATES = 4.0 ** np.arange(2.0, -10.0, -1.0)


class CostEstimates(NamedTuple):
    """What was estimated: an element for each arm or distribution. Costs are mean losses per round."""

    value: Floats  #: the estimate; NaN if no loss of it was ever revealed
    lower: Floats  #: the interval
    upper: Floats
    rejected: npt.NDArray[np.bool_]  #: whether its limits cross: an assumption is false, at the given confidence
    rounds: npt.NDArray[np.int64]  #: in how many rounds some of its losses were revealed
    effective: Floats  #: how many rounds with equal weights would tell as much
    weight: Floats  #: the mean weight; far from 1, the probabilities are not those of the draws, or were sometimes 0

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each arm or distribution, with None for what is not known and for crossed limits."""
        columns = (column.tolist() for column in self)
        return [plain(dict(zip(self._fields, row, strict=True))) for row in zip(*columns, strict=True)]


def evaluate_arms(log: DecisionLog, confidence: float = 0.95) -> CostEstimates:
    """Estimate what each arm would have cost, had it been played in every round.

    Each interval holds with the given confidence by itself; `regret` has one for all of them together.
    """
    w = 1.0 / log.probability
    seen = np.bincount(log.arm, minlength=log.n_arms)
    return _combine(costs(log), evidence(log), log, seen, _by_arm(log, w), _by_arm(log, w * w), risk(confidence))


def evaluate_distribution(log: DecisionLog, probabilities: npt.ArrayLike, confidence: float = 0.95) -> CostEstimates:
    """Estimate what draws from a distribution over the arms would have cost. The result has one element."""
    pi = _distribution(probabilities, log.n_arms)
    share = pi[log.arm]

    def each_round(values: Floats) -> Floats:
        return np.bincount(log.round, values, log.n_rounds).astype(np.float64)

    def of(losses: Floats) -> Floats:
        gains = (each_round(np.expm1(s * share * losses) / log.probability) for s in _RATES)
        return np.array([[np.log1p(gain).sum()] for gain in gains])

    w = share / log.probability
    W = each_round(w)
    before, after = _baselines(log)
    change = each_round(share * (after - before))
    x = 0.5 + np.cumsum(change) - change + each_round((log.loss - before) * w)  # the baseline of each round, and more
    seen = np.array([(W > 0).sum()])
    found = np.where(seen > 0, x[log.told].sum() / max(log.n_told, 1), np.nan)
    both = Evidence(_RATES, of(log.loss), of(1.0 - log.loss))
    return _combine(found, both, log, seen, np.atleast_1d(W.sum()), np.atleast_1d((W * W).sum()), risk(confidence))


def _by_arm(log: DecisionLog, values: Floats) -> Floats:
    return np.bincount(log.arm, values, log.n_arms).astype(np.float64)  # without values, 0 is an int


def costs(log: DecisionLog) -> Floats:
    """Return the estimate of each arm."""
    m = log.n_told
    before, after = _baselines(log)
    left = m - np.cumsum(log.told)[log.round]  # rounds with feedback after that of each revealed loss
    total = 0.5 * m + _by_arm(log, (after - before) * left + (log.loss - before) / log.probability)
    return np.where(np.bincount(log.arm, minlength=log.n_arms) > 0, total / max(m, 1), np.nan)


def evidence(log: DecisionLog) -> Evidence:
    """Return the evidence of each arm."""

    def of(losses: Floats) -> Floats:
        return np.stack([_by_arm(log, np.log1p(np.expm1(s * losses) / log.probability)) for s in _RATES])

    return Evidence(_RATES, of(log.loss), of(1.0 - log.loss))


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


def _combine(
    found: Floats,
    evidence: Evidence,
    log: DecisionLog,
    seen: npt.NDArray[np.int64],
    weights: Floats,
    squared: Floats,
    chance: float,
) -> CostEstimates:
    """Put the estimates together, from the sums of the weights and of their squares."""
    ends = interval(evidence, log.n_rounds, chance, found)
    return CostEstimates(
        value=found,
        lower=ends.lower,
        upper=ends.upper,
        rejected=ends.rejected,
        rounds=seen,
        effective=np.divide(weights**2, squared, out=np.zeros(seen.size), where=seen > 0),
        weight=weights / max(log.n_told, 1),
    )


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return numbers by name, with None for what is not known and for crossed limits."""
    crossed = {"lower": None, "upper": None} if row["rejected"] else {}
    return {name: None if math.isnan(number) else number for name, number in row.items()} | crossed


def risk(confidence: float) -> float:
    """Return the probability that is left to err."""
    if not 0.0 < plain_number(confidence) < 1.0:
        raise EvaluationError(f"The confidence must be between 0 and 1, such as 0.95, not {confidence!r}.")
    return 1.0 - confidence


def _distribution(probabilities: npt.ArrayLike, n_arms: int) -> Floats:
    try:
        pi = np.asarray(probabilities, np.float64)
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"A distribution is a list of numbers, one for each arm: {error}.") from error
    if pi.shape != (n_arms,):
        raise EvaluationError(f"A distribution has one number for each of the {n_arms} arms, not shape {pi.shape}.")
    if not (pi >= 0.0).all() or abs(pi.sum() - 1.0) > 1e-9:
        raise EvaluationError(f"A distribution has numbers of at least 0 with the sum 1, not {pi.sum():.12g}.")
    return np.asarray(pi / pi.sum())
