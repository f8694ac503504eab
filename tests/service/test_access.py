"""Who may do what: tokens and scopes, addresses, names of hosts, other sites; and what the log does not say."""

import json
import re
import socket
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from sidelong.cli import app
from sidelong.errors import ServiceError
from sidelong.service.http.openapi import ENDPOINTS
from sidelong.service.store.kinds import open_database
from sidelong.service.store.tokens import Tokens

BODIES = {
    "/v1/experiments": {"name": "x", "graph": {"name": "cliques", "sizes": [3, 2]}},
    "/v1/experiments/{name}": {},
    "/v1/experiments/{name}/clone": {"name": "y"},
    "/v1/graphs": {"edges": []},
    "/v1/decisions/{id}/feedback": {"losses": [0.5]},
    "/v1/decisions/{id}/override": {"arm": 0},
    "/v1/feedback": {"ids": ["0" * 16 + "-1"], "sizes": [0], "losses": ""},
    "/v1/experiments/{name}/evaluation": {},
}
#: By scope: all endpoints that need it. A stream never ends, so that one of nothing is asked for.
REQUESTS = {
    scope: [
        (
            endpoint.method,
            endpoint.path.replace("{name}/events", "nothing/events").format(name="e", id="0" * 16 + "-1", arm=0),
            BODIES[endpoint.path] if endpoint.takes and endpoint.path in BODIES else None,
        )
        for endpoint in ENDPOINTS
        if endpoint.scope == scope
    ]
    for scope in ("admin", "decide", "feedback", "read")
}


@pytest.fixture(scope="module")
def guarded(nursery, tmp_path_factory):
    """Return a server, a token for each scope, and what makes and revokes more."""
    address = f"sqlite:///{tmp_path_factory.mktemp('access')}/access.db"
    database = open_database(address)
    tokens = Tokens(database)
    made = {scope: tokens.create(scope, [scope]) for scope in REQUESTS}
    server = nursery.start(address)
    body = {"name": "e", "learner": "exp3-set", "graph": {"name": "cliques", "sizes": [3, 2]}}
    assert server.post("/v1/experiments", body, Authorization=f"Bearer {made['admin']}")[0] == 201
    yield server, made, tokens
    server.stop()
    database.close()


def statuses(server, requests, token):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return {server.send(method, path, body, headers)[0] for method, path, body in requests}


def test_each_scope_allows_what_it_says_and_nothing_else(guarded):
    server, tokens, _ = guarded
    for scope, requests in REQUESTS.items():
        for holder, token in tokens.items():
            found = statuses(server, requests, token)
            if holder in {scope, "admin"}:
                assert found <= {200, 201, 404, 422}, (scope, holder)
            else:
                assert found == {403}, (scope, holder)


def test_a_missing_wrong_or_revoked_token_is_refused(guarded):
    server, tokens, keeper = guarded
    every = [request for requests in REQUESTS.values() for request in requests]
    right = tokens["admin"]
    id_ = right.split("_")[1]
    for wrong in (
        "",
        "x",
        right[:-1],
        right + "x",
        f"sl_{id_}_",
        "sl__",
        f"sl_00000000_{right.split('_', 2)[2]}",
        f"x{right}",
        "é",
    ):
        assert statuses(server, every, wrong.encode("utf-8").decode("latin-1")) == {401}
    assert server.send("GET", "/v1/experiments", None, {"Authorization": right})[0] == 401
    status, problem, headers = server.send("GET", "/v1/experiments")
    assert (status, problem["code"], headers["WWW-Authenticate"]) == (401, "unauthenticated", "Bearer")
    extra = keeper.create("extra", ["read"])
    time.sleep(Tokens.fresh_for + 0.1)
    assert statuses(server, [("GET", "/v1/experiments", None)], extra) == {200}
    keeper.revoke(extra.split("_")[1])
    time.sleep(Tokens.fresh_for + 0.1)
    assert statuses(server, every, extra) == {401}
    assert server.get("/health")[0] == 200


def test_a_stream_ends_when_its_token_is_revoked(guarded):
    server, _, keeper = guarded
    extra = keeper.create("watcher", ["read"])
    time.sleep(Tokens.fresh_for + 0.1)
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as line:
        head = "GET /v1/experiments/e/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer"
        line.sendall(f"{head} {extra}\r\n\r\n".encode())
        with line.makefile("rb") as stream:
            assert b"200" in stream.readline()
            keeper.revoke(extra.split("_")[1])
            stream.read()  # to its end


def logged(server, path):
    """Return the log up to the line of a request, which is written within a second or two."""
    end = time.monotonic() + 120
    while True:
        log = server.log.read_text()
        found = re.search(rf'^.*"{path}".*\n', log, re.MULTILINE)
        if found:
            return log[: found.end()]
        assert time.monotonic() < end, log
        time.sleep(0.05)


