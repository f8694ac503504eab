"""Whether arms come as often as their probabilities say: what is lost for one arm and not for another shows here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_LEAST_EXPECTED = 5.0
_FEWEST_CELLS = 2


def sample_ratio(plays: npt.NDArray[np.int64], expected: npt.NDArray[np.float64]) -> float | None:
    """Return the p-value of Pearson's chi-squared test, or None if there is too little to compare.

    Arms that are expected fewer than five times are put together. Probabilities that change from round to round only
    make the statistic smaller, so that the test cries wolf less often than the p-value says.

    Args:
        plays: how often each arm was played.
        expected: the sum of its probabilities over the same rounds.
    """
    rare = expected < _LEAST_EXPECTED
    cells = np.append(expected[~rare], expected[rare].sum())
    found = np.append(plays[~rare], plays[rare].sum())
    if cells[-1] < _LEAST_EXPECTED and cells.size > 1:  # too few even together: put them to the smallest cell
        last, smallest = cells.size - 1, int(np.argmin(cells[:-1]))
        cells[smallest] += cells[last]
        found[smallest] += found[last]
        cells, found = cells[:-1], found[:-1]
    if cells.size < _FEWEST_CELLS:
        return None
    from scipy.special import chdtrc  # noqa: PLC0415  # takes a quarter of a second to load

    return float(chdtrc(cells.size - 1, ((found - cells) ** 2 / cells).sum()))
