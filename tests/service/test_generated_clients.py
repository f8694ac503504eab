"""Clients that public generators make of the OpenAPI document: they compile, and talk to the service."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import installed
import sidelong as sl
from sidelong.service.http.openapi import document
from sidelong.service.store.kinds import open_database
from sidelong.service.store.tokens import Tokens

pytestmark = pytest.mark.nightly

PROGRAMS = Path(__file__).parent / "clients"
#: openapi-python-client knows few media types, and asks what others are read as. Tidying up is no part of the test.
CONFIG = {
    "content_type_overrides": {"application/vnd.apache.parquet": "application/octet-stream"},
    "post_hooks": [],
}


@pytest.fixture
def asked(nursery, tmp_path):
    """Return the arguments of both programs: a server, a token that it demands, and a graph to upload."""
    address = f"sqlite:///{tmp_path}/clients.db"
    database = open_database(address)
    token = Tokens(database).create("client", ["admin"])
    database.close()
    sl.graphs.nested(4).save(tmp_path / "graph.npz")
    server = nursery.start(address)
    yield server.address, token, str(tmp_path / "graph.npz")
    server.stop()


def run(*command, folder):
    """Return all that a program prints."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=folder, text=True, check=False, **how)
    assert done.returncode == 0, done.stdout
    return done.stdout


def check(said):
    said = json.loads(said)
    assert said.pop("log") > 1000
    assert said == {
        "same": True,
        "learned": True,
        "batch": 3,
        "word": "is told",
        "lasts": 86_400_000,
        "learner": "glance",
        "arms": 2,
        "code": "not_found",
    }


def test_a_client_in_typescript_compiles_strictly_and_talks_to_the_service(asked, tmp_path):
    made = installed.generators()
    node, modules = made / "node", made / "node_modules"
    (tmp_path / "openapi.json").write_text(json.dumps(document()))
    (tmp_path / "node_modules").symlink_to(modules)
    shutil.copy(PROGRAMS / "program.ts", tmp_path)
    run(node, modules / ".bin" / "openapi-ts", "-i", "openapi.json", "-o", "client", folder=tmp_path)
    options = ["--strict", "--target", "es2022", "--module", "commonjs", "--skipLibCheck"]
    libraries = ["--lib", "es2022,dom,dom.iterable", "--types", "node"]
    run(node, modules / ".bin" / "tsc", *options, *libraries, "--outDir", "out", "program.ts", folder=tmp_path)
    check(run(node, "out/program.js", *asked, folder=tmp_path))


def test_the_page_says_to_install_the_versions_that_are_tried_here():
    tried = (Path(__file__).parents[1] / "generators.sh").read_text()
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    for name in ("@hey-api/openapi-ts", "typescript", "@types/node"):
        version = re.search(rf'"{name}": "([0-9.]+)"', tried)[1]
        assert f" {name}@{version}" in page
    assert re.search(r"openapi-python-client==[0-9.]+", tried)[0] in page


def test_a_client_in_python_passes_mypy_and_talks_to_the_service(asked, tmp_path):
    programs = installed.generators() / "python" / "bin"
    (tmp_path / "openapi.json").write_text(json.dumps(document()))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    shutil.copy(PROGRAMS / "program.py", tmp_path)
    how = ["--path", "openapi.json", "--config", "config.json", "--meta", "none", "--output-path", "generated"]
    said = run(programs / "openapi-python-client", "generate", *how, folder=tmp_path)
    assert "WARNING" not in said, said  # nothing was left out
    cache = installed.generators() / "mypy_cache"
    run(programs / "mypy", "--strict", "--cache-dir", cache, "program.py", "generated", folder=tmp_path)
    check(run(programs / "python", "program.py", *asked, folder=tmp_path))


def test_what_may_be_left_out_has_no_default_in_the_document_and_its_description_says_what_it_is():
    schemas = document()["components"]["schemas"]
    fields = {(name, field): about for name, each in schemas.items() for field, about in each["properties"].items()}
    assert not [place for place, about in fields.items() if "default" in about]
    assert fields["CreateExperiment", "learner"]["description"] == 'if left out, "glance"'
    assert fields["CreateExperiment", "expire_after"]["description"].endswith("; if left out, 86400.0")
    assert schemas["CreateExperiment"]["required"] == ["name", "graph"]
