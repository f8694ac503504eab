"""The sentence above each figure. Every rule is a function of numbers, and says one thing or another."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from sidelong.studies.curves import FLAT, UNDECIDED
from sidelong.studies.report.pairs import least_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sidelong.simulation.scoreboard import Scoreboard
    from sidelong.studies.curves import Curve
    from sidelong.studies.report.promised import Bound
    from sidelong.studies.report.reading import Instance


FEW = 8  #: runs; with fewer, a bootstrap interval of 95 % holds the mean clearly less often


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def percent(part: float) -> str:
    """Return a part of something in percent, to two digits."""
    return "less than 0.1 %" if part < 0.001 else f"{100 * part:.2g} %" if part < 1 else f"{100 * part:,.0f} %"


def scoreboard(board: Scoreboard) -> str:
    """Say who did best over all instances: whose worst ratio to the best is the smallest."""
    everywhere = [row for row in board.standing if not np.isnan(board.regret[row]).any()]
    if len(board.contestants) == 1:
        return f"{board.contestants[0]} plays alone, so there is nothing to compare it with."
    if not everywhere:
        return "No learner has played on every instance, so none can be called the best of all."
    first = everywhere[0]
    name, worst = board.contestants[first], float(board.worst[first])
    if worst == 1.0:
        many = len(board.instances) > 1
        said = f"{name} has the smallest regret" + f" on all {len(board.instances)} instances" * many
    else:
        where = (
            board.instances[int(np.argmax(board.ratio[first]))].replace(" · ", ", ").replace("bernoulli", "Bernoulli")
        )
        said = f"{name} does best. Worst case: {worst:.2f} times the best ({where})"
    if len(everywhere) == 1:
        return f"{said}. No other learner has played on every instance."
    second = everywhere[1]
    return f"{said}. Next comes {board.contestants[second]}, up to {float(board.worst[second]):,.3g} times the best."


def missing(cells: int) -> str:
    """Say that a report is about a part of its study, if it is."""
    if not cells:
        return ""
    have = "cells of this study have" if cells > 1 else "cell of this study has"
    return f"{cells:,} {have} no results yet, and what follows may change. "


def interval(runs: int) -> str:
    """Say what a curve and its bands are; a bootstrap over few runs sees too little of how they differ."""
    if runs == 1:
        return "There is one run, so there is no interval."
    few = ", which is too narrow for so few runs" if runs < FEW else ""
    return f"Mean over {runs:,} runs, with the 95 % bootstrap interval{few}; the paler band holds nine of ten runs."


def best_counts(board: Scoreboard) -> str:
    """Say who is best on how many instances."""
    ratio = np.nan_to_num(board.ratio, nan=np.inf)
    counts = Counter(board.contestants[row] for row in np.argmin(ratio, axis=0))
    total = len(board.instances)
    (first, most), *others = counts.most_common()
    if not others:
        return f"{first} is the best on {'all ' * (total > 1)}{total} instance{'s' * (total > 1)}."
    said = [f"{first} is the best on {most} of {total} instances", *(f"{name} on {count}" for name, count in others)]
    return f"{listed(said)}."


def contest(instances: Sequence[Instance]) -> str:
    """Say who wins most of all comparisons that can be told from chance."""
    verdicts: dict[str, Counter[str]] = {}
    for instance in instances:
        for (one, _), duel in instance.duels.items():
            verdicts.setdefault(one, Counter())[duel.verdict] += 1
    tested = {name: count for name, count in verdicts.items() if count.total() > count["untested"]}
    if not tested:
        most = max(len(instance.curves) for instance in instances)
        return f"There are too few runs to tell who is better: {least_runs(most * (most - 1) // 2)} are enough."
    first = max(tested, key=lambda name: tested[name]["less"] - tested[name]["more"])
    count = tested[first]
    all_tests = count.total() - count["untested"]
    if not count["less"]:
        return "The tests find no difference between any two learners."
    lost = f"loses {count['more']}" if count["more"] else "loses none"
    return f"{first} wins {count['less']} of its {all_tests} comparisons and {lost}."


def leader(instance: Instance) -> str:
    """Say who has the smallest regret at the end, and whether that may be chance."""
    ranked = instance.ranked
    best = instance.curves[ranked[0]]
    said = f"After {int(best.rounds[-1]):,} rounds {ranked[0]} has the smallest regret, {best.final.mean():,.1f}"
    if len(ranked) == 1:
        return f"{said}."
    second = instance.curves[ranked[1]]
    if best.final.mean() == instance.curves[ranked[-1]].final.mean():
        return f"After {int(best.rounds[-1]):,} rounds all have the same regret, {best.final.mean():,.1f}."
    duel = instance.duels[ranked[0], ranked[1]]
    sure = {
        "less": "" if duel.chance is None else f" (p = {duel.chance:.1g})",
        "split": ", but less in most runs",
        "same": ", which may be chance",
        "untested": ", too few runs for a test",
    }[duel.verdict]
    if best.final.mean() <= 0:
        return f"{said}; {ranked[1]} follows with {second.final.mean():,.1f}{sure}."
    ratio = second.final.mean() / best.final.mean()
    return f"{said}; {ranked[1]} follows with {ratio:,.2f} times as much{sure}."


def growth(curves: Mapping[str, Curve]) -> str:
    """Say how the regret of each learner grows."""
    groups: dict[str, list[str]] = {}
    for name, curve in curves.items():
        if curve.growth is not None:
            groups.setdefault(curve.growth, []).append(name)
    if not groups:
        return "There are too few checkpoints to say how regret grows."
    if groups.keys() == {UNDECIDED}:
        return f"It is not clear yet how the regret of {listed(groups[UNDECIDED])} grows."
    order = [FLAT, "log T", "log² T", "√T", "T", UNDECIDED]
    said = []
    for law in sorted(groups, key=order.index):
        names = listed(groups[law])
        if law == FLAT:
            said.append(f"the regret of {names} has stopped growing")
        elif law == UNDECIDED:
            said.append(f"for {names} this is not clear yet")
        else:
            said.append(f"that of {names} grows like {law}" if said else f"the regret of {names} grows like {law}")
    sentence = "; ".join(said)
    return f"{sentence[0].upper()}{sentence[1:]}."


def bounds(promised: Mapping[str, Bound], curves: Mapping[str, Curve]) -> str:
    """Say whether all curves are below what was promised, and how near they come."""
    if not promised:
        return ""
    used, broken = {}, {}
    for name, bound in promised.items():
        curve = curves[name]
        at = np.isin(curve.rounds, bound.rounds)
        used[name] = float(curve.regret.mean(axis=0)[at][-1] / bound.values[-1])
        # A bound is on what is expected: one run may well be above it.
        above = (curve.band[0][at] > bound.values) & (len(curve.regret) > 1)
        if above.any():
            broken[name] = int(bound.rounds[above][0])
    if broken:
        first = min(broken, key=lambda name: broken[name])
        is_are = "is above its bound" if len(broken) == 1 else "are above their bounds"
        return f"{listed([*broken])} {is_are}: {first} from round {broken[first]:,}, of {_named(promised[first])}."
    nearest = max(used, key=lambda name: used[name])
    bound = promised[nearest]
    if len(used) == 1:
        return f"It ends at {percent(used[nearest])} of {_named(bound)}."
    return f"All stay below what is promised; nearest is {nearest}, at {percent(used[nearest])} of {_named(bound)}."


def _named(bound: Bound) -> str:
    return f"{bound.name}, {bound.values[-1]:,.0f}" if bound.numbered else f"its bound, {bound.values[-1]:,.0f}"


def moves(first: float, last: float) -> bool:
    """Tell whether something that learners trace is by a tenth larger or smaller at the end than it was early."""
    return not 0.9 <= (last / first if first else 1.0) <= 1.1


def trace(what: str, drawn: Mapping[str, tuple[float, float]]) -> str:
    """Say of something that learners trace how it is at the end, compared with its largest early value."""
    changed = {name: (last / first if first else 1.0) for name, (first, last) in drawn.items()}
    most = max(changed, key=lambda name: abs(np.log(max(changed[name], 1e-9))))
    first, last = drawn[most]
    if not moves(first, last):
        return f"{what} stays where it was: {last:.2g} at the end for {most}."
    word = "falls" if last < first else "rises"
    return f"{what} of {most} {word} from {first:.2g} to {last:.2g}."
