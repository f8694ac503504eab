"""Which decisions a call names: by a decision, by a batch, by ids, or in a table by ids or keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent import feedback
from sidelong.agent.batch import Batch
from sidelong.agent.ceiling import costs_of_many
from sidelong.agent.decision import Decision
from sidelong.checks import short
from sidelong.errors import CostError, DecisionError, LossError, UnknownDecisionError
from sidelong.keys import read_keys
from sidelong.outcomes.revealed_columns import RevealedColumns
from sidelong.tables import are_several, as_list, column, names_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.agent.feedback import LossColumns
    from sidelong.agent.rounds import Rounds
    from sidelong.keys import Key

    Integers = npt.NDArray[np.int64]


class Decisions(NamedTuple):
    """Decisions by the rows of their keys and their rounds."""

    row: Integers
    round: Integers


def read_feedback(rounds: Rounds, decisions: Any, losses: Any) -> tuple[Decisions, LossColumns]:
    """Return what `tell` was given: a table alone, or decisions with an array, a table or what was revealed."""
    names = names_of(decisions if losses is None else losses)
    if losses is None or (names is not None and not isinstance(losses, RevealedColumns)):
        table = decisions if losses is None else losses
        if names is None:
            raise LossError(f"tell takes decisions and losses, or a table of both, not {short(decisions)} alone.")
        return _read_table(rounds, table, names, None if losses is None else find(rounds, decisions))
    named = find(rounds, decisions)
    if isinstance(losses, RevealedColumns):
        return named, feedback.LossColumns(losses.losses, losses.losses)
    return named, feedback.of_many(losses)


def read_costs(table: Any, costs: Any, heard: LossColumns) -> LossColumns | None:
    """Return the costs that `tell` was given: by themselves, or in a column of the table that has the losses."""
    if isinstance(costs, feedback.LossColumns):
        return costs
    if costs is not None:
        return costs_of_many(costs)
    names = None if heard.arms is None else names_of(table)
    if names is None or "cost" not in names:
        return None
    found = costs_of_many(column(table, "cost", names))
    if found.values.size != heard.values.size:
        raise CostError(f"The columns loss and cost are equally long; cost has {found.values.size:,} rows.")
    return found._replace(arms=heard.arms, of=heard.of)


def round_of(rounds: Rounds, decision: Decision | str) -> int:
    """Return the round of a decision of an agent, or of the name of one.

    Raises:
        UnknownDecisionError: the agent did not make it.
    """
    made, tag = int(rounds.rows.round[0]), rounds.setup.tag
    if isinstance(decision, Decision):
        number, ours = decision.round, decision.id == rounds.name(0, decision.round) and _is_alike(rounds, decision)
    else:
        digits, _, of = rounds.names.get(str(decision), str(decision)).partition("-")
        number, ours = int(digits) if digits.isdecimal() and len(digits) < 19 else 0, of == tag
    if not ours or not 1 <= number <= made:
        raise UnknownDecisionError(
            f"This agent made no decision {short(getattr(decision, 'id', decision))}. It has made {made}, "
            f"named like 1-{tag}. Tell the agent that was asked, or load its saved state."
        )
    return number


def _is_alike(rounds: Rounds, decision: Decision) -> bool:
    """Tell whether a decision can be the pending one of its name.

    An agent alike names its decisions alike, but has drawn others as soon as it was told something else.
    """
    slot = int(rounds.find(np.zeros(1, np.int64), np.array([decision.round]))[0])
    p = decision.drawn.p  # arms may have come since, with a probability of 0
    table = rounds.pending
    return slot < 0 or (decision.arm == table.arm[slot] and np.array_equal(table.p[slot, : p.size], p, equal_nan=True))


def find(rounds: Rounds, decisions: Any) -> Decisions:
    """Return decisions by their batch or their ids.

    Raises:
        UnknownDecisionError: the family did not make one of them.
        DecisionError: one is named twice.
    """
    tag = rounds.setup.tag
    if isinstance(decisions, Batch):
        keys, round_ = decisions.keys, decisions.rounds
        ours = np.full(len(keys), decisions.tag == tag)
    else:
        if not are_several(decisions):
            raise UnknownDecisionError(f"Decisions are a Batch or a list of ids, not {short(decisions)}.")
        round_, keys, ours = _parse(rounds, as_list(decisions))
    row = rounds.keys.find(keys)
    made = ours & (row >= 0) & (round_ >= 1) & (round_ <= np.append(rounds.rows.round, 0)[row])
    if not made.all():
        at = int(np.argmin(made))
        raise _unknown(rounds, keys[at], int(round_[at]), ours=bool(ours[at]))
    pairs = np.stack([row, round_])
    order = np.lexsort(pairs)
    twice = (np.diff(pairs[:, order], axis=1) == 0).all(axis=0)
    if twice.any():
        at = int(order[int(np.argmax(twice))])
        raise DecisionError(f"Decision {round_[at]}-{tag}-{keys[at]} is named twice.")
    return Decisions(row, round_)


def _parse(rounds: Rounds, ids: list[Any]) -> tuple[Integers, list[Key], npt.NDArray[np.bool_]]:
    """Return the round and the key that each id names, and whether it is of this family."""
    round_: list[int] = []
    keys: list[Key] = []
    ours: list[bool] = []
    known = rounds.keys.listed
    whole = bool(known) and isinstance(known[0], int)
    for each in ids:
        digits, tag, key = (*rounds.names.get(str(each), str(each)).split("-", 2), "", "")[:3]
        if not digits.isdecimal() or len(digits) > 18:
            raise UnknownDecisionError(
                f"This family made no decision {short(each)}: it names its decisions like 1-{rounds.setup.tag}-key. "
                f"Tell the family that was asked."
            )
        round_.append(int(digits))
        ours.append(tag == rounds.setup.tag)
        keys.append(int(key) if whole and key.removeprefix("-").isdecimal() else key)
    return np.array(round_, np.int64), keys, np.array(ours, np.bool_)


def _unknown(rounds: Rounds, key: Key, t: int, *, ours: bool) -> UnknownDecisionError:
    """Return why a decision is none of this family's."""
    row = rounds.keys.row(key)
    if row < 0:
        why = "has never been asked for that key"
    elif ours:
        why = f"has made {rounds.rows.round[row]} for that key"
    else:
        why = f"names its decisions like {t}-{rounds.setup.tag}-{key}"
    return UnknownDecisionError(
        f"This family made no decision {t} for the key {short(key)}: it {why}. Tell the family that was asked."
    )


