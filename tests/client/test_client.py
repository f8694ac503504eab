"""The client against a real server, and against one that loses replies."""

import asyncio
import contextlib
import math
import socket
import threading
import time
from fractions import Fraction

import httpx
import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import (
    ConflictError,
    DecisionError,
    ExpiredError,
    GraphError,
    LearnerError,
    LossError,
    ServiceError,
    UnknownDecisionError,
)
from sidelong.service.client import Service, connect_async
from sidelong.service.client.replies import Patience, unreachable


@pytest.fixture(scope="module")
def served(nursery, tmp_path_factory):
    running = nursery.start(f"sqlite:///{tmp_path_factory.mktemp('server')}/sidelong.db")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def service(served):
    with sl.connect(served.address) as connected:
        yield connected


def drive(agent, rounds):
    """A program that does not know whether its agent is here or elsewhere."""
    seen = []
    late = None
    for t in range(rounds):
        decision = agent.ask()
        losses = {int(arm): ((7 * t + 3 * int(arm)) % 10) / 10 for arm in decision.reveals}
        seen.append((decision.round, decision.arm, decision.probability, decision.reveals.tolist()))
        if t == 1:
            agent.cancel(decision)
        elif t == 4:
            decision = agent.override(decision, (decision.arm + 1) % agent.graph.n_arms)
            seen.append((decision.arm, decision.carried_out, decision.reveals.tolist()))
            assert agent.tell(decision, [0.5] * decision.reveals.size)
        elif t == 2:
            late = (decision.id, losses)
        else:
            assert agent.tell(decision, losses)
            assert not agent.tell(decision.id, list(losses.values()))
    assert agent.tell(*late)
    return seen, agent.round, agent.estimates()


@pytest.mark.library
def test_an_agent_here_and_one_elsewhere_are_the_same_to_a_program(service):
    """The same learner, graph and seed: the same decisions, to the bit."""
    graph = sl.graphs.nested(5)
    here = sl.Agent("exp3.g++", graph, seed=7)
    there = service.create("same", "exp3.g++", graph, seed=7)
    one, other = drive(here, 12), drive(there, 12)
    assert one[:2] == other[:2]
    np.testing.assert_array_equal(one[2].counts, other[2].counts)
    np.testing.assert_allclose(one[2].means, other[2].means, atol=1e-12)
    np.testing.assert_array_equal(one[2].weights, other[2].weights)
    assert (there.learner, there.options, there.seed) == (here.learner, here.options, here.seed)
    assert there.graph == here.graph
    assert "same" in list(service)


def test_errors_are_those_of_an_agent_and_tell_what_the_service_said(service):
    graph = sl.graphs.nested(3)
    agent = service.create("errors", "exp3.g++", graph, seed=1)
    decision = agent.ask()
    right = dict.fromkeys(decision.reveals.tolist(), 0.5)
    for wrong in (
        {99: 0.5},
        {**right, decision.arm: 1.5},
        {**right, decision.arm: True},
        dict.fromkeys(right, math.nan),
    ):
        with pytest.raises(LossError):
            agent.tell(decision, wrong)
    with pytest.raises(LossError, match="one for each"):
        agent.tell(decision, [0.1] * 9)
    for wrong in (None, "0.5", 0.5, [[0.5]]):
        with pytest.raises(LossError):
            agent.tell(decision, wrong)
    assert agent.tell(decision, right)
    with pytest.raises(ConflictError) as refused:
        agent.tell(decision, dict.fromkeys(right, 0.25))
    assert (refused.value.__cause__.status, refused.value.__cause__.code) == (409, "conflict")
    with pytest.raises(DecisionError):
        agent.cancel(decision)
    with pytest.raises(UnknownDecisionError):
        agent.tell("no-such-decision", right)
    other = service.create("other", "exp3.g++", graph, seed=1)
    for foreign in (other.tell, lambda told, _: other.cancel(told)):
        with pytest.raises(UnknownDecisionError, match="'errors' did"):
            foreign(decision, right)
    with pytest.raises(GraphError):
        agent.ask(sl.graphs.nested(4))
    with pytest.raises(GraphError, match="FeedbackGraph, not list"):
        agent.ask([[1]])
    with pytest.raises(LearnerError):
        service.create("unknown", "exp4", graph)
    with pytest.raises(ServiceError) as refused:
        service["nothing"].ask()
    assert (refused.value.status, refused.value.code) == (404, "not_found")
    with pytest.raises(AttributeError, match="look_up"):
        decision.probabilities  # noqa: B018


