"""How fast each sender may go: a bucket of tokens for each kind of request, which fills at a steady rate."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from sidelong.errors import ServiceError
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.settings import Settings

__all__ = ["Limits"]

_SENDERS = 10_000


class Limits:
    """The buckets. Feedback has one of its own, larger: what was decided can always be told."""

    def __init__(self, settings: Settings, now: Callable[[], float] = time.monotonic) -> None:
        self._rates = {
            Scope.DECIDE: settings.decide_rate,
            Scope.FEEDBACK: settings.feedback_rate,
            Scope.READ: settings.read_rate,
            Scope.ADMIN: settings.read_rate,
        }
        self._burst = settings.burst
        self._now = now
        self._buckets: OrderedDict[tuple[str, Scope], tuple[float, float]] = OrderedDict()

    def take(self, sender: str, scope: Scope) -> None:
        """Take one from the sender's bucket, or refuse."""
        rate, now = self._rates[scope], self._now()
        most = max(rate * self._burst, 1.0)
        level, since = self._buckets.pop((sender, scope), (most, now))
        level = min(level + (now - since) * rate, most)
        enough = level >= 1.0
        self._buckets[sender, scope] = level - enough, now
        if len(self._buckets) > _SENDERS:
            self._buckets.popitem(last=False)
        if not enough:
            raise ServiceError(
                f"At most {rate:g} requests of this kind a second. Wait, then send it again.",
                status=429,
                code="too_fast",
                retry_after=(1.0 - level) / rate,
            )
