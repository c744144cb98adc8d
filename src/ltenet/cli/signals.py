"""SIGTERM and SIGHUP end every verb as Ctrl-C does, so that nothing is left behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ltenet.errors import Stopped


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise `Stopped` where a signal arrives; one that is ignored (nohup) stays ignored."""

    def stop(number: int, _: object) -> None:
        raise Stopped(number)

    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {
        number: signal.signal(number, stop)
        for number in numbers
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
