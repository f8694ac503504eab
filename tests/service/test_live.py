"""The stream of what happens."""

import asyncio
from types import SimpleNamespace

from service.stores import opened
from sidelong.service.http import live
from sidelong.service.store.commands import Decide
from sidelong.service.store.tokens import Tokens


def test_who_falls_behind_catches_up_without_a_pause(tmp_path, monkeypatch):
    """More events than fit into one reading come at once, not one reading every quarter of a second."""
    monkeypatch.setattr(live, "_EVERY", 3600.0)

    async def read(service, experiment, wanted):
        text = b""
        async for part in live.stream(service, experiment, 0, None):
            text += part
            if text.count(b"\nevent: decided\n") >= wanted:
                return text
        raise AssertionError

    with opened(f"sqlite:///{tmp_path}/service.db") as bench:
        bench.create()
        bench.store.run([Decide("e") for _ in range(1200)])
        identity = bench.store.identity("e")
        service = SimpleNamespace(database=bench.database, tokens=Tokens(bench.database), stopping=False)
        text = asyncio.run(asyncio.wait_for(read(service, identity.id, 1200), 60))
    assert [int(line[4:]) for line in text.splitlines() if line.startswith(b"id: ")] == list(range(1, 1202))
