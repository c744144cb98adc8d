"""SURREAL: generated humans (SMPL, 6890 vertices of one numbering) to learn from.

Known layouts, as 3D-CODED and its successors distribute them:

- `datas_surreal_train.pth`: one tensor (samples, 6890, 3), or DPC's selections of it as an array,
  `datas_surreal_train_1800.pth`;
- the same array as `.npy`, `.npz` or `.h5`;
- `dataset-surreal/0.ply`, `1.ply`, ...: one mesh per sample.

A `template.ply` (or `surreal_template.ply`) beside an array gives the faces. Coordinates are in
metres, y-up, facing +z.
"""

from __future__ import annotations

from pathlib import Path

from ltenet import io
from ltenet.data.readers.common import Frame, SharedNumberingSet, existing, find, missing
from ltenet.data.readers.stacked import PICKLE_SUFFIXES, STACK_SUFFIXES, StackedSet, read_stack
from ltenet.data.shapeset import ShapeSet
from ltenet.geometry.arrays import IntArray

_NEEDED = "datas_surreal_train.pth, the same array as .npy, .npz or .h5, or a folder of 0.ply ..."
_TEMPLATES = ("template.ply", "surreal_template.ply", "template/template.ply")


def open_surreal(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open one array file, or a folder with an array or with numbered meshes."""
    existing("surreal", path, _NEEDED)
    file = path if path.is_file() else _array_in(path)
    if file is not None:
        return StackedSet(
            "surreal",
            file,
            read_stack(file),
            faces=_template_faces(file.parent),
            category="human",
            frame=frame or "x y z",
        )
    meshes = find(path, (".ply",), pattern=r"\d+")
    if not meshes:
        raise missing("surreal", path, _NEEDED)
    return SharedNumberingSet(
        "surreal",
        meshes,
        names=[mesh.relative_to(path).with_suffix("").as_posix() for mesh in meshes],
        categories=["human"] * len(meshes),
        frame=frame or "x y z",
    )


def _array_in(folder: Path) -> Path | None:
    """Return the array of a folder; of several the one for training."""
    files = find(folder, (*STACK_SUFFIXES, *PICKLE_SUFFIXES))
    return next((file for file in files if "train" in file.stem), files[0] if files else None)


def _template_faces(folder: Path) -> IntArray | None:
    for name in _TEMPLATES:
        if (folder / name).is_file():
            return io.load(folder / name).faces
    return None
