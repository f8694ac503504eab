"""What the plug-in adds to a request of LiteLLM: python benchmarks/routing_latency.py, on an idle machine.

It needs LiteLLM's environment (make build/litellm/stamp). 16 requests at a time go through LiteLLM's router to models
that answer by themselves after 0.2 s, in turns without the plug-in and with it, so that both see the same machine. With
faster models LiteLLM itself would keep a processor busy, and each request would wait for 15 others. A service runs
beside, on SQLite in a temporary folder. A second group without the plug-in shows what is only noise. On a busy machine,
of which the load is printed, only the processor time of the gateway's process says something.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
LITELLM = ROOT / "build" / "litellm" / "bin" / "python"
AT_ONCE, REQUESTS, TURNS = 16, 256, 8
GROUPS = ("without", "with", "without, again")
_SERVER = """
import os, sys
from sidelong.service.serve import serve
from sidelong.service.settings import Settings
serve(Settings(port=0, database=f"sqlite:///{sys.argv[1]}/latency.db"), lambda address: print(address, flush=True))
"""


def start() -> None:
    """Start a service, and this script in LiteLLM's environment."""
    if not LITELLM.exists():
        sys.exit("LiteLLM's environment is not there: make build/litellm/stamp")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        command = [sys.executable, "-c", _SERVER, folder]
        service = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        try:
            address = service.stdout.readline().strip() if service.stdout else ""
            subprocess.run([LITELLM, __file__, address], check=True, env=environment)
        finally:
            service.terminate()
            service.wait(60)


async def measure(at: str) -> None:
    """Print the table."""
    import numpy as np  # noqa: PLC0415  # that of LiteLLM's environment, as all that follows
    from litellm import Router  # noqa: PLC0415

    from sidelong.integrations.litellm import Routing  # noqa: PLC0415

    def model(group: str, name: str) -> dict[str, object]:
        params = {"model": f"openai/{name}", "api_key": "none", "mock_response": "yes", "mock_delay": 0.2}
        return {"model_name": group, "litellm_params": params, "model_info": {"id": f"{group}-{name}"}}

    async def load(group: str) -> tuple[list[float], float]:
        took: list[float] = []
        left = iter(range(REQUESTS))

        async def one_after_the_other() -> None:
            for _ in left:
                began = time.perf_counter()
                await router.acompletion(group, [{"role": "user", "content": "Really?"}])
                took.append(time.perf_counter() - began)

        began = time.process_time()
        await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))
        await asyncio.sleep(0.3)  # what is done in the background counts too
        return took, time.process_time() - began

    router = Router(model_list=[model(group, name) for group in GROUPS for name in ("small", "middle", "large")])
    found: dict[str, list[float]] = {group: [] for group in GROUPS}
    spent = dict.fromkeys(GROUPS, 0.0)
    loads = [os.getloadavg()[0]]
    async with Routing(router, at=at, experiment="latency", group="with", judge=lambda *_: 1.0) as routing:
        for group in GROUPS:
            await load(group)  # to warm up
        for turn in range(TURNS):
            for group in GROUPS if turn % 2 else reversed(GROUPS):
                took, seconds = await load(group)
                found[group] += took
                spent[group] += seconds
        print(dict(routing.counts))
    loads.append(os.getloadavg()[0])
    print(f"load {loads[0]:.1f} to {loads[1]:.1f}; {AT_ONCE} requests at once, {TURNS * REQUESTS:,} of each group")
    base = np.quantile(found[GROUPS[0]], [0.5, 0.99])
    for group, took in found.items():
        p50, p99 = 1e3 * np.quantile(took, [0.5, 0.99])
        each, (more50, more99) = 1e3 * spent[group] / len(took), (p50 - 1e3 * base[0], p99 - 1e3 * base[1])
        added = "" if group == GROUPS[0] else f"   added p50 {more50:+.2f}, p99 {more99:+.2f} ms"
        print(f"{group:14} p50 {p50:6.2f} ms   p99 {p99:6.2f} ms   processor {each:.3f} ms per request{added}")


if __name__ == "__main__":
    asyncio.run(measure(sys.argv[1])) if len(sys.argv) > 1 else start()
