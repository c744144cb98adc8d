"""Wavefront OBJ: the `v` and `f` lines, so that vertices keep their order and their number.

Readers that care about texture seams split vertices there; a correspondence would then count
other vertices than the file does. `parse_obj` returns texture coordinates and materials as well,
for `ltenet.io.textures`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io.formats.polygons import Polygons, fan
from ltenet.io.formats.tables import table
from ltenet.io.formats.text import Lines, failure, read_lines, shown, whole_number
from ltenet.shape import Shape


class ObjFile(NamedTuple):
    """What an OBJ file says.

    Attributes
    ----------
    shape
        The mesh.
    uv
        (T, 2) texture coordinates of the `vt` lines.
    corners
        (F, 3) texture coordinate of each corner of each triangle, -1 where it has none.
    materials
        (F,) material of each triangle, an index into `names`, -1 for none.
    names
        Materials in the order of their first use.
    libraries
        What the `mtllib` lines name.
    """

    shape: Shape
    uv: FloatArray
    corners: IntArray
    materials: IntArray
    names: list[str]
    libraries: list[str]


class _Face(NamedTuple):
    line: int  # its place among the lines
    material: int
    vertices_before: int
    uv_before: int


class _Scan(NamedTuple):
    lines: Lines
    vertices: Lines
    places: Lines
    faces: list[_Face]
    names: list[str]
    libraries: list[str]


def read_obj(path: Path) -> Shape:
    """Read vertices, their colours (x y z r g b, in 0..1) and polygons, as triangles."""
    return _shape(path, _scan(path))


def parse_obj(path: Path) -> ObjFile:
    """Read the mesh, its texture coordinates and the names of its materials."""
    scan = _scan(path)
    shape = _shape(path, scan)
    found = Polygons.of(_corners(scan.lines, scan.faces, 1, len(scan.places.texts)))
    owners = np.array([face.material for face in scan.faces], np.int64)  # (P,)
    return ObjFile(
        shape,
        _texture_coordinates(scan.places),
        fan(found),
        np.repeat(owners, found.lengths - 2),
        scan.names,
        scan.libraries,
    )


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


def _scan(path: Path) -> _Scan:
    """Sort the lines by their first word."""
    lines = _joined(read_lines(path))
    vertices, places = Lines(path, [], []), Lines(path, [], [])
    faces: list[_Face] = []
    names: dict[str, int] = {}
    libraries: list[str] = []
    material = -1
    for index, text in enumerate(lines.texts):
        # Tabs separate words as well as blanks do.
        word, rest = (*text.split(None, 1), "", "")[:2]
        if word in ("v", "vt"):
            kept = vertices if word == "v" else places
            kept.numbers.append(lines.numbers[index])
            kept.texts.append(rest)
        elif word == "f":
            faces.append(_Face(index, material, len(vertices.texts), len(places.texts)))
        elif word == "usemtl":
            material = names.setdefault(rest, len(names))
        elif word == "mtllib":
            libraries.append(rest)
    return _Scan(lines, vertices, places, faces, list(names), libraries)


def _shape(path: Path, scan: _Scan) -> Shape:
    points, colors = _vertices(scan.vertices)
    triangles = fan(Polygons.of(_corners(scan.lines, scan.faces, 0, len(points))))  # (F, 3)
    faces = triangles if len(triangles) else None
    return Shape(points=points, faces=faces, colors=colors, name=path.stem)


def _joined(lines: Lines) -> Lines:
    """Join lines that end with a backslash to the next one."""
    if not any(text.endswith("\\") for text in lines.texts):
        return lines
    joined = Lines(lines.path, [], [])
    pieces: list[str] = []
    for number, text in zip(lines.numbers, lines.texts, strict=True):
        if not pieces:
            joined.numbers.append(number)
        pieces.append(text.removesuffix("\\"))
        if not text.endswith("\\"):
            joined.texts.append(" ".join(pieces).strip())
            pieces = []
    if pieces:
        joined.texts.append(" ".join(pieces).strip())
    return joined


def _vertices(lines: Lines) -> tuple[FloatArray, NDArray[np.uint8] | None]:
    if not lines.texts:
        raise failure(
            lines.path, None, "got no vertex, expected a line 'v x y z'", "try exporting it again"
        )
    values = table(lines, what="a vertex")  # (N, 3, 4 with w, or 6 with a colour)
    if values.shape[1] not in (3, 4, 6, 7):
        raise lines.failure(
            0,
            f"got {values.shape[1]} numbers, expected a vertex with x, y, z and perhaps a colour",
            "try correcting this line",
        )
    if values.shape[1] < 6:
        return values[:, :3], None
    shades = values[:, 3:6]  # (N, 3)
    scale = 255.0 if shades.max() <= 1 else 1.0
    return values[:, :3], np.clip(np.round(shades * scale), 0, 255).astype(np.uint8)


def _texture_coordinates(lines: Lines) -> FloatArray:
    pairs = [" ".join(text.split()[:2]) for text in lines.texts]
    what = "a texture coordinate with u and v"
    return table(lines._replace(texts=pairs), what=what, columns=2)  # (T, 2)


def _corners(lines: Lines, faces: list[_Face], part: int, total: int) -> Iterator[list[int]]:
    """Yield the corners of each face, from 0: of its vertices (part 0) or its uv (part 1).

    Negative numbers count back from the face. A corner without uv is -1.
    """
    kind = ("vertex", "texture coordinate")[part]
    for face in faces:
        words = lines.texts[face.line].split()[1:]
        if len(words) < 3:
            raise lines.failure(
                face.line,
                f"got {len(words)} corners, expected a face of three or more",
                "try removing this face",
            )
        before = (face.vertices_before, face.uv_before)[part]
        corners = []
        for word in words:
            parts = word.split("/", 2)
            if part and (len(parts) < 2 or not parts[1]):
                corners.append(-1)
                continue
            number = whole_number(parts[part])
            if number is None:
                raise lines.failure(
                    face.line,
                    f"got the corner {shown(word)}, expected whole numbers",
                    "try correcting this line",
                )
            corner = number - 1 if number > 0 else before + number
            if number == 0 or not 0 <= corner < total:
                raise lines.failure(
                    face.line,
                    f"got the {kind} {number}, expected 1 to {total}",
                    "try counting from 1, as OBJ does",
                )
            corners.append(corner)
        yield corners
