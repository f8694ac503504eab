"""Connections are watched by a class over uvicorn's httptools; without it, the service runs with uvicorn's own.

`test_requests.py` has what users see of it: silent connections are closed, and endless headers refused.
"""

import json
import subprocess
import sys
import urllib.request

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
