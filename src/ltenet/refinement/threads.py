"""How many threads to use: threads must not fight for busy cores.

Refinement is thousands of operations of well under a millisecond. With two threads each of them
ends at a barrier where one thread spins until the scheduler runs the other. Next to a busy process
that makes a match several times slower, while a single thread slows down by the share of that
process. So refinement runs on one thread, and the few large
operations (embedding, one matrix product) on as many as there are idle cores when they start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

_RUNNING = Path("/proc/loadavg")


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Use at most `count` threads of torch in this block; fewer if it is set to fewer."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, count))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def idle_cores() -> int:
    """Cores of this process that no other process keeps busy right now, at least one."""
    return max(1, _own_cores() - _running_elsewhere())


def _own_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _running_elsewhere() -> int:
    """Other runnable threads of the machine: the load average would count our own past."""
    try:
        running = int(_RUNNING.read_text(encoding="ascii").split()[3].split("/")[0])
    except (OSError, ValueError, IndexError):  # not Linux
        return 0
    return max(0, running - 1)
