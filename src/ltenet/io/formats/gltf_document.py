"""The document of a glTF 2.0 scene with its buffers, each checked before it is read.

A scene opens no file outside its folder. An accessor may be used several times; all uses together
yield at most `POINTS_PER_BYTE` vertices and corners for each byte of the files.
"""

from __future__ import annotations

import base64
import binascii
import struct
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from ltenet.io.formats.documents import parse_json
from ltenet.io.formats.text import beside, failure, read_bytes, shown

#: Instances repeat their mesh; this bounds how often.
POINTS_PER_BYTE = 4
#: What each use of a primitive counts for beside its vertices.
PRIMITIVE_COST = 32

_COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
_PACKED = ("KHR_draco_mesh_compression", "EXT_meshopt_compression", "KHR_meshopt_compression")


class Document:
    """The content of a scene; damage beyond repair shows as KeyError, TypeError or ValueError."""

    def __init__(self, path: Path) -> None:
        content = read_bytes(path)
        self._path = path
        self._chunk: bytes | None = None
        self._external: dict[str, bytes] = {}
        self._allowed = POINTS_PER_BYTE * len(content)
        if path.suffix.lower() == ".glb":
            content, self._chunk = _chunks(path, content)
        self.content: dict[str, Any] = parse_json(content.decode("utf-8-sig"), path)
        packed = [name for name in _PACKED if name in self.content.get("extensionsRequired", [])]
        if packed:
            raise failure(
                path,
                None,
                f"got geometry packed with {packed[0]}, expected plain buffers",
                "try exporting the scene without compression",
            )

    def item(self, kind: str, index: Any) -> dict[str, Any]:
        """Entry of one of the lists of the document, by a number from 0."""
        found = self.content[kind][natural(index)]
        if not isinstance(found, dict):
            raise TypeError(f"{type(found).__name__} instead of an object")
        return found

    def charge(self, count: int) -> None:
        """Count vertices against what a scene of this size may yield."""
        self._allowed -= count
        if self._allowed < 0:
            raise ValueError(f"instances yield more than {POINTS_PER_BYTE} vertices per byte")

    def accessor(
        self, index: Any, kinds: tuple[str, ...], *, rows: int | None = None
    ) -> NDArray[Any]:
        """(count, width) values of an accessor, read without a copy."""
        accessor = self.item("accessors", index)
        if "sparse" in accessor or "bufferView" not in accessor:
            raise failure(
                self._path,
                None,
                f"got accessor {index} as sparse or empty, expected values in a buffer",
                "try exporting the scene without sparse accessors",
            )
        if accessor["type"] not in kinds:
            raise ValueError(f"accessor {index} is a {accessor['type']}, not {' or '.join(kinds)}")
        dtype = np.dtype(_COMPONENTS[accessor["componentType"]])
        width, count = _WIDTHS[accessor["type"]], natural(accessor["count"])
        view, stride = self.view(accessor["bufferView"])
        start = natural(accessor.get("byteOffset", 0))
        size = dtype.itemsize * width
        stride = stride or size
        if stride < size or start + stride * (count - 1) + size > len(view) or count < 1:
            raise ValueError(f"accessor {index} leaves its buffer: {count} of {stride} bytes")
        if rows not in (None, count):
            raise ValueError(f"accessor {index} has {count} values for {rows} vertices")
        self.charge(count)
        values: NDArray[Any] = np.ndarray(
            (count, width), dtype, view, start, (stride, dtype.itemsize)
        )
        return values

    def view(self, index: Any) -> tuple[memoryview, int]:
        """Bytes of a buffer view, and their stride, 0 where the values follow one another."""
        view = self.item("bufferViews", index)
        buffer = self._buffer(natural(view["buffer"]))
        start, length = natural(view.get("byteOffset", 0)), natural(view["byteLength"])
        if start + length > len(buffer):
            raise ValueError(f"buffer view {index} leaves its buffer of {len(buffer)} bytes")
        return memoryview(buffer)[start : start + length], natural(view.get("byteStride", 0))

    def _buffer(self, index: int) -> bytes:
        uri = self.item("buffers", index).get("uri")
        content = self._chunk if uri is None else self.resource(uri)
        if content is None:
            raise ValueError(f"buffer {index} has no content")
        return content

    def resource(self, uri: Any) -> bytes:
        """Content of a data URI, or of a file in the folder of the scene; each is read once."""
        if not isinstance(uri, str):
            raise ValueError("an address that is no text")
        if uri not in self._external:
            self._external[uri] = self._opened(uri)
            self._allowed += POINTS_PER_BYTE * len(self._external[uri])
        return self._external[uri]

    def _opened(self, uri: str) -> bytes:
        head, comma, payload = uri.partition(",")
        if head.startswith("data:"):
            if not comma or not head.endswith(";base64"):
                raise ValueError(f"data that is not base64: {shown(uri)}")
            try:
                return base64.b64decode(payload, validate=True)
            except binascii.Error as error:
                raise ValueError(f"data that is not base64 ({error})") from None
        file = beside(self._path, unquote(uri)) if "://" not in uri else None
        if file is None:
            raise failure(
                self._path,
                None,
                f"got a reference to {shown(uri)}, expected a file in the folder of the scene",
                "try exporting it as .glb, which holds everything",
            )
        return read_bytes(file)


def _chunks(path: Path, content: bytes) -> tuple[bytes, bytes | None]:
    """Return the JSON and the binary chunk of a `.glb`."""
    if len(content) < 20 or content[:8] != struct.pack("<4sI", b"glTF", 2):
        raise failure(
            path,
            None,
            "got no GLB header, expected one of glTF version 2.0",
            "try exporting it again",
        )
    found: dict[bytes, bytes] = {}
    start = 12
    while start + 8 <= len(content):
        length, kind = struct.unpack_from("<I4s", content, start)
        if start + 8 + length > len(content):
            raise failure(
                path,
                None,
                f"got {len(content)} bytes of GLB, expected {start + 8 + length}",
                "try copying or exporting the file again: it is cut off",
            )
        found.setdefault(kind, content[start + 8 : start + 8 + length])
        start += 8 + length
    return found[b"JSON"], found.get(b"BIN\0")


def natural(value: Any) -> int:
    """Return a whole number from 0; anything else is a ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{shown(str(value))} instead of a whole number from 0")
    return value
