"""What the tests of the service share: a nursery of servers, and both databases."""

import tempfile
from pathlib import Path

import pytest

import installed
from service import servers
from service.deployments import KINDS, Deployment
from service.doubles import hooked
from service.servers import nursery, server, service
from service.stores import new_database, opened

__all__ = ["nursery", "server", "service"]


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


@pytest.fixture
def database(request, tmp_path):
    """Return the address of an empty database: SQLite, and in tests with the mark postgresql each kind in turn."""
    return new_database(request.param, request, tmp_path)


@pytest.fixture
def bench(database):
    """Return a store on that database."""
    with opened(database) as made:
        yield made


def pytest_generate_tests(metafunc):
    """Choose the kinds of databases, unless the test names them itself."""
    named = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "database" in metafunc.fixturenames and not any("database" in each for each in named):
        kinds = ["sqlite", "postgresql"] if metafunc.definition.get_closest_marker("postgresql") else ["sqlite"]
        metafunc.parametrize("database", kinds, indirect=True)


@pytest.fixture(params=KINDS)
def kind(request):
    """Return a kind of experiments: with keys, or without."""
    return request.param


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def deployment(request, tmp_path):
    """Return a running deployment on an empty database of each kind, which writes many snapshots."""
    address = new_database(request.param, request, tmp_path)
    with Deployment(address, snapshot_every=5).running() as running:
        yield running


@pytest.fixture
def on_sqlite(tmp_path):
    """Return a running deployment with the default settings, on SQLite."""
    with Deployment(f"sqlite:///{tmp_path}/service.db").running() as running:
        yield running


@pytest.fixture
def hooks(monkeypatch):
    """Return the hooks, none yet, of all databases that are opened from now on; `service.doubles` says what they do."""
    return hooked(monkeypatch)
