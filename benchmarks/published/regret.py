"""UCB-N on similar arms (Qi and others, UAI 2024) and EXP3.G on fixed losses: the settings of published_regret.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import published_regret as settings


def play() -> dict[str, Any]:
    """Return mean regrets by round or by horizon: published, with the constants of the source, and as shipped."""
    theirs = {"width": 1.0, "delta": 1 / (math.sqrt(2) * 10_000**2), "unseen": 1.0}
    both = [settings.ucb_n(**options) for options in (theirs, {})]
    found = {"ucb-n": _found(settings.UCB_N, *both)}
    for kind, published in (("strong", settings.STRONG), ("weak", settings.WEAK)):
        both = [np.column_stack(settings.exp3_g([*published], weak=kind == "weak", own=own)) for own in (False, True)]
        found[kind] = _found(published, *both)
    return found


def _found(published: dict[int, float], *both: np.ndarray) -> dict[str, Any]:
    made: dict[str, Any] = {"at": [*published], "published": [*published.values()]}
    for name, regrets in zip(("alike", "shipped"), both, strict=True):
        made[name] = regrets.mean(axis=0).tolist()
        made[f"last error, {name}"] = float(regrets[:, -1].std(ddof=1) / math.sqrt(len(regrets)))
    return made


def _joined(values: list[float]) -> str:
    return " / ".join(f"{each:,.0f}" for each in values)


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    student = "debrajk22, on Alon and others 2015"
    settings = {
        "ucb-n": ("Qi and others, UAI 2024", "UCB-N, 1,000 similar arms, regret at t ="),
        "strong": (student, "EXP3.G, strongly observable graph, regret after T ="),
        "weak": (student, "EXP3.G, weakly observable graph, regret after T ="),
    }
    made = []
    for name, (source, setting) in settings.items():
        of = found[name]
        alike, shipped = (f"{_joined(of[who])} ± {of[f'last error, {who}']:.1f}" for who in ("alike", "shipped"))
        made.append(
            (source, f"{setting} {_joined(of['at'])}", _joined(of["published"]), f"{alike}; as shipped {shipped}")
        )
    return made


def brief(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the rows of the README."""
    of = found["ucb-n"]
    setting = f"Regret of UCB-N after {of['at'][-1]:,} rounds (Qi et al., 2024)"
    published, alike, shipped = (_joined(of[name][-1:]) for name in ("published", "alike", "shipped"))
    return [(setting, published, f"{alike} with their constants, {shipped} with ours")]
