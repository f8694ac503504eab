"""Numbers for Prometheus.

A counter counts what this server has done, so that the sum over all servers is what was done. A gauge of an experiment
is read off its journal, and is the same on every server: take the largest.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from sidelong.evaluation import lift as lifts
from sidelong.service.store.journal import arms_of, count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client import Metric

    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.journal import Event, Kind
    from sidelong.service.store.store import Store

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Of an experiment with more arms it is not counted which were played: each would be a series.
MOST_ARMS = 100
_CONFIDENCE = 0.95


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
        self._cut = Counter(
            "sidelong_cut_decisions",
            "Decisions that this server has cut from the journal.",
            ["experiment"],
            registry=self._registry,
        )
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def watch(self, store: Store) -> None:
        """Show what became of the decisions of each experiment in memory."""
        experiments = _Experiments(store)
        store.on_written = experiments.count
        self._registry.register(experiments)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        children = self._children.get((route, status))
        if children is None:  # looking up labels is slow
            children = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._children[route, status] = children
        children[0].inc()
        children[1].observe(seconds)

    def cut(self, experiment: str, decisions: int) -> None:
        """Count decisions that were cut from a journal."""
        self._cut.labels(experiment).inc(decisions)

    def text(self) -> bytes:
        """Return everything in the format of Prometheus."""
        return generate_latest(self._registry)


class _Experiments:
    """Counts what this server writes, and reads other numbers off the experiments."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._happened: collections.Counter[tuple[str, Kind]] = collections.Counter()
        self._played: collections.Counter[tuple[str, int, str]] = collections.Counter()

    def count(self, experiment: LiveExperiment, events: Sequence[Event]) -> None:
        """Count events that were written."""
        name, labels = experiment.identity.name, experiment.life.labels
        for event in events:
            self._happened[name, event.kind] += count_of(event)
            if experiment.n_arms <= MOST_ARMS:
                for arm in arms_of(event):
                    self._played[name, arm, str(arm) if labels is None else labels[arm]] += 1

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        every = self._store.every()
        names = {each.identity.name for each in every}
        yield from self._counted(names)
        yield from self._measured()
        states = GaugeMetricFamily("sidelong_experiments", "Experiments that this server knows.", labels=["state"])
        left = GaugeMetricFamily("sidelong_replay_left", "Events to be replayed.", labels=["experiment"])
        for state in ("live", "loading", "refused"):
            states.add_metric([state], sum(each.state == state for each in every))
        for each in every:
            if each.progress is not None:
                left.add_metric([each.identity.name], each.progress.head - each.progress.done)
        yield states
        yield left

    def _counted(self, names: set[str]) -> Iterator[Metric]:
        """Yield what this server has written of the experiments of these names; others are gone."""
        happened = CounterMetricFamily(
            "sidelong_events", "Events that this server has written, by kind.", labels=["experiment", "kind"]
        )
        for (name, kind), count in self._happened.copy().items():
            if name in names:
                happened.add_metric([name, kind.name.lower()], count)
        played = CounterMetricFamily(
            "sidelong_plays", "Decisions of this server, by arm.", labels=["experiment", "arm", "label"]
        )
        for (name, arm, label), count in self._played.copy().items():
            if name in names:
                played.add_metric([name, str(arm), label], count)
        yield happened
        yield played

    def _measured(self) -> Iterator[Metric]:
        of = ["experiment"]
        outstanding = GaugeMetricFamily("sidelong_outstanding", "Decisions without feedback.", labels=of)
        cost = GaugeMetricFamily("sidelong_cost", "Mean loss of what was played, as far as it was told.", labels=of)
        saved = GaugeMetricFamily(
            "sidelong_lift", "What is saved per round beside the holdout.", labels=["experiment", "limit"]
        )
        spent = GaugeMetricFamily("sidelong_spent", "What decisions have cost, under a ceiling.", labels=of)
        line = GaugeMetricFamily("sidelong_spending_line", "The ceiling times these decisions.", labels=of)
        reserved = GaugeMetricFamily(
            "sidelong_spending_reserved", "What pending decisions may cost above the ceiling.", labels=of
        )
        for name, found in self._store.measured():
            if found.spending is not None:
                spent.add_metric([name], found.spending.spent)
                line.add_metric([name], found.spending.line)
                reserved.add_metric([name], found.spending.reserved)
            outstanding.add_metric([name], found.pending)
            if found.told:
                cost.add_metric([name], found.paid / found.told)
            lift = None if found.share is None else lifts.lift(found.lift, found.share, _CONFIDENCE)
            if lift is not None:
                for limit, value in (("estimate", lift.value), ("low", lift.lower), ("high", lift.upper)):
                    saved.add_metric([name, limit], value)
        yield from (outstanding, cost, saved, spent, line, reserved)
