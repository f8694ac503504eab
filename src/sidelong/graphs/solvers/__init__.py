"""How the numbers of a graph are found.

========================  =====================================================================================
sets                      packing: the heaviest set without a conflict; acyclic: the largest without a cycle
covers                    covering: the fewest arms that reveal all; clique_cover: the fewest cliques
closed forms              on_intervals
search                    clique_search: branch and bound, in slices
programs                  programs: HiGHS; cliques lists the rows, and finds quick covers
what they work on         conflicts, parts, groups, bits, budget
========================  =====================================================================================

HiGHS solves the integer programs of domination, clique covers and acyclic sets, and gives the duals that certify
bounds. A search of our own stands beside it where ``benchmarks/graph_numbers.py`` shows it to be at least ten times as
fast on known networks and sparse graphs of up to some hundred arms: for independent sets alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from sidelong.graphs.solvers.budget import uncounted

if TYPE_CHECKING:
    from types import ModuleType

    from sidelong.graphs.solvers import acyclic, clique_cover, conflicts, covering, on_intervals, packing

__all__ = ["acyclic", "clique_cover", "conflicts", "covering", "on_intervals", "packing"]


def __getattr__(name: str) -> ModuleType:
    """Import a solver when it is first used: SciPy takes half a second to load, which does not count."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with uncounted():
        return importlib.import_module(f"{__name__}.{name}")
