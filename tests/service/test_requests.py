"""What a server answers: bad input, sizes, speeds, live events, the log, and what the page about it shows."""

import io
import itertools
import json
import re
import socket
import time
from contextlib import closing, suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

import sidelong as sl
from sidelong import service
from sidelong.service.http.messages.experiments import CreateExperiment
from sidelong.service.http.openapi import ENDPOINTS
from sidelong.service.http.problems import PROBLEMS, Problem
from sidelong.service.store.kinds import open_database

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")


_numbers = itertools.count(1)


@pytest.fixture
def experiment(server):
    """Return the name of an experiment of this test alone."""
    name = f"e{next(_numbers)}"
    body = {"name": name, "graph": {"name": "cliques", "sizes": [3, 2]}, "seed": 1, "labels": list("abcde")}
    assert server.post("/v1/experiments", body)[0] == 201
    return name


def sequence(server, name):
    return server.get(f"/v1/experiments/{name}")[1]["sequence"]


@pytest.mark.parametrize(
    ("body", "status", "path"),
    [
        ({"losses": {}}, 422, "body.losses"),
        ({"losses": {"9": 0.5}}, 422, "body.losses"),
        ({"losses": {"x": 0.5}}, 422, "body.losses.x"),
        ({"losses": {"00": 0.5}}, 422, "body.losses.00"),
        ({"losses": 0.5}, 422, "body.losses"),
        ({"losses": [0.5] * 9}, 422, "body.losses"),
        ({}, 422, "body.losses"),
        ([], 422, "body"),
        ({"losses": [0.5], "more": 1}, 422, "body.more"),
        ({"losses": [0.5], "graph": {"name": "nested", "n": 4}}, 422, "body.graph"),
        ({"losses": [0.5], "graph": {"id": "0" * 32}}, 422, "body.graph.id"),
        (b'{"losses": {"0": 0.1, "1": 0.2, "2": 0.3, "0": 0.4}}', 422, "body"),
        (b'{"losses": [0.1], "losses": [0.1, 0.2, 0.3]}', 422, "body"),
        (b"{", 400, "body"),
        (b"", 422, "body.losses"),
        (b"[" * 100_000, 400, "body"),
        (b"\xff\xfe", 400, "body"),
        (b"PK\x03\x04" + b"\0" * 100, 400, "body"),
        (b" " * (5 * 2**20), 413, "body"),
    ],
)
def test_bad_feedback_is_refused_and_nothing_is_stored(server, experiment, body, status, path):
    made = server.post(f"/v1/experiments/{experiment}/decisions")[1]
    before = sequence(server, experiment)
    found, problem = server.post(f"/v1/decisions/{made['id']}/feedback", body)
    assert (found, problem["path"][: len(path)]) == (status, path), problem
    assert Problem.model_validate(problem).status == status
    assert sequence(server, experiment) == before


