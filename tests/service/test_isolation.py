"""Whatever one client, experiment or file does, the decisions of others do not notice."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
import time

import httpx
import psycopg
import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

import sidelong as sl
from service.stores import new_database, opened
from sidelong.agent import state_file
from sidelong.errors import ServiceError
from sidelong.service import pools
from sidelong.service.http import export, views
from sidelong.service.http.app import Application
from sidelong.service.settings import Settings
from sidelong.service.store import creation, snapshots
from sidelong.service.store.experiment import Turnstile
from sidelong.service.store.graphs import size, stored_size
from sidelong.service.store.replay import Replayed
from sidelong.service.store.sql import schema
from sidelong.service.store.sql.database import _Writing

GRAPH = {"name": "cliques", "sizes": [3, 2]}
PATIENCE = 60  # seconds that no test takes: whoever waits for another waits for ever


@contextlib.asynccontextmanager
async def running(address, **settings):
    """Run a server in this process; yield it, and a client."""
    app = Application(Settings(database=address, decide_rate=1e9, read_rate=1e9, feedback_rate=1e9, **settings))
    async with (
        app.running(),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=PATIENCE) as client,
        asyncio.timeout(PATIENCE),
    ):
        yield app.server, client


async def create(client, *names):
    for name in names:
        body = {"name": name, "graph": GRAPH, "learner": "exp3.g++", "seed": 1}
        assert (await client.post("/v1/experiments", json=body)).status_code == 201


async def decide(client, name):
    reply = await client.post(f"/v1/experiments/{name}/decisions")
    assert reply.status_code == 201, reply.text
    return reply.json()


def test_nobody_waits_for_the_replay_of_another_and_it_shows(tmp_path, monkeypatch):
    address = f"sqlite:///{tmp_path}/replay.db"
    further, begun, replay = threading.Event(), threading.Event(), Replayed._replay

    def slow(self, reading, live, most):
        if self.identity.name == "large" and live.head >= most and not further.wait(0.01):
            begun.set()
            return False
        return replay(self, reading, live, most)

    async def make():
        async with running(address) as (_, client):
            await create(client, "large", "small")
            for _ in range(5):
                await decide(client, "large")

    async def ask():
        async with running(address) as (server, client):
            waiting = asyncio.create_task(decide(client, "large"))
            await asyncio.to_thread(begun.wait, PATIENCE)
            for number in range(1, 21):
                assert (await decide(client, "small"))["round"] == number
            assert not waiting.done()
            assert (await client.get("/ready")).json()["experiments"] == {"live": 1, "loading": 1, "refused": 0}
            assert (await client.get("/ready")).json()["status"] == "degraded"
            listed = (await client.get("/v1/experiments")).json()
            assert [each["name"] for each in listed["items"]] == ["small"]
            assert listed["loading"] == [{"name": "large", "done": 4, "events": 6}]
            metrics = (await client.get("/metrics")).text
            assert 'sidelong_experiments{state="loading"} 1.0' in metrics
            assert 'sidelong_replay_left{experiment="large"} 2.0' in metrics
            monkeypatch.setattr(server.settings, "request_timeout", 0.05)
            late = await client.get("/v1/experiments/large")
            assert (late.status_code, late.json()["code"]) == (503, "busy")
            assert "4 of 6 events" in late.json()["detail"]
            further.set()
            assert (await waiting)["round"] == 6
            assert (await client.get("/ready")).json()["status"] == "ok"

    asyncio.run(make())
    with opened(address) as bench, bench.database.writing() as writing:
        writing.connection.exec_driver_sql("DELETE FROM snapshots")
        writing.commit()
    monkeypatch.setattr(Replayed, "_replay", slow)
    monkeypatch.setattr("sidelong.service.store.replay._PAGE", 4)
    asyncio.run(ask())


def test_who_looks_at_an_experiment_keeps_only_those_waiting_who_decide_there(tmp_path, monkeypatch):
    looking, done = threading.Event(), threading.Event()
    state = views.state

    def slow(experiment, *query):
        if experiment.identity.name == "looked-at" and not done.is_set():
            looking.set()
            done.wait(PATIENCE)
        return state(experiment, *query)

    async def ask():
        async with running(f"sqlite:///{tmp_path}/look.db") as (_, client):
            await create(client, "looked-at", "other")
            monkeypatch.setattr(views, "state", slow)
            look = asyncio.create_task(client.get("/v1/experiments/looked-at"))
            await asyncio.to_thread(looking.wait, PATIENCE)
            waiting = [asyncio.create_task(decide(client, "looked-at")) for _ in range(3)]
            for number in range(1, 11):
                assert (await decide(client, "other"))["round"] == number
            assert (await client.get("/metrics")).status_code == 200
            assert not any(each.done() for each in waiting)
            done.set()
            assert sorted(each["round"] for each in await asyncio.gather(*waiting)) == [1, 2, 3]
            assert (await look).status_code == 200

    asyncio.run(ask())


def test_an_experiment_that_another_server_has_locked_does_not_keep_the_others_waiting(request, tmp_path, monkeypatch):
    address = new_database("postgresql", request, tmp_path, monkeypatch)

    async def ask():
        async with running(address, busy_timeout=PATIENCE) as (_, client):
            await create(client, "locked", "other")
            with psycopg.connect(address) as connection:  # as a server that was stopped in the middle of a commit
                connection.execute("SELECT head FROM experiments WHERE name = 'locked' FOR UPDATE")
                waiting = [asyncio.create_task(decide(client, "locked")) for _ in range(3)]
                for number in range(1, 11):
                    assert (await decide(client, "other"))["round"] == number
                assert not any(each.done() for each in waiting)
            assert sorted(each["round"] for each in await asyncio.gather(*waiting)) == [1, 2, 3]

    asyncio.run(ask())


def test_a_server_that_stands_still_gives_its_locks_on_postgresql_back(request, tmp_path, monkeypatch):
    address = new_database("postgresql", request, tmp_path, monkeypatch)
    with opened(address, busy_timeout=0.5) as bench, opened(address) as other:
        bench.create()
        other.store.load("e")
        with other.database.writing() as stopped:
            stopped.lock(1)  # and then it is stopped
            with pytest.raises(ServiceError, match="holds the lock"):
                bench.decide()
            show = stopped.connection.exec_driver_sql
            assert show("SHOW idle_in_transaction_session_timeout").scalar() == "10s"
            assert [show(f"SHOW tcp_keepalives_{name}").scalar() for name in ("idle", "count")] == ["10", "3"]
            show("SET idle_in_transaction_session_timeout = 1")  # as if those seconds were over
            while not stopped.connection.closed:
                time.sleep(0.05)
                with contextlib.suppress(ServiceError):
                    assert bench.decide().event.round == 1
                    break
            with pytest.raises(DBAPIError, match=r"idle-in-transaction timeout|closed"):
                stopped.lock(1)


def test_a_snapshot_that_cannot_be_written_is_tried_less_and_less_often(tmp_path, monkeypatch):
    monkeypatch.setattr("sidelong.service.store.pace._EVENT", 2**30)
    tries, save = [], _Writing.save

    def fail(_, __, snapshot):
        tries.append(snapshot.seq)
        raise OSError("no room")

    with opened(f"sqlite:///{tmp_path}/snapshots.db") as bench:
        bench.create()
        replayed = bench.store.named("e")
        monkeypatch.setattr(_Writing, "save", fail)
        for _ in range(400):
            bench.decide()
            if replayed.is_stale(10, 2**40):
                with pytest.raises(OSError, match="no room"):
                    replayed.save(bench.database)
        assert tries == [10, 30, 70, 150, 310]
        monkeypatch.setattr(_Writing, "save", save)
        replayed.save(bench.database)
        for _ in range(10):
            assert not replayed.is_stale(10, 2**40)
            bench.decide()
        assert replayed.is_stale(10, 2**40)


def test_a_large_snapshot_is_written_in_parts_between_which_others_write_and_less_often(tmp_path, monkeypatch):
    monkeypatch.setattr("sidelong.service.store.replay.PART", 1000)
    monkeypatch.setattr("sidelong.service.store.pace._EVENT", 1000)
    address, between, keep = f"sqlite:///{tmp_path}/large.db", [], _Writing.keep_part

    def note(self, experiment, seq, number, data):
        between.append(number)
        assert len(data) == 1000
        keep(self, experiment, seq, number, data)

    monkeypatch.setattr(_Writing, "keep_part", note)
    with opened(address) as bench:
        bench.create(graph=sl.graphs.nested(50))
        for _ in range(200):
            bench.decide()
        replayed = bench.store.named("e")
        for _ in range(2):
            replayed.save(bench.database)
            bench.decide()
        digest, size = bench.digest(), replayed._pace._size
        assert between[:100] == list(range(100))
        for _ in range(-(-size // 1000) - 1):
            assert not replayed.is_stale(10, 2**40)
            bench.decide()
        assert replayed.is_stale(10, 2**40)
        with bench.database.reading() as reading:
            seqs = reading.connection.exec_driver_sql("SELECT DISTINCT seq FROM parts").scalars().all()
        assert sorted(seqs) == [201, 202]
    with opened(address) as bench:
        monkeypatch.setattr(Replayed, "_new", None)  # it comes from the snapshot
        bench.store.load("e")
        assert bench.digest() != digest
        assert bench.store.named("e").live.saved == 202


def test_a_lock_goes_to_commands_before_looks_and_to_each_in_turn():
    lock, order = Turnstile(), []
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


def test_health_is_answered_when_there_are_too_many_connections_and_others_are_refused_in_json(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/full.db", max_connections=8)
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
    try:
        assert server.get("/health") == (200, {"status": "ok", "version": sl.__version__})
        status, problem, headers = server.send("GET", "/ready")
        assert (status, problem["code"], headers["Content-Type"]) == (503, "busy", "application/problem+json")
        assert int(headers["Retry-After"]) >= 1
    finally:
        for each in silent:
            each.close()
    end = time.monotonic() + PATIENCE
    while server.get("/ready")[0] != 200:
        assert time.monotonic() < end
    server.stop()


def test_a_log_that_nobody_reads_stops_nobody_and_says_later_what_was_lost(tmp_path):
    program = "import sys; from sidelong.service.serve import serve; from sidelong.service.settings import Settings\n"
    program += (
        "serve(Settings(port=0, database=sys.argv[1], read_rate=1e9), lambda address: print(address, flush=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, f"sqlite:///{tmp_path}/pipe.db"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    address = process.stdout.readline().decode().strip()
    with httpx.Client(base_url=address, timeout=PATIENCE) as client:
        path = f"/v1/experiments/{'x' * 180}"
        for _ in range(4000):  # more than a megabyte of lines, and no pipe holds that much
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


def test_downloads_whose_clients_have_left_end_at_once_and_those_that_wait_are_not_begun(tmp_path, monkeypatch):
    begun, beginning, write = [], threading.Semaphore(0), export.write

    def slow(store, name, file):
        begun.append(name)
        beginning.release()
        if name != "quick":
            while True:
                pools.check()
                time.sleep(0.001)
        write(store, name, file)

    async def ask():
        async with running(f"sqlite:///{tmp_path}/left.db") as (server, client):
            names = [f"slow-{number}" for number in range(6)]
            await create(client, *names, "quick")
            monkeypatch.setattr(export, "write", slow)
            app = client._transport.app
            asked = {name: await ask_and_leave(app, f"/v1/experiments/{name}/log") for name in names}
            for _ in range(2):
                await asyncio.to_thread(beginning.acquire)
            first = set(begun)
            # Those that wait leave first: the place of one that ends is taken by whoever still waits.
            for name in sorted(names, key=first.__contains__):
                leave, task, _ = asked[name]
                leave()
                await task
            assert (await client.get("/v1/experiments/quick/log")).status_code == 200
            assert len(first) == 2
            assert begun[2:] == ["quick"]
            assert not server.exports._work

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


def test_who_makes_large_experiments_keeps_neither_readers_nor_decisions_nor_the_end_waiting(tmp_path, monkeypatch):
    stuck, for_ever, draft = threading.Semaphore(0), threading.Event(), creation.draft

    def slow(store, name, *rest):
        if name.startswith("large"):
            stuck.release()
            for_ever.wait(PATIENCE)
        return draft(store, name, *rest)

    async def ask():
        async with running(f"sqlite:///{tmp_path}/builds.db") as (server, client):
            await create(client, "small")
            server.builds._seconds = 0.5
            monkeypatch.setattr(creation, "draft", slow)
            bodies = [{"name": f"large-{number}", "graph": GRAPH} for number in range(6)]
            waiting = [asyncio.create_task(client.post("/v1/experiments", json=body)) for body in bodies]
            for _ in range(2):
                await asyncio.to_thread(stuck.acquire)
            for number in range(1, 21):
                assert (await decide(client, "small"))["round"] == number
                assert (await client.get("/v1/experiments/small")).status_code == 200
            replies = [each.result() for each in (await asyncio.wait(waiting))[0]]
            assert {(reply.status_code, reply.json()["code"]) for reply in replies} == {(503, "busy")}

    begun = time.monotonic()
    try:
        asyncio.run(ask())
        assert time.monotonic() - begun < PATIENCE  # the end did not wait for those who are stuck
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
    graphs = [sl.graphs.erdos_renyi(60, 0.9, seed=seed) for seed in range(40)]
    each, stored = size(graphs[0]), stored_size(graphs[0])
    address = f"sqlite:///{tmp_path}/bytes.db"
    with opened(address, max_outstanding_bytes=10 * each, max_graph_bytes=20 * stored) as bench:
        bench.create(graph=sl.graphs.complete(60))
        live = bench.store.load("e").live
        made, error = decide_until_refused(bench, graphs, tell=False)
        assert (error.status, error.code) == (429, "too_many_outstanding")
        assert 8 <= len(made) <= 10
        assert live.held <= 10 * each
        for one in made:
            bench.tell(one)
        assert live.held == 0
        kept, error = decide_until_refused(bench, graphs, tell=True)
        assert (error.status, error.code, error.path) == (409, "full", "body.graph")
        assert 17 <= len(kept) <= 21
        assert live.graph_bytes <= 20 * stored
        bench.tell(bench.decide(graph=graphs[0]))  # one that is kept already, again and again
        bench.store.settings.max_graph_bytes = live.graph_bytes
        asked, before = bench.decide(), live.graph_bytes
        for _ in range(2):
            with pytest.raises(ServiceError, match="at most"):
                bench.tell(asked, 0.5, graph=graphs[-1])
        assert live.graph_bytes == before
        bench.tell(asked)
        bench.store.save(least=1)
    with opened(address) as bench:
        live = bench.store.load("e").live
        assert live.graph_bytes == pytest.approx(before, rel=0.1)
        assert live.held == 0


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_large_graph_of_a_round_is_written_in_parts_before_its_turn_and_goes_if_it_is_refused(
    kind, request, tmp_path, monkeypatch
):
    for place in ("graphs", "store"):
        monkeypatch.setattr(f"sidelong.service.store.{place}.PART", 1000)
    graphs = [sl.graphs.erdos_renyi(60, 0.9, seed=seed) for seed in range(4)]
    address, keep = new_database(kind, request, tmp_path, monkeypatch), _Writing.keep_graph_part
    with opened(address) as bench:
        bench.create(graph=sl.graphs.complete(60))
        live = bench.store.load("e").live

        def between(self, id_, number, data, now):
            assert len(data) == 1000
            keep(self, id_, number, data, now)
            if kind == "postgresql":  # where many write at a time
                bench.tell(bench.decide())

        def count(what):
            with bench.database.reading() as reading:
                return reading.connection.execute(select(func.count()).select_from(what)).scalar()

        monkeypatch.setattr(_Writing, "keep_graph_part", between)
        ready = [bench.store.made_ready("e", graph) for graph in graphs[:2]]
        assert [each.new for each in ready] == [True, True]
        assert count(schema.graph_parts) == sum(stored_size(graph) // 1000 for graph in graphs[:2])
        monkeypatch.setattr(_Writing, "keep_graph", None)  # its turn does not write it
        made = bench.decide(graph=ready[0])
        assert made.event.graph == ready[0].id
        assert live.graph_bytes == stored_size(graphs[0])
        monkeypatch.undo()
        for each in ready:  # as if both were refused
            bench.store.withdraw(each)
        assert (count(schema.graph_parts), count(schema.graphs)) == (stored_size(graphs[0]) // 1000, 2)
        bench.store.shelf.forget()
        monkeypatch.setattr("sidelong.service.store.store.PART", 1000)
        assert bench.store.made_ready("e", ready[0].id) == ready[0]._replace(new=False)
        bench.store.settings.max_graph_bytes = 1000  # what cannot be kept is not written
        assert not bench.store.made_ready("e", graphs[2]).new
        assert not bench.store.made_ready("e", sl.graphs.erdos_renyi(61, 0.9, seed=1)).new
        assert count(schema.graphs) == 2
        bench.tell(made)
        digest = bench.digest()
    with opened(address) as bench:
        assert bench.store.load("e").live.graph_bytes == pytest.approx(stored_size(graphs[0]), rel=0.1)
        assert bench.digest() == digest


def test_what_a_refused_request_brought_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("sidelong.service.store.store.PART", 1000)
    large = {"name": "erdos_renyi", "n": 60, "r": 0.9, "seed": 1}

    async def ask():
        async with running(f"sqlite:///{tmp_path}/refused.db") as (server, client):
            body = {"name": "e", "graph": {"name": "complete", "n": 60}, "learner": "exp3.g++"}
            assert (await client.post("/v1/experiments", json=body)).status_code == 201
            wrong = {"losses": [0.5], "graph": large}
            made = (await client.post("/v1/experiments/e/decisions")).json()
            for path in (f"/v1/decisions/{made['id']}/feedback", f"/v1/decisions/{made['id'][:-1]}9/feedback"):
                assert (await client.post(path, json=wrong)).status_code in {404, 422}
            with server.database.reading() as reading:
                assert reading.connection.exec_driver_sql("SELECT count(*) FROM graphs").scalar() == 1
            reply = await client.post("/v1/experiments/e/decisions", json={"graph": large})
            assert reply.status_code == 201

    asyncio.run(ask())


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_graph_that_nothing_uses_is_forgotten_after_its_time_and_one_that_is_used_stays(
    kind, request, tmp_path, monkeypatch
):
    address = new_database(kind, request, tmp_path, monkeypatch)
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
        bench.hands.move(500)
        assert bench.store.collect() == 1
        for each in (bench, other):  # also one that has it in memory still
            each.store.shelf._remember(idle, sl.graphs.cliques([2, 2]).named(None))
            with pytest.raises(ServiceError, match="There is no graph") as refused:
                each.decide(graph=idle)
            assert refused.value.status == 422
        assert other.decide(graph=again).event.graph == again
        assert bench.decide(graph=sl.graphs.cliques([2, 2])).event.graph == idle  # sent again
        bench.tell(made)
        bench.hands.move(10**6)
        assert other.store.collect() == 0


def test_a_snapshot_names_the_graphs_of_decisions_that_wait_and_does_not_hold_them(tmp_path, monkeypatch):
    address = f"sqlite:///{tmp_path}/small.db"
    with opened(address) as bench:
        bench.create(graph=sl.graphs.complete(60))
        for seed in (1, 2, 1, 3):
            bench.decide(graph=sl.graphs.erdos_renyi(60, 0.9, seed=seed))
        live, digest = bench.store.load("e").live, bench.digest()
        graphs = sum(stored_size(sl.graphs.erdos_renyi(60, 0.9, seed=seed)) for seed in (1, 2, 3))
        small, whole = snapshots.pack(live), state_file.pack(*snapshots._contents(live))
        assert len(small) < len(whole) - graphs
        bench.store.save(least=1)
    monkeypatch.setattr(Replayed, "_new", None)  # it comes from the snapshot
    with opened(address) as bench:
        assert bench.digest() == digest
    header, arrays = state_file.unpack(whole, "it")  # as programs wrote them that kept graphs in snapshots
    header["service"]["version"] = 5
    arrays["outstanding"] = arrays["outstanding"][:, 2:]  # without numbers, and with nobody aside
    old = snapshots.unpack(live.identity, state_file.pack(header, arrays), None, base=True)
    assert snapshots.digest(old) == digest


def test_keys_and_contexts_in_memory_are_limited_in_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("sidelong.service.store.experiment._KEY_BYTES", 20_000)
    with opened(f"sqlite:///{tmp_path}/keys.db") as bench:
        bench.create()
        first = bench.decide(key="0", context="x" * 4000)
        for number in range(1, 20):
            bench.decide(key=f"{number}", context="x" * 4000)
        live = bench.store.load("e").live
        assert len(live.keys) == 4
        assert bench.decide(key="0", context="x" * 4000).event == first.event  # the database knows it


def test_decisions_that_share_a_graph_are_charged_for_one(tmp_path):
    with opened(f"sqlite:///{tmp_path}/shared.db") as bench:
        bench.create(graph=sl.graphs.complete(60))
        live, row = bench.store.load("e").live, None
        for number in range(1, 6):
            bench.decide(graph=sl.graphs.erdos_renyi(60, 0.9, seed=1))
            row = live.outstanding[1][0].kept_bytes
            assert live.held == number * row + size(live.outstanding[1][0].graph)
        assert len({id(made.graph) for made, _ in live.outstanding.values()}) == 1
