"""What tests with LiteLLM share: servers of the full installation, and routers whose models answer by themselves.

They run where LiteLLM and sidelong-client are installed, for ``tests/test_litellm.py``.
"""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # there may be no network
os.environ["LITELLM_TELEMETRY"] = "False"

import litellm
import pytest
from litellm import Router

from service.servers import nursery, server, service

__all__ = ["nursery", "server", "service"]


@pytest.fixture
def make_router():
    """Return what makes a router; all callbacks are gone when the test ends."""

    def make(*deployments, **settings):
        return Router(list(deployments), **{"num_retries": 0, "retry_after": 0, **settings})

    yield make
    litellm.logging_callback_manager._reset_all_callbacks()
