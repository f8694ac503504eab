"""Which of our files a decision and its feedback pass: those of which a function is called, in any thread.

An application answers requests in this process, as it would those of a server, on SQLite in a temporary folder. A file
is counted if one of its functions begins, as Python, between the arrival of a request and its reply; kernels are
machine code, as they are in a server after its first minute. Run it as `python benchmarks/passed_files.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sidelong
from sidelong.service.http.app import Application
from sidelong.service.settings import Settings

if TYPE_CHECKING:
    from types import FrameType

OURS = str(Path(sidelong.__file__).parent)
MOST = {"decision": 12, "feedback": 16}
TURNS = 3


class Passed:
    """Notes files while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note the file of a function that begins."""
        if self.is_on and event == "call" and frame.f_code.co_filename.startswith(OURS):
            self.files.add(frame.f_code.co_filename[len(OURS) + 1 :])


async def send(app: Application, path: str, body: Any = None) -> Any:
    """Send a POST as a server would, and return what the reply says."""
    content, sent = b"" if body is None else json.dumps(body).encode(), bytearray()
    messages = iter([{"type": "http.request", "body": content, "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        return await asyncio.Future()  # the client stays

    async def reply(message: Any) -> None:
        sent.extend(message.get("body", b""))

    headers = [
        (b"host", b"localhost"),
        (b"content-length", b"%d" % len(content)),
        (b"content-type", b"application/json"),
    ]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers, "client": None}
    await app(scope, receive, reply)
    return json.loads(bytes(sent))


async def measure(passed: Passed, folder: str) -> dict[str, set[str]]:
    """Return the files that each sort of request passes."""
    found: dict[str, set[str]] = {}

    async def note(what: str, path: str, body: Any = None) -> Any:
        await asyncio.sleep(0.1)
        passed.files, passed.is_on = set(), True
        reply = await send(app, path, body)
        passed.is_on = False
        found[what] = min(found.get(what, passed.files), passed.files, key=len)
        return reply

    app = Application(Settings(database=f"sqlite:///{folder}/service.db", sweep_every=3600.0))
    async with app.running():
        for name, keyed in (("one", False), ("many", True)):
            graph = {"name": "cliques", "sizes": [2, 2]}
            await send(app, "/v1/experiments", {"name": name, "graph": graph, "seed": 1, "keyed": keyed})
            one: dict[str, Any] = {"key": "a"} if keyed else {}
            several: dict[str, Any] = {"keys": ["a", "b"]} if keyed else {"count": 2}
            of = " with keys" if keyed else ""
            for _ in range(TURNS):
                made = await note(f"decision{of}", f"/v1/experiments/{name}/decisions", one)
                losses = {"losses": {str(arm): 0.5 for arm in made["reveals"]}}
                await note(f"feedback{of}", f"/v1/decisions/{made['id']}/feedback", losses)
                batch = await note(f"batch of decisions{of}", f"/v1/experiments/{name}/decisions", several)
                told = {"ids": batch["ids"], "sizes": [2, 2], "losses": [0.5] * 4}
                await note(f"batch of feedback{of}", "/v1/feedback", told)
    return found


def main() -> None:
    """Print how many files each passes, and the names of those of a decision and of feedback."""
    os.environ["SIDELONG_BACKGROUND"] = "0"  # no kernel runs as plain Python until it is compiled
    passed = Passed()
    threading.setprofile(passed)
    sys.setprofile(passed)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(passed, folder))
    for what, files in found.items():
        most = MOST["decision" if "decision" in what else "feedback"]
        print(
            f"{what}: {len(files)}, of which {sum('service/' in each for each in files)} in the service; at most {most}"
        )
        if what in MOST:
            print("".join(f"    {each}\n" for each in sorted(files)), end="")


if __name__ == "__main__":
    main()
