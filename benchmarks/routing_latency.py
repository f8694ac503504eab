"""What the plug-in adds to a request of LiteLLM: build/litellm/bin/python benchmarks/routing_latency.py ADDRESS.

ADDRESS is that of a running service. 16 requests at a time go through LiteLLM's router to models that answer by
themselves after 20 ms, in turns with and without the plug-in, so that both see the same machine. On a busy machine only
the processor time of this process says something.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import numpy as np
from litellm import Router

from sidelong.integrations.litellm import Routing

AT_ONCE, REQUESTS, TURNS = 16, 128, 2


def model(group: str, name: str) -> dict[str, object]:
    """Return a deployment that answers by itself."""
    params = {"model": f"openai/{name}", "api_key": "none", "mock_response": "yes", "mock_delay": 0.02}
    return {"model_name": group, "litellm_params": params, "model_info": {"id": f"{group}-{name}"}}


async def load(router: Router, group: str) -> tuple[list[float], float]:
    """Send requests; return how long each took, and the processor time of all."""
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


async def main(at: str) -> None:
    """Print the table."""
    names = ("small", "middle", "large")
    router = Router(model_list=[model(group, name) for group in ("with", "without") for name in names])
    found: dict[str, list[float]] = {"with": [], "without": []}
    spent = {"with": 0.0, "without": 0.0}
    async with Routing(router, at=at, experiment="latency", group="with", judge=lambda *_: 1.0) as routing:
        for group in ("with", "without"):
            await load(router, group)  # to warm up
        for _ in range(TURNS):
            for group in ("without", "with"):
                took, seconds = await load(router, group)
                found[group] += took
                spent[group] += seconds
        print(dict(routing.counts))
    for group, took in found.items():
        p50, p99 = 1e3 * np.quantile(took, [0.5, 0.99])
        each = 1e3 * spent[group] / len(took)
        print(f"{group:8} p50 {p50:6.2f} ms   p99 {p99:6.2f} ms   processor {each:.3f} ms per request")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
