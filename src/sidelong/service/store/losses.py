"""The losses of a request, brought into the order of the arms that were revealed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from sidelong.agent.rules import listed
from sidelong.checks import nearest
from sidelong.errors import OutcomeError, ServiceError

if TYPE_CHECKING:
    from sidelong.outcomes.scale import Scale

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
#: By arm, or in the order of the revealed arms.
Told: TypeAlias = Mapping[str, float] | list[float]


def as_losses(told: Told, scale: Scale | None, *, plain: bool = False) -> Told:
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
        return cast("Told", scale.losses(told))
    except OutcomeError as error:
        arm, value = next((arm, value) for arm, value in _pairs(told) if not low <= value <= high)
        raise _wrong(str(error), f"body.losses.{arm}", value) from error


def by_number(told: Told, labels: list[str] | None) -> Told:
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


def _pairs(told: Told) -> Iterable[tuple[str | int, float]]:
    return told.items() if isinstance(told, Mapping) else enumerate(told)


def matched(losses: Told, reveals: list[int]) -> np.ndarray:
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


def _wrong(message: str, path: str, value: object) -> ServiceError:
    return ServiceError(message, status=422, code="invalid", path=path, value=value)
