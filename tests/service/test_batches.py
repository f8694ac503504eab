"""Several decisions, and feedback for several, in one request: all or nothing, or all that is right."""

import asyncio
import itertools
import random
import threading

import pytest

import sidelong as sl
from service.deployments import Deployment
from service.servers import decisions_of, in_columns
from service.stores import lose_snapshots, one_of, opened
from sidelong.errors import ServiceError
from sidelong.service.http import feedback
from sidelong.service.store.feedback import ToldItem
from sidelong.service.store.journal import Kind, count_of, since
from sidelong.service.store.rules import Decide, Tell

GRAPH = sl.graphs.cliques([3, 2])
_numbers = itertools.count(1)


def run(bench, *commands):
    """Return what became of commands in one transaction; what is refused is raised."""
    outcomes = bench.store.run(commands)
    for each in outcomes:
        if isinstance(each, Exception):
            raise each
    return outcomes[0] if len(commands) == 1 else outcomes


def many(bench, count, key=None, **how):
    made = run(bench, Decide("e", key=key, count=count, **how))
    return [one_of(made, place) for place in range(count)]


def counted(bench, kind):
    """Return how many decisions the events of a kind are about."""
    with bench.database.reading() as reading:
        events = list(since(reading, bench.store.identity("e").id, 1))
    return sum(count_of(event) for event in events if event.kind is kind)


def test_a_batch_of_decisions_is_as_many_rounds_of_one_agent(database):
    with opened(database) as bench:
        bench.create(graph=GRAPH)
        agent = sl.Agent("exp3.g++", GRAPH, seed=3)
        draws = random.Random(1)
        for _ in range(30):
            count = draws.randrange(1, 5)
            made = many(bench, count)
            mine = [agent.ask() for _ in range(count)]
            assert [(each.arm, each.probability) for each in made] == [(each.arm, each.probability) for each in mine]
            items = []
            for each, own in zip(made, mine, strict=True):
                losses = [draws.random() for _ in each.reveals]
                items.append(ToldItem(each.number, losses))
                agent.tell(own, losses)
            settled = run(bench, Tell(f"#{made[0].experiment}", items))
            assert [each.duplicate for each in settled] == [False] * count
        digest = bench.digest()
        lose_snapshots(bench.database)
        with opened(database) as again:
            assert again.digest() == digest


def test_what_was_settled_before_is_recognised_item_by_item(database):
    with opened(database) as bench:
        bench.create(graph=GRAPH, expire_after=10.0)
        told, cancelled, waits = many(bench, 3)
        of = f"#{told.experiment}"
        items = [ToldItem(each.number, [0.5] * len(each.reveals)) for each in (told, cancelled, waits)]
        run(bench, Tell(of, items[:1]))
        bench.cancel(cancelled)
        again = run(bench, Tell(of, [items[0], items[2]]))
        assert [each.duplicate for each in again] == [True, False]
        late = many(bench, 2)
        bench.hands.move(11)
        fresh = many(bench, 1)
        items += [ToldItem(each.number, [0.5] * len(each.reveals)) for each in (*late, *fresh)]
        for bad in (items[1], items[3], ToldItem(99, [0.5])):  # cancelled, expired, never made
            with pytest.raises(ServiceError) as caught:
                run(bench, Tell(of, [items[0], bad, items[5]]))
            assert caught.value.path == "body.ids.1"
        assert counted(bench, Kind.LATE) == 0
        with pytest.raises(ServiceError, match="twice"):
            run(bench, Tell(of, [items[5], items[5]]))
        different = items[0]._replace(losses=[0.75] * len(told.reveals))
        outcomes = run(bench, Tell(of, [*items, ToldItem(99, [0.5]), different, items[5]], partial=True))
        codes = [getattr(each, "code", each) for each in outcomes]
        assert [each if isinstance(each, str) else each.duplicate for each in codes] == [
            *[True, "cancelled", True, "expired", "expired", False],
            *["not_found", "conflict", True],
        ]
        assert counted(bench, Kind.LATE) == 2  # kept, as feedback for one alone is


