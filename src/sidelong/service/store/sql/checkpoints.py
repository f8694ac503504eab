"""Moving what SQLite has written ahead into its file, aside of whoever commits.

By itself SQLite does it in the commit that makes the log long, and that one waits for megabytes to be written. Here a
thread does it: nearly all of it while others write on, and the last few pages in a turn of its own, after which the log
begins anew.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from sidelong.service.store.locks import FairLock

#: Pages that may be written ahead, as SQLite has it by itself.
MOST = 1000
#: Pages that are moved while others wait.
_FEW = 100
_TRIES = 4
_PATIENCE = 5.0


class Checkpoints:
    """The thread that moves. It begins when there is something to move."""

    def __init__(self, engine: Engine, turn: FairLock) -> None:
        self._engine = engine
        self._turn = turn
        self.pages = 0  #: about as many are written ahead; whoever writes counts on
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def begin(self) -> None:
        """Move what is written ahead, soon."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="checkpoints", daemon=True)
            self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """Stop."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopping:
                return
            try:
                self._move()
            except DBAPIError:  # the disk is full, or the file is gone: whoever writes next is told
                self.pages = 0

    def _move(self) -> None:
        for _ in range(_TRIES):
            if self._moved() <= _FEW:
                break
        if self._turn.acquire(_PATIENCE):
            try:
                self.pages = self._moved()  # which are those that somebody reads still
            finally:
                self._turn.release()

    def _moved(self) -> int:
        """Move what can be moved while others read and write; return how many pages are left."""
        with self._engine.connect() as connection:
            _, pages, moved = connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").one()
        return max(int(pages - moved), 0)
