"""What both clients ask, and how they read the replies. Nothing is sent here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, urlsplit
from uuid import uuid4

import numpy as np

from sidelong._version import __version__
from sidelong.errors import (
    DecisionError,
    GraphError,
    LearnerError,
    LossError,
    ServiceError,
    SidelongError,
    UnknownDecisionError,
)
from sidelong.service.client.decision import RemoteDecision
from sidelong.service.client.replies import foreign, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx
    import numpy.typing as npt

    from sidelong.agent import Estimates
    from sidelong.agent.feedback import Losses
    from sidelong.graphs import FeedbackGraph
    from sidelong.outcomes import Scale

__all__ = ["Call"]

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
            raise refusal(reply, self.path)
        try:
            return self.read(reply.json(), repeated)
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise foreign(reply) from error


def settings(url: str, token: str | None, timeout: float) -> dict[str, Any]:
    """Return the arguments of an httpx client."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ServiceError(f"A service has an address like http://127.0.0.1:8431, not {url!r}.", code="unreachable")
    headers = {"User-Agent": f"sidelong/{__version__}"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return {"base_url": url.rstrip("/"), "headers": headers, "timeout": timeout}


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
    headers["Idempotency-Key"] = uuid4().hex if key is None else _printable(key)
    return Call("POST", f"{_experiment(name)}/decisions", lambda reply, _: RemoteDecision(reply, name), body, headers)


def tell(
    name: str, decision: RemoteDecision | str, losses: Losses, graph: FeedbackGraph | None, scale: Scale | None
) -> Call[bool]:
    """Tell the losses of a decision; reads whether they were learned."""
    content: dict[str, Any] = {"losses": _plain_losses(losses if scale is None else scale.losses(losses))}
    if graph is not None:
        content["graph"] = graph_message(graph)
    # If the reply to an earlier attempt was lost, the repetition that the service sees is our own.
    return Call(
        "POST",
        f"{_decision(name, decision)}/feedback",
        lambda reply, repeated: bool(reply["learned"] or (repeated and reply["duplicate"])),
        *_json(content, LossError),
    )


def cancel(name: str, decision: RemoteDecision | str) -> Call[None]:
    """Give up a decision."""

    def read(reply: Any, repeated: bool) -> None:  # noqa: FBT001  # what `Call` passes
        if reply["duplicate"] and not repeated:
            raise DecisionError(f"Decision {reply['id']} was cancelled before; only a pending one can be cancelled.")

    return Call("POST", f"{_decision(name, decision)}/cancel", read)


def look_up(name: str, decision: RemoteDecision | str) -> Call[dict[str, Any]]:
    """Ask what became of a decision."""
    return Call("GET", _decision(name, decision), _whole)


def estimates(arms: Sequence[dict[str, Any]]) -> Estimates:
    """Make of the arms of a state what an agent's `estimates` returns."""
    from sidelong.agent import Estimates  # noqa: PLC0415  # the compiler takes half a second to load

    def column(name: str) -> npt.NDArray[np.float64]:
        return np.array([math.nan if arm[name] is None else arm[name] for arm in arms], np.float64)

    counts = np.array([arm["observations"] for arm in arms], np.int64)
    return Estimates(column("observed_mean"), counts, np.full(len(arms), math.nan), column("probability"))


def checked(scale: Scale | None) -> Scale | None:
    """Return a scale, if it is one or None."""
    if scale is None:
        return None
    from sidelong.outcomes.scale import checked_scale  # noqa: PLC0415  # takes the compiler along

    return checked_scale(scale)


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
            f"A graph of {reply['total_arms']:,} arms and {reply['total_edges']:,} edges is too large to ask the "
            f"service for; the most are 500 and 5,000."
        )
    return FeedbackGraph.from_edges(reply["edges"], reply["total_arms"])


def _whole(reply: Any, _: bool) -> dict[str, Any]:  # noqa: FBT001
    return dict(reply)


def _experiment(name: str) -> str:
    return f"/v1/experiments/{quote(str(name), safe='')}"


def _decision(name: str, decision: RemoteDecision | str) -> str:
    made_by = getattr(decision, "experiment", name)
    if made_by != name:
        raise UnknownDecisionError(f"Experiment {name!r} made no such decision: {made_by!r} did, and is to be told.")
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
    if isinstance(value, Real):  # a fraction
        return float(value)
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
    return {_plain_arm(arm): value for arm, value in losses.items()} if isinstance(losses, Mapping) else list(losses)


def _plain_arm(arm: Any) -> str:
    """Return an arm as JSON has it: 3, 3.0 and an integer of NumPy are the same to an agent."""
    whole = isinstance(arm, Real) and not isinstance(arm, bool) and math.isfinite(arm) and arm == math.floor(arm)
    return str(math.floor(arm)) if whole else str(arm)


def _printable(key: str) -> str:
    if not key.isascii() or not key.isprintable():
        raise ServiceError(
            f"A key has 1 to 200 characters of printable ASCII, without blanks, not {key!r}.",
            status=422,
            code="invalid",
        )
    return key
