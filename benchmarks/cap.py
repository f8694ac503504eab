"""A billion rounds: long enough to see the paper's exploration rate leave its cap.

EXP3.G++ explores arm i at the rate min(cap, xi_i), with cap = sqrt(lambda ln K / t) / (2 K) and
xi_i = beta ln t / (t gap_i^2). With the paper's beta = 320, xi is the smaller one at last when
sqrt(t) / ln t >= 2 K beta / (gap^2 sqrt(lambda ln K)). Nothing gets there sooner than three arms that reveal
nothing of each other (lambda = K = 3) at a gap of 1, in round 4.4e8 if the gap were known exactly; the learner's
estimate is a little lower, and xi higher.

Prints how long this took on one core, and draws what happened: `python benchmarks/cap.py`, and `--draw` to draw
once more without playing.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from measure import Row, print_table
from scipy import optimize

import sidelong as sl

sys.path.append(str(Path(__file__).parents[1] / "docs" / "_ext"))

import numbers_of_pages as numbers

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes

    Floats = npt.NDArray[np.float64]

K = 3
BETA = 320.0
ROUNDS = 10**9
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
MEASURED, CAP, XI = "#0b6e99", "#555555", "#c2571a"


def main() -> None:
    """Play, keep the numbers, and draw."""
    parser = argparse.ArgumentParser(description="See the exploration rate of EXP3.G++ leave its cap.")
    parser.add_argument("--rounds", type=lambda text: int(float(text)), default=ROUNDS, help="1e9 if not given")
    parser.add_argument("--folder", type=Path, default=FIGURES, help="where cap.csv and cap.svg go (docs/figures)")
    parser.add_argument("--draw", action="store_true", help="draw the numbers that are in the folder")
    parser.add_argument("--png", action="store_true", help="draw cap.png, too")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    table = arguments.folder / "cap.csv"
    if not arguments.draw:
        play(arguments.rounds, table)
    numbers.record(rounds_until_the_cap_is_left=_power(leaves()))
    t, mass = np.loadtxt(table, delimiter=",", skiprows=1, unpack=True)
    figure = draw(t, mass)
    figure.savefig(table.with_suffix(".svg"), metadata={"Date": None})
    if arguments.png:
        figure.savefig(table.with_suffix(".png"), dpi=150)


def play(rounds: int, table: Path) -> None:
    """Play one run on one core, and write how much it explored between any two checkpoints."""
    marks = [*np.geomspace(K, rounds / 30, 100), *np.linspace(rounds / 30, rounds, 200)]
    result = sl.simulate(
        "exp3.g++",
        sl.graphs.self_loops(K),
        sl.losses.bernoulli([0.0, 1.0, 1.0]),
        rounds,
        checkpoints=np.unique(np.round(marks).astype(int)),
        threads=1,
        rate="fixed",
        strong_independence=K,
    )
    print_table(
        [Row(f"{rounds:,} rounds, K = {K}, one core", result.seconds, at_most=180 if rounds == ROUNDS else None)]
    )
    # The first row holds the initial rounds, in which each arm is played once.
    rows = np.column_stack([result.rounds, result.traces["exploration_mass"][0]])[1:]
    np.savetxt(table, rows, fmt=["%d", "%.10g"], delimiter=",", header="round,exploration_mass", comments="")


def cap(t: Floats) -> Floats:
    """Return the cap of an arm's exploration rate."""
    return np.sqrt(K * math.log(K) / t) / (2 * K)


def mean_cap(t: Floats) -> Floats:
    """Return the mean of the cap over the rounds since the checkpoint before."""
    edges = np.append(K, t) + 0.5
    return 2 * np.diff(edges * cap(edges)) / np.diff(edges)


def xi(t: Floats) -> Floats:
    """Return the rate at which the paper explores an arm whose gap is known to be 1."""
    return BETA * np.log(t) / t


def leaves() -> float:
    """Return the round in which xi becomes the smaller one."""
    return math.exp(optimize.brentq(lambda log: math.log(xi(np.exp(log)) / cap(np.exp(log))), 10, 40))


def draw(t: Floats, mass: Floats) -> plt.Figure:
    """Draw the exploration mass over all rounds, and its share of the cap over the last ones."""
    middle = np.sqrt(t * np.append(K, t[:-1]))  # where the mean since the checkpoint before belongs
    share = mass / (K * mean_cap(t))
    below = middle[share < 0.995]
    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "cap"})
    figure, (whole, end) = plt.subplots(1, 2, figsize=(10, 4.8))
    figure.subplots_adjust(left=0.075, right=0.97, bottom=0.12, top=0.75, wspace=0.25)
    event = f"leaves its cap at round {_power(below[0])}" if below.size else "is still at its cap"
    figure.text(0.012, 0.925, f"Exploration {event}", fontsize=15, fontweight="bold")
    about = (
        f"EXP3.G++ with the constants of the paper, one run of {_power(t[-1])} rounds. "
        "Nothing gets there sooner than three arms with losses 0, 1 and 1."
    )
    figure.text(0.012, 0.865, about, color=CAP)
    _draw_mass(whole, middle, mass)
    _draw_share(end, middle, share, last=t[-1])
    return figure


def _draw_mass(axes: Axes, t: Floats, mass: Floats) -> None:
    axes.set_title("Chance that a round explores", loc="left", fontsize=10.5)
    axes.loglog(t, K * cap(t), color=CAP, linewidth=6, alpha=0.3)
    known = t[xi(t) < 1 / (2 * K)]
    axes.loglog(known, cap(known) + 2 * xi(known), color=XI, linestyle="--", linewidth=1.3)
    axes.loglog(t, mass, color=MEASURED, linewidth=1.6)
    axes.text(200, K * cap(200.0) / 1.8, "measured", color=MEASURED, ha="right", va="top")
    axes.text(30, K * cap(30.0) * 1.5, "cap, ~ $t^{-1/2}$", color=CAP)
    axes.text(2e5, 2 * xi(2e5) * 1.3, "$\\xi$ at gap 1, ~ $t^{-1} \\ln t$", color=XI)
    axes.set(xlabel="round $t$", ylabel="probability", xlim=(K, t[-1] * 1.1))


def _draw_share(axes: Axes, t: Floats, share: Floats, last: float) -> None:
    axes.set_title("The same, as a share of the cap", loc="left", fontsize=10.5)
    axes.axhline(1, color=CAP, linewidth=6, alpha=0.3)
    axes.semilogx(t, (1 + 2 * xi(t) / cap(t)) / K, color=XI, linestyle="--", linewidth=1.3)
    axes.semilogx(t, share, color=MEASURED, linewidth=2)
    axes.text(0.11 * last, 0.985, "measured", color=MEASURED, va="top")
    axes.text(0.11 * last, 1.012, "cap", color=CAP)
    axes.text(0.4 * last, 1.06, "$\\xi$ at gap 1. The learner's\nestimate is still lower.", color=XI)
    axes.set(xlabel="round $t$, in millions", xlim=(last / 10, last), ylim=(0.78, 1.2))
    axes.xaxis.set_major_locator(mpl.ticker.FixedLocator(last * np.array([0.1, 0.2, 0.3, 0.4, 0.6, 1])))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x / 1e6:,.10g}")
    axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
    axes.yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1, decimals=0))


def _power(number: float) -> str:
    exponent = math.floor(math.log10(number) + 1e-3)
    digits = f"{number / 10**exponent:.1f}".removesuffix(".0")
    power = "10" + str(exponent).translate(_RAISED)
    return power if digits == "1" else f"{digits} \u00d7 {power}"


_RAISED = str.maketrans("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


if __name__ == "__main__":
    main()
