"""Numbers for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from sidelong.service.store.journal import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from sidelong.service.store.store import Store

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """What the service counts."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "sidelong_requests", "Requests, by route and status.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "sidelong_request_seconds", "Time to answer.", ["route"], buckets=_SECONDS, registry=self._registry
        )
        self.commit_seconds = Histogram(
            "sidelong_commit_seconds", "Time to write a batch.", buckets=_SECONDS, registry=self._registry
        )
        self.batch_size = Histogram(
            "sidelong_batch_size", "Requests a batch.", buckets=(1, 2, 4, 8, 16, 32, 64, 128), registry=self._registry
        )
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def watch(self, store: Store) -> None:
        """Show what became of the decisions of each experiment in memory."""
        self._registry.register(_Experiments(store))

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        children = self._children.get((route, status))
        if children is None:  # looking up labels is slow
            children = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._children[route, status] = children
        children[0].inc()
        children[1].observe(seconds)

    def text(self) -> bytes:
        """Return everything in the format of Prometheus."""
        return generate_latest(self._registry)


class _Experiments:
    """Reads the counts off the experiments, whichever server has counted them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        happened = CounterMetricFamily(
            "sidelong_events", "Events in the journal, by kind.", labels=["experiment", "kind"]
        )
        outstanding = GaugeMetricFamily("sidelong_outstanding", "Decisions without feedback.", labels=["experiment"])
        for name, counts, waiting in self._store.counts():
            outstanding.add_metric([name], waiting)
            for kind in Kind:
                happened.add_metric([name, kind.name.lower()], int(counts[kind]))
        yield happened
        yield outstanding
        every = self._store.every()
        states = GaugeMetricFamily("sidelong_experiments", "Experiments that this server knows.", labels=["state"])
        left = GaugeMetricFamily("sidelong_replay_left", "Events to be replayed.", labels=["experiment"])
        for state in ("live", "loading", "refused"):
            states.add_metric([state], sum(each.state == state for each in every))
        for each in every:
            if each.progress is not None:
                left.add_metric([each.identity.name], each.progress.head - each.progress.done)
        yield states
        yield left