def test_secrets_are_neither_stored_nor_logged(guarded):
    server, tokens, keeper = guarded
    for token in tokens.values():
        server.send("GET", f"/v1/experiments?token={token}", None, {"Authorization": f"Bearer {token}"})
        server.send("GET", f"/v1/experiments/{token}", None, {"Authorization": f"Bearer {token}"})
    server.get("/v1/experiments/the-last")  # lines stand in the order of the replies
    log = logged(server, "/v1/experiments/the-last")
    stored = b"".join(path.read_bytes() for path in server.log.parent.parent.rglob("access.db*"))
    assert stored
    for token in tokens.values():
        secret = token.split("_", 2)[2]
        assert secret not in log
        assert secret.encode() not in stored
    lines = [json.loads(line) for line in log.splitlines()]
    mine = [line for line in lines if line.get("token") == tokens["read"].split("_")[1]]
    assert {"time", "level", "event", "request", "method", "path", "status", "milliseconds"} <= mine[0].keys()
    server.post("/v1/experiments/forbidden/decisions", {}, Authorization=f"Bearer {tokens['read']}")
    refused = json.loads(logged(server, "/v1/experiments/forbidden/decisions").splitlines()[-1])
    assert (refused["status"], refused["token"]) == (403, tokens["read"].split("_")[1])
    assert {token.name for token in keeper.list()} >= set(REQUESTS)


