"""Stanford PLY, as text or binary: vertices, faces and strips in the order of the file.

Read here and not by a library, so that a complaint names the line and polygons stay in order. Only
the elements in use are read; every declared count is compared with the bytes that are there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import IntArray
from ltenet.io.formats.ply_header import Element, Header, Property, read_header
from ltenet.io.formats.polygons import Polygons, fan, strip
from ltenet.io.formats.tables import counted, table, typed
from ltenet.io.formats.text import Lines, failure, fields, read_bytes, split_lines
from ltenet.shape import Shape

#: What the vertex element is read for.
_COLORS = ("red", "green", "blue", "alpha")
_KEPT = ("x", "y", "z", *_COLORS, "label")


class _Content(NamedTuple):
    vertices: dict[str, NDArray[Any]]
    lists: dict[str, Polygons]


def read_ply(path: Path) -> Shape:
    """Read a mesh or a cloud with its colours; the vertex property `label` becomes the labels."""
    content = read_bytes(path)
    header = read_header(path, content)
    read = _text if header.order == "=" else _binary
    vertices, lists = read(path, content[header.byte_count :], header)
    triangles = [_triangles(path, name, polygons) for name, polygons in lists.items()]
    faces = np.concatenate([np.zeros((0, 3), np.int64), *triangles])  # (F, 3)
    return Shape(
        points=np.stack([vertices[axis].astype(np.float64) for axis in "xyz"], axis=1),  # (N, 3)
        faces=faces if len(faces) else None,
        colors=_colors(path, vertices),
        labels=_labels(vertices),
        name=path.stem,
    )


def _text(path: Path, body: bytes, header: Header) -> _Content:
    lines = split_lines(path, body.decode("ascii", "replace"), after=header.line_count)
    content = _Content({}, {})
    start = 0
    for element in header.elements:
        part = lines.part(start, start + element.size)
        if len(part.texts) < element.size:
            raise failure(
                path,
                lines.numbers[-1] if lines.numbers else header.line_count,
                f"got {len(part.texts)} '{element.name}' lines, expected {element.size}",
                "try copying or exporting the file again: it is cut off",
            )
        start += element.size
        if element.name == "vertex":
            values = table(part, what="a vertex", columns=len(element.properties))  # (N, C)
            for place, kept in enumerate(element.properties):
                if kept.name in _KEPT:
                    content.vertices[kept.name] = typed(
                        part, values[:, place], kept.code, what=f"the property {kept.name}"
                    )
        elif element.corners is not None:
            content.lists[element.name] = Polygons.of(_text_lists(part, element))
    return content


def _text_lists(lines: Lines, element: Element) -> Iterator[list[int]]:
    """Yield the corners of each line; its other values are skipped."""
    for index, text in enumerate(lines.texts):
        words, place = fields(text), 0
        for kept in element.properties:
            if kept.length is None:
                place += 1
                continue
            entries = counted(lines, index, words[place:], what=f"a '{element.name}' line")
            place += 1 + len(entries)
            if kept.name == element.corners:
                yield entries
                break


def _binary(path: Path, body: bytes, header: Header) -> _Content:
    content = _Content({}, {})
    start = 0
    for element in header.elements:
        if element.size * element.least_bytes > len(body) - start:
            raise _beyond(path, body, header, element)
        if all(kept.length is None for kept in element.properties):
            if element.name == "vertex":
                columns = [(kept.name, header.order + kept.code) for kept in element.properties]
                records = np.frombuffer(body, np.dtype(columns), element.size, start)
                content.vertices.update({k: records[k] for k, _ in columns if k in _KEPT})
            start += element.size * element.least_bytes
            continue
        try:
            polygons, start = _binary_lists(body, start, element, header.order)
        except (ValueError, IndexError):
            raise _beyond(path, body, header, element) from None
        if element.corners is not None:
            content.lists[element.name] = polygons
    return content


def _beyond(path: Path, body: bytes, header: Header, element: Element) -> Exception:
    return failure(
        path,
        None,
        f"got {header.byte_count + len(body)} bytes, which end within the lists of "
        f"'{element.name}', expected {element.size} entries",
        "try copying or exporting the file again: it is cut off",
    )


def _binary_lists(body: bytes, start: int, element: Element, order: str) -> tuple[Polygons, int]:
    """Read the corners of a binary element; raise ValueError if its lists leave the file."""
    uniform = _uniform_lists(body, start, element, order)
    if uniform is not None:
        return uniform
    lengths, corners = array("q"), array("q")
    for _ in range(element.size):
        for kept in element.properties:
            if kept.length is None:
                start += np.dtype(kept.code).itemsize
                continue
            size, start = _length(body, start, kept, order)
            if kept.name == element.corners:
                entries = np.frombuffer(body, order + kept.code, size, start)
                corners.extend(entries.tolist())
                lengths.append(size)
            start += size * np.dtype(kept.code).itemsize
    if start > len(body):
        raise ValueError
    return Polygons(np.array(lengths, np.int64), np.array(corners, np.int64)), start


def _uniform_lists(
    body: bytes, start: int, element: Element, order: str
) -> tuple[Polygons, int] | None:
    """Read lists that all have the length of the first, as in nearly every file; else None."""
    if not element.size:
        return Polygons.of([]), start
    columns: list[Any] = []
    place = start
    for kept in element.properties:
        if kept.length is None:
            columns.append((kept.name, order + kept.code))
            place += np.dtype(kept.code).itemsize
            continue
        size, place = _length(body, place, kept, order)
        columns.append(("length of " + kept.name, order + kept.length))
        columns.append((kept.name, order + kept.code, (size,)))
        place += size * np.dtype(kept.code).itemsize
    dtype = np.dtype(columns)
    if element.size * dtype.itemsize > len(body) - start:
        return None
    records = np.frombuffer(body, dtype, element.size, start)
    for kept in element.properties:
        if kept.length is not None:
            lengths = records["length of " + kept.name]
            if (lengths != lengths[0]).any():
                return None
    end = start + element.size * dtype.itemsize
    if element.corners is None:
        return Polygons.of([]), end
    corners = records[element.corners].reshape(element.size, -1).astype(np.int64)  # (P, L)
    return Polygons(np.full(element.size, corners.shape[1]), corners.reshape(-1)), end


def _length(body: bytes, start: int, kept: Property, order: str) -> tuple[int, int]:
    """Length of the list that begins at `start`, and where its entries begin."""
    size = int(np.frombuffer(body, f"{order}{kept.length}", 1, start)[0])
    start += np.dtype(kept.length).itemsize
    if not 0 <= size * np.dtype(kept.code).itemsize <= len(body) - start:
        raise ValueError(f"a list of {size} entries")
    return size, start


def _triangles(path: Path, name: str, polygons: Polygons) -> IntArray:
    if name == "tristrips":
        if len(polygons.corners) and polygons.corners.min() < -1:
            raise failure(
                path,
                None,
                f"got vertex {polygons.corners.min()} in a strip, expected 0 and up, or -1 "
                "between strips",
                "try exporting the file with faces",
            )
        ends = np.cumsum(polygons.lengths)
        return strip(np.insert(polygons.corners, ends, -1))
    if len(polygons.lengths) and polygons.lengths.min() < 3:
        raise failure(
            path,
            None,
            f"got {polygons.lengths.min()} corners in face {int(polygons.lengths.argmin())}, "
            "expected three or more",
            "try removing such faces",
        )
    return fan(polygons)


def _colors(path: Path, vertices: dict[str, NDArray[Any]]) -> NDArray[np.uint8] | None:
    names = [name for name in _COLORS if name in vertices]
    if names[:3] != ["red", "green", "blue"]:
        return None
    colors = np.stack([vertices[name] for name in names], axis=1)  # (N, 3 or 4)
    if np.issubdtype(colors.dtype, np.floating):
        colors = np.round(colors * (255.0 if colors.max() <= 1 else 1.0))
    if not ((colors >= 0) & (colors <= 255)).all():
        raise failure(
            path,
            None,
            "got colours beyond the range, expected 0 to 255, or 0 to 1 as floats",
            "try exporting them as uchar",
        )
    return colors.astype(np.uint8)


def _labels(vertices: dict[str, NDArray[Any]]) -> IntArray | None:
    labels = vertices.get("label")
    if labels is None or not np.issubdtype(labels.dtype, np.integer):
        return None
    return np.asarray(labels, np.int64)
