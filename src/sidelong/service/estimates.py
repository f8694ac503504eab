"""What the counts of an experiment say: the cost of each arm, the regret, and whether all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.learners import catalogue
from sidelong.service.journal import Kind
from sidelong.service.messages import Counts, Guarantee, Regret, SampleRatio
from sidelong.service.tallies import BLIND, HIDDEN, OWN_GRAPH, UNWEIGHED

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.service.experiment import Experiment
    from sidelong.service.tallies import Tallies

__all__ = ["Costs", "costs", "counts", "guarantee", "regret", "sample_ratio"]

_Z = 1.959963984540054  # of a 95% interval
_SUSPICIOUS = 0.001
_LEAST_EXPECTED = 5.0


class Costs(NamedTuple):
    """What each arm costs a round, with 95% intervals; NaN where nothing is known."""

    mean: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


def counts(experiment: Experiment) -> Counts:
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


def costs(tallies: Tallies) -> Costs:
    """Return the mean loss of each arm over the told rounds, by importance weights."""
    rounds = int(tallies.counts[Kind.TOLD] - tallies.counts[BLIND])
    if rounds == 0:
        unknown = np.full(tallies.plays.size, np.nan)
        return Costs(unknown, unknown, unknown)
    mean = np.where(tallies.observations > 0, tallies.weighted / rounds, np.nan)
    spread = np.maximum(tallies.squares / rounds - mean**2, 0.0)
    # With few rounds the squares say little; a loss lies in [0, 1] anyway.
    reach = _Z * np.sqrt(spread / rounds) + 1.0 / rounds
    return Costs(mean, np.clip(mean - reach, 0.0, 1.0), np.clip(mean + reach, 0.0, 1.0))


def regret(tallies: Tallies) -> Regret:
    """Return the own loss less that of the best arm, over the told rounds."""
    told, blind, hidden = (int(tallies.counts[index]) for index in (Kind.TOLD, BLIND, HIDDEN))
    nothing = Regret(
        estimate=None, low=None, high=None, own_loss=None, best_arm=None, best_loss=None, rounds=told - blind
    )
    if not told or blind or hidden or not tallies.observations.all():
        return nothing
    best = int(np.argmin(tallies.weighted))
    own, own_square = tallies.own
    estimate = own - tallies.weighted[best]
    square = own_square - 2 * tallies.products[best] + tallies.squares[best]
    reach = _Z * np.sqrt(max(square - estimate**2 / told, 0.0))
    return Regret(
        estimate=estimate,
        low=estimate - reach,
        high=estimate + reach,
        own_loss=own,
        best_arm=best,
        best_loss=tallies.weighted[best],
        rounds=told,
    )


def sample_ratio(tallies: Tallies) -> SampleRatio:
    """Compare how often each arm was played with the sum of its probabilities, over the told rounds.

    Pearson's chi-squared, with the arms that are expected fewer than five times put together. Probabilities that change
    from round to round only make it smaller, so that it cries wolf less often than p says.
    """
    told = int(tallies.counts[Kind.TOLD])
    if tallies.counts[UNWEIGHED]:  # a learner that does not say, or does not look at, the probabilities of all arms
        return SampleRatio(p_value=None, ok=True, told=told)
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
        return SampleRatio(p_value=None, ok=True, told=told)
    from scipy.special import chdtrc  # noqa: PLC0415  # takes a quarter of a second to load

    p_value = float(chdtrc(cells.size - 1, ((found - cells) ** 2 / cells).sum()))
    return SampleRatio(p_value=p_value, ok=p_value >= _SUSPICIOUS, told=told)


def guarantee(experiment: Experiment, ratio: SampleRatio) -> Guarantee:
    """Tell whether the theorems of the learner hold for what happened, and why not; `ratio` is the `sample_ratio`."""
    happened, spec = experiment.tallies.counts, experiment.identity.spec
    decided = f"of {happened[Kind.DECIDED]:,} decisions"
    reasons = []
    if not catalogue.choose(spec["learner"], spec["options"]).ABOUT.proved:
        reasons.append(f"No theorem bounds the regret of {spec['learner']}.")
    if happened[Kind.EXPIRED]:
        late = f" ({happened[Kind.LATE]:,} were told too late)" if happened[Kind.LATE] else ""
        reasons.append(f"{happened[Kind.EXPIRED]:,} {decided} expired without feedback{late}.")
    if happened[Kind.CANCELLED]:
        reasons.append(f"{happened[Kind.CANCELLED]:,} {decided} were cancelled.")
    if happened[OWN_GRAPH]:
        reasons.append(f"{happened[OWN_GRAPH]:,} {decided} were told with a graph that was known only after the draw.")
    if not ratio.ok:
        reasons.append("Feedback does not come equally often for all arms: the sample ratio check fails.")
    return Guarantee(holds=not reasons, reasons=reasons)
