"""The list of all claims, in the order of the paper and then beyond it, and the checking of them."""

from __future__ import annotations

import importlib
import pkgutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sidelong.claims.claim import Claim, Outcome, Trial, Verdict
from sidelong.errors import SidelongError, TheoryError
from sidelong.evaluation import certificates
from sidelong.learners import exp3g_adaptive, exp3gpp, exp3set, exp3set_tracking
from sidelong.learners import glance as glance_learner
from sidelong.learners import squarecb as squarecb_learner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from sidelong.learners.interface import Learner

#: The claims in the order of the paper, and then those beyond it.
_ORDER = """
alg-1-sums alg-1-gaps alg-1-mix unbiased prop-1 eq-2-3 eq-4 lem-1-upper lem-1-lower thm-2-rate thm-2 thm-3 eq-7
thm-4-rate thm-4-adv thm-4-sto lem-2 lem-3 lem-4 lem-5 lem-6 prop-4 lem-7 lem-8 lem-9 thm-5 thm-6 prop-5 prop-6
prop-7 prop-8 lem-10 e1 e2 e3 e4 e5 e6 e7 e8 e10 e11 e13 e14 e15 e16 e17 e18 e19 e20 e21 e22 e23 e24 e25 e26 e27
e28 e29 e30 e31
thm-4-epochs-rates thm-4-epochs
glance-unbiased glance-share glance-costs glance-ftrl glance-budget glance-regret glance-incumbent
delay-rate delay-regret delay-cross seen-after
certificate-mean certificate-lost certificate-holds
stop-holds
absent-unbiased absent-ftrl track-ftrl
squarecb-value squarecb-regret
exp3g-ftrl exp3g-costs exp3g-rate
"""
_FOUND = {
    each.id: each
    for file in pkgutil.iter_modules([str(Path(__file__).parent)])
    if file.name != "catalogue"  # every other file may have claims
    for each in vars(importlib.import_module(f"{__package__}.{file.name}")).values()
    if isinstance(each, Claim)
}
if _FOUND.keys() != set(_ORDER.split()):
    raise TypeError(f"These claims are written or ordered, and not both: {_FOUND.keys() ^ set(_ORDER.split())}.")

CLAIMS = tuple(_FOUND[id_] for id_ in _ORDER.split())

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
    learner: Learner = exp3gpp.LEARNER,
    glance: Learner = glance_learner.LEARNER,
    certificate: ModuleType = certificates,
    exp3_set: Learner = exp3set.LEARNER,
    tracking: Learner = exp3set_tracking.LEARNER,
    guarded: Learner = exp3gpp.GUARDED,
    squarecb: Learner = squarecb_learner.LEARNER,
    exp3_g: Learner = exp3g_adaptive.LEARNER,
    seed: int = 0,
    effort: float = 1.0,
) -> Iterator[Checked]:
    """Check claims of the paper against a learner, one after the other.

    Args:
        only: the ids of the claims to check; all if not given.
        learner: the module that is checked: EXP3.G++, or another with its options, state and traces.
        glance: the module that the claims about `glance` check, or another with its state and traces.
        certificate: the module that the claims about the certificate check.
        exp3_set: the same for the claims about EXP3-SET where arms come and go.
        tracking: the same for EXP3-SET where the best arm moves.
        guarded: the module that the claims about late="guarded" check.
        squarecb: the module that the claims about SquareCB.G check.
        exp3_g: the same for EXP3.G with rate="adaptive".
        seed: the same seed gives the same numbers.
        effort: a factor on sample sizes and horizons.

    Example:
        >>> from sidelong.claims import verify
        >>> [result.verdict.value for result in verify(["lem-2", "lem-4"])]
        ['false as printed, holds as corrected', 'holds']
    """
    risk = FALSE_ALARM / sum(claim.random for claim in CLAIMS)
    trial = Trial(
        learner,
        glance,
        seed,
        effort,
        risk,
        certificate=certificate,
        exp3_set=exp3_set,
        tracking=tracking,
        guarded=guarded,
        squarecb=squarecb,
        exp3_g=exp3_g,
    )
    for claim in choose(only):
        begun = time.monotonic()
        try:
            outcome = claim.check(trial)
        except (SidelongError, ArithmeticError, ValueError) as error:  # a learner so wrong that nothing can be measured
            outcome = Outcome(float("nan"), float("nan"), f"{type(error).__name__}: {error}", "")
        yield Checked(claim, outcome, 1.0 - risk * claim.random, time.monotonic() - begun)
