"""What is not installed is skipped with a line at the end that says so, and is a failure where CI=true."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import installed
from browser import visit

TESTS = Path(__file__).parent
NEEDY = """\
import installed

def test_needs_a_browser():
    assert installed.chromium()

def test_needs_a_database():
    assert installed.postgresql()
"""


def run(folder, **environment):
    (folder / "test_needy.py").write_text(NEEDY)
    (folder / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS}\n")
    (folder / "installed.py").write_text(
        (TESTS / "installed.py").read_text().replace("/usr/lib/postgresql", "/nowhere")
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PATH": str(folder), "PYTHONPATH": str(folder), "CI": "", **environment},
    )
    return done.returncode, done.stdout


def test_a_skip_for_want_of_a_package_is_loud(tmp_path):
    code, said = run(tmp_path)
    assert code == 0
    assert "1 tests were skipped, not installed: chromium (apt-get install chromium)" in said
    assert "1 tests were skipped, not installed: postgresql (apt-get install postgresql)" in said


def test_it_is_a_failure_where_everything_must_be_tested(tmp_path):
    code, said = run(tmp_path, CI="true")
    assert code == 1
    assert "2 failed" in said
    assert "not installed: chromium" in said


def test_the_programs_of_postgresql_are_found():
    assert (installed.postgresql() / "postgres").exists()


def test_a_visit_sees_what_a_page_asks_for_and_complains_about(browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        '<img src="http://127.0.0.1:9/x.png"><div style="width:500px;height:1px"></div><script>oops()</script>'
        "<p hidden>x</p>"
    )
    with visit(browser, page.as_uri(), width=400) as seen:
        assert seen.asked == ["http://127.0.0.1:9/x.png"]
        assert any("oops" in each for each in seen.complaints)
        assert seen.overflow > 50
        assert seen.sizes("p") == [(0, 0)]
    page.write_text("<!doctype html><p>all is well</p>")
    with visit(browser, page.as_uri(), dark=True) as seen:
        assert (seen.asked, seen.complaints, seen.overflow) == ([], [], 0)
        assert seen.sizes("p")[0] > (0, 0)


def packages(folder, **programs):
    """Run the script where these programs are all there is."""
    for name, text in programs.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    for name in ("ls", "env", "sh"):
        (folder / name).symlink_to(shutil.which(name))
    done = subprocess.run(
        ["/bin/sh", TESTS / "packages.sh"], capture_output=True, text=True, check=True, env={"PATH": str(folder)}
    )
    return done.stdout + done.stderr


def test_nothing_is_installed_where_all_is_there(tmp_path):
    installed.postgresql()
    assert packages(tmp_path, chromium="", curl="", openssl="", nginx="", apt_get="echo called") == ""


@pytest.mark.parametrize("root", [{"id": "echo 0"}, {"id": "echo 1000", "sudo": 'shift; exec "$@"', "true": ""}])
def test_what_is_missing_is_installed_where_that_is_allowed(tmp_path, root):
    assert packages(tmp_path, **root, apt_get=f'echo "$@" >> {tmp_path}/called').startswith("Installing: chromium")
    update, install = (tmp_path / "called").read_text().splitlines()
    assert update.split()[-1] == "update"
    assert "install --yes --no-install-recommends chromium fonts-liberation" in install


@pytest.mark.parametrize(
    "programs", [{"id": "echo 1000", "sudo": "exit 1", "apt_get": "echo called"}, {"id": "echo 0"}]
)
def test_elsewhere_the_tests_go_on(tmp_path, programs):
    said = packages(tmp_path, **programs)
    assert said.startswith("These packages are missing, and cannot be installed from here: chromium")
    assert "called" not in said


def test_a_failure_to_install_stops_nothing(tmp_path):
    said = packages(tmp_path, id="echo 0", apt_get="exit 100")
    assert "These packages could not be installed: chromium" in said
