"""What feedback says of a decision: its losses, brought into the order of the arms that were revealed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from sidelong.checks import nearest
from sidelong.errors import CostError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from sidelong.errors import LossError
    from sidelong.graphs import FeedbackGraph
    from sidelong.outcomes.scale import Scale
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.graphs import KnownGraph
    from sidelong.service.store.journal import Floats

_COLUMNS = {"arm": "arms", "graph": "graph_of"}  # of a batch, for what feedback says of one decision
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_NUMBERS: dict[str, int | str] = {str(number): number for number in range(256)}  # which most arms have
#: By arm, or in the order of the revealed arms.
TellableLosses: TypeAlias = Mapping[str, float] | list[float]
#: The same, with the numbers of the arms.
NumberedLosses: TypeAlias = dict[int, float] | list[float]


class ToldItem(NamedTuple):
    """Feedback: of which decision, and what."""

    number: int
    losses: TellableLosses
    graph: FeedbackGraph | KnownGraph | str | None = None
    arm: int | str | None = None  #: that it is about, by number or label, if whoever tells it says so
    plain: bool = False  #: whether these are losses from 0 to 1 and no numbers of a scale, whoever is told
    costs: TellableLosses | None = None  #: under a ceiling, of the same arms


class ToldItems(NamedTuple):
    """Feedback about several decisions, with the losses of all of them in the order of what each reveals."""

    numbers: list[int]
    sizes: list[int]  #: how many losses each decision has
    losses: np.ndarray
    graphs: Sequence[FeedbackGraph | KnownGraph | str | None] = ()
    graph_of: list[int] | None = None  #: for each decision, which graph came with its outcome
    arms: list[int | str] | None = None  #: that were played, by number or label, if whoever tells it says so
    plain: bool = False  #: as in `ToldItem`
    reveals: list[int | str] | None = None  #: the arm of each loss, where they are not in that order
    costs: np.ndarray | None = None  #: under a ceiling, as losses

    def find_loss(self, place: int, first: int, name: str) -> int | None:
        """Return where the loss is that an error calls by its arm, or by its place among those of its decision."""
        if self.reveals is None:
            return first + int(name) if name else None
        names = list(map(str, self.reveals[first : first + self.sizes[place]]))
        return first + names.index(name) if name in names else None

    def items(self) -> list[ToldItem]:
        """Return the same, decision by decision."""
        parts, costs = self._parts(self.losses), None if self.costs is None else self._parts(self.costs)
        which, arms = self.graph_of, self.arms
        return [
            ToldItem(
                number,
                parts[place],
                None if which is None else self.graphs[which[place]],
                None if arms is None else arms[place],
                costs=None if costs is None else costs[place],
            )
            for place, number in enumerate(self.numbers)
        ]

    def _parts(self, values: np.ndarray) -> list[TellableLosses]:
        """Return losses or costs, decision by decision."""
        ends = np.cumsum(self.sizes)[:-1]
        parts: list[list[float]] = [part.tolist() for part in np.split(values, ends)]
        if self.reveals is None:
            return list(parts)
        names = np.split(np.array(list(map(str, self.reveals)), object), ends)
        return [dict(zip(of, part, strict=True)) for of, part in zip(names, parts, strict=True)]


class Settled(NamedTuple):
    """What became of feedback or of a cancellation."""

    round: int  #: that of the key, where there are keys; 0 in columns, which do not say it
    duplicate: bool
    learned: bool = False


def check_arm(told: int | None, played: int) -> None:
    """Refuse what another arm has revealed than the one that the decision plays."""
    if told is not None and told != played:
        text = f"The decision plays arm {played}, and this is what arm {told} revealed."
        raise ServiceError(text, status=422, code="invalid", path="body.arm", value=told)


def placed(
    error: ServiceError, place: int, told: ToldItems | None = None, first: int = 0, decision: str | None = None
) -> ServiceError:
    """Return the error of one decision of a batch with the column and the place of what is wrong: body.arms.3.

    Args:
        error: as it would be raised for the decision alone.
        place: of the decision in the batch.
        told: the batch.
        first: where the losses of the decision begin among all.
        decision: its id, where this is the error of the whole batch, whose text then names it: whoever sends a large
            batch in several requests does not count decisions as they do.
    """
    part, _, name = (error.path or "").removeprefix("body.").partition(".")
    path = f"body.{_COLUMNS.get(part, 'ids')}.{place}"
    if part in {"losses", "costs"}:
        at = None if told is None else told.find_loss(place, first, name)
        path = f"body.{part}" if at is None else f"body.{part}.{at}"
    text = str(error) if decision is None else f"Decision {decision}: {error}"
    return ServiceError(text, status=error.status, code=error.code, path=path, value=error.value)


def check_plain(scale: Scale | None) -> None:
    """Refuse losses in [0, 1] where a scale would make others of them, and the wrong ones would be learned."""
    if scale is not None:
        low, high = sorted((scale.best, scale.worst))
        text = (
            f"These are losses in [0, 1] already, and this experiment has a scale: it is told numbers from {low:g} to"
        )
        raise _wrong(f"{text} {high:g}. Tell those, or make an experiment without a scale.", "body.plain", value=True)


def refused(error: LossError, told: NumberedLosses, arms: list[int]) -> ServiceError:
    """Return the error for losses that cannot be told, with the place of the wrong one; a list has those of `arms`."""
    if error.arm is None:
        return _wrong(str(error), "body.losses", None)
    place = error.arm if isinstance(told, Mapping) else arms.index(error.arm)
    value = told.get(place) if isinstance(told, Mapping) else told[place]
    return _wrong(str(error), f"body.losses.{place}", value)


def checked_costs(
    experiment: LiveExperiment, told: NumberedLosses | None, graph: FeedbackGraph, arm: int
) -> Floats | None:
    """Return the costs of what the arm of a decision reveals in a graph, or refuse them; None without a ceiling."""
    try:
        return experiment.costs_of(told, graph, arm)
    except CostError as error:
        raise _wrong(str(error), "body.costs", None) from error


def by_number(told: TellableLosses, labels: list[str] | None, column: str = "losses") -> NumberedLosses:
    """Return losses or costs with the numbers of arms, where some are called by their labels; digits are a number."""
    if not isinstance(told, Mapping):
        return told
    found: dict[int, float] = {}
    for name, loss in told.items():
        arm = _NUMBERS.get(name)
        if arm is None:
            arm = number_or_label(name)
        number = arm if isinstance(arm, int) else number_of(arm, labels, f"{column}.{name}")
        if number in found:
            what = f"Arm {number} is there twice, also as {name!r}. Tell one value of it."
            raise _wrong(what, f"body.{column}.{name}", loss)
        found[number] = loss
    return found


def number_or_label(text: str) -> int | str:
    """Return what an arm is called in a field name or in an address: its number if these are digits, or its label."""
    return int(text) if _NUMBER.fullmatch(text) else text


def number_of(label: str, labels: list[str] | None, part: str) -> int:
    """Return the number of the arm with a label, or refuse one that no arm has."""
    if labels is None or label not in labels:
        known = "The arms of this experiment have no labels." if labels is None else nearest(label, labels).strip()
        raise _wrong(f"No arm is called {label[:60]!r}. {known}".strip(), f"body.{part}", label)
    return labels.index(label)


def without_absent(losses: NumberedLosses, arms: list[int], there: AbstractSet[int]) -> NumberedLosses:
    """Return the losses of arms without those that were absent; where they were left out, nothing changes."""
    if isinstance(losses, Mapping):
        absent = set(arms) - there
        return {arm: loss for arm, loss in losses.items() if arm not in absent}
    if len(losses) != len(arms):
        return losses
    return [loss for arm, loss in zip(arms, losses, strict=True) if arm in there]


def _wrong(message: str, path: str, value: object) -> ServiceError:
    return ServiceError(message, status=422, code="invalid", path=path, value=value)
