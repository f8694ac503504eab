"""What an experiment is with and without `await`: a name, and the scale of what it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Self, TypeVar

from sidelong.outcomes.scale import checked_scale

if TYPE_CHECKING:
    from sidelong.outcomes import Scale

S = TypeVar("S")


class Named(Generic[S]):
    """An experiment of a service, with or without `await`."""

    def __init__(self, service: S, name: str, scale: Scale | None = None) -> None:
        self._service = service
        self._name = name
        self._scale = scale

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    @property
    def scale(self) -> Scale | None:
        """The range of the numbers that `tell` takes; None if they are losses in [0, 1]."""
        return self._scale

    def scaled(self, scale: Scale | None) -> Self:
        """Return the experiment, told with numbers of this scale. The service keeps losses, and does not know it.

        An experiment that was made with a scale over HTTP is told numbers of that as they are, and refuses losses.
        """
        if scale is not None:
            checked_scale(scale)
        return type(self)(self._service, self._name, scale)

    def _called(self, name: str) -> Self:
        """Return the experiment under another name."""
        return type(self)(self._service, name, self._scale)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name} of {self._service!r}>"
