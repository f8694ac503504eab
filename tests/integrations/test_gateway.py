"""Decisions within a request: with a real service and with an agent, and without LiteLLM, which has its own tests."""

import asyncio
import time
from collections import Counter

import pytest

import sidelong as sl
from service.servers import nursery, server, service
from sidelong.errors import CostError, LossError, ServiceError
from sidelong.integrations import gateway as module
from sidelong.integrations.gateway import Gateway, Loss, ShadowBudget, ask_all
from sidelong.service.store.kinds import open_database
from sidelong.service.store.tokens import Tokens

__all__ = ["nursery", "server", "service"]


async def until(true, patience=60.0):
    """Wait until something is true."""
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def agent_of(*names):
    return sl.Agent("glance", sl.graphs.self_loops(len(names)).labelled(names), seed=7)


def play(game, names, **settings):
    """Play a game with a gateway in an event loop of its own, and return its counts."""

    async def whole():
        counts = Counter()
        gateway = Gateway(names, counts, **{"within": 30.0, **settings})
        await gateway.begun.wait()
        try:
            await game(gateway)
        finally:
            await gateway.close()
        return counts

    return asyncio.run(whole())


@pytest.mark.parametrize("is_service", [True, False], ids=["service", "agent"])
def test_models_are_chosen_told_and_found_out(is_service, server, service):
    agent = None if is_service else agent_of("large", "small")
    where = {"at": server.address, "experiment": "found-out"} if is_service else {"agent": agent}
    played = Counter()

    async def game(gateway):
        for k in range(30):
            choice = await gateway.decide(["large", "small"], shadow=k % 10 == 0)
            assert set(choice.reveals) == ({"large", "small"} if k % 10 == 0 else {choice.name})
            played[choice.name] += 1
            gateway.tell(choice, {name: 0.1 if name == "large" else 0.9 for name in choice.reveals}, str(k))
            await until(lambda: not gateway._untold)

    counts = play(game, ["large", "small"], **where)
    assert played["large"] > 15
    assert counts["told"] == 30
    assert counts["refused"] == 0
    if is_service:
        state = service["found-out"].state()
        assert (state["counts"]["told"], state["counts"]["outstanding"]) == (30, 0)
        assert state["best"]["label"] == "large"
    else:
        assert agent.estimates().best == 0
        assert agent.pending == ()


@pytest.mark.parametrize("is_service", [True, False], ids=["service", "agent"])
def test_only_healthy_models_are_chosen_and_what_lies_ready_for_others_is_cancelled(is_service, server, service):
    agent = None if is_service else agent_of("large", "small", "tiny")
    where = {"at": server.address, "experiment": "healthy"} if is_service else {"agent": agent}

    async def game(gateway):
        for _ in range(5):
            gateway.cancel(await gateway.decide(["large", "small", "tiny"]))
        await until(lambda: gateway._ready[False])
        ready = list(gateway._ready[False])
        for _ in range(10):
            choice = await gateway.decide(["small", "tiny", "never heard of"])
            assert choice.name != "large"
            assert choice.id not in {each.id for each in ready}
            gateway.cancel(choice)
        await until(lambda: not gateway._given_up)
        await asyncio.sleep(0.3)
        for each in ready if is_service else ():
            assert service["healthy"].look_up(each.id)["status"] == "cancelled"
        assert await gateway.decide([]) is None
        assert await gateway.decide(["never heard of"]) is None

    play(game, ["large", "small", "tiny"], **where)
    if not is_service:
        assert agent.pending == ()


@pytest.mark.parametrize("is_service", [True, False], ids=["service", "agent"])
def test_models_come_go_and_come_back(is_service, server):
    agent = None if is_service else agent_of("large", "small")
    where = {"at": server.address, "experiment": "come-and-go"} if is_service else {"agent": agent}

    async def game(gateway):
        old = await gateway.decide(["small"])
        gateway.offer(["large", "nova"])
        await until(lambda: gateway._arms == {"large": 0, "nova": 2})
        gateway.offer(["large", "nova", "small"])
        await until(lambda: gateway._arms == {"large": 0, "nova": 2, "small": 3})
        new = await gateway.decide(["small"])
        assert (old.reveals, new.reveals) == ({"small": 1}, {"small": 3})
        gateway.tell(old, {"small": 0.5}, "old")
        gateway.tell(new, {"small": 0.5}, "new")

    counts = play(game, ["large", "small"], **where)
    assert (counts["told"], counts["refused"]) == (2, 0)


