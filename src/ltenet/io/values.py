"""Values at points, to and from files: arrays by themselves, or as scalar fields of a PLY.

A single field is called `quality` in a PLY, which MeshLab shows as such; CloudCompare and Blender
take any name.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import UsageError
from ltenet.files import atomic_path
from ltenet.io.formats.arrays import numbers, read_array
from ltenet.io.formats.clouds import is_row
from ltenet.io.formats.ply_writing import Column, ply_bytes
from ltenet.io.formats.tables import EXACT, table
from ltenet.io.formats.text import failure, read_lines
from ltenet.shape import Shape

#: What values are read from.
READABLE = (".npy", ".csv", ".txt")
#: What values are written to.
WRITABLE = (*READABLE, ".ply")


def read_values(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read (N,) or (N, k) numbers; whole ones stay whole. Text may begin with a header.

    Whole numbers beyond 2^53 come as floats: int64 could not tell them from their neighbours.
    """
    path = Path(path)
    _check_suffix(path, READABLE, "writing them with numpy.save")
    if path.suffix.lower() == ".npy":
        values = numbers(path, "values", read_array(path))
    else:
        values = _from_text(path)
    if values.ndim not in (1, 2):
        raise failure(
            path,
            None,
            f"got an array of shape {values.shape}, expected (N,) or (N, k)",
            "try putting one point in each row",
        )
    return values


def write_values(
    values: NDArray[Any], shape: Shape, path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Write (N,) or (N, k) values of the points of a shape; `.ply` holds the shape as well."""
    path = Path(path)
    _check_suffix(path, WRITABLE, ".ply to look at them")
    columns = values.reshape(len(values), -1)  # (N, k)
    with atomic_path(path, force=force) as temporary:
        if path.suffix.lower() == ".npy":
            np.save(temporary, values, allow_pickle=False)
        elif path.suffix.lower() == ".ply":
            single = columns.shape[1] == 1
            fields = [
                Column("quality" if single else f"scalar_{number}", "float", column)
                for number, column in enumerate(columns.T)
            ]
            temporary.write_bytes(ply_bytes(shape, fields))
        else:
            between = "," if path.suffix.lower() == ".csv" else " "
            text = "".join(between.join(map(repr, row)) + "\n" for row in columns.tolist())
            temporary.write_text(text, "utf-8", newline="\n")


def _from_text(path: Path) -> NDArray[Any]:
    lines = read_lines(path)
    if lines.texts and not is_row(lines.texts[0]):
        lines = lines.part(1)  # without the header
    if not lines.texts:
        raise failure(
            path, None, "got no values, expected a row for each point", "try exporting them again"
        )
    values = table(lines, what="a row", finite=False)  # (N, k)
    values = values[:, 0] if values.shape[1] == 1 else values
    exact = (values == np.round(values)) & (np.abs(values) <= EXACT)
    decimals = any("." in text or "e" in text.lower() for text in lines.texts)
    return values.astype(np.int64) if exact.all() and not decimals else values


def _check_suffix(path: Path, known: tuple[str, ...], advice: str) -> None:
    if path.suffix.lower() not in known:
        raise UsageError(
            f"{path}: got the suffix '{path.suffix}', expected that of values, one of "
            f"{', '.join(known)}; try {advice}"
        )
