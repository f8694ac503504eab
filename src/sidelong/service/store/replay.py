"""Bringing an experiment into memory: the last good snapshot, and the journal from there on.

A snapshot only saves time: the journal is what counts. One that is damaged, or that another version of the program has
written, is passed over, and written anew. One that is whole, but is of another journal than the one beside it, means
that one of the two was altered: the experiment is refused, because nobody can say which.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, select

from sidelong.errors import ServiceError
from sidelong.service.store import journal
from sidelong.service.store.database import insert_into
from sidelong.service.store.experiment import Experiment
from sidelong.service.store.schema import snapshots

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sidelong.service.store.clock import Clock
    from sidelong.service.store.experiment import Identity
    from sidelong.service.store.graphs import Shelf

__all__ = ["catch_up", "incomplete", "open_experiment", "rebuild", "save_snapshot"]

_log = logging.getLogger("sidelong.service")
_KEPT = 2
_LATEST = (
    select(snapshots).where(snapshots.c.experiment == bindparam("of")).order_by(snapshots.c.seq.desc()).limit(_KEPT)
)
_NUMBERS = select(snapshots.c.seq).where(snapshots.c.experiment == bindparam("of"))


def open_experiment(connection: Connection, identity: Identity, shelf: Shelf, clock: Clock) -> Experiment:
    """Return an experiment as it is now."""
    experiment = _from_snapshot(connection, identity) or _new(connection, identity, shelf)
    for _, moment in experiment.outstanding.values():  # whose events are not replayed
        clock.saw(moment.clock)
    catch_up(connection, experiment, shelf, clock)
    return experiment


def rebuild(connection: Connection, identity: Identity, shelf: Shelf, clock: Clock) -> Experiment:
    """Return an experiment as the journal alone makes it."""
    experiment = _new(connection, identity, shelf)
    catch_up(connection, experiment, shelf, clock)
    return experiment


def catch_up(connection: Connection, experiment: Experiment, shelf: Shelf, clock: Clock) -> int:
    """Do what other servers have done since, and return how many events that were."""
    before = experiment.head
    for event in journal.since(connection, experiment.identity.id, before):
        experiment.replay(event, lambda id_: shelf.find(connection, id_))
        clock.saw(event.clock)
    return experiment.head - before


def incomplete(identity: Identity, found: int, head: int) -> ServiceError:
    """Return the error for a journal that does not end where it should: what was acknowledged would be made again."""
    return ServiceError(
        f"The journal of {identity.name!r} ends with event {found}, and {head} were written: it was altered. "
        f"Restore the database from a copy, and start the service again. Until then nothing is learned or decided.",
        status=503,
        code="refused",
    )


def save_snapshot(connection: Connection, identity: Identity, seq: int, chain: bytes, data: bytes) -> None:
    """Keep a state, and forget all but the last ones."""
    kept = connection.execute(_NUMBERS, {"of": identity.id}).scalars().all()
    row = {"experiment": identity.id, "seq": seq, "chain": chain, "data": data}
    # Over one that was not used, or that another server has written.
    written = insert_into(snapshots, connection).values(row)
    connection.execute(written.on_conflict_do_update(index_elements=["experiment", "seq"], set_=row))
    oldest = max((each for each in kept if each != seq), default=0)
    connection.execute(delete(snapshots).where(snapshots.c.experiment == identity.id, snapshots.c.seq < oldest))


def _new(connection: Connection, identity: Identity, shelf: Shelf) -> Experiment:
    graph = shelf.find(connection, identity.spec["graph"]).named(identity.spec["graph_name"])
    return Experiment(identity, graph)


def _from_snapshot(connection: Connection, identity: Identity) -> Experiment | None:
    for row in connection.execute(_LATEST, {"of": identity.id}):
        try:
            experiment = Experiment.from_contents(identity, row.data)
        except Exception as error:  # noqa: BLE001  # whatever it is, the journal is there
            about = {"experiment": identity.name, "sequence": row.seq, "why": str(error)}
            _log.warning("snapshot not used", extra=about)
            continue
        if journal.chain_at(connection, identity.id, experiment.head) != experiment.chain:
            raise ServiceError(
                f"The snapshot of {identity.name!r} after event {row.seq} is whole, but not of the journal beside it: "
                f"one of the two was altered. Restore the database from a copy, or delete the snapshot if the journal "
                f"is right, and start the service again. Until then nothing is learned or decided.",
                status=503,
                code="refused",
            )
        experiment.saved = experiment.head
        return experiment
    return None
