"""The plug-in for LiteLLM, where LiteLLM and the client are installed, against servers of the full installation."""

import ast
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import installed
from service.servers import nursery

__all__ = ["nursery"]

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "litellm.md").read_text("utf-8")
LOCAL = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # there may be no network


def python(*arguments, **more):
    """Run Python in the environment of LiteLLM."""
    server = ["env", f"PYTHONPATH={ROOT / 'src'}", sys.executable]
    environment = {**os.environ, **LOCAL, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
    environment["SIDELONG_TEST_SERVER"] = shlex.join(server)
    return subprocess.run(
        [installed.litellm_environment() / "bin" / "python", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        **{"cwd": ROOT, **more},
    )


def file_of_the_page(name):
    """Return a file that the page shows."""
    return re.search(rf"^```\w+ {re.escape(name)}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]


def test_the_tests_with_its_router_and_its_proxy_pass():
    options = ("-q", "-p", "no:cacheprovider", "-W", "default", "--confcutdir", "tests/routing")
    done = python("-m", "pytest", *options, "tests/routing")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


def test_the_fifteen_lines_of_the_page_run_as_they_stand(nursery, tmp_path):
    text = file_of_the_page("gateway.py")
    assert len([line for line in text.splitlines() if line.strip()]) <= 15
    served = nursery.start(f"sqlite:///{tmp_path}/served.db", port=8431)
    (tmp_path / "gateway.py").write_text(text)
    done = python("gateway.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    counts = ast.literal_eval(done.stdout.strip().removeprefix("Counter(").removesuffix(")"))
    assert counts["routed"] + counts.get("open", 0) == 20
    assert counts["told"] == counts["routed"] > 0
    served.stop()


def test_an_agent_in_the_process_serves_as_well():
    """With the library's packages behind those of LiteLLM, since no environment has both."""
    text = file_of_the_page("in_process.py")
    begin = f"import sys; sys.path.append({sysconfig.get_path('purelib')!r})\n"
    done = python("-c", begin + text)
    assert done.returncode == 0, done.stderr
    assert "'told': 20" in done.stdout
