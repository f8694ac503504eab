"""The compile policy: how a plain Python function becomes machine code, and which of the two runs.

A *kernel* is a function over floats, integers and NamedTuples of arrays. It is plain Python and machine code, with the
same bits: it is compiled without fastmath. With ``NUMBA_DISABLE_JIT=1`` it stays plain Python. Numba takes a third of a
second to load, so nothing of it is imported before machine code is needed.

A *template* is a kernel that calls others by names that are bound later: the simulation loop calls ``distribution``
and ``update``, which every learner has. `specialise` binds them.

Python calls a kernel in three ways. A call of the kernel itself, and what `bind` gives to an object that calls it
often, follow the rule of `choose`: plain Python at first, while another process compiles (`sidelong._aside`), and then
machine code. `compiled` waits for the machine code, for simulations and other long loops.

To hand arrays over to machine code takes about 30 ns each, which for the arrays of a learner is longer than most
kernels run. So what stays the same from call to call is packed once (`sidelong._packed`), and handed over as one
address.

Machine code is kept in a folder (`sidelong._cache`), and kernels that kernels call are parts of them
(`sidelong._numba`). Both need parts of Numba that are not public. Where this Numba has others, a kernel is what
`numba.njit` makes of it: the same bits, but slower, and compiled in each process anew.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
import threading
import time
import types
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sidelong._aside import (
    CompileRequest,
    ask_for,
    can_start,
    compiling,
    has_free_core,
    is_done,
    note_done,
    request,
)
from sidelong._cache import CodeKey, code_key
from sidelong._install import CLIENT_ONLY, pip_install
from sidelong.machine import cores
from sidelong.progress import ProgressLine
from sidelong.user_code import compile_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

F = TypeVar("F", bound="Callable[..., Any]")

#: The oldest Numba that is allowed, and the newest that the tests were run with.
TESTED = ("0.65", "0.68")
#: So many numbers among the arguments of a kernel are few: those of two thousand keys of 24 arms.
FEW = 1_000_000
#: A kernel that has taken so many seconds for one call in plain Python is waited for.
_LONG_CALL = 0.5
#: Seconds of plain Python in a kernel after which it is worth compiling. A script that takes less needs no process.
_WORTH_COMPILING = 0.001
#: Seconds of plain Python in this process after which Numba is loaded, or, where nothing can be compiled aside, after
#: which a kernel is waited for: as many as that takes.
_PATIENCE = 0.4
#: Seconds of plain Python after which what is not compiled is asked for again; then twice as many, and so on.
_REPEAT = 20.0

#: Numba compiles in one thread at a time, but looks for what is compiled in many, and fails there.
_compiling = threading.RLock()
_lock = threading.RLock()  # for short sections: nothing is compiled while it is held


# Kernels


def jit_is_off() -> bool:
    """Tell whether all kernels stay plain Python, as ``NUMBA_DISABLE_JIT=1`` says, and as in sidelong-client."""
    if CLIENT_ONLY:
        return True
    if numba_is_loaded():
        return bool(sys.modules["numba"].config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "") not in {"", "0"}


def numba_is_loaded() -> bool:
    """Tell whether this process has loaded Numba, for whatever reason."""
    return hasattr(sys.modules.get("numba"), "config")


def kernel(function: F) -> F:
    """Compile a function that allocates nothing, when it is first called; it is copied into its callers."""
    return function if jit_is_off() else Kernel(function, inline=True)  # type: ignore[return-value]


def rare_kernel(function: F) -> F:
    """Do the same for a large function that runs rarely: it stays apart from its callers, which compile faster."""
    return function if jit_is_off() else Kernel(function, inline=False)  # type: ignore[return-value]


def rebind(template: F, name: str, **bindings: object) -> F:
    """Return `template` as plain Python, with some of its global names bound to other things."""
    source: Any = getattr(template, "py_func", template)
    code = source.__code__.replace(co_name=name, co_qualname=name)
    function = types.FunctionType(code, {**source.__globals__, **bindings}, name, source.__defaults__)
    function.__module__ = source.__module__
    function.__qualname__ = name
    return function  # type: ignore[return-value]


def specialise(template: F, name: str, **bindings: object) -> F:
    """Compile `template` with some of its global names bound to other kernels.

    `name` must differ between any two specialisations of one template: Numba finds machine code by it.
    """
    made = rebind(template, name, **bindings)
    return made if jit_is_off() else Kernel(made, inline=False, template=(template, bindings))  # type: ignore[return-value]


class Kernel:
    """A function that is plain Python and machine code.

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
        self.entries: dict[Any, Callable[..., Any]] = {}  #: machine code in memory, by the types of its arguments
        self.requests: dict[Any, CompileRequest | None] = {}  #: for the process that compiles aside, by the same
        self.plain_seconds = 0.0  #: that all calls in plain Python took
        self.longest = 0.0  #: of them, in seconds
        self._made = made
        self._code: CodeKey | None = None
        self.made_of = ""  #: of a user's kernel, the key of what was compiled, as in `CodeKey.kernels`

    @property
    def dispatcher(self) -> Any:
        """What Numba compiles: made when it is first asked for."""
        if self._made is None:
            private = private_parts()
            with _lock:
                if self._made is None:
                    self._made = self._new_dispatcher(private)
        return self._made

    def _new_dispatcher(self, private: Any) -> Any:
        inline, code = self.targetoptions["forceinline"], self.code
        self.made_of = code.kernels.get(self, "")
        if private is not None:
            return private(self.py_func, code, inline=inline)
        import numba  # noqa: PLC0415  # takes a third of a second

        # A division gives what IEEE says, as in NumPy, and keeps its loop free of branches.
        return numba.njit(self.py_func, nogil=True, error_model="numpy", **_public_options(inline=inline))

    @property
    def code(self) -> CodeKey:
        """The key of its machine code, now: that of a user's kernel may change while a process runs."""
        if self._code is None or not self._code.own:
            self._code = code_key(self)
        return self._code

    def forget_old_code(self) -> None:
        """Forget what was compiled of a user's kernels, if a number or function that went into it has changed since."""
        for each, key in self.code.kernels.items():
            if isinstance(each, Kernel) and each.made_of not in {"", key}:
                each.reset()

    def reset(self) -> None:
        """Forget what was compiled."""
        with _lock:
            self._made, self.entries, self.made_of = None, {}, ""

    @functools.cached_property
    def plain(self) -> Callable[..., Any]:
        """The same in plain Python, with plain Python in the place of every kernel that it calls."""
        function: Any = self.py_func
        names = _plain_names(function.__globals__)
        made = types.FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        return functools.update_wrapper(made, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run it, by the rule of `choose`."""
        if named:
            return self.dispatcher(*arguments, **named)
        code = choose(self, arguments)
        return run_plain(self, arguments) if code is None else code(*arguments)

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
        if self.template is not None:
            return _specialised, (self.__qualname__, *self.template)
        module = sys.modules.get(self.__module__)
        if self.__module__ != "__main__" and getattr(module, self.__qualname__, None) is self:
            return self.__qualname__
        return _from_dispatcher, (self.dispatcher, self.targetoptions["forceinline"])


def _specialised(name: str, template: Any, bindings: dict[str, Any]) -> Any:
    return specialise(template, name, **bindings)


def _from_dispatcher(made: Any, inline: bool) -> Kernel:  # noqa: FBT001  # pickle passes it so
    return Kernel(made.py_func, inline=inline, made=made)


#: For the global names of a function: the same with plain Python in the place of kernels. (They are kept alive here.)
_plain_twins: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}


def _plain_names(names: dict[str, Any]) -> dict[str, Any]:
    with _lock:
        if id(names) not in _plain_twins:
            plain = dict(names)
            _plain_twins[id(names)] = names, plain  # before the kernels are asked, which have the same names
            plain.update((name, value.plain) for name, value in names.items() if isinstance(value, Kernel))
        return _plain_twins[id(names)][1]


# The compiler


@functools.cache
def private_parts() -> Any:
    """Load Numba; return what uses its private parts, or None if this Numba has others than expected."""
    import numba  # noqa: PLC0415  # takes a third of a second

    try:
        from sidelong._numba import check, new_dispatcher  # noqa: PLC0415  # importing it is a part of the check

        check()
    except Exception as error:  # noqa: BLE001  # other parts may fail in any way
        if multiprocessing.parent_process() is None:  # once, and not in each process of a pool
            oldest, newest = TESTED
            known = pip_install(f"'numba>={oldest},<={newest}.99'")
            warnings.warn(
                f"Numba {numba.__version__} has other private parts than this version of sidelong knows "
                f"({type(error).__name__}: {error}). Results are the same, but each process compiles anew what it "
                f"needs, and simulations take longer. {known}",
                RuntimeWarning,
                stacklevel=4,
            )
        return None
    return new_dispatcher


@functools.cache
def _public_options(*, inline: bool) -> dict[str, Any]:
    """Return options that make a round seven times as fast, if this Numba has them.

    A round of exp3.g++ at ten arms takes 186 ns with both, 603 without counts of references (`_nrt`) alone, 958 with
    kernels copied into their callers alone, and 1,330 with neither.
    """
    import numba  # noqa: PLC0415  # takes a third of a second

    try:
        numba.njit(lambda x: x, _nrt=False, forceinline=inline)(1.0)
    except Exception:  # noqa: BLE001  # they are not documented
        return {}
    return {"_nrt": False, "forceinline": inline}


def load_compiler() -> None:
    """Load Numba now, so that nothing waits for it later."""
    if not jit_is_off():
        with _compiling:
            private_parts()


def signature_of(*arguments: object) -> tuple[Any, ...]:
    """Return the types of arguments, by which machine code is found."""
    import numba  # noqa: PLC0415  # takes a third of a second

    typeof = numba.typeof
    if private_parts() is not None:
        from sidelong._numba import typeof  # noqa: PLC0415  # after the check

    return tuple(map(typeof, arguments))


def is_compiled(function: Any, *arguments: object) -> bool:
    """Tell whether nothing needs to be compiled to call a kernel with such arguments."""
    made = function.dispatcher
    if not hasattr(made, "whole"):  # it is a public kernel
        return bool(signature_of(*arguments) in made.overloads)
    return bool(made.whole.is_compiled(signature_of(*arguments)))


def compiled(function: F, *arguments: object, of: str = "") -> F:
    """Return the machine code of a kernel for arguments of these types, compiling it if need be.

    A call through it does not look at the types again, which for two dozen arrays takes longer than most kernels run.
    Every later call must pass the same types.

    Args:
        function: the kernel.
        *arguments: what it will be called with, or things of the same types.
        of: what a line on the terminal says is compiled, if that takes a while; nothing is said if not given.

    """
    if not isinstance(function, Kernel):  # the JIT is off
        return function
    with _compiling:
        function.forget_old_code()
        types_ = _types(arguments)
        if types_ not in function.entries:
            line = ProgressLine(shown=None if of else False)
            with line.saying(f"Compiling {of}, once for all later runs", after=0.5):
                function.entries[types_] = _machine_code(function, signature_of(*arguments))
            if hasattr(function.dispatcher, "whole"):  # a public kernel is not kept
                note_done(_request(function, types_, arguments))
        return function.entries[types_]  # type: ignore[return-value]


def _machine_code(function: Kernel, signature: tuple[Any, ...]) -> Any:
    import numba  # noqa: PLC0415  # takes a third of a second

    made = function.dispatcher
    try:
        if hasattr(made, "whole"):
            return made.whole.machine_code(signature)
        made.compile(signature)  # a public kernel, which finds its types in each call
    except numba.errors.NumbaError as error:
        # Numba's text is long and ends in the loop of the package, while the fault is in a user's kernel.
        refused = compile_failure(error, function.code.kernels)
        if refused is None:
            raise
        raise refused from None
    return made


# On several cores


def compile_all(calls: Iterable[tuple[Any, tuple[object, ...]]]) -> None:
    """Compile kernels that Python calls, in as many processes as there are cores."""
    own = [call for call in calls if isinstance(call[0], Kernel) and call[0].code.own]
    missing = [(each, arguments) for each, arguments in own if not is_compiled(each, *arguments)]
    if len(missing) < 2 or not has_free_core():
        return
    groups = [missing[k :: cores()] for k in range(cores())]
    requests = [[_request(each, _types(with_), with_) for each, with_ in group] for group in groups[1:]]
    with compiling(requests):
        for each, arguments in groups[0]:
            compiled(each, *arguments)


# The rule


def plain_is_allowed() -> bool:
    """Tell whether plain Python may run before machine code is there; ``SIDELONG_BACKGROUND=0`` says no."""
    return os.environ.get("SIDELONG_BACKGROUND") != "0"


def choose(function: Any, arguments: tuple[object, ...], few: int = FEW, of: str = "") -> Callable[..., Any] | None:
    """Return the machine code that runs a kernel now, or None for plain Python: the one rule for both.

    Machine code that is in memory is used. What is on disk is used too, once Numba is loaded, and it is loaded when
    plain Python has taken as long as that takes. Plain Python runs a kernel of the package that is not compiled yet and
    has few numbers among its arguments, while another process compiles it. All others are compiled here, and waited
    for: kernels of users, many numbers, what takes long for one call, and what no other process can compile.

    Nobody waits for another thread that compiles, unless plain Python cannot run the kernel.
    """
    if not isinstance(function, Kernel):  # the JIT is off
        return function  # type: ignore[no-any-return]
    types_ = _types(arguments)
    code = function.entries.get(types_)
    if code is not None and function.code.own:
        return code
    if not (plain_is_allowed() and function.code.own and count_numbers(arguments) <= few):
        return compiled(function, *arguments, of=of)
    if not numba_is_loaded() and _process.plain_seconds < _PATIENCE:
        return None
    too_slow = function.longest > _LONG_CALL or (function.plain_seconds > _PATIENCE and not can_start())
    is_there = too_slow or is_done(_request(function, types_, arguments))
    if not is_there or not _compiling.acquire(blocking=too_slow):
        return None
    try:
        # What is not where it was left, since this machine is another one or keeps nothing, is compiled.
        return compiled(function, *arguments, of=of) if _process.has_compiler() else None
    finally:
        _compiling.release()


def run_plain(function: Kernel, arguments: tuple[Any, ...]) -> Any:
    """Run a kernel in plain Python, and count how long that takes."""
    begun = time.thread_time()
    try:
        return function.plain(*arguments)
    finally:
        seconds = time.thread_time() - begun
        function.plain_seconds += seconds
        function.longest = max(function.longest, seconds)
        _process.plain_seconds += seconds
        if function.plain_seconds > _WORTH_COMPILING:
            _process.ask_for(_request(function, _types(arguments), arguments))


def bind(owner: object, name: str, function: Callable[..., Any], *arguments: object, of: str = "what it needs") -> None:
    """Let `owner.name` be what runs a kernel for arguments of these types, from now on.

    Plain Python gives its place to the machine code as soon as that is there.

    Args:
        owner: who calls it.
        name: the attribute.
        function: the kernel.
        *arguments: what it will be called with, or things of the same types.
        of: what a line on the terminal says is compiled, if that takes a while.
    """
    code = choose(function, arguments, of=of)
    setattr(owner, name, _PlainCall(owner, name, function, of) if code is None else code)


class _PlainCall:
    """A kernel in plain Python, which gives its place to the machine code."""

    def __init__(self, owner: object, name: str, function: Any, of: str) -> None:
        self._owner = owner
        self._name = name
        self._kernel = function
        self._of = of

    def __call__(self, *arguments: Any) -> Any:
        code = choose(self._kernel, arguments, of=self._of)
        if code is None:
            return run_plain(self._kernel, arguments)
        setattr(self._owner, self._name, code)
        return code(*arguments)


class _Process:
    """What all kernels of a process share."""

    def __init__(self) -> None:
        self.plain_seconds = 0.0
        self._asked: dict[CompileRequest, None] = {}
        self._repeat = _REPEAT
        self._broken = False

    def ask_for(self, request: CompileRequest | None) -> None:
        """Let another process compile something, once.

        If plain Python goes on for long, all that is not done is asked for again: who compiled it may have been killed.
        """
        with _lock:
            wanted = [request] if request is not None and request not in self._asked else []
            self._asked |= dict.fromkeys(wanted)
            if self.plain_seconds > self._repeat:
                self._repeat = 2.0 * self.plain_seconds
                wanted = list(self._asked)
        if wanted:
            ask_for(wanted)

    def has_compiler(self) -> bool:
        """Load the compiler. Where that fails, say so once: plain Python can go on."""
        try:
            if not self._broken:
                private_parts()
        except ImportError as error:
            self._broken = True
            warnings.warn(
                f"Numba cannot be loaded ({error}). Agents decide the same without it, but slowly, and simulations do "
                f"not run. {pip_install('numba')}",
                RuntimeWarning,
                stacklevel=2,
            )
        return not self._broken


_process = _Process()


def _request(function: Kernel, types_: Any, arguments: tuple[object, ...]) -> CompileRequest | None:
    """Return what another process compiles this from; None if it cannot."""
    if types_ not in function.requests:
        code = function.code
        function.requests[types_] = request(function, arguments, code.key) if code.own else None
    return function.requests[types_]


def compile_request(content: Any) -> None:
    """Compile what another process has asked for."""
    function, arguments = content
    if private_parts() is not None:  # else the machine code cannot be kept
        compiled(function, *arguments)


def count_numbers(value: object) -> int:
    """Return how many numbers there are in arrays and tuples of them."""
    return sum(map(count_numbers, value)) if isinstance(value, tuple) else getattr(value, "size", 1)


def _types(value: object) -> Any:
    """Return what the type of a value depends on, in a tenth of the time that Numba takes to find the type."""
    if type(value) is np.ndarray:
        return value.dtype, value.ndim, value.flags.num
    return (type(value), *map(_types, value)) if isinstance(value, tuple) else type(value)
