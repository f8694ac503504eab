"""Whatever one client, experiment or file does, the decisions of others do not notice."""

import asyncio
import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

import sidelong as sl
from service.doubles import PATIENCE, Meter, Pause, hooked, of_kind
from service.in_process import application, running, serving
from service.servers import decisions_of, in_columns
from service.stores import new_database, one_of, opened
from service.test_keyed import told
from sidelong.errors import ServiceError
from sidelong.service import pools
from sidelong.service.http import export
from sidelong.service.store import creation
from sidelong.service.store.database import BlobKind
from sidelong.service.store.graphs import identify
from sidelong.service.store.journal import since
from sidelong.service.store.kinds import open_database
from sidelong.service.store.locks import FairLock, RequestPriority
from sidelong.service.store.rules import Decide, Tell

GRAPH = {"name": "cliques", "sizes": [3, 2]}


async def create(client, *names):
    for name in names:
        body = {"name": name, "graph": GRAPH, "learner": "exp3.g++", "seed": 1}
        assert (await client.post("/v1/experiments", json=body)).status_code == 201


async def decide(client, name):
    reply = await client.post(f"/v1/experiments/{name}/decisions")
    assert reply.status_code == 201, reply.text
    return reply.json()


def counted(server):
    """Return how many requests go before work in the background, and how many of them wait for it."""
    return server.store.priority.active, len(server.store.priority.loading)


def test_nobody_waits_for_the_replay_of_another_and_it_shows(tmp_path, monkeypatch, hooks):
    address = f"sqlite:///{tmp_path}/replay.db"
    pause, order, of = Pause(), [], {}

    with opened(address) as bench:
        for name in ("large", "small"):
            bench.create(name)
            of[name] = bench.store.identity(name).id
        bench.store.run([Decide("large") for _ in range(1200)])  # several pages of events

    async def ask():
        loop = asyncio.get_running_loop()

        def read(events, experiment, after, *given):
            name = "large" if experiment == of["large"] else "small"
            order.append(name)
            if order == ["large"]:  # until both are waiting to be replayed: the server asks for all when it starts
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(PATIENCE)
            if order.count("large") == 2:
                return pause.hook(lambda *_: name == "large")(events, experiment, after, *given)
            return events(experiment, after, *given)

        hooks["events"] = read
        async with running(address) as (server, client):
            await asyncio.to_thread(pause.begun.wait, PATIENCE)
            assert order == ["large", "small", "large"]  # a page of each in turn
            waiting = asyncio.create_task(decide(client, "large"))
            for number in range(1, 21):
                assert (await decide(client, "small"))["round"] == number
            assert not waiting.done()
            ready = await client.get("/ready")
            assert (ready.status_code, ready.json()["code"]) == (503, "busy")
            assert ready.json()["detail"] == "1 of 2 experiments are still being loaded."
            listed = (await client.get("/v1/experiments")).json()
            assert [each["name"] for each in listed["items"]] == ["small"]
            [loading] = listed["loading"]
            done = loading["done"]
            assert loading == {"name": "large", "done": done, "events": 1201}
            assert 0 < done < 1201
            metrics = (await client.get("/metrics")).text
            assert 'sidelong_experiments{state="loading"} 1.0' in metrics
            assert f'sidelong_replay_left{{experiment="large"}} {1201 - done}.0' in metrics
            monkeypatch.setattr(server.settings, "request_timeout", 0.05)
            late = await client.get("/v1/experiments/large")
            assert (late.status_code, late.json()["code"]) == (503, "busy")
            assert f"{done:,} of 1,201 events" in late.json()["detail"]
            assert counted(server) == (1, 1)  # it waits for the replay, and not the replay for it
            pause.further.set()
            assert (await waiting)["round"] == 1201
            assert counted(server) == (0, 0)
            await asyncio.sleep(1.1)  # it says the same for a second
            assert (await client.get("/ready")).json()["status"] == "ok"
            states = {"live": 1, "loading": 1, "refused": 0}
            monkeypatch.setattr(server.store, "states", lambda: states)  # what is read again later
            await asyncio.sleep(1.1)
            ready = await client.get("/ready")
            assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
            assert ready.json()["experiments"] == states

    asyncio.run(ask())


