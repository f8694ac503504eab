"""A deployment of the service, and experiments in it, as its users see them.

Tests that are written with these say nothing about how the service works inside. They send HTTP requests, choose
settings, make tokens on the command line, restart servers and move their clock. Experiments with and without keys are
used in the same words. What is stored is compared and damaged row by row, whatever the rows mean.
"""

import contextlib
import functools
import io
import itertools
import json
import socket
import ssl
import threading
import time
from typing import Any, NamedTuple

import httpx
import pyarrow.parquet as pq
import sqlalchemy as sa
import uvicorn

from service.servers import PATIENT, decisions_of, in_columns
from service.stores import Hands
from sidelong.cli import app as command_line
from sidelong.service.http.app import Application
from sidelong.service.settings import Settings
from sidelong.service.store.clock import Clock
from sidelong.service.store.database import BlobKind

KINDS = ("keyless", "keyed")
KEYS = [f"product {number}" for number in range(20_000)]
#: Playing any arm reveals all of them.
GRAPH = {"name": "complete", "n": 5}
#: Initial rounds are the same whatever was told, so that comparing what is drawn would show nothing.
LEARNS_AT_ONCE = {"start": "none"}
_UNLIMITED = {"decide_rate": 1e9, "feedback_rate": 1e9, "read_rate": 1e9}
#: To read those of the machine takes as long as many a test, and no test here needs one.
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_names = itertools.count(1)


class UnexpectedReplyError(Exception):
    """A request that only prepares a test was refused. It is no AssertionError, which some tests expect."""


class Reply(NamedTuple):
    """A reply; its body is read where it is JSON."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self):
        """Return the status, and the code of an error."""
        return self.status, self.body["code"] if self.status >= 400 else None

    @property
    def decisions(self):
        """Return the decisions of a reply to a request for one or several."""
        return decisions_of(self.ok().body)

    def ok(self):
        """Return the reply itself, which is no error."""
        if self.status >= 400:
            raise UnexpectedReplyError(self.status, self.body)
        return self


class Calls:
    """Counts calls of functions in the threads of a server."""

    number = 0

    def count(self, _, event, __):
        self.number += event in {"call", "c_call"}


class Deployment:
    """A server on a database, in a thread of this process, which sees a clock that tests move."""

    def __init__(self, address, hands=None, **settings):
        self.address = address
        self.hands = hands or Hands()
        self.settings = {**_UNLIMITED, **PATIENT, "sweep_every": 0.1, **settings, "database": address}
        self.admin = _admin(address)
        self._made = []

    @contextlib.contextmanager
    def running(self):
        """Serve until the end."""
        self.start()
        try:
            yield self
        finally:
            self.stop()

    def start(self):
        clock = Clock(lambda: self.hands.wall, lambda: self.hands.steady)
        application = Application(Settings(**self.settings), clock)
        listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        # A client that did nothing for a while on a busy machine must not find its connection closed.
        config = uvicorn.Config(application, log_config=None, access_log=False, ws="none", timeout_keep_alive=600)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listening],), daemon=True)
        self._thread.start()
        self._connect()
        until(lambda: self._server.started or not self._thread.is_alive())

    def _connect(self):
        self._client = httpx.Client(base_url=self.url, timeout=300.0, verify=_NO_CERTIFICATES)

    def stop(self):
        """Stop the server as SIGTERM does."""
        self._client.close()
        self._server.should_exit = True
        self._thread.join()

    def restart_without_snapshots(self):
        """Restart a server that finds no snapshot, and so replays the journal."""
        self.stop()
        stored, kinds = Stored(self.address), (BlobKind.SNAPSHOT, BlobKind.BLOCK)
        stored.delete([which for which in stored.rows() if which[0] == "blobs" and which[1][1] in kinds])
        self.start()

    def restart(self, pause=0.0):
        """Stop the server, and start it again after a pause."""
        self.stop()
        self.hands.move(pause)
        self.start()

    def beside(self):
        """Return another server on the same database."""
        return Deployment(self.address, self.hands, **self.settings).running()

    @contextlib.contextmanager
    def counting_calls(self):
        """Restart the server, and yield how many functions it has called since: its work, on whatever machine."""
        self.stop()
        calls = Calls()
        threading.setprofile(calls.count)
        self.start()
        threading.setprofile(None)
        yield calls

    def request(self, method, path, body=None, token=None, headers=None):
        """Send a request, with the token that allows everything unless another one is given."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"Authorization": f"Bearer {token or self.admin}", **(headers or {})}
        given |= {} if content is None else {"Content-Type": "application/json"}
        reply = self._client.request(method, path, content=content, headers=given)
        is_json = "json" in reply.headers.get("Content-Type", "")
        return Reply(reply.status_code, reply.json() if is_json else reply.content, reply.headers)

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, body, **more)

    def token(self, *scopes, experiment=None):
        """Make a token, and wait until the server knows it."""
        made = _create_token(self.address, "guest", scopes, experiment)
        until(lambda: self.get("/v1/access", token=made).status == 200)
        return made

    def create(self, kind, **spec):
        """Make an experiment of a kind."""
        body = {"name": f"e{next(_names)}", "learner": "exp3.g++", "options": LEARNS_AT_ONCE, "graph": GRAPH, "seed": 7}
        body |= spec
        body |= {"keyed": True} if kind == "keyed" else {}
        self.post("/v1/experiments", body).ok()
        return self.known(kind, body["name"], body)

    def known(self, kind, name, spec=None):
        """Return an experiment that is there."""
        self._made.append(made := Experiment(self, kind, name, spec))
        return made

    def clear(self):
        """Delete the experiments that were made, so that a restart does not load them."""
        for each in self._made:
            self.request("DELETE", f"/v1/experiments/{each.name}?name={each.name}")
        self._made.clear()


