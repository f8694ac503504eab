"""The blocking client is what the script makes of the asynchronous one, and has the same methods."""

import inspect
import subprocess
import sys
from pathlib import Path

from sidelong.service.client import AsyncExperiment, AsyncService, Experiment, Service

SCRIPT = Path(__file__).parents[2] / "scripts" / "blocking_client.py"


def test_the_blocking_client_is_generated():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"Run python scripts/blocking_client.py:\n{done.stdout}{done.stderr}"


def test_nothing_of_it_is_awaited_and_all_is_documented():
    for awaited, blocking in ((AsyncService, Service), (AsyncExperiment, Experiment)):
        names = [name for name in vars(awaited) if not name.startswith("_")]
        assert names == [name for name in vars(blocking) if not name.startswith("_")]
        for name in names:
            assert inspect.iscoroutinefunction(getattr(awaited, name))
            assert not inspect.iscoroutinefunction(getattr(blocking, name))
            assert getattr(awaited, name).__doc__ == getattr(blocking, name).__doc__ is not None
