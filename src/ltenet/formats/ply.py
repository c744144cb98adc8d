"""Stanford PLY, as text or binary: vertices and faces in the order of the file.

Read here and not by a library, so that a complaint names the line and polygons stay in order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.formats.polygons import fan
from ltenet.formats.text import Lines, failure, fields, read_bytes, table
from ltenet.shape import IntArray, Shape

_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
_ORDERS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}
_CORNERS = ("vertex_indices", "vertex_index")


class _Property(NamedTuple):
    name: str
    code: str  # numpy type of the value, or of the entries of a list
    length: str | None  # numpy type of the length of a list


class _Element(NamedTuple):
    name: str
    size: int
    properties: list[_Property]


class _Header(NamedTuple):
    order: str
    elements: list[_Element]
    line_count: int
    byte_count: int


def read_ply(path: Path) -> Shape:
    """Read a mesh or a cloud with its colours; the vertex property `label` becomes the labels."""
    content = read_bytes(path)
    header = _header(path, content)
    body = content[header.byte_count :]
    elements = _text(path, body, header) if header.order == "=" else _binary(path, body, header)
    vertices = elements["vertex"]
    points = np.stack([vertices[axis].astype(np.float64) for axis in "xyz"], axis=1)  # (N, 3)
    polygons = next((elements["face"][name] for name in _CORNERS if name in elements["face"]), None)
    return Shape(
        points=points,
        faces=None if polygons is None or not len(polygons) else _triangles(path, polygons),
        colors=_colors(path, vertices),
        labels=_labels(vertices),
        name=path.stem,
    )


def write_ply(shape: Shape, path: Path) -> None:
    """Write a binary PLY: double coordinates, colours, labels and faces, in the given order."""
    properties = [(axis, "<f8", "double") for axis in "xyz"]
    columns: list[NDArray[Any]] = list(shape.points.T)
    if shape.colors is not None:
        names = ("red", "green", "blue", "alpha")[: shape.colors.shape[1]]
        properties += [(name, "u1", "uchar") for name in names]
        columns += list(shape.colors.T)
    if shape.labels is not None:
        properties.append(("label", "<i4", "int"))
        columns.append(shape.labels)
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(shape)}"]
    header += [f"property {kind} {name}" for name, _, kind in properties]
    records = np.zeros(len(shape), [(name, code) for name, code, _ in properties])
    for (name, _, _), column in zip(properties, columns, strict=True):
        records[name] = column
    body = records.tobytes()
    if shape.faces is not None:
        header += [f"element face {len(shape.faces)}", "property list uchar int vertex_indices"]
        triangles = np.zeros(len(shape.faces), [("count", "u1"), ("corners", "<i4", 3)])
        triangles["count"] = 3
        triangles["corners"] = shape.faces
        body += triangles.tobytes()
    path.write_bytes("\n".join([*header, "end_header", ""]).encode("ascii") + body)


def _header(path: Path, content: bytes) -> _Header:
    order, elements, number, start = "", [], 0, 0
    while True:
        stop = content.find(b"\n", start)
        if stop < 0 or (number == 0 and content[:3] != b"ply"):
            raise failure(
                path,
                number + 1,
                "no PLY header came, one that begins with 'ply' and ends with 'end_header' is "
                "needed",
                "the file is cut off or has another format inside: export it again",
            )
        words = content[start:stop].decode("ascii", "replace").split()
        number, start = number + 1, stop + 1
        try:
            match words:
                case ["end_header"]:
                    break
                case ["format", name, *_]:
                    order = _ORDERS[name]
                case ["element", name, size] if size.isdecimal():
                    elements.append(_Element(name, int(size), []))
                case ["property", "list", length, code, name]:
                    kept = _Property(name, _TYPES[code], _TYPES[length])
                    elements[-1].properties.append(kept)
                case ["property", code, name]:
                    elements[-1].properties.append(_Property(name, _TYPES[code], None))
                case ["element" | "property" | "format", *_]:
                    raise ValueError
        except (KeyError, ValueError, IndexError):
            raise failure(
                path,
                number,
                f"'{' '.join(words)}' came, a line of the PLY standard is needed",
                "export the file again",
            ) from None
    found = {element.name: element for element in elements}
    vertex = found["vertex"].properties if "vertex" in found else []
    names = [kept.name for kept in vertex if kept.length is None]
    complete = {"x", "y", "z"} <= set(names) and len(names) == len(vertex)
    if not order or not complete or found["vertex"].size < 1:
        raise failure(
            path,
            number,
            "the header ends, the format and at least one vertex with x, y and z are needed",
            "export the file again",
        )
    return _Header(order, elements, number, start)


def _text(path: Path, body: bytes, header: _Header) -> dict[str, dict[str, Any]]:
    numbered = [
        (header.line_count + place, text.strip())
        for place, text in enumerate(body.decode("ascii", "replace").splitlines(), start=1)
        if text.strip()
    ]
    lines = Lines(path, [number for number, _ in numbered], [text for _, text in numbered])
    result: dict[str, dict[str, Any]] = {"face": {}}
    start = 0
    for element in header.elements:
        part = lines.part(start, start + element.size)
        if len(part.texts) < element.size:
            raise failure(
                path,
                lines.numbers[-1] if lines.numbers else header.line_count,
                f"the file ends after {len(part.texts)} of {element.size} '{element.name}' lines",
                "the file is cut off: copy or export it again",
            )
        start += element.size
        if all(kept.length is None for kept in element.properties):
            what = f"a '{element.name}' line"
            values = table(part, what=what, columns=len(element.properties))  # (R, C)
            result[element.name] = {
                kept.name: values[:, place].astype(kept.code)
                for place, kept in enumerate(element.properties)
            }
        else:
            result[element.name] = _text_lists(part, element)
    return result


def _text_lists(lines: Lines, element: _Element) -> dict[str, list[list[int]]]:
    """Read lists of whole numbers, property by property; other values are skipped."""
    result: dict[str, list[list[int]]] = {
        kept.name: [] for kept in element.properties if kept.length is not None
    }
    for number, text in zip(lines.numbers, lines.texts, strict=True):
        words, place = fields(text), 0
        for kept in element.properties:
            try:
                if kept.length is None:
                    place += 1
                    continue
                size = int(words[place])
                entries = [int(float(word)) for word in words[place + 1 : place + 1 + size]]
                if len(entries) < size:
                    raise ValueError
            except (ValueError, IndexError, OverflowError):
                raise failure(
                    lines.path,
                    number,
                    f"'{text[:60]}' came, a '{element.name}' line with a count and as many "
                    "whole numbers is needed",
                    "look at this line",
                ) from None
            result[kept.name].append(entries)
            place += 1 + size
    return result


def _binary(path: Path, body: bytes, header: _Header) -> dict[str, dict[str, Any]]:
    result: dict[str, dict[str, Any]] = {"face": {}}
    start = 0
    for element in header.elements:
        try:
            if all(kept.length is None for kept in element.properties):
                dtype = np.dtype(
                    [(kept.name, header.order + kept.code) for kept in element.properties]
                )
                records = np.frombuffer(body, dtype, element.size, start)
                result[element.name] = {
                    kept.name: records[kept.name] for kept in element.properties
                }
                start += dtype.itemsize * element.size
            else:
                result[element.name], start = _binary_lists(body, start, element, header.order)
        except (ValueError, IndexError):
            raise failure(
                path,
                None,
                f"the file ends at byte {header.byte_count + len(body)}, within {element.size} "
                f"entries of '{element.name}'",
                "the file is cut off: copy or export it again",
            ) from None
    return result


def _binary_lists(
    body: bytes, start: int, element: _Element, order: str
) -> tuple[dict[str, Any], int]:
    """Read the lists of a binary element; nearly always all have the length of the first."""
    uniform: list[tuple[Any, ...]] = []
    place = start
    for kept in element.properties if element.size else []:
        if kept.length is None:
            uniform.append((kept.name, order + kept.code))
            place += np.dtype(kept.code).itemsize
        else:
            size = int(np.frombuffer(body, order + kept.length, 1, place)[0])
            uniform += [
                ("length of " + kept.name, order + kept.length),
                (kept.name, order + kept.code, (size,)),
            ]
            place += np.dtype(kept.length).itemsize + size * np.dtype(kept.code).itemsize
    dtype = np.dtype(uniform)
    lists = [kept for kept in element.properties if kept.length is not None]
    if element.size * dtype.itemsize <= len(body) - start:
        records = np.frombuffer(body, dtype, element.size, start)
        lengths = [records["length of " + kept.name] for kept in lists if element.size]
        if all((length == length[0]).all() for length in lengths):
            kept_lists = {kept.name: records[kept.name] for kept in lists if element.size}
            return kept_lists, start + dtype.itemsize * element.size
    result: dict[str, list[list[int]]] = {kept.name: [] for kept in lists}
    for _ in range(element.size):
        for kept in element.properties:
            if kept.length is None:
                start += np.dtype(kept.code).itemsize
                continue
            size = int(np.frombuffer(body, order + kept.length, 1, start)[0])
            start += np.dtype(kept.length).itemsize
            entries = np.frombuffer(body, order + kept.code, size, start)
            start += size * np.dtype(kept.code).itemsize
            result[kept.name].append(entries.astype(np.int64).tolist())
    return result, start


def _triangles(path: Path, polygons: Any) -> IntArray:
    if isinstance(polygons, np.ndarray) and polygons.ndim == 2 and polygons.shape[1] == 3:
        return polygons.astype(np.int64)
    lengths = [len(corners) for corners in polygons]
    if min(lengths) < 3:
        raise failure(
            path,
            None,
            f"face {int(np.argmin(lengths))} has {min(lengths)} corners, three or more are needed",
            "remove such faces",
        )
    corners = polygons.tolist() if isinstance(polygons, np.ndarray) else polygons
    return fan(corners)


def _colors(path: Path, vertices: dict[str, Any]) -> NDArray[np.uint8] | None:
    names = [name for name in ("red", "green", "blue", "alpha") if name in vertices]
    if names[:3] != ["red", "green", "blue"]:
        return None
    colors = np.stack([vertices[name] for name in names], axis=1)  # (N, 3 or 4)
    if np.issubdtype(colors.dtype, np.floating):
        colors = np.clip(np.round(colors * (255.0 if colors.max() <= 1 else 1.0)), 0, 255)
    elif colors.min() < 0 or colors.max() > 255:
        raise failure(path, None, "colours beyond 0 to 255 came", "export them as uchar")
    return colors.astype(np.uint8)


def _labels(vertices: dict[str, Any]) -> IntArray | None:
    labels = vertices.get("label")
    if labels is None or not np.issubdtype(labels.dtype, np.integer):
        return None
    return np.asarray(labels, np.int64)
