"""The studies of this project, as files. `sidelong demo` plays one of them, `sidelong reproduce` the others.

Beside ``NAME.toml``, the study, lies ``NAME.expected.toml``, what it is expected to give.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["find", "names"]

_HERE = Path(__file__).parent


def find(name: str) -> Path:
    """Return the file of a study."""
    return _HERE / f"{name}.toml"


def names() -> list[str]:
    """Return the names of the studies that have expected numbers."""
    return sorted(path.name.removesuffix(".expected.toml") for path in _HERE.glob("*.expected.toml"))
