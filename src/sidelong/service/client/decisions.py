"""What came over the network: a decision, many decisions in columns, and what became of feedback for many."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sidelong.batches import BatchColumns
from sidelong.service.client.replies import error_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from sidelong.errors import SidelongError

    Key = str | int


class RemoteDecision:
    """What a service answers to `ask`, with the names of an agent's `Decision`."""

    __slots__ = ("_experiment", "_reply", "_reveals")

    def __init__(self, reply: dict[str, Any], experiment: str) -> None:
        self._reply = reply
        self._experiment = experiment
        self._reveals = np.array(reply["reveals"], np.int32)
        self._reveals.setflags(write=False)

    @property
    def id(self) -> str:
        """What names this decision: pass it to `tell`, from anywhere."""
        return str(self._reply["id"])

    @property
    def experiment(self) -> str:
        """The name of the experiment that made it."""
        return self._experiment

    @property
    def round(self) -> int:
        """The number of the round, from 1."""
        return int(self._reply["round"])

    @property
    def arm(self) -> int:
        """The arm to play."""
        return int(self._reply["arm"])

    @property
    def carried_out(self) -> int:
        """The arm that was carried out: `arm`, unless the service was told by `override` that it was another one."""
        return int(self._reply.get("carried_out", self._reply["arm"]))

    @property
    def label(self) -> str | None:
        """What the arm is called, as it was when the decision was asked for; None if the arms have no labels."""
        label: str | None = self._reply["label"]
        return label

    @property
    def probability(self) -> float:
        """The probability with which `arm` was drawn; NaN if the learner draws without knowing it, as ts-n does."""
        p = self._reply["probability"]
        return math.nan if p is None else float(p)

    @property
    def drawn_by(self) -> str:
        """What has drawn it: "learner", or "holdout", "frozen" or "fallback", from which the learner does not learn."""
        return str(self._reply["drawn_by"])

    @property
    def reveals(self) -> npt.NDArray[np.int32]:
        """The arms whose losses playing `arm` reveals: what `tell` wants to know."""
        return self._reveals

    @property
    def expires_at(self) -> str | None:
        """Until when the service waits for feedback, in UTC; None if it always does."""
        expires: str | None = self._reply["expires_at"]
        return expires

    def __getattr__(self, name: str) -> Any:
        if name in {"probabilities", "observe_probabilities", "revealed_probabilities", "graph"}:
            raise AttributeError(
                f"A decision that came over the network has no {name}. experiment.look_up(decision) has the "
                f"probabilities of observing the revealed arms, experiment.estimates().weights those of the next draw."
            )
        raise AttributeError(f"'RemoteDecision' object has no attribute {name!r}")

    def __repr__(self) -> str:
        arm = self.arm if self.label is None else f"{self.arm} ({self.label})"
        return f"<RemoteDecision {self.id}: play arm {arm}, drawn with probability {self.probability:.4g}>"


class RemoteBatch(BatchColumns):
    """What a service answers to `ask_many`, with the names of a family's `Batch`.

    ``batch[mask]`` is a batch of some of them, for feedback that comes in parts.
    """

    def __init__(
        self, experiment: str, ids: list[str], labels: list[str] | None, drawn_by: list[str], *columns: Any
    ) -> None:
        super().__init__(*columns)
        self.experiment = experiment  #: the name of the experiment that made them
        self._ids = ids
        self.labels = labels  #: what the arm of each is called; None if the arms have no labels
        self.drawn_by = drawn_by  #: what has drawn each, as `RemoteDecision.drawn_by`

    @property
    def ids(self) -> list[str]:
        """What names each decision: pass it to `tell_many`, from anywhere."""
        return self._ids

    @classmethod
    def read(cls, reply: dict[str, Any], experiment: str, keys: list[Any]) -> Self:
        """Make one of a reply; without keys, each is None."""
        arms = np.array(reply["arms"], np.int64)
        rows = {int(arm): row for arm, row in reply["reveals"].items()}
        listed = np.array(sorted(rows), np.int64)
        each = [np.array(rows[arm], np.int32) for arm in listed.tolist()]
        begin = np.append(0, np.cumsum([row.size for row in each], dtype=np.int64))
        which = np.searchsorted(listed, arms)
        sizes = np.diff(begin)[which]
        offsets = np.append(0, np.cumsum(sizes))
        places = np.repeat(begin[which] - offsets[:-1], sizes) + np.arange(offsets[-1])
        reveals = np.concatenate([np.empty(0, np.int32), *each])[places]
        if reply["absent"] is not None:  # which of them did not fit under a ceiling
            of = np.repeat(np.arange(arms.size), sizes)
            out = {(place, arm) for place, absent in enumerate(reply["absent"]) for arm in absent}
            seen = np.array([pair not in out for pair in zip(of.tolist(), reveals.tolist(), strict=True)], np.bool_)
            reveals, offsets = reveals[seen], np.append(0, np.cumsum(np.bincount(of[seen], minlength=arms.size)))
        known = reply["probabilities"]
        p = np.full(arms.size, np.nan) if known is None else np.array(known, np.float64)
        rounds = np.array(reply["rounds"], np.int64)
        called = reply["labels"]
        labels = None if called is None else [called[str(arm)] for arm in reply["arms"]]
        named = experiment, reply["ids"], labels, reply["drawn_by"]
        return cls(*named, keys, rounds, arms, p, reveals, offsets)

    @property
    def has_keys(self) -> bool:
        """Whether these are decisions for keys."""
        return not self.keys or self.keys[0] is not None

    def __repr__(self) -> str:
        return super().__repr__() if self.has_keys else f"<RemoteBatch of {len(self):,} decisions>"

    def _named(self, columns: tuple[Any, ...], parts: Sequence[tuple[Self, Any]]) -> Self:
        def chosen(name: str) -> list[str]:
            return [
                value
                for part, at in parts
                for value in np.array(getattr(part, name), object)[slice(None) if at is None else at].tolist()
            ]

        has_labels = all(part.labels is not None for part, _ in parts)
        labels = chosen("labels") if has_labels else None
        return type(self)(self.experiment, chosen("ids"), labels, chosen("drawn_by"), *columns)


class Learned(int):
    """How many decisions were learned: a number, which also knows why others were not.

    `problems` has, by id, the error that telling a decision alone would have raised. It is empty unless `tell_many` was
    told to be `partial`.
    """

    problems: dict[str, SidelongError]

    def __new__(cls, count: int, problems: dict[str, SidelongError] | None = None) -> Self:
        """Make one."""
        made = super().__new__(cls, count)
        made.problems = {} if problems is None else problems
        return made

    @classmethod
    def of(cls, count: int, problems: Iterable[tuple[str, Mapping[str, Any]]], path: str) -> Self:
        """Return what a reply says: how many were learned, and what is wrong with others, by id."""
        return cls(count, {id_: error_of(problem, path) for id_, problem in problems})

    @classmethod
    def together(cls, parts: Iterable[Self]) -> Self:
        """Return the same of several requests."""
        every = list(parts)
        return cls(sum(every), {id_: error for part in every for id_, error in part.problems.items()})
