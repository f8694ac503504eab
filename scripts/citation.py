"""Copy version and address from src/sidelong/_version.py into CITATION.cff: python scripts/citation.py [DATE]."""

from __future__ import annotations

import datetime as dt
import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main(date: str, path: Path = ROOT / "CITATION.cff") -> None:
    """Renew the three lines."""
    about = runpy.run_path(str(ROOT / "src" / "sidelong" / "_version.py"))
    text = path.read_text("utf-8")
    lines = {"version": about["__version__"], "date-released": date, "repository-code": about["REPOSITORY"]}
    for name, value in lines.items():
        text = re.sub(rf"^{name}: .*$", f"{name}: {value}", text, flags=re.MULTILINE)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    main(*(sys.argv[1:] or [dt.datetime.now(dt.UTC).date().isoformat()]))
