"""Object File Format: `OFF` and, with a colour per vertex, `COFF`, as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io.formats.polygons import Polygons, fan
from ltenet.io.formats.tables import counted, table
from ltenet.io.formats.text import Lines, fields, read_lines, shown, whole_number
from ltenet.shape import Shape


def read_off(path: Path) -> Shape:
    """Read vertices, polygons (as triangles) and colours of vertices, not those of faces."""
    lines = read_lines(path)
    vertex_count, face_count, start = _header(lines)
    faces_start = start + vertex_count
    if len(lines.texts) < faces_start + face_count:
        raise lines.failure(
            len(lines.texts) - 1,
            f"got {len(lines.texts) - start} lines, expected {vertex_count} vertices and "
            f"{face_count} faces",
            "try copying or exporting the file again: it is cut off",
        )
    vertices = lines.part(start, faces_start)
    values = table(vertices, what="a vertex")  # (N, C)
    if values.shape[1] < 3:
        raise vertices.failure(
            0,
            f"got {values.shape[1]} numbers, expected a vertex with x, y and z",
            "try exporting the file again",
        )
    faces = _faces(lines.part(faces_start, faces_start + face_count), vertex_count)
    colored = fields(lines.texts[0])[0].upper() == "COFF"
    return Shape(
        points=values[:, :3],
        faces=faces if face_count else None,
        colors=_colors(vertices, values) if colored else None,
        name=path.stem,
    )


def write_off(shape: Shape, path: Path) -> None:
    """Write a mesh or a cloud; a shape with colours as `COFF`."""
    faces = np.zeros((0, 3), np.int64) if shape.faces is None else shape.faces
    rows = [[repr(value) for value in point] for point in shape.points.tolist()]
    if shape.colors is not None:
        alpha = np.full((len(shape), 1), 255, np.uint8)
        colors = np.hstack([shape.colors[:, :3], shape.colors[:, 3:], alpha])[:, :4]  # (N, 4)
        for row, color in zip(rows, colors.tolist(), strict=True):
            row.extend(str(value) for value in color)
    header = "OFF" if shape.colors is None else "COFF"
    text = [header, f"{len(shape)} {len(faces)} 0"]
    text += [" ".join(row) for row in rows]
    text += [f"3 {first} {second} {third}" for first, second, third in faces.tolist()]
    path.write_text("\n".join(text) + "\n", "utf-8", newline="\n")


def _header(lines: Lines) -> tuple[int, int, int]:
    """Vertices, faces, and the place of the first vertex among the lines."""
    words = fields(lines.texts[0]) if lines.texts else []
    if not words or words[0].upper() not in ("OFF", "COFF"):
        raise lines.failure(
            0,
            f"got {shown(lines.texts[0]) if lines.texts else 'nothing'}, expected OFF or COFF",
            "try exporting the file as plain text OFF (binary and NOFF are not read)",
        )
    # The counts stand on the next line or, against the letter of the format, on the first.
    place = 0 if len(words) > 1 else 1
    counts = words[1:] if place == 0 else fields(lines.texts[1]) if len(lines.texts) > 1 else []
    sizes = [whole_number(word) for word in counts[:2]]
    if len(sizes) < 2 or sizes[0] is None or sizes[1] is None or sizes[0] < 1 or sizes[1] < 0:
        raise lines.failure(
            place,
            f"got {shown(' '.join(counts))}, expected the counts of vertices (at least 1), faces "
            "and edges",
            "try exporting the file again",
        )
    return sizes[0], sizes[1], place + 1


def _faces(lines: Lines, vertex_count: int) -> IntArray:
    def corners(index: int) -> list[int]:
        what = "a face of three or more corners"
        found = counted(lines, index, fields(lines.texts[index]), what=what)
        if len(found) < 3:
            raise lines.failure(
                index, f"got {len(found)} corners, expected {what}", "try removing this face"
            )
        if min(found) < 0 or max(found) >= vertex_count:
            raise lines.failure(
                index,
                f"got vertices {min(found)} to {max(found)}, expected 0 to {vertex_count - 1}",
                "try counting from 0, as OFF does",
            )
        return found

    return fan(Polygons.of(map(corners, range(len(lines.texts)))))


def _colors(lines: Lines, values: FloatArray) -> NDArray[np.uint8]:
    colors = values[:, 3:7]  # (N, 3 or 4)
    shares = colors.size and (colors <= 1).all() and (colors != np.round(colors)).any()
    colors = colors * (255.0 if shares else 1.0)
    wrong = (colors < 0) | (colors > 255)
    if colors.shape[1] < 3 or wrong.any():
        row = int(wrong.any(axis=1).argmax())
        raise lines.failure(
            row,
            f"got {shown(lines.texts[row])}, expected a vertex that ends with a colour from 0 to "
            "255",
            "try exporting it as OFF without colours",
        )
    opaque = colors.shape[1] == 4 and bool((colors[:, 3] == 255).all())
    return np.round(colors[:, :3] if opaque else colors).astype(np.uint8)
