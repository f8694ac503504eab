"""The OpenAPI document, made of the table of addresses."""

from __future__ import annotations

import inspect
import json
import re
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from sidelong._version import __version__
from sidelong.service.http.messages.status import Problem
from sidelong.service.http.problems import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sidelong.service.http.addresses import Address

_EXAMPLES = {"id": "4f1c0a9be2d37785-1", "name": "orders"}
_BINARY = {"type": "string", "format": "binary"}
#: What a reply that is no message of ours is, by its media type.
_OTHERS: dict[str, dict[str, Any]] = {
    "application/vnd.apache.parquet": _BINARY,
    "application/octet-stream": _BINARY,
    "text/event-stream": {"type": "string"},
    "text/plain": {"type": "string"},
    "application/json": {"type": "object", "additionalProperties": True},
}


def describe(addresses: Sequence[Address]) -> dict[str, Any]:
    """Return the document of these addresses."""
    requests = [address.takes for address in addresses if not isinstance(address.takes, str | None)]
    replies = [kind for address in addresses for given in address.gives.values() for kind in _messages(given)]
    wanted = [(kind, "validation") for kind in requests] + [(kind, "serialization") for kind in [*replies, Problem]]
    refs, found = models_json_schema(wanted, ref_template="#/components/schemas/{model}")
    schemas = {kind: ref for (kind, _), ref in refs.items()}
    for schema in found["$defs"].values():
        _describe_defaults(schema)
    found["$defs"]["Problem"]["properties"]["code"]["enum"] = [code for _, codes in PROBLEMS.values() for code in codes]
    paths: dict[str, dict[str, Any]] = {address.path: {} for address in addresses}
    for address in addresses:
        paths[address.path][address.method.lower()] = _operation(address, schemas)
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


def _describe_defaults(schema: dict[str, Any]) -> None:
    """Say in words what a field is if it is left out: generators for TypeScript demand what has a default."""
    for about in schema.get("properties", {}).values():
        default = about.pop("default", None)
        if default is not None:
            text = about.get("description", "")
            about["description"] = f"{text}{'; ' * bool(text)}if left out, {json.dumps(default)}"


def _operation(address: Address, schemas: dict[Any, Any]) -> dict[str, Any]:
    name = address.handle.__name__
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": name.replace("_", " ").capitalize(),
        "description": inspect.getdoc(address.handle),
        "x-sidelong-scope": address.scope,
        "parameters": list(_parameters(address)),
        "responses": {str(status): _response(status, address, schemas) for status in address.gives},
    }
    operation["responses"] |= {str(status): {"$ref": f"#/components/responses/{status}"} for status in PROBLEMS}
    if address.takes == "file":
        operation["requestBody"] = {"required": True, "content": {"application/octet-stream": {"schema": _BINARY}}}
    elif address.takes is not None:
        schema = schemas[address.takes]
        operation["requestBody"] = {
            "required": any(each.is_required() for each in address.takes.model_fields.values()),
            "content": {"application/json": {"schema": schema}},
        }
    if address.scope == "none":
        operation["security"] = []
    return operation


def _parameters(address: Address) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", address.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "example": _EXAMPLES[name]}
    if address.query is not None:
        for name, schema in address.query.model_json_schema()["properties"].items():
            yield {"name": name, "in": "query", "required": False, "schema": schema}
    for name, kind in address.headers.items():
        yield {"name": name, "in": "header", "required": False, "schema": TypeAdapter(kind).json_schema()}


def _response(status: int, address: Address, schemas: dict[Any, Any]) -> dict[str, Any]:
    kind = address.gives[status]
    again = status == 200 and 201 in address.gives
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
