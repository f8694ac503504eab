"""The files that start the service elsewhere: what they name exists, and their tools find nothing wrong."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sidelong.cli import COMMANDS
from sidelong.service.http.openapi import ENDPOINTS
from sidelong.service.settings import Settings

FOLDER = Path(__file__).parents[2] / "deploy"
DOCS = FOLDER.parent / "docs"
FILES = {
    name: (FOLDER / name).read_text() for name in ("Dockerfile", "compose.yaml", "kubernetes.yaml", "sidelong.service")
}
#: What is no setting of the service: where machine code is kept, and the password of the database beside it.
OTHERS = {"SIDELONG_CACHE_DIR", "SIDELONG_PASSWORD"}

ALERTS, BOARD = FOLDER / "alerts.yaml", FOLDER / "grafana.json"
BASH, HADOLINT, SYSTEMD = map(shutil.which, ("bash", "hadolint", "systemd-analyze"))


@pytest.mark.parametrize("name", FILES)
def test_every_setting_that_a_file_names_is_one(name):
    known = {f"SIDELONG_{setting.upper()}" for setting in Settings.model_fields} | OTHERS
    assert set(re.findall(r"SIDELONG_[A-Z_]+", FILES[name])) <= known


def test_the_container_is_not_root_and_is_watched():
    last = FILES["Dockerfile"].rpartition("FROM ")[2]
    assert re.search(r"^USER [1-9]", last, re.MULTILINE)
    assert re.search(r"^RUN sidelong warm-up$", last, re.MULTILINE)  # or the first decisions would be slow
    assert re.search(r"^HEALTHCHECK .*\\\n.*/health", last, re.MULTILINE)
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", FILES["Dockerfile"], re.MULTILINE)
    assert all((FOLDER.parent / part).exists() for line in copied for part in line.split())


def test_the_probes_of_kubernetes_are_addresses_of_the_service_that_need_no_token():
    deployment, service, budget = yaml.safe_load_all(FILES["kubernetes.yaml"])
    assert [each["kind"] for each in (deployment, service, budget)] == ["Deployment", "Service", "PodDisruptionBudget"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    probes = {name: about["httpGet"]["path"] for name, about in container.items() if name.endswith("Probe")}
    assert probes == {"startupProbe": "/ready", "readinessProbe": "/ready", "livenessProbe": "/health"}
    assert {endpoint.scope for endpoint in ENDPOINTS if endpoint.path in probes.values()} == {"none"}
    assert container["ports"][0]["containerPort"] == Settings().port
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == budget["spec"]["selector"]["matchLabels"] == labels


def test_alerts_and_board_name_metrics_and_labels_that_there_are(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/metrics.db")
    body = {"name": "e", "learner": "exp3-set", "graph": {"name": "complete", "n": 2}, "labels": ["haiku", "nova"]}
    assert server.post("/v1/experiments", {**body, "seed": 7, "holdout": {"arm": 0, "share": 0.5}})[0] == 201
    for _ in range(40):  # whoever is in the holdout, arm 1 is not played with a probability below 1e-5: .75 ** 40
        made = server.post("/v1/experiments/e/decisions")[1]
        server.post(f"/v1/decisions/{made['id']}/feedback", {"losses": [0.75, 0.25]})
    limited = {"name": "f", "learner": "glance", "graph": {"name": "complete", "n": 2}, "seed": 7, "ceiling": 0.5}
    assert server.post("/v1/experiments", limited)[0] == 201
    made = server.post("/v1/experiments/f/decisions")[1]
    assert server.post(f"/v1/decisions/{made['id']}/feedback", {"losses": [0.75, 0.25], "costs": [0.2, 0.2]})[0] == 200
    shown = server.get("/metrics")[1].decode()
    server.stop()
    for name, value in (("sidelong_spent", 0.2), ("sidelong_spending_line", 0.5), ("sidelong_spending_reserved", 0.0)):
        assert f'\n{name}{{experiment="f"}} {value}\n' in shown
    series = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", shown, re.MULTILINE):
        series.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    assert re.search(r'^sidelong_plays_total\{arm="1",experiment="e",label="nova"\} [1-9]', shown, re.MULTILINE)
    assert re.search(r'^sidelong_cost\{experiment="e"\} 0\.\d+$', shown, re.MULTILINE)
    series["sidelong_replay_left"] = {"experiment"}  # only while something is replayed
    rules = [rule["expr"] for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    board = json.loads(BOARD.read_text())
    drawn = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    for expression in rules + drawn:
        for name, chosen in re.findall(r"\b((?:sidelong|process)_\w+)(?:\{([^{}]*(?:\{name\}[^{}]*)?)\})?", expression):
            assert name in series, expression
            assert set(re.findall(r"(\w+)=", chosen)) <= series[name] | {"job", "instance"}, expression


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize("page", ["cluster", "deploy", "life"])
def test_the_scripts_of_a_page_are_shell_and_name_files_that_there_are(page):
    blocks = re.findall(r"^```bash\n(.*?)^```", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    known = {name.replace("_", "-") for names in COMMANDS.values() for name in names}
    assert blocks
    for block in blocks:
        subprocess.run([BASH, "-n"], input=block, text=True, check=True)
        for name in re.findall(r"(?<![\w/])deploy/[\w.]+", block):
            assert (FOLDER.parent / name).exists(), name
        for command in re.findall(r"^(?:\S*/)?sidelong (.+?)(?: --on.*)?$", block, re.MULTILINE):
            assert command.split()[0] in known, command


def test_the_jobs_of_prometheus_and_of_the_dask_operator_are_as_their_tools_want_them():
    shown = {}
    for page in ("operations", "cluster"):
        block = re.search(r"^```yaml\n(.*?)^```", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)[1]
        shown[page] = yaml.safe_load(block)
    [job] = shown["operations"]["scrape_configs"]
    assert job["static_configs"][0]["targets"] == [f"127.0.0.1:{Settings().port}"]
    assert "/metrics" in {endpoint.path for endpoint in ENDPOINTS}  # where Prometheus looks unless it is told otherwise
    jobs = set(re.findall(r'job="(\w+)"', ALERTS.read_text() + BOARD.read_text().replace("\\", "")))
    assert jobs <= {job["job_name"]}
    scheduler = shown["cluster"]["spec"]["scheduler"]
    named = {port["name"] for port in scheduler["spec"]["containers"][0]["ports"]}
    assert {port["targetPort"] for port in scheduler["service"]["ports"]} <= named
    assert scheduler["service"]["selector"]["dask.org/cluster-name"] == shown["cluster"]["metadata"]["name"]


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed")
def test_hadolint_finds_nothing():
    subprocess.run([HADOLINT, FOLDER / "Dockerfile"], check=True)


@pytest.mark.skipif(SYSTEMD is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    program = tmp_path / "sidelong"
    program.symlink_to(sys.executable)
    unit = tmp_path / "sidelong.service"
    unit.write_text(FILES["sidelong.service"].replace("/opt/sidelong/bin/sidelong", str(program)))
    found = subprocess.run([SYSTEMD, "verify", unit], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