def test_an_open_server_answers_only_to_localhost_and_to_pages_of_its_own(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/open.db")
    assert server.get("/v1/access")[1] == {"token": None, "scopes": ["admin"], "open": True, "experiment": None}
    for host, status in (("localhost", 200), ("[::1]:80", 200), ("evil.example", 403), ("127.0.0.1.evil.example", 403)):
        assert ask(server, host) == status, host
    own = {"Host": f"localhost:{server.port}", "Origin": f"http://localhost:{server.port}"}
    assert server.send("GET", "/v1/access", None, own)[0] == 200
    assert server.send("GET", "/v1/access", None, {**own, "Origin": "http://evil.example"})[0] == 403
    database = open_database(f"sqlite:///{tmp_path}/open.db")
    keeper = Tokens(database)
    token = keeper.create("first", ["admin"])
    keeper.revoke(token.split("_")[1])
    database.close()
    time.sleep(Tokens.fresh_for + 0.1)
    assert server.get("/v1/access")[0] == 401  # a server that has had a token is never open again
    server.stop()


def ask(server, host):
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as line:
        line.sendall(f"GET /v1/access HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        with line.makefile("rb") as stream:
            return int(stream.readline().split()[1])


def test_the_commands_make_list_and_revoke_tokens(tmp_path):
    runner, where = CliRunner(), ["--database", str(tmp_path / "tokens.db")]
    made = runner.invoke(app, ["token", "create", "robot", "--scope", "decide", "--scope", "feedback", *where])
    token = made.stdout.strip()
    assert re.fullmatch(r"sl_[0-9a-f]{8}_[\w-]{43}", token), made.output
    id_ = token.split("_")[1]
    listed = runner.invoke(app, ["token", "list", *where]).stdout
    assert re.fullmatch(rf"{id_}  active   \d{{4}}-\d\d-\d\d \d\d:\d\d  decide,feedback +robot\n", listed)
    assert runner.invoke(app, ["token", "revoke", id_, *where]).exit_code == 0
    assert f"{id_}  revoked" in runner.invoke(app, ["token", "list", *where]).stdout
    assert runner.invoke(app, ["token", "create", "x", "--scope", "all", *where]).exit_code == 2
    assert isinstance(runner.invoke(app, ["token", "revoke", "nothing", *where]).exception, ServiceError)


def test_the_service_refuses_to_be_open_to_other_machines(tmp_path):
    words = ["serve", "--host", "0.0.0.0", "--port", "0", "--database", str(tmp_path / "open.db")]
    refused = subprocess.run([sys.executable, "-m", "sidelong", *words], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "sidelong token create" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_command_serves_until_it_is_told_to_stop(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "sidelong", "serve", "--port", "0", "--database", str(tmp_path / "here.db")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    address = process.stdout.readline()
    assert re.fullmatch(r"sidelong serves http://127\.0\.0\.1:\d+\n", address)
    process.terminate()
    _, log = process.communicate(timeout=120)
    assert process.returncode == 0
    assert all(json.loads(line)["event"] for line in log.splitlines())


def test_the_dashboard_works_behind_a_proxy_that_sends_a_host_of_its_own_if_the_origin_is_named(nursery, tmp_path):
    proxy = {"Host": "127.0.0.1", "Origin": "https://decide.example.org"}
    body = {"name": "e", "graph": {"name": "cliques", "sizes": [3, 2]}}
    server = nursery.start(f"sqlite:///{tmp_path}/one.db")
    status, problem, _ = server.send("POST", "/v1/experiments", body, proxy)
    assert (status, problem["path"]) == (403, "header.origin")
    assert "SIDELONG_ORIGINS" in problem["detail"]
    server = nursery.start(f"sqlite:///{tmp_path}/two.db", origins="https://Decide.example.org https://other.example")
    assert server.send("POST", "/v1/experiments", body, proxy)[0] == 201
    assert server.send("GET", "/v1/access", None, {**proxy, "Origin": "https://evil.example"})[0] == 403
    assert server.send("GET", "/v1/access", None, {**proxy, "Origin": "http://decide.example.org"})[0] == 403


#: What a token for one experiment hears at an address that is about no single one.
ABOUT_ALL = {
    ("POST", "/v1/experiments"): 403,
    ("POST", "/v1/graphs"): 403,
    ("GET", "/metrics"): 403,
    ("GET", "/v1/experiments"): 200,
    ("GET", "/v1/catalogue"): 200,
    ("GET", "/v1/access"): 200,
    ("GET", "/health"): 200,
    ("GET", "/ready"): 200,
    ("GET", "/openapi.json"): 200,
}


def test_a_token_for_one_experiment_reaches_no_other_at_any_address(guarded):
    server, tokens, keeper = guarded
    admin = {"Authorization": f"Bearer {tokens['admin']}"}
    own_graph, other_graph = ({"edges": [[0, 1]], "n_arms": 2, "self_loops": True}, {"low": [0, 0], "high": [2, 2]})
    made = {}
    for name, graph in (("mine", own_graph), ("secret", other_graph)):
        assert server.send("POST", "/v1/experiments", {"name": name, "graph": graph}, admin)[0] == 201
        made[name] = server.send("POST", f"/v1/experiments/{name}/decisions", {}, admin)[1]
        made[name]["graph"] = server.send("GET", f"/v1/experiments/{name}", None, admin)[1]["graph"]["id"]
    token = keeper.create("guest", ["admin"], "mine")  # with every scope
    time.sleep(Tokens.fresh_for + 0.1)
    headers = {"Authorization": f"Bearer {token}"}

    def ask(endpoint, name):
        path = endpoint.path.format(name=name, id=made[name]["id"] if name in made else "0" * 16 + "-1", arm=0)
        path += f"?name={name}" if endpoint.method == "DELETE" else ""
        body = BODIES.get(endpoint.path) if endpoint.takes else None
        return server.send(endpoint.method, path, body, headers)

    before = server.send("GET", "/v1/experiments/secret?digest=true", None, admin)[1]
    for endpoint in ENDPOINTS:
        which = endpoint.method, endpoint.path
        if which == ("POST", "/v1/feedback"):
            ids = made["secret"]["id"], "0" * 16 + "-1"
            for partial in (True, False):
                body = {"sizes": [2], "losses": [0.5, 0.5], "partial": partial}
                sent = ({**body, "ids": [id_]} for id_ in ids)
                theirs, nobodys = (server.send("POST", endpoint.path, each, headers)[:2] for each in sent)
                assert theirs == nobodys == (404, theirs[1])
        elif "{" in endpoint.path:
            theirs, nobodys = ask(endpoint, "secret"), ask(endpoint, "nothing")
            assert theirs[0] == nobodys[0] == 404, which
            hidden = [json.dumps(each[1]).replace("secret", "nothing") for each in (theirs, nobodys)]
            assert hidden[0] == hidden[1], which  # not even that it is there
        else:
            status, reply, *_ = ask(endpoint, "")
            assert status == ABOUT_ALL[which], which
            assert "secret" not in json.dumps(reply), which
            assert made["secret"]["id"][:16] not in json.dumps(reply), which
    assert server.send("GET", "/v1/experiments/secret?digest=true", None, admin)[1] == before
    # By the id of a graph that only another one has, nothing is to be had either.
    for place in ("experiments/mine/decisions", f"decisions/{made['mine']['id']}/feedback"):
        body = {"graph": {"id": made["secret"]["graph"]}} | ({"losses": [0.5, 0.5]} if "feedback" in place else {})
        status, problem, *_ = server.send("POST", f"/v1/{place}", body, headers)
        assert (status, problem["path"]) == (422, "body.graph.id")
        body["graph"]["id"] = made["mine"]["graph"]
        assert server.send("POST", f"/v1/{place}", body, headers)[0] in {200, 201, 422}
    assert [each["name"] for each in server.send("GET", "/v1/experiments", None, headers)[1]["items"]] == ["mine"]
    assert server.send("GET", "/v1/access", None, headers)[1]["experiment"] == "mine"
    # It goes with the experiment, and not with the name.
    assert server.send("PATCH", "/v1/experiments/mine", {"name": "ours"}, headers)[1]["name"] == "ours"
    assert server.send("PATCH", "/v1/experiments/secret", {"name": "mine"}, admin)[0] == 200
    assert server.send("GET", "/v1/experiments/ours", None, headers)[0] == 200
    assert server.send("GET", "/v1/experiments/mine", None, headers)[0] == 404
    changes = server.send("GET", "/v1/experiments/ours/changes", None, headers)[1]["items"]
    assert [(each["by"], each["change"]) for each in changes[1:]] == [("guest", {"name": "ours", "was": "mine"})]
