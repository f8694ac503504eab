"""Figures that other groups have published, reproduced by options alone: the settings of docs/published.md."""

import importlib.util
import math
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("published_regret", ROOT / "benchmarks" / "published_regret.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ucb_n_of_qi_fei_and_zhu(script):
    """20 seeds each: the difference of two such means is within four of its standard errors."""
    theirs = {"width": 1.0, "delta": 1 / (math.sqrt(2) * 10_000**2), "unseen": 1.0}
    found = script.ucb_n(**theirs)
    error = found.std(axis=0, ddof=1) / math.sqrt(20)
    assert (np.abs(found.mean(axis=0) - [*script.UCB_N.values()]) < 4 * math.sqrt(2) * error).all()


@pytest.mark.parametrize(("weak", "published"), [(False, "STRONG"), (True, "WEAK")])
def test_exp3_g_of_a_students_repository(script, weak, published):
    """200 runs each, and 2 % for reading a plot."""
    expected = getattr(script, published)
    found = script.exp3_g([*expected], weak=weak, own=False)
    for regret, known in zip(found, expected.values(), strict=True):
        error = regret.std(ddof=1) / math.sqrt(200)
        assert abs(regret.mean() - known) < 4 * math.sqrt(2) * error + 0.02 * known


def test_the_page_shows_what_the_script_has(script):
    page = (ROOT / "docs" / "published.md").read_text()
    for published in (script.UCB_N, script.STRONG, script.WEAK):
        row = " / ".join(f"{each:,.0f}" for each in published.values())
        assert re.search(rf"\| {re.escape(row)} \|", page)
