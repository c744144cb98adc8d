"""STL, as text or binary. The format has no shared vertices: corners are welded."""

from __future__ import annotations

import logging
import struct
from pathlib import Path

import numpy as np

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io.formats.tables import table
from ltenet.io.formats.text import failure, read_bytes, split_lines
from ltenet.shape import Shape

logger = logging.getLogger(__name__)

_HEADER, _RECORD = 84, 50


def read_stl(path: Path) -> Shape:
    """Read triangles and weld their corners: an STL file does not number its vertices."""
    content = read_bytes(path)
    count = struct.unpack_from("<I", content, 80)[0] if len(content) >= _HEADER else 0
    # Binary files may begin with "solid" too, so the size decides.
    exact = len(content) == _HEADER + _RECORD * count
    if content[:5].lower() == b"solid" and not (exact and count):
        corners = _text_corners(path, content)
    else:
        corners = _binary_corners(path, content, count)
    points, faces = weld(corners, np.arange(len(corners)).reshape(-1, 3))
    logger.warning(
        "%s: STL has no shared vertices; welded %d corners to %d vertices, numbered by first "
        "appearance",
        path,
        len(corners),
        len(points),
    )
    return Shape(points=points, faces=faces, name=path.stem)


def weld(points: FloatArray, faces: IntArray) -> tuple[FloatArray, IntArray]:
    """Merge points with the very same coordinates; numbers go by first appearance."""
    # Adding 0.0 turns -0.0 into 0.0, which are one place.
    _, first, inverse = np.unique(points + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return points[first[order]], rank[inverse.reshape(-1)][faces]


def _binary_corners(path: Path, content: bytes, count: int) -> FloatArray:
    there = max(len(content) - _HEADER, 0) // _RECORD
    if not 0 < count <= there:
        raise failure(
            path,
            None,
            f"got {there} whole triangles after an STL header for {count}, expected one or more, "
            "all of them there",
            "try copying or exporting the file again",
        )
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])
    triangles = np.frombuffer(content, record, count, _HEADER)
    return triangles["corners"].reshape(-1, 3).astype(np.float64)  # (3 F, 3)


def _text_corners(path: Path, content: bytes) -> FloatArray:
    lines = split_lines(path, content.decode("ascii", "replace"))
    places = [i for i, text in enumerate(lines.texts) if text[:6].lower() == "vertex"]
    corners = lines._replace(
        numbers=[lines.numbers[i] for i in places], texts=[lines.texts[i][6:] for i in places]
    )
    values = table(corners, what="a vertex", columns=3)  # (3 F, 3)
    if not len(values) or len(values) % 3:
        raise corners.failure(
            len(values),
            f"got {len(values)} vertices in the STL file, expected three for each triangle",
            "try copying or exporting the file again",
        )
    return values
