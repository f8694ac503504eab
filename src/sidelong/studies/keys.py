"""The keys of a study file, and the numbers of a cell."""

from __future__ import annotations

import itertools
import math
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from sidelong.checks import is_whole

NUMBERS = ("rounds", "runs", "seed", "delay", "checkpoints")
TABLES = ("learner", "graph", "world")


class File(BaseModel):
    """The keys of a study file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = ""
    rounds: Any
    runs: Any = 1
    seed: Any = 0
    delay: Any = 0
    checkpoints: Any = None
    learner: list[dict[str, Any]] = Field(min_length=1)
    graph: list[dict[str, Any]] = Field(min_length=1)
    world: list[dict[str, Any]] = Field(min_length=1)

    @field_validator(*TABLES, mode="before")
    @classmethod
    def _one_is_a_list_too(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value


class Numbers(BaseModel):
    """The numbers of a cell."""

    model_config = ConfigDict(strict=True)

    rounds: int = Field(ge=1, lt=2**48)
    runs: int = Field(ge=1, lt=2**32)
    seed: int = Field(ge=0, lt=2**64)
    delay: int = Field(ge=0, lt=2**20)
    checkpoints: Any

    @field_validator("checkpoints")
    @classmethod
    def _are_ascending(cls, value: Any, info: ValidationInfo) -> Any:
        listed = value if isinstance(value, list) else [value]
        whole = all(is_whole(each) and each >= 1 for each in listed)
        if value is not None and not (listed and whole and all(a < b for a, b in itertools.pairwise(listed))):
            raise ValueError("how many, or a list of ascending rounds")
        if isinstance(value, list) and value[-1] > info.data.get("rounds", math.inf):
            raise ValueError(f"a checkpoint is beyond the last round, {info.data['rounds']:,}")
        return value