def test_who_asks_whether_it_is_ready_does_not_ask_the_database(tmp_path, monkeypatch):
    asked = []

    async def ask():
        async with running(f"sqlite:///{tmp_path}/ready.db") as (server, client):
            states = server.store.states
            monkeypatch.setattr(server.store, "states", lambda: asked.append(1) or states())
            begun = time.monotonic()
            for _ in range(10):
                replies = await asyncio.gather(*(client.get("/ready") for _ in range(20)))
                assert {reply.status_code for reply in replies} == {200}
            assert len(asked) <= 2 + (time.monotonic() - begun)  # once a second

    asyncio.run(ask())


def test_who_looks_at_an_experiment_keeps_only_those_waiting_who_decide_there(tmp_path, hooks):
    pause = Pause()

    async def ask():
        async with running(f"sqlite:///{tmp_path}/look.db") as (server, client):
            await create(client, "looked-at", "other")
            of = server.store.identity("looked-at").id
            # Whoever looks reads first what other servers have done to the experiment.
            hooks["events"] = pause.hook(lambda experiment, *_: experiment == of)
            look = asyncio.create_task(client.get("/v1/experiments/looked-at"))
            await asyncio.to_thread(pause.begun.wait, PATIENCE)
            waiting = [asyncio.create_task(decide(client, "looked-at")) for _ in range(3)]
            for number in range(1, 11):
                assert (await decide(client, "other"))["round"] == number
            assert (await client.get("/metrics")).status_code == 200
            assert not any(each.done() for each in waiting)
            pause.further.set()
            assert sorted(each["round"] for each in await asyncio.gather(*waiting)) == [1, 2, 3]
            assert (await look).status_code == 200

    asyncio.run(ask())


def test_an_experiment_that_another_server_has_locked_does_not_keep_the_others_waiting(request, tmp_path):
    address = new_database("postgresql", request, tmp_path)

    async def ask():
        async with running(address) as (server, client):
            await create(client, "locked", "other")
            other = open_database(address)
            with contextlib.closing(other), other.writing() as stopped:  # in the middle of a commit
                stopped.lock(server.store.identity("locked").id)
                waiting = [asyncio.create_task(decide(client, "locked")) for _ in range(3)]
                for number in range(1, 11):
                    assert (await decide(client, "other"))["round"] == number
                assert not any(each.done() for each in waiting)
            assert sorted(each["round"] for each in await asyncio.gather(*waiting)) == [1, 2, 3]

    asyncio.run(ask())


@pytest.mark.long  # it waits for ten seconds to pass
def test_a_server_that_stands_still_gives_its_locks_on_postgresql_back(request, tmp_path):
    address = new_database("postgresql", request, tmp_path)

    def stand_still():
        with other.database.writing() as stopped:
            stopped.lock(bench.store.identity("e").id)
            with pytest.raises(ServiceError, match="holds the lock"):
                bench.decide()
            while True:  # the test ends after some minutes if it has to
                with contextlib.suppress(ServiceError):
                    assert bench.decide().number == 1
                    break
            stopped.lock(1)

    with opened(address, busy_timeout=0.5) as bench, opened(address, busy_timeout=5.0) as other:
        bench.create()
        with pytest.raises(ServiceError) as error:
            stand_still()
        assert (error.value.status, error.value.code) == (503, "unavailable")


def test_a_snapshot_that_cannot_be_written_is_tried_less_and_less_often(tmp_path, hooks):
    tries, written, full = [], [], threading.Event()

    def save(keep_chunk, name, *given, **more):
        if full.is_set():
            tries.append(name.seq)
            raise OSError("no room")
        written.append(name.seq)
        keep_chunk(name, *given, **more)

    async def ask():
        hooks["keep_chunk"] = of_kind(BlobKind.SNAPSHOT, save)
        full.set()
        async with running(f"sqlite:///{tmp_path}/snapshots.db", snapshot_every=10) as (_, client):
            await create(client, "e")
            while len(tries) < 5:
                await decide(client, "e")
            assert tries[0] >= 10
            assert all(later - tries[k] >= 20 * 2**k for k, later in enumerate(tries[1:]))
            full.clear()
            while len(written) < 2:
                await decide(client, "e")
            assert written[1] - written[0] >= 10

    asyncio.run(ask())


