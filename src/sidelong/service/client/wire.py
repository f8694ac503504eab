"""What both clients have in common: what they ask, how they read the replies, and what an experiment is to both.

Nothing is sent here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, urlsplit
from uuid import uuid4

import numpy as np
from pydantic_core import from_json

from sidelong._version import __version__
from sidelong.errors import (
    CostError,
    FeatureError,
    GraphError,
    LearnerError,
    LossError,
    ServiceError,
    UnknownDecisionError,
)
from sidelong.estimates import Estimates
from sidelong.graphs import FeedbackGraph
from sidelong.outcomes.revealed import Revealed
from sidelong.outcomes.scale import checked_scale
from sidelong.service.client.decisions import RemoteDecision
from sidelong.service.client.plain import asked_of, columns_of, graph_of, json_of, key_of, losses_of, opened
from sidelong.service.client.replies import foreign, refusal, unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import httpx
    import numpy.typing as npt

    from sidelong.outcomes import Scale
    from sidelong.outcomes.revealed import Losses
    from sidelong.service.client.plain import Log

S = TypeVar("S")
T = TypeVar("T")
PAGE = 1000


@dataclass(frozen=True)
class Question(Generic[T]):
    """A request that may be sent again without harm, and how to read its reply."""

    method: str
    path: str
    read: Callable[[Any, bool], T]  #: from the JSON of the reply, and whether an earlier attempt may have succeeded
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_file: bool = False  #: whether the reply is no JSON
    timeout: float | None = None  #: seconds, where a reply may take longer than others

    def request(self, timeout: float) -> dict[str, Any]:
        """Return the arguments of httpx; `timeout` is for how many seconds to wait for most replies."""
        seconds = timeout if self.timeout is None else max(self.timeout, timeout)
        sent = {"content": self.body, "headers": self.headers, "timeout": seconds}
        return {"method": self.method, "url": self.path, **sent}

    def result(self, outcome: httpx.Response | Exception, url: httpx.URL, *, repeated: bool) -> T:
        """Read a reply, or raise the error that it is."""
        if isinstance(outcome, Exception):
            raise unreachable(str(url), outcome) from outcome
        if self.method == "DELETE" and repeated and outcome.status_code == HTTPStatus.NOT_FOUND:
            return self.read({}, repeated)  # by an earlier attempt, whose reply was lost
        if not outcome.is_success:
            raise refusal(outcome, self.path)
        try:
            reply = outcome.content if self.is_file else from_json(outcome.content)
        except ValueError as error:
            raise foreign(outcome) from error
        try:
            return self.read(reply, repeated)
        except (KeyError, TypeError) as error:
            raise foreign(outcome) from error


class Named(Generic[S]):
    """An experiment of a service, with or without `await`."""

    def __init__(self, service: S, name: str) -> None:
        self._service = service
        self._name = name

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name} of {self._service!r}>"


def settings(url: str, token: str | None, timeout: float) -> dict[str, Any]:
    """Return the arguments of an httpx client."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ServiceError(f"A service has an address like http://127.0.0.1:8431, not {url!r}.", code="unreachable")
    headers = {"User-Agent": f"sidelong/{__version__}"}
    if token is not None:
        if re.fullmatch(r"[\x21-\x7e]+", token) is None:
            raise ServiceError(
                "A token has printable ASCII characters only, and this one has others, such as a blank or the end of a "
                "line. Take what `sidelong token create` has printed, without what stands around it.",
                code="unauthenticated",
            )
        headers["Authorization"] = f"Bearer {token}"
    return {"base_url": url.rstrip("/"), "headers": headers, "timeout": timeout}


def create(
    name: str, learner: str, graph: FeedbackGraph, options: dict[str, Any], more: dict[str, Any]
) -> Question[dict[str, Any]]:
    """Make an experiment. The same again changes nothing."""
    content = {"name": name, "learner": learner, "graph": graph_of(graph), "options": options, **more}
    content["labels"] = graph.labels if more["labels"] is None else more["labels"]
    # The first experiment with a learner waits for the compiler.
    return Question("POST", "/v1/experiments", _whole, *json_of(content, LearnerError), timeout=120.0)


def rarely(
    holdout: tuple[int | str, float] | Mapping[str, Any] | None,
    default_loss: float | None,
    prior: Mapping[int | str, tuple[float, float]] | None,
    log: Log | None,
    scale: Scale | None,
) -> dict[str, Any]:
    """Return what few experiments have."""
    found: dict[str, Any] = {} if holdout is None else {"holdout": _holdout(holdout)}
    if default_loss is not None:
        found["default_loss"] = float(default_loss)
    if prior is not None:
        found["prior"] = [{"arm": arm, "mean": float(mean), "weight": weight} for arm, (mean, weight) in prior.items()]
    if log is not None:
        found["log"] = columns_of(log)
    known = checked_scale(scale)
    if known is not None:
        found["scale"] = {"best": known.best, "worst": known.worst}
    return found


