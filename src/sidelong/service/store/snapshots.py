"""What a snapshot of an experiment holds: the agent's state file, and beside it what the service counts.

Graphs are not in it, but their ids: the database has them already, each once, and those of decisions that wait may have
millions of edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import state_file
from sidelong.errors import StateFileError
from sidelong.service.store import agents, life
from sidelong.service.store.experiment import LiveExperiment, Moment
from sidelong.service.store.graphs import identify
from sidelong.service.store.keyed import snapshots as keyed
from sidelong.service.store.keyed.experiment import KeyedExperiment
from sidelong.service.store.life import Given, Life
from sidelong.service.store.tallies import Tallies

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Identity

#: Goes up whenever what a snapshot holds means something else, or has another shape. A snapshot of another version is
#: passed over, and the journal replayed.
SNAPSHOT_VERSION = 1


def pack(live: LiveExperiment) -> bytes:
    """Return all of an experiment, with the ids of its graphs; of one with keys, all but its blocks."""
    header, arrays = _contents(live)
    if isinstance(live, KeyedExperiment):
        return state_file.pack(header, arrays)
    ids = {_content(live.agent.graph): live.identity.spec.graph}  # in the order of the agent's contents
    for made, _ in live.outstanding.values():
        if not isinstance(made, Given) and _content(made.graph) not in ids:
            ids[_content(made.graph)] = identify(made.graph).id
    header["service"]["graphs"] = list(ids.values())
    return state_file.pack(header, {name: each for name, each in arrays.items() if not name.startswith("graph.")})


def digest(live: LiveExperiment) -> str:
    """Return a checksum of all of it, equal for equal states."""
    return state_file.checksum(*_contents(live)).hex()


def unpack(identity: Identity, data: bytes, find: Callable[[str], FeedbackGraph]) -> LiveExperiment:
    """Go on from what `pack` returned, with graphs that `find` finds by their ids."""
    place = f"the snapshot of {identity.name}"
    header, arrays = state_file.unpack(data, place)
    service = header.pop("service")
    if service["version"] != SNAPSHOT_VERSION:
        raise StateFileError(f"{place} has version {service['version']}, and this program reads {SNAPSHOT_VERSION}.")
    tallies = Tallies.from_contents(service["minutes"], arrays)
    if identity.spec.keyed:
        live: LiveExperiment = keyed.restore(identity, arrays, service, tallies, find)
    else:
        live = _restore(identity, header, arrays, service, tallies, find)
    live.life = live.life.after(service["life"])
    live.head, live.chain = service["head"], bytes.fromhex(service["chain"])
    return live


def _restore(
    identity: Identity,
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    service: dict[str, Any],
    tallies: Tallies,
    find: Callable[[str], FeedbackGraph],
) -> LiveExperiment:
    for number, id_ in enumerate(service["graphs"]):
        arrays |= {f"graph.{number}.{name}": each for name, each in state_file.graph_to_arrays(find(id_)).items()}
    agent = agents.resumed(header, arrays, f"the snapshot of {identity.name}")
    live = LiveExperiment(identity, agent, tallies)
    graphs = [agent.graph if id_ is None else find(id_) for id_ in service["given"]]
    own, others = iter(agent.pending), iter(life.unpack(graphs, arrays))
    for number, aside, *moment in arrays["outstanding"].tolist():
        live.hold(number, next(others) if aside else next(own), Moment(*moment))
    return live


def _content(graph: FeedbackGraph) -> tuple[str, str]:
    return graph.content_hash, graph.representation


def _contents(live: LiveExperiment) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    minutes, counted = live.tallies.contents()
    service = {"experiment": live.identity.key, "head": live.head, "chain": live.chain.hex(), "minutes": minutes}
    service |= {"version": SNAPSHOT_VERSION, "life": Life.first(live.identity.spec).changed_to(live.life)}
    if isinstance(live, KeyedExperiment):
        header, arrays, more = keyed.contents(live)
        return {**header, "service": {**service, **more}}, {**arrays, **counted}
    header, arrays = live.agent.contents()
    rows = [(number, isinstance(made, Given), *moment) for number, (made, moment) in live.outstanding.items()]
    given = [made for made, _ in live.outstanding.values() if isinstance(made, Given)]
    graphs, asides = life.pack(given, live.agent.graph)
    outstanding = np.array(rows, np.int64).reshape(-1, 4)
    service["given"] = graphs
    return {**header, "service": service}, {**arrays, **counted, **asides, "outstanding": outstanding}
