"""What a learner saves beside a holdout: a share of rounds, drawn at random, that follows a given arm.

In each round a coin decides, with a probability of h, that the arm is played, and else the learner draws. Let l be the
loss of the round, and b a number in [0, 1] that is fixed before the toss. Then

    d = (l - b) / h          where the arm was played,
    d = -(l - b) / (1 - h)   where the learner drew

has the mean (loss of the arm) - (mean loss of the learner's draw), given everything before the round, whatever b is. So
the mean of d over the rounds estimates the **lift**, the loss per round that the learner saves, without bias, though
the learner changes all the time. d varies least where b lies between the mean losses of both, nearer to that of the
smaller group.

The **interval** holds at every moment at once. With x = d min(h, 1 - h), which is in [-1, 1], and 0 < s < 1,

    exp(s x - psi(s) x^2) <= 1 + s x,    psi(s) = -log(1 - s) - s

(Fan, Grama, Liu 2015), whose mean is at most exp(s E x). So s (sum of x) - psi(s) (sum of x^2) is evidence that the sum
of the means is large (`sidelong.evaluation.intervals`), and with -x that it is small. It is taken for granted that
losses are in [0, 1], and that whether a round is told does not depend on the coin. The interval is about the lift in
the rounds that were told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.evaluation.intervals import Evidence, interval

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

ROWS = 6
_RATES = 0.5 ** np.arange(1.0, 17.0)
_PSI = -np.log1p(-_RATES) - _RATES


class Lift(NamedTuple):
    """What a learner saves per round."""

    value: float  #: the estimate
    lower: float
    upper: float
    held: int  #: how many told rounds followed the arm
    learned: int  #: and how many the learner
    held_cost: float  #: the mean loss of the first; NaN if there is none
    learner_cost: float  #: and of the others


def baseline(sums: Floats, share: float) -> float:
    """Return b for a round that is tossed now; the mean losses of both groups count with one of 1/2."""
    held, learned = (sums[1] + 0.5) / (sums[0] + 1.0), (sums[3] + 0.5) / (sums[2] + 1.0)
    return float((1.0 - share) * held + share * learned)


def add(sums: Floats, share: float, loss: float, b: float, *, held: bool) -> None:
    """Add a round to the sums: of each group, how many rounds, and their losses; then those of x and its square."""
    x = (loss - b) / share if held else -(loss - b) / (1.0 - share)
    x *= min(share, 1.0 - share)
    at = 0 if held else 2
    sums[at] += 1.0
    sums[at + 1] += loss
    sums[4] += x
    sums[5] += x * x


def lift(sums: Floats, share: float, confidence: float = 0.95) -> Lift | None:
    """Return the lift with its interval; None before anything was told."""
    held, held_loss, learned, learner_loss, x, squares = map(float, sums)
    n = int(held + learned)
    if n == 0:
        return None
    # The mean of x is in [-1, 1], and an interval is for costs in [0, 1]: those are (1 + x) / 2, with twice the rates.
    quadratic = n * _RATES - _PSI * squares
    evidence = Evidence(2.0 * _RATES, (quadratic + _RATES * x)[:, None], (quadratic - _RATES * x)[:, None])
    found = interval(evidence, n, 1.0 - confidence, np.array([(1.0 + x / n) / 2.0]))
    most = 1.0 / min(share, 1.0 - share)
    value, lower, upper = ((2.0 * float(each) - 1.0) * most for each in ((1.0 + x / n) / 2.0, *found[0], *found[1]))
    return Lift(
        value,
        max(lower, -1.0),
        min(upper, 1.0),
        int(held),
        int(learned),
        held_loss / held if held else float("nan"),
        learner_loss / learned if learned else float("nan"),
    )
