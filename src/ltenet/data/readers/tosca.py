"""TOSCA, high resolution: animals (and humans) in several poses, one numbering per class.

Layouts: `cat0.mat` ... with a struct `surface` of X, Y, Z and TRIV; `cat0.vert` with `cat0.tri` as
text; or `cat0.off`. Triangles count from 1 in the first two. The benchmark of the papers has the 41
non-human shapes and the 286 ordered pairs inside their classes. Coordinates are divided by 100;
z-up, facing -y, becomes y-up, facing +z.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ltenet import io
from ltenet.data.readers.common import (
    MESH_SUFFIXES,
    Frame,
    SharedNumberingSet,
    by_stem,
    existing,
    find,
    missing,
    natural_key,
    ordered_pairs,
)
from ltenet.data.shapeset import ShapeSet
from ltenet.errors import InputError
from ltenet.geometry.arrays import IntArray
from ltenet.io.formats.mat import read_struct
from ltenet.io.formats.tables import table, whole_table
from ltenet.io.formats.text import failure, read_bytes, read_lines
from ltenet.shape import Shape

#: The classes of the benchmark.
ANIMALS = ("cat", "centaur", "dog", "gorilla", "horse", "wolf")

_NEEDED = "cat0.mat ..., cat0.vert with cat0.tri ..., or cat0.off ..."


def open_tosca(
    path: Path, *, frame: Frame | None = None, classes: Sequence[str] = ANIMALS
) -> ShapeSet:
    """Open a folder with the shapes at any depth; `classes` chooses what to take."""
    existing("tosca", path, _NEEDED)
    pattern = rf"(?i)({'|'.join(map(re.escape, classes))})\d+"
    layouts = ((".mat",), (".vert",), MESH_SUFFIXES)
    found = (by_stem(find(path, layout, pattern=pattern)) for layout in layouts)
    files = next((list(layout.values()) for layout in found if layout), None)
    if files is None:
        raise missing("tosca", path, _NEEDED)
    files.sort(key=lambda file: natural_key(file.stem.lower()))
    categories = [file.stem.rstrip("0123456789").lower() for file in files]
    result = SharedNumberingSet(
        "tosca",
        files,
        categories=categories,
        pairs=ordered_pairs(categories),
        frame=frame or "x z -y",
        scale=0.01,
        read=read_tosca,
    )
    result.error_divisor = 3.0
    return result


def read_tosca(path: Path) -> Shape:
    """Read one shape in the file's coordinates, whatever the layout."""
    readers = {".mat": _read_mat, ".vert": _read_vert}
    try:
        return readers.get(path.suffix.lower(), io.load)(path)
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from None


def _read_mat(path: Path) -> Shape:
    try:
        surface = read_struct(read_bytes(path), "surface", ("X", "Y", "Z", "TRIV"))
        axes = [np.asarray(surface[axis], np.float64).reshape(-1) for axis in "XYZ"]
        points = np.stack(axes, axis=1)  # (N, 3)
        triangles = surface["TRIV"]
        if (
            not np.array_equal(triangles, np.round(triangles))
            or np.abs(triangles).max(initial=0) > 2**53
        ):
            raise ValueError("triangles that are not whole numbers")
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise failure(
            path,
            None,
            f"got an unreadable TOSCA shape ({error}), expected a struct 'surface' with X, Y, Z "
            "and TRIV",
            "try copying it again, or exporting it with MATLAB's save -v7",
        ) from None
    return Shape(points=points, faces=_from_zero(triangles.astype(np.int64)), name=path.stem)


def _read_vert(path: Path) -> Shape:
    points = table(read_lines(path), what="a vertex", columns=3)
    tri = next(
        (file for file in (path.with_suffix(".tri"), path.with_suffix(".TRI")) if file.exists()),
        None,
    )
    if tri is None:
        raise failure(path, None, "got no .tri file beside it, expected one", "try copying it, too")
    lines = read_lines(tri)
    triangles = whole_table(lines, what="a triangle", columns=3)
    wrong = ((triangles < 0) | (triangles > len(points))).any(axis=1)
    if wrong.any():
        first = int(wrong.argmax())
        raise failure(
            tri,
            lines.numbers[first],
            f"got '{lines.texts[first]}', expected vertices from 1 to {len(points)}",
            "try .vert and .tri files that belong together",
        )
    return Shape(points=points, faces=_from_zero(triangles), name=path.stem)


def _from_zero(triangles: IntArray) -> IntArray:
    """Count from 0: the files count from 1, copies of them by Python programs sometimes do not."""
    return triangles - 1 if triangles.size and triangles.min() > 0 else triangles
