"""Connections whose requests must begin in time and stay small: uvicorn waits for ever, and for any number of headers.

Without this, anyone who can reach the port keeps others out, by opening connections and saying nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["TimedConnection"]

_MOST = 2**16  # bytes


class TimedConnection(HttpToolsProtocol):
    """A connection that waits for the head of a request as long as between two requests, and not longer."""

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
        super().on_headers_complete()

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.timeout_keep_alive, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