def test_a_decision_that_expired_is_an_error_of_its_own(service):
    agent = service.create("brief", "exp3.g++", sl.graphs.nested(3), seed=1, expire_after=0.2)
    decision = agent.ask()
    assert decision.expires_at is not None
    deadline = time.monotonic() + 120
    while agent.state()["counts"]["expired"] == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    with pytest.raises(ExpiredError):
        agent.tell(decision, [0.5] * decision.reveals.size)
    assert agent.look_up(decision)["status"] == "late"


def test_a_graph_of_one_round_and_one_that_only_the_outcome_shows(service):
    graph = sl.graphs.nested(4)
    agent = service.create("graphs", "exp3.g++", graph, seed=3)
    own = sl.FeedbackGraph.from_edges([(0, 2), (3, 1)], 4, self_loops=True)
    decision = agent.ask(own, context={"store": np.int64(12)})
    assert decision.reveals.tolist() == own.out_neighbors(decision.arm).tolist()
    assert agent.look_up(decision)["context"] == {"store": 12}
    assert agent.tell(decision, np.full(decision.reveals.size, 0.5, np.float32))
    decision = agent.ask()
    assert agent.tell(decision, dict.fromkeys(range(4), 0.25), graph=sl.graphs.complete(4))


def tell_euros(agents, euros):
    """Tell arms as other kinds of numbers, and costs of one's own; return the decision that was refused last."""
    for agent in agents:
        assert agent.scale == euros
        assert agent.tell(agent.ask(), {0.0: 80.0, np.int8(1): 250, np.float64(2): Fraction(1, 2)})
        decision = agent.ask()
        with pytest.raises(LossError, match="from 0 to 250"):
            agent.tell(decision, [0, 1, 251])
    return decision


@pytest.mark.library
def test_numbers_that_an_agent_takes_are_taken_elsewhere(service):
    euros = sl.outcomes.Scale(best=0, worst=250)
    here = sl.Agent("exp3.g++", sl.graphs.complete(3), seed=4, scale=euros)
    there = service.create("same-euros", "exp3.g++", sl.graphs.complete(3), seed=4, scale=euros)
    tell_euros((here, there), euros)
    np.testing.assert_allclose(there.estimates().means, here.estimates().means, atol=1e-12)
    agent = sl.Agent("exp3.g++", sl.graphs.complete(2))
    assert agent.tell(agent.ask(), [Fraction(1, 3), 1])


def test_fractions_and_costs_of_ones_own_are_taken(service):
    euros = sl.outcomes.Scale(best=0, worst=250)
    there = service.create("euros", "exp3.g++", sl.graphs.complete(3), seed=4, scale=euros)
    decision = tell_euros((there, service["euros"]), euros)
    assert there.look_up(decision)["losses"] is None
    agent = service.create("plain", "exp3.g++", sl.graphs.complete(2))
    assert agent.scale is None
    assert agent.tell(agent.ask(), [Fraction(1, 3), 1])
    with pytest.raises(LearnerError, match="must be a sidelong"):
        service.create("euros", "exp3.g++", sl.graphs.complete(3), scale=(0, 250))
    with pytest.raises(LearnerError):
        service.create("seed", "exp3.g++", sl.graphs.complete(3), seed=-1)


def test_a_graph_that_is_too_large_to_ask_for_says_by_how_much(service):
    wide = service.create("wide", "exp3.g++", sl.graphs.nested(120), seed=1)
    with pytest.raises(GraphError, match=r"120 arms and 7,260 edges .* 500 and 5,000"):
        wide.graph  # noqa: B018


def test_a_key_of_ones_own_brings_the_same_decision_again(service):
    agent = service.create("keys", "exp3.g++", sl.graphs.nested(3), seed=1)
    assert agent.ask(key="order-17").id == agent.ask(key="order-17").id != agent.ask(key="order-18").id
    assert agent.round == 2
    for wrong in ("", "two words", "\N{SNOWMAN}", "a\nb", "x" * 201):
        with pytest.raises(ServiceError, match=r"1 to 200 characters"):
            agent.ask(key=wrong)


def test_the_same_with_await(served):
    async def drive_two():
        async with connect_async(served.address) as service:
            agent = await service.create("awaited", "exp3.g++", sl.graphs.nested(3), seed=5)
            decisions = await asyncio.gather(*(agent.ask() for _ in range(8)))
            told = await asyncio.gather(*(agent.tell(each, [0.5] * each.reveals.size) for each in decisions))
            extra = await agent.ask()
            await agent.cancel(extra)
            assert (await agent.look_up(extra))["status"] == "cancelled"
            assert "awaited" in [name async for name in service]
            assert await agent.graph() == sl.graphs.nested(3)
            assert (await agent.learner(), await agent.options(), await agent.seed()) == ("exp3.g++", {}, 5)
            assert await agent.round() == 9
            return told, sorted(each.round for each in decisions), await agent.state(), await agent.estimates()

    told, rounds, state, estimates = asyncio.run(drive_two())
    assert told == [True] * 8
    assert rounds == list(range(1, 9))
    assert state["counts"]["told"] == 8
    assert estimates.counts.max() == 8


