"""`sidelong evaluate`: a table, JSON, and one sentence about what is wrong."""

import contextlib
import io
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sidelong import cli, evaluation
from sidelong.cli.evaluate import _print
from sidelong.errors import EvaluationError
from sidelong.evaluation import read_log


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    rng = np.random.default_rng(2)
    p = np.array([0.2, 0.3, 0.5])
    arms = rng.choice(3, 600, p=p)
    rewards = [None if k % 50 == 0 else float(rng.random() < [0.8, 0.4, 0.3][arm]) for k, arm in enumerate(arms)]
    path = tmp_path_factory.mktemp("logs") / "log.parquet"
    parquet.write_table(pa.table({"action": arms, "reward": rewards, "pscore": p[arms]}), path)
    return path


def run(*arguments, **environment):
    return CliRunner().invoke(cli.app, ["evaluate", *map(str, arguments)], env={"COLUMNS": "80", **environment})


def test_the_table_has_the_numbers_of_the_estimates(log, tmp_path):
    (tmp_path / "mix.json").write_text('{"0": 0.5, "2": 0.5}')
    shown = run(log, "--distribution", tmp_path / "mix.json").output
    found = read_log(log)
    arms = evaluation.evaluate_arms(found)
    lines = {line[:16].strip(): line[16:].split() for line in shown.splitlines()}
    for arm in range(3):
        assert lines[f"arm {arm}"][:4] == [
            f"{arms.value[arm]:.4f}", f"{arms.lower[arm]:.3f}", "to", f"{arms.upper[arm]:.3f}"
        ]  # fmt: skip
    mix = evaluation.evaluate_distribution(found, [0.5, 0, 0.5]).value[0]
    assert lines["mix.json"][0] == f"{mix:.4f}"
    assert lines["what was played"][0] == f"{np.nanmean(found.cost):.4f}"
    assert "600 rounds, 12 of them without feedback" in shown
    assert "Regret against arm 0" in shown
    bound = evaluation.certificate(evaluation.read_log(log)).bound
    assert f"Certificate: at most {bound:,.1f} was lost beyond any fixed arm, 95 % sure" in " ".join(shown.split())
    order = [shown.index(f"arm {arm} ") for arm in np.argsort(arms.value)]
    assert order == sorted(order)
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown


def test_nothing_is_cut_off_and_a_question_mark_stands_where_nothing_is_known():
    """Ends outside of [0, 1] and a million rounds, in 80 columns."""
    known = {"value": 0.5, "lower": -0.2, "upper": 0.7, "rejected": False, "effective": 1_234_567.0}
    known |= {"rounds": 1_234_567, "weight": 1.0}
    nothing = known | {"upper": 1.3}
    summary = {"rounds": 1_234_567, "without_feedback": 0, "confidence": 0.95, "played": 0.5}
    summary |= {"regret": {"value": None, "rejected": False}, "certificate": {"bound": 1_234_567.0, "why": ""}}
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as shown:
        patch.setenv("COLUMNS", "80")
        _print(summary, {"arm 0": known, "arm 1": nothing}, {"uniform": known}, 20)
    lines = {line[:16].strip(): line[16:].split() for line in shown.getvalue().splitlines()}
    assert lines["arm 0"] == ["0.5000", "0.000", "to", "0.700", "1,234,567", "1,234,567"]
    assert lines["arm 1"] == ["0.5000", "?", "1,234,567", "1,234,567"]


def test_what_rounds_to_nothing_has_no_sign(capsys):
    nothing = {"value": -1e-9, "lower": -0.0, "upper": -1e-9, "rejected": False, "effective": 9.0, "rounds": 9}
    summary = {"rounds": 9, "without_feedback": 0, "confidence": 0.95, "played": -0.0}
    summary |= {"regret": nothing | {"best": 0}, "certificate": {"bound": -0.0, "why": ""}}
    _print(summary, {"arm 0": nothing, "arm 1": nothing | {"value": -0.5}}, {"uniform": nothing}, 20)
    shown = capsys.readouterr().out
    assert not re.search(r"-0\.0+\b", shown), shown
    assert "0.0000" in shown
    assert "-0.5000" in shown


def test_a_log_that_contradicts_itself_is_said_to(tmp_path):
    """The arms were drawn evenly, and the log has 0.02."""
    rewards = [float(k % 4 < 2) for k in range(600)]
    table = pa.table({"action": [k % 2 for k in range(600)], "reward": rewards, "pscore": [0.02] * 600})
    parquet.write_table(table, tmp_path / "log.parquet")
    shown = run(tmp_path / "log.parquet", "--confidence", "0.9").output
    lines = {line[:16].strip(): line[16:].split() for line in shown.splitlines()}
    assert lines["arm 0"][1] == "?"
    assert "The log contradicts what intervals assume" in shown
    assert "probability of at most 10 %" in " ".join(shown.split())
    assert "Regret" not in shown
    found = json.loads(run(tmp_path / "log.parquet", "--json").output)
    assert found["regret"]["rejected"]
    assert [(row["rejected"], row["lower"], row["upper"]) for row in found["arms"]] == [(True, None, None)] * 2


