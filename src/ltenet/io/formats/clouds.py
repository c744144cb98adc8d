"""Clouds as text: `.xyz`, `.txt` and `.csv`, one point per line, colours optional."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray
from ltenet.io.formats.tables import table
from ltenet.io.formats.text import Lines, failure, fields, read_lines, shown
from ltenet.shape import Shape

_COLOR_NAMES = (("r", "g", "b"), ("red", "green", "blue"))


def read_cloud(path: Path) -> Shape:
    """Read x, y, z and, where columns 4 to 6 are whole numbers from 0 to 255, a colour.

    A first line of names ("x, y, z, ...") chooses the columns by name. Other columns, such as
    normals, are left out.
    """
    lines = read_lines(path)
    names: list[str] | None = None
    if lines.texts and not is_row(lines.texts[0]):
        names = [name.lower() for name in fields(lines.texts[0])]
        if not {"x", "y", "z"} <= set(names):
            raise lines.failure(
                0,
                f"got the header {shown(lines.texts[0])}, expected the columns x, y and z",
                "try naming them, or leaving the header out",
            )
        lines = lines.part(1)
    if not lines.texts:
        raise failure(path, None, "got no point, expected at least one", "try exporting it again")
    columns = None if names is None else len(names)
    values = table(lines, what="a point", columns=columns)  # (N, C)
    if values.shape[1] < 3:
        raise lines.failure(
            0,
            f"got {values.shape[1]} numbers, expected a point with x, y and z",
            "try reading it as a map if it is one",
        )
    points = values[:, :3] if names is None else values[:, [names.index(axis) for axis in "xyz"]]
    return Shape(points=points, colors=_colors(lines, values, names), name=path.stem)


def write_cloud(shape: Shape, path: Path) -> None:
    """Write one point per line, with its colour if it has one; a `.csv` has a header."""
    comma = path.suffix.lower() == ".csv"
    rows = [[repr(value) for value in point] for point in shape.points.tolist()]
    names = ["x", "y", "z"]
    if shape.colors is not None:
        names += ["red", "green", "blue"]
        for row, color in zip(rows, shape.colors[:, :3].tolist(), strict=True):
            row.extend(str(value) for value in color)
    if comma:
        rows.insert(0, names)
    separator = "," if comma else " "
    path.write_text("".join(separator.join(row) + "\n" for row in rows), "utf-8", newline="\n")


def is_row(text: str) -> bool:
    """Whether a line begins with a number; a header begins with a name."""
    try:
        float(fields(text)[0])
    except (ValueError, IndexError):
        return False
    return True


def _colors(lines: Lines, values: FloatArray, names: list[str] | None) -> NDArray[np.uint8] | None:
    if names is not None:
        for wanted in _COLOR_NAMES:
            if set(wanted) <= set(names):
                columns = values[:, [names.index(name) for name in wanted]]  # (N, 3)
                break
        else:
            return None
    elif values.shape[1] >= 6:
        columns = values[:, 3:6]  # (N, 3)
    else:
        return None
    whole = (columns == np.round(columns)) & (columns >= 0) & (columns <= 255)
    if whole.all():
        return columns.astype(np.uint8)
    if names is not None:
        row = int(np.argmin(whole.all(axis=1)))
        raise lines.failure(
            row,
            f"got {shown(lines.texts[row])}, expected a colour of whole numbers from 0 to 255",
            "try scaling the colours, or renaming their columns",
        )
    return None
