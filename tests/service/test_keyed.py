"""Experiments with keys: each plays as its single agent, through batches, late feedback, restarts and two servers."""

import collections
import contextlib
import itertools
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest

import sidelong as sl
from service.stores import lose_snapshots, opened, tell_one
from sidelong.errors import ServiceError
from sidelong.service.http import export
from sidelong.service.store import journal, snapshots
from sidelong.service.store.feedback import ToldItem
from sidelong.service.store.journal import Kind, since
from sidelong.service.store.lifecycle import Holdout
from sidelong.service.store.rules import Cancel, Decide, Tell

GRAPHS = [sl.graphs.nested(4), sl.graphs.star(4, hub=1), sl.graphs.cliques([2, 2]).as_arcs()]
KEYS = [f"sku-{k}" for k in range(12)]


def run(bench, command):
    """Return what became of a command; what is refused is raised."""
    (outcome,) = bench.store.run([command])
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def ask(bench, keys, key=None, **how):
    return run(bench, Decide("e", keys=keys, key=key, **how))


def events(bench):
    with bench.database.reading() as reading:
        return list(since(reading, bench.store.identity("e").id, 1))


def told(made, place, loss=0.5, graph=None):
    """Return feedback for one of some decisions: this loss for every arm that it reveals."""
    arm = int(made.draws.arms[place])
    return ToldItem(int(made.draws.numbers[place]), [loss] * (graph or made.graph).row(arm).size, graph)


def rebuilt(bench):
    """Return the digest of what replaying the journal gives."""
    with bench.database.reading() as reading:
        return snapshots.digest(bench.store.named("e").rebuilt(reading))


@pytest.fixture
def bench_with_keys(tmp_path):
    with opened(f"sqlite:///{tmp_path}/keys.db") as bench:
        bench.create(keyed=True, graph=GRAPHS[0])
        yield bench


class Given(NamedTuple):
    """A decision that no learner made."""

    arm: int
    graph: sl.FeedbackGraph
    probability: float


class KeyedTwins:
    """An experiment with keys, and an agent for each key that must do the same."""

    def __init__(self, bench, learner="exp3.g++", holdout=None, **options):
        self.bench = bench
        more = {} if holdout is None else {"holdout": holdout}
        identity, _ = bench.create(graph=GRAPHS[0], learner=learner, keyed=True, seed=5, **options, **more)
        self.holdout = None if holdout is None else Holdout(**holdout)
        self.rounds = collections.Counter()  # of each key, whoever decided
        self.frozen = False
        self.of = f"#{identity.key}"
        self.family = sl.Family(learner, GRAPHS[0], seed=5, **options)
        self.agents = {}
        self.options = learner, options
        self.waiting = {}  # by number: the key, and the agent's decision
        self.round_of = {}  # by number

    def agent(self, key):
        learner, options = self.options
        return self.agents.setdefault(key, sl.Agent(learner, GRAPHS[0], seed=self.family.seed_of(key), **options))

    def ask(self, keys, graph=None):
        made = ask(self.bench, keys, graph=graph)
        for number, key, round_, arm, probability, by in made.draws.listed():
            self.rounds[key] += 1
            assert round_ == self.rounds[key]
            if by == "learner":
                decision = self.agent(key).ask(graph)
                p = np.float64(decision.probability)
                if self.holdout is not None:
                    p = self.holdout.mixed(p, decision.arm == self.holdout.arm)
            elif by == "holdout":
                p = self.holdout.mixed(self.agent(key).outlook(graph), np.arange(4) == self.holdout.arm)
                decision = Given(self.holdout.arm, graph or GRAPHS[0], p[self.holdout.arm])
                p = np.float64(decision.probability)
            else:
                assert (by, self.frozen) == ("frozen", True)
                p, decision = np.float64(1.0), Given(2, graph or GRAPHS[0], 1.0)
            assert arm == decision.arm
            assert np.float64(probability).tobytes() == p.tobytes()
            self.waiting[number] = key, decision
            self.round_of[number] = round_
        return made

    def tell(self, numbers, rng, graph=None):
        items = []
        for number in numbers:
            _, decision = self.waiting[number]
            losses = rng.random((graph or decision.graph).row(decision.arm).size)
            items.append(ToldItem(number, losses.tolist(), graph))
        settled = run(self.bench, Tell(self.of, items))
        assert [each.duplicate for each in settled] == [False] * len(items)
        assert [each.round for each in settled] == [self.round_of[number] for number in numbers]
        learned = {number: each.learned for number, each in zip(numbers, settled, strict=True)}
        for item in sorted(items):  # of one key in the order in which they were made
            key, decision = self.waiting.pop(item.number)
            assert learned[item.number] == (not self.frozen and not isinstance(decision, Given))
            if learned[item.number]:
                self.agents[key].tell(decision, item.losses, graph)
            elif not isinstance(decision, Given):
                self.agents[key].cancel(decision)
        return items

    def freeze(self, on):
        self.frozen = on
        self.bench.change("e", state="frozen", play=2) if on else self.bench.change("e", state="running")

    def cancel(self, number):
        assert run(self.bench, Cancel(self.of, number)).round == self.round_of[number]
        key, decision = self.waiting.pop(number)
        if not isinstance(decision, Given):
            self.agents[key].cancel(decision)


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("learner", "options"),
    [("exp3.g++", {}), ("exp3.g++", {"refresh": "epoch"}), ("exp3.g++", {"holdout": {"arm": 1, "share": 0.3}})],
)
def test_each_key_plays_as_its_single_agent_through_batches_late_feedback_and_restarts(database, learner, options):
    rng = np.random.default_rng(3)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(opened(database))
        twins = KeyedTwins(first, learner, **options)
        for turn in range(60):
            graph = GRAPHS[rng.integers(3)] if turn % 4 == 0 else None
            twins.ask(rng.choice(KEYS, rng.integers(1, 8)).tolist(), graph)  # some keys more than once
            some = rng.permutation(list(twins.waiting))[: rng.integers(1, 9)].tolist()
            after = GRAPHS[rng.integers(3)] if turn % 5 == 0 and "refresh" not in options else None
            if some:
                twins.tell(some, rng, after)
            if twins.waiting and turn % 7 == 3:
                twins.cancel(min(twins.waiting))
            if turn % 20 == 9:
                twins.bench.store.save(least=1)
            if turn % 20 in {7, 12}:
                twins.freeze(turn % 20 == 7)
            if turn % 20 == 15:  # what a new server makes of a snapshot and of the journal behind it
                digest = twins.bench.digest()
                twins.bench = stack.enter_context(opened(database))
                assert twins.bench.digest() == digest
        digest = twins.bench.digest()
        lose_snapshots(first.database)
        with opened(database) as again:  # from the journal alone
            assert again.digest() == digest
        assert first.digest() == digest  # which catches up with the others


