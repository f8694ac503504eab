"""All endpoints of the service, and the OpenAPI document that is made of them."""

from __future__ import annotations

import functools
import inspect
import json
import re
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from sidelong._version import __version__
from sidelong.service.http import arms, decisions, evaluation, experiments, feedback, keys, status
from sidelong.service.http.endpoints import Endpoints, Reply
from sidelong.service.http.problems import PROBLEMS, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sidelong.service.http.endpoints import Call, Endpoint

endpoints = Endpoints()
_HERE = "sidelong.service."  # where the classes of messages are
_COMMENT = re.compile(r"^((?:    #: .+\n)*)    (\w+):(?:.*#: (.+))?", re.MULTILINE)  # above a field, or behind it
#: What the parts of paths are, and an example of each.
_PARTS = {
    "id": ("of the decision", "4f1c0a9be2d37785-1"),
    "name": ("of the experiment", "orders"),
    "arm": ("by number or label", "3"),
}
_BINARY = {"type": "string", "format": "binary"}
#: What a reply that is no message of ours is, by its media type.
_OTHERS: dict[str, dict[str, Any]] = {
    "application/vnd.apache.parquet": _BINARY,
    "application/octet-stream": _BINARY,
    "text/event-stream": {"type": "string"},
    "text/plain": {"type": "string"},
    "application/json": {"type": "object", "additionalProperties": True},
}


@endpoints.add("GET", "/openapi.json", "none", {200: "application/json"})
async def show_openapi(_: Call) -> Reply:
    """Return this document."""
    return Reply(document())


#: In the order in which the document has them.
ENDPOINTS: tuple[Endpoint, ...] = (
    *decisions.endpoints,
    *feedback.endpoints,
    *experiments.endpoints,
    *arms.endpoints,
    *keys.endpoints,
    *evaluation.endpoints,
    *status.endpoints,
    *endpoints,
)


@functools.cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    requests = [endpoint.takes for endpoint in ENDPOINTS if not isinstance(endpoint.takes, str | None)]
    replies = [kind for endpoint in ENDPOINTS for given in endpoint.gives.values() for kind in _messages(given)]
    wanted = [(kind, "validation") for kind in requests] + [(kind, "serialization") for kind in [*replies, Problem]]
    refs, found = models_json_schema(wanted, ref_template="#/components/schemas/{model}")
    schemas = {kind: ref for (kind, _), ref in refs.items()}
    messages = {kind.__name__: kind for kind in _kinds(BaseModel)}
    for name, schema in found["$defs"].items():
        _describe_fields(schema, messages[name])
    found["$defs"]["Problem"]["properties"]["code"]["enum"] = [code for _, codes in PROBLEMS.values() for code in codes]
    paths: dict[str, dict[str, Any]] = {endpoint.path: {} for endpoint in ENDPOINTS}
    for endpoint in ENDPOINTS:
        paths[endpoint.path][endpoint.method.lower()] = _operation(endpoint, schemas)
    bearer = {"type": "http", "scheme": "bearer", "description": "Needed once a token was made."}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sidelong",
            "summary": "Online decisions that learn from what they see on the side.",
            "version": __version__,
        },
        "paths": paths,
        "components": {
            "schemas": found["$defs"],
            "responses": {str(status): _problem(title, schemas) for status, (title, _) in PROBLEMS.items()},
            "securitySchemes": {"token": bearer},
        },
        "security": [{"token": []}, {}],
    }


def _kinds(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield our messages among those that are made of this one."""
    for each in kind.__subclasses__():
        if each.__module__.startswith(_HERE):
            yield each
        yield from _kinds(each)


def _describe_fields(schema: dict[str, Any], kind: type[BaseModel]) -> None:
    """Describe the fields of a message by the comments behind them in its class, and say what is the default.

    A default is said in words alone: generators for TypeScript demand what has a default.
    """
    classes = [each for each in reversed(kind.__mro__) if each.__module__.startswith(_HERE)]
    comments = {
        name: behind or " ".join(above.replace("#:", "").split())
        for each in classes
        for above, name, behind in _COMMENT.findall(inspect.getsource(each))
        if above or behind
    }
    for name, about in schema.get("properties", {}).items():
        texts = [about.get("description") or comments.get(name, "")]
        default = about.pop("default", None)
        if default is not None:
            texts.append(f"if left out, {json.dumps(default)}")
        if any(texts):
            about["description"] = "; ".join(filter(None, texts))


def _operation(endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    name = endpoint.handle.__name__
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": name.replace("_", " ").capitalize(),
        "description": inspect.getdoc(endpoint.handle),
        "x-sidelong-scope": endpoint.scope,
        "parameters": list(_parameters(endpoint)),
        "responses": {str(status): _response(status, endpoint, schemas) for status in endpoint.gives},
    }
    operation["responses"] |= {str(status): {"$ref": f"#/components/responses/{status}"} for status in PROBLEMS}
    if endpoint.takes == "file":
        operation["requestBody"] = {"required": True, "content": {"application/octet-stream": {"schema": _BINARY}}}
    elif endpoint.takes is not None:
        schema = schemas[endpoint.takes]
        operation["requestBody"] = {
            "required": any(each.is_required() for each in endpoint.takes.model_fields.values()),
            "content": {"application/json": {"schema": schema}},
        }
    if endpoint.scope == "none":
        operation["security"] = []
    return operation


def _parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", endpoint.path):
        what, example = _PARTS[name]
        about = {"required": True, "description": what, "schema": {"type": "string"}, "example": example}
        yield {"name": name, "in": "path", **about}
    if endpoint.query is not None:
        query = endpoint.query.model_json_schema()
        _describe_fields(query, endpoint.query)
        for name, schema in query["properties"].items():
            yield {"name": name, "in": "query", "required": False, "schema": schema}
    for name, kind in endpoint.headers.items():
        yield {"name": name, "in": "header", "required": False, "schema": TypeAdapter(kind).json_schema()}


def _response(status: int, endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    kind = endpoint.gives[status]
    again = status == 200 and 201 in endpoint.gives
    messages = [schemas[each] for each in _messages(kind)]
    said = messages[0] if len(messages) == 1 else {"anyOf": messages}
    media, schema = (kind, _OTHERS[kind]) if isinstance(kind, str) else ("application/json", said)
    content = {media: {"schema": schema}}
    return {"description": "It was there before, and is the same." if again else "Done.", "content": content}


def _messages(given: Any) -> tuple[Any, ...]:
    """Return the messages that a reply may be; none of what is no JSON."""
    return () if isinstance(given, str) else given if isinstance(given, tuple) else (given,)


def _problem(title: str, schemas: dict[Any, Any]) -> dict[str, Any]:
    return {"description": title, "content": {"application/problem+json": {"schema": schemas[Problem]}}}
