"""When the next snapshot is written: once the replay that it saves a start is worth the bytes that it takes.

An event that stands alone takes about as long to be replayed as four kilobytes to be written. The decisions of a batch
of keys are replayed together, in a compiled call, and each takes a twentieth of that. So a snapshot of fifty thousand
keys, which is large, is written about every eighth night, and a start replays for a few seconds at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sidelong.service.store.experiment import LiveExperiment

_EVENT, _DECISION = 4096, 192  # bytes that are written to save the replay of an event, and of each further decision
_PATIENCE = 6  # doublings of the pause between snapshots that cannot be written


class _Mark(NamedTuple):
    """How far an experiment had come."""

    events: int
    done: int


class Pace:
    """How often snapshots of an experiment are written."""

    def __init__(self) -> None:
        self.failures = 0  #: in a row
        self._size = 0  # bytes of the last one, without blocks of keys
        self._tried = _Mark(0, 0)

    def is_due(self, live: LiveExperiment, least: int, most: int) -> bool:
        """Tell whether one is to be written, where at least so much must have happened since the last one.

        It is also due if keys take too much of `most` bytes of memory that only a snapshot lets go of.
        """
        if not self.failures and live.needs_saving(most):
            return True
        events = live.head - max(live.saved_at, self._tried.events)
        done = live.done - max(live.saved, self._tried.done)
        patience: int = 2 ** min(self.failures, _PATIENCE)
        worth = _EVENT * events + _DECISION * (done - events)
        return done >= least * patience and worth >= (self._size + live.blocks.unwritten_bytes) * patience

    def tried(self, events: int, done: int) -> None:
        """Note how far the experiment had come when one was last tried."""
        self._tried = _Mark(events, done)

    def failed(self) -> None:
        """Note that it could not be written."""
        self.failures += 1

    def written(self, size: int) -> None:
        """Note that it was written, with so many bytes beside blocks of keys."""
        self.failures, self._size = 0, size
