"""What any kind of database must do: the docstrings of `sidelong.service.store.database`, as tests.

A new kind of database inherits `DatabaseContract`, says where an empty one is, and is done when this passes.
"""

import contextlib
import functools
import json
import threading
import time
import traceback
from typing import get_args

import pytest

from service.memory import MemoryDatabase
from service.stores import new_database
from sidelong.errors import ServiceError
from sidelong.service.http.status import Ready
from sidelong.service.store import journal
from sidelong.service.store.database import Deletion, Identity, Listed, Snapshot, TakenError, Token
from sidelong.service.store.journal import Event, Kind
from sidelong.service.store.kinds import KINDS, open_database

FULL = Event(
    Kind.DECIDED,
    round=1,
    at=2**62,
    clock=2**61 + 1,
    arm=199_999,
    probability=5e-324,
    graph="0" * 32,
    key="".join(map(chr, range(0x21, 0x7F))),
    context='{"name":"\u00fc \\u0000"}',
    losses=bytes(range(256)),
    observe=b"",
    seq=1,
    chain=b"\0" * 16,
)


#: What is stored of an experiment is text to a database.
SPEC = '{"description":"\u00fc \\u0000","seed":9007199254740991}'


def decided(seq, round_, key=None):
    return Event(Kind.DECIDED, round_, 1000 + seq, seq, 0, 0.5, key=key, seq=seq, chain=bytes([seq % 256]) * 16)


def settled(seq, round_, kind=Kind.TOLD):
    return Event(kind, round_, 1000 + seq, seq, 0, losses=b"x" * 8, seq=seq, chain=bytes([seq % 256]) * 16)


