"""glTF 2.0 scenes, as `.glb` or `.gltf`: every mesh where the scene puts it.

Vertices keep the order of the file: nodes depth first, primitives in their order. Read here and not
by a library, so that counts are checked against bytes before anything is allocated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io.formats.documents import number
from ltenet.io.formats.gltf_document import PRIMITIVE_COST, Document, natural
from ltenet.io.formats.polygons import Polygons, fan, strip
from ltenet.io.formats.text import failure, shown
from ltenet.shape import Shape

logger = logging.getLogger(__name__)

_POINTS, _TRIANGLES, _STRIP, _FAN = 0, 4, 5, 6


class Primitive(NamedTuple):
    """A part of a scene with one material.

    Attributes
    ----------
    points, faces
        (N, 3) places in the scene, and (F, 3) triangles.
    colors
        (N, 3) or (N, 4) uint8, or None.
    uv
        (N, 2) places in the picture, v up, or None.
    picture
        Number of the picture of the base colour, or None.
    """

    points: FloatArray
    faces: IntArray
    colors: NDArray[np.uint8] | None
    uv: FloatArray | None
    picture: int | None


def read_gltf(path: Path) -> Shape:
    """Read all meshes and clouds of a scene as one shape, where the scene puts them."""
    return merged(read_scene(path), path.stem)


def merged(parts: list[Primitive], name: str) -> Shape:
    """Join the parts of a scene; those without colours are white beside others that have them."""
    sizes = np.cumsum([0, *(len(part.points) for part in parts)])
    faces = np.concatenate([part.faces + size for part, size in zip(parts, sizes, strict=False)])
    colors = None
    if any(part.colors is not None for part in parts):
        channels = max(3 if part.colors is None else part.colors.shape[1] for part in parts)
        colors = np.full((sizes[-1], channels), 255, np.uint8)
        for part, size in zip(parts, sizes, strict=False):
            if part.colors is not None:
                colors[size : size + len(part.points), : part.colors.shape[1]] = part.colors
    points = np.concatenate([part.points for part in parts])
    return Shape(points=points, faces=faces if len(faces) else None, colors=colors, name=name)


def read_scene(path: Path) -> list[Primitive]:
    """Read the parts of a scene that are made of points or triangles; at least one."""
    with _damage(path):
        parts = list(Scene(Document(path), path).primitives())
    if not parts:
        raise failure(
            path,
            None,
            "got a scene without points or triangles, expected a mesh",
            "try exporting it again",
        )
    return parts


def read_pictures(path: Path, numbers: Iterable[int]) -> dict[int, bytes]:
    """Read encoded pictures of a scene, by their numbers."""
    found = {}
    with _damage(path):
        document = Document(path)
        for index in numbers:
            image = document.item("images", index)
            if "bufferView" in image:
                found[index] = bytes(document.view(image["bufferView"])[0])
            else:
                found[index] = document.resource(image["uri"])
    return found


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turn what a damaged document leads to into an InputError."""
    try:
        yield
    except InputError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise failure(
            path,
            None,
            f"got a damaged glTF scene ({type(error).__name__}: {shown(str(error))}), expected "
            f"the {path.suffix[1:].upper()} of version 2.0",
            "try exporting it again",
        ) from None


