"""What tests of several packages share."""

import collections
import gc
import os

import pytest
from hypothesis import HealthCheck, settings

import browser as browsing
import installed

collect_ignore = ["routing"]  # test_litellm.py runs these where LiteLLM is
os.environ["SIDELONG_BACKGROUND"] = "0"  # workers keep all cores busy, so that a second process helps none of them
# The same examples in every run, and none that fails for want of time: the machine may do something else. A folder that
# examples share does no harm. `make nightly` tries more of them, unless the test itself says how many.
SUPPRESSED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=40, suppress_health_check=SUPPRESSED)
settings.register_profile("nightly", settings.get_profile("suite"), max_examples=300)
settings.load_profile("suite")


def pytest_collection_modifyitems(items):
    """Start with the longest, so that none of them is left for the end, where the other workers would wait for it."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish():
    """What was imported and collected stays: the collector of garbage need not look through all of it again and again.

    The compiler makes so many small things that a twentieth of its time was spent so.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    """Nobody needs the memory that a worker has to give back at its end, for which it would look through all of it."""
    gc.freeze()


@pytest.fixture(scope="module")
def browser():
    """Return a real Chromium, for `browser.visit`. It ends with its module: beside it, asyncio.run cannot be called."""
    with browsing.chromium(installed.chromium()) as running:
        yield running


def pytest_terminal_summary(terminalreporter):
    """Say at the end what was skipped and why: in one line, and in red if something is not installed."""
    reasons = [report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped")]
    lacking = [reason.partition(installed.MISSING)[2] for reason in reasons if installed.MISSING in reason]
    others = collections.Counter(reason for reason in reasons if installed.MISSING not in reason)
    if others:
        told = "; ".join(f"{count} since {reason}" for reason, count in others.items())
        terminalreporter.line(f"skipped: {told}")
    if not lacking:
        return
    terminalreporter.section("NOT TESTED", red=True, bold=True)
    for package in sorted(set(lacking)):
        terminalreporter.line(f"{lacking.count(package)} tests were skipped, not installed: {package}", red=True)
