"""Connections are watched by a class over uvicorn's httptools; without it, the service runs with uvicorn's own.

`test_requests.py` has what users see of it: silent connections are closed, and endless headers refused.
"""

import asyncio
import json
import subprocess
import sys
import urllib.request

import uvicorn
from uvicorn.server import ServerState

from sidelong.service.connections import TimedConnection

PROGRAM = """
import sys
sys.modules["httptools"] = None  # which cannot be imported then
from sidelong.service.serve import serve
from sidelong.service.settings import Settings
serve(Settings(port=0, database="sqlite:///" + sys.argv[1]), lambda address: print(address, flush=True))
"""


def test_a_uvicorn_without_httptools_is_noticed_and_the_service_runs(tmp_path):
    program = [sys.executable, "-W", "error", "-c", PROGRAM, tmp_path / "service.db"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            with urllib.request.urlopen(server.stdout.readline().strip() + "/health", timeout=60) as reply:
                assert reply.status == 200
        finally:
            server.terminate()
            _, log = server.communicate()
    [warning] = [line for line in map(json.loads, log.splitlines()) if line["level"] == "warning"]
    assert warning["event"] == "connections not watched"
    assert "pip install 'uvicorn>=" in warning["why"]


def test_the_uvicorn_that_is_installed_is_as_expected(server):
    assert server.get("/health")[0] == 200
    assert "connections not watched" not in server.log.read_text()


class Wire(asyncio.Transport):
    """Keeps what is written, write by write."""

    def __init__(self):
        super().__init__()
        self.writes, self.closed = [], False

    def write(self, data):
        self.writes.append(bytes(data))

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def get_write_buffer_size(self):
        return 0

    def set_write_buffer_limits(self, high=None, low=None):
        pass


def writes(request, reply):
    """Return what is written where an application answers a request with these messages, and whether it is closed."""

    async def answer(_, receive, send):
        await receive()
        for message in reply:
            await send(message)
        if not reply or reply[-1]["type"] == "http.response.start":
            raise RuntimeError("no body")

    async def run():
        config = uvicorn.Config(answer, log_config=None, lifespan="off", ws="none")
        connection, wire = TimedConnection(config, ServerState(), {}, asyncio.get_running_loop()), Wire()
        connection.connection_made(wire)
        connection.data_received(request)
        for _ in range(20):
            await asyncio.sleep(0)
        connection.connection_lost(None)
        return wire

    wire = asyncio.run(run())
    return wire.writes, wire.closed


HEAD = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]}


def body(text, *, more=False):
    return {"type": "http.response.body", "body": text, "more_body": more}


def test_a_reply_is_one_write():
    [written], _ = writes(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", [HEAD, body(b"four")])
    assert written.startswith(b"HTTP/1.1 200 OK\r\n")
    assert written.endswith(b"\r\n\r\nfour")


def test_a_reply_in_parts_has_its_head_in_the_first():
    [first, last], _ = writes(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", [HEAD, body(b"fo", more=True), body(b"ur")])
    assert first.endswith(b"\r\n\r\nfo")
    assert last == b"ur"


def test_a_reply_without_a_body_is_written():
    [written], _ = writes(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n", [HEAD, body(b"")])
    assert written.endswith(b"content-length: 4\r\n\r\n")


def test_a_client_that_waits_for_100_gets_it_before_the_reply():
    request = b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
    [going_on], _ = writes(request, [HEAD, body(b"four")])
    assert going_on == b"HTTP/1.1 100 Continue\r\n\r\n"
    [_, written], _ = writes(request + b"{}", [HEAD, body(b"four")])
    assert written.endswith(b"\r\n\r\nfour")


def test_a_head_without_its_body_is_written_before_the_connection_closes():
    [written], closed = writes(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", [HEAD])
    assert written.startswith(b"HTTP/1.1 200 OK\r\n")
    assert closed
