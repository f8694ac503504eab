"""Writing snapshots, aside of everything else.

A snapshot only makes the next start faster. So one thread writes them, no request waits for it, and one that cannot be
written is tried again after twice as many events each time.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidelong.service.store.replay import Replayed
    from sidelong.service.store.store import Store

_log = logging.getLogger("sidelong.service")


class Saving:
    """The thread that writes snapshots."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._guard = threading.Condition()
        self._due: OrderedDict[Replayed, None] = OrderedDict()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="saving", daemon=True)
        self._thread.start()

    def note(self, changed: Replayed) -> None:
        """Write a snapshot of an experiment, if it had enough events."""
        if self._is_stale(changed):
            with self._guard:
                self._due[changed] = None
                self._guard.notify()

    def _is_stale(self, replayed: Replayed) -> bool:
        settings = self._store.settings
        return replayed.is_stale(settings.snapshot_every, settings.max_key_bytes)

    def close(self) -> None:
        """Stop after the snapshot that is being written."""
        with self._guard:
            self._stopping = True
            self._guard.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._guard:
                while not self._due and not self._stopping:
                    self._guard.wait()
                if self._stopping:
                    return
                replayed, _ = self._due.popitem(last=False)
            if self._is_stale(replayed):
                try:
                    replayed.save(self._store.database)
                except Exception as error:  # noqa: BLE001  # this thread must go on
                    about = {"experiment": replayed.identity.name, "why": str(error)}
                    _log.warning("no snapshot", extra=about)
