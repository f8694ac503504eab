"""Behind a real nginx, with TLS and a path prefix, as the page on operations says."""

import contextlib
import json
import re
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import httpx
import pytest

import installed
import sidelong as sl
from browser import PATIENCE
from sidelong.errors import ServiceError
from sidelong.service.store.kinds import open_database
from sidelong.service.store.tokens import Tokens

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
GRAPH = sl.graphs.cliques([3, 2])
AROUND = """\
{user}
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""


class Proxy:
    """A running nginx."""

    def __init__(self, folder):
        self._folder = folder
        self._program = installed.nginx()
        made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        files = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
        subprocess.run([installed.openssl(), *made, *names, *files], check=True, capture_output=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.origin = f"https://localhost:{self.port}"
        self.address = f"{self.origin}/decide"

    @contextlib.contextmanager
    def before(self, server, *, sends_host=True):
        """Show a server, until the end of the block."""
        block = re.search(r"^```nginx\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
        changes = {
            "listen 443 ssl": f"listen 127.0.0.1:{self.port} ssl",
            "server_name decide.example.org": "server_name localhost",
            "/etc/ssl/decide.pem": f"{self._folder}/cert.pem",
            "/etc/ssl/decide.key": f"{self._folder}/key.pem",
            "127.0.0.1:8431": f"127.0.0.1:{server.port}",
        }
        if not sends_host:
            changes["proxy_set_header Host $http_host;"] = ""
        for old, new in changes.items():
            assert block.count(old) == 1, old
            block = block.replace(old, new)
        text = AROUND.format(user="user root;", folder=self._folder, server=block)
        (self._folder / "nginx.conf").write_text(text)
        process = subprocess.Popen([self._program, "-p", self._folder, "-c", self._folder / "nginx.conf"], stderr=-1)
        try:
            while True:
                assert process.poll() is None, process.stderr.read()
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                    break
                time.sleep(0.02)
            yield
        finally:
            process.terminate()
            process.wait()
            process.stderr.close()

    def client(self, token, **headers):
        """Return a client that trusts the certificate, and sends these headers."""
        trusted = ssl.create_default_context(cafile=str(self._folder / "cert.pem"))
        headers |= {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.address, verify=trusted, headers=headers, timeout=60)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    return Proxy(tmp_path_factory.mktemp("nginx"))


@pytest.fixture
def guarded(tmp_path):
    """Return the address of a database, and a token of its service."""
    address = f"sqlite:///{tmp_path}/proxied.db"
    database = open_database(address)
    token = Tokens(database).create("client", ["admin"])
    database.close()
    return address, token


def test_a_client_behind_nginx_decides_tells_uploads_downloads_and_follows(
    nursery, proxy, guarded, monkeypatch, tmp_path
):
    address, token = guarded
    server = nursery.start(address)
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy._folder / "cert.pem"))
    with proxy.before(server), sl.connect(proxy.address, token) as service, proxy.client(token) as plain:
        agent = service.create("proxied", "exp3.g++", GRAPH, seed=1)
        with plain.stream("GET", "/v1/experiments/proxied/events") as events:
            lines = events.iter_lines()
            assert next(lines) == ": sidelong"
            decision = agent.ask()  # the stream is open: nothing of it waits in a buffer
            told = next(json.loads(line[6:]) for line in lines if line.startswith("data: "))
            assert (told["kind"], told["round"], told["arm"]) == ("decided", 1, decision.arm)
        assert agent.tell(decision, [0.25] * len(decision.reveals))
        GRAPH.save(tmp_path / "graph.json")
        large = (
            tmp_path / "graph.json"
        ).read_bytes() + b" " * 3_000_000  # nginx alone would refuse it; the graph is known
        assert plain.post("/v1/graphs", content=large).status_code == 200
        assert plain.get("/v1/experiments/proxied/log").content[:4] == b"PAR1"
        assert plain.get("/").text == server.get("/")[1].decode()
        server.kill()
        assert plain.get("/health").status_code == 502
        again = nursery.start(address)
    with proxy.before(again), sl.connect(proxy.address, token) as service:
        assert service["proxied"].ask().round == 2
        assert service["proxied"].state()["counts"]["told"] == 1
    again.stop()


def test_a_request_that_meets_a_restart_behind_nginx_is_sent_again_and_counts_once(
    nursery, proxy, guarded, monkeypatch
):
    address, token = guarded
    server = nursery.start(address)
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy._folder / "cert.pem"))
    with proxy.before(server), sl.connect(proxy.address, token, patience=0.0) as impatient:
        impatient.create("proxied", "exp3.g++", GRAPH, seed=1)
        server.stop()
        with pytest.raises(ServiceError, match="502"):
            impatient["proxied"].ask()
        with sl.connect(proxy.address, token) as patient:
            restart = threading.Timer(0.3, nursery.start, [address], {"port": server.port})
            restart.start()
            assert patient["proxied"].ask().round == 1
            restart.join()


@pytest.mark.parametrize("sends_host", [True, False])
def test_the_dashboard_works_under_a_prefix_with_tls(nursery, proxy, guarded, browser, sends_host):
    address, token = guarded
    server = nursery.start(address, **({} if sends_host else {"origins": proxy.origin}))
    with proxy.before(server, sends_host=sends_host):
        context = browser.new_context(ignore_https_errors=True)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(f"{proxy.address}/", wait_until="load")
        page.locator("#token-form input").fill(token)
        page.locator("#token-form button").click()
        page.locator("#new").click()
        page.locator("#create-form [name=name]").fill("made-here")
        page.locator("#create-form [type=submit]").click()
        page.locator("#experiments").get_by_text("made-here").wait_for()
        context.close()
        with proxy.client(token, Origin="https://evil.example") as evil:
            assert evil.get("/v1/access").status_code == 403
    server.stop()
