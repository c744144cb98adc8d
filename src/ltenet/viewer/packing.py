"""Compact arrays: differences between rows, byte planes, deflate, base64.

Neighbours in a file are mostly neighbours in space, so the differences are small, their high bytes
are nearly all zero, and deflate does the rest. The other side is `viewer-src/src/unpack.js`.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray

#: Steps of a quantised coordinate.
STEPS = 65535

UnsignedArray = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]


class Packed(NamedTuple):
    """Arrays in one blob.

    Attributes
    ----------
    blob
        The deflated bytes.
    table
        For each array by name: bytes per number, rows, columns, offset.
    """

    blob: bytes
    table: dict[str, dict[str, int]]

    @property
    def base64(self) -> str:
        """The blob in base64."""
        return base64.b64encode(self.blob).decode("ascii")


def pack(arrays: Mapping[str, UnsignedArray]) -> Packed:
    """Pack (N,) or (N, C) arrays of unsigned integers, reproducibly."""
    parts: list[bytes] = []
    table: dict[str, dict[str, int]] = {}
    start = 0
    for name, array in arrays.items():
        columns = array[:, None] if array.ndim == 1 else array  # (N, C)
        part = b"".join(_packed_column(columns[:, c]) for c in range(columns.shape[1]))
        table[name] = {
            "bytes": array.dtype.itemsize,
            "rows": len(columns),
            "columns": columns.shape[1],
            "start": start,
        }
        start += len(part)
        parts.append(part)
    return Packed(zlib.compress(b"".join(parts), 9), table)


def unpack(packed: Packed) -> dict[str, NDArray[Any]]:
    """Restore the arrays, each as (N, C)."""
    content = zlib.decompress(packed.blob)
    arrays = {}
    for name, entry in packed.table.items():
        size, rows, columns = entry["bytes"], entry["rows"], entry["columns"]
        piece = np.frombuffer(content, np.uint8, size * rows * columns, entry["start"])
        planes = piece.reshape(columns, size, rows).transpose(2, 0, 1)  # (N, C, bytes)
        coded = np.ascontiguousarray(planes).view(f"<u{size}")[:, :, 0]  # (N, C)
        if size > 1:
            half = (coded >> 1) ^ (0 - (coded & 1)).astype(coded.dtype)
            coded = np.cumsum(half, axis=0, dtype=coded.dtype)
        arrays[name] = coded
    return arrays


def quantize(points: FloatArray, low: FloatArray, size: FloatArray) -> NDArray[np.uint16]:
    """Quantise (N, 3) points in the box from `low` to `low` + `size`."""
    steps = np.round((points - low) / np.maximum(size, 1e-300) * STEPS)
    return np.clip(steps, 0, STEPS).astype(np.uint16)


def _packed_column(column: NDArray[Any]) -> bytes:
    """Encode differences by zigzag, small for both signs, then as byte planes."""
    size = column.dtype.itemsize
    values = np.ascontiguousarray(column)
    if size > 1:
        signed = np.diff(values, prepend=values.dtype.type(0)).view(f"i{size}")
        values = ((signed << 1) ^ (signed >> (8 * size - 1))).view(f"u{size}")
    little = values.astype(f"<u{size}").view(np.uint8)
    return bytes(little.reshape(-1, size).T.tobytes())