@pytest.mark.postgresql
def test_two_servers_take_turns_at_the_same_keys(database):
    rng = np.random.default_rng(4)
    with opened(database) as one, opened(database) as two:
        twins = KeyedTwins(one)
        for _, bench in zip(range(30), itertools.cycle([two, one]), strict=False):
            twins.bench = bench
            twins.ask(rng.choice(KEYS, 5).tolist())
            twins.tell(rng.permutation(list(twins.waiting))[:4].tolist(), rng)
        assert one.digest() == two.digest()


def test_what_was_settled_before_is_found_in_the_journal(database):
    with opened(database) as bench:
        bench.create(keyed=True, expire_after=10.0)
        made = ask(bench, KEYS[:6])
        of = f"#{made.experiment}"
        items = [told(made, k) for k in range(6)]
        run(bench, Tell(of, [items[5], items[0]]))  # an event that spans those between
        run(bench, Cancel(of, 2))
        run(bench, tell_one(of, *items[2][:3]))
        bench.hands.move(11)
        assert bench.expire() == 2
        for _ in range(6):  # longer than a key remembers
            more = ask(bench, KEYS[:6])
            run(bench, Tell(of, [told(more, k) for k in range(6)]))
        with opened(database, bench.hands) as other:
            for each in (bench, other):
                again = run(each, Tell(of, [items[0], items[2], items[5]]))
                assert [one.duplicate for one in again] == [True] * 3
                arms = made.graph.row(int(made.draws.arms[0])).tolist()
                by_arm = dict(zip(map(str, arms), items[0].losses, strict=True))
                assert run(each, tell_one(of, 1, by_arm)).duplicate
                assert run(each, Cancel(of, 2)).duplicate
                for command, code in (
                    (tell_one(of, 1, [0.75] * len(items[0].losses)), "conflict"),
                    (tell_one(of, 1, items[0].losses, sl.graphs.complete(4)), "conflict"),
                    (tell_one(of, *items[1][:3]), "cancelled"),
                    (tell_one(of, *items[3][:3]), "expired"),
                    (Cancel(of, 1), "told"),
                    (Cancel(of, 4), "expired"),
                    (Cancel(of, 999), "not_found"),
                ):
                    with pytest.raises(ServiceError) as caught:
                        run(each, command)
                    assert caught.value.code == code
        kinds = [event.kind for event in events(bench)]
        assert kinds.count(Kind.LATE) == 1  # once, from both servers
        assert kinds.count(Kind.EXPIRED) == 1
        counts = bench.counts()
        assert (counts[Kind.EXPIRED], counts[Kind.LATE], counts[Kind.TOLD]) == (2, 1, 39)