@pytest.mark.parametrize("keyed", [False, True])
def test_a_large_snapshot_is_written_in_parts_aside_of_others_and_not_too_often(tmp_path, hooks, keyed):
    path, meter = tmp_path / "large.db", Meter(hooks)
    address, keys = f"sqlite:///{path}", [f"sku-{k}" for k in range(100)]
    command = Decide("e", keys=keys) if keyed else Decide("e")

    async def ask():
        async with running(address, snapshot_every=1) as (server, client):
            body = {"name": "e", "graph": {"name": "nested", "n": 200}, "learner": "exp3.g++", "seed": 1}
            assert (await client.post("/v1/experiments", json={**body, "keyed": keyed})).status_code == 201
            turns, aside = 0, []
            while turns < (100 if keyed else 400) or not sum(aside):
                turns += 1
                made = await server.commits.submit(command)
                if keyed:
                    items = [told(made, place) for place in range(100)]
                    await server.commits.submit(Tell(f"#{made.experiment}", items))
                aside = [each.bytes for each in meter.written if each.aside]
            assert max(aside) <= (2**22 if keyed else 2**18)
            # Some kilobytes for each decision that a start need not replay, and less for those of a batch. One after
            # each event would take far more.
            assert sum(aside) <= (2**17 if keyed else 2**14) * turns
            return (await client.get("/v1/experiments/e?digest=true")).json()["digest"]

    digest = asyncio.run(ask())
    meter.events_read, size = 0, path.stat().st_size
    with opened(address) as bench:
        assert bench.digest() == digest
        assert meter.events_read <= 1  # from the snapshot of the end
        before = len(meter.written)
        for _ in range(8):
            bench.store.run([command])
            bench.store.save(least=1)
        whole = sum(each.bytes for each in meter.written[before:]) / 8
    assert path.stat().st_size < size + 5 * whole  # two are kept, and others forgotten


def test_a_lock_goes_to_commands_before_looks_and_to_each_in_turn():
    lock, order = FairLock(), []
    lock.acquire()
    looks = [threading.Thread(target=lambda: (lock.acquire(), order.append("look"), lock.release())) for _ in range(2)]
    for each in looks:
        each.start()
    assert not lock.acquire(timeout=0)
    assert not lock.acquire(timeout=0.01)
    assert not lock.request(lambda: (order.append("command"), lock.release()))
    lock.release()
    for each in looks:
        each.join(PATIENCE)
    assert order == ["command", "look", "look"]
    assert lock.request(pytest.fail)
    lock.release()


def test_work_in_the_background_waits_for_requests_but_not_for_long(monkeypatch):
    priority, slept = RequestPriority(), []
    monkeypatch.setattr("sidelong.service.store.locks.time.sleep", lambda _: slept.append(priority.active))
    priority.pause()
    assert slept == []  # nobody is there
    priority.active = 2
    priority.loading = {"a", "b"}  # who wait for it themselves
    priority.pause()
    assert slept == []
    priority.loading.clear()
    priority.pause()
    assert slept  # and it went on though they are still there
    before = len(slept)
    priority.pause()
    assert len(slept) == before  # after a portion of work only


