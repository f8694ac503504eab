"""What both clients say and understand: requests, replies, errors, and when to try again. Nothing is sent here."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, urlsplit
from uuid import uuid4

import numpy as np

from sidelong._version import __version__
from sidelong.errors import (
    ConflictError,
    DecisionError,
    ExpiredError,
    GraphError,
    LearnerError,
    LossError,
    ServiceError,
    SidelongError,
    UnknownDecisionError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx
    import numpy.typing as npt

    from sidelong.agent import Estimates
    from sidelong.agent.feedback import Losses
    from sidelong.graphs import FeedbackGraph

__all__ = ["Call", "Patience", "RemoteDecision"]

T = TypeVar("T")
PAGE = 1000


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request that may be sent again without harm, and how to read its reply."""

    method: str
    path: str
    read: Callable[[Any, bool], T]  #: from the JSON of the reply, and whether an earlier attempt may have succeeded
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None  #: seconds, where a reply may take longer than others

    def result(self, reply: httpx.Response, *, repeated: bool) -> T:
        """Read a reply, or raise the error that it is."""
        if not reply.is_success:
            raise _refusal(reply, self.path)
        return self.read(reply.json() if reply.content else None, repeated)


class RemoteDecision:
    """What a service answers to `ask`, with the names of an agent's `Decision`."""

    __slots__ = ("_reply", "_reveals")

    def __init__(self, reply: dict[str, Any]) -> None:
        self._reply = reply
        self._reveals = np.array(reply["reveals"], np.int32)
        self._reveals.setflags(write=False)

    @property
    def id(self) -> str:
        """What names this decision: pass it to `tell`, from anywhere."""
        return str(self._reply["id"])

    @property
    def round(self) -> int:
        """The number of the round, from 1."""
        return int(self._reply["round"])

    @property
    def arm(self) -> int:
        """The arm to play."""
        return int(self._reply["arm"])

    @property
    def probability(self) -> float:
        """The probability with which `arm` was drawn; NaN if the learner draws without knowing it, as ts-n does."""
        p = self._reply["probability"]
        return math.nan if p is None else float(p)

    @property
    def reveals(self) -> npt.NDArray[np.int32]:
        """The arms whose losses playing `arm` reveals: what `tell` wants to know."""
        return self._reveals

    @property
    def expires_at(self) -> str | None:
        """Until when the service waits for feedback, in UTC; None if it always does."""
        expires: str | None = self._reply["expires_at"]
        return expires

    def __getattr__(self, name: str) -> Any:
        if name in {"probabilities", "observe_probabilities", "graph"}:
            raise AttributeError(
                f"A decision that came over the network has no {name}. experiment.look_up(decision) has the "
                f"probabilities of observing the revealed arms, experiment.estimates().weights those of the next draw."
            )
        raise AttributeError(f"'RemoteDecision' object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<RemoteDecision {self.id}: play arm {self.arm}, drawn with probability {self.probability:.4g}>"


class Patience:
    """How long to try, and how long to wait in between: twice as long each time, at random, or as the service says."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._attempts = 0
        self.repeated = False  #: whether an earlier attempt may have succeeded

    def after(self, failure: httpx.Response | Exception) -> float | None:
        """Return how many seconds to wait before the next attempt; None if this failure is the answer."""
        told = 0.0
        if not isinstance(failure, Exception):
            if failure.status_code not in {408, 429, 502, 503, 504} or _problem(failure).get("code") == "refused":
                return None
            told = _retry_after(failure) or 0.0
        self.repeated |= isinstance(failure, Exception) or failure.status_code in {502, 504}
        pause = max(told, min(5.0, 0.1 * 2**self._attempts) * random.uniform(0.5, 1.0))  # noqa: S311  # no secret
        self._attempts += 1
        return pause if time.monotonic() + pause < self._until else None


def settings(url: str, token: str | None, timeout: float) -> dict[str, Any]:
    """Return the arguments of an httpx client."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ServiceError(f"A service has an address like http://127.0.0.1:8431, not {url!r}.", code="unreachable")
    headers = {"User-Agent": f"sidelong/{__version__}"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return {"base_url": url.rstrip("/"), "headers": headers, "timeout": timeout}


def unreachable(url: str, error: Exception) -> ServiceError:
    """Return what to raise when no reply came."""
    reason = str(error) or type(error).__name__
    return ServiceError(
        f"The service at {url} does not answer: {reason}. Is it running (sidelong serve)?",
        status=0,
        code="unreachable",
    )


def create(
    name: str, learner: str, graph: FeedbackGraph, options: dict[str, Any], more: dict[str, Any]
) -> Call[dict[str, Any]]:
    """Make an experiment. The same again changes nothing."""
    content = {"name": name, "learner": learner, "graph": graph_message(graph), "options": options, **more}
    # The first experiment with a learner waits for the compiler.
    return Call("POST", "/v1/experiments", _whole, *_json(content, LearnerError), timeout=120.0)


def names(offset: int) -> Call[dict[str, Any]]:
    """List experiments."""
    return Call("GET", f"/v1/experiments?offset={offset}&limit=100", _whole)


def state(name: str, offset: int = 0, limit: int = 1) -> Call[dict[str, Any]]:
    """Ask for the state of an experiment, with some of its arms."""
    return Call("GET", f"{_experiment(name)}?offset={offset}&limit={limit}", _whole)


def drawing(name: str) -> Call[FeedbackGraph]:
    """Ask for the graph of an experiment."""
    return Call("GET", f"{_experiment(name)}/graph?limit=500", _read_graph)


def ask(
    name: str, graph: FeedbackGraph | None, context: Mapping[str, Any] | None, key: str | None
) -> Call[RemoteDecision]:
    """Ask for a decision."""
    content = {
        **({} if graph is None else {"graph": graph_message(graph)}),
        **({} if context is None else {"context": dict(context)}),
    }
    body, headers = _json(content, ServiceError)
    headers["Idempotency-Key"] = key or uuid4().hex
    return Call("POST", f"{_experiment(name)}/decisions", lambda reply, _: RemoteDecision(reply), body, headers)


def tell(decision: RemoteDecision | str, losses: Losses, graph: FeedbackGraph | None) -> Call[bool]:
    """Tell the losses of a decision; reads whether they were learned."""
    content: dict[str, Any] = {"losses": _plain_losses(losses)}
    if graph is not None:
        content["graph"] = graph_message(graph)
    # If the reply to an earlier attempt was lost, the repetition that the service sees is our own.
    return Call(
        "POST",
        f"{_decision(decision)}/feedback",
        lambda reply, repeated: bool(reply["learned"] or (repeated and reply["duplicate"])),
        *_json(content, LossError),
    )


def cancel(decision: RemoteDecision | str) -> Call[None]:
    """Give up a decision."""

    def read(reply: Any, repeated: bool) -> None:  # noqa: FBT001  # what `Call` passes
        if reply["duplicate"] and not repeated:
            raise DecisionError(f"Decision {reply['id']} was cancelled before; only a pending one can be cancelled.")

    return Call("POST", f"{_decision(decision)}/cancel", read)


def look_up(decision: RemoteDecision | str) -> Call[dict[str, Any]]:
    """Ask what became of a decision."""
    return Call("GET", _decision(decision), _whole)


def estimates(arms: Sequence[dict[str, Any]]) -> Estimates:
    """Make of the arms of a state what an agent's `estimates` returns."""
    from sidelong.agent import Estimates  # noqa: PLC0415  # the compiler takes half a second to load

    def column(name: str) -> npt.NDArray[np.float64]:
        return np.array([math.nan if arm[name] is None else arm[name] for arm in arms], np.float64)

    counts = np.array([arm["observations"] for arm in arms], np.int64)
    return Estimates(column("observed_mean"), counts, np.full(len(arms), math.nan), column("probability"))


def graph_message(graph: FeedbackGraph) -> dict[str, Any]:
    """Return a graph as the service reads it."""
    try:
        if graph.representation == "intervals":
            return {"low": graph.arrays.start.tolist(), "high": graph.arrays.stop.tolist()}
        return {"n_arms": graph.n_arms, "edges": graph.edges().tolist()}
    except AttributeError:
        raise GraphError(
            f"graph must be a FeedbackGraph, not {type(graph).__name__}. "
            f"Make one with sidelong.graphs or FeedbackGraph.from_matrix."
        ) from None


def _read_graph(reply: Any, _: bool) -> FeedbackGraph:  # noqa: FBT001
    from sidelong.graphs import FeedbackGraph  # noqa: PLC0415

    if reply["truncated"]:
        raise GraphError(
            f"A graph of {reply['total_arms']:,} arms is too large to ask the service for; the most are 500."
        )
    return FeedbackGraph.from_edges(reply["edges"], reply["total_arms"])


def _whole(reply: Any, _: bool) -> dict[str, Any]:  # noqa: FBT001
    return dict(reply)


def _experiment(name: str) -> str:
    return f"/v1/experiments/{quote(str(name), safe='')}"


def _decision(decision: RemoteDecision | str) -> str:
    return f"/v1/decisions/{quote(str(getattr(decision, 'id', decision)), safe='')}"


def _json(content: Any, error: type[SidelongError]) -> tuple[bytes, dict[str, str]]:
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError) as found:
        raise error(f"This cannot be sent as JSON: {found}.") from found
    return text.encode(), {"Content-Type": "application/json"}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a value of JSON")


def _plain_losses(losses: Losses) -> Any:
    """Return losses as JSON has them. Whether they are right is for the service to say, but JSON has no NaN."""
    if not isinstance(losses, Mapping | Sequence | np.ndarray) or isinstance(losses, str | bytes):
        raise LossError(f"losses must be given by arm, or a list in the order of the revealed arms, not {losses!r}.")
    pairs = losses.items() if isinstance(losses, Mapping) else enumerate(losses)
    for arm, value in pairs:
        if isinstance(value, float | np.floating) and not math.isfinite(value):
            which = f"arm {arm!r}" if isinstance(losses, Mapping) else f"place {arm}"
            raise LossError(f"The loss of {which} must be a number in [0, 1], not {value!r}.")
    return {str(arm): value for arm, value in losses.items()} if isinstance(losses, Mapping) else list(losses)


def _problem(reply: httpx.Response) -> dict[str, Any]:
    try:
        problem = reply.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _retry_after(reply: httpx.Response) -> float | None:
    try:
        return max(0.0, float(reply.headers["Retry-After"]))
    except (KeyError, ValueError):  # absent, or a date, which no sidelong sends
        return None


def _refusal(reply: httpx.Response, path: str) -> SidelongError:
    """Return the error that an agent would raise, where there is one; its cause is what the service said."""
    problem = _problem(reply)
    detail = str(problem.get("detail") or f"The service answers {reply.status_code} {reply.reason_phrase}.")
    said = ServiceError(
        detail,
        status=reply.status_code,
        code=str(problem.get("code", "unknown")),
        path=problem.get("path"),
        value=problem.get("value"),
        retry_after=_retry_after(reply),
    )
    kind: type[SidelongError] | None = {
        "conflict": ConflictError,
        "expired": ExpiredError,
        "told": DecisionError,
        "cancelled": DecisionError,
    }.get(said.code)
    if said.code == "not_found" and path.startswith("/v1/decisions/"):
        kind = UnknownDecisionError
    if said.code == "invalid":
        place = str(said.path).removeprefix("body.").split(".")[0]
        kind = {"losses": LossError, "graph": GraphError, "learner": LearnerError, "options": LearnerError}.get(place)
    if kind is None:
        return said
    error = kind(detail)
    error.__cause__ = said
    return error
