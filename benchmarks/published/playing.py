"""Play one source in a process of its own."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any


def play(name: str) -> Any:
    """Return what a source measures, with at most four decimals, and say how long it took."""
    began = time.monotonic()
    found = rounded(importlib.import_module(name).play())
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return found


def rounded(found: Any) -> Any:
    """Return what was measured with at most four decimals."""
    if isinstance(found, dict):
        return {name: rounded(each) for name, each in found.items()}
    if isinstance(found, list):
        return [rounded(each) for each in found]
    return round(found, 4) if isinstance(found, float) else found
