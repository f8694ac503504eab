"""What the state file of an agent or a family holds, and how it is read back.

::

    header        kind ("agent" or "family"), learner and its version, options, seed, tag, names of graphs and traces,
                  certificate and alarm; of an agent its round, and how many decisions it remembers; scale, labels,
                  regressor with its options and the kind of its features, advisers, incumbent and allowance, pooled,
                  fresh, and the names that a service gave to pending decisions when the file was taken out of it, where
                  there are such
    params.*      the constants of the learner, as they were computed
    first.*       the state of a key before its first round
    keys.*        of a family, the keys: number; or text, or digits of numbers beyond 64 bits, with where each ends
    state.*       the state of the learner, without its scratch arrays: a row for each key
    rows.*        seed, round, told (and scale, if some key has its own): a row for each key
    observers.*   means, delays, alarm and certificate: a row for each key
    graph.I.*     low and high, or degree and targets: of the own graph, then of those of pending decisions
    pool.*        of a family that is pooled: what is known of advisers over all keys
    pending.*     the pending decisions, key after key, oldest first; with their features, where there are such
    regressor.*   where there are features, what the regressor has learned: a row for each key

An agent is one key. Every record is a NamedTuple of arrays that is written and read by name. What is read must have the
type and the shape that a new one would have, and lie in the range that is stated for it: kernels do not look whether an
index is one.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent import observers as observing
from sidelong.agent.advice import MOST, are_rows
from sidelong.agent.ceiling import HIGHEST, PRICE, SHARED, UNIT, Ceiling
from sidelong.agent.observers import Observers
from sidelong.agent.pool import PooledTrust
from sidelong.agent.regressors import Regressor, Ridge
from sidelong.agent.setup import Setup
from sidelong.agent.state_file import FINITE, check_range, graph_to_arrays, read_array, read_graphs
from sidelong.agent.states import kept_names
from sidelong.checks import check_number, check_whole, short
from sidelong.errors import SidelongError, StateFileError
from sidelong.learners import catalogue
from sidelong.learners.interface import Need, trace_size
from sidelong.outcomes.scale import Scale

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner

    Header = dict[str, Any]
    Arrays = dict[str, np.ndarray]
    Place = str | os.PathLike[str]  #: what messages call the file
    Ranges = Mapping[str, tuple[float, float]]

_MOST = 2**62  # of rounds and counts
_LEAST = float(np.finfo(np.float64).tiny)  # of constants that are not 0
_KINDS = ("agent", "family", "newsvendor")  # of what is saved, as the headers of files name them


class Saved(NamedTuple):
    """All that is saved, beside the keys of a family."""

    setup: Setup
    state: dict[str, np.ndarray]  #: a row for each key, by name
    seed: np.ndarray
    round: np.ndarray
    told: np.ndarray  #: (n, remembered, 4)
    scale: np.ndarray  #: (n, 2), or (n, 0)
    observers: Observers
    graphs: list[FeedbackGraph]  #: the own one, and those of pending decisions
    pending: dict[str, np.ndarray]  #: columns of `Pending`
    names: dict[str, Any]  #: of decisions that a service made
    regressor: Regressor | None = None  #: what predicts losses from features; that of a file is a `Ridge`
    pool: PooledTrust | None = None  #: of a family whose keys learn trust together
    account: np.ndarray | None = None  #: of a family whose keys spend together


def write(kind: str, saved: Saved) -> tuple[Header, Arrays]:
    """Return the header and the arrays."""
    setup, pending = saved.setup, dict(saved.pending)
    learner = setup.learner
    used, places = np.unique(np.append(0, pending["graph"]), return_inverse=True)
    graphs = [saved.graphs[g] for g in used.tolist()]
    pending["graph"] = places.reshape(-1)[1:]
    if setup.learner.is_sparing:  # of each row, what the learner wrote
        sizes = _sizes(graphs, pending["graph"], pending["arm"])
        rows = [row[:size] for row, size in zip(pending["p"], sizes.tolist(), strict=True)]
        pending["p"] = np.concatenate([np.empty(0), *rows])
    header: Header = {
        "kind": kind,
        "learner": learner.name,
        "learner_version": learner.version,
        "options": setup.options,
        "seed": setup.seed,
        "tag": setup.tag,
        "graphs": [each.name for each in graphs],
        "traces": list(learner.traces),
        "prior_cost": setup.prior_cost,
        "certificate": setup.certificate,
        "alarm": setup.alarm,
    }
    header |= _optional(setup)
    if saved.names:
        header["names"] = dict(saved.names)
    arrays: Arrays = {f"params.{name}": np.asarray(value) for name, value in setup.params._asdict().items()}
    arrays |= {f"first.{name}": getattr(setup.state, name) for name in kept_names(learner, setup.state)}
    arrays |= {f"state.{name}": array for name, array in saved.state.items()}
    arrays |= {f"rows.{name}": getattr(saved, name) for name in ("seed", "round", "told", "scale")}
    arrays |= {f"observers.{name}": array for name, array in saved.observers._asdict().items()}
    if saved.regressor is not None:
        header["regressor"], states = saved.regressor.contents()
        arrays |= {f"regressor.{name}": array for name, array in states.items()}
    if saved.pool is not None:
        arrays |= {f"pool.{name}": array for name, array in saved.pool._asdict().items()}
    if saved.account is not None:
        arrays["account"] = saved.account
    for index, each in enumerate(graphs):
        arrays |= {f"graph.{index}.{name}": array for name, array in graph_to_arrays(each).items()}
    if not pending["x"].shape[1]:
        del pending["x"]
    arrays |= {f"pending.{name}": array for name, array in pending.items()}
    return header, {name: np.array(array) for name, array in arrays.items()}  # what is returned changes no more


def _optional(setup: Setup) -> Header:
    """Return what is in the header of those who have it."""
    made: Header = {"advisers": list(setup.advisers)} if setup.advisers else {}
    made |= {"incumbent": setup.incumbent, "allowance": setup.allowance} if setup.incumbent else {}
    made |= {"pooled": True} if setup.pooled else {}
    made |= {} if setup.ceiling is None else {"ceiling": setup.ceiling.plain()}
    made |= {} if setup.scale is None else {"scale": list(setup.ends)}
    return made | ({} if setup.graph.labels is None else {"labels": list(setup.graph.labels)})


def _sizes(graphs: list[FeedbackGraph], graph: np.ndarray, arm: np.ndarray) -> np.ndarray:
    pairs = zip(graph.tolist(), arm.tolist(), strict=True)
    return np.array([graphs[g].row(i).size for g, i in pairs], np.int64)


@contextmanager
def reading(path: Place) -> Iterator[None]:
    """Let whatever is wrong with a file that was read be an error that says so."""
    try:
        yield
    except StateFileError:
        raise
    except Exception as error:
        # Kernels cannot be compiled for constants of other types. Numba is imported only where something is compiled.
        known = isinstance(
            error, SidelongError | ArithmeticError | AttributeError | LookupError | TypeError | ValueError
        )
        if not known and not type(error).__module__.startswith("numba."):
            raise
        raise StateFileError(f"{path} holds what no agent or family has saved: {error}") from error


def read(
    path: Place,
    kind: str,
    header: Header,
    arrays: Arrays,
    given: ModuleType | Learner | None,
    n_keys: int | None = None,
) -> Saved:
    """Return what `write` was given; `given` is the module of a learner that is not one of the package's own.

    Raises:
        StateFileError: it is of something else, of another version, or holds what cannot be.
    """
    found = header.get("kind")
    if found not in _KINDS:
        raise StateFileError(f"{path} is of {short(found)}, which is nothing that this program saves.")
    if found != kind:
        raise StateFileError(f"{path} is of {_a(found)}, not of {_a(kind)}. Load it with {found.capitalize()}.load.")
    graphs = read_graphs(path, header, arrays)
    learner = find_learner(path, header, given, kind=kind.capitalize())
    K = graphs[0].n_arms
    if any(each.n_arms != K for each in graphs):
        raise StateFileError(f"{path} holds graphs of different numbers of arms.")
    params, advisers = _read_params(path, learner, arrays, K), _read_advisers(path, learner, header)
    fresh = learner.first_state(params, graphs[0])
    for _ in advisers:
        fresh = learner.add_adviser(params, fresh)[1]  # type: ignore[misc]  # it was checked that there is one
    names = kept_names(learner, fresh)
    likes = {name: getattr(fresh, name) for name in names}
    ranges = {name: _range(learner, name, array, K) for name, array in likes.items()}
    first = {name: read_array(path, f"first.{name}", arrays, likes[name], (), ranges[name]) for name in names}
    setup = Setup(
        learner,
        params,
        _of_type(path, header, "options", dict),
        graphs[0],
        check_whole(StateFileError, f"The seed of {path}", header["seed"], 0, 2**64 - 1),
        Scale(*header["scale"]) if "scale" in header else None,
        fresh._replace(**first),
        float(header["prior_cost"]),
        _of_type(path, header, "certificate", bool),
        _of_type(path, header, "alarm", bool),
        _of_type(path, header, "tag", str),
        advisers,
        *_read_incumbent(path, learner, header, advisers),
        pooled=_read_pooled(path, learner, header),
        ceiling=_read_ceiling(path, header, K),
    )
    if header.get("traces") != list(learner.traces):
        raise StateFileError(f"{path} was saved by another version of its learner, which traces other numbers.")
    n = 1 if n_keys is None else n_keys
    rows = (n,)
    scale, told = arrays["rows.scale"], arrays["rows.told"]
    long = np.empty((), np.int64)
    observers = setup.observers() if arrays["observers.sure"].shape == (n, 0) else setup.observers().selecting()
    read_observers = {
        name: read_array(path, f"observers.{name}", arrays, like, rows, observing.RANGES[name])
        for name, like in observers._asdict().items()
    }
    saved = Saved(
        setup,
        {name: read_array(path, f"state.{name}", arrays, likes[name], rows, ranges[name]) for name in names},
        read_array(path, "rows.seed", arrays, np.empty((), np.uint64), rows),
        read_array(path, "rows.round", arrays, long, rows, (0, _MOST)),
        read_array(path, "rows.told", arrays, np.empty((told.shape[1] if told.ndim == 3 else 0, 4), np.int64), rows),
        read_array(path, "rows.scale", arrays, np.empty(2 if scale.shape == (n, 2) else 0), rows),
        Observers(**read_observers),
        graphs,
        {},
        dict(header.get("names", {})),
        Ridge.from_contents(path, K, n, header["regressor"], arrays) if "regressor" in header else None,
        _read_pool(path, arrays, len(advisers)) if setup.pooled else None,
        _read_account(path, arrays, setup),
    )
    widths = saved.scale[:, 1] - saved.scale[:, 0] if saved.scale.size else np.ones(n)
    if not np.isfinite(widths).all() or (widths == 0.0).any():
        raise StateFileError(f"{path} holds a scale without ends.")
    if not observing.consistent(saved.observers, setup.observers()):
        raise StateFileError(f"{path} holds counts of losses, delays or windows that do not fit together.")
    for name, decision in saved.names.items():
        if type(decision) is not str:
            raise StateFileError(f"{path} has the name {short(name)} for {short(decision)}, which is no decision.")
    return saved._replace(pending=_read_pending(path, saved, arrays))


def _read_pending(path: Place, saved: Saved, arrays: Arrays) -> dict[str, np.ndarray]:
    """Return the columns of the pending decisions."""
    setup, K = saved.setup, saved.setup.graph.n_arms
    n = len(arrays["pending.key"]) if arrays["pending.key"].ndim == 1 else -1
    whole, real = np.empty((), np.int64), np.empty(())
    likes: dict[str, tuple[np.ndarray, tuple[float, float] | None]] = {
        "key": (whole, (0, len(saved.round) - 1)),
        "round": (whole, (1, _MOST)),
        "arm": (whole, (0, K - 1)),
        "carried": (whole, (0, K - 1)),
        "graph": (whole, (0, len(saved.graphs) - 1)),
        "outstanding": (whole, (-1, _MOST)),
        "probability": (real, None),
        "trace": (np.empty(setup.n_traces), None),
        "mean": (np.empty(setup.n_means), (0.0, 1.0)),
    }
    if saved.regressor is not None and saved.regressor.width:
        likes["x"] = np.empty(saved.regressor.width), (-FINITE, FINITE)
    made = {
        name: read_array(path, f"pending.{name}", arrays, like, (n,), range_) for name, (like, range_) in likes.items()
    }
    made.setdefault("x", np.empty((n, 0)))
    if n and saved.regressor is not None and not saved.regressor.width:
        raise StateFileError(f"{path} holds pending decisions without the features that they were made by.")
    key, t = made["key"], made["round"]
    same = key[1:] == key[:-1]
    ordered = ((key[1:] > key[:-1]) | (same & (t[1:] > t[:-1]))).all() and (t <= saved.round[key]).all()
    sizes, carried = (_sizes(saved.graphs, made["graph"], made[name]) for name in ("arm", "carried"))
    # Without self-loops an arm may reveal nothing; else only an absent one does, which nobody draws.
    none = Need.SELF_LOOPS in setup.learner.needs and ((sizes < 1) | (carried < 1)).any()
    if not ordered or none:
        raise StateFileError(f"{path} holds pending decisions that nobody made.")
    if setup.learner.is_sparing:
        rows = read_array(path, "pending.p", arrays, np.empty(int(sizes.sum())), ())
        made["p"] = np.zeros((n, K))
        for row, part in zip(made["p"], np.split(rows, np.cumsum(sizes))[:-1], strict=True):
            row[: part.size] = part
    else:
        made["p"] = read_array(path, "pending.p", arrays, np.empty(K), (n,))
    _check_traces(path, setup, made["trace"])
    if setup.learner.is_sparing or not setup.learner.draws_itself:
        own = made["probability"] if setup.learner.is_sparing else made["p"][np.arange(n), made["arm"]]
        if not ((made["p"] >= 0.0) & (made["p"] <= 1.0 + 1e-6)).all() or not (own > 0.0).all():
            raise StateFileError(f"{path} holds pending decisions with probabilities that are none.")
    return made


def _check_traces(path: Place, setup: Setup, trace: np.ndarray) -> None:
    """Refuse what no learner has traced, of which kernels take some for sizes, and advice that is none."""
    K = setup.graph.n_arms
    for column, name in enumerate(setup.learner.traces):
        range_ = _range(setup.learner, name, trace, K)
        if range_ is not None:
            check_range(path, f"pending.trace of {name}", trace[:, column], range_)
    if not are_rows(trace[:, trace_size(setup.learner, K) :], K):
        raise StateFileError(f"{path} holds pending decisions with advice that is none.")


def _range(learner: Learner, name: str, array: np.ndarray, K: int) -> tuple[Any, Any] | None:
    """Return the range of an array of a learner's state or constants: the stated one, or else all finite numbers.

    A learner of a user's own may hold any floats where it states no range.
    """
    kinds = {"arms": (0, K - 1), "sizes": (0, K), "counts": (0, _MOST), "shares": (0.0, FINITE)}
    kinds |= {"lengths": (0.0, math.inf), "any": (-math.inf, math.inf)}
    stated = learner.ranges.get(name)
    if isinstance(stated, str):
        return kinds[stated]
    if stated is not None:
        return np.array([kinds[each][0] for each in stated]), np.array([kinds[each][1] for each in stated])
    return (-FINITE, FINITE) if array.dtype.kind == "f" and learner.module.startswith("sidelong.") else None


def _read_params(path: Place, learner: Learner, arrays: Arrays, K: int) -> Any:
    """Return the learner's constants as they were computed, not computed again."""
    saved = {name: arrays[f"params.{name}"] for name in learner.params._fields if f"params.{name}" in arrays}
    if len(saved) < len(learner.params._fields):
        raise StateFileError(f"{path} was saved by another version of its learner. Load it with that version.")
    for name, array in saved.items():
        range_ = _range(learner, name, array, K)
        if array.dtype.kind == "f" and range_ == (-FINITE, FINITE):  # only ln K of a single arm is 0
            range_ = (_LEAST if K > 1 else 0.0, FINITE)
        fits = _is_constant(learner, name, array, K) and (
            range_ is None or ((array >= range_[0]) & (array <= range_[1])).all()
        )
        if not fits:
            raise StateFileError(f"{path} holds a constant {name} that no learner on {K} arms has.")
    return learner.params(**{name: array.item() if array.ndim == 0 else array for name, array in saved.items()})


