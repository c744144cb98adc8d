"""numpy files: `.npy` with the points, `.npz` with everything a shape has. No pickles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import InputError
from ltenet.formats.text import failure
from ltenet.shape import Shape

_POINTS = ("points", "vertices", "verts", "pos", "xyz")
_FACES = ("faces", "triangles", "tris")
_COLORS = ("colors", "colours", "rgb")


def read_array(path: Path, *, mapped: bool = False) -> NDArray[np.generic]:
    """Return the array of a `.npy`; `mapped` leaves it on the disk until it is used."""
    try:
        if mapped:
            array = np.load(path, allow_pickle=False, mmap_mode="r")
        else:
            with path.open("rb") as stream:
                array = np.load(stream, allow_pickle=False)
    except Exception as error:  # numpy raises whatever the bytes lead it to
        raise failure(
            path,
            None,
            f"not a readable .npy file ({error}), an array of numbers is needed",
            "write it again with numpy.save",
        ) from None
    if not isinstance(array, np.ndarray):
        raise failure(
            path, None, "an archive came, a single array is needed", "rename the file to .npz"
        )
    return array


def read_archive(path: Path) -> dict[str, NDArray[np.generic]]:
    """Return all arrays of a `.npz`, read at once so that a damaged one is noticed here."""
    try:
        # numpy leaves a file open that it opened itself and then could not read.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("a single array")
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # numpy raises whatever the bytes lead it to
        raise failure(
            path,
            None,
            f"not a readable .npz file ({error}), an archive of plain arrays is needed",
            "write it again with numpy.savez",
        ) from None


def read_npy(path: Path) -> Shape:
    """Read an (N, 3) array as a cloud."""
    return _shape(path, {"points": read_array(path)})


def read_npz(path: Path) -> Shape:
    """Read `points` and, where they are, `faces`, `colors`, `labels` and `transform`."""
    return _shape(path, read_archive(path))


def write_npy(shape: Shape, path: Path) -> None:
    """Write the points as an (N, 3) float64 array."""
    np.save(path, shape.points, allow_pickle=False)


def write_npz(shape: Shape, path: Path) -> None:
    """Write everything the shape has; reading it back gives the same shape."""
    arrays: dict[str, Any] = {
        "points": shape.points,
        "transform": shape.transform,
    }
    for name in ("faces", "colors", "labels"):
        values = getattr(shape, name)
        if values is not None:
            arrays[name] = values
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def pick(
    arrays: Mapping[str, NDArray[np.generic]], names: tuple[str, ...]
) -> NDArray[np.generic] | None:
    """Return the first of the arrays that has one of the names."""
    return next((arrays[name] for name in names if name in arrays), None)


def _shape(path: Path, arrays: Mapping[str, NDArray[np.generic]]) -> Shape:
    points = pick(arrays, _POINTS)
    if points is None:
        raise failure(
            path,
            None,
            f"the arrays {', '.join(arrays) or 'of nothing'} came, one called points is needed",
            "name the (N, 3) array points",
        )
    transform = arrays.get("transform")
    try:
        return Shape(
            points=points,  # type: ignore[arg-type]  # Shape converts and checks
            faces=pick(arrays, _FACES),  # type: ignore[arg-type]
            colors=pick(arrays, _COLORS),  # type: ignore[arg-type]
            labels=arrays.get("labels"),  # type: ignore[arg-type]
            transform=np.eye(4) if transform is None else transform.astype(np.float64),
            name=path.stem,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