def test_a_gateway_that_starts_retires_what_it_does_not_have_and_a_running_one_does_not(server):
    where = {"at": server.address, "experiment": "two-gateways", "within": 30.0}

    async def game():
        old = Gateway(["large", "small"], Counter(), **where)
        await old.begun.wait()
        new = Gateway(["large", "nova"], Counter(), **where)
        await new.begun.wait()
        assert new._arms == {"large": 0, "nova": 2}
        old.offer(["large"])
        await until(lambda: old._arms == {"large": 0})
        assert (await new.decide(["nova"])).name == "nova"
        await old.close()
        await new.close()

    asyncio.run(game())


@pytest.mark.parametrize("is_service", [True, False], ids=["service", "agent"])
def test_under_a_ceiling_costs_are_told_and_the_limit_holds(is_service, server, service):
    dollars, names = {"large": 0.01, "small": 0.001, "nova": 0.003}, ["large", "small"]
    limit = {"ceiling": 0.002, "cost_bounds": [0.012, 0.0015], "overspend": 0.05}
    graph = sl.graphs.self_loops(2).labelled(names)
    if is_service:
        service.create("costly", "glance", graph, **limit)
        where = {"at": server.address, "experiment": "costly"}
    else:
        where = {"agent": sl.Agent("glance", graph, seed=7, **limit)}
    told = []

    async def game(gateway):
        for k in range(120):
            if k == 30:
                gateway.offer({"large": 0.012, "small": 0.0015, "nova": 0.004})  # a new arm needs a bound
                await until(lambda: "nova" in gateway._arms)
            shadow = k % 10 == 0
            there = [*names, "nova"] if k >= 30 else names
            choice = await gateway.decide(there, shadow=shadow)
            seen = [name for name in choice.reveals if not shadow or k % 20 or name == choice.name]  # some fail
            losses = {name: {"large": 0.1, "small": 0.6, "nova": 0.5}[name] for name in seen}
            losses["too dear for this round"] = 1.0
            gateway.tell(choice, losses, str(k), {name: dollars[name] for name in seen})
            told.append(dollars[choice.name])
            await until(lambda: not gateway._untold)
        assert gateway._has_ceiling

    counts = play(game, dict.fromkeys(names), **where)
    assert (counts["told"], counts["refused"]) == (120, 0)
    found = service["costly"].state()["spending"] if is_service else where["agent"].spending()._asdict()
    assert found["decisions"] == 120
    assert found["spent"] == pytest.approx(sum(told))
    above = [sum(told[: k + 1]) - 0.002 * (k + 1) for k in range(120)]
    assert max(above) <= 0.05
    assert 0.01 in told


def test_an_agent_has_nothing_pending_that_nobody_knows_of_where_models_do_not_fit_or_cost_too_much():
    graph = sl.graphs.self_loops(2).labelled(["large", "small"])
    agent = sl.Agent("glance", graph, seed=7, ceiling=1.0, cost_bounds=[3.0, 0.5], overspend=5.0)

    async def game(gateway):
        await gateway.begun.wait()
        fitting = await gateway._ask(8, {"large": 0}, shadow=False)
        assert [choice.name for choice in fitting] == ["large", "large"]
        assert len(agent.pending) == 2
        with pytest.raises(CostError, match="No arm that is there fits"):
            await gateway._ask(8, {"large": 0}, shadow=False)
        gateway.tell(fitting[0], {"large": 0.1}, "one", {"large": 4.0})  # more than its bound
        gateway.cancel(fitting[1])
        await until(lambda: not agent.pending)

    counts = play(game, ["large", "small"], agent=agent)
    assert counts["refused"] == 1
    assert agent.spending()[:2] == (1, 3.0)  # it counts as its bound


@pytest.mark.parametrize("is_service", [True, False], ids=["service", "agent"])
def test_a_model_that_did_not_reply_in_shadow_is_left_out(is_service, server):
    agent = None if is_service else agent_of("large", "small", "tiny")
    where = {"at": server.address, "experiment": "left-out"} if is_service else {"agent": agent}

    async def game(gateway):
        choice = await gateway.decide(["large", "small", "tiny"], shadow=True)
        missing = next(name for name in choice.reveals if name != choice.name)
        gateway.tell(choice, {name: 0.5 for name in choice.reveals if name != missing}, "one")

    counts = play(game, ["large", "small", "tiny"], **where)
    assert (counts["told"], counts["refused"]) == (1, 0)


