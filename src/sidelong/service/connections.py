"""Connections with deadlines and limits, which uvicorn does not have: it waits for ever, and for any number of headers.

Without this, anyone who can reach the port keeps others out, by opening connections and saying nothing, or fills the
memory with replies that are not read. A connection is authenticated once a request with a valid token came over it, and
is then spared: where there are too many, the oldest of those that are not is closed.
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
_LEAST = 2**16  # bytes of a reply that must be read while a request may take to come
_UNREAD = 2**14  # bytes of replies that may wait for a reader who has no deadline
_REFUSED = 50  # connections beyond the limit, which get a reply that says so
_TESTED = ("0.35", "0.54")
_log = logging.getLogger("sidelong.service")


def protocol(most: int = 2000) -> Any:
    """Return the class of connections for uvicorn, or the name of its own where this uvicorn is not as expected.

    With `most` authenticated connections at once, requests over others are marked as too many, for the application to
    refuse. A single address has at most half as many connections that are not authenticated.
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
    TimedConnection.registry = Registry(most)
    return TimedConnection


class Registry:
    """All connections of a server; those that are not authenticated from the oldest to the newest."""

    def __init__(self, most: int = 2000) -> None:
        self._most = most
        self._unauthenticated: dict[TimedConnection, None] = {}
        self._of_address: dict[str, dict[TimedConnection, None]] = {}
        self._authenticated: set[TimedConnection] = set()

    def is_full_for(self, connection: TimedConnection) -> bool:
        """Tell whether there are too many connections for this one to be served."""
        return len(self._authenticated) >= self._most and connection not in self._authenticated

    def add(self, connection: TimedConnection) -> None:
        """Take a new connection in; close the oldest that is not authenticated if there are too many."""
        same = self._of_address.setdefault(connection.address, {})
        self._unauthenticated[connection] = same[connection] = None
        oldest = None
        if len(same) > max(self._most // 2, 1):
            oldest = next(iter(same))
        elif len(self._unauthenticated) > max(self._most - len(self._authenticated), _REFUSED):
            oldest = next(iter(self._unauthenticated))
        if oldest is not None:
            self.remove(oldest)
            oldest.transport.abort()

    def authenticate(self, connection: TimedConnection) -> None:
        """Spare a connection from now on."""
        if connection in self._unauthenticated:
            self.remove(connection)
            self._authenticated.add(connection)

    def remove(self, connection: TimedConnection) -> None:
        """Let go of a connection."""
        self._authenticated.discard(connection)
        self._unauthenticated.pop(connection, None)
        same = self._of_address.get(connection.address, {})
        same.pop(connection, None)
        if not same:
            self._of_address.pop(connection.address, None)


class TimedConnection(HttpToolsProtocol):
    """A connection that waits for the head of a request, and for its reply to be read, as long as between requests."""

    registry = Registry()
    address = ""  #: of the client
    _stalled: asyncio.TimerHandle | None = None
    _unsent = 0
    _waiting: asyncio.TimerHandle | None = None
    _incomplete = True  # no head of a request has come, or a part of one
    ended = True  #: all of the last request has come
    _size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        # More than that which is not read has a deadline of its own, less has that of a connection without requests.
        transport.set_write_buffer_limits(high=_UNREAD)
        self.address = self.client[0] if self.client else ""
        self._wait()
        self.registry.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self.registry.remove(self)
        self._wait_no_more()
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to watch whether the client reads."""
        super().pause_writing()
        self._unsent = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(self.timeout_keep_alive, self._check_reader)

    def resume_writing(self) -> None:
        """Note that all was read."""
        self._stop_watching()
        super().resume_writing()

    def _check_reader(self) -> None:
        """End a connection over which hardly anything was read since the last time."""
        left = self.transport.get_write_buffer_size()
        if left > self._unsent - _LEAST:
            self.transport.abort()
        else:
            self._unsent = left
            self._stalled = self.loop.call_later(self.timeout_keep_alive, self._check_reader)

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that was silent for long, and do not wait for a client that does not even read."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def _stop_watching(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def data_received(self, data: bytes) -> None:
        """Take what has come; most requests come in one piece."""
        if self.ended and self.timeout_keep_alive_task is not None:
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
        self._incomplete, self.ended = True, False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """Note that all of it has come."""
        self.ended = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        """Note that its head is complete."""
        self._incomplete, self._size = False, 0
        self._wait_no_more()
        self.scope["state"]["connection"] = self
        super().on_headers_complete()
        if self.scope["method"] != "HEAD":  # whose replies have no body
            self.cycle.transport = _JoinedWrites(self.transport)  # type: ignore[assignment]

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class _JoinedWrites:
    """What a reply is written to: its head goes out with the beginning of its body, by one call of the system.

    uvicorn writes them one after the other, and uvloop passes on each write at once. A call takes a tenth of the time
    of a request, and wakes the client.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._begun = False
        self._head = b""  # until the body comes
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if self._begun:
            self._transport.write(self._head + data)
            self._head = b""
        elif data.startswith(b"HTTP/1.1 100 "):  # the client waits for it to send the body
            self._transport.write(data)
        else:
            self._begun, self._head = True, data

    def close(self) -> None:
        if self._head:
            self._transport.write(self._head)
        self._transport.close()


class _Wire(asyncio.Transport):
    """The end of a connection to nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.closed = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

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
    begun = (asking._waiting is not None, asking._incomplete, asking.ended)  # noqa: SLF001
    asking.data_received(b"Host: x\r\n\r\n")
    complete = (asking._waiting is None, asking._incomplete, asking.ended)  # noqa: SLF001
    endless.data_received(b"GET / HTTP/1.1\r\nX: " + _MOST * b"y")
    for _ in range(20):  # a timer of no seconds, and an answer
        await asyncio.sleep(0)
    seen = (begun, complete, silent.closed, answered.written[9:12], refused.written[9:12], refused.closed)
    if seen != ((True, True, False), (True, False, True), True, b"204", b"400", True):
        raise RuntimeError(f"a trial gave {seen}")
