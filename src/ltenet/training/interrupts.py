"""Ctrl-C and the end signals of clusters, taken between two steps rather than inside one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether somebody asked the run to stop, and by which signal."""

    asked = False
    number: int = signal.SIGINT


@contextmanager
def caught_interrupts() -> Iterator[Interrupt]:
    """Note the first SIGINT, SIGTERM or SIGHUP; a second one ends the program at once.

    A signal that is ignored, as `nohup` has it, stays ignored.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread may set handlers
        return

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.asked, interrupt.number = True, number
        signal.signal(number, signal.default_int_handler)

    known = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))
    signals = [
        number
        for number in known
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, note) for number in signals}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
