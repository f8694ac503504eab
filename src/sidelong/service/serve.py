"""Running the service until it is told to stop."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import ipaddress
import logging
import math
import resource
import signal
import socket
import sys
from typing import TYPE_CHECKING

import uvicorn

from sidelong._jit import load_compiler
from sidelong._version import __version__
from sidelong.errors import ServiceError
from sidelong.service import logs
from sidelong.service.connections import protocol
from sidelong.service.http.app import Application
from sidelong.service.store.kinds import open_database
from sidelong.service.store.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.settings import Settings

_log = logging.getLogger("sidelong.service")
#: Seconds that a thread which computes goes on while another one waits. A decision passes several threads and the
#: database, and each time it may wait for so long; Python's own 5 ms would make that 50.
_SWITCH = 5e-4


def serve(settings: Settings, ready: Callable[[str], None] = lambda _: None) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is told the address once it answers."""
    logs.configure()
    _give_memory_back()
    _allow_connections(settings.max_connections)
    sys.setswitchinterval(_SWITCH)
    _check_tokens(settings)
    load_compiler()  # which takes a third of a second, and no request waits for it then
    listening = _bind(settings)
    host, port = listening.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    app = Application(settings)
    connections = protocol(settings.max_connections)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # ours has more, and no queries
        server_header=False,
        date_header=False,
        timeout_keep_alive=math.ceil(settings.request_timeout),
        timeout_graceful_shutdown=5,
        limit_concurrency=settings.max_connections if connections == "auto" else None,
        http=connections,
        ws="none",
    )
    _log.info("starting", extra={"address": address, "version": __version__})
    for signal_ in (signal.SIGINT, signal.SIGTERM):  # which uvicorn raises again when it has stopped
        signal.signal(signal_, lambda *_: sys.exit(0))
    try:
        _Announcing(config, app, lambda: ready(address)).run(sockets=[listening])
    finally:
        logs.close()


def _allow_connections(most: int) -> None:
    """Ask for as many open files as there may be connections, and some more for the database."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + 200
    with contextlib.suppress(OSError, ValueError):
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft > resource.getrlimit(resource.RLIMIT_NOFILE)[0]:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _give_memory_back() -> None:
    """Let glibc keep one heap for all threads, and return large arrays to the system: it saves a tenth of memory."""
    most_arenas, mmap_threshold = -8, -3
    with contextlib.suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(most_arenas, 1)
        library.mallopt(mmap_threshold, 2**18)


class _Announcing(uvicorn.Server):
    """A server that says when it is ready, and to its streams when it stops."""

    def __init__(self, config: uvicorn.Config, app: Application, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What is loaded by now stays. Without this the collector of garbage looks through it again and again, which
        # takes a seventh of the processor time of a request.
        gc.collect()
        gc.freeze()
        if self.started:
            self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.server.tail.stop()
        await super().shutdown(sockets)


def _check_tokens(settings: Settings) -> None:
    """Refuse to be open to other machines."""
    database = open_database(settings.database, settings.busy_timeout)
    open_ = not Tokens(database).list()
    database.close()
    if open_ and not _is_local(settings.host):
        raise ServiceError(
            f"Without a token the service listens on this machine only, not on {settings.host}. "
            f"Make one first: sidelong token create NAME --scope admin"
        )


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        listening.listen(2048)  # whoever comes from now on waits, and is not turned away
    except OSError as error:
        listening.close()
        raise ServiceError(f"{settings.host}:{settings.port} cannot be listened on: {error.strerror}.") from error
    return listening
