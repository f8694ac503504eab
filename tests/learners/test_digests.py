"""Bits do not change by accident: what each learner decides is on record, with the version that decides it."""

from dataclasses import replace

import pytest

from learners import digests
from learners.test_contract import CONFIGURATIONS, module_of
from sidelong.learners import uniform

pytestmark = [pytest.mark.interpreted, pytest.mark.compiled]

PINS = digests.pins()
WRITE = "PYTHONPATH=tests python -m learners.digests"


def test_all_learners_are_on_record():
    assert list(PINS) == list(CONFIGURATIONS), f"Bring the record up to date: {WRITE}"


@pytest.mark.parametrize("label", PINS)
def test_a_learner_decides_what_its_version_did(label):
    module, pin = module_of(label), PINS[label]
    version = module.version
    assert version == pin["version"], f"Version {version} of {label} is not on record. Write what it decides: {WRITE}"
    assert digests.digest(label) == pin["digest"], (
        f"{label} decides otherwise than version {version} did. If that is an accident, undo it. If it is meant, raise "
        f"the version in {module.module} and name the version in CHANGELOG.md (before the release of 0.1.0, remove its "
        f"line from digests.toml instead), and write what it decides: {WRITE}"
    )


def test_the_record_of_a_version_is_not_written_over(tmp_path, monkeypatch):
    file = tmp_path / "digests.toml"
    file.write_text(digests.FILE.read_text())
    monkeypatch.setattr(digests, "digest", lambda _: "another")
    digests.write(file)
    assert digests.pins(file) == PINS
    monkeypatch.setattr(uniform, "LEARNER", replace(uniform.LEARNER, version=2))
    digests.write(file)
    assert digests.pins(file) == PINS | {"uniform": {"version": 2, "digest": "another"}}
