"""Addresses for those who look: off-policy estimates of an experiment, and what an experiment can be made of."""

from __future__ import annotations

import asyncio
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response  # noqa: TC002  # FastAPI reads the annotations

from sidelong.errors import EvaluationError, ServiceError
from sidelong.evaluation import offpolicy
from sidelong.evaluation.decision_log import DecisionLog, read_log
from sidelong.graphs.makers import makers
from sidelong.learners import catalogue
from sidelong.service.http import documents, export
from sidelong.service.http.decisions import answer
from sidelong.service.http.gate import GuardedRoute, guarded, read
from sidelong.service.http.messages import Arm  # noqa: TC001  # and so does pydantic
from sidelong.service.http.problems import DOCUMENTED, for_temporary_files
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from sidelong.graphs.makers import GraphMaker
    from sidelong.service.server import Server

__all__ = ["router"]

router = APIRouter(prefix="/v1", route_class=GuardedRoute, responses=DOCUMENTED, tags=["evaluation"])

#: A log with more losses takes too much memory beside a service; `sidelong evaluate` reads it elsewhere.
MOST_LOSSES = 4_000_000
#: One at a time: an estimate reads the whole log.
_turn = asyncio.Semaphore(1)

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class EvaluationRequest(BaseModel):
    """What to estimate, beside each arm and the uniform distribution."""

    model_config = ConfigDict(extra="forbid")

    distribution: dict[Arm, Share] | None = Field(
        None, description="the share of some arms; they have the sum 1", examples=[{"3": 0.5, "4": 0.5}]
    )
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    limit: Annotated[int, Field(ge=0, le=1000)] = Field(20, description="how many arms to return, the cheapest first")


class Estimate(BaseModel):
    """What something would have cost a round: see `sidelong.evaluation.offpolicy`."""

    value: float | None
    error: float | None
    lower: float  #: of the guaranteed interval
    upper: float
    normal_lower: float | None
    normal_upper: float | None
    rounds: int
    effective: float
    weight: float


class ArmEstimate(Estimate):
    """What an arm would have cost."""

    arm: int
    label: str | None


class DistributionEstimate(Estimate):
    """What a distribution would have cost."""

    name: Literal["uniform", "distribution"]


class EvaluatedRegret(BaseModel):
    """What was paid beyond the best arm, in all rounds."""

    value: float | None
    lower: float
    upper: float
    best: int | None


class Evaluation(BaseModel):
    """Off-policy estimates from the log of all decisions."""

    rounds: int
    without_feedback: int
    confidence: float
    played: float | None  #: what was paid a round
    regret: EvaluatedRegret
    distributions: list[DistributionEstimate]
    arms: list[ArmEstimate]


class Argument(BaseModel):
    """An argument of a family of graphs; `default` is null if it must be given."""

    name: str
    kind: Literal["whole", "number", "text", "flag", "list"]
    default: str | None


class Family(BaseModel):
    """A family of graphs."""

    name: str
    arguments: list[Argument]


class Catalogue(BaseModel):
    """What an experiment can be made of."""

    learners: list[str]
    families: list[Family]


@router.post(
    "/experiments/{name}/evaluation",
    response_model=Evaluation,
    openapi_extra=guarded(Scope.READ, **documents.takes(EvaluationRequest, "name")),
)
async def evaluate(request: Request) -> Response:
    """Estimate what each arm, or another distribution, would have cost in the same rounds."""
    service: Server = request.app.state.service
    body = await read(request, EvaluationRequest)
    async with _turn:
        return answer(await asyncio.to_thread(_evaluate, service, request.path_params["name"], body))


@router.get("/catalogue", response_model=Catalogue, openapi_extra=guarded(Scope.READ))
async def show_catalogue() -> Response:
    """List the learners, and the families of graphs with their arguments."""
    families = [{"name": name, "arguments": _arguments(family)} for name, family in makers(over_time=False).items()]
    return answer({"learners": list(catalogue.names()), "families": families})


def _arguments(family: GraphMaker) -> list[dict[str, str | None]]:
    defaults = {name: str(default) for name, default in family.defaults.items()}
    return [{"name": name, "kind": kind, "default": defaults.get(name)} for name, kind in family.kinds.items()]


def _evaluate(service: Server, name: str, body: EvaluationRequest) -> dict[str, Any]:
    labels = service.store.identity(name).spec["labels"]
    try:
        log = _read(service, name)
        arms = offpolicy.evaluate_arms(log, body.confidence)
        mixed = {"uniform": np.full(log.n_arms, 1 / log.n_arms)}
        if body.distribution is not None:
            mixed["distribution"] = _shares(body.distribution, log.n_arms)
        found = {key: offpolicy.evaluate_distribution(log, pi, body.confidence) for key, pi in mixed.items()}
        regret = offpolicy.regret(log, body.confidence)
    except EvaluationError as error:
        path = None if body.distribution is None else "body.distribution"
        raise ServiceError(str(error), status=422, code="invalid", path=path) from error
    known = log.cost[~np.isnan(log.cost)]
    cheapest = np.argsort(arms.value, kind="stable")[: body.limit].tolist()  # NaN comes last
    return {
        "rounds": log.n_rounds,
        "without_feedback": log.n_rounds - log.n_told,
        "confidence": body.confidence,
        "played": float(known.mean()) if known.size else None,
        "regret": _plain(regret._asdict()) | {"best": regret.best if regret.best >= 0 else None},
        "distributions": [{"name": key, **_plain(_row(estimates, 0))} for key, estimates in found.items()],
        "arms": [{"arm": arm, "label": labels and labels[arm], **_plain(_row(arms, arm))} for arm in cheapest],
    }


def _read(service: Server, name: str) -> DecisionLog:
    with for_temporary_files(), tempfile.TemporaryDirectory(prefix="sidelong-") as folder:
        path = Path(folder) / "log.parquet"
        export.write(service.store, name, path)
        return read_log(path, most_losses=MOST_LOSSES)


def _shares(given: dict[str, float], n_arms: int) -> np.ndarray:
    pi = np.zeros(n_arms)
    for arm, share in given.items():
        if int(arm) >= n_arms:
            raise EvaluationError(f"There is no arm {arm}; arms go from 0 to {n_arms - 1}.")
        pi[int(arm)] = share
    return pi


def _row(estimates: offpolicy.Estimates, index: int) -> dict[str, Any]:
    return {name: column[index].item() for name, column in estimates._asdict().items()}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
