"""What the tests of the service share: a nursery of servers, and both databases."""

import itertools
import tempfile
from pathlib import Path

import psycopg
import pytest

import installed
from service import servers

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    """Return what starts servers."""
    made = servers.Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()


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
def database(request, tmp_path):
    """Return the address of an empty database, of each kind in turn."""
    return new_database(request.param, request, tmp_path)


def new_database(kind, request, folder):
    number = next(_numbers)
    if kind == "sqlite":
        return f"sqlite:///{folder}/service-{number}.db"
    address = request.getfixturevalue("postgresql")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE test{number}")
    return address.removesuffix("postgres") + f"test{number}"
