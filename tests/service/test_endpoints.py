"""The endpoints, and what must not be forgotten beside them: the page, the client, the scopes, the document."""

import re
from pathlib import Path

import httpx
import pytest

import sidelong as sl
from service.test_access import REQUESTS
from sidelong.service.client import Service
from sidelong.service.http.openapi import ENDPOINTS, document

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")

#: What no method of the client asks for, and who does.
NOT_FOR_THE_CLIENT = {
    "/v1/experiments/{name}/keys": "the dashboard",
    "/v1/experiments/{name}/rates": "the dashboard",
    "/v1/experiments/{name}/events": "the dashboard",
    "/v1/experiments/{name}/evaluation": "the dashboard",
    "/v1/catalogue": "the dashboard",
    "/v1/access": "the dashboard",
    "/v1/experiments/{name}/log": "sidelong evaluate",
    "/v1/graphs": "programs that are not in Python",
    "/health": "operators",
    "/ready": "operators",
    "/metrics": "operators",
    "/openapi.json": "generators of clients",
}


def test_the_page_has_a_section_for_every_endpoint():
    headings = re.findall(r"^### `(\w+) (\S+)`$", PAGE, re.MULTILINE)
    assert sorted(headings) == sorted((endpoint.method, endpoint.path) for endpoint in ENDPOINTS)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}")
def test_every_endpoint_is_in_the_document_and_its_scope_is_tried(endpoint):
    described = document()["paths"][endpoint.path][endpoint.method.lower()]
    assert described["description"].endswith(".")
    assert {str(status) for status in endpoint.gives} <= described["responses"].keys()
    if endpoint.scope not in {"any", "none"}:
        tried = [(method, matching(method, path)) for method, path, _ in REQUESTS[endpoint.scope]]
        assert (endpoint.method, endpoint) in tried


def test_fields_are_described_by_the_comments_behind_them():
    fields = document()["components"]["schemas"]["ArmEstimate"]["properties"]
    assert fields["lower"]["description"] == "of the interval; null where its limits cross"  # of the class before it
    query = document()["paths"]["/v1/experiments/{name}/keys"]["get"]["parameters"]
    assert {each["name"]: each["schema"]["description"] for each in query if each["name"] == "search"} == {
        "search": 'a part of the key; if left out, ""'
    }


def test_every_field_and_every_parameter_is_described():
    described, every = document(), []
    for name, schema in described["components"]["schemas"].items():
        every += [(f"{name}.{field}", about) for field, about in schema.get("properties", {}).items()]
    for path, methods in described["paths"].items():
        given = [each for operation in methods.values() for each in operation["parameters"]]
        every += [(f"{path} {each['name']}", {**each["schema"], **each}) for each in given]
    said = {name: about.get("description", "") for name, about in every}
    assert len(said) > 450
    assert [name for name, text in said.items() if not text or text.startswith("if left out")] == []


def test_operations_have_names_that_a_generator_of_clients_can_use():
    names = [described["operationId"] for methods in document()["paths"].values() for described in methods.values()]
    assert len(set(names)) == len(names) == len(ENDPOINTS)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in names)


def test_every_endpoint_is_asked_by_the_client_or_named_as_not_for_it():
    asked = set()

    def note(request):
        asked.add(matching(request.method, request.url.path).path)
        return httpx.Response(503, json={"code": "refused"})

    service = Service("http://127.0.0.1:1", None, 0.0, 1.0)
    service._http = httpx.Client(transport=httpx.MockTransport(note), base_url="http://127.0.0.1:1")
    agent, graph = service["x"], sl.graphs.nested(2)
    for ask in (
        lambda: service.create("x", "exp3.g++", graph),
        lambda: list(service),
        agent.state,
        agent.estimates,
        lambda: agent.graph,
        agent.ask,
        lambda: agent.predict({"a": 1}),
        lambda: agent.tell("a-1", [0.5]),
        lambda: agent.ask_many(["a"]),
        lambda: agent.tell_many({"decision": ["a-1"], "arm": [0], "loss": [0.5]}),
        lambda: agent.tell_many(["a-1"], sl.outcomes.StockOrders(2, holding=1, shortage=1).outcomes([1], [1])),
        lambda: agent.cancel("a-1"),
        lambda: agent.override("a-1", 0),
        lambda: agent.look_up("a-1"),
        lambda: agent.change(state="running"),
        lambda: agent.delete("x"),
        lambda: agent.clone("y"),
        agent.add_arm,
        lambda: agent.retire(0),
        agent.changes,
        lambda: agent.save("never.sidelong"),
    ):
        with pytest.raises(sl.SidelongError):
            ask()
    assert asked | NOT_FOR_THE_CLIENT.keys() == {endpoint.path for endpoint in ENDPOINTS}
    assert not asked & NOT_FOR_THE_CLIENT.keys()


def matching(method, path):
    """Return the endpoint that a request reaches."""
    for endpoint in ENDPOINTS:
        if endpoint.method == method and re.fullmatch(
            re.sub(r"\{\w+\}", "[^/]+", endpoint.path), path.partition("?")[0]
        ):
            return endpoint
    raise AssertionError(f"{method} {path} is not in the table")


def test_times_and_codes_of_errors_have_types_in_the_openapi_document():
    schemas = document()["components"]["schemas"]
    times = {
        (name, field)
        for name, schema in schemas.items()
        for field, about in schema.get("properties", {}).items()
        if field.endswith("_at")
    }
    assert len(times) > 4
    for name, field in times:
        about = schemas[name]["properties"][field]
        kinds = [each for each in about.get("anyOf", [about]) if each["type"] != "null"]
        assert [each["format"] for each in kinds] == ["date-time"], (name, field)
    codes = schemas["Problem"]["properties"]["code"]["enum"]
    assert {"malformed", "refused", "full"} < set(codes)
    assert len(set(codes)) == len(codes)
