"""Plain Python at first, and machine code as soon as it is there: the same bits, so that only the speed tells.

`begin` gives an object a kernel to call. If its machine code is at hand, that is it. If not, plain Python decides, and
another process compiles, from the first call on (`sidelong._background`). When it is done, the object gets the machine
code in the place of plain Python. To load Numba takes as long as hundreds of small decisions, so that this is put off
until plain Python has taken as long; a short script never waits for it.

Where plain Python is too slow to begin with, a kernel is compiled at once, and a line says so.
"""

from __future__ import annotations

import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

from sidelong import _background
from sidelong._install import pip_install
from sidelong._jit import LITTLE, at_hand, entry, how_many, load_compiler, plain
from sidelong._kernel import numba_is_loaded
from sidelong._recipe import describe
from sidelong.progress import ProgressLine

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds of plain Python in this process after which Numba is loaded: as many as that takes.
_PATIENCE = 0.4
#: Seconds of plain Python after which what is not done is asked for again; then twice as many, and so on.
_ANEW = 20.0


def begin(
    owner: object, name: str, kernel: Callable[..., Any], *arguments: object, of: str = "what an agent needs"
) -> None:
    """Let `owner.name` be what runs a kernel for arguments of these types, from now on.

    Args:
        owner: who calls it.
        name: the attribute.
        kernel: the kernel.
        *arguments: what it will be called with, or things of the same types; how large they are counts too.
        of: what a line on the terminal says is compiled, if that takes a while.
    """
    made = at_hand(kernel, *arguments)
    words = describe(kernel, arguments) if made is None else None
    if made is None and words is not None and how_many(arguments) <= LITTLE and _background.is_possible(words):
        made = _Beginner(owner, name, kernel, arguments, words, of)
    elif made is None:
        made = _compiled(kernel, arguments, words, of)
    setattr(owner, name, made)


def _compiled(
    kernel: Callable[..., Any], arguments: tuple[object, ...], words: str | None, of: str
) -> Callable[..., Any]:
    with ProgressLine(shown=None).saying(f"Compiling {of}, once for all later runs", after=0.5):
        made = entry(kernel, *arguments)
    if words is not None:
        _background.note_done(words)
    return made


class _Beginner:
    """A kernel in plain Python, which gives its place to the machine code."""

    def __init__(
        self, owner: object, name: str, kernel: Callable[..., Any], arguments: tuple[object, ...], words: str, of: str
    ) -> None:
        self._place = owner, name
        self._of = of
        self._kernel = kernel
        self._arguments = arguments
        self._plain = plain(kernel)
        self._words = words
        _process.add(words)

    def __call__(self, *arguments: Any) -> Any:
        if (code := self._machine_code()) is not None:
            setattr(*self._place, code)
            return code(*arguments)
        begun = time.perf_counter()
        try:
            return self._plain(*arguments)
        finally:
            _process.spent += time.perf_counter() - begun
            _process.ask()

    def _machine_code(self) -> Callable[..., Any] | None:
        """Return the machine code, if it is time for it."""
        if not numba_is_loaded() and _process.spent < _PATIENCE:
            return None
        if not _background.is_done(self._words) or not _process.has_compiler():
            return None
        code = at_hand(self._kernel, *self._arguments)
        # It may not be where it was left, if this machine is another one, or not be kept at all.
        return _compiled(self._kernel, self._arguments, self._words, self._of) if code is None else code


class _Process:
    """What all beginners of a process share."""

    def __init__(self) -> None:
        self.spent = 0.0  #: seconds in plain Python
        self._unasked: list[str] = []
        self._asked: list[str] = []
        self._again = _ANEW
        self._broken = False
        self._lock = threading.Lock()

    def add(self, words: str) -> None:
        self._unasked.append(words)

    def ask(self) -> None:
        """Ask for what was begun since the last time: with the first decision, and not before.

        If plain Python goes on for long, all that is not done is asked for again: who compiled it may have been killed.
        """
        if self._unasked or self.spent > self._again:
            with self._lock:
                wanted, self._unasked = self._unasked, []
                if self.spent > self._again:
                    self._again = 2.0 * self.spent
                    wanted += self._asked
                self._asked = [*dict.fromkeys([*self._asked, *wanted])]
            _background.ask_for(dict.fromkeys(wanted))

    def has_compiler(self) -> bool:
        """Load the compiler. Where that fails, say so once: plain Python can go on."""
        try:
            if not self._broken:
                load_compiler()
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
