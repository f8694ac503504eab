"""Any request that the OpenAPI document allows, and many that it does not: no 5xx, and replies as documented."""

import importlib
import itertools

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sidelong.service.http.openapi import document as make_document

NUMBERS = itertools.count()
DOCUMENT = make_document()


def operations():
    """Yield what can be asked, and in which ways: rightly, and wrongly where there is something to be wrong."""
    for path, methods in DOCUMENT["paths"].items():
        for method, described in methods.items():
            if path.endswith("/events"):  # which never ends
                continue
            yield path, method, "positive"
            free = [each for each in described.get("parameters", ()) if each["in"] != "path"]
            if free or "requestBody" in described:
                yield path, method, "negative"


@pytest.fixture(scope="module")
def server(nursery, tmp_path_factory):
    started = nursery.start(f"sqlite:///{tmp_path_factory.mktemp('any')}/any.db", read_rate=1e6, decide_rate=1e6)
    yield started
    started.stop()


@pytest.fixture(scope="module")
def schemathesis():
    """Return the package, which would take every worker a second to import."""
    return importlib.import_module("schemathesis")


@pytest.fixture(scope="module")
def checks(schemathesis):
    own = importlib.import_module("schemathesis.specs.openapi.checks")
    names = ("status_code", "content_type", "response_schema")
    return [schemathesis.checks.not_a_server_error, *(getattr(own, f"{name}_conformance") for name in names)]


@pytest.fixture(scope="module")
def document(server, schemathesis):
    return schemathesis.openapi.from_url(f"{server.address}/openapi.json")


@pytest.mark.parametrize("examples", [6, pytest.param(40, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("path", "method", "mode"), list(operations()))
def test_no_request_breaks_the_server(server, schemathesis, document, checks, path, method, mode, examples):
    cases = document[path][method].as_strategy(generation_mode=schemathesis.GenerationMode(mode))
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
        case.call_and_validate(checks=checks, timeout=120)

    send()
    assert server.get("/health")[0] == 200
