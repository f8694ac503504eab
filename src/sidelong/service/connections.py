"""Connections whose requests must begin in time and stay small: uvicorn waits for ever, and for any number of headers.

Without this, anyone who can reach the port keeps others out, by opening connections and saying nothing.
It needs a class of uvicorn that is not public. `protocol` tries it before it is used, and where this uvicorn has
another, the service runs with uvicorn's own connections and says so in its log.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import uvicorn

from sidelong._install import pip_install

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.server import ServerState
except ImportError:  # which `protocol` notices
    HttpToolsProtocol = asyncio.Protocol  # type: ignore[assignment,misc]

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_MOST = 2**16  # bytes
_TESTED = ("0.35", "0.54")
_log = logging.getLogger("sidelong.service")


def protocol(most: int = 2000) -> Any:
    """Return the class of connections for uvicorn, or the name of its own where this uvicorn is not as expected.

    With more than `most` connections at once, requests are marked as too many, for the application to refuse.
    """
    try:
        asyncio.run(_check())
    except Exception as error:  # noqa: BLE001  # other parts may fail in any way
        oldest, newest = _TESTED
        known = pip_install(f"'uvicorn>={oldest},<={newest}.99'")
        why = (
            f"uvicorn {uvicorn.__version__} has other parts than this version of sidelong knows ({error!r}): silent "
            f"connections stay open, and headers may have any size. Let only a proxy reach the port, or take one that "
            f"is known. {known}"
        )
        _log.warning("connections not watched", extra={"why": why})
        return "auto"
    TimedConnection.most = most
    return TimedConnection


class TimedConnection(HttpToolsProtocol):
    """A connection that waits for the head of a request as long as between two requests, and not longer."""

    most = 2000
    _waiting: asyncio.TimerHandle | None = None
    _incomplete = True  # no head of a request has come, or a part of one
    _ended = True  # all of the last request has come
    _size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come; most requests come in one piece."""
        if self._ended and self.timeout_keep_alive_task is not None:
            self._incomplete = True  # any byte ends that task, also one that begins nothing
        super().data_received(data)
        if self._incomplete:
            self._size += len(data)
            if self._size > _MOST:
                self.send_400_response("The headers of a request have at most 65,536 bytes here.")
            elif self._waiting is None:
                self._wait()

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        self._incomplete, self._ended = True, False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """Note that all of it has come."""
        self._ended = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        """Note that its head is complete."""
        self._incomplete, self._size = False, 0
        self._wait_no_more()
        self.scope["state"]["full"] = len(self.connections) > self.most
        super().on_headers_complete()

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.timeout_keep_alive, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class _Wire(asyncio.Transport):
    """The end of a connection to nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.closed = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def _check() -> None:
    """Let connections hear nothing, a request in two pieces, and a head without end; raise if one goes wrong."""

    async def answer(_: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def connect() -> tuple[TimedConnection, _Wire]:
        config = uvicorn.Config(answer, log_config=None, lifespan="off", ws="none", timeout_keep_alive=0)
        connection, wire = TimedConnection(config, ServerState(), {}, asyncio.get_running_loop()), _Wire()
        connection.connection_made(wire)
        return connection, wire

    (_, silent), (asking, answered), (endless, refused) = connect(), connect(), connect()
    asking.data_received(b"GET / HTTP/1.1\r\n")
    begun = (asking._waiting is not None, asking._incomplete, asking._ended)  # noqa: SLF001
    asking.data_received(b"Host: x\r\n\r\n")
    complete = (asking._waiting is None, asking._incomplete, asking._ended)  # noqa: SLF001
    endless.data_received(b"GET / HTTP/1.1\r\nX: " + _MOST * b"y")
    for _ in range(20):  # a timer of no seconds, and an answer
        await asyncio.sleep(0)
    seen = (begun, complete, silent.closed, answered.written[9:12], refused.written[9:12], refused.closed)
    if seen != ((True, True, False), (True, False, True), True, b"204", b"400", True):
        raise RuntimeError(f"a trial gave {seen}")
