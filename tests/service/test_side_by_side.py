"""Long requests beside short ones: what is quick does not wait for what is slow."""

import asyncio
import threading

from service.doubles import PATIENCE, Pause
from service.in_process import application, running, serving
from service.stores import Hands
from sidelong.errors import ServiceError
from sidelong.service.store.clock import Clock
from sidelong.service.store.rules import Decide
from sidelong.service.store.tokens import Tokens

EXPERIMENT = {"name": "e", "graph": {"name": "cliques", "sizes": [3, 2]}}


def test_nobody_waits_for_those_who_download_the_log(tmp_path, monkeypatch, hooks):
    begun, done = threading.Semaphore(0), threading.Event()

    def slow(rounds, *which):
        begun.release()
        done.wait(300)
        return rounds(*which)

    hooks["rounds"] = slow
    monkeypatch.setattr("sidelong.service.store.tokens.Tokens.fresh_for", 0.0)  # every request looks at the tokens anew

    async def ask():
        async with running(f"sqlite:///{tmp_path}/beside.db") as (_, client):
            assert (await client.post("/v1/experiments", json=EXPERIMENT)).status_code == 201
            assert (await client.post("/v1/experiments/e/decisions")).status_code == 201
            logs = [asyncio.create_task(client.get("/v1/experiments/e/log")) for _ in range(64)]
            await asyncio.to_thread(begun.acquire, timeout=PATIENCE)
            try:
                async with asyncio.timeout(120):
                    assert (await client.post("/v1/experiments/e/decisions")).status_code == 201
                    for path in ("/health", "/ready", "/v1/experiments", "/v1/experiments/e"):
                        assert (await client.get(path)).status_code == 200
            finally:
                done.set()
                assert {reply.status_code for reply in await asyncio.gather(*logs)} == {200}

    asyncio.run(ask())


def test_a_database_that_says_nothing_is_one_that_is_away(tmp_path, monkeypatch, hooks):
    silent, done = threading.Event(), threading.Event()

    def tokens(read):
        if silent.is_set():
            done.wait(300)
        return read()

    hooks["tokens"] = tokens
    monkeypatch.setattr(Tokens, "fresh_for", 0.0)

    async def ask():
        async with running(f"sqlite:///{tmp_path}/silent.db") as (server, client):
            assert (await client.post("/v1/experiments", json=EXPERIMENT)).status_code == 201
            server.settings.busy_timeout = 0.3
            silent.set()
            async with asyncio.timeout(120):
                for method, path in (("POST", "/v1/experiments/e/decisions"), ("GET", "/ready")):
                    reply = await client.request(method, path)
                    assert (reply.status_code, reply.json()["code"]) == (503, "unavailable")
                    assert reply.headers["Retry-After"] == "2"
                assert (await client.get("/health")).status_code == 200
            server.settings.busy_timeout = 120.0
            silent.clear()
            done.set()
            assert (await client.post("/v1/experiments/e/decisions")).status_code == 201
            assert (await client.get("/ready")).status_code == 200

    asyncio.run(ask())


def test_health_and_metrics_are_answered_while_a_commit_takes_its_time(tmp_path, hooks):
    """The server looks at all experiments every few seconds, and does not wait for one that is being written."""
    hands, pause, looked = Hands(), Pause(), threading.Semaphore(0)
    clock = Clock(lambda: hands.wall, lambda: hands.steady)

    def look(experiments, **which):
        looked.release()
        return experiments(**which)

    async def ask():
        async with running(f"sqlite:///{tmp_path}/commit.db", clock, sweep_every=0.01) as (_, client):
            assert (await client.post("/v1/experiments", json=EXPERIMENT)).status_code == 201
            hooks["commit"] = pause.hook()
            decision = asyncio.create_task(client.post("/v1/experiments/e/decisions"))
            await asyncio.to_thread(pause.begun.wait, PATIENCE)
            hooks["experiments"] = look
            hands.move(30)  # so that it is time for a look
            for _ in range(3):  # those that are kept, those that were deleted, and those that are behind
                await asyncio.to_thread(looked.acquire)
            for path in ("/health", "/metrics"):
                assert (await client.get(path)).status_code == 200
            assert not decision.done()
            pause.further.set()
            assert (await decision).status_code == 201

    asyncio.run(ask())


def test_who_leaves_before_the_write_does_not_keep_those_waiting_who_are_written_with_it(tmp_path):
    async def ask():
        async with running(f"sqlite:///{tmp_path}/leaves.db") as (server, client):
            assert (await client.post("/v1/experiments", json=EXPERIMENT)).status_code == 201
            leaves, stays = (server.commits.submit(Decide("e")) for _ in range(2))  # in one transaction
            leaves.cancel()
            async with asyncio.timeout(120):
                made = await stays
            assert list(made.draws.numbers) == [2]

    asyncio.run(ask())


def test_a_request_that_takes_longer_than_the_server_stays_is_to_be_sent_again(tmp_path, hooks):
    """The server below cancels what still runs when it stops."""
    begun, done, replies = asyncio.Event(), threading.Event(), []

    def slow(*_):
        loop.call_soon_threadsafe(begun.set)
        done.wait(300)
        raise ServiceError("Nobody waits for it any more.", status=503, code="unavailable")

    async def send(message):
        replies.append(message)

    async def ask():
        nonlocal loop
        loop = asyncio.get_running_loop()
        app = application(f"sqlite:///{tmp_path}/stops.db")
        async with serving(app) as (_, client):
            assert (await client.post("/v1/experiments", json=EXPERIMENT)).status_code == 201
            assert (await client.post("/v1/experiments/e/decisions")).status_code == 201
            headers = [(b"host", b"localhost")]
            asked = {"type": "http", "method": "GET", "path": "/v1/experiments/e/log", "query_string": b""}
            asked |= {"headers": headers, "client": ("127.0.0.1", 1), "root_path": ""}
            request = asyncio.create_task(app(asked, asyncio.Event().wait, send))
            await asyncio.wait_for(begun.wait(), PATIENCE)
            request.cancel()
            await request
            done.set()

    loop = None
    hooks["rounds"] = slow
    asyncio.run(ask())
    start, body = replies
    headers = dict(start["headers"])
    assert (start["status"], headers[b"content-type"]) == (503, b"application/problem+json")
    assert int(headers[b"retry-after"]) > 0
    assert b'"code":"unavailable"' in body["body"].replace(b": ", b":")
