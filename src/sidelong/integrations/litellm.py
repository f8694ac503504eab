"""LiteLLM: requests are routed by an experiment of the decision service, or by an agent in this process.

    routing = Routing(router, at="http://127.0.0.1:8431", experiment="chat", judge=judge, shadow=0.05)

An arm is a deployment of one model group. LiteLLM calls `Routing` before it chooses a deployment and after each call;
docs/litellm.md says what happens when. No request fails because of it, nor waits for long: where no decision comes in
time, LiteLLM's own strategy decides, and `counts["open"]` says so.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from sidelong._install import pip_install
from sidelong.errors import LearnerError, LossError, ServiceError
from sidelong.integrations.gateway import Gateway, Loss, ShadowBudget, ask_all, checked_quality, judged

try:
    import litellm
    from litellm.constants import OPENAI_CHAT_COMPLETION_PARAMS
    from litellm.integrations.custom_logger import CustomLogger
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"This needs {error.name}. {pip_install(str(error.name))}", name=error.name) from None

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sidelong.integrations.gateway import Choice

_LOG = logging.getLogger("sidelong.litellm")
_MARK, _TRIED = "sidelong", "sidelong_tried"  # where the metadata have which request it is, and what was tried for it
_LEFT_OUT = ("_excluded_deployment_ids", "_retry_skipped_deployment_ids")  # what a retry must not try again
_MOST = 100_000  # requests that wait for their reply, or for its quality, and qualities that wait for a reply
_LONGEST = 3600.0  # seconds that a request waits for its reply; LiteLLM reports nothing of a stream that nobody reads


@dataclass
class _Request:
    """A request that was routed, and what is known of the replies to it."""

    choice: Choice
    deployment: str
    others: dict[str, str]  #: the deployments that run in shadow, by name
    asked: dict[str, Any]  #: what they are asked
    replies: dict[str, tuple[float | None, float, float]] = field(default_factory=dict)  #: quality, dollars, seconds


class Routing(CustomLogger):  # type: ignore[misc]  # LiteLLM is optional, and not read by the type checker
    """Routes the requests of one model group among its deployments, and learns from what they cost.

    `counts` says how many requests were routed, left `open` to LiteLLM or `synchronous`, how many ran in `shadow`, how
    many decisions were told, cancelled or refused, and how many replies had no price (`unpriced`).

    Args:
        router: LiteLLM's router; None in a callback of the proxy, which makes its own.
        at: the address of the decision service.
        experiment: its experiment, which is made with the learner "glance" if there is none.
        token: what the service demands, if it does.
        agent: an agent in this process, in place of a service. Its arms are labelled with the ids of deployments.
        group: the model group; if not given, the one that is called like the experiment.
        judge: says how good a reply is, from 0 to 1: a function or coroutine of the messages and the reply. If it
            returns None, or there is none, `judge_later` does. False: quality is not learned.
        loss: what to learn; if not given, `Loss()`, or cost and latency alike if `judge` is False.
        advisers: functions or coroutines of the messages and the request, by name. Each returns the id of a deployment.
        shadow: the share of requests that all healthy deployments reply to. Only one reply reaches the caller.
        shadow_cap: how many dollars shadow runs may cost in a day (UTC), in this process.
        sticky: for how many seconds a session (`session_id` in the metadata) keeps its deployment.
        within: for how many seconds a request waits for a decision, at most; half of it for advisers, if there are any.
    """

    def __init__(
        self,
        router: Any = None,
        *,
        at: str | None = None,
        experiment: str = "chat",
        token: str | None = None,
        agent: Any = None,
        group: str | None = None,
        judge: Callable[[Any, Any], Any] | bool | None = None,
        loss: Loss | None = None,
        advisers: Mapping[str, Callable[[Any, Any], Any]] | None = None,
        shadow: float = 0.0,
        shadow_cap: float | None = None,
        sticky: float | None = None,
        within: float = 0.05,
    ) -> None:
        super().__init__()
        if (at is None) == (agent is None):
            raise LearnerError("Say at=, the address of a service, or agent=, an agent in this process: one of them.")
        if agent is not None and (sticky is not None or agent.graph.labels is None):
            raise LearnerError("An agent needs labels, the ids of deployments, and knows no sessions: no sticky=.")
        if not 0 <= shadow <= 1 or (shadow and sticky is not None):
            raise LearnerError(f"shadow is a share from 0 to 1, and 0 where sessions are sticky, not {shadow!r}.")
        self._loss = loss or (Loss(0.0, 0.5, 0.5) if judge is False else Loss())
        self._judge = judge if callable(judge) and self._loss.quality else None
        if shadow and self._loss.quality and self._judge is None:
            raise LossError("Shadow runs need a judge: nobody else sees their replies. Or take a loss without quality.")
        self.counts: Counter[str] = Counter()  #: what became of requests and decisions
        whom: dict[str, Any] = {"at": at, "token": token, "experiment": experiment, "agent": agent, "sticky": sticky}
        self._connect = partial(Gateway, counts=self.counts, within=within / (2 if advisers else 1), **whom)
        self._router, self._group = router, group or experiment
        self._ask = partial(ask_all, dict(advisers or {}), within / 2)
        self._shadow, self._budget, self._is_sticky = shadow, ShadowBudget(shadow_cap), sticky is not None
        self._routed: dict[str, _Request] = {}
        self._unjudged: dict[str, _Request] = {}
        self._early: dict[str, float] = {}  # qualities that came before LiteLLM reported the reply
        self._gateway: Gateway | None = None
        self._known: Any = None  # the event loop, and the ids of deployments in it
        self._tasks: set[asyncio.Task[None]] = set()
        if router is not None:
            litellm.logging_callback_manager.add_litellm_callback(self)

    # What LiteLLM calls.

    async def async_filter_deployments(
        self, model: str, healthy_deployments: list[Any], messages: Any, request_kwargs: Any = None, *_: Any, **__: Any
    ) -> list[Any]:
        """Leave the deployment that is to be played, or all of them if there is no decision in time."""
        if model != self._group or messages is None or request_kwargs is None or not healthy_deployments:
            return healthy_deployments
        chosen = None
        try:
            chosen = await self._route(healthy_deployments, messages, request_kwargs)
        except Exception:  # noqa: BLE001  # no request fails because of us
            _LOG.exception("LiteLLM decides, since no decision could be made.")
        self.counts["open" if chosen is None else "routed"] += 1
        return healthy_deployments if chosen is None else [chosen]

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Judge the reply, let others run in shadow, and tell."""
        request, served = self._of(kwargs), (kwargs["litellm_params"].get("model_info") or {}).get("id")
        if request is not None and (kwargs.get("cache_hit") or served != request.deployment):
            self._cancel(request)  # no model has replied, or another one
        elif request is not None:
            outcome = kwargs.get("response_cost"), (end_time - start_time).total_seconds()
            task = asyncio.ensure_future(self._finish(request, response_obj, *outcome))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def async_log_failure_event(self, kwargs: Any, *_: Any, **__: Any) -> None:
        """Cancel: an outage is no loss. A retry is another decision."""
        if (request := self._of(kwargs)) is not None:
            self._cancel(request)

    def log_success_event(self, kwargs: Any, *_: Any, **__: Any) -> None:
        """Count what came by `completion`, for which LiteLLM does not call us before it chooses."""
        known = kwargs["litellm_params"]
        if not known.get("acompletion") and (known.get("metadata") or {}).get("model_group") == self._group:
            self.counts["synchronous"] += 1

    # What users call.

    def judge_later(self, request_id: str, quality: float) -> bool:
        """Say how good the reply with this id was, from 0 to 1; return False if no such reply waits for that yet."""
        checked, request = checked_quality(quality), self._unjudged.pop(request_id, None)
        if request is not None:
            request.replies[request.choice.name] = checked, *request.replies[request.choice.name][1:]
            self._settle(request, request_id)
        elif self._routed or self._tasks:
            self._early[request_id] = checked
            if len(self._early) > _MOST:
                self._early.pop(next(iter(self._early)))
        return request is not None

    async def __aenter__(self) -> Self:
        try:
            await self._attached().until_begun()  # a server need not wait: until then LiteLLM decides
        except ServiceError:
            await self.close(0.0)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, patience: float = 2.0) -> None:
        """Wait so many seconds for replies that are under way, and tell what there is to tell."""
        end = time.monotonic() + patience
        while (self._routed or self._tasks) and time.monotonic() < end:  # noqa: ASYNC110  # LiteLLM reports them later
            await asyncio.sleep(0.01)
        litellm.logging_callback_manager.remove_callback_from_list_by_object(litellm.callbacks, self)
        if self._gateway is not None:
            await self._gateway.close()
        self._gateway = None

    # What happens to a request.

    def _attached(self) -> Gateway:
        """Return the gateway of this event loop, which knows the deployments that there are now."""
        if self._router is None:
            from litellm.proxy import proxy_server  # noqa: PLC0415  # only in the proxy

            self._router = proxy_server.llm_router
        known = asyncio.get_running_loop(), self._router.get_model_ids(model_name=self._group)
        if self._gateway is None or known != self._known:
            there = self._router.get_model_list(model_name=self._group) or ()
            names = {_name(each): each["model_info"].get("cost_bound") for each in there}
            if self._gateway is None or known[0] is not self._known[0]:
                self._gateway = self._connect(names=names)
            self._gateway.offer(names)
            self._known = known
        return self._gateway

    async def _route(self, healthy: list[Any], messages: Any, request: dict[str, Any]) -> Any:
        gateway = self._attached()
        if self._router.enable_pre_call_checks or self._router.enable_tag_filtering:
            return None  # these come later, and could leave nothing of one deployment
        tried = (metadata := request.setdefault("metadata", {})).setdefault(_TRIED, [])  # a retry finds it here
        left_out = {*tried, *(id_ for key in _LEFT_OUT for id_ in request.get(key) or ())}
        some = litellm.utils.get_order_filtered_deployments(healthy, target_order=request.get("_target_order"))
        there = {_name(each): each for each in some if _id(each) not in left_out}
        names, said = {_id(each): name for name, each in there.items()}, await self._ask(messages, request)
        advice = {who: names.get(id_, "") for who, id_ in said.items()}
        session = str(metadata.get("session_id") or uuid4()) if self._is_sticky else None
        others: dict[str, str] = {}
        shadow = len(there) > 1 and random.random() < self._shadow and self._budget.begin()  # noqa: S311  # no secret
        try:
            choice = await gateway.decide(there, shadow=shadow, advice=advice, session=session, ready=not left_out)
            if choice is None:
                return None
            others |= {name: _id(there[name]) for name in choice.reveals if shadow and name != choice.name}
        finally:
            if shadow and not others:
                self._budget.end()
        tried.append(_id(there[choice.name]))
        asked = {key: request[key] for key in OPENAI_CHAT_COMPLETION_PARAMS if others and key in request}
        request["metadata"] = {**metadata, _MARK: (mark := uuid4().hex)}  # a copy, since a retry gets the old one
        self._keep(self._routed, mark, _Request(choice, tried[-1], others, {**asked, "messages": messages}))
        return there[choice.name]

    def _of(self, kwargs: Any) -> _Request | None:
        return self._routed.pop((kwargs["litellm_params"].get("metadata") or {}).get(_MARK, ""), None)

    def _keep(self, waiting: dict[str, _Request], key: str, request: _Request) -> None:
        waiting[key] = request
        oldest, first = next(iter(waiting.items()))
        if len(waiting) > _MOST or (waiting is self._routed and first.choice.made < time.monotonic() - _LONGEST):
            self._cancel(waiting.pop(oldest), lost=True)

    def _cancel(self, request: _Request, *, lost: bool = False) -> None:
        if request.others and not request.replies:
            self._budget.end()
        if self._gateway is not None:
            (self._gateway.lose if lost else self._gateway.cancel)(request.choice)

    async def _finish(self, request: _Request, reply: Any, dollars: float | None, seconds: float) -> None:
        own = self._judged(request, request.choice.name, reply, dollars, seconds)
        await asyncio.gather(own, *(self._run(request, *other) for other in request.others.items()))
        if request.others:
            self._budget.end(sum(request.replies[name][1] for name in request.others if name in request.replies))
            self.counts["shadow"] += 1
        if self._loss.quality and request.replies[request.choice.name][0] is None:
            self._keep(self._unjudged, reply.id, request)
            if (quality := self._early.pop(reply.id, None)) is not None:
                self.judge_later(reply.id, quality)
        else:
            self._settle(request, reply.id)

    async def _run(self, request: _Request, name: str, deployment: str) -> None:
        """Let a deployment reply in shadow. One that fails is left out."""
        began = time.monotonic()
        asked = {**request.asked, "model": deployment, "stream": False, "num_retries": 0, "disable_fallbacks": True}
        try:
            reply = await self._router.acompletion(**asked)
            dollars = reply._hidden_params.get("response_cost")  # noqa: SLF001  # there is no other way to it
            await self._judged(request, name, reply, dollars, time.monotonic() - began)
        except Exception as error:  # noqa: BLE001  # whatever a provider raises
            _LOG.info("%s did not reply in shadow: %s", name, error)

    async def _judged(self, request: _Request, name: str, reply: Any, dollars: float | None, seconds: float) -> None:
        quality = await judged(self._judge, request.asked["messages"], reply)
        self.counts["unpriced"] += dollars is None
        request.replies[name] = quality, dollars or 0.0, seconds

    def _settle(self, request: _Request, key: str) -> None:
        """Tell the losses of all replies whose quality is known, or has no weight."""
        known = {name: r for name, r in request.replies.items() if r[0] is not None or not self._loss.quality}
        if self._gateway is not None:
            losses, costs = {n: self._loss.of(*r) for n, r in known.items()}, {n: r[1] for n, r in known.items()}
            self._gateway.tell(request.choice, losses, key, costs)


def _id(deployment: Any) -> str:
    return str(deployment["model_info"]["id"])


def _name(deployment: Any) -> str:
    """Return the id that a deployment was given, or what people know of one that LiteLLM has numbered."""
    id_ = _id(deployment)
    return f"{deployment['litellm_params']['model']} {id_[:8]}" if re.fullmatch(r"[0-9a-f]{64}|\d+", id_) else id_
