"""`sidelong.integrations.litellm` with LiteLLM's real router, models that answer by themselves, and a real service."""

import asyncio
import itertools
import os
import signal
import sys
import time

import litellm
import pytest

from routing.mocked import deployment
from sidelong import graphs as sl_graphs
from sidelong.errors import LearnerError, LossError
from sidelong.integrations.litellm import Loss, Routing

NAMES = itertools.count()
ASKED = [{"role": "user", "content": "How are you?"}]


def judge(messages, reply):
    assert messages == ASKED
    return 1.0 if reply.choices[0].message.content == "good" else 0.0


async def until(true, patience=30.0):
    """Wait until something is true."""
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


class Played:
    """An experiment of a service, a router, and the routing between them. Latency counts for nothing in its losses."""

    def __init__(self, router, server, service, **settings):
        self.name = settings.pop("name", None) or f"chat-{next(NAMES)}"
        self.router = router
        settings = {"judge": judge, "group": "chat", "within": 10.0, "loss": Loss(seconds=1e9), **settings}
        self.routing = Routing(router, at=server.address, experiment=self.name, **settings)
        self.server, self.service = server, service

    @property
    def counts(self):
        return self.routing.counts

    def state(self):
        return self.service[self.name].state()

    def arms(self):
        """Return what the service knows of each arm, by label."""
        page = self.server.get(f"/v1/experiments/{self.name}")[1]
        return {arm["label"]: arm for arm in page["arms"]["items"]}

    async def ask(self, **more):
        return await self.router.acompletion("chat", ASKED, **more)

    async def settled(self):
        """Wait until everything that was routed is told or cancelled."""
        await until(lambda: not self.routing._routed and not self.routing._tasks)
        await until(lambda: not self.routing._gateway._untold and not self.routing._gateway._given_up)
        await asyncio.sleep(0.3)


@pytest.fixture
def play(make_router, server, service):
    """Return what makes a router with a routing, and plays a game in an event loop of its own."""

    def play(game, *deployments, router=None, **settings):
        async def whole():
            played = Played(make_router(*deployments, **(router or {})), server, service, **settings)
            async with played.routing:
                await game(played)
            return played

        return asyncio.run(whole())

    return play


def test_it_learns_which_model_is_good_and_the_process_loads_no_compiler(play):
    async def game(played):
        for _ in range(15):
            for reply in await asyncio.gather(*(played.ask() for _ in range(8))):
                assert reply.choices[0].message.content in {"good", "bad"}
            await played.settled()

    played = play(game, deployment("large"), deployment("small", "bad"), deployment("tiny", "bad"))
    arms = played.arms()
    assert arms["large"]["plays"] > 60
    assert arms["large"]["observed_mean"] == pytest.approx(0.1 * 0.1)  # quality 1, a tenth of the dollars
    assert arms["small"]["observed_mean"] == pytest.approx(0.81)
    counts = played.state()["counts"]
    assert (counts["told"], counts["outstanding"]) == (120, 0)
    assert (played.counts["routed"], played.counts["told"], played.counts["open"]) == (120, 120, 0)
    assert not {"numba", "scipy", "sidelong.agent"} & set(sys.modules)


def test_replies_that_are_streamed_are_learned_when_they_are_complete(play):
    async def game(played):
        stream = await played.ask(stream=True)
        text = "".join([part.choices[0].delta.content or "" async for part in stream])
        assert text == "good"
        await played.settled()

    played = play(game, deployment("large"))
    assert played.state()["counts"]["told"] == 1


def test_an_outage_is_no_loss_and_the_retry_is_another_decision(play):
    async def game(played):
        for _ in range(12):
            reply = await played.ask()
            assert reply.choices[0].message.content == "good"
        await played.settled()

    broken = deployment("broken", Exception("no model today"))
    played = play(game, deployment("large"), broken, router={"num_retries": 3, "allowed_fails": 0, "cooldown_time": 60})
    arms = played.arms()
    assert {name: arm["observed_count"] for name, arm in arms.items()} == {"broken": 0, "large": 12}
    counts = played.state()["counts"]
    assert counts["told"] == 12
    assert counts["cancelled"] + counts["told"] == counts["decided"]
    # In cooldown it is absent: after its first failure nothing plays it.
    assert played.counts["routed"] <= 13


