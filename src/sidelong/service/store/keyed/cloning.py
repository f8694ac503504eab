"""What a clone of an experiment with keys begins with: its keys, and what each has learned.

::

    keys.*       the keys, in the order in which they came, as in the state file of a family
    block.I      the I-th block, without decisions that wait: whoever made them tells the original
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.agent import Family, state_file
from sidelong.keys import Keys
from sidelong.service.store.keyed.counting import COUNTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.store.database import Reading
    from sidelong.service.store.keyed.experiment import KeyedExperiment


def copied(live: KeyedExperiment, reading: Reading) -> Callable[[], bytes]:
    """Return what makes the state of a clone; that takes a while, and changes nothing of the original."""
    live.wake_all(reading)
    keys, size, blocks = live.by_key.keys.contents(), live.blocks.size, live.blocks.copied()
    return lambda: _packed(keys, size, blocks)


def _packed(keys: dict[str, np.ndarray], size: int, blocks: dict[int, bytes]) -> bytes:
    arrays = dict(keys)
    for number in sorted(blocks):
        family = Family.from_contents(*state_file.unpack(blocks.pop(number), "The clone"), "The clone")
        family.cancel(family.pending)
        arrays[f"block.{number}"] = np.frombuffer(state_file.pack(*family.contents()), np.uint8)
    return state_file.pack({"kind": "keyed", "block_size": size}, arrays)


def begin(live: KeyedExperiment, arrays: dict[str, np.ndarray]) -> None:
    """Let a new experiment begin with keys that have learned."""
    live.by_key.keys = Keys.from_contents(arrays)
    for name in COUNTED:
        setattr(live.by_key, name, np.zeros(len(live.by_key.keys), getattr(live.by_key, name).dtype))
    live.blocks.begin({int(name[6:]): array.tobytes() for name, array in arrays.items() if name.startswith("block.")})
