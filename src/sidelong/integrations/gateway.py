"""Decisions for a gateway: models by name, decisions that lie ready, feedback in the background, and never a long wait.

A gateway asks within a request, so that it can neither wait for a service that is slow nor fail with one that is down.
`Gateway.decide` returns None in that case. It belongs to the event loop in which it was made.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import re
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sidelong.errors import CostError, LossError, ServiceError, SidelongError
from sidelong.graphs import FeedbackGraph, families
from sidelong.service.client import connect_async, wire

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

LOG = logging.getLogger("sidelong.gateway")
_PAUSE = 1.0  # seconds until a service that did not answer is asked again
_FRESH = 60.0  # seconds for which a decision may lie ready, at most
_READY = 64  # the most decisions that lie ready
_EVERY = 0.2  # seconds after which feedback is told
_UNTOLD = 100_000  # the most feedback that waits
_LATER = {"unreachable", "busy", "unavailable", "too_fast"}  # what a service answers that may take it later
_MODEL = re.compile(r"~\d+$")  # what follows the name of a model that has come back


@dataclass(frozen=True)
class Loss:
    """What a reply costs: the mean, with these weights, of 1 - quality, cost / dollars and latency / seconds.

    What is above its scale counts as 1.
    """

    quality: float = 0.8  #: the weight of what the judge says
    cost: float = 0.1  #: the weight of the price of the call, as LiteLLM computes it
    latency: float = 0.1  #: the weight of the time until the whole reply is there
    dollars: float = 0.01  #: the price that counts as 1
    seconds: float = 10.0  #: the latency that counts as 1

    def __post_init__(self) -> None:
        weights = (self.quality, self.cost, self.latency)
        if min(weights) < 0 or abs(sum(weights) - 1) > 1e-9 or min(self.dollars, self.seconds) <= 0:
            raise LossError(f"Weights are not negative and sum to 1, and scales are positive, unlike in {self}.")

    def of(self, quality: float | None, dollars: float, seconds: float) -> float:
        """Return the loss of a reply. Its quality may be None only where it has no weight."""
        costs = self.cost * min(dollars / self.dollars, 1.0) + self.latency * min(seconds / self.seconds, 1.0)
        return min(self.quality * (1 - (quality or 0.0)) + costs, 1.0)


def checked_quality(quality: float) -> float:
    """Return the quality of a reply, if it is one."""
    if not 0 <= quality <= 1:
        raise LossError(f"The quality of a reply is a number from 0 to 1, not {quality!r}.")
    return float(quality)


class ShadowBudget:
    """What shadow runs may cost in a day (UTC), in this process; None if there is no cap.

    Those under way count as much as the costliest so far. While nothing is known of that, there is one at a time.
    """

    def __init__(self, cap: float | None) -> None:
        self._cap, self._day, self._spent = cap, datetime.now(UTC).date(), 0.0
        self._costliest, self._running = 0.0, 0

    def begin(self) -> bool:
        """Tell whether one more may run, which is under way then."""
        if (today := datetime.now(UTC).date()) != self._day:
            self._day, self._spent = today, 0.0
        expected = (1 + self._running) * self._costliest
        known = self._costliest > 0 or not self._running
        may = self._cap is None or (self._cap > 0 and known and self._spent + expected <= self._cap)
        self._running += may
        return may

    def end(self, cost: float = 0.0) -> None:
        """Say what it has cost; nothing, if it never ran."""
        self._spent, self._costliest, self._running = self._spent + cost, max(self._costliest, cost), self._running - 1


@dataclass
class Choice:
    """A decision for a request."""

    id: str
    name: str  #: of the model to be played
    reveals: dict[str, int]  #: the models whose losses are to be told, with their arms
    session: bool = False  #: whether it is that of a session, which may be told several times
    made: float = field(default_factory=time.monotonic)


class Gateway:
    """An experiment of a decision service, or an agent in this process, whose arms are models that come and go.

    Args:
        names: the models that there are; in a dict with the most that a reply of each can cost, or None.
        counts: where to count what becomes of decisions.
        at: the address of the service.
        token: what it demands, if it does.
        experiment: the experiment, which is made with the learner "glance" if there is none.
        agent: an `Agent` in this process, in place of a service; its arms have labels.
        sticky: for how many seconds a session keeps its model, in an experiment that is made.
        within: for how many seconds to wait for a decision, at most.
    """

    def __init__(
        self,
        names: Iterable[str] | Mapping[str, float | None],
        counts: Counter[str],
        *,
        at: str | None = None,
        token: str | None = None,
        experiment: str = "",
        agent: Any = None,
        sticky: float | None = None,
        within: float = 0.05,
    ) -> None:
        self._service = None if at is None else connect_async(at, token, patience=0.0, timeout=5.0)
        self._agent: Any = agent if self._service is None else self._service[experiment]
        self._sticky, self._within, self._counts = sticky, within, counts
        self._wanted = set(names)  # the models there are
        self._bounds = _bounds(names)
        self._has_ceiling = False
        self._had: set[str] | None = None  # those that there were when arms were made of them
        self._names: list[str] = []  # the model of each arm, also of retired ones
        self._arms: dict[str, int] = {}  # the arm of each model that can be played
        self._ready: dict[bool, deque[Choice]] = {False: deque(), True: deque()}  # with and without shadow runs
        self._ready_for: dict[str, int] = {}  # the models, with their arms, that these were made for
        self._fresh = _FRESH  # seconds for which one may lie there
        self._taken: Counter[bool] = Counter()  # since more were asked for
        self._coming: Counter[bool] = Counter()  # asked for, for these models
        self._silent_until = 0.0
        self._untold: dict[str, tuple[Choice, str, dict[str, tuple[float, float]]]] = {}
        self._given_up: list[Choice] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self.begun, self._wake = asyncio.Event(), asyncio.Event()
        self._closing = False
        self._not_allowed: ServiceError | None = None
        self._spawn(self._work())

    async def until_begun(self) -> None:
        """Wait until the models are arms of the experiment. A token that does not suffice is an error."""
        while not self.begun.is_set():
            if self._not_allowed is not None:
                raise self._not_allowed
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.begun.wait(), _EVERY)

    def offer(self, names: Iterable[str] | Mapping[str, float | None]) -> None:
        """Say which models there are now. New ones become arms, and missing ones are retired, in the background."""
        wanted, self._bounds = set(names), _bounds(names)
        if wanted != self._wanted:
            self._wanted = wanted
            self._wake.set()

    async def decide(
        self,
        names: Iterable[str],
        *,
        shadow: bool = False,
        advice: Mapping[str, str] | None = None,
        session: str | None = None,
        ready: bool = True,
    ) -> Choice | None:
        """Choose one of the models that are healthy now; None if no decision comes in time.

        Args:
            names: the healthy ones. Of these, the ones that are no arms yet are left out.
            shadow: whether all of them will reply, so that playing one reveals all.
            advice: the model that each adviser would play. One that is not healthy is silence.
            session: who keeps the same model for a while.
            ready: whether to take a decision that lies ready, if there is neither advice nor a session. One that is for
                a single request, such as a retry, should not.
        """
        there = {name: self._arms[name] for name in names if name in self._arms}
        if not there:
            return None
        heard = {who: there[name] for who, name in (advice or {}).items() if name in there}
        found = self._take(there, shadow=shadow) if ready and not advice and session is None else None
        if found is None and time.monotonic() >= self._silent_until:
            found = await self._in_time(self._ask(1, there, shadow=shadow, advice=heard or None, session=session))
        if found is not None and found.name not in there:  # a session, or a frozen experiment, may play an absent one
            self.cancel(found)
            return None
        return found

    def tell(
        self, choice: Choice, losses: Mapping[str, float], key: str, costs: Mapping[str, float] | None = None
    ) -> None:
        """Learn the losses of models, in the background: of the one that was played, and of all that replied.

        `costs` has what the same replies cost. It matters under a ceiling, and is 0 if it is not given.
        """
        paid = costs or {}
        both = {name: (loss, paid.get(name, 0.0)) for name, loss in losses.items() if name in choice.reveals}
        self._untold[key] = choice, key, both
        while len(self._untold) > _UNTOLD:
            self._untold.pop(next(iter(self._untold)))
            self._counts["lost"] += 1

    def cancel(self, choice: Choice) -> None:
        """Give up a decision that nothing is learned from, in the background. A session goes on."""
        if not choice.session:
            self._given_up.append(choice)

    def lose(self, choice: Choice) -> None:
        """Give up a decision that was carried out, and of which nothing will be known. A service lets it expire."""
        if self._service is None:
            with contextlib.suppress(SidelongError):
                self._agent.cancel(choice.id, lost=True)

    async def close(self) -> None:
        """Tell what there is to tell, and give back what lies ready."""
        self._closing = True
        self._wake.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._give_back()
        try:
            await self._deliver()
        except SidelongError as error:
            LOG.warning("Not everything could be told: %s", error)
        if self._service is not None:
            await self._service.close()

    def _take(self, there: dict[str, int], *, shadow: bool) -> Choice | None:
        """Return a decision that lies ready, and ask for as many as were taken lately if few are left."""
        if there != self._ready_for:
            self._give_back()  # they were made for other models
            self._ready_for, self._coming = there, Counter()
        self._give_back_old()
        ready = self._ready[shadow]
        found = ready.popleft() if ready else None
        self._taken[shadow] += 1
        soon = len(ready) + self._coming[shadow]
        if soon < min(self._taken[shadow], _READY) and time.monotonic() >= self._silent_until:
            count, self._taken[shadow] = min(2 * self._taken[shadow], _READY - soon), 0
            self._coming[shadow] += count
            self._spawn(self._fill(count, there, self._coming, shadow=shadow))
        return found

    async def _fill(self, count: int, there: dict[str, int], coming: Counter[bool], *, shadow: bool) -> None:
        try:
            made = await self._ask(count, there, shadow=shadow)
        finally:
            coming[shadow] -= count
        for choice in made:
            if there == self._ready_for and len(self._ready[shadow]) < _READY:
                self._ready[shadow].append(choice)
            else:
                self.cancel(choice)

    def _give_back_old(self) -> None:
        for ready in self._ready.values():
            while ready and ready[0].made < time.monotonic() - self._fresh:
                self.cancel(ready.popleft())

    def _give_back(self) -> None:
        for ready in self._ready.values():
            self._given_up += ready
            ready.clear()

    async def _in_time(self, asking: Coroutine[Any, Any, list[Choice]]) -> Choice | None:
        """Return the decision if it comes in time; one that comes later is given back."""
        task = self._spawn(asking)
        await asyncio.wait({task}, timeout=self._within)
        if task.done():
            return None if task.exception() else task.result()[0]
        self._silent_until = time.monotonic() + _PAUSE
        task.add_done_callback(self._too_late)
        return None

    def _too_late(self, task: asyncio.Task[list[Choice]]) -> None:
        if not task.cancelled() and task.exception() is None:
            self._given_up += task.result()

    async def _ask(
        self, count: int, there: dict[str, int], *, shadow: bool, advice: Any = None, session: str | None = None
    ) -> list[Choice]:
        graph = families.complete(len(self._names)) if shadow else None
        arms = sorted(there.values())
        if session is not None:
            made = await self._agent.ask(graph, arms, advice=advice, subject=session)
            rows = [(made.id, made.arm, made.reveals)]
        elif self._service is None:
            rows = []
            while len(rows) < count:
                try:
                    made = self._agent.ask(graph, arms, advice=advice)
                except CostError:  # no more fit; those that do are pending
                    if not rows:
                        raise
                    break
                rows.append((made.id, made.arm, made.reveals))
        else:
            batch = await self._agent.ask_many(count, graph, arms, advice=advice)
            ends = batch.offsets.tolist()
            parts = [batch.reveals[first:last] for first, last in pairwise(ends)]
            rows = list(zip(batch.ids, batch.arms.tolist(), parts, strict=True))
        names, lasts = self._names, session is not None
        return [Choice(id_, names[arm], {names[i]: int(i) for i in shown}, lasts) for id_, arm, shown in rows]

    # In the background.

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._doubt(error)

    def _doubt(self, error: BaseException) -> None:
        """Leave a service alone for a while that did not do what it was asked, then look at its arms again."""
        if time.monotonic() >= self._silent_until:
            LOG.warning("No decisions for a while: %s", error)
        self._not_allowed = error if isinstance(error, ServiceError) and error.status in {401, 403} else None
        self._silent_until = time.monotonic() + _PAUSE
        self.begun.clear()

    async def _work(self) -> None:
        while not self._closing:
            pause = _EVERY
            try:
                if not self.begun.is_set() or self._wanted != self._arms.keys():
                    await self._agree()
                await self._deliver()
            except Exception as error:  # noqa: BLE001  # whatever it is, the next attempt may succeed
                self._doubt(error)
                pause = _PAUSE
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)
            self._wake.clear()

    async def _agree(self) -> None:
        """Make arms of new models, and retire those of missing ones. Nothing is done twice if others do the same."""
        labels = await self._labels()
        self._names = [_MODEL.sub("", label) for label in labels]
        live = {self._names[arm]: arm for arm, retired in enumerate(labels.values()) if not retired}
        for name in sorted(self._wanted - live.keys()):
            again = self._names.count(name)  # a model that has come back is another arm
            label = f"{name}~{again + 1}" if again else name
            more: dict[str, Any] = {} if self._service is None else {"key": sha256(label.encode()).hexdigest()}
            if name in self._bounds:
                more["cost_bound"] = self._bounds[name]
            live[name] = await done(self._agent.add_arm(label=label, **more))
            self._names += [""] * (live[name] + 1 - len(self._names))
            self._names[live[name]] = name
        # A server with another list of models may run beside this one: later, only what went from this list is retired.
        gone = live.keys() if self._had is None else self._had
        for name in sorted(gone - self._wanted):
            if name in live:
                await done(self._agent.retire(live.pop(name)))
        self._had = set(self._wanted)
        self._arms = {name: arm for name, arm in live.items() if name in self._wanted}
        self.begun.set()

    async def _labels(self) -> dict[str, bool]:
        """Return whether each arm is retired, by its label. An experiment that does not exist is made."""
        if self._service is None:
            with contextlib.suppress(CostError):
                self._has_ceiling = self._agent.spending() is not None
            graph = self._agent.graph
            return {label: graph.out_neighbors(arm).size == 0 for arm, label in enumerate(graph.labels)}
        look = wire.state(self._agent.name, 0, wire.PAGE)
        try:
            state = await self._service.do(look)
        except ServiceError as error:
            if error.code != "not_found":
                raise
            names = sorted(self._wanted)
            graph = families.self_loops(len(names)).labelled(names)
            await self._service.create(self._agent.name, "glance", graph, sticky=self._sticky)
            state = await self._service.do(look)
        self._has_ceiling = state["spending"] is not None
        if state["expire_after"] is not None:  # the other half is left for the reply
            self._fresh = min(_FRESH, state["expire_after"] / 2)
        return {str(arm["label"]): bool(arm["retired"]) for arm in state["arms"]["items"]}

    async def _deliver(self) -> None:
        """Cancel what was given up or has lain ready for too long, and tell what came in."""
        self._give_back_old()
        untold, self._untold = self._untold, {}
        given_up, self._given_up = self._given_up, []
        cancelling = [done(self._agent.cancel(choice.id)) for choice in given_up]
        self._counts["cancelled"] += len(given_up)  # one that cannot be cancelled now will expire
        try:
            await self._tell(list(untold.values()))
        except BaseException:
            self._untold = untold | self._untold
            raise
        finally:
            await asyncio.gather(*cancelling, return_exceptions=True)

    async def _tell(self, untold: list[tuple[Choice, str, dict[str, tuple[float, float]]]]) -> None:
        rows: list[tuple[Any, ...]] = []
        columns = ("decision", "arm", "loss", "cost")[: 3 + self._has_ceiling]
        for choice, key, by_name in untold:
            told = [(choice.id, choice.reveals[name], *both) for name, both in by_name.items()]
            whole = by_name.keys() == choice.reveals.keys()
            if self._service is not None and whole and not choice.session:
                rows += told
                continue
            more: dict[str, Any] = {"key": key} if choice.session else {}
            if self._has_ceiling:
                more["costs"] = {arm: cost for _, arm, _, cost in told}
            losses = {arm: loss for _, arm, loss, _ in told}
            graph = None if whole else self._seen(choice, set(losses))
            try:
                await done(self._agent.tell(choice.id, losses, graph, **more))
            except SidelongError as error:
                if getattr(error, "code", "") in _LATER:
                    raise
                self._counts["refused"] += 1
                self.lose(choice)
        if rows:
            table = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=False))
            learned = await self._agent.tell_many(table, partial=True)
            self._counts["refused"] += len(learned.problems)
        self._counts["told"] += len(untold)

    def _seen(self, choice: Choice, arms: set[int]) -> FeedbackGraph:
        """Return the graph of a round in which not all models have replied: whichever was played, these were seen."""
        there = choice.reveals.values()
        edges = [(j, i) for j in there for i in arms] + [(j, j) for j in there if j not in arms]
        return FeedbackGraph.from_edges(edges, len(self._names))


def _bounds(names: Any) -> dict[str, float]:
    """Return the bounds that models come with."""
    return {name: bound for name, bound in dict(names).items() if bound is not None} if isinstance(names, dict) else {}


async def ask_all(advisers: Mapping[str, Callable[..., Any]], within: float, *about: Any) -> dict[str, Any]:
    """Return what advisers say, who are asked at once. One that fails, or does not answer in time, is left out."""
    asked = [asyncio.wait_for(_said(ask, about), within) for ask in advisers.values()]
    said = dict(zip(advisers, await asyncio.gather(*asked, return_exceptions=True), strict=True))
    for who, error in said.items():
        if isinstance(error, BaseException):
            LOG.warning("The adviser %s is silent: %r", who, error)
    return {who: each for who, each in said.items() if not isinstance(each, BaseException)}


async def _said(ask: Callable[..., Any], about: tuple[Any, ...]) -> Any:
    return await done(ask(*about))


async def judged(judge: Callable[[Any, Any], Any] | None, messages: Any, reply: Any) -> float | None:
    """Return how good a reply is, if there is a judge that says so."""
    try:
        said = None if judge is None else await done(judge(messages, reply))
        return None if said is None else checked_quality(said)
    except Exception:  # whatever a judge raises
        LOG.exception("The judge has failed, so that this reply waits for judge_later.")
        return None


async def done(value: Any) -> Any:
    """Return what an agent has returned, or what a client will."""
    return await value if inspect.isawaitable(value) else value