def limits(
    ceiling: float | None,
    cost_bounds: Sequence[float] | Mapping[int | str, float] | None,
    overspend: float | None,
    ceiling_over: str,
) -> dict[str, Any]:
    """Return what a specification says of a ceiling: nothing of what was not given."""
    bounds: Any = cost_bounds
    if bounds is not None:
        bounds = {str(arm): each for arm, each in bounds.items()} if isinstance(bounds, Mapping) else list(bounds)
    given = {"ceiling": ceiling, "cost_bounds": bounds, "overspend": overspend}
    found = {name: value for name, value in given.items() if value is not None}
    return found | ({} if ceiling_over == "key" else {"ceiling_over": ceiling_over})


def _holdout(given: tuple[int | str, float] | Mapping[str, Any]) -> dict[str, Any]:
    """Return an arm and a share, or both by name, as the service reads them."""
    return dict(given if isinstance(given, Mapping) else zip(("arm", "share"), given, strict=True))


def names(offset: int) -> Question[dict[str, Any]]:
    """List experiments."""
    return Question("GET", f"/v1/experiments?offset={offset}&limit=100", _whole)


def state(name: str, offset: int = 0, limit: int = 1, key: str | int | None = None) -> Question[dict[str, Any]]:
    """Ask for the state of an experiment, or of one of its keys, with some of its arms."""
    of = "" if key is None else f"&key={quote(str(key), safe='')}"
    return Question("GET", f"{experiment_path(name)}?offset={offset}&limit={limit}{of}", _whole)


def change(name: str, wanted: Mapping[str, Any]) -> Question[dict[str, Any]]:
    """Change an experiment. The same again changes nothing."""
    content = {part: dict(value) if isinstance(value, Mapping) else value for part, value in wanted.items()}
    return Question("PATCH", experiment_path(name), _whole, *json_of(content, ServiceError))


def clone(name: str, new: str, wanted: Mapping[str, Any]) -> Question[dict[str, Any]]:
    """Make an experiment like another. The same again changes nothing."""
    content = {"name": new, **wanted}
    if wanted.get("holdout") is not None:
        content["holdout"] = _holdout(wanted["holdout"])
    return Question("POST", f"{experiment_path(name)}/clone", _whole, *json_of(content, ServiceError), timeout=120.0)


def changes(name: str) -> Question[list[dict[str, Any]]]:
    """Ask who changed what."""
    return Question("GET", f"{experiment_path(name)}/changes", lambda reply, _: list(reply["items"]))


def agent(name: str) -> Question[bytes]:
    """Ask for the agent as a file."""
    return Question("GET", f"{experiment_path(name)}/agent", lambda content, _: bytes(content), is_file=True)


def delete(name: str, confirmation: str) -> Question[None]:
    """Delete an experiment."""
    return Question("DELETE", f"{experiment_path(name)}?name={quote(str(confirmation), safe='')}", lambda *_: None)


def drawing(name: str) -> Question[FeedbackGraph]:
    """Ask for the graph of an experiment."""
    return Question("GET", f"{experiment_path(name)}/graph?limit=500", _read_graph)


def ask(
    name: str,
    graph: FeedbackGraph | None,
    context: Mapping[str, Any] | None,
    key: str | None,
    available: Iterable[int | str | bool] | None = None,
    subject: str | None = None,
    advice: Any = None,
) -> Question[RemoteDecision]:
    """Ask for a decision."""
    asked = asked_of(graph, available, context, advice) | ({} if subject is None else {"subject": str(subject)})
    body, headers = json_of(asked, ServiceError)
    headers["Idempotency-Key"] = uuid4().hex if key is None else key_of(key)
    return Question(
        "POST", f"{experiment_path(name)}/decisions", lambda reply, _: RemoteDecision(reply, name), body, headers
    )


def predict(name: str, context: Mapping[str, Any], key: str | int | None) -> Question[npt.NDArray[np.float64]]:
    """Ask what each arm is predicted to cost."""
    content = {"context": dict(context), "limit": PAGE} | ({} if key is None else {"key": key})
    return Question("POST", f"{experiment_path(name)}/predictions", _read_predictions, *json_of(content, ServiceError))


