"""LiteLLM's real proxy, with a callback that routes."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

CONFIG = """
model_list:
  - model_name: chat
    litellm_params: {model: openai/large, api_key: none, mock_response: good}
    model_info: {id: large}
  - model_name: chat
    litellm_params: {model: openai/small, api_key: none, mock_response: bad}
    model_info: {id: small}
litellm_settings:
  callbacks: my_routing.routing
"""

KEY = f"sk-{secrets.token_hex(32)}"  # the proxy demands one

CALLBACK = """
from sidelong.integrations.litellm import Routing

def judge(messages, reply):
    return 1.0 if reply.choices[0].message.content == "good" else 0.0

routing = Routing(at={at!r}, experiment="proxied", group="chat", judge=judge, shadow=0.2, within=5.0)
"""


def send(url, body=None):
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return reply.read().decode()


@pytest.fixture
def proxy(server, tmp_path):
    """Return the address of a proxy."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "my_routing.py").write_text(CALLBACK.format(at=server.address))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [Path(sys.executable).parent / "litellm", "--config", "config.yaml", "--host", "127.0.0.1"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*program, "--port", str(port)],
            cwd=tmp_path,
            stdout=log,
            stderr=log,
            env={**os.environ, "HOME": str(tmp_path), "LITELLM_MASTER_KEY": KEY},
        )
    address, end = f"http://127.0.0.1:{port}", time.monotonic() + 300
    try:
        while True:
            assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
            assert time.monotonic() < end
            try:
                send(f"{address}/health/liveliness")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
            else:
                break
        yield address
    finally:
        process.terminate()
        process.wait(60)


def test_the_proxy_routes_streams_and_learns(proxy, service):
    asked = {"model": "chat", "messages": [{"role": "user", "content": "How are you?"}]}
    replies = []
    end = time.monotonic() + 120
    while len(replies) < 60 or (state := service["proxied"].state())["counts"]["told"] < 50:
        said = send(f"{proxy}/chat/completions", {**asked, "stream": len(replies) % 3 == 0})
        replies.append("good" in said)
        assert time.monotonic() < end, state["counts"]
    assert state["labels"] == ["large", "small"]
    assert state["best"]["label"] == "large"
    assert sum(replies[-20:]) >= 12
