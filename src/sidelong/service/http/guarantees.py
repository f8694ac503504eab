"""Whether the theorems of an experiment's learner hold for what happened, which half of them, and what they promise."""

from __future__ import annotations

import functools
import json
import math
from typing import TYPE_CHECKING, Any, cast

from sidelong import theory
from sidelong.evaluation.arm_delays import LEVEL
from sidelong.learners import catalogue
from sidelong.learners.interface import Need
from sidelong.service.http.messages.experiments import ArmDelayState, DelayState, Guarantee
from sidelong.service.store.agents import module_of
from sidelong.service.store.counters import DELAYED, OWN_GRAPH, UNLEARNED, UNWEIGHED
from sidelong.service.store.journal import Kind

if TYPE_CHECKING:
    from sidelong.agent import Lateness
    from sidelong.graphs import FeedbackGraph
    from sidelong.learners.interface import Learner
    from sidelong.service.http.messages.experiments import SampleRatio, WorldState
    from sidelong.service.store.agents import Decider
    from sidelong.service.store.counters import Counters
    from sidelong.service.store.experiment import LiveExperiment

#: Up to so many arms the numbers of the graph are computed for `worth_from`, each within so many seconds.
_FEW_ARMS, _BUDGET = 300, 0.2
#: Options that leave the constants of a bound as they are.
_HARMLESS = {"late", "ties"}
#: What holds where a learner plays by features, whenever and whether feedback comes: see `sidelong.learners.squarecb`.
_BY_ERRORS = (
    "The bound is on the regret against the best arm of each round. It grows with the squared errors of all "
    "predictions, and says little where features do not tell what costs depend on."
)


_UNEQUALLY_LATE = "Feedback of some arms comes later than that of others"
_UNEQUALLY_TOLD = "Feedback does not come equally often for all arms"


class _Verdict:
    """What is left of the theorems, while one reason after the other takes something away."""

    def __init__(self, halves: tuple[str, ...], reasons: list[str]) -> None:
        self.halves = list(halves)
        self.reasons = reasons
        self.notes: list[str] = []

    def lose(self, reason: str, *lost: str) -> None:
        """Give up some halves, or all, for a reason."""
        self.reasons.append(reason)
        self.halves = [half for half in self.halves if lost and half not in lost]


def guarantee(experiment: LiveExperiment, agent: Decider, ratio: SampleRatio) -> Guarantee:
    """Tell what holds for what happened, and why not more; `ratio` is the `sample_ratio`."""
    spec, rounds = experiment.identity.spec, agent.round
    learner, options = spec.learner, spec.options
    module = module_of(spec)
    halves = catalogue.proved(module, options, rounds)
    verdict = _Verdict(halves, _unproved(module, options, halves, rounds))
    lateness = agent.lateness()
    if spec.features is not None and module.add_adviser is None:
        verdict.notes.append(_BY_ERRORS)
    else:
        _untold(verdict, experiment.counters, covered=lateness.bound is not None)
        _late(verdict, experiment.counters, module, covered=lateness.bound is not None)
        if lateness.absent and "stochastic" in verdict.halves:
            verdict.lose("Arms were absent. The stochastic half is proved only where all are there.", "stochastic")
    if experiment.ceiling is not None:
        verdict.lose(
            "It keeps to a ceiling, so that the theorem of the learner is about a mix of losses and costs, which does "
            "not bound the regret in losses alone."
        )
    _graphs(verdict, experiment.counters, module, options)
    delay = _delay(experiment.counters, lateness)
    if not delay.by_arm.ok:
        verdict.lose(f"{_UNEQUALLY_LATE}: no bound covers such delays.")
    if spec.log is not None:
        verdict.lose(
            f"It learned {spec.log.rounds:,} rounds of a log before its first one. Its estimates have no bias, but no "
            f"bound is known for the rounds that follow."
        )
    if spec.origin is not None and spec.origin.learned:
        before = None if spec.keyed else rounds - int(experiment.counters.counts[Kind.DECIDED])
        _cloned(verdict, spec.origin.name, before)
    if not ratio.ok:
        verdict.lose(f"{_UNEQUALLY_TOLD}: the sample ratio check fails.")
    return Guarantee(
        holds=bool(verdict.halves),
        proved=cast("Any", verdict.halves),
        reasons=verdict.reasons,
        notes=verdict.notes,
        bound=lateness.bound if "adversarial" in verdict.halves else None,
        random=rounds * (1.0 - 1.0 / experiment.n_arms),
        worth_from=None
        if spec.prior is not None or not verdict.halves  # no promise counts what was believed
        else _worth_from(experiment.graph, learner, options),
        delay=delay,
    )


def alarms(experiment: LiveExperiment, ratio: SampleRatio, world: WorldState | None) -> list[str]:
    """Tell what is wrong, by tests with a small chance of a false alarm. None is about what theorems cover."""
    found = []
    if not ratio.ok:
        found.append(
            f"{_UNEQUALLY_TOLD} (sample ratio, p = {ratio.p_value:.2g}). Find out why before you trust estimates."
        )
    delays = _by_arm(experiment.counters)
    if not delays.ok:
        found.append(f"{_UNEQUALLY_LATE} (p = {delays.p_value:.2g}). Find out whether an arm decides how late it is.")
    if world is not None and world.turned:
        found.append(world.said)
    return found