@pytest.mark.parametrize(
    ("graph", "status"),
    [
        ({"name": "nested", "n": 0}, 422),
        ({"name": "nested", "n": True}, 422),
        ({"name": "nested", "n": "4"}, 422),
        ({"name": "nested", "n": 4, "m": 1}, 422),
        ({"name": "nested", "n": 10**9}, 413),
        ({"name": "nested"}, 422),
        ({"name": "nothing", "n": 3}, 422),
        ({"name": "load", "n": 3}, 422),
        ({"name": "erdos_renyi", "n": 5000, "r": 0.5, "seed": 1}, 413),
        ({"name": "hypercube", "d": 60}, 413),
        ({"name": "complete_bipartite", "a": 3000, "b": 3000}, 413),
        ({"name": "cliques", "sizes": [[[1]]]}, 422),
        ({"name": "cliques", "sizes": [150_000, 150_000]}, 413),
        ({"n_arms": 2, "edges": [[0, 0], [1, 1], [0, 0]]}, 422),
        ({"n_arms": 2, "edges": [[0, 0], [1, 2]]}, 422),
        ({"n_arms": 2, "edges": [[0, -1]]}, 422),
        ({"n_arms": 2, "edges": [[0, 1.5]]}, 422),
        ({"n_arms": 2, "edges": [[0, 1, 1]]}, 422),
        ({"n_arms": 2, "edges": "pickle"}, 422),
        ({"n_arms": 10**6, "edges": []}, 413),
        ({"n_arms": 3, "edges": [[0, 0], [1, 1], [1, 2]]}, 422),  # arm 2 does not reveal itself
        ({"low": [0, 0], "high": [1]}, 422),
        ({"low": [0, 0], "high": [1, 9]}, 422),
        ({"id": "../../etc/passwd"}, 422),
        ({"id": "0" * 32}, 422),
        ([], 422),
        (None, 422),
    ],
)
def test_a_bad_graph_is_refused_and_no_experiment_is_made(server, graph, status):
    total = server.get("/v1/experiments")[1]["total"]
    found, problem = server.post("/v1/experiments", {"name": "bad", "graph": graph})
    assert (found, problem["path"][:10]) == (status, "body.graph"), problem
    assert server.get("/v1/experiments")[1]["total"] == total


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": "../x"}, "body.name"),
        ({"name": ""}, "body.name"),
        ({"name": "a" * 65}, "body.name"),
        ({"learner": "exp4"}, "body.learner"),
        ({"options": {"gama": 4}}, "body.learner"),
        ({"options": {"gamma": "x"}}, "body.learner"),
        ({"options": {"gamma": 10**400}}, "body.learner"),
        ({"options": {"gamma": {"a": [1]}}}, "body.learner"),
        ({"options": {"seed": 3}}, "body.options"),
        ({"options": {"self": 3}}, "body.options"),
        ({"seed": -1}, "body.seed"),
        ({"seed": 2**64}, "body.seed"),
        ({"seed": "1"}, "body.seed"),
        ({"expire_after": 0}, "body.expire_after"),
        ({"labels": ["a"]}, "body.labels"),
        ({"labels": ["a", "b", "c", "b"]}, "body.labels.3"),
        ({"more": 1}, "body.more"),
    ],
)
def test_a_bad_experiment_is_refused(server, change, path):
    body = {"name": "bad", "graph": {"name": "nested", "n": 4}, **change}
    status, problem = server.post("/v1/experiments", body)
    assert (status, problem["path"]) == (422, path), problem


def test_unknown_things_are_not_found(server, experiment):
    key = server.post(f"/v1/experiments/{experiment}/decisions")[1]["id"].partition("-")[0]
    foreign = f"{'0' * 16}-1"
    for id_ in (f"{key}-99", f"{key}-0", f"{key}-01", foreign, "x", f"{key}-{10**18}"):
        assert server.post(f"/v1/decisions/{id_}/feedback", {"losses": [0.5]})[0] == 404
        assert server.post(f"/v1/decisions/{id_}/cancel")[0] == 404
        status, problem = server.get(f"/v1/decisions/{id_}")
        assert (status, problem["path"]) == (404, "path.id")
        assert problem["value"] == (None if id_ == foreign else id_)
    for path in ("", "/graph", "/rates", "/events", "/log"):
        assert server.get(f"/v1/experiments/nothing{path}")[1]["code"] == "not_found"
    for ask in (server.get, server.post):
        assert ask("/v1/nothing")[1]["code"] == "not_found"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("POST", "/health", "GET"), ("PUT", "/v1/experiments", "POST, GET"), ("POST", "/index.html", "GET, HEAD")],
)
def test_a_method_that_an_address_does_not_have_is_told_those_it_has(server, method, path, allowed):
    status, problem, headers = server.send(method, path, None, {})
    assert (status, problem["code"], headers["Allow"]) == (405, "method_not_allowed", allowed)
    assert problem["detail"] == f"{method} is not for this address; send {allowed}."


def test_a_body_of_another_type_is_refused_with_what_to_send(server, experiment):
    for path in (f"/v1/experiments/{experiment}/decisions", "/v1/experiments"):
        status, problem, _ = server.send("POST", path, b"{}", {"Content-Type": "text/plain"})
        assert (status, problem["code"]) == (415, "unsupported_media_type")
        assert "application/json" in problem["detail"]


