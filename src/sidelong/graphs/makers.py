"""The registry of makers: each family of graphs, and each sequence, with what a caller must know before it is made.

A maker registers itself where it is written, so that there is no second list of names:

    @family(n="whole", k="whole", size=lambda n, k: (n, n * (2 * k + 1)))
    def circulant(n: int, k: int) -> FeedbackGraph: ...

`makers` returns them all, by name.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")

#: What an argument takes. A list holds numbers, and is one value; so is a list of graphs.
Kind = Literal["whole", "number", "text", "flag", "list", "graph", "graphs", "means", "function", "n_arms", "rounds"]

_FITS: dict[str, Callable[[object], bool]] = {
    "whole": lambda value: type(value) is int,
    "number": lambda value: type(value) in {int, float},
    "text": lambda value: type(value) is str,
    "flag": lambda value: type(value) is bool,
    "list": lambda value: isinstance(value, list) and all(type(each) in {int, float} for each in value),
}


class Size(NamedTuple):
    """How large a graph will be."""

    arms: int
    edges: int  #: at most how many are listed, self-loops too; 0 if intervals do


@dataclass(frozen=True)
class Maker:
    """A function that makes something from plain values, and what its arguments are."""

    make: Callable[..., Any]
    kinds: Mapping[str, Kind]  #: of each argument, in order

    def __post_init__(self) -> None:
        named = tuple(inspect.signature(self.make).parameters)
        if tuple(self.kinds) != named:
            raise TypeError(f"{self.name} takes {', '.join(named)}, and kinds were given for {', '.join(self.kinds)}.")

    @property
    def name(self) -> str:
        """By what name it is asked for."""
        return self.make.__name__

    @property
    def defaults(self) -> dict[str, Any]:
        """The arguments that may be left out, and what they are then."""
        parameters = inspect.signature(self.make).parameters
        return {name: each.default for name, each in parameters.items() if each.default is not each.empty}

    def takes_list(self, argument: str) -> bool:
        """Tell whether an argument takes a list as one value."""
        return self.kinds.get(argument) in {"list", "graphs", "means"}

    def fits(self, argument: str, value: object) -> bool:
        """Tell whether a plain value, as JSON or TOML have it, is of the kind of an argument."""
        fits = _FITS.get(self.kinds[argument])
        return fits is not None and fits(value)


@dataclass(frozen=True)
class GraphMaker(Maker):
    """A family of graphs, or a sequence."""

    size_of: Callable[..., tuple[int, int]]
    over_time: bool  #: whether it makes a `GraphSequence`

    def size(self, **arguments: Any) -> Size:
        """Return how large the graph will be, from arguments that fit, before anything is built."""
        return Size(*self.size_of(**self.defaults | arguments))


_MAKERS: dict[str, GraphMaker] = {}


def family(*, size: Callable[..., tuple[int, int]], **kinds: Kind) -> Callable[[F], F]:
    """Register a function that makes a graph.

    Args:
        size: returns the number of arms and the most edges that are listed, from the arguments by name.
        **kinds: what each argument takes.

    """
    return lambda make: _register(make, kinds, size, over_time=False)


def sequence(*, size: Callable[..., tuple[int, int]], **kinds: Kind) -> Callable[[F], F]:
    """Register a function that makes a sequence of graphs; the edges are those of all its graphs."""
    return lambda make: _register(make, kinds, size, over_time=True)


def _register(make: F, kinds: dict[str, Kind], size: Callable[..., tuple[int, int]], *, over_time: bool) -> F:
    _MAKERS[make.__name__] = GraphMaker(make, kinds, size, over_time)
    return make


def makers(*, over_time: bool | None = None) -> dict[str, GraphMaker]:
    """Return the makers by name: all, or only those of single graphs, or only those of sequences."""
    return {name: maker for name, maker in sorted(_MAKERS.items()) if over_time in {None, maker.over_time}}