def test_what_lies_ready_is_given_back_when_the_healthy_models_change(play):
    async def game(played):
        for _ in range(6):
            await played.ask()
        gateway = played.routing._gateway
        await until(lambda: len(gateway._ready[False]) > 1)
        waiting = list(gateway._ready[False])
        played.router.delete_deployment("small")
        for _ in range(3):
            reply = await played.ask()
            assert reply._hidden_params["model_id"] == "large"
        await played.settled()
        for choice in waiting:
            assert played.service[played.name].look_up(choice.id)["status"] == "cancelled"

    play(game, deployment("large"), deployment("small"))


def test_deployments_that_come_and_go_are_arms_that_do(play):
    async def game(played):
        await played.ask()
        played.router.add_deployment(litellm.Deployment(**deployment("nova")))
        played.router.delete_deployment("small")
        await played.ask()
        gateway = played.routing._gateway
        await until(lambda: gateway._arms == {"large": 0, "nova": 2})
        seen = set()
        while "nova" not in seen:
            seen.add((await played.ask())._hidden_params["model_id"])
        played.router.upsert_deployment(litellm.Deployment(**deployment("small")))
        await played.ask()
        await until(lambda: gateway._arms == {"large": 0, "nova": 2, "small": 3})
        while "small" not in seen:
            seen.add((await played.ask())._hidden_params["model_id"])
        await played.settled()

    played = play(game, deployment("large"), deployment("small"))
    arms = played.arms()
    assert {name: arm["retired"] for name, arm in arms.items()} == {
        "large": False,
        "small": True,
        "nova": False,
        "small~2": False,
    }
    assert played.counts["refused"] == 0


def test_shadow_runs_reveal_all_models_reach_nobody_and_stop_at_their_cap(play):
    async def game(played):
        for _ in range(20):
            reply = await played.ask(temperature=0.5)
            assert reply.choices[0].message.content in {"good", "bad"}
            await played.settled()

    models = deployment("large", dollars=0.01), deployment("small", "bad", dollars=0.01)
    played = play(game, *models, shadow=1.0, shadow_cap=0.055)
    assert played.counts["shadow"] == 5  # each costs 0.01, since one of two replies is the caller's
    arms = played.arms()
    assert sum(arm["observed_count"] for arm in arms.values()) == 20 + played.counts["shadow"]
    assert min(arm["observed_count"] for arm in arms.values()) >= played.counts["shadow"]


@pytest.mark.parametrize(("cap", "fewest", "most"), [(0.0, 0, 0), (0.025, 1, 2)])
def test_shadow_runs_that_begin_at_once_keep_to_the_cap_too(play, cap, fewest, most):
    async def game(played):
        await asyncio.gather(*(played.ask() for _ in range(24)))
        await played.settled()

    models = deployment("large", dollars=0.01), deployment("small", "bad", dollars=0.01)
    played = play(game, *models, shadow=1.0, shadow_cap=cap)
    assert played.counts["routed"] == 24
    assert fewest <= played.counts["shadow"] <= most


def test_what_never_comes_to_an_end_is_given_up_and_takes_nothing_from_the_cap(play):
    async def game(played):
        await played.ask(stream=True)  # of which nobody reads the end
        [waiting] = played.routing._routed.values()
        waiting.choice.made -= 3601.0
        for _ in range(3):
            await played.ask()
            await played.settled()
        assert not played.routing._routed

    models = deployment("large", dollars=0.01), deployment("small", "bad", dollars=0.01)
    played = play(game, *models, shadow=1.0, shadow_cap=0.04)
    assert played.counts["shadow"] >= 2
    assert played.state()["counts"]["outstanding"] == 1  # the service lets it expire, as it was carried out


def test_the_coin_is_thrown_before_the_decision_and_a_shadow_that_fails_is_left_out(play):
    async def game(played):
        for _ in range(8):
            await played.ask()
            await played.settled()

    models = deployment("large"), deployment("small"), deployment("broken", Exception("no model today"))
    router = {"num_retries": 3, "disable_cooldowns": True}
    played = play(game, *models, router=router, shadow=1.0)
    arms = played.arms()
    counts = played.state()["counts"]
    assert [arm["observed_count"] for arm in arms.values()] == [0, 8, 8]
    assert counts["told"] == 8
    assert played.counts["refused"] == 0


