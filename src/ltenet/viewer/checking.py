"""Check uploaded files at once, in a process of limited memory, so that bad ones are told."""

from __future__ import annotations

import threading
from multiprocessing.connection import Connection
from pathlib import Path

from ltenet.errors import InputError, LTENetError
from ltenet.viewer.helpers import Helper
from ltenet.viewer.limits import limit_memory, memory_limit, ran_out_of_memory
from ltenet.viewer.reading import read_upload
from ltenet.viewer.report import shape_of

#: Seconds that reading one file may take.
CHECK_SECONDS = 120.0
_TOO_MUCH = (
    "got a file that takes too much time or memory to read, expected a smaller one; try fewer "
    "points"
)


class Checker:
    """Reads files one at a time in a process of its own.

    Parameters
    ----------
    memory
        Memory limit of the process in bytes; None for a share of the machine's.
    """

    def __init__(self, *, memory: int | None = None) -> None:
        self._helper = Helper(_serve_checks, memory_limit() if memory is None else memory)
        self._lock = threading.Lock()

    def check(self, path: Path, name: str) -> int:
        """Return how many points the shape has, or raise what is wrong with the file."""
        with self._lock:
            try:
                connection = self._helper.start()
                connection.send((path, name))
                if not connection.poll(CHECK_SECONDS):
                    raise EOFError
                count, message = connection.recv()
            except (EOFError, OSError):
                self._helper.stop()
                count, message = 0, f"{name}: {_TOO_MUCH}"
        if message:
            raise InputError(message)
        return int(count)

    def close(self) -> None:
        """End the process."""
        self._helper.stop()


def _serve_checks(connection: Connection, memory: int) -> None:
    """Answer (path, name) with (points, message), one of which is empty, until the pipe closes."""
    limit_memory(memory)
    while True:
        try:
            path, name = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            answer = len(shape_of(read_upload(path, name))), ""
        except LTENetError as error:
            answer = 0, str(error)
        except Exception as error:
            if ran_out_of_memory(error):
                return  # a successor has its memory back
            answer = 0, f"{name}: unexpected {type(error).__name__}: {error}"
        try:
            connection.send(answer)
        except OSError:  # the app was killed
            return
