"""What the C library does with freed memory: keep it to be fast, or give it back to stay small.

Both do something with glibc only, and no number changes by either.
"""

from __future__ import annotations

import ctypes
import sys


def keep_freed_memory() -> bool:
    """Let glibc reuse freed memory instead of giving it back; False with another C library.

    A step of training frees and allocates the same tensors again. glibc maps each large one anew,
    and the kernel clears its pages: a tenth of the time of a step.
    """
    trim_threshold, mmap_max, never = -1, -4, -1  # names and values of mallopt(3)
    library = _library("mallopt")
    if library is None:
        return False
    return bool(library.mallopt(trim_threshold, never)) and bool(library.mallopt(mmap_max, 0))


def give_freed_memory_back() -> bool:
    """Give what was freed back to the system; False with another C library.

    Matches leave holes of all sizes, which glibc keeps: a process that matches thousands of pairs
    would grow, although it holds no more. Takes some milliseconds.
    """
    library = _library("malloc_trim")
    if library is None:
        return False
    library.malloc_trim(0)
    return True


def _library(function: str) -> ctypes.CDLL | None:
    """Return the C library if it has a function of glibc."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, function) else None
