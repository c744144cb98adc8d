"""How much memory a piece of work takes at its peak, where the system tells: on Linux."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
#: What resets the peak to the present size.
_RESET_PEAK = "5"


def with_peak_memory(work: Callable[[], Result]) -> tuple[Result, float | None]:
    """Do some work; return its result, and the megabytes it took on top of those in use."""
    try:
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
        before = _field("VmRSS")
    except (OSError, ValueError):
        return work(), None
    result = work()
    return result, max(0.0, _field("VmHWM") - before)


def _field(name: str) -> float:
    """Megabytes of a field of this process's status."""
    found = re.search(rf"^{name}:\s+(\d+) kB", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
    if found is None:
        raise ValueError(name)
    return int(found[1]) / 1024
