"""Spans for OpenTelemetry, where it is installed."""

import pytest

from service.in_process import playing
from sidelong.service.http import tracing

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def get(tmp_path, *paths):
    """Send requests of one trace."""

    async def ask(client):
        for path in paths:
            await client.get(path, headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})

    playing(tmp_path, ask)


def test_a_request_is_a_span_below_that_of_its_client(tmp_path, monkeypatch):
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    spans, provider = memory.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(spans))
    monkeypatch.setattr(tracing.trace, "get_tracer", provider.get_tracer)
    get(tmp_path, "/v1/experiments", "/v1/experiments/none")
    found = spans.get_finished_spans()
    assert [span.name for span in found] == ["GET /v1/experiments", "GET /v1/experiments/{name}"]
    assert {f"{span.context.trace_id:032x}" for span in found} == {TRACE}
    assert {f"{span.parent.span_id:016x}" for span in found} == {"00f067aa0ba902b7"}
    assert [span.attributes["http.response.status_code"] for span in found] == [200, 404]
    assert found[1].attributes["http.route"] == "/v1/experiments/{name}"


def test_without_opentelemetry_there_is_no_span(tmp_path, monkeypatch):
    monkeypatch.setattr(tracing, "trace", None)
    with tracing.span({b"traceparent": b"x"}) as span:
        span.end("GET", "/", 500)
    get(tmp_path, "/health")
