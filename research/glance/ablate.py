"""Switch off one line of the bold half at a time: `python research/glance/ablate.py FOLDER [NAME ...]`.

FOLDER has `yaz_target.csv`, as for `measure.py shops`; a NAME is one of `PARTS`, and all if none is given. For each
a copy of the package lacks that part. It plays the sets that `glance` was tuned on, and no others: every twelfth run of
the owners' problems of half 0, the tune suite with two runs of each game, dishes 1 to 4 with one seed, and outages.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "research" / "glance"), str(ROOT / "research")]
os.environ.setdefault("THIN", "12")

import measure
import owners
import suites

#: For each part what stands in `glance_bold.py`, and what stands there without it.
PARTS = {
    "prior by R^2 (a)": ("prior = PRIOR * max(LEAST_PRIOR, 1.0 - C * C / (X * Y))", "prior = PRIOR"),
    "pooled variance (a)": ("(prior + state.known[SQUARES]) / (1.0 + state.known[FREEDOM])", "0.0"),
    "sharpness 4, not 1 (b)": ("SHARP = 4.0", "SHARP = 1.0"),
    "leader for what it reveals, cover (c)": ("if state.known[HID] == 0.0:", "if state.known[HID] < 0.0:"),
    "arms of the cover for their cells (c)": ("if c != i and i != lead and", "if c < 0 and"),
    "cover arm of the leader (c)": ("if not shown and t > 50 and", "if t < 0 and"),
    "second looks (d, f)": ("state.looks[i] = 1.0\n", "state.looks[i] = 0.0\n"),
    "alarms (e)": ("alarm = k if raised else alarm", "alarm = -1"),
    "alarms of arms seen alone (e)": ("if alone and not weighed:", "if alone and weighed and not weighed:"),
    "less weight of what is seen alone (e, g)": (
        " if count == 1 and state.pairs[arm] else 1.0",
        " if count < 0 else 1.0",
    ),
    "effects of rounds (g)": ("r = shared * of_lead", "r = 0.0 * of_lead"),
    "levels of short memory (h)": ("if state.error[j] < BETTER * state.error[best]:", "if j < 0:"),
    "D kept in later rounds": ("MANY, LONG = 3, 32, 1_000", "MANY, LONG = 3, 32, 1_000_000_000"),
}


def play(folder: str) -> None:
    """Print what the package that is imported loses, as JSON."""
    found: dict[str, list[float]] = {"share": [], "turning": [], "games": [], "orders": [], "back": []}
    for problem in owners.problems(owners.STAYING, 0):
        regret, of_random = measure.owners_regret("glance", problem)
        found["share"].append(regret / of_random)
    for problem in owners.problems(owners.TURNING, 0):
        regret, _ = measure.owners_regret("glance", problem)
        found["turning"].append(regret / np.sqrt(problem.rounds * problem.losses.shape[2]))
    for game in suites.tune():
        if game.rounds <= 10_000:
            played = measure.simulate("glance", game.graph, game.losses, game.rounds, 2, suites.TUNE_SEED)
            found["games"].append(np.log(max(1.0, played.regret[:, -1].mean() + game.graph.n_arms)))
    with (Path(folder) / "yaz_target.csv").open(encoding="utf-8") as file:
        demand = np.array([[int(float(each)) for each in row] for row in list(csv.reader(file))[29:]])
    for own in demand.T[:4]:
        for level in measure.LEVELS:
            base = measure.cost(measure.sample_average(own, level), own, level).sum()
            found["orders"].append(measure.cost(measure.order("glance", own, level, 0), own, level).sum() / base)
    for means, noise in (((0.15, 0.08, 0.18), 0.1), ((0.3, 0.2, 0.35), 0.2)):
        found["back"] += [float(measure.is_back("glance", means, noise, k, run)) for k in (8, 300) for run in range(20)]
    print(json.dumps(found))


def without(part: tuple[str, str] | None, folder: str) -> dict[str, np.ndarray]:
    """Return what a copy of the package loses that lacks a part."""
    with tempfile.TemporaryDirectory() as made:
        shutil.copytree(ROOT / "src", Path(made) / "src")
        if part:
            file = Path(made) / "src/sidelong/learners/glance_bold.py"
            text = file.read_text("utf-8")
            if text.count(part[0]) != 1:
                raise SystemExit(f"{part[0]!r} must stand once in {file.name}, and stands {text.count(part[0])} times")
            file.write_text(text.replace(*part), "utf-8")
        command = [sys.executable, __file__, "--play", folder]
        environment = os.environ | {"PYTHONPATH": str(Path(made) / "src")}
        found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout  # noqa: S603  # itself
    return {name: np.array(values) for name, values in json.loads(found.splitlines()[-1]).items()}


def main() -> None:
    """Print a table."""
    if sys.argv[1] == "--play":
        play(sys.argv[2])
        return
    folder, names = sys.argv[1], sys.argv[2:] or list(PARTS)
    whole = without(None, folder)
    means = {name: values.mean() for name, values in whole.items()}
    print(f"nothing: share {means['share']:.4f}, turning {means['turning']:.3f}, orders {means['orders']:.4f}")
    print("| without | share | turning | long games | orders | back |\n|---|---|---|---|---|---|")
    for name in names:
        lacks = without(PARTS[name], folder)
        away = {each: lacks[each] - whole[each] for each in whole}
        cells = [f"{away[each].mean():+.4f} ± {away[each].std() / away[each].size ** 0.5:.4f}" for each in whole]
        ratio, error = np.exp(away["games"].mean()), away["games"].std() / away["games"].size ** 0.5
        cells[2], cells[4] = f"{ratio:.3f} ± {error:.3f}", f"{lacks['back'].mean():.2f}"
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
