"""Any request that the OpenAPI document allows, and many that it does not: no 5xx, and replies as documented."""

import itertools

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sidelong.service.http.openapi import document as make_document

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
NUMBERS = itertools.count()
DOCUMENT = make_document()
POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE


def operations():
    """Yield what can be asked, and in which ways: rightly, and wrongly where there is something to be wrong."""
    for path, methods in DOCUMENT["paths"].items():
        for method, described in methods.items():
            if path.endswith("/events"):  # which never ends
                continue
            yield path, method, POSITIVE
            free = [each for each in described.get("parameters", ()) if each["in"] != "path"]
            if free or "requestBody" in described:
                yield path, method, NEGATIVE


@pytest.fixture(scope="module")
def server(nursery, tmp_path_factory):
    started = nursery.start(f"sqlite:///{tmp_path_factory.mktemp('any')}/any.db", read_rate=1e6, decide_rate=1e6)
    yield started
    started.stop()


@pytest.fixture(scope="module")
def document(server):
    return schemathesis.openapi.from_url(f"{server.address}/openapi.json")


@pytest.mark.parametrize("examples", [6, pytest.param(40, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("path", "method", "mode"), list(operations()))
def test_no_request_breaks_the_server(server, document, path, method, mode, examples):
    cases = document[path][method].as_strategy(generation_mode=mode)
    experiment = f"e-{next(NUMBERS)}"  # its own: a request may well stop, rename or delete it
    server.post("/v1/experiments", {"name": experiment, "graph": {"name": "cliques", "sizes": [3, 2]}})
    made = server.post(f"/v1/experiments/{experiment}/decisions")[1]
    known_as = {"name": experiment, "id": made["id"], "arm": "1"}

    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, known=st.booleans())
    def send(case, known):
        if known:  # most names that are drawn are of nothing
            case.path_parameters = {each: known_as[each] for each in case.path_parameters or {}}
        case.call_and_validate(checks=CHECKS, timeout=120)

    send()
    assert server.get("/health")[0] == 200
