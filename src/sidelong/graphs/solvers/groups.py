"""Groups of arms as compressed rows, plain and with weights: the rows of a linear program, and its dual."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy import sparse

    from sidelong.graphs.arrays import Flags, Integers, Reals


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
        from scipy import sparse  # noqa: PLC0415  # it takes a while to load

        return sparse.csr_array((np.ones(self.arms.size), self.arms, self.start), shape=(self.number, n))

    def weighing(self, weight: Integers) -> WeightedGroups:
        """Return the groups as cliques with these weights."""
        return WeightedGroups(self.start, self.arms, weight, np.ones_like(weight))


class WeightedGroups(NamedTuple):
    """The same with a weight for each group, and how many of its arms a set has at most."""

    start: Integers
    arms: Integers
    weight: Integers
    most: Integers  #: 1 of a clique, and all but one of a cycle of three or more

    @property
    def total(self) -> int:
        """What no set weighs more than."""
        return int((self.weight * self.most).sum())


class Found(NamedTuple):
    """A set without a conflict (or a cycle), a cover, and what both leave open, which a search may have narrowed."""

    arms: Integers  #: the set, ascending
    lower: int  #: from the weight of the set
    upper: int  #: to the total of the cover
    cover: WeightedGroups

    def among(self, arms: Integers) -> Found:
        """Return the same for arms that were numbered anew: what was 0 is ``arms[0]``."""
        return self._replace(arms=arms[self.arms], cover=self.cover._replace(arms=arms[self.cover.arms]))


def listed(groups: Sequence[Integers]) -> Groups:
    """Return groups that are given as lists."""
    sizes = [group.size for group in groups]
    return Groups(np.append(0, np.cumsum(sizes, dtype=np.int64)), np.concatenate([np.empty(0, np.int64), *groups]))


def by_label(label: Integers) -> Groups:
    """Return the groups of arms with the same label."""
    size = np.unique(label, return_counts=True)[1]
    return Groups(np.append(0, np.cumsum(size)), np.argsort(label, kind="stable"))


def join(found: Sequence[Found]) -> Found:
    """Return what was found for arms that have nothing to do with each other."""
    covers = [each.cover for each in found]
    cover = WeightedGroups(
        np.append(0, np.cumsum(np.concatenate([np.diff(each.start) for each in covers]))),
        *(np.concatenate(column) for column in list(zip(*covers, strict=True))[1:]),
    )
    arms = np.sort(np.concatenate([each.arms for each in found]))
    return Found(arms, sum(each.lower for each in found), sum(each.upper for each in found), cover)


def select(groups: WeightedGroups, which: Flags) -> WeightedGroups:
    """Return some of the groups."""
    size = np.diff(groups.start)
    return WeightedGroups(
        np.append(0, np.cumsum(size[which])),
        groups.arms[np.repeat(which, size)],
        groups.weight[which],
        groups.most[which],
    )


def round_up(groups: Groups, share: Reals, weight: Integers, most: Integers | None = None) -> WeightedGroups:
    """Give groups whole weights near their share, so that those of an arm sum to its weight at least.

    Groups without a share are left out. What rounding took away from an arm, it gets as a group of its own. A set has
    at most one arm of a group, unless `most` says how many.
    """
    whole = np.rint(share).astype(np.int64)
    used = whole > 0
    cover = select(WeightedGroups(*groups, whole, np.ones_like(whole) if most is None else most), used)
    covered = np.zeros(weight.size, np.int64)
    np.add.at(covered, cover.arms, np.repeat(cover.weight, np.diff(cover.start)))
    alone = np.flatnonzero(covered < weight)
    return WeightedGroups(
        np.append(cover.start, cover.start[-1] + np.arange(1, alone.size + 1)),
        np.append(cover.arms, alone),
        np.append(cover.weight, (weight - covered)[alone]),
        np.append(cover.most, np.ones(alone.size, np.int64)),
    )
