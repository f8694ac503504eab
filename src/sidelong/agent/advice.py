"""Advice: what people would play themselves in a round, by the name of each adviser.

An adviser names an arm, or gives a probability for each arm. Either becomes a row with as many numbers as there are
arms, and a row of zeros is silence. The rows of a round are the last numbers of its `trace`, so that they are kept with
the decision wherever that is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import is_whole, short
from sidelong.errors import AdviceError, GraphError
from sidelong.graphs.presence import arm_of
from sidelong.learners import catalogue
from sidelong.tables import are_several, as_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner

    Floats = npt.NDArray[np.float64]

#: So many names of advisers an agent or a family takes, in all.
MOST = 32
#: What an adviser without a name is called.
UNNAMED = "advice"
#: What a sum of probabilities may be off; they are divided by it.
_ROUNDING = 1e-6


def read_one(advice: Any, graph: FeedbackGraph) -> dict[str, Floats]:
    """Return a row for each adviser who is named, from what `Agent.ask` was given."""
    return {name: _row(each, graph, f"The advice of {short(name)}") for name, each in by_name(advice).items()}


def read_many(advice: Any, graph: FeedbackGraph, keys: Sequence[Any]) -> dict[str, Floats]:
    """Return a row for each key of each adviser who is named, from what `Family.ask` was given."""
    return {name: _column(name, each, graph, keys) for name, each in by_name(advice).items()}


def new_names(learner: Learner, known: tuple[str, ...], given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names that are not known yet, if the learner takes advice and there are not too many."""
    if given and learner.add_adviser is None:
        able = catalogue.names_where(lambda each: each.add_adviser is not None)
        raise AdviceError(f"{learner.title} takes no advice. Use {able}.")
    new = tuple(name for name in given if name not in known)
    if len(known) + len(new) > MOST:
        raise AdviceError(
            f"There are at most {MOST} names of advisers. Here {len(known)} are known, and {len(new)} are new, such as "
            f"{short(new[0])}. Use one name for each source of advice, not one for each round."
        )
    return new


def check_names(given: Iterable[str], regressors: tuple[str, ...]) -> None:
    """Refuse advice under the name of a regressor, which advises itself."""
    for name in given:
        if name in regressors:
            raise AdviceError(f"{short(name)} is the name of a regressor: call the adviser something else.")


def check_incumbent(
    name: str, given: Mapping[str, Floats], shown: Sequence[FeedbackGraph], keys: Sequence[Any] | None = None
) -> None:
    """Refuse a round without the advice of the incumbent, by which every decision is limited; a row for each graph."""
    rows = given.get(name)
    if rows is None:
        raise AdviceError(
            f"The incumbent {short(name)} must advise in every round. Give advice={{{name!r}: ...}}, the arm that it "
            f"would play."
        )
    absent = {id(graph): graph.arms_without_self_loop for graph in shown}
    for at, (row, graph) in enumerate(zip(rows.reshape(len(shown), -1), shown, strict=True)):
        whose = f"The incumbent {short(name)}" + ("" if keys is None else f", for the key {short(keys[at])},")
        if not row.any():
            raise AdviceError(f"{whose} must advise in every round, and is silent. Say what it would play.")
        gone = [arm for arm in absent[id(graph)].tolist() if row[arm] > 0.0]
        if gone:
            raise AdviceError(
                f"{whose} advises arm {graph.arm_name(gone[0])}, which is absent. Say what it would play of the arms "
                f"that are there."
            )


def laid_out(known: tuple[str, ...], given: Mapping[str, Floats]) -> Floats:
    """Return the rows of all advisers that are known, one after the other; those who are not named are silent."""
    some = next(iter(given.values()))
    silent = np.zeros_like(some)
    return np.concatenate([given.get(name, silent) for name in known], axis=-1)


def advice_in(trace: np.ndarray, names: tuple[str, ...], n_arms: int) -> dict[str, Floats]:
    """Return the advice that a decision was made with, by name; those who were silent are left out."""
    rows = trace[trace.size - len(names) * n_arms :].reshape(-1, n_arms)
    return {name: row.copy() for name, row in zip(names, rows, strict=True) if row.any()}


