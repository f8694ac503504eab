"""Draw docs/figures/report.png and report-regret.svg: the report about docs/figures/report.toml.

Run it from the root of the repository: ``python docs/pictures/report.py``. It needs Playwright and Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from sidelong.cli import app

FIGURES = Path(__file__).parent.parent / "figures"


def main() -> None:
    """Run the study, write its report, and take the picture."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        app(["run", str(FIGURES / "report.toml"), "--out", str(results)], standalone_mode=False)
        app(["report", str(results)], standalone_mode=False)
        shutil.copy(results / "report-figures" / "01-regret-log.svg", FIGURES / "report-regret.svg")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_context(viewport={"width": 1180, "height": 1370}, color_scheme="light").new_page()
            page.goto((results / "report.html").as_uri(), wait_until="load")
            page.screenshot(path=FIGURES / "report.png")
            browser.close()


if __name__ == "__main__":
    main()
