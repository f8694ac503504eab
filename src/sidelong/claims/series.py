"""Appendix A of the paper: tools to bound series."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from sidelong import theory
from sidelong.claims.algorithm import ROUNDING
from sidelong.claims.claim import Outcome, Trial, claim


@claim("lem-2", "the tail of 1 / k^gamma", "Lemma 2, App. A; E9")
def lemma_2(_: Trial) -> Outcome:
    """The sum of 1 / k^gamma over k >= m is at most m^-gamma + m^(1 - gamma) / (gamma - 1), for gamma >= 2 and m >= 1.

    Printed as 1 / (2 m^(gamma - 1)): too small for gamma = 2 at every m, and for gamma = 3 at m = 1, 1.202 against 0.5.
    """
    grid = [(gamma, m) for gamma in (2.0, 2.5, 3.0, 5.0) for m in (1, 2, 3, 10, 100, 10**4)]
    ratios = [float(special.zeta(gamma, m)) / theory.lemma_2(gamma=gamma, m=m) for gamma, m in grid]
    printed = float(special.zeta(3.0, 1)), theory.lemma_2(gamma=3.0, m=1, as_printed=True)
    shown = f"sum / bound up to {max(ratios):.4g}; printed: {printed[0]:.4g} > {printed[1]:.2g}"
    return Outcome(max(ratios), 1.0, shown, "1", printed)


def _sequences(trial: Trial, least: float, most: float) -> list[np.ndarray]:
    """Return sequences in a range that push sums up and down: constant, in steps, and random."""
    rng, length = trial.rng("sequences"), 300
    some = [np.full(length, least), np.full(length, most), np.linspace(least, most, length)]
    some += [each[::-1] for each in some]
    for _ in range(trial.size(200, 10)):
        some.append(rng.uniform(least, most, int(rng.integers(1, length))))
        some.append(np.where(rng.random(length) < rng.random(), least, most))
        some.append(least * (most / least) ** rng.random(length))
    return some


@claim("lem-3", "a sum over its own growth: Lemma 8 of Seldin et al.", "Lemma 3, App. A")
def lemma_3(trial: Trial) -> Outcome:
    """sum_t a_t / (a_1 + ... + a_t)^g <= (a_1 + ... + a_T)^(1 - g) / (1 - g) for a_t >= 0, a_1 > 0 and g in (0, 1)."""
    ratios = [
        float((a / np.cumsum(a) ** power).sum()) / theory.lemma_3(total=float(a.sum()), power=power)
        for a in _sequences(trial, 1e-3, 1e3)
        for power in (0.1, 0.5, 0.9)
    ]
    return Outcome(max(ratios), 1 + ROUNDING, f"left / right up to {max(ratios):.5g} on {len(ratios):,} sums", "1")


@claim("lem-4", "the same, one term behind", "Lemma 4, App. A")
def lemma_4(trial: Trial) -> Outcome:
    """sum_t a_t / sqrt(K + a_1 + ... + a_(t-1)) <= 2 sqrt(a_1 + ... + a_T) + sqrt(K) for a_t in [1, K]."""
    ratios = []
    for K in (1.0, 2.0, 10.0, 1000.0):
        for a in _sequences(trial, 1.0, K):
            left = float((a / np.sqrt(K + np.cumsum(a) - a)).sum())
            ratios.append(left / theory.lemma_4(K=K, total=float(a.sum())))
    return Outcome(max(ratios), 1 + ROUNDING, f"left / right up to {max(ratios):.5g} on {len(ratios):,} sums", "1")


@claim("lem-5", "sums of exp(-c sqrt t) and of exp(-c t)", "Lemma 5, App. A")
def lemma_5(_: Trial) -> Outcome:
    """The sum of exp(-c sqrt t) over t >= 1 is at most 2 / c^2, and that of exp(-c t) at most 1 / c."""
    ratios = []
    for c in (1e-2, 0.1, 0.5, 1.0, 3.0, 10.0):
        ratios += [tail(c) / theory.lemma_5_root(c=c), 1 / math.expm1(c) / theory.lemma_5_linear(c=c)]
    return Outcome(max(ratios), 1.0, f"sum / bound up to {max(ratios):.5g}", "1")


def tail(c: float) -> float:
    """Return the sum of exp(-c sqrt t) over t >= 1, from above: millions of terms, and an integral for the rest."""
    last = min(5_000_000, math.ceil((50 / c) ** 2))
    head = float(np.exp(-c * np.sqrt(np.arange(1, last + 1, dtype=np.float64))).sum())
    root = math.sqrt(last)
    return head + 2 * (root / c + 1 / c**2) * math.exp(-c * root)
