"""Binary PLY: double coordinates, further columns of the vertices, and faces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import UsageError
from ltenet.shape import Shape

_CODES = {"double": "<f8", "float": "<f4", "uchar": "u1", "int": "<i4"}


class Column(NamedTuple):
    """A property of the vertices: its name, its type in PLY's words, and (N,) values."""

    name: str
    kind: str
    values: NDArray[Any]


def write_ply(shape: Shape, path: Path, further: Sequence[Column] = ()) -> None:
    """Write coordinates, colours, labels, further columns and faces, in the given order."""
    columns: list[Column] = []
    if shape.colors is not None:
        names = ("red", "green", "blue", "alpha")
        columns += [
            Column(name, "uchar", values)
            for name, values in zip(names, shape.colors.T, strict=False)
        ]
    if shape.labels is not None:
        limits = np.iinfo(np.int32)
        if shape.labels.min() < limits.min or shape.labels.max() > limits.max:
            raise UsageError(
                f"{path}: got labels from {shape.labels.min()} to {shape.labels.max()}, expected "
                "32-bit numbers, which are all that PLY has; try .npz"
            )
        columns.append(Column("label", "int", shape.labels))
    path.write_bytes(ply_bytes(shape, [*columns, *further]))


def ply_bytes(shape: Shape, columns: Sequence[Column]) -> bytes:
    """Return a little-endian PLY with these properties of the vertices beside x, y and z."""
    places = [Column(axis, "double", shape.points[:, place]) for place, axis in enumerate("xyz")]
    columns = [*places, *columns]
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(shape)}"]
    header += [f"property {column.kind} {column.name}" for column in columns]
    records = np.zeros(len(shape), [(column.name, _CODES[column.kind]) for column in columns])
    for column in columns:
        records[column.name] = column.values
    body = records.tobytes()
    if shape.faces is not None:
        header += [f"element face {len(shape.faces)}", "property list uchar int vertex_indices"]
        triangles = np.zeros(len(shape.faces), [("count", "u1"), ("corners", "<i4", 3)])
        triangles["count"], triangles["corners"] = 3, shape.faces
        body += triangles.tobytes()
    return "\n".join([*header, "end_header", ""]).encode("ascii") + body
