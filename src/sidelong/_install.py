"""What to install where a package or a part of sidelong is missing, or a file is newer than this program.

The advice names packages, and not an extra of sidelong: to install that, a checkout and a wheel each need a command of
their own, and no index has it. ``pip install networkx`` is right for all.
"""

from __future__ import annotations

import importlib.util

#: Whether this is the distribution sidelong-client, which has the files that a client of the service needs.
CLIENT_ONLY = importlib.util.find_spec("sidelong.agent") is None
NEWER = "Install the version of sidelong that wrote it, or a later one."
_WITH = {"psycopg": "'psycopg[binary]'"}  # alone, it needs the C library of PostgreSQL


def pip_install(*modules: str) -> str:
    """Return the sentence that says how to install the packages of these modules."""
    return f"Install with: pip install {' '.join(_WITH.get(module, module) for module in modules)}"


class LeftOut:
    """Finds, after all others, what sidelong-client has not, and says how to have it: an entry of `sys.meta_path`."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:  # noqa: ARG004  # as Python calls it
        """Raise for a module of sidelong."""
        if name.startswith("sidelong."):
            raise ModuleNotFoundError(
                f"sidelong-client, the client of the decision service, has no {name}. Install the whole library in "
                f"its place: pip uninstall sidelong-client, then pip install sidelong",
                name=name,
            )
