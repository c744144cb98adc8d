"""MATLAB's `.mat` files of version 5 to 7: the numeric fields of one struct, and nothing else.

A file is a header of 128 bytes and elements, each a type, a length and its bytes; elements may be
deflated. Every length is compared with the bytes that are there, and what the file unpacks to is
bounded by its size, as for `.npz`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.io.formats.arrays import UNPACKED_FACTOR, UNPACKED_FREE

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_STRUCT = 2
#: Classes of numeric arrays: double, single, and whole numbers of 8 to 64 bits.
_NUMERIC = range(6, 16)
#: How the numbers of an element are stored, by its type.
_STORED = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip


class _Element(NamedTuple):
    kind: int
    content: memoryview


class _Matrix(NamedTuple):
    """A matrix before its content is looked at: class, sizes, name and the elements that follow."""

    kind: int
    sizes: tuple[int, ...]
    name: str
    rest: Iterator[_Element]


def read_struct(data: bytes, name: str, fields: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return numeric fields of the 1 x 1 struct `name`.

    Raises
    ------
    ValueError
        If they are not there, or the file is damaged.
    """
    if data[124:126] not in (b"\x00\x01", b"\x01\x00") or data[126:128] not in (b"IM", b"MI"):
        raise ValueError("no header of version 5 to 7")
    order = "<" if data[126:128] == b"IM" else ">"
    for element in _unpacked(memoryview(data)[_HEADER:], order, len(data)):
        if element.kind != _MATRIX or not len(element.content):
            continue
        matrix = _matrix(element.content, order)
        if matrix.name == name:
            return _fields(matrix, fields, order)
    raise ValueError(f"no variable {name}")


def _unpacked(data: memoryview, order: str, size: int) -> Iterator[_Element]:
    """Yield elements, inflated; all together stay within what a file of this size may hold."""
    room = UNPACKED_FREE + UNPACKED_FACTOR * size
    for element in _elements(data, order):
        if element.kind != _COMPRESSED:
            yield element
            continue
        inflating = zlib.decompressobj()
        try:
            content = inflating.decompress(element.content, room)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        room -= len(content)
        if inflating.unconsumed_tail or room <= 0:
            raise ValueError("more unpacked bytes than a file of this size may hold")
        yield from _elements(memoryview(content), order)


def _elements(data: memoryview, order: str) -> Iterator[_Element]:
    """Yield the elements that follow each other; small ones have their length within the type."""
    at = 0
    while at + 8 <= len(data):
        kind, length = (int(value) for value in np.frombuffer(data[at : at + 8], f"{order}u4"))
        if kind >> 16:
            kind, length, start, stop = kind & 0xFFFF, kind >> 16, at + 4, at + 8
            if length > 4:
                raise ValueError(f"a small element of {length} bytes")
        else:
            start = at + 8
            stop = start + length + (0 if kind == _COMPRESSED else -length % 8)
        if start + length > len(data):
            raise ValueError(f"{length:,} bytes declared, {len(data) - start:,} there")
        yield _Element(kind, data[start : start + length])
        at = stop


def _matrix(content: memoryview, order: str) -> _Matrix:
    rest = _elements(content, order)
    flags, sizes = _numbers(_next(rest), order), _numbers(_next(rest), order)
    name = bytes(_next(rest).content).decode("latin1")
    if len(flags) < 2 or flags.dtype.kind not in "iu" or sizes.dtype.kind not in "iu":
        raise ValueError("a matrix without a class and sizes")
    if not 2 <= len(sizes) <= 8 or (sizes < 0).any():
        raise ValueError(f"a matrix of {len(sizes)} dimensions")
    return _Matrix(int(flags[0]) & 0xFF, tuple(int(size) for size in sizes), name, rest)


def _fields(struct: _Matrix, wanted: Sequence[str], order: str) -> dict[str, NDArray[Any]]:
    """Numeric arrays of some fields; the others are passed by."""
    if struct.kind != _STRUCT or math.prod(struct.sizes) != 1:
        raise ValueError(f"{struct.name}, which is no single struct")
    lengths = _numbers(_next(struct.rest), order)
    names = bytes(_next(struct.rest).content)
    if lengths.size != 1 or lengths.dtype.kind not in "iu" or int(lengths[0]) < 1:
        raise ValueError("a struct without a length of its names")
    length, found = int(lengths[0]), {}
    for start in range(0, len(names), length):
        name = names[start : start + length].split(b"\0", 1)[0].decode("latin1")
        element = _next(struct.rest)
        if name in wanted:
            found[name] = _array(element, name, order)
    missing = [name for name in wanted if name not in found]
    if missing:
        raise ValueError(f"no field {', '.join(missing)}")
    return found


def _array(element: _Element, name: str, order: str) -> NDArray[Any]:
    if element.kind != _MATRIX:
        raise ValueError(f"no matrix as {name}")
    matrix = _matrix(element.content, order)
    if matrix.kind not in _NUMERIC:
        raise ValueError(f"no full matrix of numbers as {name}")
    values = _numbers(_next(matrix.rest), order)
    if values.size != math.prod(matrix.sizes):
        raise ValueError(f"{values.size:,} numbers for a matrix of {matrix.sizes} as {name}")
    return values.reshape(matrix.sizes, order="F")


def _next(elements: Iterator[_Element]) -> _Element:
    element = next(elements, None)
    if element is None:
        raise ValueError("a matrix that ends early")
    return element


def _numbers(element: _Element, order: str) -> NDArray[Any]:
    """Return an element's numbers, in the byte order of this machine."""
    if element.kind not in _STORED:
        raise ValueError(f"numbers stored as type {element.kind}")
    stored = np.dtype(order + _STORED[element.kind])
    if len(element.content) % stored.itemsize:
        raise ValueError(f"{len(element.content)} bytes of {stored.itemsize} each")
    values = np.frombuffer(element.content, stored)
    return values.astype(stored.newbyteorder("="))
