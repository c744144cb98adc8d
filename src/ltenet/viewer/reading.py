"""Read an uploaded file, named as the user knows it: when it arrives, and when it is matched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ltenet.errors import InputError
from ltenet.io import load
from ltenet.io.textures import TexturedMesh
from ltenet.shape import Shape
from ltenet.viewer.textures import texture_of
from ltenet.viewer.uploads import POINT_LIMIT, check_beginning, check_content


def read_upload(path: Path, name: str) -> Shape | TexturedMesh:
    """Read a shape, with its texture if the file holds one."""
    try:
        check_beginning(path)
        check_content(path)
        shape = load(path)
    except InputError as error:
        told = str(error).replace(str(path), name).replace(path.stem, name)
        raise InputError(told if name in told else f"{name}: {told}") from None
    if len(shape) > POINT_LIMIT:
        raise InputError(
            f"{name}: got {len(shape):,} points, expected at most {POINT_LIMIT:,} here; try fewer "
            "points, or `ltenet match`"
        )
    # An .obj refers to other files, which must not be opened.
    mesh = texture_of(path) if path.suffix in (".glb", ".gltf") else None
    named = replace(shape, name=name)
    return named if mesh is None else replace(mesh, shape=named)
