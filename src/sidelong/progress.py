"""A line on the terminal for what takes longer than two seconds."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


_PATIENCE = 2.0  # seconds


class ProgressLine:
    """Shows how far a simulation is. Silent where nobody looks: if stderr is neither a terminal nor a notebook's."""

    def __init__(self, *, shown: bool | None) -> None:
        self._shown = _somebody_looks() if shown is None else shown
        self._begun = time.monotonic()
        self._next = self._begun + _PATIENCE
        self._width = 0

    @contextlib.contextmanager
    def saying(self, text: str, after: float = _PATIENCE) -> Iterator[None]:
        """Show what is being done, if that takes longer than so many seconds."""
        timer = threading.Timer(after, self._write, [f"{text} ..."])
        timer.daemon = True
        if self._shown:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()
            if self._shown:
                timer.join()  # it may be writing
            self.close()
            self._begun = time.monotonic()
            self._next = self._begun + _PATIENCE

    def __call__(self, done: int, total: int) -> None:
        """Tell how many rounds of all are done."""
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + 0.2
        if done == total:
            self._write("All rounds are played; summing up the losses of all arms to find the best ...")
            return
        rate = done / (now - self._begun)
        left = (total - done) / rate if rate else 0.0
        bar = "#" * round(24 * done / total)
        self._write(f"[{bar:<24}] {done / total:4.0%}  {rate:,.0f} rounds a second  {duration(left)} left")

    def close(self) -> None:
        """Clear the line."""
        if self._width:
            self._write("")
            sys.stderr.write("\r")
            self._width = 0

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)


def _somebody_looks() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def duration(seconds: float) -> str:
    """Return a time as hours, minutes and seconds."""
    minutes, seconds = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
