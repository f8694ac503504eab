"""A world that is a user's own function."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from sidelong._jit import kernel
from sidelong.errors import WorldError
from sidelong.losses.binding import Functions, is_compiled
from sidelong.losses.world import World, arrays
from sidelong.losses.world_arguments import describe, means_of, whole
from sidelong.losses.world_kernels import FUNCTION
from sidelong.losses.world_makers import world

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

F = TypeVar("F", bound="Callable[..., Any]")


def compiled(function: F) -> F:
    """Compile a function for `sidelong.losses.function`: a decorator.

    The function may use numbers, the arrays it finds in its module, `math.sqrt` and other compiled functions;
    it may not make arrays. It is compiled when it is first called. To have the same bits on every machine,
    use exp and log of `sidelong.numerics`, and its counter-based random numbers:

    Example:
        >>> from sidelong.numerics import LOSSES, uniform
        >>> @compiled
        ... def weekly(seed, run, t, arm):
        ...     return uniform(seed, LOSSES, run, t, arm) * (1.0 if t % 7 == arm else 0.5)

    """
    return kernel(function)


@world(f="function", means="means", n_arms="n_arms", name="text", stochastic=False)
def function(
    f: Callable[[int, int, int, int], float],
    means: npt.ArrayLike | Callable[[int, int, int, int], float] | None = None,
    n_arms: int | None = None,
    name: str | None = None,
) -> World:
    """Make a world from a function of your own: f(seed, run, t, arm) is the loss of an arm in round t.

    Rounds count from 1. The function must be pure: the same arguments give the same loss, whenever and
    wherever it is called. It is asked only for losses that are observed. One that is decorated with
    `sidelong.losses.compiled` runs at the speed of the built-in worlds. A plain Python function works as
    well, but then every round is run by the Python interpreter, some hundred times slower. A loss outside [0,
    1] stops the run that meets it.

    Without `means` regret is against the arm whose actual losses are smallest. To find it, f is called for
    all arms in all rounds of each run.

    Args:
        f: the loss.
        means: the expected losses, if they are known: a number for each arm, or a function of (seed, run, t,
            arm), compiled if f is.
        n_arms: the number of arms; needed unless `means` is a list.
        name: what to call the world; by default, the name of the function.

    Raises:
        WorldError: f does not take four arguments, or it is not clear how many arms there are.

    Example:
        >>> function(lambda seed, run, t, arm: (t + arm) % 2, n_arms=3, name="alternating")
        <World alternating: 3 arms, a plain Python function (slow); no means>

    """
    mean = means if callable(means) else None
    _check_function("f", f)
    if mean is not None:
        _check_function("means", mean)
        if is_compiled(mean) != is_compiled(f):
            raise WorldError("f and means must be both compiled or both plain: decorate both with losses.compiled.")
    if mean is None and means is not None:
        numbers = means_of(means)  # type: ignore[arg-type]  # it is not callable
        if n_arms is not None and n_arms != numbers.size:
            raise WorldError(f"n_arms is {n_arms!r}, while means has {numbers.size} numbers: leave n_arms out.")
        K, known = numbers.size, describe(numbers)
    else:
        if n_arms is None:
            raise WorldError("n_arms is needed, since a function does not say how many arms there are.")
        numbers = means_of([0.0])[:0]
        K = whole("n_arms", n_arms, 1, 2**32 - 1)
        known = f"{K} arms"
    how = "a compiled function" if is_compiled(f) else "a plain Python function (slow)"
    what = "; no means" if means is None else "; means by a function" if mean is not None else ""
    return World(
        str(name or getattr(f, "__name__", "function")),
        K,
        arrays(FUNCTION, numbers),
        f"{known}, {how}{what}",
        binary=None,
        functions=Functions(f, mean),
    )


def _check_function(name: str, f: Callable[..., float]) -> None:
    if not callable(f):
        raise WorldError(f"{name} must be a function of (seed, run, t, arm), not {f!r}.")
    try:
        inspect.signature(getattr(f, "py_func", f)).bind(0, 0, 1, 0)
    except TypeError:
        raise WorldError(f"{name} must take the four arguments (seed, run, t, arm); {f!r} does not.") from None
