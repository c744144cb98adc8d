"""The remeshed benchmarks in their public layouts, as the mesh literature tests on them.

Every set has `off/NAME.off`; lines of its lists count from 1, 0 stands for none.

- FAUST_r, SCAPE_r: `corres/NAME.vts`, line r is the vertex at template point r; `NAME.sym.vts` is
  the same for the mirrored template. Tested on all ordered pairs of shapes 80 to 99 (SCAPE: 52 to
  71), each with itself too.
- SMAL_r: the same, for the shapes that `test_cat.txt` (or `test.txt`) names.
- DT4D-H: `off/CHARACTER/NAME.off`, `corres/CHARACTER/NAME.vts`, tested on the shapes of `test.txt`
  inside a character; across characters, line r of `corres/cross_category_corres/A_B.vts` is the
  template point of B for template point r of A.
- SHREC'19_r: `corres/I_J.map`, line v is the vertex of mesh J for vertex v of mesh I. Mesh 40 is
  incomplete and left out.
- TOPKIDS: `corres/NAME.vts`, line v is the vertex of the first mesh for vertex v of NAME.
- SHREC'16: `null/off/CLASS.off`, and in `cuts/` or `holes/` the parts `off/NAME.off` with
  `corres/NAME.vts`, line v is the vertex of the whole for vertex v of the part.

Maps run from J to I (SHREC'19), from B to A (DT4D), from a kid to the first one and from a part to
its whole, because the literature measures distances on I, A, the first kid and the whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ltenet.data.mesh_set import all_pairs
from ltenet.data.readers.common import Frame, by_stem, existing, find, missing, number_of
from ltenet.data.readers.listed_files import (
    ListedFiles,
    Lists,
    listed_set,
    mesh_files,
    names_in,
)
from ltenet.data.readers.remeshed import RemeshedSet, vts_files
from ltenet.data.shapeset import ShapeSet
from ltenet.geometry.arrays import IntArray
from ltenet.io.formats.text import failure


def open_faust_r(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open FAUST_r: 400 pairs of shapes 80 to 99."""
    return _template_set("faust_r", path, "human", frame, tested=range(80, 100))