class Lossy:
    """A relay that passes a request on, and of the replies it loses every second one."""

    def __init__(self, url):
        self.target = httpx.URL(url)
        self.lost = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        count = 0
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._socket.accept()
                count += 1
                self._relay(caller, lose=count % 2 == 1)

    def _relay(self, caller, *, lose):
        with caller, socket.create_connection((self.target.host, self.target.port)) as server:
            request = b""
            while b"\r\n\r\n" not in request:
                request += caller.recv(65536)
            head, _, body = request.partition(b"\r\n\r\n")
            length = next(
                (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0
            )
            while len(body) < length:
                body += caller.recv(65536)
            server.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            reply = b"".join(iter(lambda: server.recv(65536), b""))  # it is done: the server has answered
            if lose:
                self.lost += 1
            else:
                caller.sendall(reply)

    def close(self):
        self._socket.close()


def test_a_lost_reply_is_asked_for_again_and_counts_once(served, service):
    service.create("lossy", "exp3.g++", sl.graphs.nested(3), seed=2)
    relay = Lossy(served.address)
    with contextlib.closing(relay), sl.connect(relay.url) as unlucky:
        agent = unlucky["lossy"]
        for _ in range(5):
            decision = agent.ask()
            assert agent.tell(decision, [0.5] * decision.reveals.size) is True
        agent.cancel(agent.ask())
    assert relay.lost >= 11
    assert service["lossy"].state()["counts"] == {
        "decided": 6, "told": 5, "outstanding": 0, "expired": 0, "cancelled": 1, "late": 0,
        "frozen": 0, "held": 0, "defaulted": 0, "fallback": 0, "overridden": 0,
    }  # fmt: skip


def answering(*replies):
    """Return a service whose replies are these, one after another, and the requests that it got."""
    got = []

    def answer(request):
        got.append(request)
        reply = replies[min(len(got), len(replies)) - 1]
        if isinstance(reply, Exception):
            raise reply
        return httpx.Response(reply[0], json=reply[1], headers=reply[2] if len(reply) > 2 else {})

    service = Service("http://127.0.0.1:1", "secret-token", 2.0, 1.0)
    service._http = httpx.Client(transport=httpx.MockTransport(answer), base_url="http://127.0.0.1:1")
    return service, got


MADE = {"id": "a-1", "round": 1, "arm": 0, "probability": None, "reveals": [0], "expires_at": None, "duplicate": False}


def test_every_attempt_has_the_same_key_and_the_service_says_how_long_to_wait():
    service, got = answering(
        (503, {"code": "busy"}), httpx.ReadTimeout("slow"), (429, {"code": "too_fast"}), (201, MADE)
    )
    decision = service["x"].ask()
    assert len({request.headers["Idempotency-Key"] for request in got}) == 1
    assert len(got) == 4
    assert math.isnan(decision.probability)
    service["x"].ask()
    assert got[-1].headers["Idempotency-Key"] != got[0].headers["Idempotency-Key"]
    patient = Patience(10.0)
    assert patient.after(httpx.Response(429, headers={"Retry-After": "3"}, json={})) >= 3.0
    assert patient.after(httpx.Response(429, headers={"Retry-After": "60"}, json={})) is None


def test_what_a_busy_service_wrote_after_all_was_ours():
    """It answered 503 since the disk was slow, and wrote: the repetition that it sees is our own."""
    busy, done = (503, {"code": "busy"}), {"id": "a-1", "round": 1, "learned": False, "duplicate": True}
    service, got = answering(busy, (200, done))
    assert service["x"].tell("a-1", [0.5]) is True
    assert len(got) == 2
    service, _ = answering(busy, (200, done))
    assert service["x"].cancel("a-1") is True
    service, _ = answering((200, done))
    assert service["x"].tell("a-1", [0.5]) is False
    assert service["x"].cancel("a-1") is False


def test_what_is_no_decision_service_is_named():
    service = Service("http://127.0.0.1:1", None, 0.0, 1.0)
    for reply in (httpx.Response(200, text="<h1>It works!</h1>"), httpx.Response(200, json={}), httpx.Response(200)):
        service._http = httpx.Client(transport=httpx.MockTransport(lambda _, r=reply: r), base_url="http://somewhere")
        for call in (service["x"].ask, lambda: service["x"].tell("a-1", [0.5])):
            with pytest.raises(ServiceError, match=r"somewhere.* is not a decision service"):
                call()


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 422, 500, 507])
def test_what_another_attempt_cannot_mend_is_not_attempted(code):
    service, got = answering((code, {"code": "x", "detail": "No."}))
    with pytest.raises(ServiceError, match=r"No\.") as refused:
        service["x"].ask()
    assert (len(got), refused.value.status) == (1, code)


