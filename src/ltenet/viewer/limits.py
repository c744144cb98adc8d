"""Memory limits of the app's worker.

A small file can ask for much: an archive unpacks, a scene repeats one mesh a million times. What
one sees beforehand is refused in `uploads`; this is for the rest.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

#: Share of the memory that one pair may use, and the least limit in bytes.
MEMORY_SHARE = 0.6
LEAST_MEMORY = 2 * 2**30

_CGROUP = Path("/sys/fs/cgroup/memory.max")


def memory_limit() -> int:
    """Memory limit of the worker in bytes: a share of that of the machine or container."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        total = 8 * 2**30
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int(_CGROUP.read_text()))
    return max(LEAST_MEMORY, int(MEMORY_SHARE * total))


def limit_memory(limit: int) -> None:
    """Limit the memory of this process; allocations beyond it fail.

    Linux counts what is written to, so that the libraries themselves weigh little. Elsewhere the
    limit may have no effect, and none is set where there is no such thing (Windows).
    """
    try:
        import resource
    except ImportError:
        return
    with contextlib.suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        allowed = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # If the machine still runs out of memory, the kernel should end this process first.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error, or one of its causes, is a failed allocation."""
    said = ("allocate memory", "bad_alloc", "new thread")  # torch has no class for it
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return True
        if isinstance(cause, RuntimeError) and any(words in str(cause) for words in said):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
