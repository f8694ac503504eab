"""What predicts the loss of each arm from features: our own ridge regression, or a model of river or scikit-learn."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from sidelong._jit import bind
from sidelong.agent.features import KINDS, Reader
from sidelong.agent.state_file import FINITE, read_array
from sidelong.checks import check_number, check_whole, short
from sidelong.errors import LearnerError, StateFileError
from sidelong.graphs.presence import present
from sidelong.learners import ridge

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

    Floats = npt.NDArray[np.float64]
    Arms = npt.NDArray[np.int32]
    Longs = npt.NDArray[np.int64]

#: How large a feature may be where the penalty is 1: its square times what rounding loses is far below 1.
_MOST = 1e6
#: What a regressor without a name is called as an adviser.
FEATURES = "features"
#: How much a loss may count that was seldom to be seen.
HEAVIEST = 20.0


class Regressor(Protocol):
    """What the engine asks of it. What `read` returns stays as it is until the round is learned."""

    @property
    def kind(self) -> str:
        """Of which kind features are; empty before the first ones."""

    @property
    def advisers(self) -> tuple[str, ...]:
        """Under which names the learner is advised; empty if it plays by the predictions themselves."""

    @property
    def title(self) -> str:
        """What people call it."""

    @property
    def width(self) -> int:
        """How many numbers the engine keeps of the features of a decision."""

    def shape_of(self, kept: Any) -> tuple[str, Any]:
        """Return what `keep` takes, of what was read."""

    def read(self, x: Any) -> Any:
        """Return `x` as it is kept with a decision; refuse one that is not like those before."""

    def keep(self, kind: str, columns: Any) -> None:
        """Let all features be of this kind, and of so many columns, from now on."""

    def predictions(self, kept: Any) -> Floats:
        """Return the predicted loss of each arm, a row for each adviser, or one row."""

    def stored(self, kept: Any) -> Floats:
        """Return the numbers that the engine keeps of what was read."""

    def kept(self, row: Floats) -> Any:
        """Return what `read` returned, from these numbers."""

    def forget(self, rows: Floats) -> None:
        """Forget what was kept for others than these decisions."""

    def predict(self, kept: Any, f: Floats) -> None:
        """Write into `f` the predicted loss of each arm."""

    def learn(self, kept: Any, arms: Arms, losses: Floats, weights: Floats) -> None:
        """Learn the losses of some arms, each with its weight."""

    def learn_many(
        self, rows: Longs, kept: Floats, offsets: Longs, arms: Arms, losses: Floats, weights: Floats
    ) -> None:
        """Learn the losses of some arms of each of some keys, for what was kept of their features."""

    def merged(self, parts: list[tuple[Any, npt.NDArray[np.int64]]]) -> Any:
        """Return some rows of several together."""

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as a part of the header and arrays of a state file."""


class OneModel:
    """A regressor with one reader of features, and one row of predictions."""

    _n_arms: int
    _reader: Reader

    @property
    def kind(self) -> str:
        """Of which kind features are; empty before the first ones."""
        return self._reader.kind

    def predictions(self, kept: Any) -> Floats:
        """Return the predicted loss of each arm, in one row."""
        f = np.empty((1, self._n_arms))
        self.predict(kept, f[0])
        return f

    def predict(self, kept: Any, f: Floats) -> None:
        """Write into `f` the predicted loss of each arm."""
        raise NotImplementedError

    def kept(self, row: Floats) -> Any:
        """Return what `read` returned, from the numbers that are kept of it."""
        raise NotImplementedError

    def learn(self, kept: Any, arms: Arms, losses: Floats, weights: Floats) -> None:
        """Learn the losses of some arms, each with its weight."""
        raise NotImplementedError

    def learn_many(
        self,
        rows: Longs,  # noqa: ARG002  # there is one key
        kept: Floats,
        offsets: Longs,
        arms: Arms,
        losses: Floats,
        weights: Floats,
    ) -> None:
        """Learn the losses of some arms of each of some decisions, for what was kept of their features."""
        for row, first, end in zip(kept, offsets[:-1], offsets[1:], strict=True):
            self.learn(self.kept(row), arms[first:end], losses[first:end], weights[first:end])


