"""What strategies of LiteLLM play, for benchmarks/routing.py, in LiteLLM's environment: prompts come as JSON.

Its adaptive router learns from how a conversation goes on, and these prompts are single questions. So each model's
reward is told to its bandit as that part of a success, which is more than LiteLLM itself would know.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import sys
import time
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # there may be no network

from litellm import Router
from litellm.router_strategy.adaptive_router.adaptive_router import AdaptiveRouter
from litellm.router_strategy.adaptive_router.bandit import apply_delta
from litellm.router_strategy.adaptive_router.classifier import classify_prompt
from litellm.types.router import AdaptiveRouterConfig, AdaptiveRouterPreferences, AdaptiveRouterWeights

NAMES = ("small", "middle", "large")


def router(strategy: str, costs: list[float]) -> Router:
    """Return a router of three models at these prices per token."""
    models = []
    for name, cost in zip(NAMES, costs, strict=True):
        params = {"model": f"openai/{name}", "api_key": "none", "mock_response": "yes"}
        params |= {"input_cost_per_token": cost, "output_cost_per_token": cost}
        models.append({"model_name": "chat", "litellm_params": params, "model_info": {"id": name}})
    return Router(model_list=models, routing_strategy=strategy)


async def by_strategy(strategy: str, given: dict[str, Any], order: list[int]) -> list[int]:
    """Return the models that a strategy of the router names, in this order of the prompts."""
    used = router(strategy, given["costs"])
    arms = []
    for row in order:
        asked = [{"role": "user", "content": given["texts"][row]}]
        found = await used.async_get_available_deployment("chat", {}, asked)
        arms.append(NAMES.index(found["model_info"]["id"]))
    return arms


async def by_bandit(quality: float, given: dict[str, Any], order: list[int]) -> list[int]:
    """Return the models that the adaptive router names; it is told the reward of each."""
    used = AdaptiveRouter(
        router_name="chat",
        config=AdaptiveRouterConfig(
            available_models=list(NAMES), weights=AdaptiveRouterWeights(quality=quality, cost=1 - quality)
        ),
        model_to_prefs={name: AdaptiveRouterPreferences(quality_tier=2, strengths=[]) for name in NAMES},
        model_to_cost=dict(zip(NAMES, given["costs"], strict=True)),
    )
    arms = []
    for row in order:
        kind = classify_prompt(given["texts"][row])
        name = await used.pick_model(kind)
        arms.append(NAMES.index(name))
        reward = given["rewards"][row][arms[-1]]
        told = apply_delta(used.cell(kind, name), reward, 1 - reward)
        used._cells[kind, name] = told  # noqa: SLF001  # there is no other way to tell it a reward
    return arms


async def main() -> None:
    """Print the models and the processor time of each order, by strategy."""
    logging.disable(logging.WARNING)
    given = json.load(sys.stdin)
    strategies = {
        "simple shuffle": (by_strategy, "simple-shuffle"),
        "lowest cost": (by_strategy, "cost-based-routing"),
        "adaptive router, quality alone": (by_bandit, 1.0),
        "adaptive router, as shipped": (by_bandit, 0.7),
    }
    found: dict[str, list[Any]] = {}
    for name, (game, how) in strategies.items():
        for seed, order in enumerate(given["orders"]):
            random.seed(seed)
            began = time.process_time()
            arms = await game(how, given, order)
            found.setdefault(name, []).append([arms, time.process_time() - began])
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
