"""What the operator of the service may choose: on the command line, or in the environment as ``SIDELONG_PORT=...``."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003  # pydantic reads it
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Days = Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(BaseSettings):
    """The settings, each with its default."""

    model_config = SettingsConfigDict(env_prefix="SIDELONG_", extra="ignore")

    database: str = "sqlite:///sidelong.db"
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8431

    origins: str = ""  #: where a proxy shows the dashboard, such as https://decide.example.org; several with blanks

    busy_timeout: Seconds = 5.0  #: how long to wait for another server that writes
    request_timeout: Seconds = 30.0  #: for the body to come and for the reply to be durable
    work_timeout: Seconds = 120.0  #: for what takes longer: to make an experiment or a graph, to export, to evaluate
    sweep_every: Seconds = 1.0  #: between looks for expired decisions
    snapshot_every: Count = 2000  #: events

    max_connections: Count = 2_000  #: at once; beyond, only /health is answered
    max_body: Count = 4 * 2**20  #: bytes
    max_arms: Count = 200_000
    max_edges: Count = 1_000_000
    max_experiments: Count = 1_000
    max_outstanding: Count = 100_000  #: decisions of one experiment
    max_outstanding_bytes: Count = 2**28  #: their probabilities and graphs in memory
    max_key_bytes: Count = 2**29  #: of the keys of one experiment in memory; others are in the database alone
    max_graph_bytes: Count = 2**28  #: of graphs of rounds, in the database, for one experiment
    max_model_bytes: Count = 2**26  #: of the regressions of one experiment with features, in memory
    keep_graphs: Seconds = 86_400.0  #: how long an uploaded graph is kept that nothing uses
    max_context: Count = 4_096  #: bytes of the context of a decision

    keep_days: Days | None = None  #: how long the journal is kept, while a server runs; for ever if not given
    keep_megabytes: Count | None = None  #: how much of the journal of one experiment is kept
    keep_keys_days: Days = 7.0  #: how long Idempotency-Keys are known beyond that
    export_before_cut: Path | None = None  #: a folder for the log of what is cut from the journal

    decide_rate: Rate = 2_000.0  #: requests a second for each token, or address where there is none
    feedback_rate: Rate = 10_000.0
    read_rate: Rate = 200.0
    burst: Seconds = 2.0  #: seconds' worth of requests that may come at once

    @field_validator("export_before_cut")
    @classmethod
    def _check_folder(cls, folder: Path | None, info: ValidationInfo) -> Path | None:
        if folder is not None:
            if not (info.data.get("keep_days") or info.data.get("keep_megabytes")):
                raise PydanticCustomError(
                    "unused", "Nothing is cut: set SIDELONG_KEEP_DAYS or SIDELONG_KEEP_MEGABYTES too"
                )
            if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
                raise PydanticCustomError("folder", "This is no folder that the service may write to. Make it first")
        return folder
