"""Two servers on one database: one order, each round once, each acknowledged feedback counted once."""

import asyncio
import itertools

import pytest

from service import history as histories

CLIENTS = 8
TOLD = 400  # feedback, in all


@pytest.mark.postgresql
def test_two_servers_on_one_database_keep_one_order(nursery, database):
    settings = {"snapshot_every": 40, "decide_rate": 1e9, "feedback_rate": 1e9}
    servers = [nursery.start(database, **settings) for _ in range(2)]
    body = {"name": "shared", "graph": {"name": "cliques", "sizes": [3, 2]}, "seed": 8, "expire_after": None}
    assert [each.post("/v1/experiments", body)[0] for each in servers] == [201, 200]
    history = histories.History()
    turns = itertools.count()

    async def play():
        clients = [
            histories.client(
                f"c{number}",
                "shared",
                lambda: servers[next(turns) % 2].port,  # every request goes to another server than the one before
                history,
                3,
                lambda: len(history.told) >= TOLD,
                hops=True,
            )
            for number in range(CLIENTS)
        ]
        await asyncio.gather(*clients)

    asyncio.run(play())
    digest, by_kind = histories.check(database, "shared", history)
    histories.check_complete(history, by_kind)
    states = [each.get("/v1/experiments/shared?digest=true")[1] for each in servers]
    assert [state["digest"] for state in states] == [digest, digest]
    for each in servers:
        each.stop()