def are_rows(rows: Floats, n_arms: int) -> bool:
    """Tell whether these numbers are rows of advice: probabilities that sum to 1, or silence."""
    sums = rows.reshape(-1, n_arms).sum(axis=1)
    return bool((rows >= 0.0).all() and ((sums == 0.0) | (abs(sums - 1.0) <= _ROUNDING)).all())


def by_name(advice: Any) -> dict[str, Any]:
    """Return the advice of each adviser by name, as it was given."""
    if advice is None:
        return {}
    if not isinstance(advice, Mapping):
        return {UNNAMED: advice}
    for name in advice:
        if not isinstance(name, str) or not name:
            raise AdviceError(f"The name of an adviser is text, not {short(name)}.")
    return dict(advice)


def _row(given: Any, graph: FeedbackGraph, whose: str) -> Floats:
    """Return the advice of one adviser for one decision."""
    made = np.zeros(graph.n_arms)
    if given is None:
        return made
    if isinstance(given, str) or is_whole(given):
        made[_arm(given, graph, whose)] = 1.0
        return made
    try:
        made[:] = np.asarray(as_list(given), np.float64)
        fits = len(given) == made.size
    except (OverflowError, TypeError, ValueError):
        fits = False
    if not fits:
        raise AdviceError(
            f"{whose} must be an arm, by number or label, or a probability for each of the {graph.n_arms} arms, not "
            f"{short(given)}."
        )
    return np.asarray(_normal(made[None], lambda _: whose)[0])


def _arm(given: Any, graph: FeedbackGraph, whose: str) -> int:
    try:
        return arm_of(graph, given, whose)
    except GraphError as error:
        raise AdviceError(str(error)) from error


def _normal(rows: Floats, whose: Callable[[int], str]) -> Floats:
    """Return probabilities that sum to 1, but for rounding; what is none is refused."""
    sums = rows.sum(axis=1)
    wrong = ~((rows >= 0.0).all(axis=1) & (abs(sums - 1.0) <= _ROUNDING))  # NaN compares as false
    if wrong.any():
        at = int(np.argmax(wrong))
        bad = np.flatnonzero(~(rows[at] >= 0.0))
        found = f"that of arm {bad[0]} is {rows[at, bad[0]]:g}" if bad.size else f"they sum to {sums[at]:.6g}"
        raise AdviceError(f"{whose(at)} gives probabilities that are not negative and sum to 1, and {found}.")
    return np.asarray(rows / sums[:, None])


def _column(name: str, given: Any, graph: FeedbackGraph, keys: Sequence[Any]) -> Floats:
    """Return the advice of one adviser for each key."""

    def whose(at: int) -> str:
        return f"The advice of {short(name)} for the key {short(keys[at])}"

    n, K = len(keys), graph.n_arms
    made = np.zeros((n, K))
    if given is None:
        return made
    given = given.to_numpy() if hasattr(given, "to_numpy") else given  # a column or a table
    if not are_several(given) or not hasattr(given, "__len__") or len(given) != n:
        raise AdviceError(
            f"The advice of {short(name)} is an arm for each of the {n:,} keys, or a row of {K} probabilities for "
            f"each, not {short(given)}."
        )
    if isinstance(given, np.ndarray) and given.dtype.kind in "iu" and given.ndim == 1:
        wrong = (given < -1) | (given >= K)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise AdviceError(f"{whose(at)} must be an arm from 0 to {K - 1}, or -1 for silence, not {given[at]}.")
        speaks = np.flatnonzero(given >= 0)
        made[speaks, given[speaks]] = 1.0
        return made
    if isinstance(given, np.ndarray) and given.dtype.kind == "f" and given.shape == (n, K):
        speaks = np.flatnonzero(~np.isnan(given).all(axis=1))
        made[speaks] = _normal(np.asarray(given[speaks], np.float64), lambda at: whose(int(speaks[at])))
        return made
    for at, each in enumerate(as_list(given)):
        is_silent = (is_whole(each) and each == -1) or (isinstance(each, list) and bool(np.isnan(_floats(each)).all()))
        made[at] = 0.0 if is_silent else _row(each, graph, whose(at))
    return made


def _floats(values: list[Any]) -> Floats:
    """Return numbers, or 0 if one is none."""
    try:
        return np.asarray(values, np.float64)
    except (OverflowError, TypeError, ValueError):
        return np.zeros(1)
