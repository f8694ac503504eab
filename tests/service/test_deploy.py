"""The files that start the service elsewhere: what they name exists, and their tools find nothing wrong."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sidelong.service.settings import Settings

FOLDER = Path(__file__).parents[2] / "deploy"
FILES = {name: (FOLDER / name).read_text() for name in ("Dockerfile", "compose.yaml", "sidelong.service")}
#: What is no setting of the service: where machine code is kept, and the password of the database beside it.
OTHERS = {"SIDELONG_CACHE_DIR", "SIDELONG_PASSWORD"}

HADOLINT, SYSTEMD = shutil.which("hadolint"), shutil.which("systemd-analyze")


@pytest.mark.parametrize("name", FILES)
def test_every_setting_that_a_file_names_is_one(name):
    known = {f"SIDELONG_{setting.upper()}" for setting in Settings.model_fields} | OTHERS
    assert set(re.findall(r"SIDELONG_[A-Z_]+", FILES[name])) <= known


def test_the_container_is_not_root_and_is_watched():
    last = FILES["Dockerfile"].rpartition("FROM ")[2]
    assert re.search(r"^USER [1-9]", last, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK .*\\\n.*/health", last, re.MULTILINE)
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", FILES["Dockerfile"], re.MULTILINE)
    assert all((FOLDER.parent / part).exists() for line in copied for part in line.split())


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
