"""Processes that work for the app: each has a pipe and a memory limit, and can be replaced."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection


class Helper:
    """A process that answers through a pipe; it is started when first asked, and again if it died.

    Parameters
    ----------
    serve
        Main function of the process; it takes the pipe and the memory limit in bytes.
    memory
        The limit.
    """

    def __init__(self, serve: Callable[[Connection, int], None], memory: int) -> None:
        self._serve, self._memory = serve, memory
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def start(self) -> Connection:
        """Return the pipe to the living process."""
        if self._process is None or not self._process.is_alive() or self._connection is None:
            self.stop()
            # A fresh interpreter: a fork would copy the locks of other threads.
            context = multiprocessing.get_context("spawn")
            self._connection, other = context.Pipe()
            self._process = context.Process(
                target=self._serve, args=(other, self._memory), daemon=True
            )
            self._process.start()
            other.close()
        return self._connection

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.join(timeout=5)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
            self._process.close()
            self._process = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
