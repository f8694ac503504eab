"""Draw docs/figures/dashboard.png: the dashboard of an experiment with a holdout and a scale.

Run it from the root of the repository: ``python docs/pictures/dashboard.py``. It needs Playwright and Chromium.
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import uvicorn
from playwright.sync_api import sync_playwright

import sidelong as sl
from sidelong.service.http.app import Application
from sidelong.service.settings import Settings

FIGURE = Path(__file__).parent.parent / "figures" / "dashboard.png"
ORDERS = [f"{6 * order} loaves" for order in range(8)]


def play(address: str, service: sl.Service) -> None:
    """Let a bakery order for 400 days, told by what was left over or sold out."""
    rng = np.random.default_rng(5)
    body = {"name": "orders", "learner": "glance", "graph": {"name": "nested", "n": len(ORDERS)}, "seed": 7}
    body |= {"labels": ORDERS, "description": "how many loaves to bake", "scale": {"best": 0.0, "worst": 60.0}}
    httpx.post(f"{address}/v1/experiments", json=body | {"holdout": {"arm": 2, "share": 0.1}}, timeout=60)
    shop = service["orders"]
    for day in range(400):
        demand = int(np.clip(rng.normal(4.6 + np.sin(day / 7), 0.9), 0, 7))
        decision = shop.ask()
        shop.tell(decision, {int(arm): cost(int(arm), demand) for arm in decision.reveals})


def cost(order: int, demand: int) -> float:
    """Return what a tray of loaves too many costs, or one too few."""
    return float(min(60.0, 6.0 * max(order - demand, 0) + 15.0 * max(demand - order, 0)))


def main(path: Path = FIGURE, width: int = 1280, height: int = 1120, scheme: str = "light") -> None:
    """Serve, play and take the picture."""
    with tempfile.TemporaryDirectory() as folder:
        application = Application(
            Settings(database=f"sqlite:///{folder}/picture.db", decide_rate=1e9, feedback_rate=1e9)
        )
        listening = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(application, log_config=None, ws="none"))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with sl.connect(address) as service:
            play(address, service)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme).new_page()
            page.goto(f"{address}/#/orders", wait_until="load")
            page.locator("#answers div").first.wait_for()
            page.wait_for_timeout(1500)
            page.screenshot(path=path)
            browser.close()
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
