"""Wavefront OBJ: the `v` and `f` lines, so that vertices keep their order and their number.

Readers that care about texture seams split vertices there; a correspondence would then count
other vertices than the file does. Materials, textures and normals are left out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ltenet.formats.polygons import fan
from ltenet.formats.text import Lines, failure, read_lines, table
from ltenet.shape import Shape


def read_obj(path: Path) -> Shape:
    """Read vertices, their colours (x y z r g b, in 0..1) and polygons, as triangles."""
    lines = _joined(read_lines(path))
    vertices = Lines(path, [], [])
    polygons: list[tuple[int, list[str], int]] = []
    for number, text in zip(lines.numbers, lines.texts, strict=True):
        word, _, rest = text.partition(" ")
        if word == "v":
            vertices.numbers.append(number)
            vertices.texts.append(rest)
        elif word == "f":
            polygons.append((number, rest.split(), len(vertices.texts)))
    if not vertices.texts:
        raise failure(
            path, None, "no line with a vertex ('v x y z') came, one is needed", "export it again"
        )
    values = table(vertices, what="a vertex of this file")  # (N, 3, 4 with w, or 6 with a colour)
    if values.shape[1] not in (3, 4, 6, 7):
        raise failure(
            path,
            vertices.numbers[0],
            f"{values.shape[1]} numbers came, a vertex has x, y, z and perhaps a colour",
            "look at this line",
        )
    colors = None
    if values.shape[1] >= 6:
        shades = values[:, 3:6]  # (N, 3)
        scale = 255.0 if shades.max() <= 1 else 1.0
        colors = np.clip(np.round(shades * scale), 0, 255).astype(np.uint8)
    corners = [_corners(path, *polygon, total=len(values)) for polygon in polygons]
    faces = fan(corners) if corners else None
    return Shape(points=values[:, :3], faces=faces, colors=colors, name=path.stem)


def write_obj(shape: Shape, path: Path) -> None:
    """Write vertices, with their colours as 0..1 if there are any, and triangles."""
    rows = [["v", *map(repr, point)] for point in shape.points.tolist()]
    if shape.colors is not None:
        for row, color in zip(rows, (shape.colors[:, :3] / 255).tolist(), strict=True):
            row.extend(f"{value:.6f}" for value in color)
    text = [" ".join(row) for row in rows]
    if shape.faces is not None:
        text += [
            f"f {first} {second} {third}" for first, second, third in (shape.faces + 1).tolist()
        ]
    path.write_text("\n".join(text) + "\n", "utf-8", newline="\n")


def _joined(lines: Lines) -> Lines:
    """Join lines that end with a backslash to the next one."""
    if not any(text.endswith("\\") for text in lines.texts):
        return lines
    joined = Lines(lines.path, [], [])
    open_line = False
    for number, text in zip(lines.numbers, lines.texts, strict=True):
        if open_line:
            joined.texts[-1] = joined.texts[-1][:-1] + " " + text
        else:
            joined.numbers.append(number)
            joined.texts.append(text)
        open_line = text.endswith("\\")
    return joined


def _corners(path: Path, line: int, words: list[str], seen: int, *, total: int) -> list[int]:
    """Vertex indices of one face, from 0; negative numbers count back from the line."""
    try:
        numbers = [int(word.split("/", 1)[0]) for word in words]
    except ValueError:
        raise failure(
            path, line, f"'f {' '.join(words)}' came, a face has whole numbers", "look at this line"
        ) from None
    if len(numbers) < 3:
        raise failure(
            path, line, f"{len(numbers)} corners came, a face has three or more", "remove the line"
        )
    corners = [number - 1 if number > 0 else seen + number for number in numbers]
    if 0 in numbers or min(corners) < 0 or max(corners) >= total:
        raise failure(
            path,
            line,
            f"'f {' '.join(words)}' names a vertex that is not there, there are 1 to {total}",
            "OBJ counts from 1: check the program that wrote it",
        )
    return corners
