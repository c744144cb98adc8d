"""What happens to freed memory."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

GLIBC = platform.libc_ver()[0] == "glibc"

#: Prints how many MB are given back after every other one of many pieces was freed.
HOLES = """
from ltenet.memory import give_freed_memory_back
pieces = [bytearray(100_000) for _ in range(2_000)]
del pieces[::2]
before = int(open("/proc/self/statm").read().split()[1])
assert give_freed_memory_back() is {glibc}
print((before - int(open("/proc/self/statm").read().split()[1])) * 4096 / 1e6)
"""


def run(code: str) -> str:
    """Run in a process of its own: both functions change how it allocates."""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return found.stdout


def test_freed_memory_is_kept_where_the_c_library_can() -> None:
    code = "from ltenet.memory import keep_freed_memory; print(keep_freed_memory())"
    assert run(code).strip() == str(GLIBC)


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="needs /proc")
def test_holes_are_given_back() -> None:
    returned = float(run(HOLES.format(glibc=GLIBC)))
    assert returned > 50 if GLIBC else returned == 0
