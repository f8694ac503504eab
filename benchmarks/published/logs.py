"""Values of a policy from the log of another: Open Bandit Pipeline 0.4.1, whose wheel has parts of both logs.

Three campaigns of a fashion shop, 10,000 rows each: what Bernoulli Thompson sampling would earn is estimated from the
log of random play, and its own log says what it did earn. Published is obp's estimate by inverse probabilities, as its
page on the Python index prints it; beside it obp's own estimators run on the same rows. obp imports torch, which its
estimators of NumPy arrays name in annotations only: an empty module takes its place.
"""

from __future__ import annotations

import csv
import importlib
import sys
import types
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pyarrow as pa
import yaml
from packages import package

from sidelong.evaluation import evaluate_distribution
from sidelong.evaluation.decision_log import from_table

if TYPE_CHECKING:
    from pathlib import Path

CAMPAIGNS, POSITIONS, PUBLISHED = ("all", "men", "women"), 3, 1.198126


def read(folder: Path, policy: str, campaign: str) -> np.ndarray:
    """Return item, position, click and propensity of each row, sorted by time, with positions from 0."""
    names = ("item_id", "position", "click", "propensity_score")
    with (folder / "dataset" / "obd" / policy / campaign / f"{campaign}.csv").open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["timestamp"])
    found = np.array([[float(row[name]) for name in names] for row in rows]).T
    found[1] = np.searchsorted(np.unique(found[1]), found[1])
    return found


def thompson(folder: Path, campaign: str, draws: int = 100_000) -> np.ndarray:
    """Return how likely that policy shows each item at each position, with the priors and the seed of obp's page."""
    prior = yaml.safe_load((folder / "policy" / "conf" / "prior_bts.yaml").read_text("utf-8"))[campaign]
    alpha, beta = (np.array(prior[name]) for name in ("alpha", "beta"))
    random, shown = np.random.RandomState(12345), np.zeros((len(alpha), POSITIONS))
    for _ in range(draws):
        best = random.beta(alpha, beta).argsort()[::-1][:POSITIONS]
        shown[best, np.arange(POSITIONS)] += 1 / draws
    return shown


def estimators(folder: Path) -> Any:
    """Return obp's module of estimators."""
    empty = types.ModuleType("torch")
    empty.Tensor = type("Tensor", (), {})  # type: ignore[attr-defined]
    modules = {"torch": empty}
    for name in ("obp", "obp.ope"):  # without what their __init__ imports
        modules[name] = types.ModuleType(name)
        modules[name].__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
    with mock.patch.dict(sys.modules, modules):
        return importlib.import_module("obp.ope.estimators")


def play() -> dict[str, Any]:
    """Return for each campaign what both policies earned in 1,000 rows, and each estimate of the second with limits."""
    folder = package("obp", "0.4.1") / "obp"
    theirs, found = estimators(folder), {}
    names = {"ipw": theirs.InverseProbabilityWeighting, "snipw": theirs.SelfNormalizedInverseProbabilityWeighting}
    for campaign in CAMPAIGNS:
        item, position, click, propensity = read(folder, "random", campaign)
        shown = thompson(folder, campaign)
        log = {"reward": click, "action": item.astype(int), "position": position.astype(int), "pscore": propensity}
        dist = np.broadcast_to(shown, (click.size, *shown.shape))
        limits = np.zeros(3)
        for place in range(POSITIONS):  # each has a distribution of its own, and all intervals hold together
            rows = position == place
            table = pa.table({"action": item[rows], "reward": click[rows], "pscore": propensity[rows]})
            part = evaluate_distribution(from_table(table, len(shown)), shown[:, place], 1 - 0.05 / POSITIONS)
            limits += rows.mean() * (1 - np.array([part.value, part.upper, part.lower]).ravel())
        found[campaign] = {
            "random": 1000 * click.mean(),
            "thompson": 1000 * read(folder, "bts", campaign)[2].mean(),
            **{name: 1000 * each().estimate_policy_value(action_dist=dist, **log) for name, each in names.items()},
            "ours": (1000 * limits).tolist(),
        }
    return found


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    made = []
    for campaign, of in found.items():
        setting = f"value of Bernoulli Thompson sampling over that of random play, from the latter's log: {campaign}"
        printed = f"{PUBLISHED:.4f}; " * (campaign == "all")
        ipw, snipw, own, *ours = (each / of["random"] for each in (of["ipw"], of["snipw"], of["thompson"], *of["ours"]))
        theirs = f"{printed}run here {ipw:.4f}, self-normalised {snipw:.4f}; its own log says {own:.4f}"
        limits = f"{ours[0]:.2f}, 95 % interval {ours[1]:.2f} to {ours[2]:.1f}"
        made.append(("Open Bandit Pipeline 0.4.1", setting, theirs, limits))
    return made
