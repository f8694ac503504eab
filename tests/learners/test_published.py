"""Figures that other groups have published, reproduced by options alone: the settings of docs/published.md."""

import importlib
import math
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks" / "published"


pytestmark = pytest.mark.nightly


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module


def test_ucb_n_of_qi_fei_and_zhu(script):
    """20 seeds each: the difference of two such means is within four of its standard errors."""
    ucb_n = script("ucb_n")
    found = ucb_n.regrets(**ucb_n.THEIRS)
    error = found.std(axis=0, ddof=1) / math.sqrt(20)
    assert (np.abs(found.mean(axis=0) - [*ucb_n.PUBLISHED.values()]) < 4 * math.sqrt(2) * error).all()


@pytest.mark.parametrize("kind", ["strongly", "weakly"])
def test_exp3_g_of_a_students_repository(script, kind):
    """200 runs each, and 2 % for reading a plot."""
    exp3_g = script("exp3_g")
    expected = exp3_g.PUBLISHED[kind]
    found = exp3_g.regrets([*expected], weak=kind == "weakly", own=False)
    for regret, known in zip(found.T, expected.values(), strict=True):
        error = regret.std(ddof=1) / math.sqrt(200)
        assert abs(regret.mean() - known) < 4 * math.sqrt(2) * error + 0.02 * known
