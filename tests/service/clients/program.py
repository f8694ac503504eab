"""What a program in Python does with a client that openapi-python-client has made. It is checked by mypy --strict."""

import datetime as dt
import io
import json
import sys
from pathlib import Path
from typing import TypeVar

from generated import AuthenticatedClient
from generated.api.default import (
    create_experiment,
    decide,
    download_log,
    feedback,
    look_up,
    show_state,
    tell_many,
    upload_graph,
)
from generated.models import (
    CreateExperiment,
    DecideRequest,
    DecisionBatch,
    DecisionReply,
    DecisionStateStatus,
    Feedback,
    FeedbackBatch,
    GraphById,
    Problem,
    ProblemCode,
    ShowStateSort,
    UploadGraphFormat,
)
from generated.types import File

T = TypeVar("T")


def good(reply: T | Problem | None) -> T:
    if reply is None or isinstance(reply, Problem):
        raise SystemExit(str(reply))
    return reply


def one(reply: DecisionReply | DecisionBatch | Problem | None) -> DecisionReply:
    if not isinstance(reply, DecisionReply):
        raise SystemExit(str(reply))
    return reply


def several(reply: DecisionReply | DecisionBatch | Problem | None) -> DecisionBatch:
    if not isinstance(reply, DecisionBatch):
        raise SystemExit(str(reply))
    return reply


address, token, graph_file = sys.argv[1:]
with AuthenticatedClient(base_url=address, token=token) as client:
    file = File(payload=io.BytesIO(Path(graph_file).read_bytes()))
    graph = good(upload_graph.sync(client=client, body=file, format_=UploadGraphFormat.NPZ))
    wanted = CreateExperiment(name="typed", graph=GraphById(id=graph.id))
    made = good(create_experiment.sync(client=client, body=wanted))
    decision = one(decide.sync(made.name, client=client, idempotency_key="first"))
    again = one(decide.sync(made.name, client=client, body=DecideRequest(), idempotency_key="first"))
    losses = Feedback(losses=[0.25 for _ in decision.reveals])
    told = good(feedback.sync(decision.id, client=client, body=losses))
    batched = several(decide.sync(made.name, client=client, body=DecideRequest(count=3)))
    sizes = [len(batched.reveals[str(arm)]) for arm in batched.arms]
    several_told = FeedbackBatch(ids=batched.ids, sizes=sizes, losses=[0.5] * sum(sizes))
    batch = good(tell_many.sync(client=client, body=several_told))
    seen = good(look_up.sync(decision.id, client=client))
    state = good(show_state.sync(made.name, client=client, sort=ShowStateSort.PLAYS, limit=2))
    log = good(download_log.sync(made.name, client=client))
    refused = decide.sync("nothing", client=client)
    expires_at: dt.datetime | None = decision.expires_at
    if expires_at is None:
        raise SystemExit("it never expires")
    words = {DecisionStateStatus.TOLD: "is told"}
    said = {
        "same": again.duplicate and again.id == decision.id,
        "learned": told.learned,
        "batch": batch.learned,
        "word": words[seen.status],
        "lasts": (expires_at - seen.decided_at) / dt.timedelta(milliseconds=1),
        "learner": state.learner,
        "arms": len(state.arms.items),
        "log": len(log.payload.read()),
        "code": refused.code if isinstance(refused, Problem) and refused.code is ProblemCode.NOT_FOUND else None,
    }
    print(json.dumps(said))  # noqa: T201
