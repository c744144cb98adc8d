"""Many shapes of one numbering in a single array, as generated training sets come.

`.npy`, `.npz`, `.h5` and `.pth` with an (S, V, 3) array. Pickled Python objects are never opened:
they can run any code.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltenet.data.readers.common import Frame, canonical_matrix, checked_index, no_pairs
from ltenet.data.shapeset import GroundTruth, ShapeSet, identity_truth
from ltenet.errors import InputError, MissingError
from ltenet.geometry.arrays import IntArray
from ltenet.io.formats.arrays import (
    UNPACKED_FACTOR,
    UNPACKED_FREE,
    Archive,
    read_archive,
    read_array,
)
from ltenet.io.formats.pickled_arrays import read_torch_arrays
from ltenet.io.formats.text import failure
from ltenet.io.formats.torch_files import check_records
from ltenet.shape import Shape

STACK_SUFFIXES = (".npy", ".npz", ".h5", ".hdf5", ".pth", ".pt")
PICKLE_SUFFIXES = (".pkl", ".pickle")

_CATEGORY_KEYS = ("categories", "category", "families")


class Stack(NamedTuple):
    """What a file of stacked shapes holds.

    Attributes
    ----------
    vertices
        (S, V, 3), anything that gives (V, 3) numbers for an index; may still be on the disk.
    faces
        (F, 3) from 0, or None.
    categories
        One per shape, or None.
    """

    vertices: Any
    faces: IntArray | None
    categories: tuple[str, ...] | None


class StackedSet(ShapeSet):
    """Shapes of one numbering in one array; to learn from, so without test pairs.

    Parameters
    ----------
    name
        Name of the set.
    path
        File that the array came from, for messages.
    stack
        What `read_stack` returned.
    faces
        Triangles for all shapes, where the file has none of its own.
    category
        Class of the shapes, where the file does not say.
    frame
        How to turn the file's coordinates.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        stack: Stack,
        *,
        faces: IntArray | None = None,
        category: str,
        frame: Frame = "x y z",
    ) -> None:
        count = len(stack.vertices)
        self.name = name
        self.names = tuple(f"{path.stem}:{index}" for index in range(count))
        self.categories = stack.categories or (category,) * count
        self.pairs = no_pairs()
        self._path = path
        self._vertices = stack.vertices
        self._faces = stack.faces if stack.faces is not None else faces
        self._matrix = canonical_matrix(frame, 1.0)

    def shape(self, index: int) -> Shape:
        """Shape number `index`, taken out of the array when asked for."""
        index = checked_index(self, index)
        try:
            points = np.asarray(self._vertices[index], dtype=np.float64)  # (V, 3)
        except Exception as error:  # what is still on the disk may be damaged
            raise failure(
                self._path,
                None,
                f"got shape {index} that cannot be read ({error}), expected (vertices, 3) numbers",
                "try to copy or export the file again",
            ) from None
        try:
            shape = Shape(points=points, faces=self._faces, name=self.names[index])
        except InputError as error:
            raise InputError(f"{self._path}: {error}") from None
        return shape.transformed(self._matrix)

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Identity: all shapes have one numbering."""
        return identity_truth(int(self._vertices.shape[1]))


def read_stack(path: Path) -> Stack:
    """Open an (S, V, 3) array, with `faces` and `categories` if an archive has them."""
    suffix = path.suffix.lower()
    if suffix in PICKLE_SUFFIXES:
        raise failure(
            path,
            None,
            "got a pickle, which can run any code when it is opened, expected a plain array",
            "try to convert it once, where you trust it: numpy.savez('samples.npz', vertices=V, "
            "faces=F) with V of shape (samples, vertices, 3)",
        )
    if suffix == ".npy":
        return _stack(path, {"vertices": read_array(path, mapped=True)})
    if suffix == ".npz":
        return _stack(path, read_archive(path))
    if suffix in (".h5", ".hdf5"):
        return _stack(path, _h5_arrays(path))
    return _stack(path, _torch_arrays(path))


def _stack(path: Path, arrays: Any) -> Stack:
    described = arrays.header if isinstance(arrays, Archive) else arrays.__getitem__
    stacks = [key for key in arrays if _is_stack(described(key))]
    if len(stacks) != 1:
        held = ", ".join(f"{key} {tuple(described(key).shape)}" for key in arrays) or "nothing"
        raise failure(
            path,
            None,
            f"got {held}, expected exactly one array of shape (samples, vertices, 3)",
            "try to write the vertices of all samples as one array",
        )
    faces = np.asarray(arrays["faces"]) if "faces" in arrays else None
    if faces is not None and (
        faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu"
    ):
        raise failure(
            path,
            None,
            f"got faces of {faces.dtype} and shape {faces.shape}, expected (F, 3) whole numbers",
            "try counting vertices from 0",
        )
    key = next((key for key in _CATEGORY_KEYS if key in arrays), None)
    categories = None if key is None else _texts(np.asarray(arrays[key]).reshape(-1))
    vertices = arrays[stacks[0]]
    if categories is not None and len(categories) != len(vertices):
        raise failure(
            path,
            None,
            f"got {len(categories)} {key} for {len(vertices)} shapes, expected one for each",
            "try without them if they belong to something else",
        )
    return Stack(vertices, None if faces is None else faces.astype(np.int64), categories)


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(value.decode() if isinstance(value, bytes) else str(value) for value in values)


def _is_stack(array: Any) -> bool:
    shape, dtype = tuple(array.shape), np.dtype(array.dtype)
    return len(shape) == 3 and shape[2] == 3 and min(shape) > 0 and dtype.kind == "f"


def _h5_arrays(path: Path) -> dict[str, Any]:
    try:
        h5py = importlib.import_module("h5py")
    except ImportError:
        raise MissingError(
            f"{path}: got no package h5py, expected it to read HDF5; try: pip install h5py"
        ) from None
    try:
        file = h5py.File(path, "r")
        # Other kinds of links lead to other files.
        own = [key for key in file if isinstance(file.get(key, getlink=True), h5py.HardLink)]
        arrays = {key: file[key] for key in own if isinstance(file[key], h5py.Dataset)}
        for key, array in arrays.items():
            _check_dataset(key, array, path.stat().st_size)
        return arrays
    except Exception as error:  # h5py raises whatever the bytes lead it to
        raise failure(
            path, None, f"got {error}, expected HDF5", "try to copy or export it again"
        ) from None


def _check_dataset(key: str, array: Any, size: int) -> None:
    """Refuse data in other files, and more than a file of this size may unpack to."""
    if array.is_virtual or array.external:
        raise ValueError(f"{key}, whose data are in other files")
    declared, allowed = int(array.nbytes), UNPACKED_FREE + UNPACKED_FACTOR * size
    if declared > allowed:
        raise ValueError(f"{declared:,} bytes in {key}, more than the {allowed:,} that may be")


def _torch_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of a `.pth`; nothing in it runs.

    Known contents: one tensor; one array, as DPC keeps a selection of SURREAL; a list of (V, 3)
    arrays and one of faces, as it keeps SMAL.
    """
    import torch

    try:
        check_records(path)
        try:
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except Exception:  # no tensors: arrays, or something else
            loaded = read_torch_arrays(path)
        if isinstance(loaded, torch.Tensor):
            return {"vertices": loaded.numpy()}
        if isinstance(loaded, np.ndarray):
            return {"vertices": loaded}
        if isinstance(loaded, list | tuple) and len(loaded) == 2:
            vertices = np.stack([np.asarray(each) for each in loaded[0]])  # (S, V, 3)
            return {"vertices": vertices, "faces": np.asarray(loaded[1])}
        found = f"a {type(loaded).__name__}"
    except Exception as error:  # the restricted unpicklers raise whatever they stumble over
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        found = f"something else or a damaged file ({reason})"
    raise failure(
        path,
        None,
        f"got {found}, expected one tensor or array, or a list of arrays with faces",
        "try to convert it once, where you trust it: numpy.save('samples.npy', array)",
    )
