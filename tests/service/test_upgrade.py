"""A newer version of a learner takes over an experiment, and the older one keeps away."""

import contextlib
import json
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sidelong as sl
from service.stores import lose_snapshots, new_database, opened
from service.test_store import refused
from sidelong import cli
from sidelong.errors import ServiceError
from sidelong.learners import exp3gpp
from sidelong.service import rebase
from sidelong.service.http import views
from sidelong.service.store.journal import Kind, since
from sidelong.service.store.tallies import Tallies

GRAPH = sl.graphs.cliques([3, 2])
LOSSES = 0.25


@pytest.fixture(params=["sqlite", "postgresql", "memory"])
def database(request, tmp_path, monkeypatch):
    return new_database(request.param, request, tmp_path, monkeypatch)


@pytest.fixture
def upgrade(monkeypatch):
    """Return what makes exp3.g++ a version that decides otherwise, and what makes it the old one again."""
    old = sl.Agent.ask

    def other(self, *given, **more):
        if self.round % 2:
            self.cancel(old(self, *given, **more))  # so that each second round is drawn with other random numbers
            self._ledger.round -= 1
            self._learner.seed += 1
        return old(self, *given, **more)

    def now(version):
        monkeypatch.setattr(exp3gpp, "VERSION", version, raising=False)
        monkeypatch.setattr(sl.Agent, "ask", other if version > 1 else old)

    return now


def play(bench, rounds, name="e"):
    for _ in range(rounds):
        bench.tell(bench.decide(name), LOSSES)


def last(bench, name="e"):
    identity = bench.store.identity(name)
    with bench.database.reading() as reading:
        return list(since(reading, identity.id, 0))[-1]


def test_a_newer_version_goes_on_from_the_snapshot_and_the_journal_says_so(database, upgrade):
    with opened(database) as bench:
        bench.create(graph=GRAPH)
        play(bench, 20)
        waiting = bench.decide()
        bench.store.save(least=1)  # as at the end of a server
        learned = bench.store.view("e", lambda each, _: each.agent.estimates().means.tolist())
    upgrade(2)
    with opened(database) as bench:
        state = bench.store.view("e", lambda each, _: views.state(each))
        assert bench.store.view("e", lambda each, _: each.agent.estimates().means.tolist()) == learned
        event = last(bench)
        assert (event.kind, event.round) == (Kind.REBASED, -2)
        said = json.loads(event.context)
        assert {name: said[name] for name in ("from", "to", "after", "unlearned")} == {
            "from": 1,
            "to": 2,
            "after": 42,
            "unlearned": 0,
        }
        assert any("newer version of exp3.g++ took over once" in reason for reason in state.guarantee.reasons)
        bench.tell(waiting)  # nothing is lost
        play(bench, 20)
        digest = bench.digest()
        lose_snapshots(bench.database)
    with opened(database) as bench:
        assert bench.digest() == digest  # the state is a function of the journal
        assert last(bench).kind is Kind.TOLD
        assert bench.counts()[Kind.REBASED] == 1


def test_what_the_older_version_did_behind_the_snapshot_is_counted_and_the_event_says_how_much(database, upgrade):
    with opened(database) as bench:
        bench.create(graph=GRAPH)
        play(bench, 9)
        early = [bench.decide() for _ in range(3)]
        bench.store.save(least=1)
        bench.tell(early[0])  # its probabilities are in the snapshot
        play(bench, 9)
        bench.cancel(early[1])
        bench.cancel(bench.decide())
        late = bench.decide()
        before = bench.counts()  # and then it was killed
    upgrade(2)
    with opened(database) as bench:
        bench.store.load("e")
        assert json.loads(last(bench).context)["unlearned"] == 9
        counts = bench.counts()
        assert counts[Kind.EXPIRED] == 1
        assert [counts[kind] for kind in (Kind.DECIDED, Kind.TOLD, Kind.CANCELLED)] == [
            before[kind] for kind in (Kind.DECIDED, Kind.TOLD, Kind.CANCELLED)
        ]
        assert refused("expired", bench.tell, late).status == 410
        bench.tell(early[2])
        play(bench, 5)
        digest = bench.digest()
        lose_snapshots(bench.database)
    with opened(database) as bench:
        assert bench.digest() == digest


def test_without_a_snapshot_it_says_what_to_do_and_the_old_version_makes_one(database, upgrade):
    with opened(database) as bench:
        bench.create(graph=GRAPH)
        play(bench, 9)
    upgrade(2)
    with opened(database) as bench:
        for _ in range(2):
            error = refused("refused", bench.decide)
            assert "made with version 1 of exp3.g++, and this is version 2" in str(error)
            assert "sidelong rebase" in str(error)
        assert bench.store.states() == {"live": 0, "loading": 0, "refused": 1}
    upgrade(1)
    with opened(database) as bench:
        play(bench, 3)
        bench.store.save(least=1)
    upgrade(2)
    with opened(database) as bench:
        play(bench, 3)
        assert bench.counts()[Kind.TOLD] == 15


