"""What the OpenAPI document says of handlers that read their requests themselves, which FastAPI cannot see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import models_json_schema

if TYPE_CHECKING:
    from fastapi import FastAPI
    from pydantic import BaseModel

__all__ = ["complete", "takes"]

_bodies: set[type[BaseModel]] = set()  # what requests hold, as `takes` was told
_SCHEMAS = "#/components/schemas/{model}"
_EXAMPLES = {"id": "4f1c0a9be2d37785-1", "name": "orders"}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A request that is sent again with the same key gets the same decision.",
    "schema": {"type": "string", "pattern": "^[\\x21-\\x7e]{1,200}$"},
}


def takes(body: type[BaseModel] | None, *places: str, key: bool = False, required: bool = True) -> dict[str, Any]:
    """Describe a request: its body, the parts of its address, and whether it may have an Idempotency-Key."""
    parameters: list[dict[str, Any]] = [
        {"name": place, "in": "path", "required": True, "schema": {"type": "string"}, "example": _EXAMPLES[place]}
        for place in places
    ]
    described: dict[str, Any] = {"parameters": parameters + [_KEY] * key}
    if body is not None:
        _bodies.add(body)
        schema = {"$ref": _SCHEMAS.format(model=body.__name__)}
        described["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    return described


def complete(app: FastAPI) -> None:
    """Add what those requests hold to the document of an application."""
    make = app.openapi

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            document = make()
            bodies = [(body, "validation") for body in sorted(_bodies, key=lambda body: body.__name__)]
            _, found = models_json_schema(bodies, ref_template=_SCHEMAS)  # type: ignore[arg-type]
            known = document["components"]["schemas"]
            known.update({name: schema for name, schema in found["$defs"].items() if name not in known})
            bearer = {"type": "http", "scheme": "bearer", "description": "Needed once a token was made."}
            document["components"]["securitySchemes"] = {"token": bearer}
            document["security"] = [{"token": []}, {}]
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]
