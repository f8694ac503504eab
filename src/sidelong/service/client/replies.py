"""What goes wrong between a client and a service: which errors are raised, and when to try again."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from sidelong.errors import (
    AdviceError,
    ConflictError,
    CostError,
    DecisionError,
    ExpiredError,
    FeatureError,
    GraphError,
    LearnerError,
    LossError,
    ServiceError,
    SidelongError,
    UnknownDecisionError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx


class Patience:
    """How long to try, and how long to wait in between: twice as long each time, at random, or as the service says."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._attempts = 0
        self.repeated = False  #: whether an earlier attempt may have succeeded

    def after(self, outcome: httpx.Response | Exception) -> float | None:
        """Return how many seconds to wait before the next attempt; None if this outcome is the answer."""
        told = 0.0
        if not isinstance(outcome, Exception):
            if outcome.status_code not in {408, 429, 502, 503, 504} or _problem(outcome).get("code") == "refused":
                return None
            told = _retry_after(outcome) or 0.0
        # A service that answers 503 may have given up waiting for its disk, and write it after all.
        self.repeated |= isinstance(outcome, Exception) or outcome.status_code in {502, 503, 504}
        pause = max(told, min(5.0, 0.1 * 2**self._attempts) * random.uniform(0.5, 1.0))  # noqa: S311  # no secret
        self._attempts += 1
        return pause if time.monotonic() + pause < self._until else None


def unreachable(url: str, error: Exception) -> ServiceError:
    """Return what to raise when no reply came."""
    reason = str(error).rstrip(".") or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        what_to_do = "If its certificate is your own, set SSL_CERT_FILE to that file."
    else:
        what_to_do = "Is it running (sidelong serve)?"
    return ServiceError(
        f"The service at {url} does not answer: {reason}. {what_to_do}",
        status=0,
        code="unreachable",
    )


def foreign(reply: httpx.Response) -> ServiceError:
    """Return what to raise for a reply that no service of ours gives."""
    return ServiceError(
        f"What answers at {reply.request.url} is not a decision service of sidelong: its reply cannot be read.",
        status=reply.status_code,
        code="unreachable",
    )


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


def refusal(reply: httpx.Response, path: str) -> SidelongError:
    """Return what to raise for a reply that is an error."""
    problem = _problem(reply)
    detail = problem.get("detail") or (
        f"{reply.request.url} answers {reply.status_code} {reply.reason_phrase}, and not as the service does. Is the "
        f"address complete, with the path that a proxy gives the service, and is the service running?"
    )
    return error_of({**problem, "detail": detail, "status": reply.status_code}, path, _retry_after(reply))


def error_of(problem: Mapping[str, Any], path: str, retry_after: float | None = None) -> SidelongError:
    """Return the error that an agent would raise, where there is one; its cause is what the service said."""
    detail = str(problem["detail"])
    said = ServiceError(
        detail,
        status=problem["status"],
        code=str(problem.get("code", "unknown")),
        path=problem.get("path"),
        value=problem.get("value"),
        retry_after=retry_after,
    )
    kind: type[SidelongError] | None = {
        "conflict": ConflictError,
        "expired": ExpiredError,
        "cut": DecisionError,
        "told": DecisionError,
        "cancelled": DecisionError,
        "over_ceiling": CostError,
    }.get(said.code)
    if said.code == "not_found" and path.startswith(("/v1/decisions/", "/v1/feedback")):
        kind = UnknownDecisionError
    if said.code == "invalid":
        place = str(said.path).removeprefix("body.").split(".")[0]
        limits = ("ceiling", "cost_bounds", "overspend", "cost_bound")
        of_learner = dict.fromkeys(("learner", "options", "seed", *limits), LearnerError)
        of_losses = dict.fromkeys(("losses", "reveals", "sizes", "arm", "arms", "plain"), LossError)
        of_graphs = dict.fromkeys(("graph", "graphs", "graph_of"), GraphError)
        others = {"context": FeatureError, "advice": AdviceError, "costs": CostError}
        kind = {**of_learner, **of_losses, **of_graphs, **others}.get(place)
    if kind is None:
        return said
    error = kind(detail)
    error.__cause__ = said
    return error
