"""Ctrl-C and the end signal of clusters, taken between two steps rather than inside one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether somebody asked the run to stop."""

    asked = False


@contextmanager
def caught_interrupts() -> Iterator[Interrupt]:
    """Note the first SIGINT or SIGTERM; a second one ends the program at once."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread may set handlers
        return

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.asked = True
        signal.signal(number, signal.default_int_handler)

    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, note) for number in signals}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
