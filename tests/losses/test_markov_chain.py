"""The Markov chain of docs/own-worlds.md: its random access gives what playing all rounds in turn gives."""

import re
import types
from pathlib import Path

import pytest

from sidelong.numerics import SCENES, uniform

pytestmark = pytest.mark.interpreted

PAGE = (Path(__file__).parents[2] / "docs" / "own-worlds.md").read_text()


def test_the_state_of_any_round_is_that_of_a_chain_that_played_all_rounds_before():
    market = types.ModuleType("market")
    exec(re.search(r"```python market.py\n(.*?)```", PAGE, re.DOTALL)[1], market.__dict__)  # noqa: S102
    states, state = [], 0
    for t in range(1, 401):
        u = uniform(3, SCENES, 1, t, 0)
        state = (1 if u < 0.02 else 0) if state == 0 else (0 if u >= 0.95 else 1)
        states.append(state)
    assert 0 < sum(states) < 400
    asked = [400, 1, 399, 64, 65, 128, 129, *range(2, 400, 7)]  # in any order
    assert [market.state_of(3, 1, t) for t in asked] == [states[t - 1] for t in asked]
