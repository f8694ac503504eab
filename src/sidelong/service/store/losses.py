"""The losses of a request, brought into the order of the arms that were revealed."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import numpy as np

from sidelong.agent.feedback import listed
from sidelong.errors import ServiceError

#: By arm, or in the order of the revealed arms.
Told: TypeAlias = Mapping[str, float] | list[float]


def without_absent(losses: Told, revealed: list[int], there: AbstractSet[int]) -> Told:
    """Return the losses of what an outcome revealed without those of arms that were not there for the decision.

    Whoever knows which arms were there may have left them out: then nothing changes.
    """
    if isinstance(losses, Mapping):
        absent = {str(arm) for arm in revealed if arm not in there}
        return {arm: loss for arm, loss in losses.items() if arm not in absent}
    if len(losses) != len(revealed):
        return losses
    return [loss for arm, loss in zip(revealed, losses, strict=True) if arm in there]


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
