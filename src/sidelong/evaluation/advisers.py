"""What each adviser would have lost, with intervals that hold at every moment at once.

In a round an adviser would have played arm i with probability E(i), and would have lost l = sum_i E(i) l_i. For a rate
s and the a_i of `certificates`, which do not depend on the draw, let

    w = sum_i E(i) (a_i + [i revealed] ln(1 + (exp(s l_i - a_i) - 1) / P_i))

As exp is convex, exp(w - s l) is at most the mean, over i with the weights E(i), of factors whose mean is at most 1
before the draw. So exp(W - s L) is a supermartingale, where W and L are the sums of w and l, and `intervals` turns it
into a lower limit of L. The same with 1 - l_i in the place of l_i gives the upper one. All advisers share the risk.

A round that was not told yet, or never, counts as the worst it can be on either side: with a loss of 0 for the lower
limit and of 1 for the upper one. So it does not matter why it was not told, nor how late. A round that was cancelled
does not count.

The advice counts as it was given, in rounds that our own plays have led to: this is not what would have happened, had
you followed the adviser alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.display.tables import data_frame, html_table, text_table
from sidelong.evaluation.certificates import NOT_TOLD, RATES, TOLD, TOLD_WITH_GRAPH, most_of
from sidelong.evaluation.intervals import Evidence, interval
from sidelong.evaluation.offpolicy import risk
from sidelong.numerics import expm1, log1p

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sidelong.graphs.arrays import GraphArrays

#: What is counted of an adviser, beside the evidence: the rounds with its advice, how many of them were not told, and
#: of the others what it would have lost, as it is estimated, and what was paid.
ROUNDS, UNTOLD, LOSS, PAID = range(4)
#: Where the evidence begins, that it has lost much and that it has lost little, and how many numbers there are.
DEAR, CHEAP, SIZE = 4, 4 + RATES, 4 + 2 * RATES
_LEAST = 1e-140  # what is less likely counts as this, which only makes a factor smaller
#: For verdicts, in words.
BETTER, WORSE, UNKNOWN = "better than what was played", "worse than what was played", "not known yet"


@rare_kernel
def judge(
    counted: np.ndarray,
    advice: np.ndarray,
    graph: GraphArrays,
    arms: np.ndarray,
    P: np.ndarray,
    mean: np.ndarray,
    losses: np.ndarray,
    own: float,
    how: int,
) -> None:
    """Count a round for each adviser who spoke; `counted` has a row for each, and `advice` as many numbers as arms.

    It revealed `arms`; `P` and `own` are what `certificates.look_at_round` says, and the others are as for that.
    """
    K = P.size
    paid = 0.0 if how == NOT_TOLD else own
    for m in range(advice.size // K):
        E = advice[m * K : (m + 1) * K]
        if _speaks(E, graph):
            _add(counted[m], E, arms, P, mean, losses, paid, how)


@kernel
def _speaks(E: np.ndarray, graph: GraphArrays) -> bool:
    """Tell whether somebody advises something, and no arm that is absent."""
    some = False
    for i in range(E.size):
        if E[i] > 0.0:
            if graph.start[i] >= graph.stop[i]:
                return False
            some = True
    return some


@kernel
def _add(
    counted: np.ndarray,
    E: np.ndarray,
    arms: np.ndarray,
    P: np.ndarray,
    mean: np.ndarray,
    losses: np.ndarray,
    own: float,
    how: int,
) -> None:
    """Count a round of one adviser."""
    counted[ROUNDS] += 1.0
    if how == NOT_TOLD:
        counted[UNTOLD] += 1.0
    counted[PAID] += own
    for i in range(E.size):
        if E[i] <= 0.0 or how == NOT_TOLD:
            continue
        counted[LOSS] += E[i] * mean[i]
        most = most_of(P[i]) if how == TOLD and P[i] > 0.0 else 0.0
        s = 1.0
        for j in range(RATES):
            counted[DEAR + j] += E[i] * min(s * mean[i], most)
            counted[CHEAP + j] += E[i] * min(s * (1.0 - mean[i]), most)
            s *= 0.5
    for e in range(arms.size):
        i = arms[e]
        if E[i] <= 0.0 or (P[i] <= 0.0 and how == NOT_TOLD):
            continue
        chance = min(max(P[i], _LEAST), 1.0)
        most = 0.0 if how == TOLD_WITH_GRAPH else most_of(chance)
        if how != NOT_TOLD:
            counted[LOSS] += E[i] * (losses[e] - mean[i]) / chance
        s = 1.0
        for j in range(RATES):
            a, b = min(s * mean[i], most), min(s * (1.0 - mean[i]), most)
            if how == NOT_TOLD:
                counted[DEAR + j] += E[i] * (a + log1p(expm1(-a) / chance))
                counted[CHEAP + j] += E[i] * (b + log1p(expm1(-b) / chance))
            else:
                counted[DEAR + j] += E[i] * log1p(expm1(s * losses[e] - a) / chance)
                counted[CHEAP + j] += E[i] * log1p(expm1(s * (1.0 - losses[e]) - b) / chance)
            s *= 0.5


class Adviser(NamedTuple):
    """What is known of an adviser."""

    name: str
    rounds: int  #: with its advice, without those that were cancelled
    trust: float  #: the share of the decisions that follows it now
    loss: float  #: what its advice would have lost in a told round, on average, as it is estimated; NaN without one
    low: float  #: what it would have lost in all its rounds, on average, at least,
    high: float  #: and at most
    paid: float  #: what was lost in those told rounds, on average
    verdict: str  #: "better than what was played", "worse than what was played", or "not known yet"


def assess_advisers(
    counted: np.ndarray,
    names: Sequence[str],
    trust: np.ndarray,
    confidence: float = 0.95,
    ends: tuple[float, float] = (0.0, 1.0),
) -> list[Adviser]:
    """Return what is known of each adviser, in numbers of a scale whose best and worst are `ends`."""
    best, worst = ends
    each, rates = risk(confidence) / max(len(names), 1), np.ldexp(1.0, -np.arange(RATES))
    made = []
    for name, row, share in zip(names, counted, trust.tolist(), strict=True):
        n, untold = int(row[ROUNDS]), int(row[UNTOLD])
        told = n - untold
        loss, paid = (row[LOSS] / told, row[PAID] / told) if told else (np.nan, np.nan)
        evidence = Evidence(rates, row[DEAR:CHEAP, None], row[CHEAP:SIZE, None])
        low, high = 0.0, 1.0
        if n:
            found = interval(evidence, n, each, np.full(1, loss))
            low, high = sorted((float(found.lower[0].clip(0.0, 1.0)), float(found.upper[0].clip(0.0, 1.0))))
        verdict = UNKNOWN
        if told and high * n < row[PAID]:  # what was paid in the others is at least 0,
            verdict = BETTER
        elif told and low * n > row[PAID] + untold:  # and at most 1 each
            verdict = WORSE
        numbers = (best + (worst - best) * float(x) for x in (loss, low, high, paid))
        loss, low, high, paid = numbers
        made.append(Adviser(name, n, share, loss, min(low, high), max(low, high), paid, verdict))
    return made


class AdvisersTable:
    """What is known of advisers: a row for each, and in a family for each key and adviser."""

    def __init__(self, rows: Sequence[Adviser], keys: Sequence[Any] | None = None) -> None:
        self.rows = list(rows)
        self.keys = None if keys is None else list(keys)  #: the key of each row, in a family

    @property
    def columns(self) -> dict[str, list[Any]]:
        """All of them by name, as `pandas.DataFrame` takes them."""
        by_key = {} if self.keys is None else {"key": self.keys}
        return by_key | {name: [getattr(row, name) for row in self.rows] for name in Adviser._fields}

    def to_pandas(self) -> Any:  # pandas is optional
        """Return a pandas.DataFrame with a row for each adviser."""
        return data_frame(self.columns)

    def plot(self) -> Any:  # Matplotlib is optional
        """Draw the interval of each adviser beside what was paid; return the figure of Matplotlib."""
        from sidelong.display import figures  # noqa: PLC0415  # takes a while to load

        chart, axes = figures.new("loss of a round", size=(5.2, 0.9 + 0.35 * len(self.rows)), left=1.4)
        for place, row in enumerate(self.rows):
            axes.plot([row.low, row.high], [place, place], color=figures.colour(0), linewidth=2)
            axes.plot([row.loss], [place], "o", color=figures.colour(0))
            axes.plot([row.paid], [place], "|", color=figures.colour(1), markersize=14)
        axes.set_yticks(range(len(self.rows)), self._names())
        return chart

    def _names(self) -> list[str]:
        keys = [""] * len(self) if self.keys is None else [f"{key}: " for key in self.keys]
        return [f"{key}{row.name}" for key, row in zip(keys, self.rows, strict=True)]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        cells = [
            [name, f"{row.rounds:,}", *(f"{x:.4g}" for x in row[2:-1]), row.verdict]
            for name, row in zip(self._names(), self.rows, strict=True)
        ]
        return ["adviser", "rounds", "trust", "loss", "low", "high", "paid", "verdict"], cells

    def __str__(self) -> str:
        """Return a table for people."""
        return text_table(*self._cells())

    def _repr_html_(self) -> str:
        return html_table(*self._cells(), "Advisers")

    def __iter__(self) -> Iterator[Adviser]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int | str) -> Adviser:
        """Return a row by its place, or the first one of a name."""
        if isinstance(place, str):
            return next(row for row in self.rows if row.name == place)
        return self.rows[place]

    def __repr__(self) -> str:
        return f"<AdvisersTable of {len(self)} rows: {', '.join(Adviser._fields)}>"
