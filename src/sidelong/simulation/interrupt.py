"""Ctrl-C while kernels compile.

LLVM calls back into Python, and an exception that is raised there goes nowhere. Without this, one interrupt in five
was lost.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAUSE = 0.2


@contextlib.contextmanager
def interrupts_repeated() -> Iterator[None]:
    """Repeat an interrupt until it has stopped the body."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # somebody else decides what an interrupt means
        return
    waiting: list[threading.Timer] = []
    over = False

    def interrupt(number: int, frame: Any) -> None:
        if over:  # it came between the end of the body and the end of this function
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.default_int_handler(number, frame)
        waiting.append(threading.Timer(_PAUSE, _thread.interrupt_main))
        waiting[-1].daemon = True
        waiting[-1].start()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
        if waiting:  # it was lost, and the body has come to its end
            raise KeyboardInterrupt
    finally:
        over = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for timer in waiting:
            timer.cancel()