def test_json_has_all_of_it(log):
    shown = json.loads(run(log, "--json", "--confidence", "0.9", "--n-arms", "4").output)
    arms = evaluation.evaluate_arms(read_log(log, 4), 0.9)
    assert [row["value"] for row in shown["arms"]] == [*arms.value[:3].tolist(), None]
    assert [row["upper"] for row in shown["arms"]] == arms.upper.tolist()
    assert shown["distributions"]["uniform"]["rounds"] == 588
    assert (shown["rounds"], shown["without_feedback"], shown["confidence"]) == (600, 12, 0.9)


@pytest.mark.parametrize(
    ("content", "says"),
    [("{", "is not a distribution"), ('{"9": 1}', "no arm 9"), ("[0.5, 0.5]", "3 arms"), ('{"x": 1}', "not a distr")],
)
def test_a_wrong_distribution_is_one_sentence(log, tmp_path, content, says):
    (tmp_path / "mix.json").write_text(content)
    with pytest.raises(EvaluationError, match=says):
        raise run(log, "--distribution", tmp_path / "mix.json").exception


@pytest.fixture(scope="module")
def with_contexts(tmp_path_factory):
    """Return a log in which the loss is 0.2 on Mondays, 0.8 on other days, and one decision has no context."""
    path = tmp_path_factory.mktemp("logs") / "contexts.parquet"
    contexts = [json.dumps({"weekday": "MT"[k % 2], "size": k % 3, "late": k % 2 == 1}) for k in range(11)] + [None]
    rewards = [0.8 if k % 2 == 0 else 0.2 for k in range(12)]
    columns = {"action": [k % 2 for k in range(12)], "reward": rewards, "pscore": [0.5] * 12, "context": contexts}
    parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("given", "rounds"),
    [
        ([], 12),
        (["weekday=M"], 6),
        (["weekday=M", "size=2"], 2),
        (["weekday=M", "size=2.0"], 2),
        (["late=true"], 5),
    ],
)
def test_only_decisions_with_a_context_are_counted_where_that_is_asked(with_contexts, given, rounds):
    shown = json.loads(run(with_contexts, "--json", *(part for each in given for part in ("--where", each))).output)
    assert shown["rounds"] == rounds


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("weekday", "must be NAME=VALUE"),
        ("=M", "must be NAME=VALUE"),
        ("size=true", "No decision of the log had"),
        ("late=1", "No decision of the log had"),
        ("weekday=X", "No decision of the log had"),
    ],
)
def test_a_wrong_where_is_one_sentence(with_contexts, given, says):
    with pytest.raises(EvaluationError, match=says):
        raise run(with_contexts, "--where", given).exception


def test_where_needs_contexts_that_are_json(log, tmp_path):
    with pytest.raises(EvaluationError, match="needs a column context"):
        raise run(log, "--where", "weekday=M").exception
    columns = {"action": [0], "reward": [0.5], "pscore": [1.0], "context": ["not JSON"]}
    parquet.write_table(pa.table(columns), tmp_path / "log.parquet")
    with pytest.raises(EvaluationError, match="must hold JSON"):
        raise run(tmp_path / "log.parquet", "--where", "weekday=M").exception


class Service(BaseHTTPRequestHandler):
    """A service that wants the token "right" and has one experiment."""

    content = b""

    def do_GET(self):
        right = self.headers["Authorization"] == "Bearer right"
        found = self.path == "/v1/experiments/orders/log"
        body = self.content if right and found else b'{"detail": "No."}'
        self.send_response(200 if right and found else 404 if right else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def address(log):
    Service.content = log.read_bytes()
    with HTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_experiment_is_read_from_its_address(address, log):
    for name in ("orders", "orders/log", "orders/"):
        shown = run(f"{address}/v1/experiments/{name}", SIDELONG_TOKEN="right")  # noqa: S106  # a test's own
        assert shown.output == run(log).output


def test_what_the_service_refuses_is_said(address):
    for name, token, says in (
        ("/v1/experiments/orders", "wrong", "401: No. Give a token"),
        ("/v1/experiments/nothing", "right", "404: No."),
        ("/", "right", "not the address of an experiment"),
    ):
        with pytest.raises(EvaluationError, match=says):
            raise run(address + name, "--token", token).exception
    with pytest.raises(EvaluationError, match="cannot be reached"):
        raise run("http://127.0.0.1:9/v1/experiments/orders").exception
    with pytest.raises(EvaluationError, match="not the address of an experiment"):
        raise run("http://[/v1/experiments/orders").exception
