"""The log: one JSON object a line on standard error, for machines; never a token, a body or a query."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import re
import threading
import time
from typing import BinaryIO

#: What may stand in a line beside time, level and event. Anything else is left out.
_FIELDS = (
    "request",
    "trace",
    "method",
    "path",
    "status",
    "milliseconds",
    "token",
    "client",
    "experiment",
    "sequence",
    "command",
    "why",
    "address",
    "database",
    "version",
)


_BLOCK = 2**15  # bytes that are written at once
_ROOM = 2**20  # bytes that wait for whoever reads the log
_ENCODER = json.JSONEncoder(default=str)
_SECRET = re.compile(r"(sl_[0-9a-f]{8}_)[\w-]+")


class _Line(logging.Formatter):
    """Makes a line of a record."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {"time": f"{moment}.{int(record.msecs):03}Z", "level": record.levelname.lower()}
        line["event"] = record.getMessage()
        values = record.__dict__
        line.update((name, values[name]) for name in _FIELDS if name in values)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _SECRET.sub(r"\1...", _ENCODER.encode(line))  # someone may have put a token into an address


class _Lines(logging.Handler):
    """Gives lines to a thread that writes them, in blocks, but warnings at once.

    Where they go may be slow, or a pipe that nobody reads. Whoever logs never waits for it: lines that find no room are
    lost, and how many is logged when there is room again.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._guard = threading.Condition()
        self._block: list[str] = []
        self._size = self._lost = 0
        self._is_due = self._is_writing = False
        self._thread = threading.Thread(target=self._work, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        with self._guard:
            if self._size + len(line) > _ROOM:
                self._lost += 1
                return
            self._block.append(line)
            self._size += len(line)
            if record.levelno >= logging.WARNING or self._size > _BLOCK:
                self.flush()

    def flush(self) -> None:
        """Let what there is be written, now."""
        with self._guard:
            self._is_due = True
            self._guard.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until everything is written, for so many seconds at most."""
        self.flush()
        with self._guard:
            self._guard.wait_for(lambda: not (self._block or self._is_writing), seconds)

    def _work(self) -> None:
        while True:
            with self._guard:
                self._guard.wait_for(lambda: self._is_due and (self._block or self._lost))
                block, lost, self._is_writing = self._block, self._lost, True
                self._block, self._size, self._lost, self._is_due = [], 0, 0, False
            if lost:
                about = logging.makeLogRecord(
                    {"msg": "log lines lost", "levelno": logging.WARNING, "levelname": "WARNING"}
                )
                about.why = f"nobody read {lost:,} lines"
                block.append(self.format(about))
            with contextlib.suppress(OSError, ValueError):  # a full disk, a closed file
                self._file.write("".join(f"{line}\n" for line in block).encode())
                self._file.flush()
            with self._guard:
                self._is_writing = False
                self._guard.notify_all()


def flush() -> None:
    """Write out what has been logged, if that is possible: whoever logs goes on without a log."""
    for handler in logging.getLogger("sidelong.service").handlers:
        handler.flush()


def close() -> None:
    """Write out what has been logged, and wait for it a moment."""
    for handler in logging.getLogger("sidelong.service").handlers:
        if isinstance(handler, _Lines):
            handler.wait(1.0)


def configure(level: int = logging.INFO) -> None:
    """Send the log of the service, and of the server below it, to standard error."""
    # No line of the log says which thread logs, and from where: to find it out takes longer than to write the line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001  # as the documentation of Python says
    handler = _Lines(open(2, "wb", buffering=0, closefd=False))  # noqa: SIM115  # never closed
    handler.setFormatter(_Line())
    for name in ("sidelong.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
    atexit.register(close)