def test_a_refused_snapshot_is_final_and_silence_is_reported():
    service, got = answering((503, {"code": "refused", "detail": "They differ."}))
    with pytest.raises(ServiceError, match="They differ"):
        service["x"].ask()
    assert len(got) == 1
    with (
        sl.connect("http://127.0.0.1:9", patience=0.3) as nowhere,
        pytest.raises(ServiceError, match="sidelong serve") as lost,
    ):
        nowhere["x"].ask()
    assert lost.value.code == "unreachable"
    reason = httpx.RemoteProtocolError("Server disconnected without sending a response.")
    assert "a response. Is it running" in str(unreachable("http://x", reason))
    reason = httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate")
    assert str(unreachable("https://x", reason)).endswith(
        "self-signed certificate. If its certificate is your own, set SSL_CERT_FILE to that file."
    )


def test_a_reply_that_is_no_json_is_still_an_error():
    service = Service("http://127.0.0.1:1", None, 0.0, 1.0)
    service._http = httpx.Client(
        transport=httpx.MockTransport(lambda _: httpx.Response(502, text="<h1>Bad Gateway</h1>")), base_url="http://x"
    )
    with pytest.raises(
        ServiceError, match=r"^http://x/\S+ answers 502 Bad Gateway, and not as .* is the service running"
    ):
        service["x"].ask()


@pytest.mark.parametrize("url", ["127.0.0.1:8431", "ftp://host", "http://", ""])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ServiceError, match="has an address like"):
        sl.connect(url)


def test_the_token_is_in_no_text(monkeypatch):
    monkeypatch.setenv("SIDELONG_TOKEN", "sl_secret")
    with sl.connect("http://127.0.0.1:9", patience=0.0) as service:
        assert service._http.headers["Authorization"] == "Bearer sl_secret"
        assert "secret" not in repr(service) + repr(service["x"])
        with pytest.raises(ServiceError) as refused:
            service["x"].ask()
    assert "secret" not in str(refused.value)


def test_the_labels_of_a_graph_are_those_of_its_experiment(served, service):
    streets = sl.FeedbackGraph.from_edges([(0, 1), (1, 0)], 3, self_loops=True)
    graph = streets.labelled(["elm", "oak", "fir"])
    agent = service.create("streets", "exp3.g++", graph, seed=1)
    assert agent.graph.labels == graph.labels
    shown = httpx.get(f"{served.address}/v1/experiments/streets", timeout=60).json()
    assert [arm["label"] for arm in shown["arms"]["items"]] == ["elm", "oak", "fir"]
    decision = agent.ask()
    agent.tell(decision, [0.5] * decision.reveals.size)
    found = httpx.post(f"{served.address}/v1/experiments/streets/evaluation", json={}, timeout=60).json()
    assert {each["arm"]: each["label"] for each in found["arms"]} == dict(enumerate(graph.labels))
    service.create("streets", "exp3.g++", graph.labelled(None))  # the same again
    with pytest.raises(ServiceError, match="Arms 0 and 1 have the same label"):
        service.create("called", "exp3.g++", graph, labels=["a", "a", "b"])
    named = service.create("called", "exp3.g++", graph, labels=["a", "c", "b"])
    assert (named.state()["arms"]["items"][0]["label"], named.graph.labels) == ("a", ("a", "c", "b"))
    with pytest.raises(ServiceError, match="already, with other labels"):
        service.create("called", "exp3.g++", graph)


@pytest.mark.parametrize("token", ["sl_5f0c2a91_secret\n", "sl_5f0c2a91_s\u00e9cret", " sl_5f0c2a91_secret"])
def test_a_token_that_no_header_can_hold_is_refused_at_once_and_not_shown(token):
    with pytest.raises(ServiceError, match="printable ASCII") as refusal:
        sl.connect("http://127.0.0.1:1", token)
    assert refusal.value.code == "unauthenticated"
    assert "cret" not in str(refusal.value)