def make(database, name="e", events=()):
    """Store an experiment, and return its id."""
    with database.writing() as writing:
        of = writing.create(Identity(0, f"key of {name}", name, SPEC))
        if events:
            writing.append({of: events})
        writing.commit()
    return of


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
    def server(self, request, tmp_path, monkeypatch):
        """Return what opens one and the same database again, as another server would."""
        address = new_database(self.kind, request, tmp_path, monkeypatch)
        with contextlib.ExitStack() as opened:
            yield lambda busy=5.0: opened.enter_context(contextlib.closing(open_database(address, busy)))

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
        with database.writing() as writing:
            writing.save(of, Snapshot(3, b"", b"x"))
            writing.keep_initial_state(of, b"y")
            writing.commit()
        line = Deletion(of, "e", 2**62, None)
        with database.writing() as writing:
            writing.delete(of, line)
            writing.commit()
        other = server()
        with other.writing() as writing:
            assert writing.lock(of) is None
            assert writing.lock(of, wait=False) is None
        with other.reading() as reading:
            assert (reading.find("e"), reading.find("#key of e"), reading.experiments()) == (None, None, [])
            assert (reading.deletions(), reading.leftovers()) == ([line], [of])
        again = make(other, "f", events=[decided(1, 1)])
        assert again != of
        for _ in range(9):
            with database.writing() as writing:
                writing.forget_events(of, 2)
                writing.commit()
        with other.reading() as reading:
            assert (reading.deletions(), reading.leftovers()) == ([line], [])
            assert (reading.events(of, 0, 9), reading.snapshot(of), reading.initial_state(of)) == ([], None, None)
        assert numbers(other, again) == [1]

    def test_an_empty_one_holds_nothing(self, server):
        database = server()
        assert database.name == self.kind
        assert not database.migrate()
        with database.reading() as reading:
            assert (reading.find("e"), reading.find("#e"), reading.graph("0" * 32)) == (None, None, None)
            assert (reading.experiments(), reading.tokens(), reading.clock()) == ([], [], 0)
            assert (reading.events(1, 0, 9), reading.rounds(1, 1, 9), reading.keyed(1, ["k"])) == ([], [], [])
            assert reading.snapshot(1) is None

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
        database, other = server(), server(120.0)
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
        bare = Event(Kind.CREATED, 0, 0, 0, seq=2, chain=b"\xff" * 16)
        with database.writing() as writing:
            writing.keep_graph(FULL.graph, b"", 0)
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
            events = [decided(seq, seq, key=f"key {seq}")._replace(losses=bytes(seq)) for seq in range(1, count + 1)]
            of = make(database, f"e{count}", events)
            with database.reading() as reading:
                assert reading.events(of, 0, 999) == events

    def test_an_error_shows_nothing_of_what_was_to_be_written(self, server):
        database = server()
        of = make(database, events=[decided(1, 1)])
        event = decided(1, 2)._replace(context="secret", losses=b"secret")
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
            writing.save(one, Snapshot(1, b"c" * 16, b"data"))
            writing.keep_graph("1" * 32, b"graph", 0)
            writing.keep_clock(5)
            writing.keep_token(Token("id", "name", b"h" * 32, ("read",), 1))
            assert [each.head for each in writing.experiments()] == [2, 1]  # it sees its own
            assert writing.snapshot(one).data == b"data"
            with other.reading() as reading:  # and no reader waits for it
                assert [each.head for each in reading.experiments()] == [0, 0]
                assert (reading.events(one, 0, 9), reading.snapshot(one), reading.graph("1" * 32)) == ([], None, None)
                assert (reading.clock(), reading.tokens()) == (0, [])
            writing.commit()
        with other.reading() as reading:
            assert [each.head for each in reading.experiments()] == [2, 1]
            assert (reading.snapshot(one).data, reading.graph("1" * 32), reading.clock()) == (b"data", b"graph", 5)

    @pytest.mark.parametrize("raises", [False, True])
    def test_what_is_not_committed_never_was(self, server, raises):
        database = server()
        of = make(database)
        with contextlib.suppress(ZeroDivisionError), database.writing() as writing:
            writing.append({of: [decided(1, 1)]})
            writing.keep_graph("1" * 32, b"graph", 0)
            writing.create(Identity(0, "k", "other", "{}"))
            if raises:
                raise ZeroDivisionError
        assert numbers(database, of) == []
        with database.reading() as reading:
            assert [each.name for each in reading.experiments()] == ["e"]
            assert reading.graph("1" * 32) is None
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
        database, other = server(), server(120.0)
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
                workers.enter_context(beside(functools.partial(work, server(120.0), name)))
        assert numbers(database, of) == list(range(1, 41))
        with database.reading() as reading:
            keys = [event.key for event in reading.events(of, 0, 99)]
        for name in range(4):  # each server's own are in its order
            assert [key for key in keys if key.startswith(f"{name}-")] == [f"{name}-{number}" for number in range(10)]

    def test_who_waits_longer_than_the_busy_time_is_refused_and_may_come_again(self, server):
        database, hasty, patient = server(), server(0.2), server(120.0)
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
            assert [len(each) for each in journal.by_round(reading, of, page_size=2)] == [3, 2, 2]

    def test_decisions_are_found_by_any_number_of_keys(self, server):
        database = server()
        of, other = make(database), make(database, "other", [decided(1, 1, key="k3")])
        append(database, of, *[decided(seq, seq, key=f"k{seq}" if seq % 2 else None) for seq in range(1, 200)])
        with database.reading() as reading:
            assert [each.seq for each in reading.keyed(of, ["k3", "K5", "k4", "'; --"])] == [3]
            assert {each.seq for each in reading.keyed(of, [f"k{seq}" for seq in range(5000)])} == set(range(1, 200, 2))
            assert reading.keyed(other, ["k1"]) == []

    def test_the_last_two_snapshots_stay_and_one_of_a_number_is_replaced(self, server):
        database = server()
        of, other = make(database), make(database, "other")

        def save(experiment, seq, data=b"data"):
            with database.writing() as writing:
                writing.save(experiment, Snapshot(seq, bytes([seq]) * 16, data))
                writing.commit()

        def kept(experiment):
            found = []
            with server().reading() as reading:
                snapshot = reading.snapshot(experiment)
                while snapshot is not None:
                    found.append(snapshot.seq)
                    snapshot = reading.snapshot(experiment, before=snapshot.seq)
            return found

        save(other, 3)
        for seq, expected in [(2, [2]), (5, [5, 2]), (9, [9, 5]), (9, [9, 5]), (7, [9, 7]), (1, [9, 7])]:
            save(of, seq)
            assert kept(of) == expected
        save(of, 9, large := bytes(range(256)) * 4096)
        with database.reading() as reading:
            assert reading.snapshot(of) == Snapshot(9, b"\x09" * 16, large)
            assert reading.snapshot(of, before=9).data == b"data"
        assert kept(other) == [3]

    def test_the_graphs_that_events_name_are_counted_once_each(self, server):
        database = server()
        of, other = make(database), make(database, "other")
        with database.writing() as writing:
            for id_, data in (("a" * 32, b"12345"), ("b" * 32, b"123"), ("c" * 32, b"1")):
                writing.keep_graph(id_, data, 0)
            events = [decided(seq, seq)._replace(graph=graph) for seq, graph in enumerate("aabb", 1)]
            events = [each._replace(graph=each.graph * 32) for each in events]
            writing.append({of: [*events, decided(5, 5)], other: [decided(1, 1)]})
            assert [writing.graph_bytes(of), writing.graph_bytes(other)] == [8, 0]

    def test_graphs_that_nothing_names_are_found_once_they_are_old_and_forgotten(self, server):
        database = server()
        of = make(database)
        with database.writing() as writing:
            for number, id_ in enumerate("abcde"):
                writing.keep_graph(id_ * 32, b"graph", number)
            writing.append({of: [decided(1, 1)._replace(graph="b" * 32)]})
            writing.create(Identity(0, "k", "naming", json.dumps({"graph": "c" * 32})))
            writing.commit()
        with server().reading() as reading:
            assert reading.unused_graphs(4, 9) == ["a" * 32, "d" * 32]
            assert reading.unused_graphs(4, 1) == ["a" * 32]
            assert reading.unused_graphs(0, 9) == []
        with server().writing() as writing:
            assert not writing.keep_graph("a" * 32, b"again", 7)  # as if it were new
            assert [writing.hold_graph(id_ * 32) for id_ in "az"] == [True, False]
            assert writing.forget_graphs([id_ * 32 for id_ in "abcd"], 4) == ["d" * 32]
            writing.commit()
        with database.reading() as reading:
            found = [reading.graph(id_ * 32) for id_ in "abcde"]
            assert found == [b"graph", b"graph", b"graph", None, b"graph"]

    def test_the_state_that_an_experiment_begins_with_is_kept_once(self, server):
        database = server()
        of = make(database)
        with database.writing() as writing:
            writing.keep_initial_state(of, b"state")
            writing.commit()
        with server().reading() as reading:
            assert [reading.initial_state(of), reading.initial_state(of + 1)] == [b"state", None]
        with database.writing() as writing, pytest.raises(TakenError):
            writing.keep_initial_state(of, b"another")

    def test_a_snapshot_is_its_parts_and_what_comes_behind_and_parts_of_none_are_forgotten(self, server):
        database = server()
        of, other = make(database), make(database, "other")
        with database.writing() as writing:
            for number, data in enumerate([b"zero", b"one", b"two"]):
                writing.keep_part(of, 5, number, data)
                writing.keep_part(of, 4, number, b"of one that was not finished")
            writing.keep_part(of, 5, 1, b"ONE")
            writing.keep_part(other, 4, 0, b"of another")
            writing.commit()
        with database.reading() as reading:
            assert reading.snapshot(of) is None
        with database.writing() as writing:
            writing.save(of, Snapshot(5, b"c" * 16, b" and the rest"))
            assert writing.snapshot(of).data == b"zeroONEtwo and the rest"
            assert [writing.forget_parts(of, 2), writing.forget_parts(of, 2), writing.forget_parts(of, 2)] == [2, 1, 0]
            writing.commit()
        with server().reading() as reading:
            assert reading.snapshot(of) == Snapshot(5, b"c" * 16, b"zeroONEtwo and the rest")

    def test_a_block_is_found_as_it_was_at_a_snapshot_and_those_that_no_snapshot_needs_are_forgotten(self, server):
        database = server()
        of, other = make(database), make(database, "other")
        with database.writing() as writing:
            for number, seq in ((0, 3), (0, 5), (0, 8), (1, 3), (1, 9)):
                writing.keep_block(of, number, seq, b"%d at %d" % (number, seq))
            writing.keep_block(of, 0, 5, b"0 at 5 again")
            writing.keep_block(other, 0, 2, b"of another")
            assert writing.forget_blocks(of, 9) == 0  # without a snapshot all are needed
            writing.save(of, Snapshot(6, b"c" * 16, b""))
            writing.save(of, Snapshot(9, b"c" * 16, b""))
            assert [writing.forget_blocks(of, 9), writing.forget_blocks(of, 9)] == [1, 0]
            writing.commit()
        with server().reading() as reading:
            found = [reading.block(of, 0, seq) for seq in (4, 5, 7, 8, 99)]
            assert found == [None, b"0 at 5 again", b"0 at 5 again", b"0 at 8", b"0 at 8"]
            assert [reading.block(of, 1, 8), reading.block(of, 1, 9)] == [b"1 at 3", b"1 at 9"]
            assert [reading.block(of, 2, 99), reading.block(other, 0, 99)] == [None, b"of another"]
        with database.writing() as writing:
            writing.save(of, Snapshot(12, b"c" * 16, b""))
            assert [writing.forget_blocks(of, 1), writing.forget_blocks(of, 9)] == [1, 1]
            assert [writing.block(of, 0, 7), writing.block(of, 1, 8)] == [None, None]

    def test_a_graph_is_its_parts_and_what_comes_behind_and_old_parts_of_none_are_forgotten(self, server):
        database, id_ = server(), "a" * 32
        of = make(database)
        with database.writing() as writing:
            for number, data in enumerate([b"zero", b"one", b"two", b"of a longer one"]):
                writing.keep_graph_part(id_, number, data, 5)
            writing.keep_graph_part(id_, 1, b"ONE", 6)
            writing.keep_graph_part("b" * 32, 0, b"of one that is not finished", 7)
            assert writing.graph(id_) is None
            assert not writing.hold_graph(id_)
            assert writing.keep_graph(id_, b" and the rest", 7, parts=3)
            assert not writing.keep_graph(id_, b"another", 7, parts=1)
            assert writing.keep_graph("c" * 32, b"whole", 7)
            writing.append({of: [decided(1, 1)._replace(graph=id_), decided(2, 2)._replace(graph="c" * 32)]})
            writing.commit()
        with server().writing() as writing:
            assert writing.graph(id_) == b"zeroONEtwo and the rest"
            assert writing.graph_bytes(of) == len(b"zeroONEtwo and the rest") + len(b"whole")
            assert [writing.forget_graph_parts(7, 9), writing.forget_graph_parts(7, 9)] == [1, 0]
            assert [writing.forget_graph_parts(8, 9), writing.forget_graph_parts(8, 9)] == [1, 0]
            writing.commit()
        with server().reading() as reading:
            assert reading.graph(id_) == b"zeroONEtwo and the rest"

    def test_a_graph_goes_with_its_parts_and_is_not_kept_without_them(self, server):
        database, id_ = server(), "a" * 32
        with database.writing() as writing:
            writing.keep_graph_part(id_, 0, b"zero", 5)
            writing.keep_graph(id_, b"rest", 5, parts=1)
            writing.commit()
        with database.writing() as writing:
            assert writing.forget_graphs([id_], 6) == [id_]
            writing.commit()
        with database.writing() as writing, pytest.raises(TakenError):
            writing.keep_graph(id_, b"rest", 7, parts=1)
        with server().writing() as writing:
            assert writing.graph(id_) is None
            assert writing.forget_graph_parts(9, 9) == 0

    def test_a_graph_is_kept_once_and_the_first_stays(self, server):
        database = server()
        with database.writing() as writing:
            assert writing.keep_graph("a" * 32, b"\0first", 0)
            assert not writing.keep_graph("a" * 32, b"second", 0)
            writing.commit()
        with server().writing() as writing:
            assert not writing.keep_graph("a" * 32, b"third", 0)
            assert writing.keep_graph("b" * 32, b"other", 0)
            writing.commit()
        with database.reading() as reading:
            assert (reading.graph("a" * 32), reading.graph("b" * 32)) == (b"\0first", b"other")

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


class TestSqlite(DatabaseContract):
    kind = "sqlite"
    schemes = frozenset({"sqlite"})


class TestPostgresql(DatabaseContract):
    kind = "postgresql"
    schemes = frozenset({"postgresql", "postgres"})


class TestMemory(DatabaseContract):
    kind = "memory"

    def test_it_is_of_the_tests_alone(self):
        assert MemoryDatabase not in KINDS.values()


def test_every_kind_of_database_is_under_contract():
    contracts = [each for each in DatabaseContract.__subclasses__() if each.schemes]
    assert frozenset().union(*[each.schemes for each in contracts]) == set(KINDS)
    assert {each.kind for each in contracts} == set(get_args(Ready.model_fields["database"].annotation))
