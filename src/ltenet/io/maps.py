"""Correspondence files: one line per source point, the number of its partner on the target.

A `.txt` counts from 0; `.map` and `.vts` count from 1, as the public benchmarks have them.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ltenet.errors import InputError, UsageError
from ltenet.files import atomic_path
from ltenet.geometry.arrays import IntArray
from ltenet.io.formats.tables import whole_table
from ltenet.io.formats.text import failure, read_lines

#: Number of the first point, by suffix.
INDEX_BASES = {".txt": 0, ".map": 1, ".vts": 1}


def read_map(
    path: str | os.PathLike[str],
    *,
    size: int | None = None,
    count: int | None = None,
    index_base: int | None = None,
) -> IntArray:
    """Read a correspondence file.

    Parameters
    ----------
    path
        A text file with one whole number per line.
    size
        Number of points on the target; entries beyond it are an error. None does not check.
    count
        Number of points on the source, so of lines. None does not check.
    index_base
        What the file counts from, 0 or 1; None goes by the suffix.

    Returns
    -------
    (N,) int64, counted from 0; -1 (written as one less than the base) is unmatched.
    """
    path = Path(path)
    base = checked_base(path, index_base)
    lines = read_lines(path)
    if not lines.texts:
        raise failure(
            path, None, "got an empty file, expected a number per point", "try exporting it again"
        )
    indices = whole_table(lines, what="a line", columns=1)[:, 0] - base  # (N,)
    if count is not None and len(indices) != count:
        raise lines.failure(
            len(indices) - 1,
            f"got {len(indices)} entries, expected one for each of the {count} source points",
            "try the shapes that the map was made for",
        )
    highest = np.iinfo(np.int64).max if size is None else size - 1
    wrong = (indices < -1) | (indices > highest)
    if wrong.any():
        first = int(wrong.argmax())
        last = "" if size is None else f" to {size - 1 + base}"
        raise lines.failure(
            first,
            f"got entry {indices[first] + base}, expected a number from {base}{last} "
            f"({base - 1} for unmatched)",
            f"try the target that the map was made for, or --index-base {1 - base}",
        )
    return indices


def write_map(
    path: str | os.PathLike[str],
    indices: ArrayLike,
    *,
    index_base: int | None = None,
    force: bool = False,
) -> None:
    """Write (N,) target indices, counted from 0 with -1 for unmatched, one per line.

    The file counts from `index_base`, or from what its suffix stands for.
    """
    path = Path(path)
    base = checked_base(path, index_base)
    values = np.asarray(indices)
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer) or (values < -1).any():
        raise InputError(
            f"{path}: got a map of {values.dtype} and shape {values.shape}, expected (N,) whole "
            "numbers from -1; try rounding them, or leaving out the other columns"
        )
    with atomic_path(path, force=force) as temporary:
        text = "".join(f"{value}\n" for value in (values.astype(np.int64) + base).tolist())
        temporary.write_text(text, encoding="utf-8", newline="\n")


def checked_base(path: Path, index_base: int | None) -> int:
    """Return what a file counts from: `index_base`, or what its suffix stands for."""
    base = INDEX_BASES.get(path.suffix.lower()) if index_base is None else index_base
    if base is None:
        raise UsageError(
            f"{path}: got the suffix '{path.suffix}', expected one of {', '.join(INDEX_BASES)}; "
            "try --index-base 0 or 1 to say what the file counts from"
        )
    if base not in (0, 1):
        raise UsageError(
            f"{path}: got --index-base {base}, expected 0 or 1; try leaving it out, the suffix "
            "then decides"
        )
    return base
