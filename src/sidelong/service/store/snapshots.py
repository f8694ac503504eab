"""What a snapshot of an experiment holds: the agent's state file, and beside it what the service counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import Agent, state_file
from sidelong.errors import StateFileError
from sidelong.service.store.experiment import LiveExperiment, Moment
from sidelong.service.store.tallies import Tallies

if TYPE_CHECKING:
    from sidelong.service.store.database import Identity

#: Goes up whenever what a snapshot holds beside the agent means something else, or has another shape. One of another
#: version is passed over, and the journal replayed. Since 5, journals hold such states, for `rebasing`: whoever raises
#: it goes on reading all versions from 5 on.
SNAPSHOT_VERSION = 5


def pack(live: LiveExperiment) -> bytes:
    """Return all of an experiment."""
    return state_file.pack(*_contents(live))


def digest(live: LiveExperiment) -> str:
    """Return a checksum of all of it, equal for equal states."""
    return state_file.checksum(*_contents(live)).hex()


def unpack(identity: Identity, data: bytes, *, older: bool = False) -> LiveExperiment:
    """Go on from what `pack` returned; with `older`, also where an older version of the learner was at work."""
    place = f"the snapshot of {identity.name}"
    header, arrays = state_file.unpack(data, place)
    service = header.pop("service")
    version = service.get("version")
    if version != SNAPSHOT_VERSION:
        raise StateFileError(f"{place} has version {version}, and this program reads {SNAPSHOT_VERSION}.")
    agent = Agent.from_contents(header, arrays, place, older=older)
    live = LiveExperiment(identity, agent, Tallies.from_contents(service["minutes"], arrays))
    moments = map(Moment._make, arrays["outstanding"].tolist())
    for made, moment in zip(agent.pending, moments, strict=True):
        live.hold(made, moment)
    live.head, live.chain = service["head"], bytes.fromhex(service["chain"])
    return live


def _contents(live: LiveExperiment) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    header, arrays = live.agent.contents()
    minutes, counted = live.tallies.contents()
    moments = np.array([moment for _, moment in live.outstanding.values()], np.int64).reshape(-1, 2)
    service = {"experiment": live.identity.key, "head": live.head, "chain": live.chain.hex(), "minutes": minutes}
    service["version"] = SNAPSHOT_VERSION
    return {**header, "service": service}, {**arrays, **counted, "outstanding": moments}
