"""The scoreboard: everyone's regret everywhere, its ratio to the best, and which differences are more than chance."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from sidelong.studies.report import charts, headlines
from sidelong.studies.report.markup import Entry, Illustration, Section, Table, paragraph, section
from sidelong.studies.report.pairs import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sidelong.studies.report.reading import Instance, StudyReading

_NOTE = (
    "Each cell has two numbers. Below is the regret at the end: the mean over runs, ± half of its 95 % bootstrap "
    "interval. Above is its ratio to the smallest regret on the instance. For the ratio, the number of arms is added "
    "to both, as the price of playing each arm once. The worst ratio of a learner is over all instances."
)
_CAPTION = (
    "Regret at the end as a multiple of the smallest on the instance, with K added to both (in parentheses: regret, "
    "the mean over runs with half of its 95 % bootstrap interval)."
)
_SIGN = "= marks a learner that Wilcoxon's signed rank test cannot tell apart from the best on the instance."
_DUELS = (
    f"The first number says on how many instances the learner of the row has less regret than that of the column, the "
    f"second on how many it has more. This is Wilcoxon's signed rank test on pairs of runs that met the same losses, "
    f"with Holm's correction for all pairs of an instance, p < {LEVEL}. On the other instances the difference may be "
    f"chance."
)
_WIDEST = 11  # columns that a page has room for


def scores(reading: StudyReading) -> Iterator[tuple[Section, list[Illustration]]]:
    """Yield the section, and its figures."""
    board = reading.board
    drawn = []
    if len(board.contestants) > 1:
        note = "Each dot is an instance, the large one the worst. Further left is better."
        drawn = [
            Illustration("ratios", charts.ratios(board, reading.styles), headlines.best_counts(board), note),
        ]
    several, contest = len(board.contestants) > 1, headlines.contest(reading.instances)
    tested = any(duel.verdict != "untested" for each in reading.instances for duel in each.duels.values())
    sign = f" {_SIGN if tested else contest}" * several
    yield section("Scoreboard", drawn, _scoreboard(reading, _CAPTION + sign), paragraph(_NOTE + sign, "note")), drawn
    if several:
        details = (_duels(reading), paragraph(_DUELS, "note")) if tested else ()
        yield section("Who beats whom", paragraph(contest, "says"), *details), []


def _scoreboard(reading: StudyReading, caption: str) -> Table:
    board = reading.board
    absent = "no results" if reading.missing else "cannot play here"
    rows: list[list[str | Entry]] = []
    for row in board.standing:
        label, worst = board.contestants[row], float(board.worst[row])
        everywhere = not any(math.isnan(each) for each in board.regret[row])
        cells = [Entry(f"{worst:,.2f}" if everywhere else "-", "" if everywhere else "not everywhere", kind="worst")]
        cells += [
            _score(instance, label, float(board.ratio[row, k]), absent) for k, instance in enumerate(reading.instances)
        ]
        rows.append([label, *cells])
    head = ["learner", "worst ratio", *(each.title for each in reading.instances)]
    if len(head) > _WIDEST and len(rows) < len(reading.instances):  # a page is not wide: what is many goes down
        turned = [[head[k], *(row[k] for row in rows)] for k in range(1, len(head))]
        return Table("scoreboard", ["", *(str(row[0]) for row in rows)], turned, caption)
    return Table("scoreboard", head, rows, caption)


def _score(instance: Instance, label: str, ratio: float, absent: str) -> Entry:
    if label not in instance.curves:
        return Entry("-", absent)
    curve, best = instance.curves[label], instance.ranked[0]
    low, high = (end[-1] for end in curve.band)
    same = label != best and instance.duels[label, best].verdict == "same"
    heat = min(1.0, math.log(max(ratio, 1.0)) / math.log(30))
    kind = "best" if label == best else ""
    digits = 1 if abs(curve.final.mean()) < 1_000 else 0
    value = f"{curve.final.mean():,.{digits}f}{f' ± {(high - low) / 2:,.{digits}f}' * (len(curve.runs) > 1)}"
    return Entry(f"{ratio:,.2f}{' =' * same}", value, heat, kind)


def _duels(reading: StudyReading) -> Table:
    names = [reading.board.contestants[row] for row in reading.board.standing]
    counts: dict[tuple[str, str], Counter[str]] = {}
    for instance in reading.instances:
        for pair, duel in instance.duels.items():
            counts.setdefault(pair, Counter())[duel.verdict] += 1
    rows: list[list[str | Entry]] = [[one, *(_duel(counts.get((one, other))) for other in names)] for one in names]
    return Table("duels", ["", *names], rows, _DUELS)


def _duel(count: Counter[str] | None) -> Entry:
    if count is None:
        return Entry("")
    if count["untested"] == count.total():
        return Entry("?", kind="even")
    kind = "won" if count["less"] > count["more"] else "lost" if count["less"] < count["more"] else "even"
    return Entry(f"{count['less']} : {count['more']}", kind=kind)