@functools.cache
def _admin(address):
    """Return the token that allows everything, of each database."""
    return _create_token(address, "admin", ["admin"])


def _create_token(address, name, scopes, experiment=None):
    words = ["token", "create", name, "--database", address, *(word for each in scopes for word in ("--scope", each))]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        command_line([*words, *([] if experiment is None else ["--experiment", experiment])], standalone_mode=False)
    return printed.getvalue().strip()


class ServerProcess(Deployment):
    """A server in a process of its own, which can be killed and which listens on a port; its clock is the real one."""

    def __init__(self, nursery, address, **settings):
        super().__init__(address, **settings)
        self._nursery = nursery

    def start(self):
        self._process = self._nursery.start(**{**self.settings, "database": self.address})
        self.url = self._process.address
        self._connect()

    def stop(self):
        self._client.close()
        self._process.stop()

    def kill(self):
        """End the server as a power cut does, and start another one."""
        self._client.close()
        self._process.kill()
        self.start()

    def logged(self, path):
        """Stop the server, and return the lines of its log that are about requests to a path."""
        self.stop()
        found = [line for line in self._process.log.read_text().splitlines() if f'"{path}"' in line]
        return [json.loads(line) for line in found]


class Experiment:
    """An experiment, used in the same words whether it has keys or not.

    Several decisions of one with keys are for the first of `KEYS`, one for each.
    """

    def __init__(self, deployment, kind, name, spec=None):
        self.deployment = deployment
        self.kind = kind
        self.name = name
        self.spec = spec
        self.most = 10_000 if kind == "keyed" else 1_000  # decisions of one request

    @property
    def path(self):
        return f"/v1/experiments/{self.name}"

    def ask(self, n=None, key=None, token=None, **body):
        """Ask for a decision, or for several, under an Idempotency-Key if one is given."""
        if self.kind == "keyed":
            which = {"key": KEYS[0]} if n is None else {"keys": KEYS[:n]}
        else:
            which = {} if n is None else {"count": n}
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.deployment.post(f"{self.path}/decisions", {**which, **body}, token=token, headers=headers)

    def decide(self, n=None, **more):
        """Return a decision, or a list of several."""
        found = self.ask(n, **more).decisions
        return found[0] if n is None else found

    def tell(self, decision, losses=0.25, **body):
        """Tell the losses of a decision: a number for all revealed arms, or what the body is to have."""
        sent = {"losses": told(decision, losses), **body}
        return self.deployment.post(f"/v1/decisions/{decision['id']}/feedback", sent)

    def tell_many(self, decisions, losses=0.25, **body):
        """Tell the losses of several decisions: a number for all, or a list with those of each."""
        each = losses if isinstance(losses, list) else [losses] * len(decisions)
        given = [
            [one] * len(made["reveals"]) if isinstance(one, int | float) else one
            for made, one in zip(decisions, each, strict=True)
        ]
        if any(isinstance(one, dict) for one in given):
            given = [
                one if isinstance(one, dict) else dict(zip(map(str, made["reveals"]), one, strict=True))
                for made, one in zip(decisions, given, strict=True)
            ]
        items = [{"id": made["id"], "losses": one} for made, one in zip(decisions, given, strict=True)]
        return self.deployment.post("/v1/feedback", in_columns(items, **body))

    def cancel(self, decision):
        return self.deployment.post(f"/v1/decisions/{decision['id']}/cancel")

    def override(self, decision, arm):
        return self.deployment.post(f"/v1/decisions/{decision['id']}/override", {"arm": arm})

    def look_up(self, decision):
        return self.deployment.get(f"/v1/decisions/{decision['id']}")

    def play(self, rounds=3, n=4):
        """Play some rounds in which losses depend on the arm and the round."""
        for number in range(rounds):
            made = self.decide(n)
            losses = [{str(arm): (arm + number) % 5 / 4 for arm in each["reveals"]} for each in made]
            self.tell_many(made, losses).ok()
        return self

    def change(self, **wanted):
        return self.deployment.request("PATCH", self.path, wanted)

    def rename(self, name):
        """Rename the experiment, and follow it."""
        self.change(name=name).ok()
        self.name = name

    def clone(self, **wanted):
        """Clone it; return the reply, and the clone."""
        body = {"name": f"e{next(_names)}", **wanted}
        reply = self.deployment.post(f"{self.path}/clone", body)
        return reply, self.deployment.known(self.kind, body["name"])

    def delete(self):
        return self.deployment.request("DELETE", f"{self.path}?name={self.name}")

    def state(self):
        return self.deployment.get(self.path).ok().body

    def counts(self, *names):
        """Return some of the counts of decisions."""
        counts = self.state()["counts"]
        return tuple(counts[name] for name in names)

    def sequence(self):
        """Return the number of its last event: whoever writes nothing leaves it as it is."""
        return self.state()["sequence"]

    def digest(self):
        """Return a checksum of the whole state."""
        return self.deployment.get(f"{self.path}?digest=true").ok().body["digest"]

    def observed(self):
        """Return how often each arm was played and observed, and the mean of what was seen."""
        arms = self.state()["arms"]["items"]
        return [(arm["plays"], arm["observations"], arm["observed_mean"]) for arm in arms]

    def log(self, token=None):
        return self.deployment.get(f"{self.path}/log", token=token)

    def rows(self):
        """Return the rows of the log, by decision."""
        table = pq.read_table(io.BytesIO(self.log().ok().body))
        return {row["decision"]: row for row in table.to_pylist()}