def open_scape_r(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open SCAPE_r: 400 pairs of shapes 52 to 71."""
    return _template_set("scape_r", path, "human", frame, tested=range(52, 72))


def open_smal_r(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open SMAL_r: all pairs of the shapes that its test list names."""
    return _template_set("smal_r", path, "animal", frame, listing=("test_cat.txt", "test.txt"))


def open_dt4d(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open DT4D-H within characters."""
    return _dt4d("dt4d", path, frame, across=False)


def open_dt4d_across(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open DT4D-H across characters."""
    return _dt4d("dt4d-across", path, frame, across=True)


def open_shrec19_r(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open the remeshed SHREC'19 without mesh 40."""
    name = "shrec19_r"
    files = mesh_files(name, path, pattern=r"\d+")
    maps = {file.stem: file for file in find(path, (".map",), pattern=r"\d+_\d+")}
    if not maps:
        raise missing(name, path, "corres/1_2.map ...")
    place = {file.stem: index for index, file in enumerate(files)}
    kept = [stem.split("_") for stem in maps if "40" not in stem.split("_")]
    pairs = [(place[j], place[i]) for i, j in kept if i in place and j in place]

    def lists(shapes: ListedFiles, source: int, target: int) -> Lists:
        file = maps[f"{shapes.names[target]}_{shapes.names[source]}"]
        count = len(shapes.shape(target))
        return shapes.vertices(file, source, count=count), np.arange(count)

    return listed_set(name, files, lists, ["human"] * len(files), pairs, frame)


def open_topkids(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open TOPKIDS: every kid onto the first."""
    name = "topkids"
    files = mesh_files(name, path)
    lists_of = list(vts_files(path).values())
    if len(lists_of) != len(files) - 1:
        raise failure(
            path,
            None,
            f"got {len(files)} meshes and {len(lists_of)} lists, expected a list for every mesh "
            "but the first",
            "try unpacking the whole set",
        )

    def lists(shapes: ListedFiles, source: int, target: int) -> Lists:
        count = len(shapes.shape(source))
        # Lists go by order, not by name: releases name them differently.
        return np.arange(count), shapes.vertices(lists_of[source - 1], target, count=count)

    pairs = [(index, 0) for index in range(1, len(files))]
    return listed_set(name, files, lists, ["human"] * len(files), pairs, frame)


def open_shrec16_cuts(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open the cuts of SHREC'16: parts onto wholes."""
    return _shrec16("cuts", path, frame)


def open_shrec16_holes(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open the holes of SHREC'16: parts onto wholes."""
    return _shrec16("holes", path, frame)


def _template_set(
    name: str,
    path: Path,
    category: str,
    frame: Frame | None,
    *,
    tested: range | None = None,
    listing: Sequence[str] = (),
) -> ShapeSet:
    """Shapes with lists to one template: all ordered pairs, identities included."""
    files = mesh_files(name, path)
    if not vts_files(path):
        raise missing(name, path, "corres/*.vts")
    names = next((names_in(path / file) for file in listing if (path / file).is_file()), None)
    if names is not None:
        files = [file for file in files if file.stem in names]
        if not files:
            raise missing(name, path, "off/*.off of the shapes in its test list")
    inside = [index for index, file in enumerate(files) if number_of(file.stem) in (tested or ())]
    # A folder without any shape of the test range is somebody's own selection.
    chosen = np.array(inside or range(len(files)))
    categories = [category] * len(files)
    return RemeshedSet(
        name, path, files, categories=categories, pairs=all_pairs(chosen), frame=frame
    )


def _dt4d(name: str, path: Path, frame: Frame | None, *, across: bool) -> ShapeSet:
    files = mesh_files(name, path)
    listed = path / "test.txt"
    if listed.is_file():
        wanted = names_in(listed)
        files = [file for file in files if f"{file.parent.name}/{file.stem}" in wanted]
    # The one character whose lists do not fit the others; the literature leaves it out.
    files = [file for file in files if file.parent.name != "pumpkinhulk"]
    characters = [file.parent.name for file in files]
    own = {(file.parent.name, file.stem): file for file in find(path / "corres", (".vts",))}
    cross = {
        tuple(file.stem.split("_", 1)): file
        for file in find(
            path / "corres" / "cross_category_corres", (".vts",), pattern=r"[^_]+_[^_]+"
        )
    }
    pairs = [
        (source, target)
        for target, first in enumerate(characters)
        for source, second in enumerate(characters)
        if ((first, second) in cross if across else first == second)
    ]
    if not pairs or not own:
        raise missing(name, path, "off/CHARACTER/*.off, corres/CHARACTER/*.vts and the cross lists")

    def on_template(shapes: ListedFiles, index: int) -> IntArray:
        file = own.get((characters[index], shapes.names[index]))
        if file is None:
            raise missing(name, path, f"corres/{characters[index]}/{shapes.names[index]}.vts")
        return shapes.vertices(file, index)

    def lists(shapes: ListedFiles, source: int, target: int) -> Lists:
        first, second = on_template(shapes, source), on_template(shapes, target)
        if across:
            file = cross[characters[target], characters[source]]
            points = shapes.vertices(file)  # (R,) template points of the source's character
            if points.min(initial=0) < 0 or points.max(initial=-1) >= len(first):
                raise failure(
                    file,
                    None,
                    f"got template points up to {points.max() + 1}, expected 1 to {len(first)}",
                    "try lists of one release",
                )
            first = first[points]
        return first, second

    return listed_set(name, files, lists, characters, pairs, frame)


def _shrec16(kind: str, path: Path, frame: Frame | None) -> ShapeSet:
    name = f"shrec16-{kind}"
    existing(name, path, f"null/off and {kind}/off")
    wholes = by_stem(find(path / "null", (".off",)))
    parts = list(by_stem(find(path / kind, (".off",))).values())
    lists_of = by_stem(find(path / kind, (".vts",)))
    if not wholes or not parts or not lists_of:
        raise missing(name, path, f"null/off/*.off, {kind}/off/*.off and {kind}/corres/*.vts")
    files = [*wholes.values(), *parts]
    place = {stem: index for index, stem in enumerate(wholes)}
    classes = [*wholes, *(_class_of(file.stem, wholes) for file in parts)]
    pairs = [
        (index, place[classes[index]])
        for index in range(len(wholes), len(files))
        if classes[index] in place and files[index].stem in lists_of
    ]

    def lists(shapes: ListedFiles, source: int, target: int) -> Lists:
        count = len(shapes.shape(source))
        file = lists_of[shapes.names[source]]
        return np.arange(count), shapes.vertices(file, target, count=count)

    return listed_set(name, files, lists, classes, pairs, frame)


def _class_of(stem: str, wholes: dict[str, Path]) -> str:
    """Class in the name of a part, e.g. "cat" in "cuts_cat_shape_1"; empty if there is none."""
    return next((word for word in re.split("[_-]", stem) if word in wholes), "")
