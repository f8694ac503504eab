"""Servers for the tests: real ones, in processes of their own, that start fast and can be killed."""

import contextlib
import json
import os
import pwd
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

import sidelong as sl

_PARENT = """
import json, os, signal, sys
from dataclasses import replace
import sidelong as sl
from sidelong.learners import catalogue
from sidelong.service.serve import serve
from sidelong.service.settings import Settings

agent = sl.Agent("exp3.g++", sl.graphs.cliques([3, 2]))  # loads its machine code, for all children
agent.tell(decision := agent.ask(), [0.5] * decision.reveals.size)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
for line in sys.stdin:
    wanted = json.loads(line)
    if os.fork():
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for learner, version in wanted["versions"].items():
        found = catalogue.choose(learner, {})
        sys.modules[found.module].LEARNER = replace(found, version=version)
    os.dup2(os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    serve(
        Settings(**{"port": 0, **wanted["settings"]}),
        lambda address: print(json.dumps({"address": address, "pid": os.getpid()}), flush=True),
    )
    os._exit(0)
"""


def decisions_of(reply):
    """Return the decisions of a reply, one or several in columns, each as a dict."""
    if "ids" not in reply:
        return [reply]
    rows = zip(*(reply[name] for name in ("ids", "rounds", "arms", "drawn_by")), strict=True)
    found = [dict(zip(("id", "round", "arm", "drawn_by"), row, strict=True)) for row in rows]
    chances = reply["probabilities"] or [None] * len(found)
    for each, p in zip(found, chances, strict=True):
        label = reply["labels"] and reply["labels"][str(each["arm"])]
        each |= {"probability": p, "label": label, "reveals": reply["reveals"][str(each["arm"])]}
        each["expires_at"] = reply["expires_at"]
    return found


def in_columns(items, **more):
    """Return feedback for several decisions as a request has it: of each its id and losses, in order or all by arm."""
    losses = [each["losses"] for each in items]
    body = {"ids": [each["id"] for each in items], "sizes": list(map(len, losses)), **more}
    if any(isinstance(each, dict) for each in losses):
        body["reveals"] = [arm for each in losses for arm in each]
        losses = [each.values() for each in losses]
    if "arm" in items[0]:
        body["arms"] = [each["arm"] for each in items]
    return {**body, "losses": [loss for each in losses for loss in each]}


# On a busy machine everything takes long, and nothing is refused for that.
PATIENT = {"busy_timeout": 120.0, "request_timeout": 120.0, "work_timeout": 600.0}


class Server:
    """A running server."""

    def __init__(self, address, pid, log):
        self.address = address
        self.port = int(address.rpartition(":")[2])
        self.pid = pid
        self.log = log

    def kill(self):
        """Stop it as a power cut would."""
        os.kill(self.pid, signal.SIGKILL)

    def stop(self, patience=120.0):
        """Stop it, and wait until it has gone; on a busy machine it may take its time to write a snapshot."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        end = time.monotonic() + patience
        while time.monotonic() < end:
            try:
                os.kill(self.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)

    def send(self, method, path, body=None, headers=None):
        """Send a request; return the status, the body read as JSON where it is, and the headers."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {**({"Content-Type": "application/json"} if data is not None else {}), **(headers or {})}
        request = urllib.request.Request(self.address + path, data, given, method=method)
        try:
            with urllib.request.urlopen(request, timeout=180) as reply:
                status, content, received = reply.status, reply.read(), reply.headers
        except urllib.error.HTTPError as error:
            status, content, received = error.code, error.read(), error.headers
        is_json = "json" in received.get("Content-Type", "")
        return status, json.loads(content) if is_json else content, received

    def post(self, path, body=None, **headers):
        status, content, _ = self.send("POST", path, body, headers)
        return status, content

    def get(self, path, **headers):
        status, content, _ = self.send("GET", path, None, headers)
        return status, content


class Nursery:
    """A process that has loaded everything, and forks servers in some hundredths of a second."""

    def __init__(self, folder):
        self._folder = folder
        # The tests of the client may run where there is only the client, and servers in the full installation.
        python = shlex.split(os.environ.get("SIDELONG_TEST_SERVER", "")) or [sys.executable]
        self._process = subprocess.Popen(
            [*python, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout.readline() == "ready\n"
        self._started = []

    def start(self, database, versions=None, **settings):
        """Start a server on a port of its own; `versions` are those of learners that are not as in this program."""
        log = self._folder / "server.log"
        wanted = {
            "log": str(log),
            "versions": versions or {},
            "settings": {"database": database, **PATIENT, **settings},
        }
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        server = Server(**json.loads(self._process.stdout.readline()), log=log)
        self._started.append(server)
        return server

    def close(self):
        for server in self._started:
            with contextlib.suppress(ProcessLookupError):
                server.kill()
        self._process.communicate()


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    """Return what starts servers."""
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(nursery, tmp_path_factory):
    """Return a server for the tests of one file, which does not mind how often they read."""
    started = nursery.start(f"sqlite:///{tmp_path_factory.mktemp('served')}/served.db", read_rate=1e6)
    yield started
    started.stop()


@pytest.fixture
def service(server):
    """Return a client of it that tries once."""
    with sl.connect(server.address, patience=0.0, timeout=60.0) as connected:
        yield connected


@contextlib.contextmanager
def postgresql(programs, folder):
    """Run a PostgreSQL of our own, as a user who is not root; yield the address of a database in it.

    It does not wait for the disk: tests kill our servers, and neither PostgreSQL nor the machine.
    """
    user, data = _somebody(folder) if os.geteuid() == 0 else None, folder / "data"
    how = {"user": user, "cwd": folder, "stderr": subprocess.STDOUT}
    options = ["-U", "sidelong", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]
    made = subprocess.run([programs / "initdb", "-D", data, *options], stdout=subprocess.PIPE, check=False, **how)
    assert made.returncode == 0, made.stdout.decode()

    def start():
        """Return a server that is ready, and its port: another process may take a port that was free."""
        for port in (_free_port() for _ in range(9)):
            options = ["-h", "127.0.0.1", "-p", str(port), "-k", folder, "-c", "max_connections=60", "-c", "fsync=off"]
            process = subprocess.Popen([programs / "postgres", "-D", data, *options], stdout=log, **how)
            while process.poll() is None:
                with contextlib.suppress(OSError):
                    if (data / "postmaster.pid").read_text().split()[-1:] == ["ready"]:
                        return process, port
                time.sleep(0.05)
        raise AssertionError((folder / "postgresql.log").read_text())

    with (folder / "postgresql.log").open("wb") as log:
        running, port = start()
        try:
            yield f"postgresql://sidelong@127.0.0.1:{port}/postgres"
        finally:
            running.send_signal(signal.SIGQUIT)  # at once: nobody needs what is in it
            running.wait()


def _somebody(folder):
    """Return a user who is not root, to whom the folder is given."""
    name = next(name for name in ("postgres", "nobody") if name in {entry.pw_name for entry in pwd.getpwall()})
    os.chown(folder, pwd.getpwnam(name).pw_uid, -1)
    return name


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
