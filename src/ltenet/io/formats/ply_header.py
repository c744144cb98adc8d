"""The header of a PLY file: which elements follow, how many, and of which types."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ltenet.io.formats.text import failure, shown, whole_number

_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
_ORDERS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}
_CORNERS = ("vertex_indices", "vertex_index")


class Property(NamedTuple):
    """A value of each entry of an element, or a list."""

    name: str
    code: str  # numpy type of the value, or of the entries of a list
    length: str | None  # numpy type of the length of a list


class Element(NamedTuple):
    """A table of the file: its name, its number of entries, and their properties."""

    name: str
    size: int
    properties: list[Property]

    @property
    def corners(self) -> str | None:
        """Name of the list that makes triangles, if the element has one."""
        if self.name not in ("face", "tristrips"):
            return None
        return next((kept.name for kept in self.properties if kept.name in _CORNERS), None)

    @property
    def least_bytes(self) -> int:
        """Bytes that one entry takes at least, in a binary file."""
        return sum(np.dtype(kept.length or kept.code).itemsize for kept in self.properties)


class Header(NamedTuple):
    """Byte order ("=" for text), elements, and the size of the header itself."""

    order: str
    elements: list[Element]
    line_count: int
    byte_count: int


def read_header(path: Path, content: bytes) -> Header:
    """Read and check the header at the beginning of a file."""
    order, elements, number, start = "", [], 0, 0
    while True:
        stop = content.find(b"\n", start)
        if stop < 0 or (number == 0 and content[:3] != b"ply"):
            raise failure(
                path,
                number + 1,
                "got no PLY header, expected one from 'ply' to 'end_header'",
                "try exporting the file again: it is cut off or has another format inside",
            )
        words = content[start:stop].decode("ascii", "replace").split()
        number, start = number + 1, stop + 1
        try:
            match words:
                case ["end_header"]:
                    break
                case ["format", name, *_]:
                    order = _ORDERS[name]
                case ["element", name, size]:
                    elements.append(Element(name, _size(size), []))
                case ["property", "list", length, code, name]:
                    kept = Property(name, _TYPES[code], _TYPES[length])
                    if kept.length is not None and kept.length[0] == "f":
                        raise ValueError
                    elements[-1].properties.append(kept)
                case ["property", code, name]:
                    elements[-1].properties.append(Property(name, _TYPES[code], None))
                case ["element" | "property" | "format", *_]:
                    raise ValueError
        except (KeyError, ValueError, IndexError):
            raise failure(
                path,
                number,
                f"got {shown(' '.join(words))}, expected a line of the PLY standard",
                "try exporting the file again",
            ) from None
    header = Header(order, elements, number, start)
    _check(path, header)
    return header


def _size(word: str) -> int:
    size = whole_number(word)
    if size is None or size < 0:
        raise ValueError
    return size


def _check(path: Path, header: Header) -> None:
    """Refuse a header without vertices, with repeated names, or with corners that are no lists."""
    found = {element.name: element for element in header.elements}
    vertex = found["vertex"].properties if "vertex" in found else []
    names = {kept.name for kept in vertex if kept.length is None}
    unique = len(found) == len(header.elements) and all(
        len({kept.name for kept in element.properties}) == len(element.properties)
        for element in header.elements
    )
    complete = {"x", "y", "z"} <= names and len(names) == len(vertex)
    if not header.order or not complete or not unique or found["vertex"].size < 1:
        raise failure(
            path,
            header.line_count,
            "got an incomplete header, expected the format, at least one vertex with x, y and z, "
            "and no name twice",
            "try exporting the file again",
        )
    for element in header.elements:
        for kept in element.properties:
            if kept.name == element.corners and (kept.length is None or kept.code[0] == "f"):
                raise failure(
                    path,
                    header.line_count,
                    f"got {kept.name} of '{element.name}' as something else, expected a list of "
                    "whole numbers",
                    "try exporting the file again",
                )
