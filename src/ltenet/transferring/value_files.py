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
from ltenet.formats.arrays import read_array
from ltenet.formats.text import failure, fields, read_lines
from ltenet.shape import Shape

#: What values are read from.
READABLE = (".npy", ".csv", ".txt")
#: What values are written to.
WRITABLE = (".npy", ".csv", ".txt", ".ply")


def read_values(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read (N,) or (N, k) numbers; whole ones stay whole. Text may begin with a header."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in READABLE:
        raise UsageError(
            f"{path}: '{path.suffix}' is no suffix of values; one of {', '.join(READABLE)} is "
            "needed; write them with numpy.save"
        )
    values: NDArray[Any] = read_array(path) if suffix == ".npy" else _from_text(path)
    if values.ndim not in (1, 2) or not np.issubdtype(values.dtype, np.number):
        raise failure(
            path,
            None,
            f"{values.dtype} of shape {values.shape} came, (N,) or (N, k) numbers are needed",
            "put one point in each row",
        )
    return values


def write_values(
    values: NDArray[Any], shape: Shape, path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Write (N,) or (N, k) values of the points of a shape; `.ply` holds the shape as well."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in WRITABLE:
        raise UsageError(
            f"{path}: '{path.suffix}' cannot hold values; one of {', '.join(WRITABLE)} is needed; "
            "choose .ply to look at them"
        )
    with atomic_path(path, force=force) as temporary:
        if suffix == ".npy":
            np.save(temporary, values, allow_pickle=False)
        elif suffix == ".ply":
            temporary.write_bytes(_ply(values, shape))
        else:
            rows = values.reshape(len(values), -1).tolist()
            between = "," if suffix == ".csv" else " "
            text = "".join(between.join(map(repr, row)) + "\n" for row in rows)
            temporary.write_text(text, "utf-8", newline="\n")


def _from_text(path: Path) -> NDArray[Any]:
    lines = read_lines(path)
    rows: list[list[float]] = []
    for number, text in zip(lines.numbers, lines.texts, strict=True):
        try:
            row = [float(word) for word in fields(text)]
        except ValueError:
            if not rows and number == lines.numbers[0]:
                continue  # the header
            row = []
        if not row or len(row) != len(rows[0] if rows else row):
            raise failure(
                path,
                number,
                f"'{text}' came, as many numbers as in the other lines are needed",
                "look at this line",
            )
        rows.append(row)
    values = np.array(rows)  # (N, k)
    if not len(values):
        raise failure(path, None, "no values came, a row for each point is needed", "look inside")
    values = values[:, 0] if values.shape[1] == 1 else values
    whole = np.isfinite(values).all() and (values == np.round(values)).all()
    decimals = any("." in text or "e" in text.lower() for text in lines.texts[-len(rows) :])
    return values.astype(np.int64) if whole and not decimals else values


def _ply(values: NDArray[Any], shape: Shape) -> bytes:
    """Return a binary PLY with the values as float properties of the vertices."""
    columns = values.reshape(len(values), -1)  # (N, k)
    names = (
        ["quality"] if columns.shape[1] == 1 else [f"scalar_{i}" for i in range(columns.shape[1])]
    )
    kinds = [(axis, "<f8", "double") for axis in "xyz"] + [(name, "<f4", "float") for name in names]
    records = np.zeros(len(shape), [(name, code) for name, code, _ in kinds])
    for axis, column in zip("xyz", shape.points.T, strict=True):
        records[axis] = column
    for name, column in zip(names, columns.T, strict=True):
        records[name] = column
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(shape)}"]
    header += [f"property {kind} {name}" for name, _, kind in kinds]
    body = records.tobytes()
    if shape.faces is not None:
        header += [f"element face {len(shape.faces)}", "property list uchar int vertex_indices"]
        triangles = np.zeros(len(shape.faces), [("count", "u1"), ("corners", "<i4", 3)])
        triangles["count"], triangles["corners"] = 3, shape.faces
        body += triangles.tobytes()
    return "\n".join([*header, "end_header", ""]).encode("ascii") + body