def test_advice_is_heard_and_sessions_keep_their_model(server, service):
    where = {"at": server.address, "experiment": "sessions", "sticky": 600.0}

    async def game(gateway):
        names = [(await gateway.decide(["large", "small"], session="ann")).name for _ in range(5)]
        assert len(set(names)) == 1
        choice = await gateway.decide(["large", "small"], session="bob", advice={"rule": "large", "other": "gone"})
        for k in range(3):
            gateway.tell(choice, {choice.name: 0.25}, f"report-{k}")
        absent = next(name for name in ("large", "small") if name != names[0])
        assert await gateway.decide([absent], session="ann") is None

    counts = play(game, ["large", "small"], **where)
    assert (counts["told"], counts["refused"]) == (3, 0)
    state = service["sessions"].state()
    assert state["counts"]["decided"] == 2
    assert [(each["name"], each["rounds"]) for each in state["advisers"]] == [("rule", 1)]


def test_no_answer_is_waited_for_long_and_then_not_at_all_for_a_while(nursery, tmp_path):
    async def game():
        served = nursery.start(f"sqlite:///{tmp_path}/served.db")
        counts = Counter()
        gateway = Gateway(["large", "small"], counts, at=served.address, experiment="chat")
        await gateway.begun.wait()
        served.kill()
        gateway._give_back()
        began, cpu = time.monotonic(), time.process_time()
        for _ in range(1000):
            assert await gateway.decide(["large", "small"]) is None
        waited = time.monotonic() - began
        assert waited < 10.0  # one time limit a second, where 1,000 would take 50 s
        assert time.process_time() - cpu < 5.0
        await gateway.close()

    asyncio.run(game())


def test_a_token_that_does_not_suffice_is_an_error_and_does_not_wait(nursery, tmp_path):
    where = f"sqlite:///{tmp_path}/served.db"
    scopes = ["admin"], ["decide", "feedback"], ["decide", "feedback", "read"]
    tokens = Tokens(open_database(where))
    every, few, enough = (tokens.create("gateway", each) for each in scopes)
    served = nursery.start(where)

    async def game(sent):
        gateway = Gateway(["large", "small"], Counter(), at=served.address, token=sent, experiment="chat")
        try:
            await asyncio.wait_for(gateway.until_begun(), 60)
        finally:
            await gateway.close()

    with pytest.raises(ServiceError, match=r"needs a token that is known") as unknown:
        asyncio.run(game("sl_none"))
    assert unknown.value.status == 401
    with pytest.raises(ServiceError, match=r"allows decide, feedback, and this needs read") as lacking:
        asyncio.run(game(few))
    assert lacking.value.status == 403
    asyncio.run(game(every))  # which makes the experiment
    asyncio.run(game(enough))


def test_feedback_waits_for_a_service_that_is_away(nursery, tmp_path):
    database = f"sqlite:///{tmp_path}/served.db"

    async def game():
        first = nursery.start(database)
        counts = Counter()
        gateway = Gateway(["large", "small"], counts, at=first.address, experiment="chat", within=30.0)
        await gateway.begun.wait()
        choice = await gateway.decide(["large", "small"])
        first.kill()
        gateway.tell(choice, {choice.name: 0.5}, "one")
        await asyncio.sleep(0.5)
        assert counts["told"] == 0
        second = nursery.start(database, port=first.port)
        await until(lambda: counts["told"] == 1)
        with sl.connect(second.address) as service:
            assert service["chat"].look_up(choice.id)["losses"] == [0.5]
        await gateway.close()
        second.stop()

    asyncio.run(game())


def test_the_loss_is_a_mean_with_its_scales():
    assert Loss().of(1.0, 0.0, 0.0) == 0.0
    assert Loss().of(0.0, 1.0, 100.0) == 1.0
    assert Loss(0.0, 0.5, 0.5, dollars=0.02, seconds=4.0).of(None, 0.01, 1.0) == 0.375
    for wrong in ({"quality": 0.9}, {"quality": -0.1, "cost": 1.0}, {"dollars": 0.0}):
        with pytest.raises(LossError, match="sum to 1"):
            Loss(**wrong)


