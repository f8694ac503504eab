"""A newer version of a learner takes over an experiment with keys."""

import json

import pytest

import sidelong as sl
from service.stores import lose_snapshots, new_database, opened
from service.test_keyed import KEYS, ask, events, run, told
from service.test_keyed_blocks import spoil
from sidelong.agent.family.store import KeyStore
from sidelong.errors import ServiceError
from sidelong.learners import exp3gpp
from sidelong.service.store.batches import TellMany
from sidelong.service.store.commands import Cancel, Tell
from sidelong.service.store.journal import Kind
from sidelong.service.store.keyed import blocks

GRAPH = sl.graphs.cliques([3, 2])
MORE = [*KEYS, "late"]


@pytest.fixture(params=["sqlite", "postgresql", "memory"])
def database(request, tmp_path, monkeypatch):
    return new_database(request.param, request, tmp_path, monkeypatch)


@pytest.fixture
def upgrade(monkeypatch):
    """Return what makes exp3.g++ a version that decides otherwise, or the same, and what makes it the old one again."""
    monkeypatch.setattr(blocks, "_KEYS", 5)
    old = KeyStore.ask

    def other(self, *given):
        self.rows.seed[:] ^= 1
        old(self, *given)
        self.rows.seed[:] ^= 1

    def now(version, *, same=False):
        monkeypatch.setattr(exp3gpp, "VERSION", version, raising=False)
        monkeypatch.setattr(KeyStore, "ask", other if version > 1 and not same else old)

    return now


def night(bench, keys=KEYS, loss=0.25):
    made = ask(bench, keys)
    run(bench, TellMany(f"#{made.experiment}", [told(made, k, loss) for k in range(len(keys))]))
    return made


def means(bench):
    return bench.store.view("e", _means)


def _means(each, reading):
    each.wake(reading, each.by_key.places(each.by_key.keys.listed))
    return each.blocks.together().estimates().means.tolist()


def test_it_goes_on_from_the_snapshot_and_the_journal_says_so(database, upgrade):
    with opened(database) as bench:
        bench.create(keyed=True, graph=GRAPH)
        for _ in range(5):
            night(bench)
        waiting = ask(bench, KEYS)
        learned = means(bench)
        bench.store.save(least=1)
    upgrade(2)
    with opened(database) as bench:
        assert str(means(bench)) == str(learned)
        event = events(bench)[-1]
        assert (event.kind, event.round) == (Kind.REBASED, -2)
        said = json.loads(event.context)
        assert {name: said[name] for name in ("from", "to", "unlearned")} == {"from": 1, "to": 2, "unlearned": 0}
        of = f"#{waiting.experiment}"
        settled = run(bench, TellMany(of, [told(waiting, k) for k in range(12)]))
        assert all(each.learned for each in settled)  # nothing is lost
        assert night(bench, MORE).draws.rounds.tolist() == [7] * 12 + [1]
        digest = bench.digest()
        bench.store.save(least=1)
    with opened(database) as bench:
        assert bench.digest() == digest
        lose_snapshots(bench.database)
    with opened(database) as bench:
        assert bench.digest() == digest  # the state is a function of the journal


def test_what_the_older_version_did_behind_the_snapshot_is_counted(database, upgrade):
    with opened(database) as bench:
        bench.create(keyed=True, graph=GRAPH)
        for _ in range(8):  # the first rounds of each key leave nothing to chance
            night(bench)
        early = ask(bench, KEYS)
        of = f"#{early.experiment}"
        bench.store.save(least=1)
        run(bench, Cancel(of, int(early.draws.numbers[1])))
        later = ask(bench, MORE)
        mixed = [told(early, 0), told(later, 0), told(later, 12)]
        run(bench, TellMany(of, mixed))
        run(bench, Cancel(of, int(later.draws.numbers[3])))
        bench.change(state="frozen", play=2)
        frozen = ask(bench, KEYS[:2])
        bench.change(state="running")
        before = bench.counts()  # and then it was killed
    upgrade(2)
    with opened(database) as bench:
        bench.store.load("e")
        *_, lost, rebased = events(bench)
        assert (lost.kind, bench.store.view("e", lambda each, _: each.amount(lost))) == (Kind.EXPIRED, 10)
        assert json.loads(rebased.context)["unlearned"] == 2
        counts = bench.counts()
        kinds = (Kind.DECIDED, Kind.TOLD, Kind.CANCELLED, Kind.PLAYED)
        assert [counts[kind] for kind in kinds] == [before[kind] for kind in kinds]
        with pytest.raises(ServiceError) as caught:
            run(bench, Tell(of, *told(later, 5)[:2]))
        assert caught.value.code == "expired"
        settled = run(bench, TellMany(of, [told(early, 2), told(frozen, 0)]))
        assert [each.learned for each in settled] == [True, False]
        assert night(bench, MORE).draws.rounds.tolist() == [12, 12, *[11] * 10, 2]
        digest = bench.digest()
        lose_snapshots(bench.database)
    with opened(database) as bench:
        assert bench.digest() == digest


def test_defaults_that_the_older_version_told_behind_the_snapshot_are_learned_or_counted(database, upgrade):
    with opened(database) as bench:
        bench.create(keyed=True, graph=GRAPH, default_loss=1.0, expire_after=10.0)
        for _ in range(8):
            night(bench)
        ask(bench, KEYS)
        bench.store.save(least=1)
        ask(bench, KEYS[:3])
        bench.hands.move(11)
        assert bench.expire() == 15
        before, hands = bench.counts(), bench.hands  # and then it was killed
    upgrade(2)
    with opened(database, hands) as bench:
        bench.store.load("e")
        assert json.loads(events(bench)[-1].context)["unlearned"] == 3
        counts = bench.counts()
        assert [counts[kind] for kind in (Kind.DEFAULTED, Kind.TOLD)] == [before[Kind.DEFAULTED], before[Kind.TOLD]]
        assert counts[Kind.DEFAULTED] == 15
        digest = bench.digest()
        lose_snapshots(bench.database)
    with opened(database, hands) as bench:
        assert bench.digest() == digest


def test_without_a_snapshot_it_says_what_to_do(database, upgrade):
    with opened(database) as bench:
        bench.create(keyed=True, graph=GRAPH)
        for _ in range(8):
            night(bench)
    upgrade(2)
    with opened(database) as bench, pytest.raises(ServiceError, match="sidelong rebase"):
        ask(bench, KEYS)
    upgrade(1)
    with opened(database) as bench:
        night(bench)
        bench.store.save(least=1)
    upgrade(2)
    with opened(database) as bench:
        assert night(bench).draws.rounds.tolist() == [10] * 12


@pytest.mark.parametrize("how", ["damaged", "gone"])
@pytest.mark.parametrize("behind", [0, 1])
def test_a_block_that_is_missing_is_replayed_or_refused_as_a_missing_snapshot_is(database, upgrade, how, behind):
    with opened(database) as bench:
        bench.create(keyed=True, graph=GRAPH)
        for _ in range(8):
            night(bench)
        learned = means(bench)
        bench.store.save(least=1)
        for _ in range(behind):
            ask(bench, KEYS)
        spoil(bench.database, how)
    upgrade(2)
    with opened(database) as bench:
        with pytest.raises(ServiceError, match="sidelong rebase") as caught:
            ask(bench, KEYS)
        assert (caught.value.status, caught.value.code) == (503, "refused")
    upgrade(2, same=True)
    with opened(database) as bench:  # which the journal alone suffices for
        assert str(means(bench)) == str(learned)
        assert night(bench).draws.rounds.tolist() == [9 + behind] * 12
