"""A kernel: one function that is plain Python and machine code, with the same bits.

Numba takes a third of a second to load. So nothing of it is imported before a kernel is to be machine code, and a
kernel until then is its function alone. `Kernel.plain` is the function with plain Python in the place of every kernel
that it reaches, whatever is compiled in this process.

What kernels call is a part of them, and what Python calls is machine code, which is kept in a folder
(`sidelong._cache`). Both need parts of Numba that are not public, and are in `sidelong._numba`. Where this Numba has
others, a kernel is what `numba.njit` makes of it: the same bits, but slower, and compiled in each process anew. Nothing
is kept on disk then, so that no old machine code can be run.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
import threading
import types
import warnings
import weakref
from numbers import Number
from typing import TYPE_CHECKING, Any

from sidelong._fingerprint import fingerprint, is_own
from sidelong._install import CLIENT_ONLY, pip_install

if TYPE_CHECKING:
    from collections.abc import Callable

#: The oldest Numba that is allowed, and the newest that the tests were run with.
TESTED = ("0.65", "0.68")

_lock = threading.RLock()
#: The fingerprints of public kernels, which nothing else tells when they are out of date.
compiled_as: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def jit_is_off() -> bool:
    """Tell whether all kernels stay plain Python, as ``NUMBA_DISABLE_JIT=1`` says, and as in sidelong-client."""
    if CLIENT_ONLY:
        return True
    if numba_is_loaded():
        return bool(sys.modules["numba"].config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "") not in {"", "0"}


def begins_plain() -> bool:
    """Tell whether plain Python may do a little before machine code is there; ``SIDELONG_BACKGROUND=0`` says no."""
    return os.environ.get("SIDELONG_BACKGROUND") != "0"


def numba_is_loaded() -> bool:
    """Tell whether this process has loaded Numba, for whatever reason."""
    return hasattr(sys.modules.get("numba"), "config")


@functools.cache
def new_kernel() -> Callable[..., Any] | None:
    """Return what makes kernels of the private parts of Numba, or None if this Numba has others than expected."""
    import numba  # noqa: PLC0415  # takes a third of a second

    try:
        from sidelong._numba import check, new_kernel  # noqa: PLC0415  # importing it is a part of the check

        check()
    except Exception as error:  # noqa: BLE001  # other parts may fail in any way
        if multiprocessing.parent_process() is None:  # once, and not in each process of a pool
            oldest, newest = TESTED
            known = pip_install(f"'numba>={oldest},<={newest}.99'")
            warnings.warn(
                f"Numba {numba.__version__} has other private parts than this version of sidelong knows "
                f"({type(error).__name__}: {error}). Results are the same, but each process compiles anew what it "
                f"needs, and simulations take up to eight times as long. {known}",
                RuntimeWarning,
                stacklevel=4,
            )
        return None
    return new_kernel


class Kernel:
    """A function over floats, integers and NamedTuples of arrays, compiled when it is first called.

    What Numba's own compiled functions have, such as `compile` and `signatures`, it has too.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        inline: bool,
        made: Any = None,
        template: tuple[Callable[..., Any], dict[str, Any]] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = {"forceinline": inline}
        self.template = template  #: what it was made from, if other kernels were bound to some of its names
        self.seconds = 0.0  #: that it took in plain Python, where that is counted
        self._made = made

    @property
    def dispatcher(self) -> Any:
        """What Numba compiles: made when it is first asked for."""
        if self._made is None:
            with _lock:
                if self._made is None:
                    self._made = self._new_dispatcher()
        return self._made

    def _new_dispatcher(self) -> Any:
        if (make := new_kernel()) is not None:
            return make(self.py_func, inline=self.targetoptions["forceinline"])
        import numba  # noqa: PLC0415  # takes a third of a second

        # A division gives what IEEE says, as in NumPy, and keeps its loop free of branches.
        made = numba.njit(self.py_func, nogil=True, error_model="numpy")
        compiled_as[made] = fingerprint(made)
        return made

    @functools.cached_property
    def plain(self) -> Callable[..., Any]:
        """The same in plain Python, with all that it calls."""
        function: Any = self.py_func
        names = _plain_names(function.__globals__)
        made = types.FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        return functools.update_wrapper(made, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run it: as machine code, but for a few numbers, which are not worth loading the compiler for."""
        if self._made is None and self._is_light(arguments, named):
            return self.plain(*arguments, **named)
        return self.dispatcher(*arguments, **named)

    def _is_light(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
        own = begins_plain() and not numba_is_loaded() and is_own(self.py_func)  # type: ignore[arg-type]
        return own and all(isinstance(each, Number) for each in (*arguments, *named.values()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what many programs try, to find out what a thing is
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes it for where another kernel names it."""
        return self.dispatcher._numba_type_

    def __repr__(self) -> str:
        return f"<kernel {self.__module__}.{self.__qualname__}>"

    def __reduce__(self) -> Any:
        # By name where there is one, so that another process has this function and not a copy; a script has none there.
        module = sys.modules.get(self.__module__)
        if self.__module__ != "__main__" and getattr(module, self.__qualname__, None) is self:
            return self.__qualname__
        return _from_dispatcher, (self.dispatcher, self.targetoptions["forceinline"])


def _from_dispatcher(made: Any, inline: bool) -> Kernel:  # noqa: FBT001  # pickle passes it so
    return Kernel(made.py_func, inline=inline, made=made)


#: For the global names of a function: the same with plain Python in the place of kernels. (They are kept alive here.)
_twins: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}


def _plain_names(names: dict[str, Any]) -> dict[str, Any]:
    with _lock:
        if id(names) not in _twins:
            plain = dict(names)
            _twins[id(names)] = names, plain  # before the kernels are asked, which have the same names
            plain.update((name, value.plain) for name, value in names.items() if isinstance(value, Kernel))
        return _twins[id(names)][1]
