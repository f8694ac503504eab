"""What any kind of database must do: the docstrings of `sidelong.service.store.database`, as tests.

A new kind of database inherits `DatabaseContract`, says where an empty one is, and is done when this passes.
"""

import contextlib
import functools
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest

from service.stores import new_database
from sidelong.errors import ServiceError
from sidelong.service.http.status import Ready
from sidelong.service.store import journal
from sidelong.service.store.database import (
    LAST_SEQ,
    Blob,
    BlobKind,
    BlobName,
    Cut,
    Identity,
    Listed,
    TakenError,
    Token,
    keep_blob,
    keep_chunks,
)
from sidelong.service.store.journal import Event, Kind
from sidelong.service.store.kinds import KINDS, open_database

FULL = Event(
    Kind.DECIDED,
    round=1,
    last=2**62 - 1,
    at=2**62,
    clock=2**61 + 1,
    graph="0" * 32,
    key="".join(map(chr, range(0x21, 0x7F))),
    context='{"name":"\u00fc \\u0000"}',
    data=bytes(range(256)),
    seq=1,
    chain=b"\0" * 16,
)


#: What is stored of an experiment is text to a database.
SPEC = '{"description":"\u00fc \\u0000","seed":9007199254740991}'


def decided(seq, round_, key=None):
    return Event(Kind.DECIDED, round_, round_, 1000 + seq, seq, key=key, seq=seq, chain=bytes([seq % 256]) * 16)


def settled(seq, round_, kind=Kind.TOLD):
    return Event(kind, round_, round_, 1000 + seq, seq, data=b"x" * 8, seq=seq, chain=bytes([seq % 256]) * 16)


def make(database, name="e", events=(), key=None):
    """Store an experiment, and return its id."""
    with database.writing() as writing:
        of = writing.create(Identity(0, key or f"key of {name}", name, SPEC))
        if events:
            writing.append({of: events})
        writing.commit()
    return of


def forget(database, of, most_bytes=1000, then=lambda: None):
    """Forget an experiment, portion by portion; return how many rows each one had."""
    portions = []
    while True:
        with database.writing() as writing:
            count = writing.forget(of, most_bytes)
            writing.commit()
        then()
        if not count:
            return portions
        portions.append(count)


def append_next(database, of):
    with database.writing() as writing:
        head = writing.lock(of)
        writing.append({of: [decided(head + 1, head + 1)]})
        writing.commit()


def graph(letter):
    """Return what the graph is found by whose id is a letter 32 times."""
    return BlobName(BlobKind.GRAPH, letter * 32)


def snapshot(seq=LAST_SEQ, owner="key of e"):
    return BlobName(BlobKind.SNAPSHOT, owner, seq=seq)


def block(number, seq, owner="key of e"):
    return BlobName(BlobKind.BLOCK, owner, number, seq)


def keep(database, name, data=b"data", now=0):
    with database.writing() as writing:
        keep_chunks(writing, name, data, now)
        writing.commit()


def data_of(database, name):
    with database.reading() as reading:
        found = reading.blob(name)
        return None if found is None else found.data


def append(database, of, *events):
    with database.writing() as writing:
        writing.lock(of)
        writing.append({of: events})
        writing.commit()


def numbers(database, of):
    with database.reading() as reading:
        return [event.seq for event in journal.since(reading, of, 0)]


@contextlib.contextmanager
def beside(function):
    """Run a function in a thread; yield what asks whether it is done, and wait for it at the end."""
    errors = []

    def run():
        try:
            function()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield lambda: not thread.is_alive()
    thread.join(300)
    assert not thread.is_alive()
    assert not errors, errors


