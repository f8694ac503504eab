"""What became of feedback for many decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sidelong.service.client.replies import error_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sidelong.errors import SidelongError


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