def _is_constant(learner: Learner, name: str, array: np.ndarray, K: int) -> bool:
    """Tell whether a constant has the type that `params` declares, as kernels are compiled for it.

    An array has a number for each arm, or is a list of arms. That of a user's own learner may have rows.
    """
    declared = learner.params.__annotations__.get(name)
    declared = getattr(declared, "__forward_arg__", declared)  # as a NamedTuple keeps what is written as text
    declared = getattr(declared, "__name__", declared)
    whole, real = array.dtype.kind in "iu", array.dtype == np.float64
    if declared in {"float", "int", "bool"}:
        return array.ndim == 0 and (array.dtype.kind in "biu" or (real and declared == "float"))
    if not learner.module.startswith("sidelong."):
        sized = array.ndim == 0 or (array.ndim == 1 and array.size <= K if whole else array.shape[0] == K)
        return sized and (array.dtype.kind in "biu" or real)
    if learner.ranges.get(name) == "arms":
        return array.dtype == np.uint32 and array.ndim == 1 and array.size <= K
    return real and array.shape == (K,)


def _read_advisers(path: Place, learner: Learner, header: Header) -> tuple[str, ...]:
    """Return the names of the advisers."""
    names = header.get("advisers", [])
    named = isinstance(names, list) and all(isinstance(name, str) and name for name in names)
    if not named or len(set(names)) < len(names) or len(names) > MOST or (names and learner.add_adviser is None):
        raise StateFileError(f"{path} has the advisers {short(names)}, which nobody has advised.")
    return tuple(names)


