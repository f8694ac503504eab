"""What to install where a package is missing or a file is newer than this program.

The advice names packages, and not an extra of sidelong: to install that, a checkout and a wheel each need a command of
their own, and no index has it. ``pip install networkx`` is right for all.
"""

from __future__ import annotations

NEWER = "Install the version of sidelong that wrote it, or a later one."
_WITH = {"psycopg": "'psycopg[binary]'"}  # alone, it needs the C library of PostgreSQL


def pip_install(*modules: str) -> str:
    """Return the sentence that says how to install the packages of these modules."""
    return f"Install with: pip install {' '.join(_WITH.get(module, module) for module in modules)}"