def test_under_a_ceiling_what_replies_cost_is_told_and_no_limit_is_broken(play, service):
    limit = {"ceiling": 0.003, "cost_bounds": [0.011, 0.0011], "overspend": 0.03}
    service.create("dear", "glance", sl_graphs.self_loops(2).labelled(["large", "small"]), **limit)
    spent = []

    async def game(played):
        for _ in range(40):
            reply = await played.ask()
            spent.append(0.01 if reply._hidden_params["model_id"] == "large" else 0.001)
            await played.settled()

    models = deployment("large", dollars=0.01), deployment("small", "bad", dollars=0.001)
    played = play(game, *models, name="dear", shadow=0.2)
    found = played.state()["spending"]
    assert (found["decisions"], played.counts["refused"]) == (played.counts["told"], 0)
    assert found["spent"] == pytest.approx(sum(spent))
    assert max(sum(spent[: k + 1]) - 0.003 * (k + 1) for k in range(40)) <= 0.03
    assert 0 < spent.count(0.01) < 20


def test_it_fails_open_while_no_service_answers_and_goes_on_when_one_does(make_router, nursery, tmp_path):
    database = f"sqlite:///{tmp_path}/served.db"

    async def game():
        router = make_router(deployment("large"), deployment("small"))
        first = nursery.start(database)
        routing = Routing(router, at=first.address, experiment="chat", judge=judge)
        await routing.__aenter__()
        first.kill()
        slowest = 0.0
        for _ in range(200):
            began = time.process_time(), time.monotonic()
            await router.acompletion("chat", ASKED)
            slowest = max(slowest, time.monotonic() - began[1] - (time.process_time() - began[0]))
        assert routing.counts["open"] > 100
        assert slowest < 1.0  # 50 ms, and what a busy machine adds
        again = nursery.start(database, port=first.port)
        before = routing.counts["routed"]
        while routing.counts["routed"] < before + 10:
            await router.acompletion("chat", ASKED)
            await asyncio.sleep(0.02)
        await routing.close()
        again.stop()

    asyncio.run(game())