def _read_incumbent(path: Place, learner: Learner, header: Header, advisers: tuple[str, ...]) -> tuple[str, float]:
    """Return the name of the incumbent and the allowance; empty and 0 if there is none."""
    if "incumbent" not in header:
        return "", 0.0
    name, allowance = header["incumbent"], header.get("allowance")
    if not advisers or name != advisers[0] or not learner.budget:
        raise StateFileError(f"{path} has the incumbent {short(name)}, who is not its first adviser.")
    return name, check_number(StateFileError, f"The allowance in {path}", allowance, above=0)


def _read_pooled(path: Place, learner: Learner, header: Header) -> bool:
    """Tell whether the keys learn trust together."""
    pooled = bool(_of_type(path, header, "pooled", bool)) if "pooled" in header else False
    if pooled and (not learner.pooled or header["kind"] != "family"):
        raise StateFileError(f"{path} has pooled keys, which learn no trust.")
    return pooled


def _read_ceiling(path: Place, header: Header, K: int) -> Ceiling | None:
    """Return the ceiling of a file, if it has one."""
    if "ceiling" not in header:
        return None
    try:
        mean, unit, bounds, overspend, shared = header["ceiling"]
        made = Ceiling(mean, unit, None if bounds is None else np.array(bounds, np.float64), overspend, shared)
        numbers = np.array([mean, unit, *(bounds or ()), *([] if overspend is None else [1.0 + overspend])], np.float64)
        right = bool(((numbers > 0.0) & (numbers <= FINITE)).all()) and isinstance(shared, bool)
    except (TypeError, ValueError):
        right = False
    if not right or (bounds is None) != (overspend is None) or (bounds is not None and len(bounds) != K):
        raise StateFileError(f"{path} has the ceiling {short(header['ceiling'])}, which is none.")
    return made


