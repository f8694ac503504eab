"""Groups of arms as compressed rows, plain and with weights: the rows of a linear program, and its dual."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

__all__ = ["Found", "Groups", "WeightedGroups", "by_label", "join", "listed", "round_up", "select", "spread"]


class Groups(NamedTuple):
    """Group g has the arms ``arms[start[g]:start[g + 1]]``."""

    start: Integers
    arms: Integers

    @property
    def number(self) -> int:
        """How many groups there are."""
        return self.start.size - 1

    def matrix(self, n: int) -> sparse.csr_array:
        """Return the matrix with a row for each group and a column for each of n arms."""
        return sparse.csr_array((np.ones(self.arms.size), self.arms, self.start), shape=(self.number, n))


class WeightedGroups(NamedTuple):
    """The same with a weight for each group."""

    start: Integers
    arms: Integers
    weight: Integers

    @property
    def total(self) -> int:
        """The sum of the weights."""
        return int(self.weight.sum())


class Found(NamedTuple):
    """A set without a conflict, and what none exceeds."""

    arms: Integers  #: ascending
    upper: int  #: no set weighs more
    cover: WeightedGroups  #: cliques; their total may be more than `upper`, if search found that


def listed(groups: Sequence[Integers]) -> Groups:
    """Return groups that are given as lists."""
    sizes = [group.size for group in groups]
    return Groups(np.append(0, np.cumsum(sizes, dtype=np.int64)), np.concatenate([np.empty(0, np.int64), *groups]))


def by_label(label: Integers) -> Groups:
    """Return the groups of arms with the same label, which are 0, 1, and so on."""
    return Groups(np.append(0, np.cumsum(np.bincount(label))), np.argsort(label, kind="stable"))


def join(groups: Sequence[WeightedGroups]) -> WeightedGroups:
    """Return all groups one after the other."""
    sizes = np.concatenate([np.diff(each.start) for each in groups])
    return WeightedGroups(
        np.append(0, np.cumsum(sizes)),
        np.concatenate([each.arms for each in groups]),
        np.concatenate([each.weight for each in groups]),
    )


def select(groups: WeightedGroups, which: npt.NDArray[np.bool_]) -> WeightedGroups:
    """Return some of the groups."""
    size = np.diff(groups.start)
    return WeightedGroups(
        np.append(0, np.cumsum(size[which])), groups.arms[np.repeat(which, size)], groups.weight[which]
    )


def spread(groups: WeightedGroups, stands_for: Integers) -> WeightedGroups:
    """Let each arm join the groups of the one that stands for it."""
    order = np.argsort(stands_for, kind="stable")
    count = np.bincount(stands_for, minlength=stands_for.size)
    first = np.cumsum(count) - count
    size = count[groups.arms]
    ends = np.append(0, np.cumsum(size))
    at = np.arange(ends[-1]) - np.repeat(ends[:-1] - first[groups.arms], size)
    return WeightedGroups(ends[groups.start], order[at], groups.weight)


def round_up(
    groups: Groups, share: npt.NDArray[np.float64], weight: Integers
) -> tuple[WeightedGroups, npt.NDArray[np.bool_]]:
    """Give groups whole weights near their share, so that those of an arm sum to its weight at least.

    Groups without a share are left out, and which were not is returned. What rounding took away from an arm, it gets as
    a group of its own, at the end.
    """
    whole = np.rint(share).astype(np.int64)
    used = whole > 0
    size = np.diff(groups.start)
    arms = groups.arms[np.repeat(used, size)]
    covered = np.zeros(weight.size, np.int64)
    np.add.at(covered, arms, np.repeat(whole[used], size[used]))
    alone = np.flatnonzero(covered < weight)
    rounded = WeightedGroups(
        np.append(0, np.cumsum(np.append(size[used], np.ones(alone.size, np.int64)))),
        np.append(arms, alone),
        np.append(whole[used], (weight - covered)[alone]),
    )
    return rounded, used
