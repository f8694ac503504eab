"""A turn ahead of the transaction that writes what happened in it.

A batch of ten thousand keys takes longer than a flush of the disk. If it ran in the transaction, all others would wait
for it. So it runs before, in a thread of its own, while the lock of its experiment is held: the experiment changes in
memory, and the thread that writes gets the events. If another server has written to the same experiment meanwhile, the
turn is taken again, in the transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sidelong.service.store.graphs import blob_of
from sidelong.service.store.rules import Command, Turn

if TYPE_CHECKING:
    from sidelong.service.store.database import Writing
    from sidelong.service.store.experiment import LiveExperiment


class Overtaken(Exception):  # noqa: N818  # no error: it is done again
    """The outcome of a turn ahead during which another server has written to the same experiment."""


@dataclass
class Ahead(Command):
    """What commands did in a turn of their own, to be written."""

    of: str
    turn: Turn
    head: int  #: the last event before it
    outcomes: list[Any]  #: of the commands, one for each

    def meets(self, writing: Writing, live: LiveExperiment | None, head: int) -> Turn:
        """Return the turn, to be written behind an event, if that is what it was ahead of; or raise `Overtaken`."""
        met = live is self.turn.experiment and head == self.head
        if not met or not all(writing.hold(blob_of(id_)) for id_ in sorted(self.turn.held)):
            raise Overtaken
        self.turn.writing = writing
        return self.turn

    def is_at(self, experiment: int) -> bool:
        """Tell whether it was a turn at an experiment."""
        return self.turn.experiment.identity.id == experiment