def test_a_graph_of_an_item_that_does_not_fit_is_found_before_anything_is_learned(database):
    with opened(database) as bench:
        bench.create(graph=GRAPH)
        made = many(bench, 2)
        of, digest = f"#{made[0].experiment}", bench.digest()
        first = ToldItem(1, [0.5] * len(made[0].reveals))
        for graph in (sl.graphs.nested(4), sl.FeedbackGraph.from_edges([[0, 1]], 5, self_loops=False)):
            with pytest.raises(ServiceError) as caught:
                run(bench, Tell(of, [first, ToldItem(2, [0.5], graph)]))
            assert caught.value.path == "body.graph_of.1"
            assert bench.digest() == digest
        full = ToldItem(2, [0.5] * 5, sl.graphs.complete(5))
        assert len(run(bench, Tell(of, [first, full]))) == 2


@pytest.fixture
def experiments(server):
    """Return the names of two experiments of this test alone."""
    names = [f"e{next(_numbers)}" for _ in range(2)]
    for name in names:
        body = {"name": name, "learner": "exp3.g++", "graph": {"name": "cliques", "sizes": [3, 2]}, "seed": 1}
        assert server.post("/v1/experiments", body)[0] == 201
    return names


def items_of(server, name, count, **headers):
    status, reply = server.post(f"/v1/experiments/{name}/decisions", {"count": count}, **headers)
    assert status == (200 if reply["duplicate"] else 201)
    return decisions_of(reply)


def test_graphs_of_a_batch_are_built_side_by_side(tmp_path, monkeypatch):
    begun, both, build = [], threading.Barrier(2, timeout=60), feedback.graph_of_round

    async def graph_of_round(message, call, of):
        begun.append(message)
        await asyncio.to_thread(both.wait)  # until the other one has begun
        return await build(message, call, of)

    monkeypatch.setattr(feedback, "graph_of_round", graph_of_round)
    with Deployment(f"sqlite:///{tmp_path}/graphs.db").running() as deployment:
        each = deployment.create("keyless")
        made = each.decide(4)
        graphs = [{"name": name, "n": 5} for name in ("complete", "self_loops")]
        items = [{"id": one["id"], "losses": [0.5] * size} for one, size in zip(made, (5, 1, 5, 5), strict=True)]
        body = in_columns(items, graphs=graphs, graph_of=[0, 1, 0, 0])
        assert deployment.post("/v1/feedback", body).ok().body["learned"] == 4
    assert len(begun) == 2


def test_decisions_of_two_experiments_are_not_told_together(server, experiments):
    made = [items_of(server, name, 1)[0] for name in experiments]
    items = [{"id": each["id"], "losses": [0.5] * len(each["reveals"])} for each in made]
    for partial in (False, True):
        status, problem = server.post("/v1/feedback", in_columns(items, partial=partial))
        assert (status, problem["code"], problem["path"]) == (404, "not_found", "body.ids.1")
        for id_ in ("0" * 16 + "-1", "what"):
            status, problem = server.post("/v1/feedback", in_columns([{"id": id_, "losses": [0.5]}], partial=partial))
            assert (status, problem["code"], problem["path"]) == (404, "not_found", "body.ids.0")
    far = {"id": f"{made[0]['id'][:17]}99", "losses": [0.5]}
    status, reply = server.post("/v1/feedback", in_columns([items[0], far], partial=True))
    assert (status, reply["learned"]) == (200, 1)
    assert [(each["code"], each["path"]) for each in reply["problems"]] == [("not_found", "body.ids.1")]


def test_a_batch_has_at_least_one_decision_and_not_too_many(server, experiments):
    (made,) = items_of(server, experiments[0], 1)
    assert server.post("/v1/feedback", {"ids": [], "sizes": [], "losses": []})[0] == 422
    item = {"id": made["id"], "losses": [0.5]}
    status, problem = server.post("/v1/feedback", in_columns([item] * 1001))
    assert (status, problem["code"], problem["path"]) == (413, "too_large", "body.ids")
    assert server.post("/v1/feedback", in_columns([item] * 10_001))[0] == 422
