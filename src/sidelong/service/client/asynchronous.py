"""The client with `await`: a service and its experiments, and the source of the one without.

After a change, run scripts/blocking_client.py, which writes that one. What follows ``# blocking:`` is in that one only.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from sidelong.machine import replacing
from sidelong.outcomes.scale import Scale
from sidelong.service.client import many, wire
from sidelong.service.client.decisions import Learned
from sidelong.service.client.replies import Patience
from sidelong.service.client.wire import Named

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from os import PathLike

    import numpy as np
    import numpy.typing as npt

    from sidelong.estimates import Estimates
    from sidelong.graphs import FeedbackGraph
    from sidelong.outcomes import Revealed
    from sidelong.outcomes.revealed import Losses
    from sidelong.service.client.decisions import RemoteBatch, RemoteDecision
    from sidelong.service.client.plain import Log
    from sidelong.service.client.wire import Question

T = TypeVar("T")


class AsyncService:
    """The experiments of a service, by name. Nothing is asked for until it is needed."""

    def __init__(self, url: str, token: str | None, patience: float, timeout: float) -> None:
        self._http = httpx.AsyncClient(**wire.settings(url, token, timeout))
        self._patience = patience
        self._timeout = timeout

    def __getitem__(self, name: str) -> AsyncExperiment:
        return AsyncExperiment(self, name)

    async def __aiter__(self) -> AsyncIterator[str]:
        offset = 0
        while True:
            page = await self.do(wire.names(offset))
            for item in page["items"]:
                yield item["name"]
            offset += len(page["items"])
            if offset >= page["total"] or not page["items"]:
                return

    async def create(
        self,
        name: str,
        learner: str,
        graph: FeedbackGraph,
        *,
        seed: int | None = None,
        expire_after: float | None = 86_400.0,
        description: str = "",
        labels: Sequence[str] | None = None,
        scale: Scale | None = None,
        certificate: bool = False,
        features: Sequence[str] | None = None,
        holdout: tuple[int | str, float] | Mapping[str, Any] | None = None,
        default_loss: float | None = None,
        sticky: float | None = None,
        prior: Mapping[int | str, tuple[float, float]] | None = None,
        incumbent: str | None = None,
        allowance: float | None = None,
        ceiling: float | None = None,
        cost_bounds: Sequence[float] | Mapping[int | str, float] | None = None,
        overspend: float | None = None,
        ceiling_over: str = "key",
        log: Log | None = None,
        keyed: bool = False,
        pooled: bool = False,
        **options: Any,  # each learner has its own
    ) -> AsyncExperiment:
        """Make an experiment, or find the one that was made alike under this name.

        Args:
            name: what to call it.
            learner: as for `Agent`.
            graph: as for `Agent`.
            seed: as for `Agent`; one is drawn if none is given.
            expire_after: after how many seconds without feedback a decision expires; None: never.
            description: for people.
            labels: what to call each arm; those of the graph if none are given.
            scale: as for `Agent`: the range of your own costs or scores, which the service keeps. Everybody then tells
                numbers of it, and `state()["amounts"]` has totals and savings in its unit.
            certificate: as for `Agent`; `state()["certificate"]` has it.
            features: the names in the `context` of a decision that the learner sees: "glance" or "squarecb.g".
            holdout: an arm, and the share of rounds that follows it and not the learner; `state()["lift"]` says what
                the learner saves.
            default_loss: what an expired decision is told; if not given, nothing is learned from it.
            sticky: for how many seconds a `subject` of `ask` gets the same decision; in place of `expire_after`.
            prior: as for `Agent`: what you believe of some arms.
            incumbent: as for `Agent`: the name of the adviser who decides today.
            allowance: as for `Agent`: how much may be lost to it, on average.
            ceiling: as for `Agent`: what a decision may cost on average; `tell` then takes `costs`.
            cost_bounds: as for `Agent`: the most that each arm can cost.
            overspend: as for `Agent`: by how much the total may ever be above the line.
            ceiling_over: as for `Family`: "key" or "all".
            log: rounds to learn before the first decision: the path of the exported log of another experiment, or a
                dict with the columns action, loss and pscore.
            keyed: whether it plays for many keys, as a `Family` does: see `Experiment.ask_many`.
            pooled: as for `Family`: whether keys learn together whom to trust.
            **options: the options of the learner, as for `Agent` or `ContextualAgent`.
        """
        more: dict[str, Any] = {
            "seed": seed,
            "expire_after": expire_after,
            "description": description,
            "labels": labels,
        }
        more |= {"certificate": True} if certificate else {}
        more |= {} if features is None else {"features": list(features)}
        more |= wire.rarely(holdout, default_loss, prior, log, scale)
        more |= {} if incumbent is None else {"incumbent": incumbent}
        more |= {} if allowance is None else {"allowance": allowance}
        more |= wire.limits(ceiling, cost_bounds, overspend, ceiling_over)
        more |= {name: True for name, given in (("keyed", keyed), ("pooled", pooled)) if given}
        more |= {} if sticky is None else {"sticky": {"seconds": sticky}}
        await self.do(wire.create(name, learner, graph, options, more))
        return self[name]

    async def do(self, call: Question[T]) -> T:
        """Send a request, again where that may help, and return what its reply says."""
        patience = Patience(self._patience)
        while True:
            outcome: httpx.Response | Exception
            try:
                outcome = await self._http.request(**call.request(self._timeout))
            except httpx.TransportError as error:
                outcome = error
            pause = patience.after(outcome)
            if pause is None:
                return call.result(outcome, self._http.base_url, repeated=patience.repeated)
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncService at {self._http.base_url}>"


class AsyncExperiment(Named["AsyncService"]):
    """An experiment of a service, with the interface of an `Agent`."""

    # blocking: @property
    async def learner(self) -> str:
        """Return the name of the learner."""
        state = await self.state()
        return str(state["learner"])

    # blocking: @property
    async def options(self) -> dict[str, Any]:
        """Return the options that the learner was given."""
        state = await self.state()
        return dict(state["options"])

    # blocking: @property
    async def seed(self) -> int:
        """Return the seed."""
        state = await self.state()
        return int(state["seed"])

    # blocking: @property
    async def round(self) -> int:
        """Return how many decisions were asked for."""
        state = await self.state()
        return int(state["round"])

    # blocking: @property
    async def scale(self) -> Scale | None:
        """Return the range of the numbers that `tell` takes; None if they are losses in [0, 1]."""
        state = await self.state()
        return None if state["scale"] is None else Scale(**state["scale"])

    # blocking: @property
    async def graph(self) -> FeedbackGraph:
        """Return the graph of each round that `ask` gets no other one for, of up to 500 arms and 5,000 edges."""
        return await self._service.do(wire.drawing(self._name))

    async def ask(
        self,
        graph: FeedbackGraph | None = None,
        available: Iterable[int | str | bool] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        key: str | None = None,
        subject: str | None = None,
        advice: Any = None,
    ) -> RemoteDecision:
        """Draw an arm.

        Args:
            graph: the graph of this round alone, where graphs change from round to round.
            available: the arms that can be played in this round, as for `Agent.ask`.
            context: what the log should say about this decision. Of it, the learner sees the experiment's features.
            key: what this decision is for, such as the number of an order: whoever asks again with the same key gets
                the same decision. Without one, every call gets another.
            subject: of a sticky experiment, who it is for: the same subject gets the same decision until it ends.
            advice: what you would play yourself, as for `Agent.ask`.
        """
        return await self._service.do(wire.ask(self._name, graph, context, key, available, subject, advice))

    async def tell(
        self,
        decision: RemoteDecision | str,
        losses: Losses | Revealed,
        graph: FeedbackGraph | None = None,
        *,
        key: str | None = None,
        costs: Losses | None = None,
    ) -> bool:
        """Learn the losses that a decision revealed: now or later, in any order, from any process.

        Args:
            decision: the decision, or its id.
            losses: a number in [0, 1], or in the experiment's `scale`, for every arm in `decision.reveals`, by arm or
                in their order; or what a function of `sidelong.outcomes` returned for the arm of this decision, whole.
            graph: where only the outcome shows what is revealed, what every arm would have revealed. See `Agent.tell`.
            key: of a sticky decision, whose losses may come several times, what this report is for, such as the number
                of a request: whoever reports it again with the same key changes nothing.
            costs: under a ceiling, what the same arms cost, by arm or in their order.

        Returns:
            True if something was learned, False if the same was told before, or is learned when a sticky decision ends.
        """
        return await self._service.do(wire.tell(self._name, decision, losses, graph, key, costs))

    async def ask_many(
        self,
        keys: Iterable[str | int] | int,
        graph: Any = None,
        available: Iterable[int | str | bool] | None = None,
        *,
        context: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        key: str | None = None,
        advice: Any = None,
    ) -> RemoteBatch:
        """Draw an arm for each key of an experiment that has keys, as `Family.ask` does; or several for one without.

        Args:
            keys: text or whole numbers: a list, an array or a column. One that is given twice gets two decisions. For
                an experiment without keys, how many decisions to make.
            graph: the graph of this round, if it is another one: one for all keys, a list with one for each, or
                ``(graphs, index)``, where ``graphs[index[i]]`` is that of the i-th key. Each graph is a request.
            available: the arms that can be played in this round, as for `Agent.ask`, for all keys.
            context: what the log should say about these decisions, for all keys, or in a list for each. Of it, the
                learner sees the experiment's features.
            key: what they are for, such as a date: whoever asks for the same again gets the same decisions.
            advice: what you would play yourself, as for `Family.ask`; without keys, as for `Agent.ask`, for all.
        """
        asking = many.ask(self._name, keys, graph, available, context, key, advice)
        return asking.joined([await self._service.do(each) for each in asking.questions])

    async def tell_many(
        self,
        decisions: Any,
        losses: Any = None,
        graph: Any = None,
        *,
        partial: bool = False,
        costs: Any = None,
    ) -> Learned:
        """Learn the losses that decisions revealed: now or later, in any order; all of a request, or nothing.

        Args:
            decisions: a batch, or some of one (``batch[mask]``); with outcomes also ids; or only a table, as below.
            losses: numbers in [0, 1], or in the `scale`, one after the other in the order of ``batch.reveals``; or a
                table of Arrow, pandas or Polars, or a dict of columns: decision (or key, of a batch), arm, loss, with a
                row for every arm that each decision reveals; or what ``outcomes`` of `sidelong.outcomes` returned.
            graph: where only the outcome shows what is revealed, the graphs in the forms that `ask_many` takes.
            partial: whether to learn all others if something is wrong with some decisions.
            costs: under a ceiling, what the same arms cost, as losses; a table has them in a column cost.

        Returns:
            How many decisions were learned; those that were told the same before are left as they are. If `partial`,
            its ``problems`` has the error of each decision that was refused, by id.
        """
        told = many.tell(self._name, decisions, losses, graph, partial=partial, costs=costs)
        return Learned.together([await self._service.do(each) for each in told])

    async def override(self, decision: RemoteDecision | str, arm: int | str) -> RemoteDecision:
        """Say that a decision was carried out with another arm, before its losses are told.

        `tell` then takes the losses that this arm revealed. The learner does not learn from them, since it did not draw
        the arm: see `Agent.override`.

        Args:
            decision: the decision, or its id.
            arm: the arm that was carried out, by number or label. It must have been there in that round.

        Returns:
            The decision as it is now: its `reveals` are those of the arm that was carried out.
        """
        return await self._service.do(wire.override(self._name, decision, arm))

    async def cancel(self, decision: RemoteDecision | str) -> bool:
        """Give up a decision that was never carried out; return False if it was cancelled before."""
        return await self._service.do(wire.cancel(self._name, decision))

    async def add_arm(
        self,
        *,
        reveals: Iterable[int | str] = (),
        revealed_by: Iterable[int | str] = (),
        label: str | None = None,
        key: str | None = None,
        cost_bound: float | None = None,
    ) -> int:
        """Add an arm, for all keys, and return its number, which is the next one: see `Agent.add_arm`.

        Args:
            reveals: the arms that playing it reveals beside itself, by number or label.
            revealed_by: the arms that reveal it.
            label: what to call it, if the other arms have labels.
            key: what it is for, such as the name of a model: whoever adds it again with the same key gets the same arm.
            cost_bound: the most that it can cost, if the other arms have bounds under a ceiling.
        """
        return await self._service.do(wire.add_arm(self._name, reveals, revealed_by, label, key, cost_bound))

    async def retire(self, arm: int | str) -> None:
        """Take an arm out for good, by number or label: see `Agent.retire`. Pending decisions stay as they are."""
        await self._service.do(wire.retire(self._name, arm))

    async def estimates(self) -> Estimates:
        """Return what is known about each arm; the service does not tell gaps."""
        arms: list[dict[str, Any]] = []
        while True:
            state = await self._service.do(wire.state(self._name, len(arms), wire.PAGE))
            page = state["arms"]
            arms += page["items"]
            if len(arms) >= page["total"] or not page["items"]:
                return wire.estimates(arms)

    async def predict(self, context: Mapping[str, Any], key: str | int | None = None) -> npt.NDArray[np.float64]:
        """Return the predicted loss of each arm, from 0 to 1, of an experiment with features, of up to 1,000 arms.

        Where it has keys, these are the predictions for one of them.
        """
        return await self._service.do(wire.predict(self._name, context, key))

    async def state(self, key: str | int | None = None) -> dict[str, Any]:
        """Return all that the service says about the experiment, with its first arm: see docs/http.md.

        Args:
            key: of an experiment with keys, the one whose estimates, guarantee, certificate and health to return.
        """
        return await self._service.do(wire.state(self._name, key=key))

    async def change(self, **wanted: Any) -> Self:
        """Change an experiment, and return it, under its new name if that was changed.

        Args:
            **wanted: any of `state` ("running", "frozen", "stopped", "archived"), `play` (what a frozen one plays: an
                arm, or the probability of each arm), `fallback` (the arm that a stopped one answers with), `name`,
                `description`, `labels` and `expire_after`. What is not named stays as it is. See docs/life.md.
        """
        await self._service.do(wire.change(self._name, wanted))
        return type(self)(self._service, wanted.get("name", self._name))

    async def changes(self) -> list[dict[str, Any]]:
        """Return who made the experiment and who changed what, oldest first."""
        return await self._service.do(wire.changes(self._name))

    async def clone(self, name: str, *, learned: bool = True, **wanted: Any) -> Self:
        """Make an experiment like this one, and return it.

        Args:
            name: what to call it.
            learned: whether it goes on from what this one has learned.
            **wanted: any of `seed`, `description` and `holdout`, if they are to be others.
        """
        await self._service.do(wire.clone(self._name, name, {"learned": learned, **wanted}))
        return type(self)(self._service, name)

    async def save(self, path: str | PathLike[str]) -> None:
        """Write the agent as it stands to a file, from which `Agent.load` goes on."""
        data = await self._service.do(wire.agent(self._name))
        with replacing(path) as file:
            file.write(data)

    async def delete(self, name: str) -> None:
        """Delete the experiment with all of its data, which nothing brings back: its name must be repeated."""
        await self._service.do(wire.delete(self._name, name))

    async def look_up(self, decision: RemoteDecision | str) -> dict[str, Any]:
        """Return what became of a decision: see `GET /v1/decisions/{id}` in docs/http.md."""
        return await self._service.do(wire.look_up(self._name, decision))
