"""The figure of the page on features: a regressor, one agent per group, and one agent for all, in two worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from canvas import Canvas

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

ARMS, FEATURES, GROUPS, ROUNDS, RUNS = 6, 8, 8, 3_000, 8
GRAPH = sl.graphs.nested(ARMS)


def smooth(seed: int) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """Return features, groups and means: linear in eight features, the signs of three of which make the groups."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROUNDS, FEATURES))
    means = np.clip(0.5 + x @ rng.normal(size=(FEATURES, ARMS)) * 0.2 / np.sqrt(FEATURES), 0, 1)
    return x, (x[:, :3] > 0) @ np.array([1, 2, 4]), means


def turning(seed: int) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """Do the same for a word with eight values, each with its own costs, which are others in the second half."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(GROUPS, size=ROUNDS)
    before, after = 0.5 + 0.25 * rng.uniform(-1, 1, size=(2, GROUPS, ARMS))
    means = np.concatenate([before[groups[: ROUNDS // 2]], after[groups[ROUNDS // 2 :]]])
    return np.eye(GROUPS)[groups], groups, means


def lost(world: Callable[[int], tuple[Floats, npt.NDArray[np.int64], Floats]], who: str) -> Floats:
    """Return what was lost beyond the best arm of each round, summed up to each round: the mean over runs."""
    total = np.zeros(ROUNDS)
    for seed in range(RUNS):
        x, groups, means = world(seed)
        losses = (np.random.default_rng([seed, 1]).random((ROUNDS, ARMS)) < means).astype(np.float64)
        agents = {group: sl.Agent("glance", GRAPH, seed=100 * seed + int(group)) for group in range(GROUPS)}
        with_features = sl.ContextualAgent("squarecb.g", GRAPH, seed=seed)
        for t in range(ROUNDS):
            agent = with_features if who == "features" else agents[int(groups[t]) if who == "groups" else 0]
            decision = agent.ask(x[t]) if isinstance(agent, sl.ContextualAgent) else agent.ask()
            agent.tell(decision, losses[t][decision.reveals])
            total[t] += means[t, decision.arm] - means[t].min()
    return np.cumsum(total) / RUNS


def draw() -> None:
    """Draw both worlds, one above the other."""
    kinds = (
        ("ContextualAgent", "features", "a"),
        ("one glance per group", "groups", "c"),
        ("one glance for all", "all", "d"),
    )
    sheet = Canvas(480, 545)
    panels = (
        ("Costs follow eight features", smooth, 800),
        ("A word with eight values; costs turn half-way", turning, 480),
    )
    for panel, (title, world, most) in enumerate(panels):
        top = 30 + 230 * panel
        sheet.text(12, top - 8, f"{title}: regret", "head")
        for level in range(0, most + 1, most // 4):
            y = top + 180 - 170 * level / most
            sheet.path(f"M50 {y:.1f} L470 {y:.1f}", "rule")
            sheet.text(44, y + 5, f"{level:,}", "small", "end")
        sheet.text(470, top + 200, f"{ROUNDS:,} rounds", "small", "end")
        for _, who, kind in kinds:
            curve = lost(world, who)
            marks = range(0, ROUNDS, ROUNDS // 60)
            sheet.curve([(50 + 420 * t / ROUNDS, top + 180 - 170 * curve[t] / most) for t in marks], kind)
            print(f"{title}: {who} {curve[ROUNDS // 2 - 1]:.0f}, then {curve[-1]:.0f}", flush=True)  # noqa: T201
    for k, (label, _, kind) in enumerate(kinds):
        x, y = 50 + 220 * (k % 2), 496 + 26 * (k // 2)
        sheet.path(f"M{x} {y} L{x + 34} {y}", kind)
        sheet.text(x + 42, y + 5, label)
    sheet.save("features")


if __name__ == "__main__":
    draw()