def test_health_is_answered_when_there_are_too_many_connections_and_others_are_refused_in_json(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/full.db", max_connections=8)
    established = [_established(server) for _ in range(8)]
    try:
        assert server.get("/health") == (200, {"status": "ok", "version": sl.__version__})
        status, problem, headers = server.send("GET", "/ready")
        assert (status, problem["code"], headers["Content-Type"]) == (503, "busy", "application/problem+json")
        assert int(headers["Retry-After"]) >= 1
        assert [_ask(each) for each in established] == [200] * 8
    finally:
        for each in established:
            each.close()
    end = time.monotonic() + PATIENCE
    while server.get("/ready")[0] != 200:
        assert time.monotonic() < end
    server.stop()


def _ask(connection, path="/v1/experiments"):
    """Send a request over a connection, and return the status of the reply."""
    connection.request("GET", path)
    reply = connection.getresponse()
    reply.read()
    return reply.status


def _established(server):
    """Return a connection over which a request was answered."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    assert _ask(connection) == 200
    return connection


def _half_sent(server):
    each = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    each.sendall(b"GET /v1/experiments HTTP/1.1\r\n")
    each.settimeout(0.0)
    return each


def _is_closed(each):
    try:
        return each.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_half_sent_requests_shut_nobody_out(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/half.db", max_connections=40, read_rate=1e6)
    established = _established(server)
    half = [_half_sent(server) for _ in range(60)]
    try:
        for _ in range(50):
            assert _ask(established) == 200
            newcomer = _established(server)
            newcomer.close()
            closed = [place for place, each in enumerate(half) if _is_closed(each)]
            for place in closed:
                half[place].close()
                half[place] = _half_sent(server)
        _wait_until(lambda: sum(not _is_closed(each) for each in half) <= 20)
    finally:
        for each in (established, *half):
            each.close()
        server.stop()


def test_replies_that_nobody_reads_end(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/unread.db", request_timeout=3.0)
    wanted = 2**25 // int(server.send("GET", "/openapi.json")[2]["Content-Length"])
    with socket.socket() as each:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
        each.connect(("127.0.0.1", server.port))
        each.settimeout(PATIENCE)
        each.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * wanted)
        assert _connections_of(server)
        _wait_until(lambda: not _connections_of(server))
    server.stop()


def test_a_log_that_nobody_downloads_is_not_kept(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/log.db")
    body = {"name": "e", "graph": {"name": "complete", "n": 2000}, "learner": "uniform", "seed": 1}
    assert server.post("/v1/experiments", body)[0] == 201
    losses = np.random.default_rng(1).random((400, 2000)).tolist()
    made = decisions_of(server.post("/v1/experiments/e/decisions", {"count": 400})[1])
    for first in range(0, 400, 50):
        told = [
            {"id": one["id"], "losses": row} for one, row in zip(made[first:], losses[first : first + 50], strict=False)
        ]
        assert server.post("/v1/feedback", in_columns(told))[0] == 200
    server.stop()
    server = nursery.start(f"sqlite:///{tmp_path}/log.db", request_timeout=3.0)
    with socket.socket() as each:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
        each.connect(("127.0.0.1", server.port))
        each.settimeout(PATIENCE)
        each.sendall(b"GET /v1/experiments/e/log HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert each.recv(12) == b"HTTP/1.1 200"
        assert _unnamed_files(server.pid)
        _wait_until(lambda: not _unnamed_files(server.pid))
    server.stop()


def _wait_until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def _connections_of(server):
    """Return the established connections of a server."""
    lines = [line.split() for line in Path(f"/proc/{server.pid}/net/tcp").read_text().splitlines()[1:]]
    return [line for line in lines if line[1].endswith(f":{server.port:04X}") and line[3] == "01"]


def _unnamed_files(pid):
    """Return the temporary files of a process, which have no name."""
    links = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.append(str(path.readlink()))
    return [link for link in links if re.search(r"/(#\d+|sidelong-\w+) \(deleted\)$", link)]


def test_a_log_that_nobody_reads_stops_nobody_and_says_later_what_was_lost(tmp_path):
    program = "import sys; from sidelong.service import logs; from sidelong.service.serve import serve\n"
    program += "from sidelong.service.settings import Settings; logs._ROOM = 2**16  # a sixteenth\n"
    program += (
        "serve(Settings(port=0, database=sys.argv[1], read_rate=1e9), lambda address: print(address, flush=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, f"sqlite:///{tmp_path}/pipe.db"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    address = process.stdout.readline().decode().strip()
    with httpx.Client(base_url=address, timeout=PATIENCE) as client:
        path = f"/v1/experiments/{'x' * 180}"
        for _ in range(800):  # lines of which neither the pipe nor the server holds so many
            assert client.get(path).status_code == 404
        text, seen = b"", threading.Event()

        def read():
            nonlocal text
            for line in process.stderr:
                text += line
                if b"log lines lost" in line:
                    seen.set()

        reader = threading.Thread(target=read)
        reader.start()
        end = time.monotonic() + PATIENCE
        while not seen.wait(0.05):
            assert time.monotonic() < end
            client.get("/health")
    process.terminate()
    assert process.wait(PATIENCE) in {0, -15}
    reader.join(PATIENCE)
    process.stdout.close()
    process.stderr.close()
    assert all(json.loads(line) for line in text.splitlines()[:100])


async def ask_and_leave(app, path):
    """Send a GET as a server would; return what makes the client leave, and the task that answers."""
    left, sent = asyncio.Event(), []
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        for message in messages:
            return message
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
    }
    scope |= {"headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "http_version": "1.1", "scheme": "http"}
    return left.set, asyncio.create_task(app({**scope, "asgi": {"version": "3.0"}}, receive, send)), sent


def test_downloads_whose_clients_have_left_end_at_once_and_those_that_wait_are_not_begun(tmp_path, hooks):
    pages, beginning, all_left = [], threading.Semaphore(0), threading.Event()

    async def ask():
        app = application(f"sqlite:///{tmp_path}/left.db")
        async with serving(app) as (server, client):
            names = [f"slow-{number}" for number in range(6)]
            await create(client, *names, "quick")
            name_of = {server.store.identity(name).id: name for name in [*names, "quick"]}

            def read(rounds, experiment, *given):
                pages.append(name_of[experiment])
                beginning.release()
                if name_of[experiment] != "quick":
                    assert all_left.wait(PATIENCE)
                return rounds(experiment, *given)

            for name in names:
                await decide(client, name)
            hooks["rounds"] = read
            asked = {name: await ask_and_leave(app, f"/v1/experiments/{name}/log") for name in names}
            for _ in range(2):
                await asyncio.to_thread(beginning.acquire)
            first = set(pages)
            # Those that wait leave first: the place of one that ends is taken by whoever still waits.
            for name in sorted(names, key=first.__contains__):
                leave, task, _ = asked[name]
                leave()
                await task
            all_left.set()
            assert (await client.get("/v1/experiments/quick/log")).status_code == 200
            assert len(first) == 2
            assert set(pages[2:]) == {"quick"}  # of the two that were begun, no further page was read

    asyncio.run(ask())


def test_a_log_that_is_sent_has_no_file_that_a_killed_process_could_leave(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with opened(f"sqlite:///{tmp_path}/log.db") as bench:
        bench.create()
        bench.tell(bench.decide())
        reply = export.reply(bench.store, "e")
        assert list(folder.iterdir()) == []

        async def read():
            return b"".join([part async for part in reply.body_iterator])

        data = asyncio.run(read())
    assert len(data) == int(reply.headers["Content-Length"])
    assert data[:4] == data[-4:] == b"PAR1"


def test_who_makes_large_experiments_keeps_neither_readers_nor_decisions_nor_the_end_waiting(tmp_path, hooks):
    address, stuck, for_ever, ended = f"sqlite:///{tmp_path}/builds.db", threading.Semaphore(0), threading.Event(), []

    def slow(find, of):
        if of.startswith("large"):
            stuck.release()
            for_ever.wait(PATIENCE)
            ended.append(of)
        return find(of)

    async def ask():
        hooks["find"] = slow
        async with running(address, work_timeout=0.5, busy_timeout=5.0) as (_, client):
            bodies = [{"name": f"large-{number}", "graph": GRAPH} for number in range(6)]
            waiting = [asyncio.create_task(client.post("/v1/experiments", json=body)) for body in bodies]
            for _ in range(2):
                await asyncio.to_thread(stuck.acquire)
            for number in range(1, 21):
                assert (await decide(client, "small"))["round"] == number
                assert (await client.get("/v1/experiments/small")).status_code == 200
            replies = [each.result() for each in (await asyncio.wait(waiting))[0]]
            assert {(reply.status_code, reply.json()["code"]) for reply in replies} == {(503, "busy")}

    with opened(address) as bench:
        bench.create("small")
    try:
        asyncio.run(ask())
        assert not ended  # the end did not wait for those who are stuck
    finally:
        for_ever.set()


def test_a_pool_refuses_what_is_too_much_and_does_not_begin_what_nobody_waits_for():
    async def ask():
        pool, begun, further, done = pools.Pool("things", 1, 2, 60.0), threading.Event(), threading.Event(), []
        try:
            first = asyncio.create_task(pool.run(lambda: (begun.set(), further.wait(PATIENCE))))
            await asyncio.to_thread(begun.wait)
            second, third = (asyncio.create_task(pool.run(done.append, name)) for name in ("second", "third"))
            await asyncio.sleep(0)  # both wait now
            with pytest.raises(ServiceError, match="Too many things are waiting"):
                await pool.run(done.append, "fourth")
            second.cancel()
            await asyncio.sleep(0)
            further.set()
            await asyncio.wait_for(asyncio.gather(first, third), PATIENCE)
            assert done == ["third"]
        finally:
            pool.close()

    asyncio.run(ask())


def decide_until_refused(bench, graphs, *, tell):
    """Decide with one graph after the other; return the decisions, and the error that refuses the next one."""
    made = []
    for graph in graphs:
        try:
            made.append(bench.decide(graph=graph))
        except ServiceError as error:
            return made, error
        if tell:
            bench.tell(made[-1])
    raise AssertionError


def test_all_that_a_decision_with_a_graph_of_its_own_makes_the_service_keep_is_charged(tmp_path):
    graphs = [sl.graphs.erdos_renyi(60, 0.9, seed=seed) for seed in range(80)]
    least = 4 * graphs[0].n_edges  # bytes that a graph takes, and some may say more
    counts = {}
    for times in (1, 2):
        address, most = f"sqlite:///{tmp_path}/bytes-{times}.db", times * 10 * least
        with opened(address, max_outstanding_bytes=most, max_graph_bytes=3 * most) as bench:
            bench.create(graph=sl.graphs.complete(60))
            made, error = decide_until_refused(bench, graphs, tell=False)
            assert (error.status, error.code) == (429, "too_many_outstanding")
            for one in made:
                bench.tell(one)
            kept, error = decide_until_refused(bench, graphs, tell=True)
            assert (error.status, error.code, error.path) == (409, "full", "body.graph")
            bench.tell(bench.decide(graph=graphs[0]))  # one that is kept already, again and again
            asked = bench.decide()
            for _ in range(2):
                with pytest.raises(ServiceError, match="at most"):
                    bench.tell(asked, 0.5, graph=graphs[-1])
            bench.tell(asked)
            bench.store.save(least=1)
        with opened(address, max_outstanding_bytes=most, max_graph_bytes=3 * most) as bench:
            with pytest.raises(ServiceError, match="at most"):
                bench.decide(graph=graphs[-1])
            bench.tell(bench.decide(graph=graphs[1]))
        counts[times] = len(made), len(kept)
    assert counts[1][0] <= 10
    assert counts[1][1] <= 30
    assert counts[2] == pytest.approx([2 * count for count in counts[1]], abs=2)


def test_decisions_that_share_a_graph_are_charged_for_one(tmp_path):
    graph = sl.graphs.erdos_renyi(60, 0.9, seed=1)
    with opened(f"sqlite:///{tmp_path}/shared.db", max_outstanding_bytes=40 * graph.n_edges) as bench:
        bench.create(graph=sl.graphs.complete(60))
        others = [sl.graphs.erdos_renyi(60, 0.9, seed=seed) for seed in range(2, 40)]
        alone, _ = decide_until_refused(bench, others, tell=False)
        for each in alone:
            bench.cancel(each)
        shared, _ = decide_until_refused(bench, [graph] * 10_000, tell=False)
        assert len(shared) > 3 * len(alone)


@pytest.mark.postgresql
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_large_graph_of_a_round_is_written_in_parts_before_its_turn_and_goes_if_it_is_refused(
    kind, request, tmp_path, monkeypatch
):
    address, meter = new_database(kind, request, tmp_path), Meter(hooked(monkeypatch))
    large, wrong = ({"name": "erdos_renyi", "n": 400, "r": 0.9, "seed": seed} for seed in (1, 2))

    async def ask():
        async with running(address) as (server, client):
            body = {"name": "e", "graph": {"name": "complete", "n": 400}, "learner": "exp3.g++"}
            assert (await client.post("/v1/experiments", json=body)).status_code == 201
            meter.written.clear()
            made = (await client.post("/v1/experiments/e/decisions", json={"graph": large})).json()
            assert sum(each.bytes for each in meter.written) > 2**19
            assert max(each.bytes for each in meter.written) <= 2**18
            assert sum(each.bytes for each in meter.written if not each.aside) < 2**14
            feedback = {"losses": [0.5], "graph": wrong}
            for path in (f"/v1/decisions/{made['id']}/feedback", f"/v1/decisions/{made['id'][:-1]}9/feedback"):
                assert (await client.post(path, json=feedback)).status_code in {404, 422}
            known = {"id": identify(sl.graphs.erdos_renyi(400, 0.9, seed=2)).id}
            reply = await client.post("/v1/experiments/e/decisions", json={"graph": known})
            assert reply.status_code == 422  # nothing is kept of what was refused
            assert "There is no graph" in reply.json()["detail"]
            known = {"id": identify(sl.graphs.erdos_renyi(400, 0.9, seed=1)).id}
            assert (await client.post("/v1/experiments/e/decisions", json={"graph": known})).status_code == 201
            monkeypatch.setattr(server.settings, "max_graph_bytes", 2**19)
            meter.written.clear()
            reply = await client.post("/v1/experiments/e/decisions", json={"graph": wrong})
            assert (reply.status_code, reply.json()["code"]) == (409, "full")
            assert sum(each.bytes for each in meter.written) == 0  # what cannot be kept is not written
            return (await client.get("/v1/experiments/e?digest=true")).json()["digest"]

    digest = asyncio.run(ask())
    with opened(address) as bench:
        assert bench.digest() == digest


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_graph_that_nothing_uses_is_forgotten_after_its_time_and_one_that_is_used_stays(kind, request, tmp_path):
    address = new_database(kind, request, tmp_path)
    with opened(address) as bench, opened(address, bench.hands) as other:
        bench.create(graph=sl.graphs.complete(4))
        used, idle, again = (
            creation.keep_graph(bench.store, graph)[0].id
            for graph in (sl.graphs.nested(4), sl.graphs.cliques([2, 2]), sl.graphs.self_loops(4))
        )
        made = other.decide(graph=used)
        bench.hands.move(86_000)
        assert bench.store.collect() == 0
        creation.keep_graph(bench.store, sl.graphs.self_loops(4))
        other.store.made_ready("e", idle)  # which has it in memory then
        bench.hands.move(500)
        assert bench.store.collect() == 1
        for each in (bench, other):
            with pytest.raises(ServiceError, match="There is no graph") as refused:
                each.decide(graph=idle)
            assert refused.value.status == 422
        other.decide(graph=again)
        bench.decide(graph=sl.graphs.cliques([2, 2]))  # sent again
        with bench.database.reading() as reading:
            events = list(since(reading, reading.find("e").id, 2))
        assert [event.graph for event in events] == [again, idle]
        bench.tell(made)
        bench.hands.move(10**6)
        assert other.store.collect() == 0


def test_a_snapshot_does_not_hold_the_graphs_of_decisions_that_wait(tmp_path, hooks):
    address, meter = f"sqlite:///{tmp_path}/small.db", Meter(hooks)
    with opened(address) as bench:
        bench.create(graph=sl.graphs.complete(60))
        graphs = [sl.graphs.erdos_renyi(60, 0.9, seed=seed) for seed in (1, 2, 3)]
        for which in (0, 1, 0, 2):
            bench.decide(graph=graphs[which])
        digest = bench.digest()
        meter.written.clear()
        bench.store.save(least=1)
        assert sum(each.bytes for each in meter.written) < 4 * sum(graph.n_edges for graph in graphs)
    meter.events_read = 0
    with opened(address) as bench:
        assert bench.digest() == digest
        assert meter.events_read <= 1  # it comes from the snapshot


def test_keys_and_contexts_in_memory_are_limited_in_bytes(tmp_path, hooks):
    looked_up = []

    def note(keyed, experiment, keys):
        looked_up.extend(keys)
        return keyed(experiment, keys)

    with opened(f"sqlite:///{tmp_path}/keys.db") as bench:
        bench.create()
        every = [Decide("e", key=f"{number}", context="x" * 4000) for number in range(1200)]  # nearly 5 megabytes
        first, *_, last = bench.store.run(every)
        hooks["keyed"] = note
        assert bench.decide(key="1199", context="x" * 4000) == one_of(last)._replace(duplicate=True)
        assert "1199" not in looked_up
        assert bench.decide(key="0", context="x" * 4000) == one_of(first)._replace(duplicate=True)
        assert "0" in looked_up  # the database knows it
