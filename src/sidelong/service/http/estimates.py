"""What the counts of an experiment say: the cost of each arm, the regret, and whether all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.evaluation import offpolicy
from sidelong.learners import catalogue
from sidelong.service.http.messages.experiments import Counts, Guarantee, RegretState, SampleRatio
from sidelong.service.store.journal import Kind
from sidelong.service.store.tallies import DELAYED, HIDDEN, OWN_GRAPH, UNWEIGHED

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.tallies import Tallies

    Floats = npt.NDArray[np.float64]

__all__ = ["costs", "counts", "guarantee", "intervals", "regret", "sample_ratio"]

_RISK = 0.05  # that an interval misses
_SUSPICIOUS = 0.001
_LEAST_EXPECTED = 5.0


def counts(experiment: LiveExperiment) -> Counts:
    """Return what became of the decisions."""
    happened = experiment.tallies.counts
    return Counts(
        decided=happened[Kind.DECIDED],
        told=happened[Kind.TOLD],
        outstanding=len(experiment.outstanding),
        expired=happened[Kind.EXPIRED],
        cancelled=happened[Kind.CANCELLED],
        late=happened[Kind.LATE],
    )


def costs(tallies: Tallies) -> Floats:
    """Return what each arm would have cost a round, over the told rounds; NaN where nothing is known.

    An estimate without bias may leave [0, 1]; what is shown may not.
    """
    return np.clip(offpolicy.value(tallies.weighed(), tallies.rounds), 0.0, 1.0)


def intervals(tallies: Tallies, arms: list[int]) -> tuple[Floats, Floats]:
    """Return both ends of the 95% intervals of some arms, those that `offpolicy` calls guaranteed."""
    low, high = offpolicy.limits(tallies.weighed(arms), tallies.rounds, tallies.rounds, _RISK)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def regret(tallies: Tallies) -> RegretState:
    """Return the own loss less that of the best arm, over the told rounds; the interval holds whichever arm that is."""
    m, paid = tallies.rounds, float(tallies.paid[0])
    known = m == tallies.counts[Kind.TOLD] and not tallies.counts[HIDDEN]
    found = offpolicy.compare(tallies.weighed(), m, m, paid, 0, _RISK) if known else None
    if found is None or found.best < 0:
        return RegretState(estimate=None, low=None, high=None, own_loss=None, best_arm=None, best_loss=None, rounds=m)
    return RegretState(
        estimate=found.value,
        low=found.lower,
        high=found.upper,
        own_loss=paid,
        best_arm=found.best,
        best_loss=paid - found.value,
        rounds=m,
    )


def sample_ratio(tallies: Tallies) -> SampleRatio:
    """Compare how often each arm was played with the sum of its probabilities, over the told rounds.

    Pearson's chi-squared, with the arms that are expected fewer than five times put together. Probabilities that change
    from round to round only make it smaller, so that it cries wolf less often than p says.
    """
    told = int(tallies.counts[Kind.TOLD])
    if tallies.counts[UNWEIGHED]:
        return SampleRatio(p_value=None, ok=True, told=told, unknown="the learner does not tell all probabilities")
    expected, seen = tallies.expected, tallies.plays
    rare = expected < _LEAST_EXPECTED
    cells = np.append(expected[~rare], expected[rare].sum())
    found = np.append(seen[~rare], seen[rare].sum())
    if cells[-1] < _LEAST_EXPECTED and cells.size > 1:  # too few even together: put them to the smallest cell
        last, smallest = cells.size - 1, int(np.argmin(cells[:-1]))
        cells[smallest] += cells[last]
        found[smallest] += found[last]
        cells, found = cells[:-1], found[:-1]
    if cells.size < 2:
        return SampleRatio(p_value=None, ok=True, told=told, unknown="not enough feedback yet")
    from scipy.special import chdtrc  # noqa: PLC0415  # takes a quarter of a second to load

    p_value = float(chdtrc(cells.size - 1, ((found - cells) ** 2 / cells).sum()))
    return SampleRatio(p_value=p_value, ok=p_value >= _SUSPICIOUS, told=told, unknown=None)


def guarantee(experiment: LiveExperiment, ratio: SampleRatio) -> Guarantee:
    """Tell whether the theorems of the learner hold for what happened, and why not; `ratio` is the `sample_ratio`."""
    happened, spec = experiment.tallies.counts, experiment.identity.spec

    def some(index: int, what: str) -> str:
        n = happened[index]
        return f"{n:,} of {happened[Kind.DECIDED]:,} decisions {what.format(was='was' if n == 1 else 'were')}"

    reasons = []
    if not catalogue.choose(spec["learner"], spec["options"]).ABOUT.proved:
        reasons.append(f"No theorem bounds the regret of {spec['learner']}.")
    if happened[Kind.EXPIRED]:
        late = f" ({happened[Kind.LATE]:,} told too late)" if happened[Kind.LATE] else ""
        reasons.append(f"{some(Kind.EXPIRED, 'expired without feedback')}{late}.")
    if happened[Kind.CANCELLED]:
        reasons.append(f"{some(Kind.CANCELLED, '{was} cancelled')}.")
    if happened[OWN_GRAPH]:
        reasons.append(f"{some(OWN_GRAPH, '{was} told with a graph that was known only after the draw')}.")
    if happened[DELAYED]:
        reasons.append(
            f"{some(DELAYED, '{was} told after a later one was drawn')}. Estimates stay unbiased, but the theorems are "
            f"for feedback that comes before the next decision."
        )
    if not ratio.ok:
        reasons.append("Feedback does not come equally often for all arms: the sample ratio check fails.")
    return Guarantee(holds=not reasons, reasons=reasons)