def _read_table(rounds: Rounds, table: Any, names: list[str], meant: Decisions | None) -> tuple[Decisions, LossColumns]:
    """Read a table of decision or key, arm and loss; `meant` are the decisions that it may be of."""
    by = "decision" if "decision" in names else "key"
    heard, arms, given = feedback.of_table(table, names, by)
    listed: list[Any] = list(map(str, given)) if by == "decision" else read_keys(given)
    places = {name: place for place, name in enumerate(dict.fromkeys(listed))}
    of = np.fromiter(map(places.__getitem__, listed), np.int64, len(listed))
    named = find(rounds, list(places)) if by == "decision" else _of_keys(rounds, list(places), meant)
    if meant is not None:
        named, of = _in_order_of(meant, named, of)
    return named, heard._replace(arms=arms, of=of)


def _of_keys(rounds: Rounds, keys: list[Key], meant: Decisions | None) -> Decisions:
    """Return the one decision of each key, of those that are meant or else of those that are pending."""
    row = rounds.keys.find(keys)
    if (row < 0).any():
        raise UnknownDecisionError(
            f"This family has no key {short(keys[int(np.argmin(row))])}: it has never been asked for that key. "
            f"Tell the family that was asked."
        )
    if meant is not None:
        known = dict(zip(meant.row.tolist(), meant.round.tolist(), strict=True))
        several = len(known) < meant.row.size
        at = next((k for k, each in enumerate(row.tolist()) if each not in known), None)
    else:
        first = rounds.rows.first[row]
        several = bool((first != rounds.rows.last[row]).any())
        at = int(np.argmin(first)) if (first < 0).any() else None
    if several:
        raise DecisionError("A key has several decisions that are meant: name them in a column decision.")
    if at is not None:
        raise DecisionError(f"No decision of the key {short(keys[at])} is meant or waits.")
    if meant is not None:
        return Decisions(row, np.array([known[each] for each in row.tolist()], np.int64))
    return Decisions(row, rounds.pending.round[first])


def _in_order_of(meant: Decisions, named: Decisions, of: Integers) -> tuple[Decisions, Integers]:
    """Return decisions in the order of those that are meant, as graphs by key are, and the place of each row's."""
    places = {pair: place for place, pair in enumerate(zip(*map(np.ndarray.tolist, meant), strict=True))}
    at = [places.get(pair, -1) for pair in zip(*map(np.ndarray.tolist, named), strict=True)]
    if -1 in at:
        raise UnknownDecisionError("The table has losses of decisions that are not among those that were named.")
    order = np.argsort(at)
    return Decisions(named.row[order], named.round[order]), np.argsort(order)[of]
