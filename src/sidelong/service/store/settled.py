"""What feedback says of a decision, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sidelong.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.graphs import KnownGraph


class ToldItem(NamedTuple):
    """Feedback: of which decision, and what."""

    number: int
    losses: Mapping[str, float] | list[float]  #: by arm, with its number or label; or in the order of what is revealed
    graph: FeedbackGraph | KnownGraph | str | None = None
    arm: int | str | None = None  #: that it is about, if whoever tells it says so
    plain: bool = False  #: whether these are losses from 0 to 1 and no numbers of a scale, whoever is told


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