class Ridge(OneModel):
    """Online ridge regression, `sidelong.learners.ridge`, with a feature that is always 1: of one key, or of many.

    The states of all keys are arrays with a row for each key. An agent has one key, the first. The first features
    that are kept say of which kind they are, and how many; before them, there are no states.
    """

    def __init__(
        self,
        n_arms: int,
        keys: int = 1,
        *,
        penalty: float = 1.0,
        forgetting: float = 1.0,
        hashed: int = 64,
        advisers: tuple[str, ...] = (),
    ) -> None:
        self._n_arms = n_arms
        self.advisers = tuple(advisers)  #: the name under which it advises the learner, if it does
        self._penalty = check_number(LearnerError, "penalty", penalty, above=0)
        self._forgetting = check_number(LearnerError, "forgetting", forgetting, above=0, most=1)
        hashed = check_whole(LearnerError, "hashed", hashed, 1, 4096)
        self._reader = Reader(n_arms, hashed, constant=True, most=_MOST * math.sqrt(self._penalty))
        self._keys = keys  # how many rows are in use; there may be more
        self._ends = np.zeros(2, np.int64)  # where the losses of an agent's decision begin and end
        self._states: ridge.State | None = None
        self._scratch: ridge.RidgeScratch | None = None
        self._predict: Any = None
        self._learn: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Copy what was learned, and not the kernels."""
        return self.__dict__ | {"_predict": None, "_learn": None, "_scratch": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._states is not None:
            self._begin(self._states)

    @property
    def options(self) -> dict[str, Any]:
        """What it was made with."""
        made = {"penalty": self._penalty, "forgetting": self._forgetting, "hashed": self._reader.hashed}
        return made | ({"advisers": self.advisers} if self.advisers else {})

    title = "ridge"

    def shape_of(self, kept: tuple[str, Floats]) -> tuple[str, int]:
        """Return the kind of what was read, and how many columns it has."""
        return kept[0], kept[1].shape[1]

    @property
    def _shape(self) -> tuple[int, int]:
        """How many rows and columns the table of features of a decision has."""
        return self._n_arms if "rows" in self.kind else 1, self._reader.columns if self.kind else 0

    @property
    def features(self) -> tuple[str, int]:
        """The kind of features, and how many there are."""
        return self.kind, self.width

    @property
    def width(self) -> int:
        """How many numbers the features of a decision are in all."""
        rows, columns = self._shape
        return rows * columns

    def read(self, x: Any) -> tuple[str, Floats]:
        """Return the kind of `x` and its table."""
        return self._reader.read(x)

    def read_many(self, x: Any, keys: Sequence[Any]) -> tuple[str, Floats]:
        """Return the kind of the features of some keys, and a table for each."""
        return self._reader.read_many(x, keys)

    def keep(self, kind: str, columns: int) -> None:
        """Let all features be of this kind, and of so many columns, from now on."""
        if self.kind:
            return
        self._reader.keep(kind, columns)
        self._begin(self._new(max(1, self._keys)))

    def _new(self, keys: int) -> ridge.State:
        """Return the states of so many keys before anything was learned."""
        first = ridge.init(1 if "rows" in self.kind else self._n_arms, self._shape[1], self._penalty)
        return ridge.State(*(np.repeat(each[None], keys, axis=0) for each in first))

    def extend(self, keys: int) -> None:
        """Let there be so many keys; the table grows by half at least."""
        self._keys = keys
        if self._states is not None and keys > len(self._states.w):
            before = len(self._states.w)
            made = self._new(max(keys, before * 3 // 2))
            _copy(self._states, np.arange(before), made, 0)
            self._begin(made)

    def merged(self, parts: list[tuple[Ridge, npt.NDArray[np.int64]]]) -> Ridge:
        """Return some rows of several, which have the same options and features, together."""
        made = type(self)(self._n_arms, sum(rows.size for _, rows in parts), **self.options)
        for part, _ in parts:
            if part.kind:
                made.keep(part.kind, part._shape[1])  # noqa: SLF001  # its own
        at = 0
        for part, rows in parts:
            if part._states is not None and made._states is not None:  # noqa: SLF001
                _copy(part._states, rows, made._states, at)  # noqa: SLF001
            at += rows.size
        return made

    def stored(self, kept: tuple[str, Floats]) -> Floats:
        """Return the numbers that are kept of what was read."""
        return kept[1].reshape(-1)

    def kept(self, row: Floats) -> tuple[str, Floats]:
        """Return what `read` returned, from the numbers that are kept of it."""
        return self.kind, row.reshape(self._shape)

    def forget(self, rows: Floats) -> None:
        """Forget nothing: features are kept with their decisions."""

    def predict(self, kept: tuple[str, Floats], f: Floats) -> None:
        """Write the same, of the one key."""
        self._predict(self._states, _FIRST, kept[1][None], f[None])

    def predict_many(self, rows: npt.NDArray[np.int64], tables: Floats | None) -> Floats:
        """Return the predicted loss of each arm, for the tables of some keys."""
        f = np.empty((rows.size, self._n_arms))
        if rows.size:
            self._predict(self._states, rows, tables, f)
        return f

    def learn(self, kept: tuple[str, Floats], arms: Arms, losses: Floats, weights: Floats) -> None:
        """Learn the losses of some arms, each with its weight."""
        self._ends[1] = arms.size
        known = self._states, self._scratch, _FIRST, kept[1][None], self._ends
        self._learn(*known, arms, losses, weights, self._forgetting)

    def learn_many(
        self, rows: Longs, kept: Floats, offsets: Longs, arms: Arms, losses: Floats, weights: Floats
    ) -> None:
        """Learn the losses of some arms of each of some keys, for what was kept of their features."""
        tables = kept.reshape(rows.size, *self._shape)
        if rows.size:
            known = self._states, self._scratch, rows, tables, offsets
            self._learn(*known, arms, losses, weights, self._forgetting)

    def _begin(self, states: ridge.State) -> None:
        self._states, self._scratch = states, ridge.new_scratch(ridge.State(*(array[0] for array in states)))
        table, f = np.zeros((1, *self._shape)), np.zeros((1, self._n_arms))
        bind(self, "_predict", ridge.predict_many, states, _FIRST, table, f, of="ridge regression")
        told = _FIRST, table, np.zeros(2, np.int64), np.zeros(1, np.int32), f[0], f[0], 1.0
        bind(self, "_learn", ridge.learn_many, states, self._scratch, *told, of="ridge regression")

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as a part of the header and arrays of a state file."""
        header = self.options | {"name": "ridge", "kind": self.kind}
        if self._states is None:
            return header, {}
        states = ridge.State(*(array[: self._keys] for array in self._states))
        groups = int(states.groups.max(initial=1))  # no more are saved
        return header, {**states._asdict(), "B": states.B[:, :groups]}

    @classmethod
    def from_contents(
        cls,
        path: str | os.PathLike[str],
        n_arms: int,
        keys: int,
        header: Mapping[str, Any],
        arrays: dict[str, np.ndarray],
    ) -> Ridge:
        """Return it, with so many keys; `arrays` are those of the file that it is in."""
        if header["name"] != "ridge":
            raise StateFileError(f"{path} has the regressor {short(header['name'])}, which this program does not have.")
        names = header.get("advisers", [])
        if not isinstance(names, list) or len(names) > 1 or not all(isinstance(name, str) and name for name in names):
            raise StateFileError(f"{path} has a regressor that advises as {short(names)}, which is no name.")
        known = {name: header[name] for name in ("penalty", "forgetting", "hashed")}
        made = cls(n_arms, keys, **known, advisers=tuple(names))
        kind = header["kind"]
        if kind == "" and "regressor.w" not in arrays:  # before the first decision
            return made
        if kind not in KINDS:
            raise StateFileError(f"{path} has features of the kind {short(kind)}, which is none.")
        made.keep(kind, arrays["regressor.w"].shape[1])
        groups = arrays["regressor.B"].shape[1]
        like = ridge.State(*(array[0] for array in made._new(1)))
        like = like._replace(B=like.B[:groups])
        models = like.group.size
        ranges = {"w": (-FINITE, FINITE), "B": (-FINITE, FINITE), "limit": (0.0, FINITE)}
        ranges |= {"group": (0, groups - 1), "size": (0, models), "groups": (1, min(groups, models))}
        saved = ridge.State(
            *(
                read_array(path, f"regressor.{name}", arrays, array, (keys,), ranges[name])
                for name, array in like._asdict().items()
            )
        )
        sizes = np.zeros_like(saved.size)
        np.add.at(sizes, (np.arange(keys)[:, None], saved.group), 1)
        if (saved.group >= saved.groups).any() or (sizes != saved.size).any():
            raise StateFileError(f"{path} holds a regression whose models are in groups that it does not have.")
        _copy(saved, np.arange(keys), cast("ridge.State", made._states), 0)
        return made


