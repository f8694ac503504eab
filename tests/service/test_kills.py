"""kill -9 at random moments under load: nothing acknowledged is lost, nothing is counted twice."""

import asyncio
import os
import random

import pytest

from service import history as histories

#: Each kill is one more draw of the moment. `make soak` asks for 200 on each database.
KILLS = int(os.environ.get("SIDELONG_KILLS", "20"))
CLIENTS = 6
EXPERIMENT = {
    "name": "killed",
    "graph": {"name": "cliques", "sizes": [3, 2]},
    "seed": 5,
    "expire_after": None,
    "certificate": True,
}


@pytest.mark.parametrize("seed", [1])
def test_nothing_acknowledged_is_lost_and_nothing_counted_twice(nursery, database, seed):
    settings = {"snapshot_every": 50, "decide_rate": 1e9, "feedback_rate": 1e9}  # many snapshots, to be killed in them
    server = nursery.start(database, **settings)
    assert server.post("/v1/experiments", EXPERIMENT)[0] == 201
    history, moments = histories.History(), random.Random(seed)

    async def play():
        nonlocal server
        ends = False
        clients = [
            asyncio.create_task(
                histories.client(f"c{number}", "killed", lambda: server.port, history, seed, lambda: ends)
            )
            for number in range(CLIENTS)
        ]
        for kill in range(KILLS):
            before = len(history.told)
            await asyncio.sleep(moments.uniform(0.0, 0.25))
            while len(history.told) == before:  # noqa: ASYNC110  # something was acknowledged since the last kill
                await asyncio.sleep(0.001)
            server.kill()
            if kill % 5 == 0:  # nobody writes now: what is there is what was acknowledged, and a little more
                await asyncio.to_thread(histories.check, database, "killed", history)
            server = await asyncio.to_thread(nursery.start, database, **settings)
        ends = True
        await asyncio.gather(*clients)

    asyncio.run(play())
    digest, by_kind = histories.check(database, "killed", history)
    histories.check_complete(history, by_kind)
    assert history.sent_again > 0
    status, state = server.get("/v1/experiments/killed?digest=true")
    assert status == 200
    assert state["digest"] == digest
    assert state["counts"]["told"] == len(history.told)
    server.stop()
    restarted = nursery.start(database, **settings)
    assert restarted.get("/v1/experiments/killed?digest=true")[1]["digest"] == digest
    restarted.stop()
