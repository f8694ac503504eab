"""The studies of this project, as files. `sidelong demo` plays one of them, `sidelong reproduce` the others."""

from __future__ import annotations

from pathlib import Path

__all__ = ["find"]


def find(name: str) -> Path:
    """Return the file of a study."""
    return Path(__file__).with_name(f"{name}.toml")
