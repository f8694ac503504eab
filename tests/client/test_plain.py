"""Losses that were scaled where they come from are not scaled once more by an experiment that has a scale."""

import asyncio
import itertools

import numpy as np
import pytest

import sidelong as sl
from service.servers import decisions_of, in_columns
from sidelong.errors import LossError
from sidelong.service.client import connect_async

ORDERS = sl.outcomes.StockOrders(3, holding=1, shortage=4)
EUROS = sl.outcomes.Scale(best=0, worst=2)
GRAPH = {"name": "nested", "n": ORDERS.graph.n_arms}
_numbers = itertools.count(1)


def made(server, *, scaled=True, keyed=False):
    """Return the name of an experiment, whose scale the service knows."""
    name = f"p{next(_numbers)}"
    scale = {"scale": {"best": 0.0, "worst": 2.0}} if scaled else {}
    body = {"name": name, "learner": "exp3-set", "graph": GRAPH, "seed": 2, "keyed": keyed, **scale}
    assert server.post("/v1/experiments", body)[0] == 201
    return name


def table(batch):
    ids = np.repeat(batch.ids, np.diff(batch.offsets))
    return {"decision": ids, "arm": batch.reveals, "loss": np.ones(batch.reveals.size)}


def outcomes(batch):
    return ORDERS.outcomes(batch.arms, np.zeros(len(batch)))


@pytest.mark.parametrize("scaled", [True, False])
def test_an_outcome_is_for_an_experiment_without_a_scale(server, service, scaled):
    experiment = service[made(server, scaled=scaled)]
    decision = experiment.ask()
    for told in (decision, decision.id):
        if scaled:
            with pytest.raises(LossError, match=r"in \[0, 1\] already.* numbers from 0 to 2"):
                experiment.tell(told, ORDERS.outcome(decision.arm, 0))
        else:
            experiment.tell(told, ORDERS.outcome(decision.arm, 0))
    assert experiment.state()["counts"]["told"] == 1 - scaled
    assert experiment.tell(decision, [2.0] * decision.reveals.size if scaled else ORDERS.outcome(decision.arm, 0)) == (
        scaled
    )


@pytest.mark.parametrize("scaled", [True, False])
def test_outcomes_of_keys_too(server, service, scaled):
    experiment = service[made(server, scaled=scaled, keyed=True)]
    batch = experiment.ask_many(["a", "b", "c"])
    for told in (batch, batch.ids):
        if scaled:
            with pytest.raises(LossError, match="without a scale"):
                experiment.tell_many(told, outcomes(batch))
        else:
            experiment.tell_many(told, outcomes(batch))
    assert experiment.state()["counts"]["told"] == (0 if scaled else 3)


def test_a_scale_is_kept_by_the_service_and_told_by_everyone(server, service):
    made_here = service.create(f"p{next(_numbers)}", "exp3-set", ORDERS.graph, scale=EUROS, keyed=True)
    elsewhere = service[made_here.name]  # as in another process
    assert made_here.scale == elsewhere.scale == EUROS
    assert service[made(server, scaled=False)].scale is None
    for experiment in (made_here, elsewhere):
        batch = experiment.ask_many(["a", "b"])
        assert experiment.tell_many(table(batch)) == 2
        assert set(experiment.look_up(batch.ids[0])["losses"]) == {0.5}
    amounts = elsewhere.state()["amounts"]
    assert (amounts["rounds"], amounts["total"], amounts["per_round"]) == (4, 4.0, 1.0)


def test_the_client_that_awaits_says_so_too(server):
    async def play():
        async with connect_async(server.address, patience=0.0, timeout=60.0) as connected:
            one, many = connected[made(server)], connected[made(server, keyed=True)]
            decision, batch = await one.ask(), await many.ask_many(["a", "b"])
            with pytest.raises(LossError, match="without a scale"):
                await one.tell(decision, ORDERS.outcome(decision.arm, 0))
            with pytest.raises(LossError, match="without a scale"):
                await many.tell_many(batch, outcomes(batch))
            return [(await each.state())["counts"]["told"] for each in (one, many)]

    assert asyncio.run(play()) == [0, 0]


@pytest.mark.parametrize("keyed", [False, True])
def test_one_decision_says_it_for_itself_and_a_batch_for_all(server, keyed):
    name = made(server, keyed=keyed)
    asked = {"keys": ["a", "b"]} if keyed else {"count": 2}
    items = decisions_of(server.post(f"/v1/experiments/{name}/decisions", asked)[1])
    told = [{"id": each["id"], "losses": [0.5] * len(each["reveals"])} for each in items]
    for partial in (False, True):
        status, problem = server.post("/v1/feedback", in_columns(told, plain=True, partial=partial))
        assert (status, problem["path"], problem["value"]) == (422, "body.plain", True)
    status, problem = server.post(
        f"/v1/decisions/{items[1]['id']}/feedback", {"losses": told[1]["losses"], "plain": True}
    )
    assert (status, problem["path"]) == (422, "body.plain")
    assert server.post("/v1/feedback", in_columns(told))[1]["learned"] == 2
