"""What predicts the loss of each arm from features: our own ridge regression, or a model of river or scikit-learn."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sidelong._jit import bind
from sidelong.agent.codec import FINITE, read_array
from sidelong.agent.features import KINDS, Reader
from sidelong.checks import check_number, check_whole, short
from sidelong.errors import LearnerError, StateFileError
from sidelong.learners import ridge

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Arms = npt.NDArray[np.int32]

#: How large a feature may be where the penalty is 1: its square times what rounding loses is far below 1.
_MOST = 1e6


class Regressor(Protocol):
    """What an agent asks of it. What `read` returns stays as it is until the round is learned."""

    def read(self, x: Any) -> Any:
        """Return `x` as it is kept with a decision; refuse one that is not like those before."""

    def predict(self, kept: Any, f: Floats) -> None:
        """Write into `f` the predicted loss of each arm."""

    def learn(self, kept: Any, arms: Arms, losses: Floats) -> None:
        """Learn the losses of some arms."""


class Ridge:
    """Online ridge regression, `sidelong.learners.ridge`, with a feature that is always 1."""

    def __init__(self, n_arms: int, *, penalty: float = 1.0, forgetting: float = 1.0, hashed: int = 64) -> None:
        self._n_arms = n_arms
        self._penalty = check_number(LearnerError, "penalty", penalty, above=0)
        self._forgetting = check_number(LearnerError, "forgetting", forgetting, above=0, most=1)
        hashed = check_whole(LearnerError, "hashed", hashed, 1, 4096)
        self._reader = Reader(n_arms, hashed, constant=True, most=_MOST * math.sqrt(self._penalty))
        self._state: ridge.State | None = None
        self._room: ridge.Scratch | None = None
        self._predict: Any = None
        self._learn: Any = None

    @property
    def options(self) -> dict[str, Any]:
        """What it was made with."""
        return {"penalty": self._penalty, "forgetting": self._forgetting, "hashed": self._reader.hashed}

    def read(self, x: Any) -> tuple[str, Floats]:
        """Return the kind of `x` and its table."""
        return self._reader.read(x)

    def predict(self, kept: tuple[str, Floats], f: Floats) -> None:
        """Write into `f` the predicted loss of each arm."""
        kind, table = kept
        if self._state is None:
            models = 1 if "rows" in kind else self._n_arms
            self._begin(ridge.init(models, table.shape[1], self._penalty))
            self._reader.keep(kind, table.shape[1])
        self._predict(self._state, table, f)

    def learn(self, kept: tuple[str, Floats], arms: Arms, losses: Floats) -> None:
        """Learn the losses of some arms."""
        self._learn(self._state, self._room, kept[1], arms, losses, self._forgetting)

    def _begin(self, state: ridge.State) -> None:
        self._state, self._room = state, ridge.make_room(state)
        table, f = np.zeros((1, len(state.w))), np.zeros(self._n_arms)
        bind(self, "_predict", ridge.predict, state, table, f, of="ridge regression")
        told = table, np.zeros(1, np.int32), f, 1.0
        bind(self, "_learn", ridge.learn, state, self._room, *told, of="ridge regression")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_room": None, "_predict": None, "_learn": None}  # which are made again

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        if self._state is not None:
            self._begin(self._state)

    def contents(self, waiting: list[Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, and what it read for the decisions that wait, as header and arrays of a state file."""
        header = self.options | {"name": "ridge", "kind": self._reader.kind}
        if self._state is None:
            return header, {}
        arrays = {f"ridge.{name}": array for name, array in self._state._asdict().items()}
        arrays["ridge.B"] = self._state.B[: self._state.groups[0]]  # which may be few
        rows = self._n_arms if "rows" in self._reader.kind else 1
        tables = np.array([table for _, table in waiting]).reshape(len(waiting), rows, len(self._state.w))
        return header, arrays | {"pending.x": tables}

    @classmethod
    def from_contents(
        cls,
        path: str | os.PathLike[str],
        n_arms: int,
        header: Mapping[str, Any],
        arrays: dict[str, np.ndarray],
        pending: int,
    ) -> tuple[Ridge, list[Any]]:
        """Return it, and what it read for each of the decisions that are pending."""
        if header["name"] != "ridge":
            raise StateFileError(f"{path} has the regressor {short(header['name'])}, which this program does not have.")
        made = cls(n_arms, **{name: header[name] for name in ("penalty", "forgetting", "hashed")})
        kind = header["kind"]
        if not kind:
            return made, []
        if kind not in KINDS:
            raise StateFileError(f"{path} has features of the kind {short(kind)}, which is none.")
        w = arrays["ridge.w"]
        models, d = 1 if "rows" in kind else n_arms, len(w)
        (groups,) = read_array(path, "ridge.groups", arrays, np.empty(1, np.int64), (), (1, models)).tolist()
        fresh = ridge.init(models, d, made._penalty)
        like = fresh._replace(B=fresh.B[:groups])  # no more are saved
        ranges = {"w": (-FINITE, FINITE), "B": (-FINITE, FINITE), "limit": (0.0, FINITE)}
        ranges |= {"group": (0, groups - 1), "size": (0, models), "groups": (1, models)}
        state = ridge.State(
            *(
                read_array(path, f"ridge.{name}", arrays, array, (), ranges[name])
                for name, array in like._asdict().items()
            )
        )
        rows = n_arms if "rows" in kind else 1
        tables = read_array(path, "pending.x", arrays, np.empty((rows, d)), (pending,), (-FINITE, FINITE))
        B = fresh.B
        B[:groups] = state.B
        made._begin(state._replace(B=B))
        made._reader.keep(kind, d)
        return made, [(kind, table.copy()) for table in tables]


