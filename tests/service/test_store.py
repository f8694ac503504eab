"""The rules of the store, on any database: what is learned, what is refused, and that a replay gives equal bits."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import sidelong as sl
from service.stores import last_snapshot, lose_snapshots, one_of, opened, tell_one
from sidelong.errors import ServiceError
from sidelong.learners import uniform
from sidelong.service.http import views
from sidelong.service.store.clock import Clock
from sidelong.service.store.counters import OWN_GRAPH
from sidelong.service.store.database import BlobKind, BlobName, keep_blob
from sidelong.service.store.journal import Kind
from sidelong.service.store.rules import Decide

GRAPH = sl.graphs.cliques([3, 2])


def refused(code, function, *arguments, **more):
    with pytest.raises(ServiceError) as caught:
        function(*arguments, **more)
    assert caught.value.code == code, caught.value
    return caught.value


def test_a_decision_is_what_the_agent_alone_would_have_made(bench):
    bench.create(graph=GRAPH, seed=11)
    agent = sl.Agent("exp3.g++", GRAPH, seed=11)
    for number in range(40):
        made, expected = bench.decide(), agent.ask()
        assert (made.arm, made.probability) == (expected.arm, expected.probability)
        assert made.reveals == expected.reveals.tolist()
        losses = [(number * 7 + arm * 3) % 10 / 10 for arm in made.reveals]
        bench.tell(made, losses)
        agent.tell(expected, losses)


def test_a_key_that_comes_twice_in_one_transaction_gives_one_decision(bench):
    bench.create()
    one, two = bench.store.run([Decide("e", key="b"), Decide("e", key="b")])
    assert one_of(one)._replace(duplicate=True) == one_of(two)
    assert [one.duplicate, two.duplicate] == [False, True]
    assert bench.counts()[Kind.DECIDED] == 1


def test_a_batch_refuses_only_what_is_wrong_in_it(bench):
    bench.create()
    made = bench.decide()
    name = f"#{made.experiment}"
    outcomes = bench.store.run(
        [
            tell_one(name, 1, [0.5] * 9),
            Decide("nothing"),
            tell_one(name, 1, [0.5] * len(made.reveals)),
            tell_one(name, 7, [0.5]),
        ]
    )
    assert [getattr(each, "code", "fine") for each in outcomes] == ["invalid", "not_found", "fine", "not_found"]


@pytest.mark.parametrize("saved", [False, True])
def test_the_clock_falls_behind_neither_the_journal_nor_a_snapshot_after_a_kill(database, saved):
    with opened(database) as bench:
        bench.create(expire_after=60.0)
        bench.hands.move(100)
        bench.decide()
        if saved:
            bench.store.save(least=1)  # and the clock is not written
    with opened(database) as bench:
        bench.decide()
        assert bench.store.view("e", lambda each, _: each.pending.moment(2)) == 100_000
        bench.hands.move(60)
        assert bench.expire() == 2


def test_a_clock_that_two_threads_move_does_not_go_back():
    slow, inside, further = [], threading.Event(), threading.Event()

    def steady():
        if threading.current_thread() in slow:
            inside.set()
            further.wait(120)
        return 0.0

    clock = Clock(steady=steady)
    slow.append(threading.Thread(target=clock.saw, args=(5,)))
    slow[0].start()
    inside.wait()
    fast = threading.Thread(target=clock.saw, args=(100,))
    fast.start()
    fast.join(0.1)
    further.set()
    slow[0].join()
    fast.join()
    assert clock.now().clock == 100


def test_a_graph_of_one_decision_and_a_graph_known_only_afterwards(bench):
    bench.create(graph=sl.graphs.self_loops(4))
    made = bench.decide(graph=sl.graphs.complete(4))
    assert made.reveals == [0, 1, 2, 3]
    bench.tell(made)
    later = bench.decide()
    assert len(later.reveals) == 1
    bench.tell(later, [0.5] * 4, graph=sl.graphs.complete(4))
    assert bench.tell(later, [0.5] * 4, graph=sl.graphs.complete(4)).duplicate
    seen = views.decision(bench.store, f"#{later.experiment}", 2)
    assert seen.reveals == [0, 1, 2, 3]
    assert seen.observe_probabilities == pytest.approx([1.0] * 4)
    assert bench.store.view("e", lambda experiment, _: experiment.counters.counts[OWN_GRAPH]) == 1


@pytest.mark.parametrize(
    ("database", "learner", "options"),
    [  # what a database keeps does not depend on the learner
        ("sqlite", "exp3.g++", {}),
        ("postgresql", "glance", {"certificate": True}),
        ("sqlite", "exp3.g++", {"refresh": "epoch"}),
        ("sqlite", "glance", {}),
        ("sqlite", "glance", {"certificate": True}),
        ("sqlite", "ts-n", {}),
        ("sqlite", "ucb-n", {}),
    ],
    indirect=["database"],
)
def test_the_state_is_the_replay_of_the_journal_bit_for_bit(database, learner, options):
    draws, expired = np.random.default_rng(5), []
    with opened(database) as bench:
        bench.create(graph=GRAPH, learner=learner, expire_after=5.0, **options)
        open_ = []
        for _ in range(60):
            bench.hands.move(1.0)
            open_.append(bench.decide())
            bench.expire()
            if draws.random() < 0.3:
                continue
            made = open_.pop(int(draws.integers(len(open_))))
            try:
                if draws.random() < 0.1:
                    bench.cancel(made)
                else:
                    bench.tell(made, draws.integers(0, 2, len(made.reveals)).astype(float).tolist())
            except ServiceError as error:
                expired.append(error.code)
            if draws.random() < 0.1:
                bench.store.save(least=1)
        assert set(expired) == {"expired"}
        digest = bench.digest()
        bench.store.save(least=1)
    with opened(database) as bench:
        assert bench.digest() == digest  # from the snapshot
        lose_snapshots(bench.database)
    with opened(database) as bench:
        assert bench.digest() == digest  # from the journal alone


def test_a_snapshot_of_a_journal_that_was_told_something_else_is_refused(database):
    """Two journals that differ in one loss: their last events say the same, but each has a hash of all before it."""
    with opened(database) as bench:
        for name, loss in (("mine", 0.2), ("other", 0.8)):
            bench.create(name)
            bench.tell(bench.decide(name), loss)
            bench.decide(name)
        bench.store.save(least=1)
        mine, other = (bench.store.identity(name).key for name in ("mine", "other"))
        with bench.database.reading() as reading:
            snapshot = last_snapshot(reading, other)
        lose_snapshots(bench.database)
        keep_blob(bench.database, BlobName(BlobKind.SNAPSHOT, mine, seq=snapshot.seq), snapshot.data, 0)
    with opened(database) as bench:
        assert "snapshot" in str(refused("refused", bench.decide, "mine"))
        bench.decide("other")


def test_an_experiment_names_the_version_of_its_learner(bench, monkeypatch):
    monkeypatch.setattr(uniform, "LEARNER", replace(uniform.LEARNER, version=3))
    first, _ = bench.create(learner="uniform")
    assert first.spec.learner_version == 3
    assert bench.create("other")[0].spec.learner_version == 1
    monkeypatch.undo()
    assert bench.create(learner="uniform") == (first, False)  # it is still the one that was asked for
