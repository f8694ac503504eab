"""What theorems promise of a curve: the bound of its learner, on its graph and in its world.

A bound is drawn only where its theorem speaks: of a learner with the options that the theorem is about, on a graph that
is shown before the draw, with feedback in the same round. One that is tuned for a horizon promises something at that
horizon alone. Where a theorem on stochastic worlds and one on adversaries both hold, the smaller is taken.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.errors import TheoryError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.learners import catalogue
from sidelong.losses.world_makers import makers
from sidelong.studies.build import build_graph, build_world, is_own_graph
from sidelong.studies.cell import canonical, options_of
from sidelong.theory import Setting, promises, theorem_4_adversarial, theorem_4_theta

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.sequences import GraphSequence
    from sidelong.studies.curves import Curve
    from sidelong.studies.files import Files
    from sidelong.theory import Promise

    Array = npt.NDArray[np.float64]

_BUDGET = 1.0  # seconds for each number of a graph; an upper value serves where it is not enough


class Bound(NamedTuple):
    """A bound on the regret."""

    name: str  #: of the theorem, or where it comes from
    rounds: npt.NDArray[np.int64]  #: where it is promised
    values: Array

    @property
    def numbered(self) -> bool:
        """Whether it is a theorem of the paper."""
        return self.name.startswith("Theorem")


class Promised:
    """The bounds of a study. The numbers of each graph are computed once."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._graphs: dict[str, FeedbackGraph | GraphSequence] = {}
        self._settings: dict[str, Setting] = {}

    def graph(self, curve: Curve) -> FeedbackGraph | GraphSequence | None:
        """Return the graph of a curve; None if code of a user makes it, which a report does not run."""
        if is_own_graph(curve.spec["graph"]):
            return None
        key = canonical(curve.spec["graph"])
        if key not in self._graphs:
            self._graphs[key] = build_graph(curve.spec["graph"], self._files.locate_data)
        return self._graphs[key]

    def of(self, curve: Curve) -> Bound | None:
        """Return what is promised of a curve, or None if nothing is."""
        learner = curve.spec["learner"]
        if "file" in learner or curve.delay:  # of the user's own; and no theorem here is about late feedback
            return None
        graph = self.graph(curve)
        if graph is None:
            return None
        try:
            if isinstance(graph, FeedbackGraph):
                return self._on_a_graph(curve, graph)
            if learner["name"] == "exp3.g++" and not _changed(learner, {}) and graph.shown == "before" and graph.bank:
                return Bound("Theorem 4", curve.rounds, _over_time(graph, curve.rounds))
        except TheoryError:  # one arm, say
            return None
        return None

    def _on_a_graph(self, curve: Curve, graph: FeedbackGraph) -> Bound | None:
        learner = curve.spec["learner"]
        setting = self._setting(curve, graph)
        found = [each for each in promises(setting, [learner["name"]]) if not _changed(learner, each.options)]
        if len(found) != 1 or learner["name"] == "uniform":
            return None
        module = catalogue.choose(learner["name"], options_of(learner))
        tuned = "horizon" in catalogue.option_names(module)
        rounds = curve.rounds[-1:] if tuned else curve.rounds
        curves = _evaluated(found[0], setting, rounds)
        if not curves:
            return None
        source, _ = min(curves, key=lambda each: float(each[1][-1]))
        smallest = np.minimum.reduce([each for _, each in curves])
        return Bound(source, rounds, smallest)

    def _setting(self, curve: Curve, graph: FeedbackGraph) -> Setting:
        """Return the graph with the gaps of the world, if it is stochastic."""
        spec = curve.spec
        known = makers().get(spec["world"]["name"])
        stochastic = known is not None and known.stochastic
        key = canonical([spec["graph"], spec["world"] if stochastic else None])
        if key not in self._settings:
            gaps = None
            if stochastic:
                world = build_world(spec["world"], spec["graph"], spec["rounds"], self._files.locate_data)
                means = world.fixed_means
                gaps = means - means.min() if means is not None and np.ptp(means) > 0 else None
            self._settings[key] = Setting(graph, gaps, budget=_BUDGET)
        return self._settings[key]


def _evaluated(promise: Promise, setting: Setting, rounds: npt.NDArray[np.int64]) -> list[tuple[str, Array]]:
    kinds = (
        (promise.adversarial, promise.adversarial_source),
        (promise.stochastic, promise.stochastic_source),
    )
    return [
        (source, np.array([bound(setting, float(T)) for T in rounds])) for bound, source in kinds if bound is not None
    ]


def _changed(learner: dict[str, Any], options: dict[str, Any]) -> bool:
    """Tell whether a learner has an option that is neither its default nor one of these."""
    given = options_of(learner)
    signature = inspect.signature(catalogue.find(learner["name"]).configure)
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    names = given.keys() | options.keys()
    return any(given.get(name, defaults.get(name)) != options.get(name, defaults.get(name)) for name in names)


def _over_time(graph: GraphSequence, rounds: npt.NDArray[np.int64]) -> Array:
    """Return Theorem 4 on graphs that change, with the largest numbers that any of them has.

    It is the smaller of what the theorem states and of what its proof gives, as on a graph that stays.
    """
    settings = [Setting(each, budget=_BUDGET) for each in set(graph.bank)]
    alpha, acyclic = max(each.independence.upper for each in settings), max(each.acyclic for each in settings)
    K = graph.n_arms
    bounds = [
        (
            theorem_4_adversarial(K=K, T=T, independence_sum=alpha * T),
            theorem_4_theta(K=K, T=T, theta_sum=acyclic * T),
        )
        for T in rounds.astype(np.float64).tolist()
    ]
    smallest: Array = np.array(bounds).min(axis=1)
    return smallest