def _unproved(module: Learner, options: dict[str, Any], halves: tuple[str, ...], rounds: int) -> list[str]:
    """Return why less is proved than for the learner as it comes."""
    name = module.name
    horizon = options.get("horizon")
    if horizon is not None and rounds > horizon:
        return [f"{name} was made for {horizon:,} rounds, and {rounds:,} were decided."]
    if not module.about.proved:
        return [f"No theorem bounds the regret of {name}."]
    if not halves:
        return [f"No theorem bounds the regret of {name} with these options."]
    if len(halves) < len(module.about.proved):
        return [f"With these options only the {halves[0]} half of the theorems of {name} is proved."]
    return []


def _some(counters: Counters, index: int, what: str) -> str:
    n = counters.counts[index]
    return f"{n:,} of {counters.counts[Kind.DECIDED]:,} decisions {what.format(was='was' if n == 1 else 'were')}"


def _untold(verdict: _Verdict, counters: Counters, *, covered: bool) -> None:
    """Say what decisions without feedback mean; `covered` says that there is a bound with late feedback."""
    told_late = counters.counts[Kind.LATE]
    at_most_1 = "Each costs at most 1, if neither its arm nor its loss was the reason."
    kinds = (
        (UNLEARNED, "{was} told while frozen, and not learned", at_most_1),
        (Kind.EXPIRED, "expired without feedback" + f" ({told_late:,} told too late)" * bool(told_late), at_most_1),
        (Kind.OVERRIDDEN, "{was} carried out with another arm, and not learned", at_most_1),
        (Kind.CANCELLED, "{was} cancelled", "That costs nothing, if neither the arm nor its loss was the reason."),
    )
    for kind, what, cost in kinds:
        if not counters.counts[kind]:
            continue
        said = f"{_some(counters, kind, what)}."
        if covered:
            verdict.notes.append(f"{said} {cost}")
        else:
            verdict.lose(said)


def _cloned(verdict: _Verdict, origin: str, before: int | None) -> None:
    """Say what rounds mean that a clone has learned before its first one; of a key it is not known how many."""
    if before != 0:
        some = "what" if before is None else f"what {before:,} round{'' if before == 1 else 's'} of"
        verdict.lose(f"It began with {some} {origin!r} left. The theorems are for one from the start.")


def _graphs(verdict: _Verdict, counters: Counters, module: Learner, options: dict[str, Any]) -> None:
    """Say what graphs that were known only after the draw mean."""
    if not counters.counts[OWN_GRAPH] or Need.GRAPH_BEFORE not in catalogue.needs(module, options):
        return
    after = f"{_some(counters, OWN_GRAPH, '{was} told with a graph that was known only after the draw')}."
    if module.about.guess:
        verdict.lose(f"{after} The stochastic half needs it before the draw; the adversarial one holds.", "stochastic")
    else:
        verdict.lose(after)


def _late(verdict: _Verdict, counters: Counters, module: Learner, *, covered: bool) -> None:
    """Say what late feedback means."""
    if not counters.counts[DELAYED]:
        return
    late = f"{_some(counters, DELAYED, '{was} told after a later one was drawn')}."
    if not covered:
        absent = " where arms are absent" if module.sleeps and "theta" in module.traces else ""  # which covers the rest
        verdict.lose(f"{late} Estimates stay unbiased, but no theorem covers late feedback for {module.title}{absent}.")
    elif "stochastic" in verdict.halves:
        verdict.lose(f"{late} The stochastic half is proved only for feedback that comes at once.", "stochastic")
    else:
        verdict.notes.append(f"{late} The bound counts them.")


def _delay(counters: Counters, lateness: Lateness) -> DelayState:
    asked = lateness.told + lateness.outstanding + lateness.cancelled + lateness.lost
    return DelayState(
        late=int(counters.counts[DELAYED]),
        mean=lateness.sum / max(asked, 1),
        most=lateness.most,
        by_arm=_by_arm(counters),
    )


def _by_arm(counters: Counters) -> ArmDelayState:
    unknown = "the learner does not tell all probabilities" if counters.counts[UNWEIGHED] else None
    p_value = None if unknown else counters.arm_delays.p_value
    return ArmDelayState(p_value=p_value, ok=p_value is None or p_value > LEVEL, level=LEVEL, unknown=unknown)


def _worth_from(graph: FeedbackGraph, learner: str, options: dict[str, Any]) -> int | None:
    """Return the round from which on the adversarial bound is below what random play loses, if that is known."""
    if not 1 < graph.n_arms <= _FEW_ARMS:
        return None
    return _first_worth(graph, learner, json.dumps(options, sort_keys=True))


@functools.lru_cache(maxsize=1000)
def _first_worth(graph: FeedbackGraph, learner: str, options: str) -> int | None:
    setting, given = theory.Setting(graph, budget=_BUDGET), json.loads(options)
    # Of the rows of a learner, the one that says most about its options.
    rows = [row for row in theory.promises(setting, [learner]) if row.options.items() <= given.items()]
    row = max(rows, key=lambda row: len(row.options), default=None)
    if row is None or not given.keys() <= row.options.keys() | _HARMLESS:
        return None
    found = theory.worth_from(setting, row)
    return None if found is None or found > 2**53 else math.ceil(found)
