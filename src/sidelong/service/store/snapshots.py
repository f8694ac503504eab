"""What a snapshot of an experiment holds: the agent's state file, and beside it what the service counts.

Graphs are not in it, but their ids: the database has them already, each once, and those of decisions that wait may have
millions of edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import Agent, state_file
from sidelong.errors import StateFileError
from sidelong.service.store.experiment import LiveExperiment, Moment
from sidelong.service.store.graphs import identify
from sidelong.service.store.tallies import Tallies

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Identity

#: Goes up whenever what a snapshot holds beside the agent means something else, or has another shape. One of another
#: version is passed over, and the journal replayed. Since 5, journals hold such states, for `rebasing`: whoever raises
#: it goes on reading all versions from 5 on.
SNAPSHOT_VERSION = 6
_WITH_GRAPHS = 5  # the version that held graphs themselves


def pack(live: LiveExperiment) -> bytes:
    """Return all of an experiment, with the ids of its graphs."""
    header, arrays = _contents(live)
    ids = {_content(live.agent.graph): live.identity.spec["graph"]}  # in the order of the agent's contents
    for made, _ in live.outstanding.values():
        if _content(made.graph) not in ids:
            ids[_content(made.graph)] = identify(made.graph).id
    header["service"]["graphs"] = list(ids.values())
    return state_file.pack(header, {name: each for name, each in arrays.items() if not name.startswith("graph.")})


def digest(live: LiveExperiment) -> str:
    """Return a checksum of all of it, equal for equal states."""
    return state_file.checksum(*_contents(live)).hex()


def unpack(
    identity: Identity, data: bytes, find: Callable[[str], FeedbackGraph], *, older: bool = False
) -> LiveExperiment:
    """Go on from what `pack` returned, with graphs that `find` finds by their ids.

    With `older`, also where an older version of the learner was at work.
    """
    place = f"the snapshot of {identity.name}"
    header, arrays = state_file.unpack(data, place)
    service = header.pop("service")
    version = service.get("version")
    if version not in {_WITH_GRAPHS, SNAPSHOT_VERSION}:
        raise StateFileError(f"{place} has version {version}, and this program reads {SNAPSHOT_VERSION}.")
    for number, id_ in enumerate(service.get("graphs", ())):
        arrays |= {f"graph.{number}.{name}": each for name, each in state_file.graph_to_arrays(find(id_)).items()}
    agent = Agent.from_contents(header, arrays, place, older=older)
    live = LiveExperiment(identity, agent, Tallies.from_contents(service["minutes"], arrays))
    moments = map(Moment._make, arrays["outstanding"].tolist())
    for made, moment in zip(agent.pending, moments, strict=True):
        live.hold(made, moment)
    live.head, live.chain = service["head"], bytes.fromhex(service["chain"])
    return live


def _content(graph: FeedbackGraph) -> tuple[str, str]:
    return graph.content_hash, graph.representation


def _contents(live: LiveExperiment) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    header, arrays = live.agent.contents()
    minutes, counted = live.tallies.contents()
    moments = np.array([moment for _, moment in live.outstanding.values()], np.int64).reshape(-1, 2)
    service = {"experiment": live.identity.key, "head": live.head, "chain": live.chain.hex(), "minutes": minutes}
    service["version"] = SNAPSHOT_VERSION
    return {**header, "service": service}, {**arrays, **counted, "outstanding": moments}
