"""What agents and families have in common beside their rounds: what they began with, and their files."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Self

from sidelong.agent import codec, state_file
from sidelong.learners import catalogue

if TYPE_CHECKING:
    from os import PathLike

    import numpy as np

    from sidelong.agent.rounds import Rounds
    from sidelong.agent.setup import Setup
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner
    from sidelong.outcomes.scale import Scale


class Persistent:
    """An agent or a family: a setup that is played, and that can be saved, loaded and pickled."""

    _rounds: Rounds

    @property
    def _setup(self) -> Setup:
        return self._rounds.setup

    @property
    def learner(self) -> str:
        """The name of the learner."""
        return str(self._setup.learner.name)

    @property
    def options(self) -> dict[str, Any]:
        """The options that the learner was given."""
        return dict(self._setup.options)

    @property
    def graph(self) -> FeedbackGraph:
        """The graph of every round, and of every key, that `ask` is not given another one for."""
        return self._setup.graph

    @property
    def seed(self) -> int:
        """The seed."""
        return self._setup.seed

    @property
    def scale(self) -> Scale | None:
        """The range of the numbers that `tell` takes, of keys without their own; None if they are losses in [0, 1]."""
        return self._setup.scale

    @property
    def adviser_names(self) -> tuple[str, ...]:
        """The names of those who have advised, in the order in which they came."""
        return self._setup.advisers

    @property
    def kept_graphs(self) -> list[FeedbackGraph]:
        """The graphs in `contents`, in their order: the own one, and those of pending decisions."""
        return self._rounds.kept_graphs

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as the header and the arrays of a state file."""
        raise NotImplementedError

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a file, from which `load` goes on as if it had never stopped."""
        state_file.write(path, *self.contents())

    @classmethod
    def load(cls, path: str | PathLike[str], learner: Learner | None = None) -> Self:
        """Resume from a file that `save` wrote.

        Args:
            path: the file.
            learner: the module, for a learner that is not one of the package's own.
        """
        return cls.from_contents(*state_file.read(path), path, learner)

    @classmethod
    def from_contents(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        path: str | PathLike[str],
        learner: Learner | None = None,
    ) -> Self:
        """Resume from what `contents` returned; messages call the place where it was kept `path`."""
        made = cls.__new__(cls)
        with codec.reading(path):
            made._resume(path, header, arrays, learner)  # noqa: SLF001  # its own
        return made

    def _resume(self, path: Any, header: dict[str, Any], arrays: dict[str, np.ndarray], learner: Any) -> None:
        """Go on, in a new object, from what was saved."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        # What a state file holds; code is found again by the name of its module, if that has it.
        learner = self._setup.learner
        known = getattr(sys.modules.get(learner.module), "LEARNER", None) is learner
        own = None if self.learner in catalogue.names() else learner.module if known else learner
        return _restore, (type(self), state_file.pack(*self.contents()), own)


def _restore(kind: type[Persistent], data: bytes, learner: str | Learner | None) -> Persistent:
    given: Any = importlib.import_module(learner) if isinstance(learner, str) else learner
    return kind.from_contents(*state_file.unpack(data, "The pickle"), "The pickle", given)
