"""What an agent and a key of a family have in common: one key of the engine, and what is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import logs, observers
from sidelong.agent.ceiling import PRICE
from sidelong.agent.decision import decision_at
from sidelong.evaluation.advisers import AdvisersTable

if TYPE_CHECKING:
    from sidelong.agent.ceiling import Spending
    from sidelong.agent.decision import Decision
    from sidelong.agent.observers import Lateness
    from sidelong.agent.rounds import Rounds
    from sidelong.evaluation import Certificate, WorldHealth


class OneKey:
    """One key: its decisions that are pending, and what its observers say."""

    _rounds: Rounds

    def _row(self) -> int:
        """Return the row of the key, or refuse a key that is not there."""
        raise NotImplementedError

    def _round_of(self, decision: Decision | str) -> int:
        """Return the round of a decision of this key, or refuse another one."""
        raise NotImplementedError

    def _decision(self, slot: int) -> Decision:
        return decision_at(self._rounds, slot)

    def _slots(self) -> list[int]:
        """Return where the decisions of the key are pending, oldest first."""
        return self._rounds.of_row(self._row())

    @property
    def round(self) -> int:
        """How many decisions were asked for."""
        return int(self._rounds.rows.round[self._row()])

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions that were neither told nor cancelled, oldest first."""
        return tuple(map(self._decision, self._slots()))

    def override(self, decision: Decision | str, arm: int | str) -> Decision:
        """Say that a pending decision was carried out with another arm, before its losses are told.

        `tell` then takes the losses that this arm revealed. Means learn from them, and so does a regressor. The learner
        does not: its estimates are without bias only for arms that it drew itself. For its bounds, the certificate and
        the alarm the round counts as if its losses had been lost; `health` says how many there are.

        Args:
            decision: the decision, or its id.
            arm: the arm that was carried out, by number or label. It must have been there in that round. Once said, it
                stays.

        Returns:
            The decision as it is now: its `reveals` are those of the arm that was carried out.
        """
        return self._decision(int(self._rounds.override(*self._named(decision), [arm])[0]))

    def cancel(self, decision: Decision | str, *, lost: bool = False, cost: float | None = None) -> bool:
        """Give up a decision: nothing is learned from it.

        Args:
            decision: the decision, or its id.
            lost: that it was carried out, and that its losses will never be known. The certificate and the bound of
                `lateness` take the worst of it. A decision that was never carried out does not count there, which is
                right if neither the arm nor its loss was the reason.

            cost: with a ceiling, what a lost decision has cost, if that is known; if not, it counts as its bound.

        Returns:
            True if it was pending, False if it was cancelled in the same way before, as far as that is remembered.

        Raises:
            DecisionError: it was told, or has expired; or it was carried out with another arm, and is not said to be
                lost.
        """
        costs = None if cost is None else [cost]
        return bool(self._rounds.cancel(*self._named(decision), lost=bool(lost), costs=costs))

    def expire(self, age: int, *, lost: bool = False) -> list[str]:
        """Give up the decisions after which `age` others were made, or more; return their ids.

        One that was carried out with another arm counts as lost.
        """
        return self._rounds.expire(np.array(self._slots(), np.int64), age, lost=lost)

    def _named(self, decision: Decision | str) -> tuple[np.ndarray, np.ndarray]:
        """Return the row of the key and the round of a decision, as columns of one."""
        round_ = self._round_of(decision)
        return np.array([self._row()], np.int64), np.array([round_], np.int64)

    def certificate(self, confidence: float = 0.95) -> Certificate:
        """Return how much was lost so far, at most, beyond any fixed arm.

        It holds at every moment at once with the given confidence, whatever the losses are, and whoever chooses them
        watching the draws; `docs/proofs.md` has the proof. Decisions that wait, and those that are lost, count as
        the worst they can be.

        Raises:
            EvaluationError: the agent or the family was not made with `certificate=True`.
        """
        return observers.certificate_of(self._observers, self.pending, confidence)

    def stop(self, confidence: float = 0.95) -> int | None:
        """Return the arm with the least expected loss, if that is known by now; else None.

        With the given confidence no answer of a run is ever wrong, however often one asks, whichever learner plays: if
        the expected losses stay as they are, and feedback is not missing because of what was lost. `docs/stopping.md`
        has more.

        Raises:
            EvaluationError: some outcome decided which losses were revealed (`tell` with a graph).
        """
        return observers.best_arm_of(self._observers, self._rounds.setup.graph, confidence)

    def advisers(self, confidence: float = 0.95) -> AdvisersTable:
        """Return what is known of each adviser: what its advice would have lost, beside what was paid in its rounds.

        The intervals of all advisers together hold at every moment at once with the given confidence, whoever chooses
        the losses watching the draws. Decisions that wait, and those that are lost, count as the worst they can be. The
        losses are of rounds that the agent's own plays have led to: not what would have happened, had you followed an
        adviser alone. `trust` is the share of the agent's own choice that follows the adviser now.
        """
        known = self._rounds.setup, self._observers, self._rounds.state_of(self._row()), self.pending
        return AdvisersTable(observers.advisers_of(*known, confidence, self._ends_of_scale()))

    def trust(self) -> dict[str, float]:
        """Return the share of the agent's own choice that follows each adviser now, by name."""
        return observers.trust_of(self._rounds.setup, self._rounds.state_of(self._row()))

    @property
    def allowance_left(self) -> float:
        """What is left of the allowance for falling behind the incumbent, in numbers of the scale.

        Decisions that wait, and those that are lost or cancelled, count as the most that they can cost. Where the agent
        does better than the incumbent, it grows.
        """
        return self._rounds.setup.allowance_left(self._rounds.state_of(self._row()), self._ends_of_scale())

    def spending(self) -> Spending:
        """Return what was spent, beside what the ceiling allows.

        Raises:
            CostError: there is no ceiling.
        """
        return self._rounds.spending(self._row())

    def lateness(self) -> Lateness:
        """Return how late feedback was, and, for exp3.g++ and exp3-set, the bound on the regret that this leaves."""
        outstanding = self._rounds.pending.outstanding[self._slots()].tolist()
        return observers.lateness_of(self._rounds.setup, self._observers.delays, outstanding, self.round)

    def health(self) -> WorldHealth:
        """Return whether the world has turned: whether some arm's expected loss is another one than it was.

        It compares guaranteed intervals of windows of rounds. `WorldHealth.level` is the chance that this is ever said
        though nothing turned, however often one looks.

        Raises:
            EvaluationError: it is of a family that was not made with `health=True`.
        """
        return observers.health_of(self._rounds.setup, self._observers, self.round)

    def learn(self, log: Any, *, trusted: bool = False) -> int:
        """Learn the rounds of a log, without bias, whoever drew their arms; return how many had losses.

        A log that lacks the probabilities of revealing its losses is refused: what was seen more often because it did
        well would mislead. So is one in which some arm could not be seen, which would look as if it had cost nothing.

        Args:
            log: the path of a Parquet file, such as the service exports; or a table or a dict with its columns: action,
                loss or reward, and pscore, or beside these the lists observed, losses and observe_probabilities of each
                round. With a ceiling also cost, or beside the lists costs.
            trusted: that it is a plain history, which needs no probabilities. `glance` takes one: only its bold half
                and its predictions learn from it, on which no theorem depends. `docs/advice.md` says what that means.
        """
        row = self._row()
        state = self._rounds.state_of(row)
        spending = self._observers.spending
        price = float(spending[PRICE]) if spending.size else 0.0
        rounds = logs.replay(self._rounds.setup, state, log, trusted=trusted, price=price)
        self._rounds.set_state(row, state)
        self._observers.delays[observers.LOGGED] += rounds
        return rounds

    @property
    def _observers(self) -> observers.Observers:
        return self._rounds.observers_of(self._row())

    def _ends_of_scale(self) -> tuple[float, float]:
        best, worst = self._rounds.scales()[self._row()].tolist()
        return best, worst
