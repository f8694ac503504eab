"""What the counts of an experiment say: the cost of each arm, the regret, and whether all is well."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from sidelong import evaluation
from sidelong.agent import Agent
from sidelong.agent.member import Member
from sidelong.errors import EvaluationError
from sidelong.evaluation import lift as lifts
from sidelong.evaluation import weighing
from sidelong.evaluation.intervals import interval
from sidelong.evaluation.regret import compare
from sidelong.outcomes.scale import ends_of
from sidelong.service.http.messages.experiments import (
    AdviserState,
    Amount,
    Amounts,
    CertificateState,
    Counts,
    LiftState,
    RegretState,
    SampleRatio,
    SpendingState,
    WorldState,
)
from sidelong.service.store.counters import HIDDEN, UNWEIGHED
from sidelong.service.store.journal import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sidelong.evaluation.intervals import Interval
    from sidelong.service.store.agents import Decider
    from sidelong.service.store.counters import Counters
    from sidelong.service.store.experiment import LiveExperiment

    Floats = npt.NDArray[np.float64]

_RISK = 0.05  # that an interval misses
_SUSPICIOUS = 0.001


def counts(experiment: LiveExperiment) -> Counts:
    """Return what became of the decisions."""
    happened, aside = experiment.counters.counts, experiment.counters.aside
    return Counts(
        decided=experiment.round,
        told=happened[Kind.TOLD] + aside[Kind.TOLD],
        outstanding=len(experiment.pending),
        expired=happened[Kind.EXPIRED] + aside[Kind.EXPIRED],
        cancelled=happened[Kind.CANCELLED] + aside[Kind.CANCELLED],
        late=happened[Kind.LATE],
        frozen=happened[Kind.PLAYED],
        held=happened[Kind.HELD],
        defaulted=happened[Kind.DEFAULTED] + aside[Kind.DEFAULTED],
        fallback=happened[Kind.FALLBACK],
        overridden=happened[Kind.OVERRIDDEN] + aside[Kind.OVERRIDDEN],
    )


def costs(counters: Counters) -> Floats:
    """Return what each arm would have cost per round; NaN where nothing is known.

    An estimate without bias may leave [0, 1]; what is shown may not.
    """
    return np.clip(_costs(counters), 0.0, 1.0)


def intervals(counters: Counters, arms: list[int]) -> Interval:
    """Return the 95% intervals of some arms, over all rounds that were not cancelled."""
    sums, n = counters.sums[:, arms], _rounds(counters)
    found = interval(weighing.evidence(sums, _drawn(counters)), n, _RISK, _costs(counters)[arms])
    return found._replace(lower=np.clip(found.lower, 0.0, 1.0), upper=np.clip(found.upper, 0.0, 1.0))


def regret(counters: Counters, agent: Decider | None = None) -> RegretState:
    """Return the own loss less that of the best arm, over all rounds that were not cancelled.

    Rounds without feedback are taken to cost as much as the others in the estimates, and anything in the interval. With
    an `agent` that keeps a certificate, half of the risk is the certificate's, which may end the interval earlier.
    """
    n, hidden = _rounds(counters), int(counters.counts[HIDDEN])
    known = int(counters.counts[Kind.TOLD]) - hidden
    evidence = weighing.evidence(counters.sums, _drawn(counters))
    found = compare(
        _costs(counters),
        evidence,
        n,
        float(counters.paid[0]),
        n - known,
        _RISK if agent is None else _RISK / 2,
    )
    if hidden or found.best < 0:
        nothing = dict.fromkeys(("estimate", "low", "high", "own_loss", "best_arm", "best_loss"))
        return RegretState(**nothing, rounds=n, rejected=found.rejected)
    own, high = n * float(counters.paid[0]) / known, found.upper
    if agent is not None:
        high = max(min(high, agent.certificate(1 - _RISK / 2).bound), found.value)
    return RegretState(
        estimate=found.value,
        low=None if found.rejected else found.lower,
        high=None if found.rejected else high,
        own_loss=own,
        best_arm=found.best,
        best_loss=own - found.value,
        rounds=n,
        rejected=found.rejected,
    )


def lift(experiment: LiveExperiment) -> LiftState | None:
    """Return what the learner saves beside the holdout, if there is one."""
    holdout, labels = experiment.holdout, experiment.life.labels
    if holdout is None:
        return None
    found = lifts.lift(experiment.counters.lift, holdout.share, 1.0 - _RISK)
    return LiftState(
        arm=holdout.arm,
        label=labels[holdout.arm] if labels else None,
        share=holdout.share,
        estimate=found and found.value,
        low=found and found.lower,
        high=found and found.upper,
        held=found.held if found else 0,
        learned=found.learned if found else 0,
        held_cost=found.held_cost if found and found.held else None,
        learner_cost=found.learner_cost if found and found.learned else None,
    )


def amounts(experiment: LiveExperiment, lift: LiftState | None, regret: RegretState | None) -> Amounts | None:
    """Return what was paid, saved and lost in the unit of the experiment's scale, if it has one."""
    scale = experiment.scale
    if scale is None:
        return None
    rounds, paid = experiment.paid()
    width = scale.worst - scale.best
    total = rounds * scale.best + paid * width
    return Amounts(
        rounds=rounds,
        total=total,
        per_round=total / rounds if rounds else None,
        saved=_amount(lift, abs(width) * (lift.learned if lift else 0)),
        saved_per_round=_amount(lift, abs(width)),
        regret=_amount(regret, abs(width)),
    )


