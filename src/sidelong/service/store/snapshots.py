"""What a snapshot of an experiment holds: the agent's state file, and beside it what the service counts.

Graphs are not in it, but their ids: the database has them already, each once, and those of decisions that wait may have
millions of edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import state_file
from sidelong.errors import StateFileError
from sidelong.learners import catalogue
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
    from sidelong.service.store.database import Identity, Reading

#: Goes up whenever what a snapshot holds beside the agent means something else, or has another shape. One of another
#: version is passed over, and the journal replayed. Since 5, journals hold such states, for `rebasing`: whoever raises
#: it goes on reading all versions from 5 on.
SNAPSHOT_VERSION = 7
#: The same of experiments with keys, whose journals hold no states before 8.
KEYED_VERSION = 8
_WITH_GRAPHS = 5  # the version that held graphs themselves
_BEFORE_LIFE = {_WITH_GRAPHS, 6}  # versions of experiments that could not be changed


def pack(live: LiveExperiment) -> bytes:
    """Return all of an experiment, with the ids of its graphs; of one with keys, all but its blocks."""
    header, arrays = _contents(live)
    if isinstance(live, KeyedExperiment):
        return state_file.pack(header, arrays)
    ids = {_content(live.agent.graph): live.identity.spec["graph"]}  # in the order of the agent's contents
    for made, _ in live.outstanding.values():
        if not isinstance(made, Given) and _content(made.graph) not in ids:
            ids[_content(made.graph)] = identify(made.graph).id
    header["service"]["graphs"] = list(ids.values())
    return state_file.pack(header, {name: each for name, each in arrays.items() if not name.startswith("graph.")})


def pack_whole(live: LiveExperiment, reading: Reading) -> bytes:
    """Return all of an experiment, of one with keys with its blocks, to be kept with an event for ever."""
    if not isinstance(live, KeyedExperiment):
        return pack(live)
    blocks = keyed.whole(live, reading)
    header, arrays = _contents(live)
    return state_file.pack(header, arrays | blocks)


def digest(live: LiveExperiment) -> str:
    """Return a checksum of all of it, equal for equal states."""
    return state_file.checksum(*_contents(live)).hex()


def unpack(
    identity: Identity, data: bytes, find: Callable[[str], FeedbackGraph], *, older: bool = False, base: bool = False
) -> LiveExperiment:
    """Go on from what `pack` returned, with graphs that `find` finds by their ids.

    With `older`, also where an older version of the learner was at work. A snapshot of a version before experiments
    had a life lacks what rounds cost in each minute. So it is read only where no replay can take its place: with
    `older`, and with `base`, which says that the journal itself holds it.
    """
    place = f"the snapshot of {identity.name}"
    header, arrays = state_file.unpack(data, place)
    service = header.pop("service")
    version = service.get("version")
    wanted = KEYED_VERSION if identity.spec.get("keyed") else SNAPSHOT_VERSION
    if version != wanted and not (version in _BEFORE_LIFE and (older or base)):
        raise StateFileError(f"{place} has version {version}, and this program reads {wanted}.")
    tallies = Tallies.from_contents(service["minutes"], arrays)
    if identity.spec.get("keyed"):
        saved, ours = header["learner_version"], catalogue.version(agents.module_of(identity.spec))
        if saved != ours and not (older and saved < ours):
            raise StateFileError(f"{place} is of version {saved} of the learner, not of {ours}.")
        made = keyed.restore(identity, arrays, service, tallies, find, older=older)
        made.head, made.chain = service["head"], bytes.fromhex(service["chain"])
        made.life = made.life.after(service["life"])
        return made
    for number, id_ in enumerate(service.get("graphs", ())):
        arrays |= {f"graph.{number}.{name}": each for name, each in state_file.graph_to_arrays(find(id_)).items()}
    agent = agents.resumed(header, arrays, place, older=older)
    live = LiveExperiment(identity, agent, tallies)
    own, rows, given = iter(agent.pending), arrays["outstanding"].tolist(), list[Given]()
    if version in _BEFORE_LIFE:
        rows = [(made.round, 0, *moment) for made, moment in zip(agent.pending, rows, strict=True)]
    else:
        live.life = live.life.after(service["life"])
        graphs = [agent.graph if id_ is None else find(id_) for id_ in service["given"]]
        given = life.unpack(graphs, arrays)
    others = iter(given)
    for number, aside, *moment in rows:
        live.hold(number, next(others) if aside else next(own), Moment(*moment))
    live.head, live.chain = service["head"], bytes.fromhex(service["chain"])
    return live


def _content(graph: FeedbackGraph) -> tuple[str, str]:
    return graph.content_hash, graph.representation


def _contents(live: LiveExperiment) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    minutes, counted = live.tallies.contents()
    service = {"experiment": live.identity.key, "head": live.head, "chain": live.chain.hex(), "minutes": minutes}
    service |= {"version": SNAPSHOT_VERSION, "life": Life.first(live.identity.spec).changed_to(live.life)}
    if isinstance(live, KeyedExperiment):
        header, arrays, more = keyed.contents(live)
        return {**header, "service": {**service, **more, "version": KEYED_VERSION}}, {**arrays, **counted}
    header, arrays = live.agent.contents()
    rows = [(number, isinstance(made, Given), *moment) for number, (made, moment) in live.outstanding.items()]
    given = [made for made, _ in live.outstanding.values() if isinstance(made, Given)]
    graphs, asides = life.pack(given, live.agent.graph)
    outstanding = np.array(rows, np.int64).reshape(-1, 4)
    service["given"] = graphs
    return {**header, "service": service}, {**arrays, **counted, **asides, "outstanding": outstanding}
