"""Build the wheel and the sdist of sidelong-client: python client/build.py FOLDER."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def main(out: str) -> None:
    """Build from a copy, since an sdist must hold its sources, and those are in another folder here."""
    with tempfile.TemporaryDirectory(prefix="sidelong-client-") as folder:
        copy = Path(folder)
        shutil.copytree(HERE.parent / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("client/pyproject.toml", "client/README.md", "LICENSE", "hatch_build.py"):
            shutil.copy(HERE.parent / name, copy)
        build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", Path(out).resolve(), copy]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(*sys.argv[1:])