def _amount(found: LiftState | RegretState | None, unit: float) -> Amount | None:
    """Return an estimate and its interval, where a loss of 1 is worth so many units; None if there is no estimate."""
    if found is None or found.estimate is None:
        return None
    low, high = (None if limit is None else unit * limit for limit in (found.low, found.high))
    return Amount(estimate=unit * found.estimate, low=low, high=high)


def advisers(agent: Decider) -> list[AdviserState]:
    """Return what is known of each adviser."""
    found = agent.advisers() if isinstance(agent, Agent | Member) else ()
    return [
        AdviserState(**row._asdict() | {name: None for name in ("loss", "paid") if np.isnan(getattr(row, name))})
        for row in found
    ]


def spending(experiment: LiveExperiment, agent: Decider | None) -> SpendingState | None:
    """Return what was spent, of a key if it is looked at by itself."""
    ceiling, found = experiment.ceiling, experiment.spending()
    if ceiling is None or found is None:
        return None
    if agent is not None and experiment.keys.named:
        found = agent.spending()
    decisions, spent = experiment.counters.spent_aside.tolist()
    return SpendingState(
        ceiling=ceiling.mean,
        over="all" if ceiling.shared else "key",
        **found._asdict() | {"price": None if np.isnan(found.price) else found.price},
        mean=found.spent / found.decisions if found.decisions else None,
        overspend=ceiling.overspend,
        aside_decisions=int(decisions),
        aside_spent=spent,
    )


def allowance_left(experiment: LiveExperiment, agent: Decider) -> float | None:
    """Return what is left of the allowance, in the scale of feedback."""
    spec = experiment.identity.spec
    if spec.incumbent is None or not isinstance(agent, Agent | Member):
        return None
    best, worst = ends_of(experiment.scale)
    return agent.allowance_left * abs(worst - best)


def certificate(experiment: LiveExperiment, agent: Decider) -> CertificateState | None:
    """Return the certificate, if one is kept."""
    if not experiment.identity.spec.certificate:
        return None
    found, labels = agent.certificate(), experiment.life.labels
    shown = {part: getattr(found, part) for part in CertificateState.model_fields if part != "label"}
    shown["why"] = called(found.why, found.arm, labels)
    return CertificateState(**shown, label=labels[found.arm] if labels else None)


def called(said: str, arm: int | None, labels: Sequence[str] | None) -> str:
    """Return a sentence about an arm in which it goes by its label, if it has one."""
    return said if arm is None or not labels else re.sub(rf"\b[Aa]rm {arm}\b", lambda _: labels[arm], said)


def world(experiment: LiveExperiment, agent: Decider) -> WorldState | None:
    """Tell whether the world has turned, if an alarm is kept: of a key, where there is a certificate."""
    try:
        found, labels = agent.health(), experiment.life.labels
    except EvaluationError:
        return None
    shown, said = found._asdict(), called(str(found), found.arm, labels)
    return WorldState(**{name: shown[name] for name in ("turned", "arm", "above", "below", "level")}, said=said)


def _costs(counters: Counters) -> Floats:
    """Return what each arm would have cost per round since it came."""
    drawn, told = counters.since
    sums = counters.sums
    if drawn.any():  # the baseline was 1/2 in the rounds before
        sums = sums.copy()
        sums[5] -= drawn * (weighing.baselines(sums) - 0.5)
    return weighing.costs(sums, _drawn(counters) - drawn, counters.rounds - told)


def _drawn(counters: Counters) -> int:
    return int(counters.counts[Kind.DECIDED])


def _rounds(counters: Counters) -> int:
    """Return how many decisions were carried out, as far as is known: those without feedback may have cost anything."""
    return int(counters.counts[Kind.DECIDED] - counters.counts[Kind.CANCELLED])


def sample_ratio(counters: Counters) -> SampleRatio:
    """Compare how often each arm was played with the sum of its probabilities, over the told rounds."""
    told = int(counters.counts[Kind.TOLD])
    if counters.counts[UNWEIGHED]:
        return SampleRatio(p_value=None, ok=True, told=told, unknown="the learner does not tell all probabilities")
    p_value = evaluation.sample_ratio(counters.plays, counters.expected)
    if p_value is None:
        return SampleRatio(p_value=None, ok=True, told=told, unknown="not enough feedback yet")
    return SampleRatio(p_value=p_value, ok=p_value >= _SUSPICIOUS, told=told, unknown=None)
