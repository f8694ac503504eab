"""kill -9 in the middle of nightly batches: nothing acknowledged is lost, nothing is counted twice."""

import os
import random
import threading
import time

import numpy as np
import pytest

import sidelong as sl
from sidelong.service.store import snapshots
from sidelong.service.store.clock import Clock
from sidelong.service.store.graphs import GraphCache
from sidelong.service.store.journal import Kind, read_settled, since
from sidelong.service.store.kinds import open_database
from sidelong.service.store.replay import Replayed

#: `make soak` asks for as many on each database.
KILLS = int(os.environ.get("SIDELONG_NIGHTLY_KILLS", "4"))
KEYS = [f"sku-{k}" for k in range(300)]
GRAPH = sl.graphs.cliques([3, 2])


@pytest.mark.postgresql
def test_nights_that_are_killed_are_whole(nursery, database):
    settings = {"snapshot_every": 400, "decide_rate": 1e9, "feedback_rate": 1e9}
    server = nursery.start(database, **settings)
    port = {"port": server.port}
    with sl.connect(server.address) as service:
        service.create("shop", "exp3.g++", GRAPH, seed=5, keyed=True, expire_after=None)
    nights, done, moments = [], threading.Event(), random.Random(1)

    def play():
        rng = np.random.default_rng(1)
        while not done.is_set():
            keys = rng.permutation(KEYS)[: rng.integers(50, 300)].tolist()
            key = f"night-{len(nights)}"
            batch = insist(lambda shop, keys=keys, key=key: shop.ask_many(keys, key=key))
            losses = rng.random(batch.reveals.size)
            insist(lambda shop, batch=batch, losses=losses: shop.tell_many(batch, losses))
            nights.append((batch, losses))

    def insist(what):
        """Do something until a server has acknowledged it."""
        while True:
            try:
                with sl.connect(f"http://127.0.0.1:{port['port']}", patience=0.0, timeout=20.0) as service:
                    return what(service["shop"])
            except sl.errors.ServiceError:
                time.sleep(0.02)

    client = threading.Thread(target=play)
    client.start()
    for _ in range(KILLS):
        before = len(nights)
        while len(nights) == before:  # something was acknowledged since the last kill
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.3))
        server.kill()
        server = nursery.start(database, **settings)
        port["port"] = server.port
    done.set()
    client.join()
    check(nights, database, server.get("/v1/experiments/shop?digest=true")[1])
    server.stop()


def check(nights, database, state):
    """Check that the journal has each acknowledged decision and its feedback once, and that a family does the same."""
    family = sl.Family("exp3.g++", GRAPH, seed=5)
    for batch, losses in nights:  # what was acknowledged is what a family does, to the bit
        plan = family.ask(batch.keys)
        assert plan.arms.tolist() == batch.arms.tolist()
        assert plan.probabilities.tobytes() == batch.probabilities.tobytes()
        family.tell(plan, losses)
    told = sum(len(batch) for batch, _ in nights)
    assert (state["counts"]["decided"], state["counts"]["told"], state["counts"]["outstanding"]) == (told, told, 0)
    opened = open_database(database)
    with opened.reading() as reading:
        identity = reading.find("shop")
        rebuilt = Replayed(identity, GraphCache(), Clock()).rebuilt(reading)
        events = list(since(reading, identity.id, 1))
    assert snapshots.digest(rebuilt) == state["digest"]
    ids = [id_ for batch, _ in nights for id_ in batch.ids]
    assert len(set(ids)) == len(ids) == told
    numbers = [read_settled(event).numbers for event in events if event.kind is Kind.TOLD]
    assert np.sort(np.concatenate(numbers)).tolist() == list(range(1, told + 1))  # each once
    opened.close()
