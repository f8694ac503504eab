"""What an agent keeps for its certificate: the sums, and for each decision that waits what was known at its draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import bind
from sidelong.evaluation.certificates import (
    AWAY,
    NOT_TOLD,
    PAID,
    ROUNDS,
    SPARED,
    TOLD,
    TOLD_WITH_GRAPH,
    Certificate,
    Standing,
    assess,
    freeze,
    settle,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Self

    from sidelong.agent.decision import Decision
    from sidelong.graphs.graph import FeedbackGraph


class Certified:
    """The certificate of one agent."""

    def __init__(self, graph: FeedbackGraph, standing: Standing | None = None) -> None:
        self._standing = Standing.new(graph.n_arms) if standing is None else standing
        self._means: dict[int, np.ndarray] = {}
        room = np.empty(graph.n_arms)
        self._room = room
        self._freeze: Callable[..., None]
        self._settle: Callable[..., None]
        bind(self, "_freeze", freeze, self._standing, room)
        bind(self, "_settle", settle, self._standing, graph.arrays, 0, room, room, room, TOLD, room)

    def asked(self, t: int) -> None:
        """Keep what is known before the draw of round t."""
        mean = np.empty(self._room.size)
        self._freeze(self._standing, mean)
        self._means[t] = mean

    def told(self, made: Decision, graph: FeedbackGraph, losses: np.ndarray) -> None:
        """Count a round with these losses; `graph` is another than the decision's if it came with them."""
        how = TOLD if graph == made.graph else TOLD_WITH_GRAPH
        self._count(self._standing, made, graph, losses, how)
        del self._means[made.round]

    def dropped(self, made: Decision, *, lost: bool) -> None:
        """Forget a round that was cancelled, or count one that is lost: it was carried out, and is never told."""
        if lost:
            self._count(self._standing, made, made.graph, self._room, NOT_TOLD)
        del self._means[made.round]

    def certificate(self, pending: Iterable[Decision], confidence: float) -> Certificate:
        """Return the certificate; rounds that wait count as if they were never told."""
        standing = self._standing.copy()
        for made in pending:
            self._count(standing, made, made.graph, self._room, NOT_TOLD)
        return assess(standing, confidence)

    def _count(self, standing: Standing, made: Decision, graph: FeedbackGraph, losses: np.ndarray, how: int) -> None:
        p, mean = made._p, self._means[made.round]  # noqa: SLF001  # what users see of p is read-only
        self._settle(standing, graph.arrays, made.arm, p, mean, losses, how, np.empty(p.size))

    def grown(self, graph: FeedbackGraph) -> Self:
        """Return it with the arms that `graph` has more: until now they were absent.

        Certificates are then against more arms: those since the last one came hold together.
        """
        more, standing = graph.n_arms - self._room.size, self._standing
        arms = np.pad(standing.arms, ((0, 0), (0, more)))
        arms[AWAY, -more:], arms[SPARED, -more:] = standing.sums[ROUNDS], standing.sums[PAID]
        made = type(self)(graph, Standing(np.pad(standing.W, ((0, more), (0, 0))), arms, standing.sums.copy()))
        made._means = {t: np.pad(row, (0, more), constant_values=0.5) for t, row in self._means.items()}  # noqa: SLF001
        return made

    def contents(self) -> dict[str, np.ndarray]:
        """Return everything, as arrays of a state file; rows of means are in the order of the decisions that wait."""
        means = np.array(list(self._means.values()), np.float64).reshape(-1, self._room.size)
        arrays = {f"certificate.{name}": array for name, array in self._standing._asdict().items()}
        return arrays | {"certificate.means": means}

    @classmethod
    def from_contents(
        cls, graph: FeedbackGraph, pending: Iterable[int], arrays: Mapping[str, np.ndarray]
    ) -> Self | None:
        """Go on from what `contents` returned, if it is there."""
        if "certificate.W" not in arrays:
            return None
        made = cls(graph, Standing(*(arrays[f"certificate.{name}"] for name in Standing._fields)))
        made._means = {t: row.copy() for t, row in zip(pending, arrays["certificate.means"], strict=True)}
        return made