def test_an_older_server_refuses_what_a_newer_one_has_taken_over_and_spoils_nothing(database, upgrade):
    with opened(database) as older:
        older.create(graph=GRAPH)
        play(older, 9)
        older.store.save(least=1)
        upgrade(2)
        with opened(database, older.hands) as newer:
            play(newer, 9)
            digest = newer.digest()
            upgrade(1)
            for _ in range(2):
                error = refused("refused", older.decide)
                assert "goes on with version 2 of exp3.g++, and this server has version 1: it is older" in str(error)
            upgrade(2)
            assert newer.digest() == digest
            play(newer, 3)
        upgrade(1)
        with opened(database) as again:
            assert "it is older" in str(refused("refused", again.decide))


def test_a_version_that_decides_the_same_loses_nothing_even_without_a_snapshot(database, monkeypatch):
    with opened(database) as bench:
        bench.create(graph=GRAPH)
        play(bench, 9)
    monkeypatch.setattr(exp3gpp, "VERSION", 2, raising=False)
    with opened(database) as bench:
        play(bench, 1)
        assert bench.counts()[Kind.TOLD] == 10
        assert bench.store.view("e", lambda each, _: each.tallies.rounds) == 10
    assert Tallies(1).rounds == 0


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("changed", [False, True])
def test_rebase_lets_the_older_program_make_the_snapshot_that_is_missing(
    kind, changed, request, tmp_path, monkeypatch, upgrade
):
    address = new_database(kind, request, tmp_path, monkeypatch)
    with opened(address) as bench:
        bench.create(graph=GRAPH, expire_after=None if changed else 0.001)
        bench.create("other", GRAPH)
        play(bench, 9)
        if changed:  # what waits would expire in the older program, and its journal would go on without this one
            bench.change(expire_after=0.001)
        waiting = bench.decide(graph=sl.graphs.complete(5))
        digest = bench.digest()
        learned = bench.store.view("e", lambda each, _: each.agent.estimates().means.tolist())
    upgrade(2)
    with opened(address) as bench:
        refused("refused", bench.decide)
        found = rebase.find_older(bench.database, ["e"])
        assert [(each.identity.name, each.journal, each.own) for each in found] == [("e", 1, 2)]
        # The Python of the tests has version 1: what is patched here is not in another process.
        assert rebase.snapshots_by(Path(sys.executable), bench.database, found, tmp_path) == [("e", 20 + changed)]
    upgrade(1)
    with opened(address) as bench:
        assert bench.digest() == digest  # and it is a snapshot as any other
        assert bench.store.named("e").live.saved == 20 + changed
    upgrade(2)
    with opened(address) as bench:
        assert bench.store.view("e", lambda each, _: each.agent.estimates().means.tolist()) == learned
        bench.tell(waiting)
        play(bench, 3)
        assert bench.counts()[Kind.REBASED] == 1
        refused("not_found", rebase.find_older, bench.database, ["nothing"])


def test_nothing_expires_in_the_copy_that_the_older_program_sees(tmp_path, monkeypatch):
    """Whatever the journal says of expiry, and however long the older program looks at it."""
    seen = []

    @contextlib.contextmanager
    def serving(_, file):
        with opened(f"sqlite:///{file}", hands) as copy:
            copy.hands.move(100)
            for _ in range(2):
                with pytest.raises(ServiceError):
                    copy.expire()
                seen.append(copy.digest())
            if len(seen) == 4:  # the first time, it is stopped before it has replayed what it forgot
                copy.store.save(least=1)
            yield "nowhere"

    monkeypatch.setattr(rebase, "_serving", serving)
    monkeypatch.setattr(rebase, "_wait_for", lambda *_: None)
    with opened(f"sqlite:///{tmp_path}/here.db") as bench:
        hands = bench.hands
        bench.create(graph=GRAPH)
        play(bench, 3)
        bench.decide()
        bench.change(expire_after=10.0)
        digest, found = bench.digest(), [rebase.Older(bench.store.identity("e"), 1, 2)]
        assert rebase.snapshots_by(Path(sys.executable), bench.database, found, tmp_path) == [("e", 9)]
        assert seen == [digest] * 4


def test_the_command_says_what_is_missing_and_when_there_is_nothing_to_do(tmp_path, monkeypatch, upgrade):
    database = tmp_path / "here.db"
    with opened(str(database)) as bench:
        bench.create(graph=GRAPH)
        play(bench, 2)
    run = partial(CliRunner().invoke, cli.app)
    asked = ["rebase", "--database", str(database)]
    assert run(asked).exit_code == 2
    assert run([*asked, "--from", "1", "--python", "python3"]).exit_code == 2
    assert "nothing to do" in run([*asked, "--python", sys.executable]).stdout
    upgrade(2)
    monkeypatch.setattr(rebase, "snapshots_by", lambda python, *_: [(python.name, 5)])
    assert "python9: a snapshot after event 5" in run([*asked, "--python", "/nowhere/python9"]).stdout
    done = run([*asked, "--from", "/nowhere/sidelong.whl"])
    assert isinstance(done.exception, ServiceError)
    assert "/nowhere/sidelong.whl cannot be installed" in str(done.exception)
