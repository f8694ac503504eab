"""Making the snapshot that a newer version of a learner goes on from, with the program that wrote the journal.

Only the older program can replay what it has done. It may not know the tables of the database any more, so it never
sees the database: it gets the journals in a file of its own, in the tables that it makes there itself, is started and
stopped as an operator would, and the snapshots that it leaves are copied back.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sidelong.errors import LearnerError, ServiceError
from sidelong.service.store import rebasing
from sidelong.service.store.database import Snapshot
from sidelong.service.store.journal import SLOTS, Kind, since

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sidelong.service.store.database import Database, Identity, Reading

_SERVES = re.compile(r"http://\S+")
_BASED = {Kind.CREATED, Kind.REBASED}  # events beside which a state may be kept
_PAUSE = 0.2  # seconds between looks at a replay
#: Nothing expires in the copy, whose journal would go on without the one that counts. What the older program cannot
#: write there it forgets, and replays. If it is stopped before that, it leaves no snapshot, and is started again.
_ENDS = "CREATE TRIGGER ends BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'a copy does not go on'); END"
_TRIES = 5


class Older(NamedTuple):
    """An experiment that an older version of its learner has made."""

    identity: Identity
    journal: int  #: the version that its journal was made with
    own: int  #: the version that this program has


def find_older(database: Database, names: Sequence[str] = ()) -> list[Older]:
    """Return the experiments, all or those of some names, that older versions of their learners have made."""
    with database.reading() as reading:
        for name in names:
            if reading.find(name) is None:
                raise ServiceError(f"There is no experiment {name!r}.", status=404, code="not_found")
        every = [reading.find(name) for name in names or [each.name for each in reading.experiments()]]
        found = []
        for identity in every:
            with contextlib.suppress(LearnerError):  # one that this program does not have at all
                if identity is not None:
                    versions = rebasing.versions(reading, identity)
                    found.append(Older(identity, versions.journal, versions.own))
    return [each for each in found if each.journal < each.own]


def make_environment(folder: Path, what: str) -> Path:
    """Install a sidelong of another version into an environment of its own, and return its Python."""
    with_service = f"{what}[cli,service]" if _is_path(what) else f"sidelong[cli,service]=={what}"
    python = folder / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", with_service],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # ours
        if done.returncode:
            why = done.stderr.strip().splitlines()[-1:] or ["no reason was given"]
            raise ServiceError(f"{what} cannot be installed: {why[0]}")
    return python


def snapshots_by(python: Path, database: Database, older: Sequence[Older], folder: Path) -> list[tuple[str, int]]:
    """Let the sidelong of another Python make snapshots of experiments; return the name and the event of each."""
    file = folder / "journals.db"
    _run(python, "token", "list", "--database", str(file))  # which makes its tables
    with database.reading() as reading, contextlib.closing(sqlite3.connect(file)) as copy:
        for each in older:
            _copy(reading, each.identity, copy)
        copy.execute(_ENDS)
        copy.commit()
    made = []
    with contextlib.closing(sqlite3.connect(file)) as copy:
        for _ in range(_TRIES):
            with _serving(python, file) as address:
                for each in older:
                    _wait_for(address, each.identity.name)
            if all(_snapshot(copy, each.identity.id) is not None for each in older):
                break
        for each in older:
            snapshot = _snapshot(copy, each.identity.id)
            with database.writing() as writing:
                if snapshot is None or not _is_of(snapshot, writing, each.identity):
                    raise ServiceError(f"The older sidelong has left no snapshot of {each.identity.name!r}.")
                for number, seq, data in _blocks(copy, each.identity.id, snapshot.seq):
                    writing.keep_block(each.identity.id, number, seq, data)
                writing.save(each.identity.id, snapshot)
                writing.commit()
            made.append((each.identity.name, snapshot.seq))
    return made


def _copy(reading: Reading, identity: Identity, copy: sqlite3.Connection) -> None:
    """Copy an experiment with its journal into the tables of another version, as far as they have columns."""
    events = list(since(reading, identity.id, 0))
    graphs = {identity.spec["graph"]} | {event.graph for event in events if event.graph is not None}
    spec, head = json.dumps(identity.spec), events[-1].seq
    about = {"id": identity.id, "key": identity.key, "name": identity.name, "spec": spec, "head": head}
    _insert(copy, "experiments", [about])
    _insert(copy, "graphs", [{"id": id_, "data": reading.graph(id_)} for id_ in graphs])
    rows = [{"experiment": identity.id, "slot": SLOTS[each.kind], **each._asdict()} for each in events]
    _insert(copy, "events", [{**row, "kind": int(row["kind"])} for row in rows])
    kept = [(event.seq, reading.base(identity.id, event.seq)) for event in events if event.kind in _BASED]
    _insert(
        copy, "bases", [{"experiment": identity.id, "seq": seq, "data": data} for seq, data in kept if data is not None]
    )


def _insert(copy: sqlite3.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    columns = [row[1] for row in copy.execute(f"PRAGMA table_info({table})")]
    for row in rows:
        known = [name for name in row if name in columns]
        places = ", ".join(f":{name}" for name in known)
        copy.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(known)}) VALUES ({places})", row)  # noqa: S608  # ours


def _snapshot(copy: sqlite3.Connection, experiment: int) -> Snapshot | None:
    last = "SELECT seq, chain, data FROM snapshots WHERE experiment = ? ORDER BY seq DESC LIMIT 1"
    row = copy.execute(last, [experiment]).fetchone()
    if row is None:
        return None
    first = []
    with contextlib.suppress(sqlite3.OperationalError):  # versions that had no parts
        parts = "SELECT data FROM parts WHERE experiment = ? AND seq = ? ORDER BY number"
        first = [data for (data,) in copy.execute(parts, [experiment, row[0]])]
    return Snapshot(row[0], row[1], b"".join([*first, row[2]]))


def _blocks(copy: sqlite3.Connection, experiment: int, before: int) -> list[tuple[int, int, bytes]]:
    """Return the blocks of keys that a snapshot needs; versions that had no keys have no such table."""
    wanted = "SELECT number, seq, data FROM blocks WHERE experiment = ? AND seq <= ? ORDER BY number, seq"
    try:
        found = copy.execute(wanted, [experiment, before]).fetchall()
    except sqlite3.OperationalError:
        return []
    return list({row[0]: row for row in found}.values())  # the last one of each


def _is_of(snapshot: Snapshot, reading: Reading, identity: Identity) -> bool:
    """Tell whether a snapshot is one of the journal that counts."""
    return [event.chain for event in reading.events(identity.id, snapshot.seq - 1, 1)] == [snapshot.chain]


def _run(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "sidelong", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())  # noqa: S603
    if done.returncode:
        raise ServiceError(f"{python} runs no sidelong with a service: {(done.stderr.strip() or 'it says nothing')}")


@contextlib.contextmanager
def _serving(python: Path, file: Path) -> Iterator[str]:
    """Serve a file with another sidelong; at the end it is stopped, and writes its snapshots."""
    command = [str(python), "-m", "sidelong", "serve", "--database", str(file), "--port", "0"]
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": _environment()}
    with subprocess.Popen(command, text=True, **how) as process:  # noqa: S603
        try:
            found = _SERVES.search(process.stdout.readline() if process.stdout else "")
            if found is None:
                raise ServiceError(f"The sidelong of {python} does not serve.")
            yield found[0]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _wait_for(address: str, name: str) -> None:
    """Wait until an experiment is replayed, or say why it cannot be."""
    while True:
        try:
            with urllib.request.urlopen(f"{address}/v1/experiments/{name}", timeout=300) as reply:  # noqa: S310
                reply.read()
        except urllib.error.HTTPError as error:
            problem = json.loads(error.read())
            if problem.get("code") != "busy":
                text = f"The older sidelong cannot replay {name!r} either: {problem.get('detail')}"
                raise ServiceError(text, status=503, code="refused") from error
            time.sleep(_PAUSE)
        else:
            return


def _environment() -> dict[str, str]:
    """Return the environment without the settings of this service; nothing has to expire."""
    kept = {"SIDELONG_CACHE_DIR"}
    found = {name: value for name, value in os.environ.items() if not name.startswith("SIDELONG_") or name in kept}
    return {**found, "SIDELONG_SWEEP_EVERY": "86400"}


def _is_path(what: str) -> bool:
    return Path(what).exists() or "/" in what
