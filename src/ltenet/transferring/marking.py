"""Shapes to files, with a mark at the points that are filled."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltenet.files import atomic_path
from ltenet.io import save
from ltenet.io.formats.arrays import write_npz
from ltenet.io.formats.ply_writing import Column, write_ply
from ltenet.io.values import write_values
from ltenet.shape import Shape

#: Formats that hold the marks: a property of the vertices, and an array, both called `filled`.
MARKABLE = (".ply", ".npz")


def save_marked(
    shape: Shape,
    filled: NDArray[np.bool_] | None,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
) -> bool:
    """Write a shape and which (N,) points are filled; returns whether the file holds the marks.

    Without any filled point, and in formats that cannot hold marks, the shape alone is written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if filled is None or not filled.any() or suffix not in MARKABLE:
        save(shape, path, force=force)
        return filled is None or not filled.any()
    marks = filled.astype(np.uint8)  # (N,)
    with atomic_path(path, force=force) as temporary:
        if suffix == ".ply":
            write_ply(shape, temporary, [Column("filled", "uchar", marks)])
        else:
            write_npz(shape, temporary, filled=marks)
    return True


def write_marks(
    filled: NDArray[np.bool_], path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Write which (N,) points are filled, 1 or 0 for each, as `.npy`, `.csv` or `.txt`."""
    nowhere = Shape(np.zeros((len(filled), 3)))  # these formats hold values alone
    write_values(filled.astype(np.int64), nowhere, path, force=force)