#: The row of an agent's own key.
_FIRST = np.zeros(1, np.int64)


def _copy(states: ridge.State, rows: npt.NDArray[np.int64], to: ridge.State, at: int) -> None:
    """Copy some rows to those of others from `at` on; there may be fewer matrices, if no more are in use."""
    for array, other in zip(states, to, strict=True):
        other[at : at + rows.size, : array.shape[1]] = array[rows]


def weights_of(P: Floats, foreseen: npt.NDArray[np.bool_], offsets: npt.NDArray[np.int64]) -> Floats:
    """Return the weights with which regressors learn losses, each of which would be revealed with probability P.

    Where the graph was known before the draw, they are 1. Where it came with the outcome, they are 1 / P, or `HEAVIEST`
    if that is less or nothing is known of P: an arm that is seen on some days only stands for the others too.
    """
    weights = np.ones(P.size)
    chosen = np.repeat(~foreseen, np.diff(offsets))
    weights[chosen] = 1.0 / np.maximum(P[chosen], 1.0 / HEAVIEST)
    weights[np.isnan(weights)] = 1.0
    return weights


class Foreign(OneModel):
    """A model of another package: a copy of it for each arm, or one for all arms if each has features of its own.

    Args:
        n_arms: the number of arms.
        model: with `learn_one` and `predict_one`, as those of river, or `partial_fit` and `predict`, as scikit-learn's.
        hashed: how many numbers a mapping becomes for scikit-learn. river takes names as they are.
    """

    def __init__(self, n_arms: int, model: Any, *, hashed: int = 64, advisers: tuple[str, ...] = ()) -> None:
        self._n_arms = n_arms
        self.advisers = advisers  #: the name under which it advises the learner, if it does
        self._one_by_one = hasattr(model, "learn_one") and hasattr(model, "predict_one")
        if not self._one_by_one and not (hasattr(model, "partial_fit") and hasattr(model, "predict")):
            raise LearnerError(
                f"regressor must be 'ridge', or a model that learns step by step: with learn_one and predict_one, as "
                f"those of river, or with partial_fit and predict, as those of scikit-learn; not {short(model)}."
            )
        if isinstance(model, type):
            raise LearnerError(f"regressor must be a model, not its class: give {model.__name__}(...).")
        taken = inspect.signature(model.learn_one if self._one_by_one else model.partial_fit).parameters
        self._weighs = ("w" if self._one_by_one else "sample_weight") in taken
        self._model = model
        self._models: list[Any] = []
        self._learned: list[bool] = []
        self._kept: dict[int, Any] = {}  # what was read for pending decisions, by the numbers that the engine keeps
        self._next = 0
        self._reader = Reader(n_arms, check_whole(LearnerError, "hashed", hashed, 1, 4096), constant=False)

    #: The engine keeps a number for each decision, by which its features are found.
    width = 1
    title = "a model of another package"

    def shape_of(self, kept: tuple[str, int, list[Any]]) -> tuple[str, int]:
        """Return the kind of what was read, and how many columns it has."""
        return kept[0], kept[1]

    def keep(self, kind: str, columns: int) -> None:
        """Let all features be of this kind, and of so many columns, from now on."""
        count = 1 if "rows" in kind else self._n_arms
        self._models = [copy.deepcopy(self._model) for _ in range(count)]
        self._learned = [False] * count
        self._reader.keep(kind, columns)

    def stored(self, kept: tuple[str, int, list[Any]]) -> Floats:
        """Return the number by which `kept` is found."""
        self._next += 1
        self._kept[self._next] = kept
        return np.array([float(self._next)])

    def kept(self, row: Floats) -> tuple[str, int, list[Any]]:
        """Return what `read` returned, from the number that is kept of it."""
        return self._kept[int(row[0])]  # type: ignore[no-any-return]

    def forget(self, rows: Floats) -> None:
        """Forget the features of other decisions than these."""
        self._kept = {number: self._kept[number] for number in map(int, rows[:, 0])}

    def merged(self, parts: list[tuple[Foreign, npt.NDArray[np.int64]]]) -> Foreign:
        """Return the only one."""
        return parts[0][0]

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Refuse: a model of another package has no format that would open for ever."""
        raise StateFileError(
            "An agent can be saved with regressor='ridge'. A model of another package has no format that opens "
            "for ever; pickle the agent, and load it with the same versions of all packages."
        )

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
        rows, found = kept[2], np.zeros(self._n_arms)
        for arm in range(self._n_arms):
            m = arm if len(self._models) > 1 else 0
            if self._learned[m]:
                x = rows[arm if len(rows) > 1 else 0]
                model = self._models[m]
                found[arm] = model.predict_one(x) if self._one_by_one else model.predict(x)[0]
        if not np.isfinite(found).all():
            raise LearnerError(f"The regressor predicts {found[~np.isfinite(found)][0]}: it must predict numbers.")
        np.clip(found, 0.0, 1.0, out=f)

    def learn(self, kept: tuple[str, int, list[Any]], arms: Arms, losses: Floats, weights: Floats) -> None:
        """Learn the losses of some arms, each with its weight, if the model takes one."""
        rows = kept[2]
        for arm, loss, weight in zip(arms.tolist(), losses.tolist(), weights.tolist(), strict=True):
            m = arm if len(self._models) > 1 else 0
            x = rows[arm if len(rows) > 1 else 0]
            if self._one_by_one:
                self._models[m].learn_one(x, loss, **({"w": weight} if self._weighs else {}))
            else:
                self._models[m].partial_fit(x, [loss], **({"sample_weight": [weight]} if self._weighs else {}))
            self._learned[m] = True


class Several:
    """Several regressors, each of which advises under a name of its own. What is kept of features is that of each."""

    title = "several models"

    def __init__(self, parts: Sequence[Regressor]) -> None:
        self._parts = tuple(parts)
        self.advisers = tuple(name for each in parts for name in each.advisers)

    @property
    def kind(self) -> str:
        """Of which kind features are; empty before the first ones."""
        return self._parts[0].kind

    @property
    def width(self) -> int:
        """How many numbers are kept of the features of a decision."""
        return sum(each.width for each in self._parts)

    def read(self, x: Any) -> tuple[Any, ...]:
        """Return what each has read."""
        return tuple(each.read(x) for each in self._parts)

    def shape_of(self, kept: tuple[Any, ...]) -> tuple[str, list[tuple[str, Any]]]:
        """Return what `keep` takes, of what was read."""
        shapes = [each.shape_of(part) for each, part in zip(self._parts, kept, strict=True)]
        return shapes[0][0], shapes

    def keep(self, kind: str, columns: list[tuple[str, Any]]) -> None:  # noqa: ARG002  # each knows its own
        """Let all features be of these kinds and columns, from now on."""
        for each, shape in zip(self._parts, columns, strict=True):
            each.keep(*shape)

    def extend(self, keys: int) -> None:
        """Let there be so many keys, of which there is one."""
        for each in self._parts:
            if isinstance(each, Ridge):
                each.extend(keys)

    def predictions(self, kept: tuple[Any, ...]) -> Floats:
        """Return the predicted loss of each arm, a row for each."""
        return np.concatenate([each.predictions(part) for each, part in zip(self._parts, kept, strict=True)])

    def stored(self, kept: tuple[Any, ...]) -> Floats:
        """Return the numbers that are kept of what was read."""
        return np.concatenate([each.stored(part) for each, part in zip(self._parts, kept, strict=True)])

    def _cut(self, row: Floats) -> list[Floats]:
        return np.split(row, np.cumsum([each.width for each in self._parts])[:-1], axis=-1)

    def kept(self, row: Floats) -> tuple[Any, ...]:
        """Return what `read` returned, from the numbers that are kept of it."""
        return tuple(each.kept(part) for each, part in zip(self._parts, self._cut(row), strict=True))

    def forget(self, rows: Floats) -> None:
        """Forget what was kept for others than these decisions."""
        for each, part in zip(self._parts, self._cut(rows), strict=True):
            each.forget(part)

    def learn(self, kept: tuple[Any, ...], arms: Arms, losses: Floats, weights: Floats) -> None:
        """Let each learn the losses of some arms."""
        for each, part in zip(self._parts, kept, strict=True):
            each.learn(part, arms, losses, weights)

    def learn_many(
        self, rows: Longs, kept: Floats, offsets: Longs, arms: Arms, losses: Floats, weights: Floats
    ) -> None:
        """Let each learn the losses of some arms of each of some decisions."""
        for each, part in zip(self._parts, self._cut(kept), strict=True):
            each.learn_many(rows, part, offsets, arms, losses, weights)

    def merged(self, parts: list[tuple[Several, npt.NDArray[np.int64]]]) -> Several:
        """Return the only one."""
        return parts[0][0]

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Refuse, as a model of another package does."""
        raise StateFileError("An agent with several regressors has no file that opens for ever; pickle the agent.")


