"""A service as if it were here: `connect(url)["orders"]` is asked and told like an `Agent`.

    service = sl.connect("http://127.0.0.1:8431", token)
    agent = service.create("orders", "glance", sl.graphs.nested(24))   # or service["orders"]
    decision = agent.ask()
    agent.tell(decision, {int(arm): cost(arm) for arm in decision.reveals})

A request whose reply got lost is sent again, and counts once: a decision has an Idempotency-Key, and feedback and
cancellations are recognised when they are repeated. Errors are those of an agent; the cause of one is a `ServiceError`
with the status and the code of the reply. `connect_async` gives the same with `await`. Both are safe to share between
threads or tasks.

What an agent has and this does not: `save` and `load`, since the service keeps everything; `pending`, of which the
service tells the number (`state()["counts"]["outstanding"]`); and a decision's `probabilities`.
"""

from __future__ import annotations

import os

from sidelong._install import pip_install

try:
    import httpx as _needed  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"The client needs httpx. {pip_install('httpx')}", name="httpx") from error

from sidelong.service.client.asynchronous import AsyncExperiment, AsyncService
from sidelong.service.client.blocking import Experiment, Service
from sidelong.service.client.decisions import Learned, RemoteBatch, RemoteDecision

__all__ = [
    "AsyncExperiment",
    "AsyncService",
    "Experiment",
    "Learned",
    "RemoteBatch",
    "RemoteDecision",
    "Service",
    "connect",
    "connect_async",
]


def connect(url: str, token: str | None = None, *, patience: float = 30.0, timeout: float = 10.0) -> Service:
    """Connect to a decision service.

    Args:
        url: its address, such as http://127.0.0.1:8431.
        token: a token of the service, if it demands one. By default the environment variable SIDELONG_TOKEN.
        patience: for how many seconds to repeat a request while the service does not answer or is busy; 0: not at all.
        timeout: for how many seconds to wait for a reply.
    """
    return Service(url, token or os.environ.get("SIDELONG_TOKEN"), patience, timeout)


def connect_async(url: str, token: str | None = None, *, patience: float = 30.0, timeout: float = 10.0) -> AsyncService:
    """Connect to a decision service, with methods to be awaited. The arguments are those of `connect`."""
    return AsyncService(url, token or os.environ.get("SIDELONG_TOKEN"), patience, timeout)
