"""What others rely on: a name leaves only on purpose."""

import subprocess
import sys

import pytest

import sidelong as sl

pytestmark = pytest.mark.interpreted


def test_the_names_of_the_package():
    assert dir(sl) == sorted(sl.__all__)
    for name in sl.__all__:
        assert getattr(sl, name) is not None
    assert {"Agent", "FeedbackGraph", "SidelongError", "graphs", "learners", "losses", "simulate"} <= set(sl.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sl.nothing  # noqa: B018


def test_learners_are_listed_by_name():
    assert "exp3.g++" in sl.learners.names()


def test_every_error_has_one_root():
    from sidelong import errors  # noqa: PLC0415

    found = {name: each for name, each in vars(errors).items() if isinstance(each, type)}
    assert len(found) > 10
    for name, each in found.items():
        assert issubclass(each, sl.SidelongError)
        assert name in errors.__doc__


def test_importing_the_package_does_not_load_the_compiler():
    code = "import sys, sidelong; sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