def _read_account(path: Place, arrays: Arrays, setup: Setup) -> np.ndarray | None:
    """Return what all keys have spent together, if they do."""
    if setup.ceiling is None or not setup.ceiling.shared:
        return None
    like = setup.ceiling._replace(shared=False).spending()
    found = read_array(path, "account", arrays, like, (), (0.0, FINITE))
    if (found[: UNIT + 1] != like[: UNIT + 1]).any() or found[PRICE] > HIGHEST or found[SHARED] != 0.0:
        raise StateFileError(f"{path} holds an account that is not of its ceiling.")
    return found


def _read_pool(path: Place, arrays: Arrays, advisers: int) -> PooledTrust:
    finite, counts = (-FINITE, FINITE), (0.0, FINITE)
    return PooledTrust(
        read_array(path, "pool.lost", arrays, np.empty(advisers + 1), (), finite),
        read_array(path, "pool.gap", arrays, np.empty(1), (), counts),
    )


def find_learner(path: Place, header: Header, given: ModuleType | Learner | None, *, kind: str = "Agent") -> Learner:
    """Return the learner that a state file is of."""
    name = header["learner"]
    features = "regressor" in header
    if given is None and features and kind == "Agent":
        raise StateFileError(f"{path} is of an agent with features. Load it with ContextualAgent.load.")
    if given is None and name not in (catalogue.names_seeing_features() if features else catalogue.names()):
        raise StateFileError(
            f"{path} is of the learner {short(name)}, which is not one of the package's own. "
            f"Load it with the module that is: {kind}.load(path, learner=module)."
        )
    learner = catalogue.choose(given or name, _of_type(path, header, "options", dict), features=features)
    if name != learner.name:
        raise StateFileError(f"{path} is of the learner {short(name)}, not of {learner.name!r}.")
    saved, own = header["learner_version"], learner.version
    if saved != own:
        raise StateFileError(
            f"{path} was saved by version {saved} of {name}, and this is version {own}, which decides otherwise. To go "
            f"on with it, use a sidelong that has version {saved}, which the list of changes names; or make a new "
            f"{kind}, which learns anew."
        )
    return learner


def _of_type(path: Place, header: Header, name: str, kind: type) -> Any:
    if not isinstance(header.get(name), kind):
        raise StateFileError(f"{path} has the {name} {short(header.get(name))}, which is none.")
    return header[name]


def _a(kind: Any) -> str:
    return f"an {kind}" if kind == "agent" else f"a {kind}"
