"""Object File Format: `OFF` and, with a colour per vertex, `COFF`, as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltenet.formats.polygons import fan
from ltenet.formats.text import Lines, failure, fields, read_lines, table
from ltenet.shape import FloatArray, IntArray, Shape


def read_off(path: Path) -> Shape:
    """Read vertices, polygons (as triangles) and colours of vertices; colours of faces go."""
    lines = read_lines(path)
    vertex_count, face_count, start = _header(lines)
    faces_start = start + vertex_count
    if len(lines.texts) < faces_start + face_count:
        raise failure(
            path,
            lines.numbers[-1],
            f"the file ends here, {vertex_count} vertices and {face_count} faces are announced",
            "the file is cut off: copy or export it again",
        )
    values = table(lines.part(start, faces_start), what="a vertex of this file")  # (N, C)
    if values.shape[1] < 3:
        raise failure(
            path,
            lines.numbers[start],
            f"{values.shape[1]} numbers came, a vertex has x, y and z",
            "export the file again",
        )
    faces = _faces(lines.part(faces_start, faces_start + face_count), vertex_count)
    colored = fields(lines.texts[0])[0].upper() == "COFF"
    return Shape(
        points=values[:, :3],
        faces=faces if face_count else None,
        colors=_colors(lines, start, values) if colored else None,
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
        raise failure(
            lines.path,
            lines.numbers[0] if lines.numbers else None,
            f"'{lines.texts[0][:40] if lines.texts else ''}' came, OFF or COFF is needed first",
            "export the file as plain text OFF (binary and NOFF are not read)",
        )
    # The counts stand on the next line, or, against the letter of the format, on the first.
    place = 0 if len(words) > 1 else 1
    counts = words[1:] if place == 0 else fields(lines.texts[1]) if len(lines.texts) > 1 else []
    if len(counts) < 2 or not all(count.isdecimal() for count in counts) or counts[0] == "0":
        raise failure(
            lines.path,
            lines.numbers[min(place, len(lines.numbers) - 1)],
            f"'{' '.join(counts)}' came, the counts of vertices (at least 1), faces and edges "
            "are needed",
            "export the file again",
        )
    return int(counts[0]), int(counts[1]), place + 1


def _faces(lines: Lines, vertex_count: int) -> IntArray:
    polygons = []
    for number, text in zip(lines.numbers, lines.texts, strict=True):
        words = fields(text)
        try:
            corner_count = int(words[0])
            corners = [int(word) for word in words[1 : 1 + corner_count]]
        except ValueError:
            raise failure(
                lines.path,
                number,
                f"'{text[:60]}' came, a face has whole numbers",
                "look at this line",
            ) from None
        if corner_count < 3 or len(corners) != corner_count:
            raise failure(
                lines.path,
                number,
                f"{len(corners)} corners came where {corner_count} are announced, three or more "
                "are needed",
                "look at this line",
            )
        if min(corners) < 0 or max(corners) >= vertex_count:
            raise failure(
                lines.path,
                number,
                f"the face names vertices {min(corners)} to {max(corners)}, there are vertices 0 "
                f"to {vertex_count - 1}",
                "OFF counts from 0: check the program that wrote it",
            )
        polygons.append(corners)
    return fan(polygons)


def _colors(lines: Lines, start: int, values: FloatArray) -> NDArray[np.uint8]:
    colors = values[:, 3:7]  # (N, 3 or 4)
    scale = (
        255.0 if colors.size and (colors <= 1).all() and (colors != np.round(colors)).any() else 1.0
    )
    colors = colors * scale
    wrong = (colors < 0) | (colors > 255)
    if colors.shape[1] < 3 or wrong.any():
        row = int(wrong.any(axis=1).argmax()) if wrong.size else 0
        raise failure(
            lines.path,
            lines.numbers[start + row],
            f"'{lines.texts[start + row][:80]}' came, a vertex of a COFF file ends with a colour "
            "from 0 to 255",
            "export it as OFF without colours",
        )
    opaque = colors.shape[1] == 4 and bool((colors[:, 3] == 255).all())
    return np.round(colors[:, :3] if opaque else colors).astype(np.uint8)
