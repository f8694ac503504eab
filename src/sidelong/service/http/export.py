"""The log of an experiment as a Parquet file, with the column names of the Open Bandit Pipeline."""

from __future__ import annotations

import asyncio
import json
import tempfile
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from starlette.responses import StreamingResponse

from sidelong.service import pools
from sidelong.service.http import keyed_log
from sidelong.service.http.problems import for_temporary_files
from sidelong.service.http.views import status_of
from sidelong.service.store import journal
from sidelong.service.store.replay import check_chain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from sidelong.service.store.database import Identity, Reading
    from sidelong.service.store.journal import Event
    from sidelong.service.store.store import Store

_TOLD = {journal.Kind.TOLD, journal.Kind.DEFAULTED}
_ROWS = 5000
_CHUNK = 2**18  # bytes
_CELLS = 1_000_000  # losses in memory


def reply(store: Store, of: str) -> StreamingResponse:
    """Return the file as a reply. It has no name, so that it goes with the process, even if that is killed."""
    with for_temporary_files():
        file = tempfile.TemporaryFile(prefix="sidelong-")  # noqa: SIM115  # closed when it is sent
        try:
            name = write(store, of, file).name
            size = file.tell()
            file.seek(0)
        except BaseException:
            file.close()
            raise
    headers = {"Content-Length": str(size), "Content-Disposition": f'attachment; filename="{name}.parquet"'}
    return StreamingResponse(_sent(file), headers=headers, media_type="application/vnd.apache.parquet")


async def _sent(file: BinaryIO) -> AsyncIterator[bytes]:
    try:
        while data := await asyncio.to_thread(file.read, _CHUNK):
            yield data
    finally:
        file.close()


def write(store: Store, of: str, file: Path | BinaryIO) -> Identity:
    """Write the log of an experiment to a file; end early if nobody waits for it any more."""
    import pyarrow as pa  # noqa: PLC0415  # 50 MB that most servers never need
    import pyarrow.parquet as pq  # noqa: PLC0415

    identity = store.identity(of)
    spec = identity.spec
    about = {
        "name": identity.name,
        **spec.model_dump(include={"learner", "learner_version", "options", "seed", "expire_after"}),
    }
    with store.database.reading() as reading:
        labels = journal.labels_at(reading, identity)
        for _ in check_chain(reading, identity):
            pools.check()
        graph = store.graph_cache.find(reading, spec.graph)
        about |= {"n_arms": graph.n_arms, "graph": spec.graph_name}
        schema = _schema(pa)
        if spec.keyed:
            schema = schema.append(pa.field("key", pa.string()))
        schema = schema.with_metadata({"sidelong.experiment": json.dumps(about)})
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for rows in _pages(store, reading, identity):
                for row in rows:
                    row["label"] = labels and labels[row["action"]]
                writer.write_table(pa.Table.from_pylist(rows, schema))
    return identity


def _schema(pa: Any) -> Any:
    return pa.schema(
        [
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("action", pa.int64()),
            ("reward", pa.float64()),
            ("pscore", pa.float64()),
            ("position", pa.int64()),
            ("context", pa.string()),
            ("decision", pa.string()),
            ("round", pa.int64()),
            ("status", pa.string()),
            ("drawn_by", pa.string()),
            ("observed", pa.list_(pa.int64())),
            ("losses", pa.list_(pa.float64())),
            ("observe_probabilities", pa.list_(pa.float64())),
            ("label", pa.string()),
        ]
    )


def _pages(store: Store, reading: Reading, identity: Identity) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows, in pages that fit into memory."""
    page: list[dict[str, Any]] = []
    cells = 0
    for row in _rows(store, reading, identity):
        page.append(row)
        cells += 0 if row["losses"] is None else len(row["losses"])
        if len(page) >= _ROWS or cells >= _CELLS:
            yield page
            page, cells = [], 0
    if page:
        yield page


def _rows(store: Store, reading: Reading, identity: Identity) -> Iterator[dict[str, Any]]:
    if identity.spec.keyed:
        yield from keyed_log.rows(store, reading, identity)
        return
    for events in journal.by_round(reading, identity.id):
        pools.check()
        yield _row(store, reading, identity, events)


def _row(store: Store, reading: Reading, identity: Identity, events: list[Event]) -> dict[str, Any]:
    made, *others = events
    told = next((event for event in others if event.kind in _TOLD), None)
    last = told or (others[-1] if others else None)  # what came too late changes nothing of what was told
    row = {
        "timestamp": made.at,
        "action": made.arm,
        "reward": None,
        "pscore": made.probability,
        "position": 0,
        "context": made.context,
        "decision": f"{identity.key}-{made.round}",
        "round": made.round,
        "status": status_of(last and last.kind),
        "drawn_by": journal.DRAWN_BY[made.kind],
        "observed": None,
        "losses": None,
        "observe_probabilities": None,
    }
    if told is not None:
        graph = store.graph_cache.find(reading, told.graph or made.graph or identity.spec.graph)
        reveals = graph.out_neighbors(made.arm or 0)
        losses = np.frombuffer(told.losses or b"", "<f8")
        own = losses[reveals == made.arm]
        row["reward"] = 1.0 - float(own[0]) if own.size else None
        row["observed"], row["losses"] = reveals, losses
        row["observe_probabilities"] = None if told.observe is None else np.frombuffer(told.observe, "<f8")
    return row
