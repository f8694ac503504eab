"""The registry of worlds: each function that makes one, with what a caller must know before it is called.

A function registers itself where it is written, so that there is no second list of names:

    @world(means="means", every="whole", stochastic=False)
    def drifting(means: npt.ArrayLike, every: int) -> World: ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sidelong.graphs.makers import Maker

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.graphs.makers import Kind

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True)
class WorldMaker(Maker):
    """A function that makes worlds."""

    stochastic: bool  #: whether the losses of an arm are independent draws from one law: see `World.fixed_means`


_MAKERS: dict[str, WorldMaker] = {}


def world(*, stochastic: bool, **kinds: Kind) -> Callable[[F], F]:
    """Register a function that makes a world.

    Args:
        stochastic: whether the losses of an arm are independent draws from one law.
        **kinds: what each argument takes. What is of the kind "graph", "n_arms" or "rounds" is that of the game, where
            it is left out and the game is known.

    """

    def register(make: F) -> F:
        _MAKERS[make.__name__] = WorldMaker(make, kinds, stochastic)
        return make

    return register


def makers() -> dict[str, WorldMaker]:
    """Return the makers of worlds by name."""
    return dict(sorted(_MAKERS.items()))
