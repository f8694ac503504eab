"""The reference of the HTTP API, made of the OpenAPI document.

On the page `http`, the table of all endpoints stands in the place of ``{endpoints}``, and below each heading that names
an endpoint follows what the document says of it. The page `http-messages` has a table of the fields of each message.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sidelong.service.http.openapi import document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

_HEADING = re.compile(r"^### `(GET|POST|PATCH|PUT|DELETE) ([^`]+)`\n", re.MULTILINE)
_ENDPOINTS, _MESSAGES = "```{endpoints}\n```\n", "```{messages}\n```\n"
_SCHEMAS = "#/components/schemas/"
_MOST = 2**31  # a limit from here on is one of the number's type, and says nothing


def _read(_app: Sphinx, page: str, source: list[str]) -> None:
    if page == "http":
        written = _HEADING.sub(lambda match: match[0] + endpoint(match[1], match[2]), source[0])
        source[0] = written.replace(_ENDPOINTS, table())
    elif page == "http-messages":
        schemas = document()["components"]["schemas"]
        sections = [message(name, schema) for name, schema in sorted(schemas.items())]
        source[0] = source[0].replace(_MESSAGES, "\n".join(sections))


def table() -> str:
    """Return the table of all endpoints."""
    rows = ["| endpoint | scope | what it does |", "|---|---|---|"]
    for path, methods in document()["paths"].items():
        for method, about in methods.items():
            name = f"{method.upper()} {path}"
            what = about["description"].partition("\n")[0]
            rows.append(f"| [`{name}`](#{anchor(name)}) | `{about['x-sidelong-scope']}` | {what} |")
    return "\n".join(rows) + "\n"


def endpoint(method: str, path: str) -> str:
    """Return what the document says of an endpoint: who may use it, its parameters, its body and its replies."""
    about = document()["paths"][path][method.lower()]
    facts = [f"**Scope** `{about['x-sidelong-scope']}`"]
    free = [(f"`{each['name']}`, {each['in']}", each["schema"]) for each in about["parameters"] if each["in"] != "path"]
    if "requestBody" in about:
        needed = "" if about["requestBody"]["required"] else ", which may be left out"
        facts.append(f"**Body** {_contents(about['requestBody'])}{needed}")
    replies: dict[str, list[str]] = {}
    for status, reply in about["responses"].items():
        if "content" in reply:
            replies.setdefault(_contents(reply), []).append(status)
    facts.append("**Reply** " + ", ".join(f"{' or '.join(codes)} {what}" for what, codes in replies.items()))
    rows = _fields("parameter", free) if free else ()
    return "\n".join(["", about["description"], "", " · ".join(facts), "", *rows, ""])


def message(name: str, schema: dict[str, Any]) -> str:
    """Return the section of a message: what it is, and its fields."""
    required = schema.get("required", ())
    rows = [
        (f"`{field}`" + ("" if field in required else ", optional"), about)
        for field, about in schema.get("properties", {}).items()
    ]
    examples = [f"```json\n{json.dumps(each)}\n```\n" for each in schema.get("examples", ())]
    more = ["Further fields are allowed.\n"] if schema.get("additionalProperties") is True else []
    said = schema.get("description", "").replace("\n", " ")
    return "\n".join([f"## {name}\n", f"{said}\n", *_fields("field", rows), "", *more, *examples])


def anchor(heading: str) -> str:
    """Return the anchor that a heading gets: that of its words, without marks."""
    return re.sub(r"[^\w]+", "-", heading.lower()).strip("-")


def _fields(what: str, rows: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    yield from (f"| {what} | type | what it is |", "|---|---|---|")
    for name, about in rows:
        said = about.get("description", "").replace("|", "\\|").replace("\n", " ")
        yield f"| {name} | {_kind(about)} | {said} |"


def _contents(given: dict[str, Any]) -> str:
    """Return what a body or a reply holds: messages of JSON, or what a media type says."""
    ((media, about),) = given["content"].items()
    is_message = media == "application/json" and ("$ref" in about["schema"] or "anyOf" in about["schema"])
    return _kind(about["schema"]) if is_message else f"`{media}`"


def _kind(schema: dict[str, Any]) -> str:
    """Return the type of a value in words."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_SCHEMAS)
        return f"[{name}](http-messages.md#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(_kind, schema[several])))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{json.dumps(each)}`" for each in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("prefixItems")
        of = _kind(schema["items"]) if items is None else ", ".join(map(_kind, items))
        return f"array of {of}" if items is None else f"array [{of}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"object of {_kind(values)}" if isinstance(values, dict) else "object"
    return {None: "any", "null": "`null`"}.get(kind, str(kind)) + _limits(schema)


def _limits(schema: dict[str, Any]) -> str:
    """Return the limits of a number or of a text, where they say something."""
    if schema.get("format") in {"date-time", "byte", "binary"}:
        return f" ({schema['format']})"
    below, above = ("maximum", "at most"), ("exclusiveMaximum", "below")
    low, high = ("minimum", "at least"), ("exclusiveMinimum", "above")
    said = [
        f"{words} {schema[name]:,}"
        for name, words in (low, high, below, above)
        if name in schema and abs(schema[name]) < _MOST - 1
    ]
    said += [f"at most {schema['maxLength']:,} characters"] if "maxLength" in schema else []
    said += [f"`{schema['pattern']}`".replace("|", "\\|")] if "pattern" in schema else []
    return f" ({', '.join(said)})" if said else ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", _read)
    app.connect("env-get-outdated", lambda *_: ["http", "http-messages"])  # which are made of code
    return {"parallel_read_safe": True, "parallel_write_safe": True}