def test_shadow_runs_keep_to_their_budget_also_when_they_begin_at_once():
    assert not ShadowBudget(0.0).begin()
    free, capped = ShadowBudget(None), ShadowBudget(0.05)
    assert [free.begin() for _ in range(3)] == [True] * 3
    assert [capped.begin() for _ in range(3)] == [True, False, False]  # nobody knows yet what they cost
    capped.end()  # it never ran
    assert capped.begin()
    capped.end(0.02)
    assert [capped.begin() for _ in range(3)] == [True, False, False]
    capped.end(0.01)
    assert capped.begin()
    capped.end(0.02)
    assert not capped.begin()
    capped._day = None  # another day
    assert [capped.begin() for _ in range(3)] == [True, True, False]


def test_no_more_decisions_are_prepared_than_are_likely_to_be_taken():
    names = ["large", "small"]
    agent = agent_of(*names)

    async def game(gateway):
        at_once = gateway._ask

        async def slow(*known, **more):
            await asyncio.sleep(0.02)
            return await at_once(*known, **more)

        async def one_after_the_other():
            for _ in range(20):
                choice = await gateway.decide(names)
                await asyncio.sleep(0.01)
                gateway.tell(choice, {choice.name: 0.5}, choice.id)

        gateway._ask = slow
        await asyncio.gather(*(one_after_the_other() for _ in range(16)))

    counts = play(game, names, agent=agent)
    assert counts["told"] == 320
    assert counts["cancelled"] <= 80  # 64 that lie ready at the end, and few that came when there were enough


@pytest.mark.parametrize("is_service", [True, False], ids=["service", "agent"])
def test_what_lies_ready_is_cancelled_before_it_expires_also_while_nobody_asks(
    is_service, server, service, monkeypatch
):
    names = ["large", "small"]
    graph = sl.graphs.self_loops(2).labelled(names)
    limit = {"ceiling": 0.002, "cost_bounds": [0.012, 0.0015], "overspend": 5.0}
    if is_service:
        service.create("idle", "glance", graph, expire_after=8.0, **limit)  # so that they may lie ready for 4 s
        where = {"at": server.address, "experiment": "idle"}
    else:
        monkeypatch.setattr(module, "_FRESH", 1.0)
        where = {"agent": sl.Agent("glance", graph, seed=7, **limit)}

    def pending():
        return service["idle"].state()["counts"]["outstanding"] if is_service else len(where["agent"].pending)

    async def game(gateway):
        choice = await gateway.decide(names)
        gateway.tell(choice, {choice.name: 0.5}, "one", {choice.name: 0.001})
        await until(lambda: gateway._ready[False])
        assert pending()
        await until(lambda: not pending())

    counts = play(game, names, **where)
    assert counts["cancelled"]
    assert (counts["told"], counts["refused"]) == (1, 0)
    if is_service:
        state = service["idle"].state()
        assert (state["counts"]["cancelled"], state["counts"]["expired"]) == (counts["cancelled"], 0)
        found = state["spending"]
    else:
        found = where["agent"].spending()._asdict()
    assert (found["decisions"], found["spent"]) == (1, 0.001)


def test_advisers_are_asked_at_once_and_those_that_fail_or_hang_are_left_out():
    async def slow(question, share):
        await asyncio.sleep(0.1)
        return f"{question} {share}"

    async def hangs(*_):
        await asyncio.sleep(60)

    def fails(*_):
        raise RuntimeError("I do not know")

    advisers = {"fails": fails, "hangs": hangs, "slow": slow, "rule": lambda *_: "small"}
    assert asyncio.run(ask_all(advisers, 3.0, "large", 1)) == {"slow": "large 1", "rule": "small"}
    assert asyncio.run(ask_all({}, 3.0)) == {}


def test_a_decision_that_was_carried_out_and_forgotten_counts_as_lost():
    graph = sl.graphs.self_loops(1).labelled(["small"])
    agent = sl.Agent("glance", graph, seed=7, ceiling=1.0, cost_bounds=[0.5], overspend=5.0)

    async def game(gateway):
        gateway.lose(await gateway.decide(["small"], ready=False))

    play(game, ["small"], agent=agent)
    assert agent.pending == ()
    assert agent.spending()[:2] == (1, 0.5)
