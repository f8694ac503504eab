"""What feedback says of a decision: its losses, brought into the order of the arms that were revealed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np

from sidelong.agent.rules import listed
from sidelong.checks import nearest
from sidelong.errors import OutcomeError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from sidelong.graphs import FeedbackGraph
    from sidelong.outcomes.scale import Scale
    from sidelong.service.store.graphs import KnownGraph

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
#: By arm, or in the order of the revealed arms.
TellableLosses: TypeAlias = Mapping[str, float] | list[float]


class ToldItem(NamedTuple):
    """Feedback: of which decision, and what."""

    number: int
    losses: TellableLosses
    graph: FeedbackGraph | KnownGraph | str | None = None
    arm: int | str | None = None  #: that it is about, by number or label, if whoever tells it says so
    plain: bool = False  #: whether these are losses from 0 to 1 and no numbers of a scale, whoever is told


class FeedbackColumns(NamedTuple):
    """Feedback about several decisions, with the losses of all of them in the order of what each reveals."""

    numbers: list[int]
    sizes: list[int]  #: how many losses each decision has
    losses: np.ndarray
    graphs: Sequence[FeedbackGraph | KnownGraph | str | None] = ()
    graph_of: list[int] | None = None  #: for each decision, which graph came with its outcome
    arms: list[int | str] | None = None  #: that were played, by number or label, if whoever tells it says so
    plain: bool = False  #: as in `ToldItem`

    def items(self) -> list[ToldItem]:
        """Return the same, decision by decision."""
        parts = np.split(self.losses, np.cumsum(self.sizes)[:-1])
        which, arms = self.graph_of, self.arms
        return [
            ToldItem(
                number,
                parts[place].tolist(),
                None if which is None else self.graphs[which[place]],
                None if arms is None else arms[place],
            )
            for place, number in enumerate(self.numbers)
        ]


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


def placed(error: ServiceError, place: int, decision: str | None = None) -> ServiceError:
    """Return an error with the place of its item in front of its path: body.items.3.losses.0.

    If it is the error of the whole batch, its text names the `decision`: whoever sends a large batch in several
    requests does not count items as they do.
    """
    part = "id" if error.path == "path" else (error.path or "").partition(".")[2]
    path = f"body.items.{place}" + (f".{part}" if part else "")
    text = str(error) if decision is None else f"Decision {decision}: {error}"
    return ServiceError(text, status=error.status, code=error.code, path=path, value=error.value)


def as_losses(told: TellableLosses, scale: Scale | None, *, plain: bool = False) -> TellableLosses:
    """Return numbers of a scale, or losses where there is none, as losses; refuse what is outside of [0, 1] or of it.

    `plain` ones are losses already. A scale would make others of them, and the wrong ones would be learned.
    """
    if scale is None:
        for arm, loss in _pairs(told):
            if not 0.0 <= loss <= 1.0:
                which = f"of arm {arm}" if isinstance(told, Mapping) else f"at place {arm}"
                text = f"The loss {which} must be a number in [0, 1], not {loss!r}. It is never clipped."
                raise _wrong(text, f"body.losses.{arm}", loss)
        return told
    low, high = sorted((scale.best, scale.worst))
    if plain:
        text = (
            f"These are losses in [0, 1] already, and this experiment has a scale: it is told numbers from {low:g} to"
        )
        raise _wrong(f"{text} {high:g}. Tell those, or make an experiment without a scale.", "body.plain", plain)
    try:
        return cast("TellableLosses", scale.losses(told))
    except OutcomeError as error:
        arm, value = next((arm, value) for arm, value in _pairs(told) if not low <= value <= high)
        raise _wrong(str(error), f"body.losses.{arm}", value) from error


def by_number(told: TellableLosses, labels: list[str] | None) -> TellableLosses:
    """Return losses by arm with the number of each arm, where some are called by their labels; digits are a number."""
    if not isinstance(told, Mapping) or all(map(_NUMBER.fullmatch, told)):
        return told
    found: dict[str, float] = {}
    for name, loss in told.items():
        number = name if _NUMBER.fullmatch(name) else str(number_of(name, labels, f"losses.{name}"))
        if number in found:
            raise _wrong(f"A loss of arm {number} was told twice, also as {name!r}.", f"body.losses.{name}", loss)
        found[number] = loss
    return found


def number_of(label: str, labels: list[str] | None, part: str) -> int:
    """Return the number of the arm with a label, or refuse one that no arm has."""
    if labels is None or label not in labels:
        known = "The arms of this experiment have no labels." if labels is None else nearest(label, labels).strip()
        raise _wrong(f"No arm is called {label[:60]!r}. {known}".strip(), f"body.{part}", label)
    return labels.index(label)


def _pairs(told: TellableLosses) -> Iterable[tuple[str | int, float]]:
    return told.items() if isinstance(told, Mapping) else enumerate(told)


def matched(losses: TellableLosses, reveals: list[int]) -> np.ndarray:
    """Return the losses in the order of the revealed arms, one for each and none for another."""
    if not isinstance(losses, Mapping):
        if len(losses) != len(reveals):
            raise _wrong(
                f"Losses without arms must be one for each of the {len(reveals)} revealed arms, in their order; "
                f"{len(losses)} were given. The arms are {listed(reveals)}.",
                "body.losses",
                len(losses),
            )
        return np.array(losses, np.float64)
    try:
        values = [losses[str(arm)] for arm in reveals]
    except KeyError as error:
        arm = error.args[0]
        raise _wrong(
            f"The loss of arm {arm} was revealed and is missing. Tell all of {listed(reveals)}.",
            f"body.losses.{arm}",
            None,
        ) from None
    if len(losses) != len(values):
        arm = min(losses.keys() - set(map(str, reveals)), key=int)
        raise _wrong(
            f"Arm {arm} was not revealed, and a loss was told for it. The revealed arms are {listed(reveals)}. "
            f"If only the outcome shows what is revealed, tell it with a graph.",
            f"body.losses.{arm}",
            losses[arm],
        )
    return np.array(values, np.float64)


def without_absent(losses: TellableLosses, arms: list[int], there: AbstractSet[int]) -> TellableLosses:
    """Return the losses of arms without those that were absent; where they were left out, nothing changes."""
    if isinstance(losses, Mapping):
        absent = {str(arm) for arm in arms if arm not in there}
        return {arm: loss for arm, loss in losses.items() if arm not in absent}
    if len(losses) != len(arms):
        return losses
    return [loss for arm, loss in zip(arms, losses, strict=True) if arm in there]


def _wrong(message: str, path: str, value: object) -> ServiceError:
    return ServiceError(message, status=422, code="invalid", path=path, value=value)