class DatabaseContract:
    """The contract. `schemes` is what the addresses of a kind begin with, and `kind` what `new_database` calls it."""

    kind = ""
    schemes = frozenset()

    @pytest.fixture
    def server(self, request, tmp_path):
        """Return what opens one and the same database again, as another server would."""
        address = new_database(self.kind, request, tmp_path)
        with contextlib.ExitStack() as opened:
            yield lambda busy=120.0: opened.enter_context(contextlib.closing(open_database(address, busy)))

    def test_the_list_shows_the_name_and_the_state_that_it_was_given(self, server):
        database = server()
        of = make(database, events=[decided(1, 1)])
        make(database, "taken")
        with database.writing() as writing:
            writing.relist(of, {"name": "f", "state": "archived", "changed_at": 2**62, "changed_by": "\u00fc"})
            writing.commit()
        with server().reading() as reading:
            assert reading.find("e") is None
            assert reading.find("f") == reading.find("#key of e")
            assert reading.experiments()[0] == Listed(of, "f", 1, "archived", 2**62, "\u00fc")
        with pytest.raises(TakenError), database.writing() as writing:
            writing.relist(of, {"name": "taken"})
        with database.reading() as reading:
            assert reading.find("f") is not None

    def test_a_deleted_one_leaves_a_line_and_its_id_is_not_given_again(self, server):
        database = server()
        of = make(database, events=[decided(1, 1), settled(2, 1), decided(3, 2)])
        for name in (snapshot(3), BlobName(BlobKind.INITIAL_STATE, "key of e")):
            keep(database, name)
        with database.writing() as writing:
            writing.relist(of, {"state": "deleted", "changed_at": 2**62, "changed_by": None})
            writing.commit()
        other = server()
        with other.writing() as writing:
            assert writing.lock(of) is None
            assert writing.lock(of, wait=False) is None
        with other.reading() as reading:
            assert (reading.find("e"), reading.find("#key of e"), reading.experiments()) == (None, None, [])
            [line] = reading.experiments(deleted=True)
        assert (line.id, line.name, line.state, line.changed_at) == (of, "e", "deleted", 2**62)
        again = make(other, events=[decided(1, 1)], key="another")  # of the same name
        assert again != of
        forget(database, of)
        with other.reading() as reading:
            assert [each.state for each in reading.experiments(deleted=True)] == ["gone"]
            assert (reading.events(of, 0, 9), reading.blob(snapshot())) == ([], None)
            assert reading.blob(BlobName(BlobKind.INITIAL_STATE, "key of e")) is None
        assert numbers(other, again) == [1]

    def test_a_deleted_one_is_forgotten_in_portions_of_about_so_many_bytes(self, server):
        database = server()
        events = [decided(seq, seq)._replace(data=bytes(1000)) for seq in range(1, 301)]
        of, other = make(database, events=events), make(database, "other", [decided(1, 1)])
        for seq in (1, 2, 3):
            keep_blob(database, snapshot(seq), bytes(700_000), 0)
        keep(database, snapshot(3, "key of other"), b"of another")
        with database.writing() as writing:
            writing.relist(of, {"state": "deleted", "changed_at": 1})
            writing.commit()
        portions = forget(database, of, 50_000, then=lambda: append_next(database, other))
        assert sum(portions) == 300 + 3 * 3  # rows of events, and chunks
        assert all(1 <= count <= 50_000 // 1000 for count in portions)
        assert portions[:9] == [1] * 9  # each chunk is larger than a portion
        assert len(numbers(database, other)) == 1 + len(portions) + 1  # which went on in between
        assert data_of(database, snapshot(owner="key of other")) == b"of another"

    def test_an_empty_one_holds_nothing(self, server):
        database = server()
        assert database.name == self.kind
        assert not database.migrate()
        with database.reading() as reading:
            assert (reading.find("e"), reading.find("#e"), reading.blob(graph("0"))) == (None, None, None)
            assert (reading.experiments(), reading.experiments(deleted=True)) == ([], [])
            assert (reading.tokens(), reading.clock()) == ([], 0)
            assert (reading.events(1, 0, 9), reading.rounds(1, 1, 9), reading.keyed(1, ["k"])) == ([], [], [])
            assert (reading.blob(snapshot()), reading.graph_bytes(1)) == (None, 0)

    def test_experiments_are_found_by_name_and_by_key_and_listed_letter_by_letter(self, server):
        database = server()
        made = {name: make(database, name) for name in ("b", "B", "a", "a-2", "a.1", "_")}
        make(database, "c", [decided(1, 1), decided(2, 2)])
        with server().reading() as reading:
            found = reading.find("a")
            assert found == Identity(made["a"], "key of a", "a", SPEC)
            assert reading.find("#key of a") == found
            assert reading.find("#a") is None
            assert reading.find("key of a") is None
            listed = reading.experiments()
        assert [each.name for each in listed] == ["B", "_", "a", "a-2", "a.1", "b", "c"]
        assert [each.head for each in listed] == [0] * 6 + [2]
        assert made.items() <= {each.name: each.id for each in listed}.items()

    def test_a_name_is_given_once_also_if_two_servers_want_it_at_the_same_time(self, server):
        database, other = server(), server()
        make(database)
        with pytest.raises(TakenError):
            make(database)

        def too_late():
            with pytest.raises(TakenError):
                make(other, "new")

        with database.writing() as writing:
            writing.create(Identity(0, "first", "new", "{}"))
            with beside(too_late) as done:
                time.sleep(0.2)
                assert not done()
                writing.commit()
        with database.reading() as reading:
            assert reading.find("new").key == "first"

    def test_an_event_comes_back_as_it_was_written(self, server):
        database = server()
        of = make(database)
        bare = Event(Kind.CREATED, 0, 0, 0, 0, seq=2, chain=b"\xff" * 16)
        with database.writing() as writing:
            writing.append({of: [FULL, bare]})
            writing.commit()
        with server().reading() as reading:
            assert reading.events(of, 0, 9) == [FULL, bare]
            assert reading.rounds(of, 0, 1) == [bare, FULL]
            assert reading.keyed(of, [FULL.key]) == [FULL]
            assert type(reading.events(of, 0, 1)[0].kind) is Kind

    def test_events_are_read_from_any_position_in_their_order(self, server):
        database = server()
        of, other = make(database), make(database, "other")
        for first in range(1, 301, 60):
            append(database, of, *[decided(seq, seq) for seq in range(first, first + 60)])
            append(database, other, *[decided(seq, seq) for seq in range(first, first + 60)])
        with database.reading() as reading:
            assert [each.seq for each in reading.events(of, 0, 3)] == [1, 2, 3]
            assert [each.seq for each in reading.events(of, 296, 9)] == [297, 298, 299, 300]
            assert reading.events(of, 300, 9) == []
            assert [each.seq for each in journal.since(reading, of, 10, page_size=29)] == list(range(11, 301))
            assert len(reading.experiments()) == 2

    def test_any_number_of_events_is_appended_at_once(self, server):
        database = server()
        for count in (1, 2, 7, 64, 65, 200):
            events = [decided(seq, seq, key=f"key {seq}")._replace(data=bytes(seq)) for seq in range(1, count + 1)]
            of = make(database, f"e{count}", events)
            with database.reading() as reading:
                assert reading.events(of, 0, 999) == events

    def test_an_error_shows_nothing_of_what_was_to_be_written(self, server):
        database = server()
        of = make(database, events=[decided(1, 1)])
        event = decided(1, 2)._replace(context="secret", data=b"secret")
        with pytest.raises(TakenError) as caught, database.writing() as writing:
            writing.append({of: [event]})
        assert "secret" not in "".join(traceback.format_exception(caught.value, chain=True))

    @pytest.mark.parametrize(
        "wrong",
        [
            [decided(4, 4)],  # a gap
            [decided(2, 4)],  # a number that is there
            [decided(3, 2)],  # a round that was decided
            [settled(3, 1, Kind.CANCELLED)],  # one that was settled
            [settled(3, 3, Kind.LATE), settled(4, 3, Kind.LATE)],
            [decided(3, 4, key="k")],  # a key that was used
            [decided(3, 4), decided(4, 4)],
        ],
        ids=lambda events: " ".join(f"{event.kind.name.lower()}-{event.seq}-{event.round}" for event in events),
    )
    def test_what_does_not_go_on_where_the_journal_ends_is_refused_with_all_beside_it(self, server, wrong):
        database = server()
        of, other = make(database), make(database, "other")
        append(database, of, decided(1, 1, key="k"), settled(2, 1))
        if wrong[0].round == 2:
            append(database, of, decided(3, 2))
            wrong = [decided(4, 2)]
        before = numbers(database, of)
        with database.writing() as writing:
            writing.lock(of)
            writing.lock(other)
            writing.keep_clock(77)
            with pytest.raises(TakenError):
                writing.append({other: [decided(1, 1, key="k")], of: wrong})
        assert numbers(database, of) == before
        assert numbers(database, other) == []
        with database.reading() as reading:
            assert reading.clock() == 0
        append(database, other, decided(1, 1, key="k"))  # of another experiment, it is another key

    def test_nothing_of_a_transaction_is_seen_before_its_commit_and_everything_after_it(self, server):
        database, other = server(), server()
        one, two = make(database, "one"), make(database, "two")
        with database.writing() as writing:
            writing.append({one: [decided(1, 1), settled(2, 1)], two: [decided(1, 1)]})
            keep_chunks(writing, snapshot(1), b"data", 0)
            keep_chunks(writing, graph("1"), b"graph", 0)
            writing.keep_clock(5)
            writing.keep_token(Token("id", "name", b"h" * 32, ("read",), 1))
            assert [each.head for each in writing.experiments()] == [2, 1]  # it sees its own
            assert writing.blob(snapshot()) == Blob(1, b"data")
            with other.reading() as reading:  # and no reader waits for it
                assert [each.head for each in reading.experiments()] == [0, 0]
                assert (reading.events(one, 0, 9), reading.blob(snapshot()), reading.blob(graph("1"))) == (
                    [],
                    None,
                    None,
                )
                assert (reading.clock(), reading.tokens()) == (0, [])
            writing.commit()
        with other.reading() as reading:
            assert [each.head for each in reading.experiments()] == [2, 1]
            assert (reading.blob(snapshot()), reading.clock()) == (Blob(1, b"data"), 5)
            assert reading.blob(graph("1")) == Blob(0, b"graph")

    @pytest.mark.parametrize("raises", [False, True])
    def test_what_is_not_committed_never_was(self, server, raises):
        database = server()
        of = make(database)
        with contextlib.suppress(ZeroDivisionError), database.writing() as writing:
            writing.append({of: [decided(1, 1)]})
            keep_chunks(writing, graph("1"), b"graph", 0)
            writing.create(Identity(0, "k", "other", "{}"))
            if raises:
                raise ZeroDivisionError
        assert numbers(database, of) == []
        with database.reading() as reading:
            assert [each.name for each in reading.experiments()] == ["e"]
            assert reading.blob(graph("1")) is None
        append(database, of, decided(1, 1))
        assert numbers(server(), of) == [1]

    def test_a_reader_sees_one_state_whatever_others_write(self, server):
        database = server()
        of = make(database, events=[decided(1, 1)])
        with database.reading() as reading:
            assert reading.events(of, 0, 9) == [decided(1, 1)]
            append(server(), of, settled(2, 1))
            assert reading.events(of, 0, 9) == [decided(1, 1)]
            assert reading.experiments()[0].head == 1
        assert numbers(database, of) == [1, 2]

    def test_one_server_locks_and_the_other_waits_and_then_sees_what_was_appended(self, server):
        database, other = server(), server()
        of, seen = make(database), []

        def second():
            with other.writing() as writing:
                head = writing.lock(of)
                seen.extend([head, *writing.events(of, 0, 9), *writing.keyed(of, ["k"])])
                writing.append({of: [decided(head + 1, head + 1)]})
                writing.commit()

        with database.writing() as writing:
            assert writing.lock(of) == 0
            with beside(second) as done:
                time.sleep(0.2)
                assert not done()
                writing.append({of: [decided(1, 1, key="k")]})
                writing.commit()
        assert seen == [1, decided(1, 1, key="k"), decided(1, 1, key="k")]
        assert numbers(database, of) == [1, 2]

    def test_many_servers_that_append_at_once_leave_one_order_without_gaps(self, server):
        database = server()
        of = make(database)

        def work(other, name):
            for number in range(10):
                with other.writing() as writing:
                    head = writing.lock(of)
                    writing.append({of: [decided(head + 1, head + 1, key=f"{name}-{number}")]})
                    writing.commit()

        with contextlib.ExitStack() as workers:
            for name in range(4):
                workers.enter_context(beside(functools.partial(work, server(), name)))
        assert numbers(database, of) == list(range(1, 41))
        with database.reading() as reading:
            keys = [event.key for event in reading.events(of, 0, 99)]
        for name in range(4):  # each server's own are in its order
            assert [key for key in keys if key.startswith(f"{name}-")] == [f"{name}-{number}" for number in range(10)]

    def test_who_waits_longer_than_the_busy_time_is_refused_and_may_come_again(self, server):
        database, hasty, patient = server(), server(0.2), server()
        of = make(database)
        with contextlib.ExitStack() as until_appended, database.writing() as writing:
            writing.lock(of)
            done = until_appended.enter_context(beside(lambda: append(patient, of, decided(1, 1))))
            begun = time.monotonic()
            with pytest.raises(ServiceError) as caught:
                append(hasty, of, decided(1, 1))
            assert time.monotonic() - begun > 0.1
            assert not done()  # who has more time still waits
        assert (caught.value.code, caught.value.status, caught.value.retry_after) == ("busy", 503, 1.0)
        append(hasty, of, decided(2, 2))
        assert numbers(database, of) == [1, 2]

    def test_the_events_of_rounds_come_as_decided_settled_and_told_too_late(self, server):
        database = server()
        of = make(database)
        expired = [decided(1, 1), decided(2, 2), settled(3, 1, Kind.EXPIRED), decided(4, 3), settled(5, 2)]
        append(database, of, *expired, settled(6, 1, Kind.LATE), settled(7, 3, Kind.CANCELLED))
        with database.reading() as reading:
            assert [each.seq for each in reading.rounds(of, 1, 2)] == [1, 3, 6, 2, 5]
            assert [each.kind for each in reading.rounds(of, 3, 3)] == [Kind.DECIDED, Kind.CANCELLED]
            assert [each.clock for each in reading.rounds(of, 1, 1)] == [1, 3, 6]
            assert reading.rounds(of, 4, 2**62) == []
            assert [each.seq for each in reading.spanning(of, 1, 1, 3, 9)] == [7, 5, 3]
            assert [each.seq for each in reading.spanning(of, 1, 1, 2, 1)] == [5]
            assert [each.seq for each in reading.spanning(of, 2, 1, 3, 9)] == [6]
            assert reading.spanning(of, 2, 2, 3, 9) == []

    def test_decisions_are_found_by_any_number_of_keys(self, server):
        database = server()
        of, other = make(database), make(database, "other", [decided(1, 1, key="k3")])
        append(database, of, *[decided(seq, seq, key=f"k{seq}" if seq % 2 else None) for seq in range(1, 200)])
        with database.reading() as reading:
            assert [each.seq for each in reading.keyed(of, ["k3", "K5", "k4", "'; --"])] == [3]
            assert {each.seq for each in reading.keyed(of, [f"k{seq}" for seq in range(5000)])} == set(range(1, 200, 2))
            assert reading.keyed(other, ["k1"]) == []

    def test_a_blob_is_complete_with_its_last_chunk_and_is_found_by_the_event_it_was_written_after(self, server):
        database = server()
        with database.writing() as writing:
            for number, data in enumerate([b"zero ", b"one ", b"two ", b"three"]):
                writing.keep_chunk(snapshot(5), number, data, 0, last=False)
            writing.keep_chunk(snapshot(5), 1, b"ONE ", 0, last=False)  # in the place of the other
            writing.keep_chunk(snapshot(7), 0, b"of one that is not complete", 0, last=False)
            writing.keep_chunk(snapshot(3), 0, b"small", 0, last=True)
            writing.keep_chunk(snapshot(4, "key of other"), 0, b"of another", 0, last=True)
            writing.keep_chunk(block(0, 4), 0, b"of another kind", 0, last=True)
            assert writing.blob(snapshot()) == Blob(3, b"small")
            assert not writing.hold(snapshot(5))
            writing.keep_chunk(snapshot(5), 2, b"and the rest", 0, last=True)  # the fourth was of one that was longer
            writing.commit()
        with server().writing() as writing:
            found = [writing.blob(snapshot(seq)) for seq in (2, 3, 4, 5, 9)]
            small, large = Blob(3, b"small"), Blob(5, b"zero ONE and the rest")
            assert found == [None, small, small, large, large]
            assert [writing.hold(snapshot(seq)) for seq in (3, 4, 5, 7)] == [True, False, True, False]

    def test_a_blob_of_any_size_comes_back_and_one_of_the_same_name_takes_its_place(self, server):
        database = server()
        for size in (0, 1, 2**18, 2**18 + 1, 700_001, 3):
            keep_blob(database, snapshot(1), data := bytes(range(256)) * (size // 256) + bytes(size % 256), 0)
            assert data_of(server(), snapshot()) == data

    def test_a_blob_is_not_completed_if_a_chunk_was_forgotten_meanwhile(self, server):
        database = server()
        with database.writing() as writing:
            writing.keep_chunk(graph("a"), 0, b"zero", 5, last=False)
            writing.commit()
        with database.writing() as writing:
            assert writing.forget_unused(6, 9, ["a" * 32]) == ["a" * 32]
            writing.commit()
        with database.writing() as writing, pytest.raises(TakenError):
            writing.keep_chunk(graph("a"), 1, b"rest", 7, last=True)
        assert data_of(server(), graph("a")) is None

    def test_the_last_two_snapshots_stay_and_what_no_snapshot_needs_is_forgotten(self, server):
        database = server()
        of = make(database)
        make(database, "other")
        keep(database, snapshot(1, "key of other"))

        def kept():
            with server().reading() as reading:
                found, before = [], LAST_SEQ
                while (last := reading.blob(snapshot(before))) is not None:
                    found.append(last.seq)
                    before = last.seq - 1
                return found

        assert forget(database, of) == []
        for seq, expected in [(2, [2]), (5, [5, 2]), (9, [9, 5]), (9, [9, 5]), (7, [9, 7]), (1, [9, 7])]:
            keep(database, snapshot(seq))
            forget(database, of)
            assert kept() == expected
        with database.writing() as writing:
            writing.keep_chunk(snapshot(3), 0, b"of one that was never completed", 0, last=False)
            writing.keep_chunk(snapshot(12), 0, b"of one that is being written", 0, last=False)
            writing.commit()
        assert forget(database, of) == [1]
        keep_blob(database, snapshot(9), bytes(600_000), 0)  # three chunks
        keep(database, snapshot(10))
        assert forget(database, of) == [1]
        keep(database, snapshot(11))
        assert forget(database, of, 300_000) == [2, 1]
        assert kept() == [11, 10]
        assert data_of(database, snapshot(owner="key of other")) == b"data"

    def test_an_old_blob_is_no_longer_found_once_a_part_of_it_is_forgotten(self, server):
        database = server()
        of = make(database)
        for seq in (1, 2, 3):
            keep_blob(database, snapshot(seq), bytes(600_000), 0)
        with database.writing() as writing:
            assert writing.forget(of, 1) == 1
            assert writing.blob(snapshot(1)) is None

    def test_a_block_is_found_as_it_was_at_a_snapshot_and_those_that_no_snapshot_needs_are_forgotten(self, server):
        database = server()
        of = make(database)
        for number, seq in ((0, 3), (0, 5), (0, 8), (1, 3), (1, 9)):
            keep(database, block(number, seq), b"%d at %d" % (number, seq))
        keep(database, block(0, 2, "key of other"), b"of another")
        assert forget(database, of) == []  # without a snapshot all are needed
        for seq in (6, 9):
            keep(database, snapshot(seq))
        assert sum(forget(database, of)) == 1
        found = [data_of(server(), block(0, seq)) for seq in (4, 5, 7, 8, 99)]
        assert found == [None, b"0 at 5", b"0 at 5", b"0 at 8", b"0 at 8"]
        assert [data_of(database, block(1, seq)) for seq in (8, 9)] == [b"1 at 3", b"1 at 9"]
        assert [data_of(database, block(2, 99)), data_of(database, block(0, 99, "key of other"))] == [
            None,
            b"of another",
        ]
        keep(database, snapshot(12))
        assert sum(forget(database, of)) == 3  # two blocks, and the snapshot of event 6
        assert [data_of(database, block(0, 7)), data_of(database, block(1, 8))] == [None, None]

    def test_what_was_cut_is_erased_in_portions_but_for_its_keys_for_a_while(self, server):
        database, change = server(), Event(Kind.CHANGED, -4, -4, 0, 4, seq=4, chain=b"4" * 16)
        of, other = make(database), make(database, "other")
        events = [Event(Kind.CREATED, 0, 0, 0, 1, seq=1, chain=b"1" * 16), *(decided(n, n, f"k{n}") for n in (2, 3))]
        events += [change, settled(5, 2), settled(6, 3), decided(7, 7, "k7")]
        with database.writing() as writing:
            writing.append({of: events, other: events})
            assert [writing.cut(of), writing.journal_bytes(of)] == [Cut(), 7 * 300 + 2 * 8 + 3 * 2]
            assert writing.erase_cut(of, 10_000, 99) == 0
            writing.cut_to(of, Cut(6, 3, b"6" * 16, b"kept"))
            writing.commit()
        portions = []
        with server().writing() as writing:
            while portions[-1:] != [0]:
                portions.append(writing.erase_cut(of, 500, 3))
            writing.commit()
        assert portions == [2, 2, 1, 0]  # the key of event 2, which was before the time
        with database.reading() as reading:
            assert reading.cut(of) == Cut(6, 3, b"6" * 16, b"kept")
            assert reading.events(of, 0, 9) == [events[0], change, events[-1]]
            assert reading.journal_bytes(of) == 3 * 300 + 2
            found = reading.keyed(of, ["k2", "k3", "k7"])
            assert sorted((event.key, event.seq) for event in found) == [("k3", 0), ("k7", 7)]
            assert reading.events(other, 0, 9) == events
            assert sorted(event.seq for event in reading.keyed(other, ["k2", "k3"])) == [2, 3]
        with database.writing() as writing:
            writing.relist(of, {"state": "deleted", "changed_at": 1})
            writing.commit()
        forget(database, of)
        with database.reading() as reading:
            assert reading.keyed(of, ["k3"]) == []

    def test_the_graphs_that_events_name_are_counted_once_each(self, server):
        database = server()
        of, other = make(database), make(database, "other")
        with database.writing() as writing:
            for letter, data in (("a", b"12345"), ("c", b"1")):
                keep_chunks(writing, graph(letter), data, 0)
            for number, data in enumerate([b"12", b"3"]):
                writing.keep_chunk(graph("b"), number, data, 0, last=number == 1)
            events = [decided(seq, seq)._replace(graph=letter * 32) for seq, letter in enumerate("aabb", 1)]
            writing.append({of: [*events, decided(5, 5)], other: [decided(1, 1)]})
            assert [writing.graph_bytes(of), writing.graph_bytes(other)] == [8, 0]

    def test_an_experiment_names_its_own_graph_and_those_of_its_events(self, server):
        database = server()
        with database.writing() as writing:
            of = writing.create(Identity(0, "k", "e", SPEC), "a" * 32)
            other = writing.create(Identity(0, "l", "other", SPEC))
            writing.append({of: [decided(1, 1)._replace(graph="b" * 32)]})
            writing.commit()
        with server().reading() as reading:
            assert [reading.names_graph(of, letter * 32) for letter in "abc"] == [True, True, False]
            assert not reading.names_graph(other, "a" * 32)

    def test_what_nothing_names_is_forgotten_once_it_is_old(self, server):
        database = server()
        of = make(database)
        for number, letter in enumerate("abcde"):
            keep(database, graph(letter), b"graph", number)
        for owner in ("key of e", "key of none"):
            keep(database, BlobName(BlobKind.INITIAL_STATE, owner), b"state", 0)
        keep(database, snapshot(1), now=0)
        with database.writing() as writing:
            writing.append({of: [decided(1, 1)._replace(graph="b" * 32)]})
            deleted = writing.create(Identity(0, "k", "naming", SPEC), "c" * 32)
            assert writing.hold(graph("a"), 7)  # from now on as if it were new
            assert not writing.hold(graph("z"), 7)
            writing.commit()
        with server().writing() as writing:
            assert writing.forget_unused(0, 9) == []
            assert writing.forget_unused(4, 9, [letter * 32 for letter in "abce"]) == []
            assert writing.forget_unused(4, 9) == ["d" * 32, "key of none"]
            writing.commit()
        found = [data_of(database, graph(letter)) for letter in "abcde"]
        assert found == [b"graph", b"graph", b"graph", None, b"graph"]
        assert data_of(database, snapshot()) == b"data"
        assert data_of(database, BlobName(BlobKind.INITIAL_STATE, "key of e")) == b"state"
        with database.writing() as writing:
            writing.relist(deleted, {"state": "deleted", "changed_at": 1})
            assert writing.forget_unused(8, 9, ["a" * 32, "c" * 32]) == ["a" * 32, "c" * 32]

    def test_a_large_graph_is_forgotten_a_few_chunks_at_a_time_and_is_not_found_from_the_first_on(self, server):
        database = server()
        keep_blob(database, graph("a"), bytes(900_000), 0)  # four chunks
        keep(database, graph("b"), b"small", 9)
        for count in range(2):
            with database.writing() as writing:
                assert writing.forget_unused(5, 2) == ["a" * 32]
                writing.commit()
            assert data_of(server(), graph("a")) is None, count
        with database.writing() as writing:
            assert writing.forget_unused(5, 2) == []
        assert data_of(database, graph("b")) == b"small"

    def test_what_is_held_is_not_forgotten_by_another_server_before_it_is_named(self, server):
        database, other = server(), server()
        of = make(database)
        keep(database, graph("a"), b"graph", 0)
        gone = []

        def collect():
            with other.writing() as writing:
                gone.extend(writing.forget_unused(5, 9))
                writing.commit()

        with database.writing() as writing:
            assert writing.hold(graph("a"))
            with beside(collect) as done:
                time.sleep(0.2)
                assert not done()
                writing.append({of: [decided(1, 1)._replace(graph="a" * 32)]})
                writing.commit()
        assert gone == []
        assert data_of(database, graph("a")) == b"graph"

    def test_the_clock_never_goes_back(self, server):
        for now, expected in [(0, 0), (2**40, 2**40), (7, 2**40), (2**40 + 1, 2**40 + 1)]:
            with server().writing() as writing:
                writing.keep_clock(now)
                writing.commit()
            with server().reading() as reading:
                assert reading.clock() == expected

    def test_tokens_come_oldest_first_and_are_revoked_once(self, server):
        database = server()
        young = Token("00000000", "j\u00fcng", bytes(range(32)), ("admin",), 2)
        old = Token("ffffffff", "old", b"\0" * 32, ("decide", "feedback"), 1)

        def keep(token):
            with database.writing() as writing:
                writing.keep_token(token)
                writing.commit()

        for token in (young, old):
            keep(token)
        keep(old._replace(revoked_at=5, name="another", scopes=("admin",)))
        keep(old._replace(revoked_at=9))
        keep(old)
        with server().reading() as reading:
            assert reading.tokens() == [old._replace(revoked_at=5), young]

    def test_closing_waits_for_the_transactions_of_other_threads(self, server):
        """A connection that comes back later would stay open, until Python collects it and warns."""
        database, begun, end = server(), threading.Event(), threading.Event()

        def read():
            with database.reading() as reading:
                begun.set()
                end.wait(120)
                assert reading.experiments() == []

        with ThreadPoolExecutor(2) as threads:
            reads = threads.submit(read)
            assert begun.wait(120)
            closes = threads.submit(database.close)
            with pytest.raises(TimeoutError):
                closes.result(timeout=0.2)
            end.set()
            reads.result(120)
            closes.result(120)


class TestSqlite(DatabaseContract):
    kind = "sqlite"
    schemes = frozenset({"sqlite"})


class TestPostgresql(DatabaseContract):
    kind = "postgresql"
    schemes = frozenset({"postgresql", "postgres"})


def test_every_kind_of_database_is_under_contract():
    contracts = [each for each in DatabaseContract.__subclasses__() if each.schemes]
    assert frozenset().union(*[each.schemes for each in contracts]) == set(KINDS)
    assert {each.kind for each in contracts} == set(get_args(Ready.model_fields["database"].annotation))
