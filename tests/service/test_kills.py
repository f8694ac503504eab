"""kill -9 at random moments under load: nothing acknowledged is lost, nothing is counted twice."""

import asyncio
import collections
import logging
import os
import random

import pytest

from service import history as histories
from sidelong.service.store.journal import Kind

#: Each kill is one more draw of the moment. `make soak` asks for 500 on each database.
KILLS = int(os.environ.get("SIDELONG_KILLS", "20"))
CLIENTS = 6
_log = logging.getLogger(__name__)
EXPERIMENT = {
    "name": "killed",
    "graph": {"name": "cliques", "sizes": [3, 2]},
    "seed": 5,
    "expire_after": None,
    "certificate": True,
}


WITH_FEATURES = {**EXPERIMENT, "learner": "squarecb.g", "features": ["weekday", "size"]}


def drawn(draws):
    """Draw what is sent with a round: in one of five a graph of its own, of which there are twenty."""
    own = {"name": "erdos_renyi", "n": 5, "r": 0.5, "seed": draws.randrange(20)}
    return {"graph": own} if draws.random() < 0.2 else {}


def drawn_with_features(draws):
    """Draw the same, and a context."""
    return {**drawn(draws), "context": {"weekday": draws.choice("MTWTF"), "size": draws.random(), "order": "unseen"}}


@pytest.mark.postgresql
@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize(
    ("experiment", "content", "kills"), [(EXPERIMENT, drawn, KILLS), (WITH_FEATURES, drawn_with_features, KILLS // 4)]
)
def test_nothing_acknowledged_is_lost_and_nothing_counted_twice(nursery, database, experiment, content, kills, seed):
    settings = {"snapshot_every": 50, "decide_rate": 1e9, "feedback_rate": 1e9}  # many snapshots, to be killed in them
    server = nursery.start(database, **settings)
    assert server.post("/v1/experiments", experiment)[0] == 201
    history, moments = histories.History(), random.Random(seed)
    seen, exports = [], collections.Counter()

    async def play():
        nonlocal server
        ends = False
        clients = [
            asyncio.create_task(
                histories.client(
                    f"c{number}", "killed", lambda: server.port, history, seed, lambda: ends, content=content
                )
            )
            for number in range(CLIENTS)
        ]
        clients.append(asyncio.create_task(histories.follow("killed", lambda: server.port, seen, lambda: ends)))
        clients.append(asyncio.create_task(histories.export("killed", lambda: server.port, exports, lambda: ends)))
        for kill in range(kills):
            before = len(history.told)
            await asyncio.sleep(moments.uniform(0.0, 0.25))
            while len(history.told) == before:  # noqa: ASYNC110  # something was acknowledged since the last kill
                await asyncio.sleep(0.001)
            server.kill()
            if kill % 50 == 49:
                _log.info("%d of %d kills", kill + 1, kills)
            if kill % 5 == 0:  # nobody writes now: what is there is what was acknowledged, and a little more
                await asyncio.to_thread(histories.check, database, "killed", history)
            server = await asyncio.to_thread(nursery.start, database, **settings)
        while not exports["whole"]:  # noqa: ASYNC110  # the last server stays
            await asyncio.sleep(0.01)
        ends = True
        await asyncio.gather(*clients)

    asyncio.run(play())
    digest, by_kind = histories.check(database, "killed", history)
    histories.check_complete(history, by_kind)
    assert history.sent_again > 0
    assert seen == list(range(1, len(seen) + 1))  # each event once, in order, over all breaks
    assert len(seen) > kills
    assert {event.graph for event in by_kind[Kind.DECIDED]} > {None}
    status, state = server.get("/v1/experiments/killed?digest=true")
    assert status == 200
    assert state["digest"] == digest
    assert state["counts"]["told"] == len(history.told)
    server.stop()
    restarted = nursery.start(database, **settings)
    assert restarted.get("/v1/experiments/killed?digest=true")[1]["digest"] == digest
    restarted.stop()
