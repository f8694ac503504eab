"""What the pages say about the service and do not run themselves: requests, and the service in place of an agent."""

import contextlib
import itertools
import json
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

import sidelong as sl

DOCS = Path(__file__).parents[2] / "docs"
HERE = "http://127.0.0.1:8431"


def blocks(page, kind):
    found = re.findall(rf"^```{kind} *\n(.*?)^```", (DOCS / f"{page}.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found, (page, kind)
    return found


@pytest.fixture
def connections(monkeypatch):
    """Close what the code of a page leaves open."""
    with contextlib.ExitStack() as opened:
        connect = sl.connect
        monkeypatch.setattr(sl, "connect", lambda address: opened.enter_context(connect(address)))
        yield


def test_the_requests_of_the_page_about_managing_are_answered(server):
    orders = {"name": "orders", "graph": {"name": "nested", "n": 4}}
    routes = {"name": "routes", "graph": {"name": "self_loops", "n": 3}, "labels": ["mini", "large", "small"]}
    for body in (orders, routes):
        assert server.post("/v1/experiments", body)[0] == 201
    lines = [line for block in blocks("life", "bash") for line in block.splitlines()]
    assert len(lines) == 5
    for line in lines:
        words = shlex.split(line)
        options = dict(itertools.pairwise(words))
        [address] = [word.removeprefix("localhost:8431") for word in words if word.startswith("localhost")]
        headers = dict(word.split(": ") for option, word in itertools.pairwise(words) if option == "-H")
        body = options["-d"].encode() if "-d" in options else None
        status, reply, _ = server.send(options["-X"], address, body, headers)
        assert status in {200, 201}, (line, reply)


def test_the_bodies_of_the_page_about_managing_are_accepted(server):
    prior, holdout, subject = map(json.loads, blocks("life", "json"))
    for number, body in enumerate((prior, holdout)):
        assert server.post("/v1/experiments", {**body, "name": f"life-{number}"})[0] == 201
    sticky = {"name": "sticky", "graph": {"name": "nested", "n": 4}, "sticky": {"seconds": 1800}}
    assert server.post("/v1/experiments", sticky)[0] == 201
    arms = {server.post("/v1/experiments/sticky/decisions", subject)[1]["arm"] for _ in range(3)}
    assert len(arms) == 1


@pytest.mark.usefixtures("connections")
def test_the_service_in_place_of_an_agent_with_features(server):
    [code] = [block for block in blocks("features", "text") if "sl.connect" in block]
    names = {"sl": sl}
    asked, told = code.replace(HERE, server.address).split("agent.tell", 1)
    exec(asked, names)  # noqa: S102
    names["losses"] = [0.5] * len(names["decision"].reveals)
    exec(f"agent.tell{told}", names)  # noqa: S102
    assert names["agent"].state()["counts"]["told"] == 1


@pytest.mark.usefixtures("connections")
def test_the_service_in_place_of_a_family(server):
    [code] = [block for block in blocks("many-products", "text") if "sl.connect" in block]
    orders = sl.outcomes.StockOrders(24, holding=1, shortage=4)
    shop = sl.connect(server.address).create("shop", "glance", orders.graph, seed=7, keyed=True)
    plan = shop.ask_many(["bread", "milk"])
    week = pd.DataFrame({"sku": plan.keys, "decision": plan.ids, "order": plan.arms, "sold": [7, 11]})
    seen = orders.outcomes(week.order, week.sold)
    names = {"sl": sl, "orders": orders, "week": week, "seen": seen}
    exec(code.replace(HERE, server.address), names)  # noqa: S102
    assert list(names["plan"].keys) == ["bread", "milk"]
    assert names["shop"].state()["counts"]["told"] == 2