def test_a_context_comes_back_in_the_log_and_is_limited(server, experiment):
    path = f"/v1/experiments/{experiment}/decisions"
    made = server.post(path, {"context": {"store": 12, "name": "\u0000é"}})[1]
    assert server.get(f"/v1/decisions/{made['id']}")[1]["context"] == {"store": 12, "name": "\u0000é"}
    assert server.post(path, {"context": {"x": "y" * 5000}})[0] == 413
    assert server.post(path, b'{"context": {"x": NaN}}')[0] == 422
    status, problem = server.post(path, b'{"context": {"a": [{"b": 1, "c": {}, "b": 2}]}}')
    assert (status, problem["value"]) == (422, "b")
    assert server.post(path, b'{"context": {"a:b": 1, "c": [{"a": 1}, {"a": 1}]}}')[0] == 201


def test_the_log_has_the_columns_of_the_open_bandit_pipeline_and_the_observation_probabilities(server, experiment):
    made = [server.post(f"/v1/experiments/{experiment}/decisions")[1] for _ in range(8)]
    for number, each in enumerate(made[:6]):
        losses = {str(arm): 0.1 * arm + 0.01 * number for arm in each["reveals"]}
        server.post(f"/v1/decisions/{each['id']}/feedback", {"losses": losses})
    server.post(f"/v1/decisions/{made[6]['id']}/cancel")
    table = pq.read_table(io.BytesIO(server.get(f"/v1/experiments/{experiment}/log")[1]))
    documented = re.findall(
        r"^\| `(\w+)` \| (?!`)", PAGE.partition("`GET /v1/experiments/{name}/log`\n")[2], re.MULTILINE
    )
    assert table.column_names == documented
    rows = table.to_pylist()
    assert [row["status"] for row in rows] == ["told"] * 6 + ["cancelled", "outstanding"]
    for row, each in zip(rows, made, strict=True):
        assert (row["decision"], row["action"], row["pscore"]) == (each["id"], each["arm"], each["probability"])
        state = server.get(f"/v1/decisions/{each['id']}")[1]
        if row["status"] != "told":
            assert (row["reward"], row["losses"], row["observed"]) == (None, None, None)
            continue
        assert row["observed"] == each["reveals"]
        assert row["losses"] == state["losses"]
        assert row["observe_probabilities"] == state["observe_probabilities"]
        assert row["reward"] == 1 - row["losses"][row["observed"].index(row["action"])]
    about = json.loads(table.schema.metadata[b"sidelong.experiment"])
    assert (about["name"], about["learner"], about["n_arms"]) == (experiment, "glance", 5)


