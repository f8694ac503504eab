"""What a claim is, what checking it gives, and what it is checked against."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.evaluation import certificates
from sidelong.learners import (
    exp3g_adaptive,
    exp3gpp,
    exp3set,
    exp3set_tracking,
    glance,
    squarecb,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from sidelong.learners.interface import Learner


#: A check that fails only from so many times its bound on says little.
_FAR = 10.0


class Verdict(Enum):
    """How a claim fared."""

    HOLDS = "holds"
    FAILS = "fails"
    CORRECTED = "false as printed, holds as corrected"


@dataclass(frozen=True)
class Outcome:
    """A number that was measured, and the one that it must not exceed. Of a random quantity, a lower confidence limit.

    An erratum also has such a pair for what is printed, where the first must exceed the second: else nothing is wrong
    with what is printed.
    """

    measured: float
    bound: float
    shown: str  #: the measurement in words
    allowed: str  #: the bound in words
    printed: tuple[float, float] | None = None
    fails_from: float = 1.0  #: how many times the bound the truth must be for such a sample to say so; inf if it cannot

    @property
    def verdict(self) -> Verdict:
        """What the numbers say. Anything that is not a number fails."""
        if not self.measured <= self.bound:
            return Verdict.FAILS
        if self.printed is None:
            return Verdict.HOLDS
        return Verdict.CORRECTED if self.printed[0] > self.printed[1] else Verdict.FAILS

    @property
    def says_little(self) -> bool:
        """Whether the claim would have held in this sample though the truth were ten times the bound."""
        return self.fails_from > _FAR

    @property
    def remark(self) -> str:
        """What else to say of the measurement, if it says little."""
        if not self.says_little:
            return ""
        if math.isinf(self.fails_from):
            return "it could not fail"
        return f"too few runs to fail below {self.fails_from:,.0f} times the bound"


@dataclass(frozen=True)
class Trial:
    """What claims are checked against: learners, how hard to try, and which random numbers."""

    learner: Learner = exp3gpp.LEARNER
    glance: Learner = glance.LEARNER
    seed: int = 0
    effort: float = 1.0  #: a factor on sample sizes
    risk: float = 1e-8  #: the chance that one claim which is true fails
    certificate: ModuleType = certificates  #: what is checked of the certificate
    exp3_set: Learner = exp3set.LEARNER  #: what is checked where arms come and go
    tracking: Learner = exp3set_tracking.LEARNER  #: what is checked where the best arm moves
    guarded: Learner = exp3gpp.GUARDED  #: what is checked of EXP3.G++ with late="guarded"
    squarecb: Learner = squarecb.LEARNER  #: what is checked where a regressor predicts losses
    exp3_g: Learner = exp3g_adaptive.LEARNER  #: what is checked of EXP3.G with rate="adaptive"
    shared: dict[str, Any] = field(default_factory=dict, compare=False)  #: what several claims look at, made once

    def size(self, usual: int, least: int = 1) -> int:
        """Return a sample size: the usual one times the effort."""
        return max(least, round(usual * self.effort))

    def rng(self, name: str) -> np.random.Generator:
        """Return random numbers that depend on the seed and a name only, not on which claims ran before."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that can be checked."""

    id: str
    title: str
    where: str  #: in the paper
    statement: str
    check: Callable[[Trial], Outcome]
    random: bool  #: whether the check samples, so that a true claim fails with the probability `Trial.risk`


def claim(id_: str, title: str, where: str, *, random: bool = False) -> Callable[[Callable[[Trial], Outcome]], Claim]:
    """Make a claim of a function that checks it; its docstring is the statement."""

    def make(check: Callable[[Trial], Outcome]) -> Claim:
        words = " ".join((check.__doc__ or "").split())
        return Claim(id_, title, where, words, check, random)

    return make
