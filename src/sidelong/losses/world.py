"""The type of all worlds."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from sidelong._cache import code_key
from sidelong._jit import compiled, kernel, rebind, specialise
from sidelong.errors import LossError, WorldError
from sidelong.losses.binding import Functions, bind, is_compiled
from sidelong.losses.world_arguments import LAST_ROUND, whole
from sidelong.losses.world_kernels import BERNOULLI, BETA, BREAKER, FUNCTION, TABLE, WorldArrays, cumulative, loss, mean

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

__all__ = ["World", "WorldArrays", "arrays", "loss", "mean"]

#: Between two chances to stop: how long, and how many calls of a built-in world's kernel that is.
_STRETCH = 0.05
_CALLS_AT_A_TIME = 2**22

_MOST_SWITCHES = 10_000


def arrays(
    kind: int, numbers: npt.ArrayLike = (), integers: npt.ArrayLike = (), table: npt.ArrayLike = ((),)
) -> WorldArrays:
    """Lay out a world for kernels: read-only views, of one type whatever they are made from."""
    laid_out = np.asarray(table, np.float64, order="C")
    return WorldArrays(
        int(kind),
        _read_only(np.asarray(numbers, np.float64, order="C")),
        _read_only(np.asarray(integers, np.int64, order="C")),
        _read_only(laid_out if laid_out.size else laid_out.reshape(0, 0)),
    )


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view(np.ndarray)
    view.setflags(write=False)
    return view


@final
@dataclass(frozen=True, eq=False, repr=False)
class World:
    """A world of losses, each a pure function of (seed, run, round, arm).

    Made by the functions of `sidelong.losses`. A world cannot be changed, and can be pickled.
    """

    name: str  #: the function that makes such worlds
    n_arms: int
    arrays: WorldArrays  #: what its kernels know of it
    summary: str  #: what a person wants to know of it
    binary: bool | None  #: whether every loss is 0 or 1; None if that shows only when it is played
    rounds: int | None = None  #: the last round that has losses; None if there is none
    functions: Functions | None = None  #: a user's own

    def __reduce__(self) -> tuple[type[World], tuple[Any, ...]]:
        # Through the constructor: a pickle forgets that arrays were read-only.
        return World, tuple(getattr(self, field.name) for field in fields(self))

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", arrays(*self.arrays))

    def __repr__(self) -> str:
        return f"<World {self.name}: {self.summary}>"

    @property
    def has_means(self) -> bool:
        """Whether an expected loss is known, so that there is a pseudo-regret."""
        if self.arrays.kind == FUNCTION:
            return self.arrays.numbers.size > 0 or (self.functions is not None and self.functions.mean is not None)
        return self.arrays.kind not in {TABLE, BREAKER}

    @property
    def fixed_means(self) -> npt.NDArray[np.float64] | None:
        """The expected losses, where the losses of an arm are independent draws from one law; None elsewhere."""
        return self.arrays.numbers if self.arrays.kind in {BERNOULLI, BETA} else None

    @property
    def compiled(self) -> bool:
        """Whether its kernels can be compiled; if not, every loss is a call of a Python function."""
        return self.functions is None or is_compiled(self.functions.loss)

    @cached_property
    def kernels(self) -> tuple[Callable[..., float], Callable[..., float]]:
        """The kernels loss and mean of (arrays, seed, run, t, arm); the same for all built-in worlds."""
        return (loss, mean) if self.functions is None else bind(self.functions)

    @cached_property
    def code(self) -> str:
        """A name for the kernels: two worlds of one name can share compiled code."""
        return "builtin" if self.functions is None else code_key(*self.functions).key

    @property
    def same_in_all_runs(self) -> bool:
        """Whether `best_total` is the same for all seeds and runs."""
        return self._in_closed_form or self.arrays.kind in {TABLE, BREAKER}

    @property
    def _in_closed_form(self) -> bool:
        return self.has_means and (self.functions is None or self.functions.mean is None)

    def loss(self, seed: int, run: int, t: int, arm: int) -> float:
        """Return the loss of an arm in round t = 1, 2, ...: one call, for a look; loops bind `kernels`."""
        return float(self.kernels[0](self.arrays, *self._place(seed, run, t, arm)))

    def mean(self, seed: int, run: int, t: int, arm: int) -> float:
        """Return the expected loss of an arm in round t, given what the run fixed; NaN without means."""
        return float(self.kernels[1](self.arrays, *self._place(seed, run, t, arm)))

    def best_total(
        self, seed: int, run: int, rounds: npt.ArrayLike, stopped: Callable[[], bool] = lambda: False
    ) -> npt.NDArray[np.float64]:
        """Return what the best fixed arm has lost after each number of rounds.

        That is the smallest sum over one arm: of means, for the pseudo-regret, where there are means; of
        actual losses elsewhere. Means that are known in closed form cost O(K) a number; the others are summed
        over all arms and rounds, in O(K) memory, and until `stopped` says so.

        Raises:
            LossError: a user's function gave something that is not between 0 and 1.

        """
        wanted = self._checked_rounds(rounds)
        s, r, _, _ = self._place(seed, run, 1, 0)
        if self.fixed_means is not None:
            return np.asarray(wanted * float(self.fixed_means.min()), np.float64)
        if self._in_closed_form:
            best = np.empty(wanted.size)
            step = max(1, _CALLS_AT_A_TIME // self.n_arms)
            for k in range(0, wanted.size, step):
                if not stopped():
                    known = (self.arrays, self.n_arms, s, r, wanted[k : k + step], best[k : k + step])
                    compiled(best_totals, *known)(*known)
            return best
        return self._least_totals(seed, run, wanted, 0, stopped)

    def best_sequence_total(
        self,
        seed: int,
        run: int,
        rounds: npt.ArrayLike,
        switches: int,
        stopped: Callable[[], bool] = lambda: False,
    ) -> npt.NDArray[np.float64]:
        """Return what the best sequence of arms that changes at most `switches` times has lost after each of `rounds`.

        Means or losses are summed as for `best_total`. In every round the least sums over sequences that end with each
        arm follow from those of the round before, so that it costs O(K) values and O(switches K) steps for each round.
        """
        switches = whole("switches", switches, 0, _MOST_SWITCHES)
        return self._least_totals(seed, run, self._checked_rounds(rounds), switches, stopped)

    def _checked_rounds(self, rounds: npt.ArrayLike) -> npt.NDArray[np.int64]:
        wanted = np.asarray(rounds)
        if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
            raise WorldError(f"rounds must be a list of whole numbers, not {rounds!r}.")
        if wanted.size:
            most = LAST_ROUND if self.rounds is None else self.rounds
            whole("each of rounds", int(wanted.min()), 0, most)
            whole("each of rounds", int(wanted.max()), 0, most)
        return wanted.astype(np.int64)

    def _least_totals(
        self, seed: int, run: int, wanted: npt.NDArray[np.int64], switches: int, stopped: Callable[[], bool]
    ) -> npt.NDArray[np.float64]:
        s, r, _, _ = self._place(seed, run, 1, 0)
        ascending, places = np.unique(wanted, return_inverse=True)
        best = np.empty(ascending.size)
        totals = np.zeros((switches + 1, self.n_arms))
        done, stretch = 0, 1
        for k, last in enumerate(ascending.tolist()):
            while done < last and not stopped():
                begun = time.monotonic()
                stop = min(last, done + stretch)
                known = (self.arrays, s, r, done + 1, stop, totals)
                bad = compiled(self._add, *known)(*known)
                if bad >= 0:
                    self._refuse(seed, run, done + 1 + bad // self.n_arms, bad % self.n_arms)
                seconds = time.monotonic() - begun
                stretch = max(1, min(int((stop - done) * _STRETCH / max(seconds, 1e-6)), 8 * stretch, 2**40))
                done = stop
            best[k] = totals.min()
        return best[places]

    @cached_property
    def _add(self) -> Callable[..., int]:
        value = self.kernels[1 if self.has_means else 0]
        return (specialise if self.compiled else rebind)(_add, f"add_{self.code}", value=value)

    def _refuse(self, seed: int, run: int, t: int, arm: int) -> None:
        what, got = ("mean", self.mean) if self.has_means else ("loss", self.loss)
        raise LossError(
            f"a {what} must lie from 0 to 1; run {run}, round {t}, arm {arm} has {got(seed, run, t, arm)!r}. "
            f"Rescale what the function returns."
        )

    def _place(self, seed: int, run: int, t: int, arm: int) -> tuple[Any, int, int, int]:
        return (
            np.uint64(whole("seed", seed, 0, 2**64 - 1)),
            whole("run", run, 0, 2**32 - 1),
            whole("t", t, 1, LAST_ROUND if self.rounds is None else self.rounds),
            whole("arm", arm, 0, self.n_arms - 1),
        )


@kernel
def best_totals(world: WorldArrays, n_arms: int, seed: int, run: int, rounds: np.ndarray, best: np.ndarray) -> None:
    for k in range(rounds.size):
        best[k] = math.inf
        for arm in range(n_arms):
            best[k] = min(best[k], cumulative(world, seed, run, rounds[k], arm))


value: Any = None  # a kernel, loss or mean


def _add(world: WorldArrays, seed: int, run: int, first: int, last: int, totals: np.ndarray) -> int:
    """Add to `totals` what some rounds cost; return where a value is not in [0, 1], or -1.

    Row s has for each arm the least sum over sequences that end with it and have changed their arm at most s times.
    """
    rows, n_arms = totals.shape
    for t in range(first, last + 1):
        for s in range(rows - 1, 0, -1):
            least = math.inf
            for arm in range(n_arms):
                least = min(least, totals[s - 1, arm])
            for arm in range(n_arms):
                totals[s, arm] = min(totals[s, arm], least)
        if world.kind == BREAKER:
            for s in range(rows):
                totals[s, world.integers[t - 1]] += 1.0
            continue
        for arm in range(n_arms):
            x = value(world, seed, run, t, arm)
            if not 0.0 <= x <= 1.0:
                return int((t - first) * n_arms + arm)
            for s in range(rows):
                totals[s, arm] += x
    return -1