def test_events_arrive_live_and_go_on_after_a_break(server, experiment):
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as line:
        line.sendall(f"GET /v1/experiments/{experiment}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        with line.makefile("rb") as stream:
            assert b"200" in stream.readline()
            begun = time.monotonic()
            made = server.post(f"/v1/experiments/{experiment}/decisions")[1]
            data = next(text for text in stream if text.startswith(b"data:"))
        assert time.monotonic() - begun < 60
        event = json.loads(data[5:])
        assert (event["kind"], event["round"], event["arm"]) == ("decided", 1, made["arm"])
    server.post(f"/v1/decisions/{made['id']}/cancel")
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as line:
        line.sendall(
            f"GET /v1/experiments/{experiment}/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 1\r\n\r\n".encode()
        )
        with line.makefile("rb") as stream:
            lines = (text for text in stream if text.startswith((b"event:", b"id:")))
            found = [next(lines).strip() for _ in range(4)]
        assert found == [b"id: 2", b"event: decided", b"id: 3", b"event: cancelled"]


def test_an_open_stream_does_not_keep_the_server_from_stopping(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/stop.db")
    server.post("/v1/experiments", {"name": "e", "graph": {"name": "cliques", "sizes": [3, 2]}})
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as line:
        line.sendall(b"GET /v1/experiments/e/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with line.makefile("rb") as stream:
            assert b"200" in stream.readline()
            before = server.log.stat().st_size
            server.stop()
            # The stream has an end of its own. Uvicorn, which gives up after a while, would cut it off and say so.
            assert stream.read().endswith(b"0\r\n\r\n")
    assert b"graceful shutdown exceeded" not in server.log.read_bytes()[before:]


@pytest.mark.parametrize(
    ("method", "path"), [(endpoint.method, endpoint.path) for endpoint in ENDPOINTS if endpoint.takes is not None]
)
def test_a_body_that_is_slow_or_large_is_given_up_at_every_address(brief, method, path):
    place = path.replace("{name}", "e").replace("{id}", f"{'0' * 16}-1")
    head = f"{method} {place} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    for length, status in ((100, b" 408 "), (2**30, b" 413 ")):
        reply = b""
        while not reply:  # a busy machine may open a connection and say nothing for a second, and be given up
            with suppress(ConnectionError), socket.create_connection(("127.0.0.1", brief.port), timeout=120) as line:
                line.sendall(f"{head}{length}\r\n\r\n{{".encode())
                with line.makefile("rb") as stream:
                    reply = stream.readline()
        assert status in reply


def test_a_body_may_have_as_many_bytes_as_the_setting_says_and_not_one_more(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/small.db", max_body=5_000)
    server.post("/v1/experiments", {"name": "e", "graph": {"name": "cliques", "sizes": [3, 2]}})
    replies = [server.post("/v1/experiments/e/decisions", b"{}".ljust(size)) for size in (5_000, 5_001)]
    assert [status for status, _ in replies] == [201, 413]
    assert "at most 5,000 bytes" in replies[1][1]["detail"]
    server.stop()


@pytest.fixture(scope="module")
def brief(nursery, tmp_path_factory):
    """Return a server that waits for nobody."""
    started = nursery.start(f"sqlite:///{tmp_path_factory.mktemp('brief')}/brief.db", request_timeout=0.3)
    started.post("/v1/experiments", {"name": "e", "graph": {"name": "cliques", "sizes": [3, 2]}})
    yield started
    started.stop()


def silent_or_endless(port, _):
    for beginning in (b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: loc"):
        with socket.create_connection(("127.0.0.1", port), timeout=120) as line:
            line.sendall(beginning)
            assert line.recv(100) == b""  # closed
    with socket.create_connection(("127.0.0.1", port), timeout=120) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: yyyyyyyyy\r\n" * 10_000)
        assert line.recv(12) == b"HTTP/1.1 400"


def slow(port, limit):
    """Take more than the limit for two requests, and less for each."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as line:
        for part in (b"GET /health HTTP/1.1\r\n", b"Host: localhost\r\n", b"\r\n") * 2:
            time.sleep(0.2 * limit)
            line.sendall(part)
            reply = b""
            while part == b"\r\n" and not reply.endswith(b"}"):
                more = line.recv(1000)
                assert more
                reply += more
            assert reply[:12] in {b"", b"HTTP/1.1 200"}
        head = b"POST /v1/decisions/x/cancel HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n"
        line.sendall(head)  # a body that nobody reads is not taken for headers
        assert line.recv(12) == b"HTTP/1.1 404"
        line.sendall(b"x" * 200_000 + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while b"HTTP/1.1" not in (reply := line.recv(1000)):
            assert reply
        assert b"HTTP/1.1 200" in reply
        line.sendall(b"\r\n")  # which begins no request
        while line.recv(1000):
            pass


@pytest.mark.parametrize("talk", [silent_or_endless, slow])
def test_whoever_says_nothing_or_does_not_come_to_an_end_is_given_up(nursery, tmp_path, talk):
    """On a machine that is too busy to say something in a second, all takes longer: what fails must fail thrice."""
    for seconds in (1, 4, 16):
        server = nursery.start(f"sqlite:///{tmp_path}/idle.db", request_timeout=float(seconds))
        try:
            talk(server.port, seconds)
        except (AssertionError, OSError):
            if seconds == 16:
                raise
        else:
            break
        finally:
            server.stop()


def test_a_slow_disk_is_given_up_and_the_decision_made_once(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/held.db", request_timeout=3.0, busy_timeout=300.0)
    server.post("/v1/experiments", {"name": "e", "graph": {"name": "cliques", "sizes": [3, 2]}})
    key = {"Idempotency-Key": "again"}
    other = open_database(f"sqlite:///{tmp_path}/held.db")
    with closing(other), other.writing():
        status, refused, headers = server.send("POST", "/v1/experiments/e/decisions", headers=key)  # waits for a minute
        assert (status, refused["code"], headers["Retry-After"]) == (503, "busy", "1")
    replies = [server.send("POST", "/v1/experiments/e/decisions", headers=key)[1] for _ in range(2)]
    assert [reply["round"] for reply in replies] == [1, 1]
    assert replies[1]["duplicate"]
    server.stop()


def test_graph_files_are_uploaded_and_used_by_id(server):
    text = b"# arms: 3\n0 0\n1 1\n2 2\n0 2\n"
    status, found = server.post("/v1/graphs?format=edges", text)
    again, same = server.post("/v1/graphs?format=edges", text)
    assert (status, again) == (201, 200)
    assert found == same
    assert (found["n_arms"], found["n_edges"]) == (3, 4)
    body = {"name": "uploaded", "graph": {"id": found["id"]}}
    assert server.post("/v1/experiments", body)[1]["graph"]["id"] == found["id"]
    wrong = {"name": "unlabelled", "graph": {"id": found["id"]}, "labels": ["a"]}
    assert server.post("/v1/experiments", wrong)[1]["path"] == "body.labels"
    for format_, data in (("npz", b"\x80\x04K\x00."), ("json", b"[]"), ("edges", b"0 x\n"), ("npz", b"")):
        assert server.post(f"/v1/graphs?format={format_}", data)[0] == 422
    assert server.post("/v1/graphs?format=edges", b"#" * (5 * 2**20))[0] == 413


def test_the_page_of_the_http_api_shows_replies_as_they_are(server, experiment):
    made = server.post(f"/v1/experiments/{experiment}/decisions")[1]
    told = server.post(f"/v1/decisions/{made['id']}/feedback", {"losses": [0.5] * len(made["reveals"])})[1]
    state = server.get(f"/v1/experiments/{experiment}")[1]
    shown = {
        f"/v1/experiments/{experiment}": state,
        "/v1/experiments": server.get("/v1/experiments")[1],
        f"/v1/experiments/{experiment}/graph": server.get(f"/v1/experiments/{experiment}/graph")[1],
        f"/v1/experiments/{experiment}/rates": server.get(f"/v1/experiments/{experiment}/rates?minutes=2")[1],
        f"/v1/decisions/{made['id']}": server.get(f"/v1/decisions/{made['id']}")[1],
        "/v1/access": server.get("/v1/access")[1],
        "/ready": server.get("/ready")[1],
        "decision": made,
        "told": told,
    }
    examples = [
        json.loads(line) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL) for line in objects(block)
    ]
    for address, reply in shown.items():
        assert any(alike(reply, example) for example in examples), address


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}")
def test_every_example_of_the_page_is_a_message_of_its_endpoint(endpoint):
    section = re.split(r"^##+ ", PAGE.partition(f"### `{endpoint.method} {endpoint.path}`\n")[2], flags=re.MULTILINE)[0]
    replies = [model for each in endpoint.gives.values() for model in (each if isinstance(each, tuple) else (each,))]
    for block in re.findall(r"```json\n(.*?)```", section, re.DOTALL):
        for example in map(json.loads, objects(block)):
            if endpoint.takes is CreateExperiment and "learner" not in example:  # a graph by itself
                example = {"name": "orders", "graph": example}  # noqa: PLW2901
            # What is taken refuses fields that it does not know, and what is given need not.
            assert fits(example, endpoint.takes) or any(fits(example, reply, extra="forbid") for reply in replies), (
                example
            )


def fits(example, model, **options):
    """Tell whether an example is a message of this kind."""
    try:
        return isinstance(model, type) and bool(model.model_validate(example, **options))
    except ValidationError:
        return False


def objects(block):
    """Return the objects of a block of examples, one after the other."""
    decoder, place = json.JSONDecoder(), 0
    while block[place:].strip():
        place += len(block[place:]) - len(block[place:].lstrip())
        _, end = decoder.raw_decode(block, place)
        yield block[place:end]
        place = end


def alike(reply, example):
    """Tell whether two replies have the same keys, at every depth; null may stand for what is not kept."""
    if reply is None and isinstance(example, dict):
        return True
    if isinstance(reply, dict) and isinstance(example, dict):
        free = {"options", "context"}
        return reply.keys() == example.keys() and all(alike(reply[k], example[k]) for k in reply if k not in free)
    if isinstance(reply, list) and isinstance(example, list):
        return not reply or not example or alike(reply[0], example[0])
    return not isinstance(reply, dict | list) and not isinstance(example, dict | list)


def test_the_page_lists_every_error_with_its_title_and_codes(server, experiment):
    table = re.findall(r"^\| (\d{3}) \| ([A-Z][\w ]+) \| ([^|]+) \|", PAGE.partition("## Errors")[2], re.MULTILINE)
    listed = {int(status): (title, tuple(re.findall(r"`(\w+)`", codes))) for status, title, codes in table}
    assert listed == PROBLEMS
    made = server.post(f"/v1/experiments/{experiment}/decisions")[1]
    losses = dict.fromkeys(map(str, made["reveals"]), 0.5) | {str(made["arm"]): 1.0000001}
    problem = server.post(f"/v1/decisions/{made['id']}/feedback", {"losses": losses})[1]
    shown = json.loads(re.search(r"```json\n(.*?)```", PAGE.partition("## Errors")[2], re.DOTALL)[1])
    said = shown["detail"].replace("arm 3", f"arm {made['arm']}")
    assert problem == {**shown, "path": f"body.losses.{made['arm']}", "detail": said}


def test_every_error_that_is_raised_has_a_status_of_the_table_and_one_of_its_codes():
    raised = re.compile(r"(?:status=|_refusal\()(\d{3}),\s*(?:code=)?\"(\w+)\"")
    room = Path(service.__file__).parent
    files = [path for part in ("http", "store") for path in (room / part).rglob("*.py")]
    found = {(int(status), code) for path in files for status, code in raised.findall(path.read_text(encoding="utf-8"))}
    assert len(found) >= 20
    assert found <= {(status, code) for status, (_, codes) in PROBLEMS.items() for code in codes}


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ({"a": [1, None, True]}, {"a": [1, None, True]}),
        ("\N{SNOWMAN}", "\N{SNOWMAN}"),
        (10**30, 10**30),
        ([0.5] * 100, "[" + "0.5," * 49 + "0.5..."),
        ("x" * 300, "x" * 200 + "..."),
    ],
)
def test_the_value_of_an_error_is_what_was_received(server, sent, shown):
    status, problem = server.post("/v1/experiments", {"name": "bad", "graph": {"name": "star", "n": 3}, "seed": sent})
    assert (status, problem["path"], problem["value"]) == (422, "body.seed", shown)
    assert problem["detail"].endswith(f"it is {json.dumps(shown, ensure_ascii=False, separators=(',', ':'))}.")


def test_the_labels_of_an_uploaded_graph_are_kept_over_a_restart(nursery, tmp_path):
    graph = sl.graphs.star(3).labelled(["hub", "left", "right"])
    graph.save(tmp_path / "graph.json")
    address = f"sqlite:///{tmp_path}/labels.db"
    server = nursery.start(address)
    graph.labelled(None).save(tmp_path / "plain.json")
    ids = [server.post("/v1/graphs", (tmp_path / name).read_bytes())[1]["id"] for name in ("graph.json", "plain.json")]
    assert len(set(ids)) == 2
    server.stop()
    server = nursery.start(address)
    for name, id_, labels in (("labelled", ids[0], ["hub", "left", "right"]), ("plain", ids[1], [None] * 3)):
        made = server.post("/v1/experiments", {"name": name, "graph": {"id": id_}})[1]
        assert [arm["label"] for arm in made["arms"]["items"]] == labels
        assert made["graph"]["id"] == ids[1]  # what the experiment plays on has no labels
    own = {"name": "own", "graph": {"id": ids[0]}, "labels": ["x", "y", "z"]}
    assert [arm["label"] for arm in server.post("/v1/experiments", own)[1]["arms"]["items"]] == ["x", "y", "z"]
    sl.graphs.nested(3).labelled(["a", "b", "c" * 201]).save(tmp_path / "long.json")
    status, problem = server.post("/v1/graphs", (tmp_path / "long.json").read_bytes())
    assert (status, problem["path"]) == (422, "body")
    server.stop()
