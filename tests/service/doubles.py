"""Databases that are slow, fail, or return other bytes than were written: test doubles behind the public contract.

`hooked` puts a double around every kind of database. A test then gives functions by the names of methods of
`Database`, `Reading` and `Writing`. Each function is called instead of the method, with the method first:

    hooks["append"] = fail                               # every call writing.append(new) becomes fail(append, new)
    hooks["blob"] = of_kind(BlobKind.GRAPH, altered(flip))   # the database returns damaged graphs
"""

import contextlib
import functools
import threading
from typing import NamedTuple

from sidelong.service.store.database import Database, Reading, Writing
from sidelong.service.store.kinds import KINDS

PATIENCE = 120  # seconds that no test takes: whoever waits for another waits for ever


class _Reading:
    def __init__(self, inner, hooks):
        self._inner = inner
        self._hooks = hooks

    def __getattr__(self, name):
        method = getattr(self._inner, name)
        return functools.partial(self._hooks[name], method) if name in self._hooks else method


class _Writing(_Reading):
    pass


Reading.register(_Reading)
Writing.register(_Writing)


class _Database(Database):
    def __init__(self, inner, hooks):
        self._inner = inner
        self._hooks = hooks
        self.name = inner.name

    def migrate(self):
        return self._inner.migrate()

    @contextlib.contextmanager
    def reading(self):
        with self._begun("reading") as reading:
            yield _Reading(reading, self._hooks)

    @contextlib.contextmanager
    def writing(self, *, aside=False):
        with self._begun("writing", aside=aside) as writing:
            yield _Writing(writing, self._hooks)

    def _begun(self, name, **how):
        begin = getattr(self._inner, name)
        return self._hooks[name](begin, **how) if name in self._hooks else begin(**how)

    def close(self):
        self._inner.close()


def hooked(monkeypatch):
    """Let all databases that are opened from now on call hooks, and return these, none yet, by the names of methods."""
    hooks = {}

    def double(make, *given):
        return _Database(make(*given), hooks)

    for scheme, make in list(KINDS.items()):
        monkeypatch.setitem(KINDS, scheme, functools.partial(double, make))
    return hooks


class Pause:
    """Keeps a thread waiting in a hook until it is told to go on, the first time that a condition holds.

    `pause.hook(when)` is a hook that waits before the method is called.
    """

    def __init__(self):
        self.begun, self.further = threading.Event(), threading.Event()

    def hook(self, when=lambda *_, **__: True):
        def wait(method, *given, **more):
            if not self.begun.is_set() and when(*given, **more):
                self.begun.set()
                assert self.further.wait(PATIENCE)
            return method(*given, **more)

        return wait


def altered(change):
    """Return a hook that changes what the database returns."""
    return lambda method, *given, **more: change(method(*given, **more))


def of_kind(kind, hook):
    """Return a hook for blobs of one kind; the others are read and written as ever."""

    def act(method, name, *given, **more):
        return hook(method, name, *given, **more) if name.kind is kind else method(name, *given, **more)

    return act


def flipped(data, place):
    """Return bytes of which one bit differs."""
    changed = bytearray(data)
    changed[place] ^= 1
    return bytes(changed)


class Written(NamedTuple):
    """A transaction that wrote."""

    aside: bool  #: whether it let others go first
    bytes: int


class Meter:
    """What goes into the database, and how many events are read from it."""

    def __init__(self, hooks):
        self.written = []
        self.events_read = 0
        self._mine = threading.local()
        for name in Writing.__abstractmethods__ - Reading.__abstractmethods__:
            hooks[name] = self._count
        hooks["writing"] = self._begin
        hooks["events"] = self._read

    @contextlib.contextmanager
    def _begin(self, begin, *, aside):
        with begin(aside=aside) as writing:
            self._mine.bytes = 0
            yield writing
            self.written.append(Written(aside, self._mine.bytes))

    def _count(self, method, *given, **more):
        self._mine.bytes += sum(map(_size, given))
        return method(*given, **more)

    def _read(self, method, *given, **more):
        found = method(*given, **more)
        self.events_read += len(found)
        return found


def _size(value):
    """Return how many bytes are in a value, however deep."""
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list | tuple) else 0
