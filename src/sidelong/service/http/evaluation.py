"""Endpoints for those who look: off-policy estimates of an experiment, and what an experiment can be made of."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from sidelong import evaluation
from sidelong.errors import EvaluationError, ServiceError
from sidelong.graphs.makers import makers
from sidelong.learners import catalogue
from sidelong.service.http import export
from sidelong.service.http.endpoints import Endpoints, Reply
from sidelong.service.http.estimates import called
from sidelong.service.http.messages import Arm, Body
from sidelong.service.http.messages.decisions import ProductKey  # noqa: TC001  # pydantic reads the annotations
from sidelong.service.http.problems import for_temporary_files, invalid
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from sidelong.graphs.makers import GraphMaker
    from sidelong.service.http.endpoints import Call
    from sidelong.service.server import Server

endpoints = Endpoints()
#: A log with more losses takes too much memory beside a service; `sidelong evaluate` reads it elsewhere.
MOST_LOSSES = 4_000_000

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class EvaluationRequest(Body):
    """What to estimate, beside each arm and the uniform distribution."""

    distribution: dict[Arm, Share] | None = Field(
        None, description="the share of some arms; they have the sum 1", examples=[{"3": 0.5, "4": 0.5}]
    )
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95  #: of all intervals
    where: dict[str, str | bool | int | float] | None = Field(
        None,
        min_length=1,
        description="count the decisions alone whose context had these values",
        examples=[{"weekday": "Monday"}],
    )
    key: ProductKey | None = Field(
        None,
        description="count the decisions for this key alone; without it, an arm is the same for all keys",
    )
    limit: Annotated[int, Field(ge=0, le=1000)] = Field(20, description="how many arms to return, the cheapest first")


class Estimate(BaseModel):
    """What something would have cost per round: see `sidelong.evaluation.offpolicy`."""

    value: float | None  #: the estimate; null if nothing can be said
    lower: float | None  #: of the interval; null where its limits cross
    upper: float | None  #: the upper end; null where the limits cross
    rejected: bool  #: whether they do: then an assumption of the interval is false, at the given confidence
    rounds: int  #: how many rounds it is made of
    effective: float  #: how many rounds of its own would say as much: weights make it fewer
    weight: float  #: the mean of the weights, which is near 1 if the logged probabilities are right


class ArmEstimate(Estimate):
    """What an arm would have cost."""

    arm: int  #: its number
    label: str | None  #: what the arm is called now; null if it has no label


class DistributionEstimate(Estimate):
    """What a distribution would have cost."""

    name: Literal["uniform", "distribution"]  #: "distribution" is the one of the request


class EvaluatedRegret(BaseModel):
    """What was paid beyond the best arm, in all rounds."""

    value: float | None  #: the estimate; null if nothing can be said
    lower: float | None  #: the lower end of its interval; null where limits cross
    upper: float | None  #: the upper end; null where limits cross
    best: int | None  #: the best arm; null if nothing can be said
    rejected: bool  #: whether the limits of some arm cross, at the given confidence for all arms together


class EvaluatedCertificate(BaseModel):
    """At most `bound` was lost beyond any fixed arm, at every moment of the log: see `evaluation.certificates`."""

    bound: float  #: at most so much was lost beyond any fixed arm
    arm: int  #: against which that is most
    confidence: float  #: at every moment at once
    rounds: int  #: how many decisions it is about
    paid: float  #: what was lost in all
    silent: int  #: rounds without feedback, which count as the worst they can be
    seen: int  #: in how many rounds `arm` was revealed
    there: int  #: in how many rounds it could be played
    mean: float  #: of its losses that were seen
    why: str  #: why it says little, if it does


class Evaluation(BaseModel):
    """Off-policy estimates from the log of all decisions."""

    rounds: int  #: how many decisions of the log count here
    first_event: int  #: of the journal that is left: 1 unless it was cut
    without_feedback: int  #: how many of them were not told
    confidence: float  #: of all intervals
    played: float | None  #: what was paid a round
    regret: EvaluatedRegret  #: what was paid beyond the best arm
    certificate: EvaluatedCertificate  #: at most so much was lost beyond any arm
    distributions: list[DistributionEstimate]  #: the uniform one, and that of the request
    arms: list[ArmEstimate]  #: the cheapest arms


class Argument(BaseModel):
    """An argument of a family of graphs; `default` is null if it must be given."""

    name: str  #: what it is called in a request
    kind: Literal["whole", "number", "text", "flag", "list"]  #: what its value is
    default: str | None  #: what it is if left out; null if it is required


class FamilyEntry(BaseModel):
    """A family of graphs."""

    name: str  #: as in `sidelong.graphs`
    arguments: list[Argument]  #: what it takes


class Catalogue(BaseModel):
    """What an experiment can be made of."""

    learners: list[str]  #: the names of all learners
    with_features: list[str]  #: learners that see features of a context
    families: list[FamilyEntry]  #: the families of graphs


@endpoints.add("POST", "/v1/experiments/{name}/evaluation", Scope.READ, {200: Evaluation}, takes=EvaluationRequest)
async def evaluate(call: Call) -> Reply:
    """Estimate what each arm, or another distribution, would have cost in the same rounds."""
    server = call.server
    return Reply(await server.evaluations.run(_evaluate, server, call.of, call.body))


@endpoints.add("GET", "/v1/catalogue", Scope.READ, {200: Catalogue}, single=True)
async def show_catalogue(_: Call) -> Reply:
    """List the learners, and the families of graphs with their arguments."""
    families = [{"name": name, "arguments": _arguments(family)} for name, family in makers(over_time=False).items()]
    with_features = list(catalogue.names_with_features())
    return Reply({"learners": list(catalogue.names()), "with_features": with_features, "families": families})


def _arguments(family: GraphMaker) -> list[dict[str, str | None]]:
    defaults = {name: str(default) for name, default in family.defaults.items()}
    return [{"name": name, "kind": kind, "default": defaults.get(name)} for name, kind in family.kinds.items()]


def _evaluate(server: Server, name: str, body: EvaluationRequest) -> dict[str, Any]:
    labels, is_known = server.store.view(
        name,
        lambda experiment, _: (
            experiment.life.labels,
            body.key is None or experiment.keys.row(str(body.key)) >= 0,
        ),
    )
    if not is_known:
        text = f"There is no key {body.key!r} in this experiment."
        raise ServiceError(text, status=404, code="not_found", path="body.key", value=body.key)
    try:
        log, first_event = _read(server, name, body)
        arms = evaluation.evaluate_arms(log, body.confidence)
        mixed = {"uniform": np.full(log.n_arms, 1 / log.n_arms)}
        if body.distribution is not None:
            mixed["distribution"] = _shares(body.distribution, log.n_arms)
        found = {key: evaluation.evaluate_distribution(log, pi, body.confidence) for key, pi in mixed.items()}
        regret = evaluation.regret(log, body.confidence)
        certificate = evaluation.certificate(log, body.confidence).row()
        certificate["why"] = called(certificate["why"], certificate["arm"], labels)
    except EvaluationError as error:
        path = None if body.distribution is None else "body.distribution"
        raise invalid(str(error), path) from error
    known = log.cost[~np.isnan(log.cost)]
    rows = arms.rows()
    cheapest = np.argsort(arms.value, kind="stable")[: body.limit].tolist()  # NaN comes last
    return {
        "rounds": log.n_rounds,
        "first_event": first_event,
        "without_feedback": log.n_rounds - log.n_told,
        "confidence": body.confidence,
        "played": float(known.mean()) if known.size else None,
        "regret": regret.row(),
        "certificate": certificate,
        "distributions": [{"name": key, **estimates.rows()[0]} for key, estimates in found.items()],
        "arms": [{"arm": arm, "label": labels and labels[arm], **rows[arm]} for arm in cheapest],
    }


def _read(server: Server, name: str, body: EvaluationRequest) -> tuple[evaluation.DecisionLog, int]:
    """Return the log, in the order of decisions, and the first event that is left of the journal."""
    with for_temporary_files(), tempfile.TemporaryFile(prefix="sidelong-") as file:
        wanted = None if body.key is None else str(body.key)  # which numbers may be written as
        about = export.write(server.store, name, file, only=lambda key: wanted in {None, str(key)}, numbered=True)
        file.seek(0)
        return evaluation.read_log(file, most_losses=MOST_LOSSES, where=body.where), about["first_event"]


def _shares(given: dict[str, float], n_arms: int) -> np.ndarray:
    pi = np.zeros(n_arms)
    for arm, share in given.items():
        if int(arm) >= n_arms:
            raise EvaluationError(f"There is no arm {arm}; arms go from 0 to {n_arms - 1}.")
        pi[int(arm)] = share
    return pi
