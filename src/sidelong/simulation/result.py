"""What a simulation measured, as arrays, as a table and as a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.display.curves import NamedCurve, band, chart
from sidelong.display.tables import data_frame, html_table

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Result:
    """What a simulation measured: one row for each run, one column for each checkpoint."""

    rounds: npt.NDArray[np.int64]  #: (C,) the checkpoints: how many rounds had been played
    regret: npt.NDArray[np.float64]  #: (runs, C) pseudo-regret if the world has means, else against the best arm
    loss: npt.NDArray[np.float64]  #: (runs, C) the losses suffered so far
    plays: npt.NDArray[np.int64]  #: (runs, K) how often each arm was played, by the end
    observations: npt.NDArray[np.int64]  #: (runs, K) how often each arm's loss was revealed, by the end
    traces: dict[
        str, npt.NDArray[np.float64]
    ]  #: by name, (runs, C): the mean over the rounds since the checkpoint before
    runs: npt.NDArray[np.int64]  #: the number of each run
    seconds: float  #: how long it took, compilation not counted
    #: (runs, C) with `certificate=True`: at most so much was lost beyond any fixed arm, 95 % sure for all of a run
    certificate: npt.NDArray[np.float64] | None = None
    #: (runs, C) the same against the best sequence of arms with at most `switches` changes; None if not asked for
    tracking_regret: npt.NDArray[np.float64] | None = None
    switches: int | None = None  #: how many changes that are
    learner: str = ""  #: who played, with its options
    world: str = ""  #: in which world

    def plot(self, axes: Any = None, *, logarithmic: bool = False) -> Any:
        """Draw the mean regret over rounds, with its 95 % bootstrap interval.

        Args:
            axes: the axes of Matplotlib to draw into; a new figure if not given.
            logarithmic: whether both axes are logarithmic.

        Returns:
            The figure of Matplotlib: a notebook shows it, and `figure.savefig("regret.pdf")` keeps it.

        """
        label = self.learner or "regret"
        return chart([NamedCurve(label, self.rounds, self.regret)], "regret", self.world, axes, logarithmic=logarithmic)

    def to_pandas(self) -> Any:  # pandas is optional
        """Return a pandas.DataFrame with one row for each run and checkpoint: run, round, regret, loss and traces."""
        return data_frame(self.columns())

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return what `to_pandas` shows, as columns of one length."""
        runs, marks = self.regret.shape
        measured = {"regret": self.regret, "loss": self.loss}
        measured |= {"certificate": self.certificate} if self.certificate is not None else {}
        measured |= {"tracking_regret": self.tracking_regret} if self.tracking_regret is not None else {}
        measured |= {f"trace_{name}": values for name, values in self.traces.items()}
        where = {"run": np.repeat(self.runs, marks), "round": np.tile(self.rounds, runs)}
        return where | {name: values.reshape(-1) for name, values in measured.items()}

    def _repr_html_(self) -> str:
        marks = np.unique(np.searchsorted(self.rounds, np.geomspace(1, self.rounds[-1], 7).round()))
        low, high = band(self.regret)
        several = self.runs.size > 1
        rows = [
            [f"{self.rounds[k]:,}", f"{self.regret[:, k].mean():,.1f}"]
            + [f"{low[k]:,.1f} to {high[k]:,.1f}"] * several
            + [f"{self.loss[:, k].mean():,.1f}"]
            for k in marks
        ]
        head = ["rounds", "regret", *["95 % interval"] * several, "loss"]
        title = " in ".join(filter(None, [self.learner, self.world]))
        runs = f"Mean over {self.runs.size:,} runs." if several else "One run."
        return html_table(head, rows, title, [runs])

    def __repr__(self) -> str:
        runs = self.runs.size
        said = f"regret {_mean(self.regret[:, -1])}"
        if self.tracking_regret is not None:
            sequence = f"the best sequence of arms with at most {self.switches} switches"
            said += f" against one arm, {_mean(self.tracking_regret[:, -1])} against {sequence}"
        elif self.regret[:, -1].mean() < 0:
            said += " against one arm. Below 0: the best arm has moved; simulate(..., switches=S) says what was lost"
        return f"<Result of {runs} run{'s' * (runs > 1)} of {self.rounds[-1]:,} rounds: {said}>"


def _mean(last: npt.NDArray[np.float64]) -> str:
    return f"{last.mean():.4g}" + (f" +- {last.std(ddof=1) / np.sqrt(last.size):.3g}" if last.size > 1 else "")
