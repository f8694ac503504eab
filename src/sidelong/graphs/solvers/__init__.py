"""How the numbers of a graph are found.

========================  =====================================================================================
sets                      packing: the heaviest set without a conflict; acyclic: the largest without a cycle
covers                    covering: the fewest arms that reveal all; clique_cover: the fewest cliques
closed forms              on_intervals
before a search           reductions; local_search, clique_partition and cycles for quick bounds
search                    clique_search, acyclic_search, coloring_search: branch and bound, in slices
programs                  programs: HiGHS; edge_cliques and maximal_cliques list the rows
what they work on         conflicts, parts, groups, bits, budget
========================  =====================================================================================

The names below are imported when first used: SciPy's solvers take half a second to load.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from sidelong.graphs.solvers.budget import uncounted

if TYPE_CHECKING:
    from sidelong.graphs.solvers.acyclic import largest_acyclic
    from sidelong.graphs.solvers.clique_cover import fewest_cliques, fewest_fractions
    from sidelong.graphs.solvers.conflicts import either, mutual
    from sidelong.graphs.solvers.covering import fewest_arms, relax
    from sidelong.graphs.solvers.on_intervals import ascend, heaviest_on_ascending, largest_independent
    from sidelong.graphs.solvers.packing import heaviest_set

__all__ = [
    "ascend",
    "either",
    "fewest_arms",
    "fewest_cliques",
    "fewest_fractions",
    "heaviest_on_ascending",
    "heaviest_set",
    "largest_acyclic",
    "largest_independent",
    "mutual",
    "relax",
]

_HOMES = {
    "ascend": "on_intervals",
    "either": "conflicts",
    "fewest_arms": "covering",
    "fewest_cliques": "clique_cover",
    "fewest_fractions": "clique_cover",
    "heaviest_on_ascending": "on_intervals",
    "heaviest_set": "packing",
    "largest_acyclic": "acyclic",
    "largest_independent": "on_intervals",
    "mutual": "conflicts",
    "relax": "covering",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with uncounted():
        value: object = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