class Foreign:
    """A model of another package: a copy of it for each arm, or one for all arms if each has features of its own.

    Args:
        n_arms: the number of arms.
        model: with `learn_one` and `predict_one`, as those of river, or `partial_fit` and `predict`, as scikit-learn's.
        hashed: how many numbers a mapping becomes for scikit-learn. river takes names as they are.
    """

    def __init__(self, n_arms: int, model: Any, *, hashed: int = 64) -> None:
        self._n_arms = n_arms
        self._one_by_one = hasattr(model, "learn_one") and hasattr(model, "predict_one")
        if not self._one_by_one and not (hasattr(model, "partial_fit") and hasattr(model, "predict")):
            raise LearnerError(
                f"regressor must be 'ridge', or a model that learns step by step: with learn_one and predict_one, as "
                f"those of river, or with partial_fit and predict, as those of scikit-learn; not {short(model)}."
            )
        if isinstance(model, type):
            raise LearnerError(f"regressor must be a model, not its class: give {model.__name__}(...).")
        self._model = model
        self._models: list[Any] = []
        self._learned: list[bool] = []
        self._reader = Reader(n_arms, check_whole(LearnerError, "hashed", hashed, 1, 4096), constant=False)

    def read(self, x: Any) -> tuple[str, int, list[Any]]:
        """Return the kind of `x`, its number of features, and what the model takes: one for all arms or for each."""
        kind, table = self._reader.read(x)
        if not self._one_by_one:
            rows: list[Any] = [row[None] for row in table]
        elif "name" in kind:
            rows = [dict(each) for each in ([x] if kind == "names" else x)]
        else:
            rows = [dict(enumerate(row)) for row in table.tolist()]
        return kind, table.shape[1], rows

    def predict(self, kept: tuple[str, int, list[Any]], f: Floats) -> None:
        """Write into `f` the predicted loss of each arm: 0 of a model that has learned nothing yet."""
        kind, size, rows = kept
        if not self._models:
            count = 1 if "rows" in kind else self._n_arms
            self._models = [copy.deepcopy(self._model) for _ in range(count)]
            self._learned = [False] * count
            self._reader.keep(kind, size)
        found = np.zeros(self._n_arms)
        for arm in range(self._n_arms):
            m = arm if len(self._models) > 1 else 0
            if self._learned[m]:
                x = rows[arm if len(rows) > 1 else 0]
                model = self._models[m]
                found[arm] = model.predict_one(x) if self._one_by_one else model.predict(x)[0]
        if not np.isfinite(found).all():
            raise LearnerError(f"The regressor predicts {found[~np.isfinite(found)][0]}: it must predict numbers.")
        np.clip(found, 0.0, 1.0, out=f)

    def learn(self, kept: tuple[str, int, list[Any]], arms: Arms, losses: Floats) -> None:
        """Learn the losses of some arms."""
        rows = kept[2]
        for arm, loss in zip(arms.tolist(), losses.tolist(), strict=True):
            m = arm if len(self._models) > 1 else 0
            x = rows[arm if len(rows) > 1 else 0]
            if self._one_by_one:
                self._models[m].learn_one(x, loss)
            else:
                self._models[m].partial_fit(x, [loss])
            self._learned[m] = True
