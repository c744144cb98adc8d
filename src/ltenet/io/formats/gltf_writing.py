"""Binary glTF 2.0: meshes with one picture each, everything in one file."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray, IntArray

_FLOAT, _UNSIGNED = 5126, 5125
_VERTICES, _INDICES = 34962, 34963


class Part(NamedTuple):
    """A mesh: (N, 3) points, (F, 3) faces, (N, 2) uv with v up, and the bytes of a PNG or None."""

    name: str
    points: FloatArray
    faces: IntArray
    uv: FloatArray
    picture: bytes | None


def glb_bytes(parts: Sequence[Part]) -> bytes:
    """Return a scene with a node for each part."""
    file = _File()
    for number, part in enumerate(parts):
        material: dict[str, Any] = {"metallicFactor": 0.0, "roughnessFactor": 1.0}
        if part.picture is not None:
            view = file.view(part.picture)
            file.add("images", {"bufferView": view, "mimeType": "image/png"})
            texture = file.add("textures", {"source": len(file.content["images"]) - 1})
            material["baseColorTexture"] = {"index": texture}
        uv = part.uv * (1, -1) + (0, 1)  # glTF counts v downwards
        primitive = {
            "attributes": {
                "POSITION": file.accessor(part.points.astype("<f4"), "VEC3", bounds=True),
                "TEXCOORD_0": file.accessor(uv.astype("<f4"), "VEC2"),
            },
            "indices": file.accessor(part.faces.reshape(-1, 1).astype("<u4"), "SCALAR"),
            "material": file.add("materials", {"pbrMetallicRoughness": material}),
        }
        file.add("meshes", {"name": part.name, "primitives": [primitive]})
        file.add("nodes", {"name": part.name, "mesh": number})
    return file.packed()


class _File:
    def __init__(self) -> None:
        self.content: dict[str, Any] = {"asset": {"version": "2.0", "generator": "ltenet"}}
        self._binary = bytearray()

    def add(self, kind: str, entry: dict[str, Any]) -> int:
        """Add an entry to a list of the document and return its number."""
        entries: list[Any] = self.content.setdefault(kind, [])
        entries.append(entry)
        return len(entries) - 1

    def view(self, data: bytes, target: int | None = None) -> int:
        """Append bytes to the buffer, padded to a multiple of four."""
        entry = {"buffer": 0, "byteOffset": len(self._binary), "byteLength": len(data)}
        self._binary += data + b"\0" * (-len(data) % 4)
        return self.add("bufferViews", entry if target is None else {**entry, "target": target})

    def accessor(self, values: NDArray[Any], kind: str, *, bounds: bool = False) -> int:
        """Append (N, width) values and return the number of their accessor."""
        whole = values.dtype.kind == "u"
        entry: dict[str, Any] = {
            "bufferView": self.view(values.tobytes(), _INDICES if whole else _VERTICES),
            "componentType": _UNSIGNED if whole else _FLOAT,
            "count": len(values),
            "type": kind,
        }
        if bounds:
            entry["min"], entry["max"] = values.min(axis=0).tolist(), values.max(axis=0).tolist()
        return self.add("accessors", entry)

    def packed(self) -> bytes:
        """Return the file."""
        self.content["buffers"] = [{"byteLength": len(self._binary)}]
        self.content["scenes"] = [{"nodes": list(range(len(self.content.get("nodes", []))))}]
        self.content["scene"] = 0
        text = json.dumps(self.content, separators=(",", ":")).encode("utf-8")
        text += b" " * (-len(text) % 4)
        chunks = struct.pack("<I4s", len(text), b"JSON") + text
        chunks += struct.pack("<I4s", len(self._binary), b"BIN\0") + bytes(self._binary)
        return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks
