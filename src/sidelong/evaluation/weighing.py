"""Estimates while the rounds go by: eight sums for each arm, from which its cost and the evidence can be told later.

The baseline b of an arm in a round is the mean of its losses that were told before that round was drawn, with one of
1/2. It is frozen at the draw. So it cannot depend on the draw, however late feedback comes, and whatever decides when
it comes. The estimate is the mean of b over all rounds that were drawn, and the mean of (l - b) [revealed] / P over
those that were told. Where every round is told before the next one is drawn, it is that of
`sidelong.evaluation.offpolicy`.

The evidence (`sidelong.evaluation.intervals`) needs two sums where that of a log needs many, and makes wider intervals.
For a variable X >= 0 with mean mu, any b in [0, 1] that does not depend on the draw, and 0 < s < 1,

    E exp(s (X - mu) - psi(s) (X - b)^2) <= 1,    psi(s) = -log(1 - s) - s

(Fan, Grama, Liu 2015; Howard, Ramdas, McAuliffe, Sekhon 2021). X is l / P where the arm is revealed, and else 0; for
the upper end it is (1 - l) / P. The proof bounds the factor, times exp(s (mu - b)), by 1 + s (X - b), which grows with
X. So X may be put down as 0 in any round that was not told, even where the loss is the reason. A round that was
cancelled is one of these too, and costs nothing: its factor is below 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import kernel
from sidelong.evaluation.intervals import Evidence

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

ROWS = 8
_RATES = 0.5 ** np.arange(1.0, 17.0)
_PSI = -np.log1p(-_RATES) - _RATES


@kernel
def add_losses(
    sums: np.ndarray, arms: np.ndarray, losses: np.ndarray, P: np.ndarray, baselines: np.ndarray, drawn: int
) -> None:
    """Add the losses of these arms, each revealed with a probability of P in a round that had these baselines.

    `drawn` rounds were drawn so far. a is the baseline of an arm that the last of them had, and c that of the next one.
    What rounds that do not reveal an arm add to its sums is found later, from the changes times `drawn`. A kernel takes
    a fifth of the time that NumPy would.
    """
    for e in range(arms.size):
        j, loss, w, b = arms[e], losses[e], 1.0 / P[e], baselines[e]
        a = (sums[1, j] + 0.5) / (sums[0, j] + 1.0)
        c = (sums[1, j] + loss + 0.5) / (sums[0, j] + 2.0)
        x, y = loss * w, (1.0 - loss) * w
        sums[0, j] += 1.0
        sums[1, j] += loss
        sums[2, j] += x
        sums[3, j] += y
        sums[4, j] += (loss - b) * w
        sums[5, j] += (c - a) * drawn
        sums[6, j] += x * (x - 2.0 * b) - (c - a) * (c + a) * drawn
        sums[7, j] += y * (y - 2.0 * (1.0 - b)) - (a - c) * (2.0 - a - c) * drawn


def baselines(sums: Floats) -> Floats:
    """Return the baseline of each arm for a round that is drawn now."""
    return np.asarray((sums[1] + 0.5) / (sums[0] + 1.0))


def costs(sums: Floats, drawn: Any, told: Any) -> Floats:
    """Return what each arm would have cost per round; NaN where nothing was revealed.

    So many rounds were drawn, and so many of them told: one number for all arms, or one for each. A round whose
    probabilities of observing are not known does not count as told: it has no weights.
    """
    seen, residual, changes = sums[0], sums[4], sums[5]
    found = baselines(sums) - changes / np.maximum(drawn, 1) + residual / np.maximum(told, 1)
    return np.where((seen > 0) & (np.asarray(told) > 0), found, np.nan)


def evidence(sums: Floats, drawn: int) -> Evidence:
    """Return the evidence of each arm over all rounds that were drawn, told or not."""
    _, _, low, high, _, _, low_squares, high_squares = sums
    b = baselines(sums)

    def of(X: Floats, squares: Floats) -> Floats:
        return np.multiply.outer(_RATES, X) - np.multiply.outer(_PSI, squares)

    return Evidence(_RATES, of(low, drawn * b**2 + low_squares), of(high, drawn * (1.0 - b) ** 2 + high_squares))