def told(decision, losses):
    """Return losses as a request has them; a number is for all arms that were revealed."""
    return {str(arm): losses for arm in decision["reveals"]} if isinstance(losses, int | float) else losses


def drawn(decisions):
    """Return what was drawn: by whom, which arms, with which probabilities."""
    return [(each["drawn_by"], each["arm"], each["probability"], each["reveals"]) for each in decisions]


def until(is_so, seconds=120.0):
    """Wait for what the service does by itself within moments."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise UnexpectedReplyError("It did not happen in time.")
        time.sleep(0.04)


class Stored:
    """What a database holds: rows, each by its table and its primary key."""

    def __init__(self, address):
        driver = address.replace("postgresql://", "postgresql+psycopg://")
        self._engine = sa.create_engine(driver, poolclass=sa.NullPool)
        self._tables = sa.MetaData()
        self._tables.reflect(self._engine)
        self._before = {}  # what was damaged, as it was

    def rows(self):
        """Return all rows."""
        found = {}
        with self._engine.connect() as connection:
            for table in self._tables.sorted_tables:
                for row in connection.execute(table.select()).mappings():
                    found[table.name, tuple(row[column.name] for column in table.primary_key)] = dict(row)
        return found

    @contextlib.contextmanager
    def added(self):
        """Yield a list, which has the rows that were added meanwhile at the end."""
        before, new = self.rows(), []
        yield new
        new += [which for which in self.rows() if which not in before]

    @contextlib.contextmanager
    def damaged(self):
        """Restore what is damaged meanwhile at the end."""
        before = self._before = {}
        try:
            yield
        finally:
            with self._engine.begin() as connection:
                for which, row in before.items():
                    table, own = self._row(which)
                    if not connection.execute(table.update().where(own).values(row)).rowcount:
                        connection.execute(table.insert().values(row))

    def delete(self, rows):
        """Delete rows."""
        values = self.rows()
        with self._engine.begin() as connection:
            for which in reversed(rows):
                self._before[which] = values[which]
                table, own = self._row(which)
                connection.execute(table.delete().where(own))

    def flip(self, rows):
        """Flip a bit in the middle of the longest binary value of each row that has one; return how many have."""
        return self.alter(rows, bytes, _flipped)

    def alter(self, rows, kind, change):
        """Change the longest value of a kind in each row that has one; return how many have."""
        values, altered = self.rows(), 0
        with self._engine.begin() as connection:
            for which in rows:
                found = {name: value for name, value in values[which].items() if isinstance(value, kind) and value}
                if found:
                    self._before[which] = values[which]
                    name = max(found, key=lambda each: len(found[each]))
                    table, own = self._row(which)
                    connection.execute(table.update().where(own).values({name: change(found[name])}))
                    altered += 1
        return altered

    def _row(self, which):
        table = self._tables.tables[which[0]]
        return table, sa.and_(*(column == value for column, value in zip(table.primary_key, which[1], strict=True)))


def _flipped(value):
    middle = len(value) // 2
    return value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :]
