"""Traces: a client's own request id and `traceparent` are kept, and spans go to OpenTelemetry where it is installed."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

try:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:  # nobody collects spans then
    trace = None

if TYPE_CHECKING:
    from collections.abc import Iterator

_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def request_id(headers: dict[bytes, bytes], own: str) -> str:
    """Return what a client calls its request, or a name of our own."""
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _REQUEST_ID.fullmatch(given) else own


def trace_of(headers: dict[bytes, bytes]) -> tuple[bytes, str] | None:
    """Return the `traceparent` of a request and the id of its trace (W3C Trace Context), if it has a valid one."""
    given = headers.get(b"traceparent", b"")
    found = _TRACEPARENT.fullmatch(given)
    return None if found is None or found[1] == b"0" * 32 else (given, found[1].decode())


class Span:
    """The span of a request, which may go nowhere."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def end(self, method: str, route: str, status: int) -> None:
        """Say what became of the request."""
        if self._span is None:
            return
        self._span.update_name(f"{method} {route}")
        self._span.set_attributes(
            {"http.request.method": method, "http.route": route, "http.response.status_code": status}
        )
        if status >= 500:
            self._span.set_status(trace.StatusCode.ERROR)


@contextmanager
def span(headers: dict[bytes, bytes]) -> Iterator[Span]:
    """Begin the span of a request, below that of its client."""
    if trace is None:
        yield Span()
        return
    carrier = {name: headers[name.encode()].decode("latin-1") for name in _CARRIED if name.encode() in headers}
    context = TraceContextTextMapPropagator().extract(carrier)
    tracer = trace.get_tracer("sidelong")
    with tracer.start_as_current_span("request", context, trace.SpanKind.SERVER) as begun:
        yield Span(begun)


_CARRIED = ("traceparent", "tracestate")
