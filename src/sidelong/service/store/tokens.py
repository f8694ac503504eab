"""Who may do what: tokens, of which the database knows only hashes.

A token is ``sl_`` + id + ``_`` + secret. The id finds it and may be shown; the secret has 256 random bits, is shown
once, and is compared by its SHA-256 in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from sidelong.errors import ServiceError
from sidelong.service.store.database import Token

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sidelong.service.store.database import Database


class Scope(StrEnum):
    """What a token allows."""

    DECIDE = "decide"
    FEEDBACK = "feedback"
    READ = "read"
    ADMIN = "admin"  #: everything


class Access(NamedTuple):
    """What whoever sends a request may do."""

    token: str | None
    scopes: frozenset[str]
    name: str | None = None  #: of the token: who the journal says it was
    experiment: str | None = None  #: the key of the only one that it is for


_MOST = 10_000  # headers to remember
_OPEN = Access(None, frozenset({Scope.ADMIN}))
_NOBODY = hashlib.sha256(secrets.token_bytes(32)).digest()  # compared with where no token has the id


class Tokens:
    """The tokens of a database. What another process changes is noticed within a second."""

    fresh_for = 1.0

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: dict[str, Token] = {}
        self.open = True  #: whether no token was ever made, so that none is needed
        self.admitted: dict[bytes, Access] = {}  #: what `check` gave since the tokens were last read, by the header
        self.fresh_until = 0.0  #: until when what is in memory answers without the database, by `time.monotonic`

    def create(self, name: str, scopes: Iterable[str], experiment: str | None = None) -> str:
        """Make a token, and return it with its secret, which nobody can read again.

        One for an `experiment` reaches no other: it goes by what the experiment is, whatever it is called later.
        """
        key = None if experiment is None else self._key(experiment)
        wanted = tuple(sorted({Scope(scope) for scope in scopes}))
        id_, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        self._keep(Token(id_, name, _hash(secret), wanted, _now(), experiment=key))
        return f"sl_{id_}_{secret}"

    def _key(self, name: str) -> str:
        with self._database.reading() as reading:
            found = reading.find(name)
        if found is None:
            raise ServiceError(f"There is no such experiment {name!r}.", status=404, code="not_found")
        return found.key

    def revoke(self, id_: str) -> Token:
        """Make a token worthless, for ever."""
        found = next((token for token in self.list() if token.id == id_), None)
        if found is None:
            raise ServiceError(f"There is no token {id_!r}. See: sidelong token list", status=404, code="not_found")
        self._keep(found._replace(revoked_at=_now()))
        return found

    def list(self) -> list[Token]:
        """Return all tokens, oldest first."""
        with self._database.reading() as reading:
            found = reading.tokens()
        self._known = {token.id: token for token in found}
        self.open = not found
        self.admitted = {}  # last: a `check` that began before writes into the one that is forgotten
        return found

    def experiments(self) -> dict[str, str]:
        """Return the names of the experiments that tokens are for, by their keys."""
        with self._database.reading() as reading:
            keys = [each.experiment for each in reading.tokens() if each.experiment is not None]
            found = [reading.find(f"#{key}") for key in keys]
        return {each.key: each.name for each in found if each is not None}

    def refresh(self) -> None:
        """Read the tokens again, if that is due."""
        with self._lock:
            begun = time.monotonic()
            if begun >= self.fresh_until:
                self.list()
                self.fresh_until = begun + self.fresh_for

    def is_valid(self, id_: str | None) -> bool:
        """Tell whether what was let in with a token, or with none, would still be."""
        if id_ is None:
            return self.open
        return id_ in self._known and self._known[id_].revoked_at is None

    def check(self, header: bytes) -> Access:
        """Return what the sender of an Authorization header may do, and note it in `admitted`."""
        admitted = self.admitted
        access = _OPEN if self.open else self._check(header.decode("latin-1"))
        if len(admitted) < _MOST:
            admitted[header] = access
        return access

    def _check(self, header: str) -> Access:
        kind, _, text = header.partition(" ")
        mark, id_, secret = [*text.strip().split("_", 2), "", ""][:3]
        token = self._known.get(id_)
        right = hmac.compare_digest(_hash(secret), _NOBODY if token is None else token.hash)
        if kind.lower() != "bearer" or mark != "sl" or token is None or not right or token.revoked_at is not None:
            raise ServiceError(
                "This needs a token that is known and not revoked: Authorization: Bearer sl_...",
                status=401,
                code="unauthenticated",
                path="header.authorization",
            )
        return Access(token.id, frozenset(token.scopes), token.name, token.experiment)

    def _keep(self, token: Token) -> None:
        with self._database.writing() as writing:
            writing.keep_token(token)
            writing.commit()


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _now() -> int:
    return round(time.time() * 1e6)
