"""What the state file of an agent holds.

::

    header        learner and its version (1 if there is none), options, seed, round, names of graphs and traces; scale,
                  labels, fresh, the tag of decisions if the graph has changed since, and the names that a service gave
                  to decisions that waited when the file was taken out of it, where there are such
    params.*      the constants of the learner, as they were computed
    state.*       the arrays of its state
    graph.I.*     low and high, or degree and targets: of the agent's own graph, then of those that decisions wait on
    pending.*     the decisions that wait for their losses
    seen.*        how many losses of each arm were told, with their means and squares
    told.*        the rounds that were told last, and what each was told, in 16 bytes
    turning.*     what the alarm keeps of windows of rounds
    certificate.* if one is kept: its sums, and the means that the draw of each decision that waits was made with
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.certified import Certified
from sidelong.agent.decision import Decision, SparingDecision
from sidelong.agent.ledger import Ledger
from sidelong.agent.pending import read_pending, write_pending
from sidelong.agent.running import RunningLearner
from sidelong.agent.seen import Seen
from sidelong.agent.state_file import graph_to_arrays, read_graphs
from sidelong.agent.watching import Watching
from sidelong.errors import StateFileError
from sidelong.learners import catalogue
from sidelong.learners.interface import trace_size
from sidelong.outcomes.scale import Scale

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import ModuleType

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner

    Header = Mapping[str, Any]
    Arrays = Mapping[str, np.ndarray]
    Place = str | os.PathLike[str]  #: what messages call the file
    Parts = tuple[RunningLearner, Ledger, Seen, FeedbackGraph, dict[str, Any], Scale | None, Certified | None, Watching]


def write(
    learner: RunningLearner,
    ledger: Ledger,
    seen: Seen,
    graph: FeedbackGraph,
    options: dict[str, Any],
    scale: Scale | None,
    certified: Certified | None,
    watching: Watching,
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays."""
    # By representation too: arcs and intervals of one graph may differ in the last bit of a probability.
    graphs = {_identity(graph): graph}
    for made in ledger.pending.values():
        graphs.setdefault(_identity(made.graph), made.graph)
    numbers = {identity: index for index, identity in enumerate(graphs)}
    header = {
        "learner": learner.module.name,
        "learner_version": learner.module.version,
        "options": options,
        "seed": int(learner.seed),
        "round": ledger.round,
        "graphs": [each.name for each in graphs.values()],
        "traces": list(learner.module.traces),
    }
    if ledger.tag != Ledger(learner, options, graph).tag:
        header["tag"] = ledger.tag
    if ledger.names:
        header["names"] = ledger.names
    if learner.is_sparing:
        header["fresh"] = learner.drawn
    if scale is not None:
        header["scale"] = [scale.best, scale.worst]
    if graph.labels is not None:
        header["labels"] = list(graph.labels)
    arrays = {f"params.{name}": np.asarray(value) for name, value in learner.params._asdict().items()}
    arrays |= {f"state.{name}": array for name, array in learner.state._asdict().items()}
    for index, each in enumerate(graphs.values()):
        arrays |= {f"graph.{index}.{name}": array for name, array in graph_to_arrays(each).items()}
    pending, width = ledger.pending.values(), trace_size(learner.module, graph.n_arms)
    arrays |= write_pending(
        pending, lambda each: numbers[_identity(each)], graph.n_arms, width, sparing=learner.is_sparing
    )
    arrays |= {f"seen.{name}": array for name, array in seen._asdict().items()}
    arrays |= watching.contents() | ({} if certified is None else certified.contents())
    return header, arrays | ledger.told()


def read(path: Place, header: Header, arrays: Arrays, given: ModuleType | Learner | None) -> Parts:
    """Return what `write` was given; `given` is the module of a learner that is not one of the package's own."""
    if header.get("kind", "agent") != "agent":
        raise StateFileError(f"{path} is of a {header['kind']}, not of an agent. Load it with Family.load.")
    graphs = read_graphs(path, header, arrays)
    module = find_learner(path, header, given)
    options, seed = header["options"], header["seed"]
    learner = RunningLearner(module, graphs[0], seed, read_params(path, module, arrays))
    learner.state = _read_state(path, learner.state, arrays)
    learner.drawn = header.get("fresh", 0)
    ledger = Ledger(learner, options, graphs[0])
    ledger.tag, ledger.names = header.get("tag", ledger.tag), dict(header.get("names", {}))
    kind: Any = partial(SparingDecision, make=learner.all_probabilities) if learner.is_sparing else Decision
    for made in read_pending(arrays, graphs, sparing=learner.is_sparing):
        ledger.pending[made[0]] = kind(ledger.tag, *made)
    ledger.resume(header["round"], arrays)
    # A file that was saved before these were kept has none.
    seen = Seen.nothing(graphs[0].n_arms)._asdict()
    seen |= {name: arrays[f"seen.{name}"] for name in seen if f"seen.{name}" in arrays}
    scale = Scale(*header["scale"]) if "scale" in header else None
    certified = Certified.from_contents(graphs[0], ledger.pending, arrays)
    watching = Watching.from_contents(graphs[0], module, ledger.round, arrays)
    return learner, ledger, Seen(**seen), graphs[0], options, scale, certified, watching


def _identity(graph: FeedbackGraph) -> tuple[str, str]:
    return graph.content_hash, graph.representation


def find_learner(path: Place, header: Header, given: ModuleType | Learner | None, *, kind: str = "Agent") -> Learner:
    """Return the learner that a state file is of."""
    name = header["learner"]
    if given is None and "regressor" in header:
        raise StateFileError(f"{path} is of an agent with features. Load it with ContextualAgent.load.")
    if given is None and name not in catalogue.names():
        raise StateFileError(
            f"{path} is of the learner {name!r}, which is not one of the package's own. "
            f"Load it with the module that is: {kind}.load(path, learner=module)."
        )
    learner = catalogue.choose(given or name, header["options"])
    if name != learner.name:
        raise StateFileError(f"{path} is of the learner {name!r}, not of {learner.name!r}.")
    saved, own = header.get("learner_version", 1), learner.version
    if saved != own:
        raise StateFileError(
            f"{path} was saved by version {saved} of {name}, and this is version {own}, which decides otherwise. To go "
            f"on with it, use a sidelong that has version {saved}, which the list of changes names; or make a new "
            f"{kind}, which learns anew."
        )
    return learner


def read_params(path: Place, learner: Learner, arrays: Arrays) -> Any:
    """Return the learner's constants as they were computed, not computed again."""
    saved = {name: arrays[f"params.{name}"] for name in learner.params._fields if f"params.{name}" in arrays}
    if len(saved) < len(learner.params._fields):
        raise StateFileError(f"{path} was saved by another version of its learner. Load it with that version.")
    return learner.params(**{name: array.item() if array.ndim == 0 else array for name, array in saved.items()})


def _read_state(path: Place, fresh: Any, arrays: Arrays) -> Any:
    """Return the learner's state; `fresh` is one before round 1, which the saved one must be like."""
    saved = {name: arrays.get(f"state.{name}") for name in fresh._fields}
    for name, array in fresh._asdict().items():
        found = saved[name]
        if found is None or found.dtype != array.dtype or found.shape != array.shape:
            raise StateFileError(
                f"{path} was saved by another version of its learner: its {name} does not fit. "
                f"Load it with the version that saved it."
            )
    return type(fresh)(**saved)