def test_what_comes_too_late_is_checked_like_all_else(database):
    with opened(database) as bench:
        bench.create(keyed=True, expire_after=10.0)
        made = ask(bench, KEYS[:1])
        bench.hands.move(11)
        item = told(made, 0)
        wrong = item._replace(losses=[5.0, *item.losses[1:]])
        for bad, path in ((wrong, "body.losses.0"), (item._replace(arm=int(made.draws.arms[0]) + 1), "body.arm")):
            with pytest.raises(ServiceError) as caught:
                run(bench, tell_one(f"#{made.experiment}", *bad))
            assert (caught.value.code, caught.value.path) == ("invalid", path)
        assert Kind.LATE not in [event.kind for event in events(bench)]
        with pytest.raises(ServiceError, match="kept as late"):
            run(bench, tell_one(f"#{made.experiment}", *item))
        assert [event.kind for event in events(bench)][-1] is Kind.LATE


def test_what_an_outcome_revealed_of_absent_arms_is_left_out(database):
    with opened(database) as bench:
        bench.create(keyed=True, learner="exp3-set", expire_after=10.0)
        shown = sl.graphs.complete(4)  # which only the outcome showed
        for by_arm in (False, True):
            made = ask(bench, KEYS[:2], available=[0, 1, 3])
            losses = {str(arm): 0.25 for arm in range(4)} if by_arm else [0.25] * 4
            item = ToldItem(int(made.draws.numbers[0]), losses, shown)
            for duplicate in (False, True):
                assert run(bench, tell_one(f"#{made.experiment}", *item)).duplicate is duplicate
            assert journal.read_settled(events(bench)[-1]).losses.tolist() == [0.25] * 3
        bench.hands.move(11)
        with pytest.raises(ServiceError, match="kept as late"):
            run(bench, tell_one(f"#{made.experiment}", int(made.draws.numbers[1]), [0.25] * 4, shown))
        assert journal.read_settled(events(bench)[-1]).losses.tolist() == [0.25] * 3


def test_what_is_told_too_late_expires_alone_and_the_rest_of_the_night_in_its_own_turn(database):
    with opened(database) as bench:
        bench.create(keyed=True, expire_after=10.0)
        made = ask(bench, KEYS)
        of = f"#{made.experiment}"
        bench.hands.move(11)
        for command in (Cancel(of, 2), tell_one(of, *told(made, 4)[:3]), Tell(of, [told(made, 7)])):
            with pytest.raises(ServiceError) as caught:
                run(bench, command)
            assert caught.value.code == "expired"
        counts = bench.counts()
        assert counts[Kind.EXPIRED] == 3
        assert counts[Kind.LATE] == 1  # nothing is kept of a batch that is refused whole
        assert bench.expire() == 9
        with opened(database, bench.hands) as other:
            assert other.digest() == bench.digest()


def test_numbers_that_are_far_apart_are_settled_by_events_that_span_few_others(database):
    with opened(database) as bench:
        bench.create(keyed=True)
        made = ask(bench, [f"k{n}" for n in range(400)])
        of = f"#{made.experiment}"
        run(bench, Tell(of, [told(made, 0), told(made, 300), told(made, 1)]))
        assert [(each.round, each.last) for each in events(bench)[1:]] == [(1, 2), (301, 301)]
        assert [each.duplicate for each in run(bench, Tell(of, [told(made, 300), told(made, 1)]))] == [True, True]
        run(bench, Tell(of, [told(made, k) for k in range(399, 9, -9)]))  # one of nine
        assert len(events(bench)) == 4
        assert rebuilt(bench) == bench.digest()


def test_the_log_has_a_row_for_each_decision_by_number_with_the_graph_of_its_round(bench_with_keys, tmp_path):
    bench, graph = bench_with_keys, sl.graphs.complete(4)
    first, second = ask(bench, KEYS[:3], graph=graph), ask(bench, KEYS[:2])
    of = f"#{first.experiment}"
    run(bench, Cancel(of, 1))
    run(bench, Tell(of, [told(second, 1), told(first, 2)]))
    run(bench, Tell(of, [told(first, 1, 0.25, sl.graphs.self_loops(4))]))
    export.write(bench.store, "e", tmp_path / "log.parquet")
    rows = pq.read_table(tmp_path / "log.parquet").to_pylist()
    assert [row["decision"] for row in rows] == [f"{first.experiment}-{number}" for number in range(1, 6)]
    assert [row["status"] for row in rows] == ["cancelled", "told", "told", "outstanding", "told"]
    assert rows[1]["observed"] == [rows[1]["action"]]  # by the graph that came with the outcome
    assert rows[2]["observed"] == [0, 1, 2, 3]
    assert rows[4]["observed"] == GRAPHS[0].row(rows[4]["action"]).tolist()


def test_the_log_reads_the_columns_of_a_batch_once_and_not_for_each_of_its_keys(bench_with_keys, tmp_path, monkeypatch):
    bench = bench_with_keys
    made = ask(bench, [f"k{n}" for n in range(400)])
    run(bench, Tell(f"#{made.experiment}", [told(made, k) for k in range(200)]))
    read, columns_of = [], journal.read_columns
    monkeypatch.setattr(journal, "read_columns", lambda event: read.append(event) or columns_of(event))
    export.write(bench.store, "e", tmp_path / "log.parquet")
    assert pq.read_table(tmp_path / "log.parquet").num_rows == 400
    assert len(read) < 10
