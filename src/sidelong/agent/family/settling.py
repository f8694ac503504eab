"""From what `tell` was given to what is learned: everything is checked before anything changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.family.kernels import TellBatch
from sidelong.agent.family.marks import GivenLosses, marks_of
from sidelong.agent.family.memory import ARMS, LOSSES, REMEMBERED, ROUND, SIZE
from sidelong.checks import short
from sidelong.errors import ConflictError, DecisionError, LossError, OutcomeError
from sidelong.learners.interface import Need, is_sparing

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.agent.family.hearing import Heard
    from sidelong.agent.family.store import KeyStore
    from sidelong.outcomes.revealed_columns import RevealedColumns

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]


class Settling:
    """One call of `tell`: its decisions, what they reveal, and what is wrong with it."""

    def __init__(self, store: KeyStore, heard: Heard, tag: str) -> None:
        self._store = store
        self._heard = heard
        self._tag = tag
        self._row, self._round = heard.named
        self.slot = store.find(self._row, self._round)  #: where each waits; -1 if it does not
        self._waits = self.slot >= 0
        self._asked = np.where(self._waits, np.append(store.waiting.graph, 0)[self.slot], 0)
        self._before = np.empty((0, 4), np.int64)  # what those were told that do not wait
        self._given: GivenLosses | None = None  # what outcomes revealed, with arms that were absent
        self._foreseen = False
        self._arm = np.where(self._waits, np.append(store.waiting.arm, 0)[self.slot], 0)

    def settle(self, graph: Any) -> TellBatch:
        """Return what is to be learned.

        Raises:
            LossError: a loss is missing, outside its range, or of an arm that was not revealed.
            DecisionError: a decision was cancelled, told long ago, or told something else.
        """
        shown, key = self._asked, np.zeros(self._row.size, np.int64)
        if graph is not None:
            key = self._store.bank.keys(graph, self._row.size)
            shown = self._store.bank.told(graph, self._asked)
            self._refuse_other_graphs((shown != self._asked) & self._waits)
        reveals, offsets = self._store.reveals(shown[self._waits], self._arm[self._waits])
        sizes = self._sizes(np.diff(offsets))
        values, given, arms = self._in_order(sizes, reveals)
        losses = self._losses(values, given, arms, sizes)
        offsets = np.append(0, np.cumsum(sizes))
        marks = marks_of(self._round, self._given or GivenLosses(losses, arms, offsets), key)
        self._compare(marks, known_arms=self._heard.arms is not None)
        return self._told(shown, sizes, offsets, losses, marks)

    def open(self, revealed: RevealedColumns, graph: Any) -> Any:
        """Return the graph of what was revealed, if it is of these decisions; absent arms are left out of it."""
        scaled = self._store.scale is not None or self._store.rows.scale.shape[1] > 0
        if graph is not None or scaled:
            what = "its graphs" if graph is not None else "losses in [0, 1], so that the family needs no scale"
            raise LossError(f"What was revealed has {what}: tell it alone.")
        if revealed.arms.size != self._row.size:
            raise LossError(f"This is what {revealed.arms.size:,} plays revealed, of {self._row.size:,} decisions.")
        other = (revealed.arms != self._arm) & self._waits
        if other.any():
            at = int(np.argmax(other))
            raise LossError(
                f"This is what arm {self._name(revealed.arms[at])} revealed for the key {self._key(at)}, and decision "
                f"{self._id(at)} plays arm {self._name(self._arm[at])}. Give the outcomes in the order of the batch."
            )
        self._given, self._foreseen = (
            GivenLosses(revealed.losses, revealed.reveals, revealed.offsets),
            revealed.foreseen,
        )
        of = np.repeat(np.arange(self._row.size), np.diff(revealed.offsets))
        hidden = self._store.bank.hides(self._asked, of, revealed.reveals)
        if hidden.any():
            values = self._heard.values[~hidden]
            self._heard = self._heard._replace(values=values, given=values)
        return revealed.graph

    def _refuse_other_graphs(self, other: npt.NDArray[np.bool_]) -> None:
        """Refuse graphs that are not those of `ask`, where they must be."""
        if not other.any():
            return
        if is_sparing(self._store.learner):
            raise DecisionError(
                "A learner that does not look at every arm must know at `ask` what its decision reveals: "
                "tell without graph=..., or take refresh='round'."
            )
        if self._foreseen:
            at = int(np.argmax(other))
            raise LossError(
                f"The outcome of the key {self._key(at)} is of a round with another graph than the one that decision "
                f"{self._id(at)} was asked with. Here graphs are known before the draw: ask with them, and keep their "
                f"values for the outcomes. Nothing was learned."
            )

    def _sizes(self, waiting: Integers) -> Integers:
        """Return how many losses each decision has: what it reveals, or what it was told before."""
        sizes = np.zeros(self._row.size, np.int64)
        sizes[self._waits] = waiting
        settled = np.flatnonzero(~self._waits)
        told = self._store.rows.told[self._row[settled]]
        same = told[:, :, ROUND] == self._round[settled, None]
        if not same.any(axis=1).all():
            at = int(settled[np.argmin(same.any(axis=1))])
            raise DecisionError(
                f"Decision {self._id(at)} was cancelled, or told so long ago that the family does not remember what: "
                f"each key remembers its last {REMEMBERED}. Nothing was learned."
            )
        self._before = told[np.arange(settled.size), same.argmax(axis=1)]
        sizes[settled] = self._before[:, SIZE]
        if self._given is not None and (other := sizes[settled] != np.diff(self._given.offsets)[settled]).any():
            self._conflict(int(settled[np.argmax(other)]))
        return sizes

    def _in_order(self, sizes: Integers, reveals: np.ndarray) -> tuple[Floats, np.ndarray, Integers]:
        """Return the values and what was given, decision after decision, with their arms, -1 where nobody knows."""
        heard, total = self._heard, int(sizes.sum())
        waits = np.repeat(self._waits, sizes)
        arms = np.full(total, -1, np.int64)
        arms[waits] = reveals
        if heard.arms is None or heard.of is None:
            if heard.values.size != total:
                raise LossError(
                    f"Losses must be one for each of the {total:,} revealed arms of these {sizes.size:,} decisions, in "
                    f"the order of batch.reveals; {heard.values.size:,} were given."
                )
            return heard.values, heard.given, arms
        order = np.lexsort((heard.arms, heard.of))
        of, listed = heard.of[order], heard.arms[order]
        counts = np.bincount(of, minlength=sizes.size)
        wrong = counts != sizes
        if not wrong.any():
            wrong[of[waits & (arms != listed)]] = True
        if wrong.any():
            self._refuse_arms(int(np.argmax(wrong)), listed[of == int(np.argmax(wrong))], arms, sizes)
        return heard.values[order], heard.given[order], listed

    def _refuse_arms(self, at: int, listed: Integers, arms: Integers, sizes: Integers) -> None:
        if not self._waits[at]:
            self._conflict(at)
        first = int(sizes[:at].sum())
        due = arms[first : first + int(sizes[at])]
        where = f"of the key {self._key(at)}, decision {self._id(at)},"
        for arm in np.setdiff1d(listed, due).tolist():
            raise LossError(f"Arm {arm} {where} was not revealed, and a loss was told for it.")
        for arm in np.setdiff1d(due, listed).tolist():
            raise LossError(f"The loss of arm {self._name(arm)} {where} was revealed and is missing. Tell all of them.")
        raise LossError(f"An arm {where} has two losses.")

    def _losses(self, values: Floats, given: np.ndarray, arms: Integers, sizes: Integers) -> Floats:
        """Return values as losses, and refuse what is none."""
        if self._store.scale is None and not self._store.rows.scale.shape[1]:
            self._refuse_outside(values, given, arms, sizes, 0.0, 1.0)
            return values
        best, worst = np.repeat(self._store.scales()[self._row], sizes, axis=0).T
        self._refuse_outside(values, given, arms, sizes, np.minimum(best, worst), np.maximum(best, worst))
        return np.asarray((values - best) / (worst - best) + 0.0)  # not -0.0

    def _refuse_outside(
        self, values: Floats, given: np.ndarray, arms: Integers, sizes: Integers, low: Any, high: Any
    ) -> None:
        fit = (values >= low) & (values <= high)
        binary = Need.BINARY_LOSSES in self._store.learner.needs
        if binary:
            fit &= (values == low) | (values == high)
        if fit.all():
            return
        place = int(np.argmin(fit))
        at = int(np.searchsorted(np.cumsum(sizes), place, "right"))
        low, high = (float(np.broadcast_to(end, fit.shape)[place]) for end in (low, high))
        rule = f"{low:g} or {high:g} for {self._store.learner.name}" if binary else f"a number in [{low:g}, {high:g}]"
        of = f"of arm {self._name(arms[place])} of the key {self._key(at)}, decision {self._id(at)},"
        plain = (low, high) == (0.0, 1.0)
        error = LossError if plain else OutcomeError
        advice = "Scale losses before you tell them" if plain else "If such values do come, begin with a wider scale"
        raise error(
            f"The {'loss' if plain else 'value'} {of} must be {rule}, not {short(given[place])}. {advice}; they are "
            f"never clipped, and nothing of this batch was learned."
        )

    def _compare(self, marks: npt.NDArray[np.int64], *, known_arms: bool) -> None:
        """Let repetitions pass, and refuse anything else about a decision that does not wait."""
        settled = ~self._waits
        other = self._before[:, LOSSES] != marks[settled, LOSSES]
        if known_arms:
            other |= self._before[:, ARMS] != marks[settled, ARMS]
        if other.any():
            self._conflict(int(np.flatnonzero(settled)[np.argmax(other)]))

    def _conflict(self, at: int) -> None:
        raise ConflictError(
            f"Decision {self._id(at)} was told before, with other losses or another graph. The first ones stay; losses "
            f"cannot be corrected after they were learned. Nothing of this batch was learned."
        )

    def _told(self, shown: Integers, sizes: Integers, offsets: Integers, losses: Floats, marks: Integers) -> TellBatch:
        """Return the decisions that wait, in the order of their rows and, of one key, as they were named."""
        order = np.flatnonzero(self._waits)
        rows = self._row[order]
        if (np.diff(rows) < 0).any():
            order = order[np.argsort(rows, kind="stable")]
        if order.size < sizes.size or (np.diff(order) != 1).any():
            sizes = sizes[order]
            ends = np.append(0, np.cumsum(sizes))
            losses = losses[np.repeat(offsets[order] - ends[:-1], sizes) + np.arange(ends[-1])]
            offsets = ends
        return TellBatch(self.slot[order], shown[order], offsets, np.ascontiguousarray(losses), marks[order])

    def _key(self, at: int) -> str:
        return short(self._store.keys.listed[self._row[at]])

    def _id(self, at: int) -> str:
        return f"{self._round[at]}-{self._tag}-{self._store.keys.listed[self._row[at]]}"

    def _name(self, arm: int) -> str:
        return self._store.bank.own.arm_name(int(arm)) if arm >= 0 else "unknown"
