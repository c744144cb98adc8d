"""What trimesh reads for us: `.stl`, `.glb` and `.gltf`.

It is imported on use: that takes a second, and the other formats do without it.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import InputError
from ltenet.formats.text import failure, read_bytes
from ltenet.shape import FloatArray, IntArray, Shape

logger = logging.getLogger(__name__)


def read_stl(path: Path) -> Shape:
    """Read triangles and weld their corners: an STL file does not number its vertices."""
    shape = _shape(path, _load(path))
    if shape.faces is None:
        raise failure(path, None, "no triangle came, a mesh is needed", "export it again")
    points, faces = weld(shape.points, shape.faces)
    logger.warning(
        "%s: STL has no shared vertices; %d corners were welded to %d vertices, numbered by "
        "first appearance",
        path,
        len(shape),
        len(points),
    )
    return Shape(points=points, faces=faces, name=path.stem)


def read_gltf(path: Path) -> Shape:
    """Read all meshes and clouds of a scene as one shape, where the scene puts them."""
    return _shape(path, _load(path))


def weld(points: FloatArray, faces: IntArray) -> tuple[FloatArray, IntArray]:
    """Merge points with the very same coordinates; numbers go by first appearance."""
    # Adding 0.0 turns -0.0 into 0.0, which are one place.
    _, first, inverse = np.unique(points + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return points[first[order]], rank[inverse.reshape(-1)][faces]


def _load(path: Path) -> Any:
    """Return a trimesh geometry with the vertices as the file has them."""
    import trimesh

    read_bytes(path)  # trimesh would report an unreadable file in its own words
    try:
        # process=True, the default, would merge vertices and shift every index.
        loaded = trimesh.load(str(path), process=False, maintain_order=True)
        if isinstance(loaded, trimesh.Scene):
            loaded = loaded.to_geometry()
    except Exception as error:  # trimesh raises whatever its parsers stumble over
        raise failure(
            path,
            None,
            f"the {path.suffix[1:].upper()} file cannot be read ({type(error).__name__}: {error})",
            "the file is damaged or cut off: copy or export it again",
        ) from error
    return loaded


def _shape(path: Path, geometry: Any) -> Shape:
    points = np.asarray(getattr(geometry, "vertices", np.zeros((0, 3))), dtype=np.float64)
    if not len(points):
        raise failure(
            path,
            None,
            f"no vertices came from the {path.suffix[1:].upper()} file, at least one is needed",
            "the file is damaged or has another format inside: export it again",
        )
    faces = getattr(geometry, "faces", None)
    try:
        return Shape(
            points=points,
            faces=None if faces is None or len(faces) == 0 else np.asarray(faces, np.int64),
            colors=_colors(geometry, len(points)),
            name=path.stem,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _colors(geometry: Any, count: int) -> NDArray[np.uint8] | None:
    visual = getattr(geometry, "visual", None)
    if visual is None or getattr(visual, "kind", None) != "vertex":
        colors = getattr(geometry, "colors", None) if visual is None else None
    else:
        colors = visual.vertex_colors
    if colors is None or np.shape(colors) not in ((count, 3), (count, 4)):
        return None
    colors = np.asarray(colors, np.uint8)
    # trimesh adds an alpha of 255 to colours that have none.
    return colors[:, :3] if colors.shape[1] == 4 and (colors[:, 3] == 255).all() else colors