def make_regressor(
    n_arms: int, given: Any, options: dict[str, Any], hashed: int, *, advises: bool
) -> Regressor | Several:
    """Return what `ContextualAgent` was given as its regressor; if it `advises`, there may be several by name."""
    by_name = given if isinstance(given, Mapping) else {FEATURES: given}
    if isinstance(given, Mapping) and not advises:
        raise LearnerError("Several regressors compete as advisers, which glance takes. Give squarecb.g one.")
    if not by_name or not all(isinstance(name, str) and name for name in by_name):
        raise LearnerError(f"Several regressors are given by name, {{'name': model, ...}}, not as {short(given)}.")
    made: list[Regressor] = []
    for name, each in by_name.items():
        own = (name,) if advises else ()
        if isinstance(each, str) and each != "ridge":
            raise LearnerError(f"regressor must be 'ridge' or a model, not {short(each)}.")
        if isinstance(each, str):
            made.append(Ridge(n_arms, hashed=hashed, **options, advisers=own))
        else:
            made.append(Foreign(n_arms, each, hashed=hashed, advisers=own))
    if options and not any(isinstance(each, Ridge) for each in made):
        raise LearnerError(f"{next(iter(options))} is an option of regressor='ridge'; a model has its own.")
    return made[0] if len(made) == 1 else Several(made)


def best_arms(predictions: Floats, graph: FeedbackGraph) -> Floats:
    """Return advice for rows of predictions: the arm of the least one, of those that are there; none if all are alike.

    What was never learned is predicted to lose nothing, so that each arm is advised once.
    """
    f = np.where(present(graph), predictions, np.inf)
    advice = np.zeros_like(f)
    speaks = np.flatnonzero(f.min(axis=1) < np.where(np.isinf(f), -np.inf, f).max(axis=1))
    advice[speaks, f[speaks].argmin(axis=1)] = 1.0
    return advice
