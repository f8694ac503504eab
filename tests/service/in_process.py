"""A server in this process, and a client of it without a network between the two."""

import asyncio
import contextlib

import httpx

from service.doubles import PATIENCE
from service.servers import PATIENT
from sidelong.service.http.app import Application
from sidelong.service.settings import Settings


def application(address, clock=None, **settings):
    """Return a server that does not mind how often it is asked, and that refuses nothing for want of time."""
    rates = {"decide_rate": 1e9, "read_rate": 1e9, "feedback_rate": 1e9}
    return Application(Settings(**{"database": address, **rates, **PATIENT, **settings}), clock)


@contextlib.asynccontextmanager
async def running(address, clock=None, **settings):
    """Run a server; yield it, and a client, which may ask until the server has stopped."""
    async with serving(application(address, clock, **settings)) as client_of:
        yield client_of


@contextlib.asynccontextmanager
async def serving(app):
    """Run an application; yield its server, and a client."""
    async with (
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
        app.running(),
        asyncio.timeout(PATIENCE),
    ):
        yield app.server, client


def playing(folder, do, **settings):
    """Run `do` with a client of a server on the database of a folder, and return what it returns."""

    async def run():
        async with running(f"sqlite:///{folder}/played.db", **settings) as (_, client):
            return await do(client)

    return asyncio.run(run())