class Scene:
    """The meshes of a document, where its nodes put them."""

    def __init__(self, document: Document, path: Path) -> None:
        self._document = document
        self._path = path

    def primitives(self) -> Iterator[Primitive]:
        """Yield every primitive of points or triangles, moved to its place."""
        for node, matrix in self._nodes():
            if "mesh" not in node:
                continue
            for part in self._document.item("meshes", node["mesh"])["primitives"]:
                mode = part.get("mode", _TRIANGLES)
                if mode in (_POINTS, _TRIANGLES, _STRIP, _FAN):
                    yield self._primitive(part, mode, matrix)
                else:
                    logger.warning("%s: lines are left out", self._path)

    def _nodes(self) -> Iterator[tuple[dict[str, Any], FloatArray]]:
        """Yield nodes depth first with their (4, 4) matrices; a node has one parent at most."""
        content = self._document.content
        nodes = content.get("nodes", [])
        if content.get("scenes"):
            roots = self._document.item("scenes", content.get("scene", 0)).get("nodes", [])
        else:
            children = {child for node in nodes for child in node.get("children", [])}
            roots = [index for index in range(len(nodes)) if index not in children]
        stack = [(root, np.eye(4)) for root in reversed(roots)]
        seen: set[int] = set()
        while stack:
            index, parent = stack.pop()
            if index in seen:
                raise ValueError(f"node {index} has two parents")
            seen.add(index)
            node = self._document.item("nodes", index)
            with np.errstate(over="ignore", invalid="ignore"):
                matrix = parent @ _matrix(node)
            yield node, matrix
            stack += [(child, matrix) for child in reversed(node.get("children", []))]

    def _primitive(self, part: dict[str, Any], mode: int, matrix: FloatArray) -> Primitive:
        attributes = part["attributes"]
        points = self._document.accessor(attributes["POSITION"], ("VEC3",))  # (N, 3)
        if self._document.item("accessors", attributes["POSITION"]).get("normalized"):
            points = _shares(points)
        count = len(points)
        self._document.charge(PRIMITIVE_COST)
        if "indices" in part:
            raw = self._document.accessor(part["indices"], ("SCALAR",))
            if raw.dtype.kind != "u":
                raise ValueError("indices that are not whole numbers")
            corners = raw[:, 0].astype(np.int64)  # (C,)
        else:
            corners = np.arange(count)
        if len(corners) and corners.max() >= count:
            raise ValueError(f"index {corners.max()} of {count} vertices")
        colors = uv = None
        if "COLOR_0" in attributes:
            colors = self._document.accessor(attributes["COLOR_0"], ("VEC3", "VEC4"), rows=count)
        place, picture = self._base_color(part.get("material"))
        if f"TEXCOORD_{place}" in attributes:
            given = self._document.accessor(attributes[f"TEXCOORD_{place}"], ("VEC2",), rows=count)
            uv = _shares(given) * (1, -1) + (0, 1)  # glTF counts v downwards
        with np.errstate(over="ignore", invalid="ignore"):  # the shape checks for finite points
            moved = points.astype(np.float64) @ matrix[:3, :3].T + matrix[:3, 3]  # (N, 3)
        return Primitive(
            moved,
            _faces(corners, mode),
            None if colors is None else _bytes(colors),
            uv,
            picture,
        )

    def _base_color(self, material: Any) -> tuple[int, int | None]:
        """Which texture coordinates a material uses, and the number of its picture."""
        if material is None:
            return 0, None
        settings = self._document.item("materials", material).get("pbrMetallicRoughness", {})
        texture = settings.get("baseColorTexture")
        if texture is None:
            return 0, None
        source = self._document.item("textures", texture["index"]).get("source")
        return natural(texture.get("texCoord", 0)), None if source is None else natural(source)


def _matrix(node: dict[str, Any]) -> FloatArray:
    """(4, 4) matrix of a node, given as such or as translation, rotation and scale."""
    if "matrix" in node:
        given: FloatArray = _numbers(node["matrix"], 16).reshape(4, 4).T  # glTF counts by columns
        return given
    matrix = np.eye(4)
    x, y, z, w = _numbers(node.get("rotation", [0, 0, 0, 1]), 4)
    matrix[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    matrix[:3, :3] *= _numbers(node.get("scale", [1, 1, 1]), 3)
    matrix[:3, 3] = _numbers(node.get("translation", [0, 0, 0]), 3)
    return matrix


def _numbers(values: Any, count: int) -> FloatArray:
    if not isinstance(values, list) or len(values) != count:
        raise ValueError(f"{shown(str(values))} instead of {count} numbers")
    return np.array([number(value) for value in values])


def _faces(corners: IntArray, mode: int) -> IntArray:
    """(F, 3) triangles of the corners of a primitive."""
    if mode == _POINTS or len(corners) < 3:
        return np.zeros((0, 3), np.int64)
    if mode == _STRIP:
        return strip(corners)
    if mode == _FAN:
        return fan(Polygons(np.array([len(corners)]), corners))
    return corners[: len(corners) // 3 * 3].reshape(-1, 3)


def _shares(values: NDArray[Any]) -> FloatArray:
    """Floats as they are, whole numbers as shares of the largest, as glTF normalises them."""
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise ValueError("texture coordinates or colours that are not finite")
        return values.astype(np.float64)
    shares: FloatArray = values / float(np.iinfo(values.dtype).max)
    return shares


def _bytes(colors: NDArray[Any]) -> NDArray[np.uint8]:
    values = np.rint(np.clip(_shares(colors), 0, 1) * 255).astype(np.uint8)  # (N, 3 or 4)
    # Exporters add an alpha of 1 to colours that have none.
    return values[:, :3] if values.shape[1] == 4 and (values[:, 3] == 255).all() else values
