"""What every request passes before it is read: who sends it, from where, and how fast."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from sidelong.errors import ServiceError
from sidelong.service.store.store import unknown
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.http.endpoints import Call, Endpoint
    from sidelong.service.server import Server
    from sidelong.service.settings import Settings

_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_SENDERS = 10_000


class AccessControl:
    """Lets in what its scope and the limits allow."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._limits = Limits(server.settings)
        self._origins = frozenset(server.settings.origins.lower().replace(",", " ").split())

    async def admit(self, call: Call, endpoint: Endpoint, client: str) -> None:
        """Note what the sender of a request may do, or refuse it; the scope "any" is satisfied with any token."""
        scope = endpoint.scope
        tokens, headers = self._server.tokens, call.headers
        if time.monotonic() >= tokens.fresh_until:
            await self._server.look(tokens.refresh)
        host = headers.get(b"host", b"").decode("latin-1")
        if tokens.open:
            _check_local(host, self._server.settings.host)
        if b"origin" in headers:
            _check_origin(headers[b"origin"].decode("latin-1"), host, self._origins)
        authorization = headers.get(b"authorization", b"")
        access = call.access = tokens.admitted.get(authorization) or tokens.check(authorization)
        if scope != "any" and scope not in access.scopes and Scope.ADMIN not in access.scopes:
            text = f"This token allows {', '.join(sorted(access.scopes))}, and this needs {scope}."
            raise _forbidden(text, "authorization")
        self._limits.take(access.token or client, scope if isinstance(scope, Scope) else Scope.READ)
        if access.experiment is not None:
            await self._keep_to(access.experiment, call, endpoint)

    async def _keep_to(self, key: str, call: Call, endpoint: Endpoint) -> None:
        """Refuse whatever is not about the experiment of a key; for others it is as if there were no others."""
        if "name" in call.place:
            store, name = self._server.store, call.place["name"]
            known = store.known(name)
            if known is None or known.identity.key != key:  # or the name means another one by now
                found = await self._server.look(store.identity, name)
                if found.key != key:
                    raise unknown(name)
            call.of = f"#{key}"  # whatever it is called in a moment
        elif "id" in call.place:
            if call.place["id"].partition("-")[0] != key:
                raise unknown("#")
        elif not endpoint.single:
            raise _forbidden("This token is for one experiment, and this is about all of them.", "authorization")
        if endpoint.creates:
            raise _forbidden("This token is for one experiment, and this makes another.", "authorization")


class Limits:
    """How fast each sender may go: a bucket for each kind of request, which fills at a steady rate.

    Feedback has one of its own, larger: what was decided can always be told.
    """

    def __init__(self, settings: Settings, now: Callable[[], float] = time.monotonic) -> None:
        self._rates = {
            Scope.DECIDE: settings.decide_rate,
            Scope.FEEDBACK: settings.feedback_rate,
            Scope.READ: settings.read_rate,
            Scope.ADMIN: settings.read_rate,
        }
        self._burst = settings.burst
        self._now = now
        self._buckets: OrderedDict[tuple[str, Scope], tuple[float, float]] = OrderedDict()

    def take(self, sender: str, scope: Scope) -> None:
        """Take one from the sender's bucket, or refuse."""
        rate, now = self._rates[scope], self._now()
        most = max(rate * self._burst, 1.0)
        level, since = self._buckets.pop((sender, scope), (most, now))
        level = min(level + (now - since) * rate, most)
        enough = level >= 1.0
        self._buckets[sender, scope] = level - enough, now
        if len(self._buckets) > _SENDERS:
            self._buckets.popitem(last=False)
        if not enough:
            text = f"At most {rate:g} requests of this kind a second. Wait, then send it again."
            raise ServiceError(text, status=429, code="too_fast", retry_after=(1.0 - level) / rate)


def _check_local(host: str, bound: str) -> None:
    """Refuse a name that only looks like this machine: a web page may point its own name at 127.0.0.1."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name.lower() not in {*_LOCAL, bound}:
        text = "Without tokens the service answers only to localhost. Make one with: sidelong token create"
        raise _forbidden(text, "host", host)


def _check_origin(origin: str, host: str, origins: frozenset[str]) -> None:
    """Refuse what a page of another site sends from someone's browser."""
    if origin.partition("://")[2] != host and origin.lower() not in origins:
        text = (
            "Pages of other sites may not use the service. If a proxy shows its dashboard there, set SIDELONG_ORIGINS."
        )
        raise _forbidden(text, "origin", origin)


def _forbidden(text: str, header: str, value: str | None = None) -> ServiceError:
    return ServiceError(text, status=403, code="forbidden", path=f"header.{header}", value=value)
