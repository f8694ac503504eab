"""The table of addresses: what each takes, what it gives, and what one must be allowed to do to use it.

Requests are led by it (`app`), and the OpenAPI document is made of it (`openapi`). A handler's name is the name of the
operation there, and its docstring says what it does.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sidelong.service.http import columns, decisions, evaluation, experiments, feedback, keyed, openapi, status
from sidelong.service.http.exchange import Reply
from sidelong.service.http.messages.batches import FeedbackBatch, FeedbackBatchReply
from sidelong.service.http.messages.columns import (
    DecisionColumns,
    FeedbackColumns,
    FeedbackColumnsReply,
    KeysRequest,
)
from sidelong.service.http.messages.decisions import (
    Cancelled,
    DecideRequest,
    DecisionItems,
    DecisionReply,
    DecisionState,
    Feedback,
    FeedbackReply,
    Key,
)
from sidelong.service.http.messages.evaluation import Catalogue, Evaluation, EvaluationRequest
from sidelong.service.http.messages.experiments import (
    ChangeExperiment,
    ChangeList,
    CloneExperiment,
    CreateExperiment,
    DeletedExperiment,
    DeleteQuery,
    DrawingQuery,
    ExperimentList,
    ExperimentState,
    ListQuery,
    PredictionRequest,
    Predictions,
    Rates,
    RatesQuery,
    Sequence,
    StateQuery,
)
from sidelong.service.http.messages.graphs import GraphDrawing, GraphSummary, UploadQuery
from sidelong.service.http.messages.keys import KeyPage, KeysQuery
from sidelong.service.http.messages.status import AccessReply, Health, Ready
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pydantic import BaseModel
    from starlette.responses import Response

    from sidelong.service.http.exchange import Call

DECIDE, FEEDBACK, READ, ADMIN = Scope.DECIDE, Scope.FEEDBACK, Scope.READ, Scope.ADMIN


class Address(NamedTuple):
    """A line of the table."""

    method: str
    path: str
    scope: Scope | Literal["any", "none"]  #: "any": with any token; "none": without one
    handle: Callable[[Call], Awaitable[Reply | Response]]
    #: By status: a message, one of several, or the media type of what is no JSON.
    gives: Mapping[int, type[BaseModel] | tuple[type[BaseModel], ...] | str]
    takes: type[BaseModel] | Literal["file"] | None = None  #: the body, which may be left out where {} is right
    query: type[BaseModel] | None = None
    headers: Mapping[str, Any] = {}  # never changed
    #: Of an address that names no experiment and no decision: whether a token for one experiment may use it. Its
    #: handler then shows and changes nothing of others.
    single: bool = False
    creates: bool = False  #: whether it makes an experiment, which no token for one experiment may


@functools.cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    return openapi.describe(ADDRESSES)


async def show_openapi(_: Call) -> Reply:
    """Return this document."""
    return Reply(document())


# The most frequent ones come first, since they are looked for in this order.
ADDRESSES = (
    Address(
        "POST",
        "/v1/experiments/{name}/decisions",
        DECIDE,
        decisions.decide,
        {201: (DecisionReply, DecisionItems), 200: (DecisionReply, DecisionItems)},
        takes=DecideRequest,
        headers={"Idempotency-Key": Key},
    ),
    Address("POST", "/v1/decisions/{id}/feedback", FEEDBACK, decisions.feedback, {200: FeedbackReply}, takes=Feedback),
    Address(
        "POST",
        "/v1/feedback",
        FEEDBACK,
        feedback.tell_many,
        {200: FeedbackBatchReply},
        takes=FeedbackBatch,
        single=True,
    ),
    Address(
        "POST",
        "/v1/experiments/{name}/decisions/columns",
        DECIDE,
        columns.decide_for_keys,
        {201: DecisionColumns, 200: DecisionColumns},
        takes=KeysRequest,
        headers={"Idempotency-Key": Key},
    ),
    Address(
        "POST",
        "/v1/feedback/columns",
        FEEDBACK,
        columns.tell_in_columns,
        {200: FeedbackColumnsReply},
        takes=FeedbackColumns,
        single=True,
    ),
    Address("POST", "/v1/decisions/{id}/cancel", DECIDE, decisions.cancel, {200: Cancelled}),
    Address("GET", "/v1/decisions/{id}", READ, decisions.look_up, {200: DecisionState}),
    Address(
        "POST",
        "/v1/experiments",
        ADMIN,
        experiments.create_experiment,
        {201: ExperimentState, 200: ExperimentState},
        takes=CreateExperiment,
    ),
    Address(
        "GET",
        "/v1/experiments",
        READ,
        experiments.list_experiments,
        {200: ExperimentList},
        query=ListQuery,
        single=True,
    ),
    Address("GET", "/v1/experiments/{name}", READ, experiments.show_state, {200: ExperimentState}, query=StateQuery),
    Address(
        "PATCH",
        "/v1/experiments/{name}",
        ADMIN,
        experiments.change_experiment,
        {200: ExperimentState},
        takes=ChangeExperiment,
    ),
    Address(
        "DELETE",
        "/v1/experiments/{name}",
        ADMIN,
        experiments.delete_experiment,
        {200: DeletedExperiment},
        query=DeleteQuery,
    ),
    Address(
        "GET", "/v1/experiments/{name}/graph", READ, experiments.show_graph, {200: GraphDrawing}, query=DrawingQuery
    ),
    Address(
        "POST",
        "/v1/experiments/{name}/predictions",
        READ,
        experiments.predict,
        {200: Predictions},
        takes=PredictionRequest,
    ),
    Address("GET", "/v1/experiments/{name}/keys", READ, keyed.show_keys, {200: KeyPage}, query=KeysQuery),
    Address("GET", "/v1/experiments/{name}/rates", READ, experiments.show_rates, {200: Rates}, query=RatesQuery),
    Address(
        "GET",
        "/v1/experiments/{name}/events",
        READ,
        experiments.follow_events,
        {200: "text/event-stream"},
        headers={"Last-Event-ID": Sequence},
    ),
    Address(
        "GET", "/v1/experiments/{name}/log", READ, experiments.download_log, {200: "application/vnd.apache.parquet"}
    ),
    Address(
        "POST",
        "/v1/experiments/{name}/clone",
        ADMIN,
        experiments.clone_experiment,
        {201: ExperimentState, 200: ExperimentState},
        takes=CloneExperiment,
        creates=True,
    ),
    Address("GET", "/v1/experiments/{name}/changes", READ, experiments.list_changes, {200: ChangeList}),
    Address("GET", "/v1/experiments/{name}/agent", READ, experiments.download_agent, {200: "application/octet-stream"}),
    Address(
        "POST",
        "/v1/experiments/{name}/evaluation",
        READ,
        evaluation.evaluate,
        {200: Evaluation},
        takes=EvaluationRequest,
    ),
    Address("GET", "/v1/catalogue", READ, evaluation.show_catalogue, {200: Catalogue}, single=True),
    Address(
        "POST",
        "/v1/graphs",
        ADMIN,
        experiments.upload_graph,
        {201: GraphSummary, 200: GraphSummary},
        takes="file",
        query=UploadQuery,
    ),
    Address("GET", "/v1/access", "any", status.show_access, {200: AccessReply}, single=True),
    Address("GET", "/health", "none", status.health, {200: Health}),
    Address("GET", "/ready", "none", status.ready, {200: Ready}),
    Address("GET", "/metrics", READ, status.metrics, {200: "text/plain"}),
    Address("GET", "/openapi.json", "none", show_openapi, {200: "application/json"}),
)
