"""A uvicorn that is not as expected: it is noticed, the log says so once, and the service runs."""

import json
import subprocess
import sys
import urllib.request

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sidelong.service import connections


def test_this_uvicorn_is_as_expected(caplog):
    assert connections.protocol() is connections.TimedConnection
    assert not caplog.records


def another():
    raise AssertionError


def nothing(*_):
    return None


@pytest.mark.parametrize(
    "name",
    [
        "__init__",
        "connection_made",
        "data_received",
        "on_headers_complete",
        "on_message_begin",
        "on_message_complete",
        "send_400_response",
    ],
)
@pytest.mark.parametrize("change", [None, another, nothing])
def test_a_method_that_is_missing_or_another_is_noticed(monkeypatch, caplog, name, change):
    if change is None:
        monkeypatch.delattr(HttpToolsProtocol, name)
    else:
        monkeypatch.setattr(HttpToolsProtocol, name, change)
    assert connections.protocol() == "auto"
    (warning,) = [each for each in caplog.records if each.name == "sidelong.service"]
    assert warning.message == "connections not watched"
    assert "pip install 'uvicorn>=0.35,<=0.54.99'" in warning.why


WITHOUT = """
import sys
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
del HttpToolsProtocol.send_400_response
from sidelong.service.serve import serve
from sidelong.service.settings import Settings
serve(Settings(port=0, database="sqlite:///" + sys.argv[1]), lambda address: print(address, flush=True))
"""


def test_the_service_runs_with_the_connections_of_uvicorn(tmp_path):
    program = [sys.executable, "-W", "error", "-c", WITHOUT, tmp_path / "service.db"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            with urllib.request.urlopen(server.stdout.readline().strip() + "/health", timeout=60) as reply:
                assert reply.status == 200
        finally:
            server.terminate()
            _, log = server.communicate()
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line["event"] for line in lines if line["level"] == "warning"] == ["connections not watched"]
