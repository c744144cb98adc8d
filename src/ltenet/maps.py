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
from ltenet.formats.text import failure, read_lines, whole_table
from ltenet.shape import IntArray

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
    base = _base(path, index_base)
    lines = read_lines(path)
    if not lines.texts:
        raise failure(
            path, None, "the file is empty, one number per point is needed", "export it again"
        )
    indices = whole_table(lines, what="a line of a map", columns=1)[:, 0] - base  # (N,)
    if count is not None and len(indices) != count:
        raise failure(
            path,
            lines.numbers[-1],
            f"the file ends after {len(indices)} entries, the source has {count} points",
            "check that map and shape belong together and that the file is complete",
        )
    highest = np.iinfo(np.int64).max if size is None else size - 1
    wrong = (indices < -1) | (indices > highest)
    if wrong.any():
        first = int(wrong.argmax())
        last = "" if size is None else f" to {size - 1 + base}"
        raise failure(
            path,
            lines.numbers[first],
            f"entry {indices[first] + base} came, numbers from {base}{last} are needed "
            f"({base - 1} for unmatched)",
            f"check that map and target belong together, or count from {1 - base} with index_base",
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
    base = _base(path, index_base)
    values = np.asarray(indices)
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer) or (values < -1).any():
        raise InputError(
            f"{path}: a map of {values.dtype} and shape {values.shape} came; (N,) whole numbers "
            "from -1 are needed; round them, or leave out the other columns"
        )
    with atomic_path(path, force=force) as temporary:
        text = "".join(f"{value}\n" for value in (values.astype(np.int64) + base).tolist())
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _base(path: Path, index_base: int | None) -> int:
    if index_base is None:
        known = INDEX_BASES.get(path.suffix.lower())
        if known is None:
            raise UsageError(
                f"{path}: '{path.suffix}' does not say what the file counts from; one of "
                f"{', '.join(INDEX_BASES)} is needed; rename it, or give index_base"
            )
        return known
    if index_base not in (0, 1):
        raise UsageError(
            f"{path}: index_base {index_base} came; 0 or 1 is needed; leave it out to go by suffix"
        )
    return index_base