def test_a_service_that_hangs_costs_its_time_once_in_a_while(make_router):
    async def game():
        async def hang(_reader, _writer):
            await asyncio.sleep(60)

        server = await asyncio.start_server(hang, "127.0.0.1", 0)
        router = make_router(deployment("large"), deployment("small"))
        routing = Routing(router, at=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", judge=judge)
        for _ in range(20):
            await asyncio.wait_for(router.acompletion("chat", ASKED), 10)
        assert routing.counts == {"open": 20}
        for task in routing._gateway._tasks:
            task.cancel()
        server.close()

    asyncio.run(game())


@pytest.mark.parametrize("advised", [False, True])
def test_no_request_waits_longer_than_within_for_an_adviser_and_a_service_that_hang(
    make_router, nursery, tmp_path, advised
):
    async def hangs(*_):
        await asyncio.sleep(60)

    async def game():
        server = nursery.start(f"sqlite:///{tmp_path}/served.db")
        router = make_router(deployment("large"), deployment("small"))
        routing = Routing(
            router, at=server.address, judge=judge, within=2.0, advisers={"hangs": hangs} if advised else None
        )
        await routing.__aenter__()
        os.kill(server.pid, signal.SIGSTOP)
        began = time.monotonic()
        await router.acompletion("chat", ASKED)
        assert 1.9 < time.monotonic() - began < 2.8  # an adviser and the service have 2 s together
        assert (routing.counts["open"], routing.counts["routed"]) == (1, 0)
        os.kill(server.pid, signal.SIGCONT)
        await routing.close()
        server.stop()

    asyncio.run(game())


def test_quality_may_come_later_by_the_id_of_the_reply(play):
    async def game(played):
        reply = await played.ask()
        assert not played.routing.judge_later("another", 0.5)
        await until(lambda: reply.id in played.routing._unjudged)
        with pytest.raises(LossError, match=r"from 0 to 1, not 1\.5"):
            played.routing.judge_later(reply.id, 1.5)
        assert played.routing.judge_later(reply.id, 0.25)
        assert not played.routing.judge_later(reply.id, 0.25)
        await played.settled()

    played = play(game, deployment("large", dollars=0.005), judge=None)
    assert played.arms()["large"]["observed_mean"] == pytest.approx(0.8 * 0.75 + 0.1 * 0.5)


def test_quality_may_come_before_litellm_has_reported_the_reply(play):
    async def game(played):
        reply = await played.ask()
        assert not played.routing.judge_later(reply.id, 0.25)
        await played.settled()
        assert not played.routing._unjudged
        assert not played.routing.judge_later(reply.id, 0.75)

    played = play(game, deployment("large", dollars=0.005), judge=None)
    assert played.counts["told"] == 1
    assert played.arms()["large"]["observed_mean"] == pytest.approx(0.8 * 0.75 + 0.1 * 0.5)


def test_a_judge_may_be_a_coroutine_and_one_that_fails_leaves_the_reply_for_later(play):
    async def slow(_, reply):
        await asyncio.sleep(0.01)
        if reply.choices[0].message.content == "bad":
            raise RuntimeError("I do not know")
        return 0.5

    async def game(played):
        while len(played.routing._unjudged) < 1 or played.counts["told"] < 1:
            await played.ask()
            await asyncio.sleep(0.05)

    play(game, deployment("large"), deployment("small", "bad"), judge=slow)


def test_the_requests_own_router_advises(play):
    asked = []

    def rule(messages, request):
        asked.append((messages, request["temperature"]))
        return "large" if len(asked) % 2 else "retired long ago"

    async def game(played):
        for _ in range(6):
            await played.ask(temperature=0.5)
        await played.settled()

    played = play(game, deployment("large"), deployment("small"), advisers={"rule": rule})
    assert asked == [(ASKED, 0.5)] * 6
    [adviser] = played.state()["advisers"]
    assert (adviser["name"], adviser["rounds"]) == ("rule", 3)


def test_an_adviser_that_fails_or_takes_too_long_is_silent(play):
    async def hangs(*_):
        await asyncio.sleep(60)

    def fails(*_):
        raise RuntimeError("I do not know")

    async def game(played):
        for _ in range(3):
            await asyncio.wait_for(played.ask(), 20)
        await played.settled()

    advisers = {"fails": fails, "rule": lambda *_: "large", "hangs": hangs}
    played = play(game, deployment("large"), deployment("small"), advisers=advisers, within=2.0)
    assert (played.counts["routed"], played.counts["told"]) == (3, 3)
    assert [(each["name"], each["rounds"]) for each in played.state()["advisers"]] == [("rule", 3)]


def test_a_session_keeps_its_model_and_is_told_each_of_its_requests(play):
    async def game(played):
        for _ in range(3):
            for session in ("ann", "bob", "eve"):
                reply = await played.ask(metadata={"session_id": session})
                models.setdefault(session, set()).add(reply._hidden_params["model_id"])
        await played.settled()

    models = {}
    played = play(game, deployment("large"), deployment("small"), sticky=600.0)
    assert [len(each) for each in models.values()] == [1, 1, 1]
    assert played.state()["counts"]["decided"] == 3
    assert (played.counts["routed"], played.counts["told"], played.counts["refused"]) == (9, 9, 0)


def test_synchronous_calls_are_left_to_litellm_and_counted(play):
    async def game(played):
        reply = await asyncio.to_thread(played.router.completion, "chat", ASKED)
        assert reply.choices[0].message.content == "good"
        await until(lambda: played.counts["synchronous"] == 1)
        assert played.counts["routed"] == 0

    play(game, deployment("large"))


def test_other_groups_and_embeddings_are_none_of_its_business(play):
    async def game(played):
        await played.router.acompletion("other", ASKED)
        await played.ask()
        await played.settled()

    played = play(game, deployment("large"), deployment("foreign", group="other"))
    assert (played.counts["routed"], played.counts["open"]) == (1, 0)
    assert played.state()["graph"]["n_arms"] == 1


def test_where_litellm_checks_deployments_afterwards_it_decides(play):
    async def game(played):
        await played.ask()

    played = play(game, deployment("large"), router={"enable_pre_call_checks": True})
    assert (played.counts["routed"], played.counts["open"]) == (0, 1)


def test_what_cannot_be_is_refused(make_router, server):
    router = make_router(deployment("large"))
    for wrong, said in (
        ({}, "one of them"),
        ({"at": server.address, "shadow": 1.5, "judge": judge}, "from 0 to 1"),
        ({"at": server.address, "shadow": 0.5, "sticky": 60.0, "judge": judge}, "where sessions are sticky"),
    ):
        with pytest.raises(LearnerError, match=said):
            Routing(router, **wrong)
    with pytest.raises(LossError, match="need a judge"):
        Routing(router, at=server.address, shadow=0.5)
    with pytest.raises(LossError, match="sum to 1"):
        Loss(quality=0.9)
    assert Loss().of(1.0, 0.0, 0.0) == 0.0
    assert Loss().of(0.0, 1.0, 100.0) == 1.0
    assert Loss(0.0, 0.5, 0.5, dollars=0.02, seconds=4.0).of(None, 0.01, 1.0) == 0.375