def tell(
    name: str,
    decision: RemoteDecision | str,
    losses: Losses | Revealed,
    graph: FeedbackGraph | None,
    key: str | None = None,
    costs: Losses | None = None,
) -> Question[bool]:
    """Tell the losses of a decision; reads whether they were learned."""
    content: dict[str, Any] = {}
    if isinstance(losses, Revealed):
        # Losses in [0, 1], which an experiment with a scale refuses; the arm is for the service to compare.
        content = {"plain": True, "arm": losses.arm}
        losses, graph = opened(losses, graph, decision)
    content["losses"] = losses_of(losses)
    if graph is not None:
        content["graph"] = graph_of(graph)
    if costs is not None:
        content["costs"] = losses_of(costs, CostError)
    body, headers = json_of(content, LossError)
    headers["Idempotency-Key"] = uuid4().hex if key is None else key_of(key)
    # If the reply to an earlier attempt was lost, the repetition that the service sees is our own.
    return Question(
        "POST",
        f"{_decision(name, decision)}/feedback",
        lambda reply, repeated: bool(reply["learned"] or (repeated and reply["duplicate"])),
        body,
        headers,
    )


def cancel(name: str, decision: RemoteDecision | str) -> Question[bool]:
    """Give up a decision."""
    path = f"{_decision(name, decision)}/cancel"
    return Question("POST", path, lambda reply, repeated: repeated or not reply["duplicate"])


def override(name: str, decision: RemoteDecision | str, arm: int | str) -> Question[RemoteDecision]:
    """Say that a decision was carried out with another arm."""
    body, headers = json_of({"arm": arm}, ServiceError)
    path = f"{_decision(name, decision)}/override"
    return Question("POST", path, lambda reply, _: RemoteDecision(reply, name), body, headers)


def add_arm(
    name: str,
    reveals: Iterable[int | str],
    revealed_by: Iterable[int | str],
    label: str | None,
    key: str | None,
    cost_bound: float | None = None,
) -> Question[int]:
    """Add an arm; reads its number."""
    arms = {part: [_arm(arm) for arm in given] for part, given in (("reveals", reveals), ("revealed_by", revealed_by))}
    more = {} if cost_bound is None else {"cost_bound": cost_bound}
    body, headers = json_of({"label": label, **arms, **more}, GraphError)
    headers["Idempotency-Key"] = uuid4().hex if key is None else key_of(key)
    return Question("POST", f"{experiment_path(name)}/arms", lambda reply, _: int(reply["arm"]), body, headers)


def retire(name: str, arm: int | str) -> Question[None]:
    """Take an arm out for good. The same again changes nothing."""
    return Question("DELETE", f"{experiment_path(name)}/arms/{quote(str(arm), safe='')}", lambda *_: None)


def _arm(arm: Any) -> int | str:
    """Return an arm, which may be a number of NumPy, as JSON has it."""
    return arm if isinstance(arm, str) else int(arm)


def look_up(name: str, decision: RemoteDecision | str) -> Question[dict[str, Any]]:
    """Ask what became of a decision."""
    return Question("GET", _decision(name, decision), _whole)


def estimates(arms: Sequence[dict[str, Any]]) -> Estimates:
    """Make of the arms of a state what an agent's `estimates` returns."""

    def column(name: str) -> npt.NDArray[np.float64]:
        return np.array([math.nan if arm[name] is None else arm[name] for arm in arms], np.float64)

    counts = np.array([arm["observed_count"] for arm in arms], np.int64)
    gaps = np.full(len(arms), math.nan)
    return Estimates(column("observed_mean"), counts, column("observed_spread"), gaps, column("probability"))


def _read_predictions(reply: Any, _: bool) -> npt.NDArray[np.float64]:  # noqa: FBT001
    if reply["total"] > len(reply["items"]):
        raise FeatureError(f"A service tells the predictions of up to {PAGE:,} arms, not of {reply['total']:,}.")
    return np.array([item["loss"] for item in sorted(reply["items"], key=lambda item: item["arm"])])


def _read_graph(reply: Any, _: bool) -> FeedbackGraph:  # noqa: FBT001
    if reply["truncated"]:
        raise GraphError(
            f"A graph of {reply['total_arms']:,} arms and {reply['total_edges']:,} edges is too large to ask the "
            f"service for; the most are 500 and 5,000."
        )
    return FeedbackGraph.from_edges(reply["edges"], reply["total_arms"]).labelled(reply["labels"])


def _whole(reply: Any, _: bool) -> dict[str, Any]:  # noqa: FBT001
    return dict(reply)


def experiment_path(name: str) -> str:
    """Return the address of an experiment."""
    return f"/v1/experiments/{quote(str(name), safe='')}"


def _decision(name: str, decision: RemoteDecision | str) -> str:
    made_by = getattr(decision, "experiment", name)
    if made_by != name:
        raise UnknownDecisionError(f"Experiment {name!r} made no such decision: {made_by!r} did, and is to be told.")
    return f"/v1/decisions/{quote(str(getattr(decision, 'id', decision)), safe='')}"
