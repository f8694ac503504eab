"""The log of an experiment as a Parquet file, with the column names of the Open Bandit Pipeline."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import tempfile
from collections import deque
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from starlette.responses import StreamingResponse

from sidelong.service import pools
from sidelong.service.http.problems import for_temporary_files
from sidelong.service.store import journal
from sidelong.service.store.replay import check_chain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from sidelong.service.store.database import Identity, Reading
    from sidelong.service.store.journal import Draws, Event, Settlement
    from sidelong.service.store.store import Store

    Row = dict[str, Any]

_TOLD = {journal.Kind.TOLD, journal.Kind.DEFAULTED}
_ROUNDS = 200  # that are read at once
_ROWS = 5000
_CHUNK = 2**18  # bytes
_CELLS = 1_000_000  # losses in memory


def reply(store: Store, of: str) -> StreamingResponse:
    """Return the file as a reply. It has no name, so that it goes with the process, even if that is killed."""
    with for_temporary_files():
        file = tempfile.TemporaryFile(prefix="sidelong-")  # noqa: SIM115  # closed when it is sent
        try:
            about = write(store, of, file)
            size = file.tell()
            file.seek(0)
        except BaseException:
            file.close()
            raise
    headers = {
        "Content-Length": str(size),
        "Content-Disposition": f'attachment; filename="{about["name"]}.parquet"',
        "First-Event": str(about["first_event"]),
    }
    return StreamingResponse(_sent(file), headers=headers, media_type="application/vnd.apache.parquet")


async def _sent(file: BinaryIO) -> AsyncIterator[bytes]:
    try:
        while data := await asyncio.to_thread(file.read, _CHUNK):
            yield data
    finally:
        file.close()


def write(
    store: Store,
    of: str,
    file: Path | BinaryIO,
    last: int | None = None,
    only: Callable[[Any], bool] = lambda _: True,
    *,
    numbered: bool = False,
) -> dict[str, Any]:
    """Write the log of an experiment to a file, and return what the file says of it.

    It begins where the journal was cut. It ends early if nobody waits for it any more.

    Args:
        store: where the experiment is.
        of: its name.
        file: where to write.
        last: the number of the last decision, if not all are written.
        only: tells by the key of a decision whether it is written.
        numbered: whether rounds are the numbers of decisions, which ascend over all keys.
    """
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
        graph = store.graphs.find(reading, journal.graph_now(reading, identity))
        cut = reading.cut(identity.id)
        about |= {"n_arms": graph.n_arms, "graph": spec.graph_name, "first_event": cut.seq + 1}
        schema = _schema(pa)
        if spec.keyed:
            schema = schema.append(pa.field("key", pa.string()))
        if spec.sticky is not None:
            schema = schema.append(pa.field("subject", pa.string()))
        schema = schema.with_metadata({"sidelong.experiment": json.dumps(about)})
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            found = _rows(store, reading, identity, cut.round + 1, last, only, numbered=numbered)
            for rows in _pages(found):
                for row in rows:
                    row["label"] = labels and labels[row["action"]]
                writer.write_table(pa.Table.from_pylist(rows, schema))
    return about


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
            ("advice", pa.string()),
            ("cost", pa.float64()),
            ("costs", pa.list_(pa.float64())),
        ]
    )


def _pages(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield rows in pages that fit into memory."""
    page: list[Row] = []
    cells = 0
    for row in rows:
        page.append(row)
        cells += 0 if row["losses"] is None else len(row["losses"])
        if len(page) >= _ROWS or cells >= _CELLS:
            yield page
            page, cells = [], 0
    if page:
        yield page


def _rows(
    store: Store,
    reading: Reading,
    identity: Identity,
    begin: int,
    last: int | None,
    only: Callable[[Any], bool],
    *,
    numbered: bool,
) -> Iterator[Row]:
    """Yield a row for each decision from one to another, by number.

    What settled a decision has a `round` that is not above its number, nor far below it, so that it was read before its
    row is made.
    """
    draws: deque[tuple[_Made, Iterator[Any]]] = deque()
    later: dict[int, list[_Later]] = {}  # by number
    for first in itertools.count(max(begin - journal.SPAN, 1), _ROUNDS):
        for event in reading.rounds(identity.id, first, first + _ROUNDS - 1):
            if event.kind in journal.DRAWN_BY:
                made = _Made(event, journal.read_draws(event), journal.read_columns(event))
                draws.append((made, zip(made.draws.listed(), journal.contexts(event), strict=True)))
                continue
            settlement = journal.read_settled(event)
            for place, number in enumerate(settlement.numbers.tolist()):
                later.setdefault(number, []).append(_Later(event, settlement, place))
        for number in range(first, first + _ROUNDS):
            pools.check()
            while draws and draws[0][0].event.last < number:
                draws.popleft()
            if number < begin:  # it was cut
                later.pop(number, None)
                continue
            if not draws or number == (last and last + 1):
                return
            made, rows = draws[0]
            (drawn, context), settled = next(rows), later.pop(number, [])
            if only(drawn[1]):
                row = _row(store, reading, identity, made, drawn, settled) | {"context": context}
                yield row | {"round": number} if numbered else row


class _Made(NamedTuple):
    """An event that has made decisions, read once for all of them."""

    event: Event
    draws: Draws
    columns: dict[str, Any]


class _Later(NamedTuple):
    """An event that is about a decision after it was made, its columns, and the place of the decision there."""

    event: Event
    settlement: Settlement
    place: int


def _row(
    store: Store,
    reading: Reading,
    identity: Identity,
    made: _Made,
    drawn: tuple[Any, ...],
    later: list[_Later],
) -> Row:
    number, key, round_, arm, p, by = drawn
    place = number - made.event.round
    advice = journal.advice_of(made.columns, place)
    override = next((each for each in later if each.event.kind is journal.Kind.OVERRIDDEN), None)
    if override is not None:  # carried out with an arm that nobody drew
        later.remove(override)
        arm, p, by = override.settlement.arm, math.nan, "override"
    told = next((each for each in later if each.event.kind in _TOLD), None)
    # What came too late changes nothing of what was told.
    last = told or max(later, key=lambda each: each.event.seq, default=None)
    row = {
        "timestamp": made.event.at,
        "action": arm,
        "reward": None,
        "pscore": None if math.isnan(p) else p,
        "position": 0,
        "decision": f"{identity.key}-{number}",
        "round": round_,
        "status": "outstanding" if last is None else last.event.kind.name.lower(),
        "drawn_by": by,
        "observed": None,
        "losses": None,
        "observe_probabilities": None,
        "key": None if key is None else str(key),
        "subject": journal.subject_of(made.columns),
        "advice": None if advice is None else json.dumps(advice),
        "cost": None,
        "costs": None,
    }
    if told is not None:
        graph = store.graphs.find(reading, told.event.graph or made.event.graph or identity.spec.graph)
        if told.event.graph is None:
            graph = made.draws.graph(place, graph)
        reveals, losses = graph.row(arm), told.settlement.losses_of(told.place)
        own = losses[reveals == arm]
        row["reward"] = 1.0 - float(own[0]) if own.size else None
        row["observed"], row["losses"] = reveals, losses
        row["observe_probabilities"] = told.settlement.observe_of(told.place)
        costs = told.settlement.costs_of(told.place)
        if costs is not None:
            row["cost"], row["costs"] = float(costs[reveals == arm][0]), costs
    return row
