"""The client with `await`: what `sidelong.service.client.blocking` has, method by method."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from sidelong.machine import replacing
from sidelong.service.client import many, wire
from sidelong.service.client.learned import Learned
from sidelong.service.client.named import Named
from sidelong.service.client.replies import Patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from os import PathLike

    import numpy as np
    import numpy.typing as npt

    from sidelong.estimates import Estimates
    from sidelong.graphs import FeedbackGraph
    from sidelong.outcomes import Revealed, Scale
    from sidelong.outcomes.revealed import Losses
    from sidelong.service.client.batch import RemoteBatch
    from sidelong.service.client.decision import RemoteDecision
    from sidelong.service.client.wire import Log, Question

T = TypeVar("T")


class AsyncService:
    """The experiments of a service, by name: see `Service`."""

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
        prior: Mapping[int | str, tuple[float, float]] | None = None,
        log: Log | None = None,
        keyed: bool = False,
        **options: Any,
    ) -> AsyncExperiment:
        """Make an experiment, or find the one that was made alike under this name: see `Service.create`."""
        more = {"seed": seed, "expire_after": expire_after, "description": description, "labels": labels}
        more |= {"certificate": True} if certificate else {}
        more |= {} if features is None else {"features": list(features)}
        more |= wire.rarely(holdout, default_loss, prior, log, scale)
        more |= {"keyed": True} if keyed else {}
        made = self[name].scaled(scale)
        await self.do(wire.create(name, learner, graph, options, more))
        return made

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
    """An experiment of a service: see `Experiment`, whose properties are in `state()` here."""

    async def ask(
        self,
        graph: FeedbackGraph | None = None,
        available: Iterable[int | str | bool] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> RemoteDecision:
        """Draw an arm: see `Experiment.ask`."""
        return await self._service.do(wire.ask(self._name, graph, context, key, available))

    async def tell(
        self, decision: RemoteDecision | str, losses: Losses | Revealed, graph: FeedbackGraph | None = None
    ) -> bool:
        """Learn the losses that a decision revealed: see `Experiment.tell`."""
        return await self._service.do(wire.tell(self._name, decision, losses, graph, self._scale))

    async def ask_many(
        self,
        keys: Iterable[str | int] | int,
        graph: Any = None,
        available: Iterable[int | str | bool] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> RemoteBatch:
        """Draw an arm for each key, or several for an experiment without keys: see `Experiment.ask_many`."""
        asking = many.ask(self._name, keys, graph, available, context, key)
        return asking.joined([await self._service.do(each) for each in asking.questions])

    async def tell_many(
        self, decisions: Any, losses: Any = None, graph: Any = None, *, partial: bool = False
    ) -> Learned:
        """Learn the losses that decisions revealed: see `Experiment.tell_many`."""
        told = many.tell(self._name, decisions, losses, graph, self._scale, partial=partial)
        return Learned.together([await self._service.do(each) for each in told])

    async def cancel(self, decision: RemoteDecision | str) -> None:
        """Give up a decision that was never carried out: nothing is learned from it."""
        await self._service.do(wire.cancel(self._name, decision))

    async def estimates(self) -> Estimates:
        """Return what is known about each arm; the service does not tell gaps."""
        arms: list[dict[str, Any]] = []
        while True:
            page = (await self._service.do(wire.state(self._name, len(arms), wire.PAGE)))["arms"]
            arms += page["items"]
            if len(arms) >= page["total"] or not page["items"]:
                return wire.estimates(arms)

    async def predict(self, context: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Return the predicted loss of each arm: see `Experiment.predict`."""
        return await self._service.do(wire.predict(self._name, context))

    async def graph(self) -> FeedbackGraph:
        """Return the graph, of up to 500 arms and 5,000 edges: see `Experiment.graph`."""
        return await self._service.do(wire.drawing(self._name))

    async def state(self) -> dict[str, Any]:
        """Return all that the service says about the experiment, with its first arm: see docs/service.md."""
        return await self._service.do(wire.state(self._name))

    async def change(self, **wanted: Any) -> Self:
        """Change an experiment, and return it: see `Experiment.change`."""
        await self._service.do(wire.change(self._name, wanted))
        return self._called(wanted.get("name", self._name))

    async def changes(self) -> list[dict[str, Any]]:
        """Return who made the experiment and who changed what, oldest first."""
        return await self._service.do(wire.changes(self._name))

    async def clone(self, name: str, *, learned: bool = True, **wanted: Any) -> Self:
        """Make an experiment like this one, and return it: see `Experiment.clone`."""
        await self._service.do(wire.clone(self._name, name, {"learned": learned, **wanted}))
        return self._called(name)

    async def save(self, path: str | PathLike[str]) -> None:
        """Write the agent as it stands to a file, from which `Agent.load` goes on."""
        data = await self._service.do(wire.agent(self._name))
        with replacing(path) as file:
            file.write(data)

    async def delete(self, name: str) -> None:
        """Delete the experiment with all of its data: see `Experiment.delete`."""
        await self._service.do(wire.delete(self._name, name))

    async def look_up(self, decision: RemoteDecision | str) -> dict[str, Any]:
        """Return what became of a decision: see `GET /v1/decisions/{id}` in docs/service.md."""
        return await self._service.do(wire.look_up(self._name, decision))
