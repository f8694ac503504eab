"""The list of all claims, in the order of the paper and then beyond it, and the checking of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidelong.claims import (
    adversarial,
    algorithm,
    changing,
    epochs,
    errata_proofs,
    errata_readings,
    gaps,
    glance,
    series,
    stochastic,
)
from sidelong.claims.claim import Claim, Outcome, Trial, Verdict
from sidelong.errors import SidelongError, TheoryError
from sidelong.learners import exp3gpp
from sidelong.learners import glance as glance_learner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

__all__ = ["CLAIMS", "FALSE_ALARM", "THOROUGH", "Checked", "choose", "verify"]

CLAIMS: tuple[Claim, ...] = (
    algorithm.estimates,
    algorithm.gap_estimates,
    algorithm.weights,
    algorithm.unbiased,
    algorithm.proposition_1,
    algorithm.exploration_rates,
    algorithm.observation,
    gaps.lemma_1_upper,
    gaps.lemma_1_lower,
    adversarial.rate,
    adversarial.theorem_2,
    stochastic.theorem_3,
    changing.theta_of_the_learner,
    changing.rate,
    changing.theorem_4_adversarial,
    changing.theorem_4_stochastic,
    series.lemma_2,
    series.lemma_3,
    series.lemma_4,
    series.lemma_5,
    adversarial.lemma_6,
    adversarial.proposition_4,
    adversarial.lemma_7,
    gaps.lemma_8,
    gaps.lemma_9,
    gaps.theorem_5,
    gaps.theorem_6,
    stochastic.proposition_5,
    stochastic.proposition_6,
    stochastic.proposition_7,
    stochastic.proposition_8,
    changing.lemma_10,
    errata_readings.e1,
    errata_readings.e2,
    errata_readings.e3,
    errata_readings.e4,
    errata_proofs.e5,
    errata_proofs.e6,
    errata_proofs.e7,
    errata_proofs.e8,
    errata_proofs.e10,
    errata_proofs.e11,
    errata_proofs.e13,
    errata_proofs.e14,
    errata_proofs.e15,
    errata_proofs.e16,
    errata_proofs.e17,
    errata_proofs.e18,
    errata_readings.e19,
    errata_readings.e20,
    errata_readings.e21,
    errata_proofs.e22,
    errata_readings.e23,
    errata_readings.e24,
    errata_readings.e25,
    errata_proofs.e26,
    errata_readings.e27,
    epochs.rates,
    epochs.theorem_4_epochs,
    glance.unbiased,
    glance.exploration,
    glance.costs,
    glance.ftrl,
    glance.budget,
    glance.regret,
)

#: The chance that any claim fails though all are true, over all random claims together (a union bound).
FALSE_ALARM = 1e-6

#: The effort that takes up to an hour.
THOROUGH = 10.0


@dataclass(frozen=True)
class Checked:
    """A claim and how it fared."""

    claim: Claim
    outcome: Outcome
    confidence: float  #: the probability that the claim, if true, is not said to fail
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """What the numbers say."""
        return self.outcome.verdict


def choose(only: Iterable[str] | None = None) -> tuple[Claim, ...]:
    """Return all claims, or those with these ids, in the order of the paper."""
    if only is None:
        return CLAIMS
    wanted, known = list(only), {claim.id for claim in CLAIMS}
    unknown = [each for each in wanted if each not in known]
    if unknown:
        raise TheoryError(f"There is no claim {unknown[0]!r}. The claims are: {', '.join(each.id for each in CLAIMS)}.")
    return tuple(claim for claim in CLAIMS if claim.id in wanted)


def verify(
    only: Iterable[str] | None = None,
    *,
    learner: ModuleType = exp3gpp,
    glance: ModuleType = glance_learner,
    seed: int = 0,
    effort: float = 1.0,
) -> Iterator[Checked]:
    """Check claims of the paper against a learner, one after the other.

    Args:
        only: the ids of the claims to check; all if not given.
        learner: the module that is checked: EXP3.G++, or another with its options, state and traces.
        glance: the module that the claims about `glance` check, or another with its state and traces.
        seed: the same seed gives the same numbers.
        effort: a factor on sample sizes and horizons.

    Example:
        >>> from sidelong.claims import verify
        >>> [result.verdict.value for result in verify(["lem-2", "lem-4"])]
        ['false as printed, holds as corrected', 'holds']
    """
    risk = FALSE_ALARM / sum(claim.random for claim in CLAIMS)
    trial = Trial(learner, glance, seed, effort, risk)
    for claim in choose(only):
        begun = time.monotonic()
        try:
            outcome = claim.check(trial)
        except (SidelongError, ArithmeticError, ValueError) as error:  # a learner so wrong that nothing can be measured
            outcome = Outcome(float("nan"), float("nan"), f"{type(error).__name__}: {error}", "")
        yield Checked(claim, outcome, 1.0 - risk * claim.random, time.monotonic() - begun)
