"""EXP3.G++ as one writes it in NumPy: whole arrays at a time. The oracle of the tests goes arm by arm instead."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["play"]


def play(A: npt.NDArray[np.bool_], losses: Floats, draws: Floats) -> npt.NDArray[np.int64]:
    """Play as many rounds as there are draws, at the adaptive rate; return how often each arm was played."""
    K = len(A)
    log_K = math.log(K)
    weights = A.astype(np.float64)
    Ltilde, Lhat, O, plays = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K, np.int64)
    Theta = float(K)
    for t, (l, draw) in enumerate(zip(losses, draws, strict=True), start=1):
        if t <= K:
            arm = t - 1
        else:
            mean, rad = Lhat / O, np.sqrt((4 * math.log(t) + log_K) / (2 * O))
            gap = np.maximum(0, np.maximum(0, mean - rad) - np.minimum(1, mean + rad).min())
            S = _exploration_set(A, gap)
            cap = min(1 / (2 * K), math.sqrt(log_K / t) / (2 * K))
            with np.errstate(divide="ignore"):
                eps = np.minimum(cap, np.where(S, 320 * math.log(t) / (t * gap**2), 4 / t**2))
            q = np.exp(-math.sqrt(log_K / (2 * Theta)) * (Ltilde - Ltilde.min()))
            p = (1 - eps.sum()) * q / q.sum() + eps
            arm = min(int(np.searchsorted(np.cumsum(p), draw, side="right")), K - 1)
            P = p @ weights
            Ltilde += A[arm] * l / P
            Theta += (p / P).sum()
        Lhat += A[arm] * l
        O += A[arm]
        plays[arm] += 1
    return plays


def _exploration_set(A: npt.NDArray[np.bool_], gap: Floats) -> npt.NDArray[np.bool_]:
    S, covered = np.zeros(len(A), np.bool_), np.zeros(len(A), np.bool_)
    for arm in np.argsort(gap, kind="stable"):
        if not covered[arm]:
            S[arm] = True
            covered |= A[arm]
    return S
