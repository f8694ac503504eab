"""The log: one JSON object a line on standard error, for machines; never a token, a body or a query."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import re
import sys
import time
from typing import TextIO

#: What may stand in a line beside time, level and event. Anything else is left out.
_FIELDS = (
    "request",
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


_SECRET = re.compile(r"(sl_[0-9a-f]{8}_)[\w-]+")


class _Lines(logging.Formatter):
    """Makes a line of a record."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {"time": f"{moment}.{int(record.msecs):03}Z", "level": record.levelname.lower()}
        line["event"] = record.getMessage()
        values = record.__dict__
        line.update((name, values[name]) for name in _FIELDS if name in values)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _SECRET.sub(r"\1...", json.dumps(line, default=str))  # someone may have put a token into an address


class _Stream(logging.StreamHandler[TextIO]):
    """Writes lines in blocks, but warnings at once: a flush for each request would cost as much as the request."""

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        if record.levelno >= logging.WARNING:
            flush()

    def flush(self) -> None:
        """Wait for more; `flush` of this module does it."""


def flush() -> None:
    """Write out what has been logged, if that is possible: whoever logs goes on without a log."""
    with contextlib.suppress(OSError, ValueError):  # a full disk, a pipe that nobody reads, a closed file
        sys.stderr.flush()


def configure(level: int = logging.INFO) -> None:
    """Send the log of the service, and of the server below it, to standard error."""
    with contextlib.suppress(AttributeError):  # what tests put in its place
        sys.stderr.reconfigure(line_buffering=False, write_through=False)  # type: ignore[union-attr]
    handler = _Stream(sys.stderr)
    handler.setFormatter(_Lines())
    for name in ("sidelong.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
    atexit.register(flush)
