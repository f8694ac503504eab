"""Endpoints that change the arms of an experiment while it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from sidelong.service.http.decisions import key_of
from sidelong.service.http.endpoints import Endpoints, Reply
from sidelong.service.http.messages import Body
from sidelong.service.http.messages.decisions import Key
from sidelong.service.store.lifecycle_commands import AddArm, RetireArm
from sidelong.service.store.spec import MOST_LABELS, ArmName, Cost, Label
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from sidelong.service.http.endpoints import Call
    from sidelong.service.store.lifecycle_commands import ChangedArms

endpoints = Endpoints()


class NewArm(Body):
    """An arm to add. The body may be empty: it then reveals itself alone, and has no label."""

    label: Label | None = Field(None, description="what to call it; needed where the other arms have labels")
    reveals: list[ArmName] = Field(
        default_factory=list,
        max_length=MOST_LABELS,
        description="the arms that playing it reveals beside itself, by number or label",
    )
    revealed_by: list[ArmName] = Field(
        default_factory=list, max_length=MOST_LABELS, description="the arms that reveal it when they are played"
    )
    cost_bound: Cost | None = Field(
        None, description="the most that it can cost; needed where a ceiling has cost_bounds"
    )


class ArmChangeReply(BaseModel):
    """An arm that came or went."""

    arm: int  #: its number, which no other arm ever gets
    label: str | None  #: what it is called; null if the arms have no labels
    retired: bool  #: whether it is neither played nor revealed any more
    n_arms: int  #: how many arms there are then, with those that are retired
    graph: str  #: the id of the experiment's own graph from then on
    duplicate: bool  #: whether it was so before


@endpoints.add(
    "POST",
    "/v1/experiments/{name}/arms",
    Scope.ADMIN,
    {201: ArmChangeReply, 200: ArmChangeReply},
    takes=NewArm,
    headers={"Idempotency-Key": Key},
)
async def add_arm(call: Call) -> Reply:
    """Add an arm, for all keys. The same again with the same Idempotency-Key finds the arm that was added."""
    body: NewArm = call.body
    key = key_of(call.headers.get(b"idempotency-key"))
    by = call.access and call.access.name
    command = AddArm(call.of, body.label, body.reveals, body.revealed_by, key, by, body.cost_bound)
    added: ChangedArms = await call.server.commits.written(command)
    return Reply(_content(added), 200 if added.duplicate else 201)


@endpoints.add("DELETE", "/v1/experiments/{name}/arms/{arm}", Scope.ADMIN, {200: ArmChangeReply})
async def retire_arm(call: Call) -> Reply:
    """Retire an arm, by number or label: it is neither played nor revealed any more. Its number stays with it."""
    command = RetireArm(call.of, call.place["arm"], call.access and call.access.name)
    return Reply(_content(await call.server.commits.written(command)))


def _content(changed: ChangedArms) -> dict[str, Any]:
    return {
        "arm": changed.arm,
        "label": changed.label,
        "retired": changed.retired,
        "n_arms": changed.graph.graph.n_arms,
        "graph": changed.graph.id,
        "duplicate": changed.duplicate,
    }
