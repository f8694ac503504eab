"""What the tests of the service share: a nursery of servers, and both databases."""

import tempfile
from pathlib import Path

import pytest

import installed
import sidelong as sl
from service import servers
from service.doubles import hooked
from service.stores import new_database


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    """Return what starts servers."""
    made = servers.Nursery(tmp_path_factory.mktemp("nursery"))
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


@pytest.fixture(scope="session")
def postgresql():
    """Return the address of a running PostgreSQL."""
    programs = installed.postgresql()
    # Not among pytest's own folders, which are for one user alone.
    with (
        tempfile.TemporaryDirectory(prefix="sidelong-") as folder,
        servers.postgresql(programs, Path(folder)) as address,
    ):
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path, monkeypatch):
    """Return the address of an empty database, of each kind in turn."""
    return new_database(request.param, request, tmp_path, monkeypatch)


@pytest.fixture
def hooks(monkeypatch):
    """Return the hooks, none yet, of all databases that are opened from now on; `service.doubles` says what they do."""
    return hooked(monkeypatch)
