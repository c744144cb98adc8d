"""Shapes from files and into files; the suffix chooses the format.

Vertices keep their order and their number, so that an index means the same in the file and here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from ltenet.errors import InputError, UsageError
from ltenet.files import atomic_path
from ltenet.io.formats.arrays import read_npy, read_npz, write_npy, write_npz
from ltenet.io.formats.clouds import read_cloud, write_cloud
from ltenet.io.formats.gltf import read_gltf
from ltenet.io.formats.obj import read_obj, write_obj
from ltenet.io.formats.off import read_off, write_off
from ltenet.io.formats.pcd import read_pcd
from ltenet.io.formats.ply import read_ply
from ltenet.io.formats.ply_writing import write_ply
from ltenet.io.formats.stl import read_stl
from ltenet.shape import Shape

logger = logging.getLogger(__name__)

#: What can be read, by suffix.
LOADERS: dict[str, Callable[[Path], Shape]] = {
    ".ply": read_ply,
    ".obj": read_obj,
    ".off": read_off,
    ".stl": read_stl,
    ".glb": read_gltf,
    ".gltf": read_gltf,
    ".xyz": read_cloud,
    ".pcd": read_pcd,
    ".npy": read_npy,
    ".npz": read_npz,
    ".txt": read_cloud,
    ".csv": read_cloud,
}

#: What can be written, by suffix. STL is not among them: it would lose the numbering.
SAVERS: dict[str, Callable[[Shape, Path], None]] = {
    ".ply": write_ply,
    ".obj": write_obj,
    ".off": write_off,
    ".npy": write_npy,
    ".npz": write_npz,
    ".xyz": write_cloud,
    ".txt": write_cloud,
    ".csv": write_cloud,
}

#: What each format can hold beside the points; `.npz` also keeps the transform.
_HOLDS: dict[str, tuple[str, ...]] = {
    ".ply": ("faces", "colors", "labels"),
    ".obj": ("faces", "colors"),
    ".off": ("faces", "colors"),
    ".npy": (),
    ".npz": ("faces", "colors", "labels"),
    ".xyz": ("colors",),
    ".txt": ("colors",),
    ".csv": ("colors",),
}


def load(path: str | os.PathLike[str]) -> Shape:
    """Read a mesh or a cloud.

    Polygons and strips become triangles. Colours are kept where the file has them; textures,
    normals and materials are not. The corners of an STL file are welded, with a warning, because
    the format has no shared vertices.

    Parameters
    ----------
    path
        A file that ends with one of the suffixes in `LOADERS`.

    Returns
    -------
    Shape named after the file, in the file's coordinates.

    Raises
    ------
    InputError
        If there is no such file, its suffix is not known, or it is damaged.
    """
    path = Path(path)
    loader = LOADERS.get(path.suffix.lower())
    if path.is_dir():
        raise InputError(
            f"{path}: got a folder, expected a file with one shape; try one of the files in it"
        )
    if not path.exists():
        raise InputError(
            f"{path}: got a path to no such file, expected an existing one; try checking the path"
        )
    if loader is None:
        raise InputError(
            f"{path}: got the suffix '{path.suffix}', expected one of {', '.join(LOADERS)}; try "
            "converting the file, or renaming it if it has another format inside"
        )
    try:
        return loader(path)
    except InputError as error:
        # Checks on the arrays know the shape's name only; the user needs to know the file.
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from None


def save(shape: Shape, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a shape; what the format cannot hold is left out with a warning.

    Parameters
    ----------
    shape
        What to write, in its present coordinates.
    path
        A name that ends with one of the suffixes in `SAVERS`; `.npz` keeps everything.
    force
        Replace a file that is already there.

    Raises
    ------
    UsageError
        If the file exists and `force` is not given, or the suffix cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    saver = SAVERS.get(suffix)
    if saver is None:
        raise UsageError(
            f"{path}: got the suffix '{path.suffix}', expected one that can be written, "
            f"{', '.join(SAVERS)}; try .ply for other programs, or .npz to keep everything"
        )
    lost = [
        what
        for what in ("faces", "colors", "labels")
        if getattr(shape, what) is not None and what not in _HOLDS[suffix]
    ]
    if lost:
        logger.warning("%s: %s cannot hold the %s", path, suffix, " and the ".join(lost))
    with atomic_path(path, force=force) as temporary:
        saver(shape, temporary)
