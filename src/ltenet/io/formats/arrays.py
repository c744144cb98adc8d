"""numpy files: `.npy` with the points, `.npz` with everything a shape has. No pickles.

An array is read only when it is asked for, and only once its header and the bytes that follow
agree. What an archive unpacks to is bounded by its size: see `UNPACKED_FACTOR`.
"""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import InputError
from ltenet.geometry.arrays import IntArray
from ltenet.io.formats.text import failure, shown
from ltenet.shape import Shape

#: An array may unpack to this many times the size of its archive, and always to `UNPACKED_FREE`.
UNPACKED_FACTOR = 200
UNPACKED_FREE = 64 * 2**20

T = TypeVar("T")

_POINTS = ("points", "vertices", "verts", "pos", "xyz")
_FACES = ("faces", "triangles", "tris")
_COLORS = ("colors", "colours", "rgb")


class Header(NamedTuple):
    """What an array declares about itself."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


class Archive(Mapping[str, NDArray[Any]]):
    """The arrays of a `.npz` by name, each read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._size = path.stat().st_size
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except Exception as error:  # zipfile raises whatever the bytes lead it to
            raise self._unreadable(error) from None
        # Members that are no arrays are none of ours.
        self._members = {name[: -len(".npy")]: name for name in names if name.endswith(".npy")}

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._opened(name, _read)

    def header(self, name: str) -> Header:
        """Shape and type of an array, without reading it."""
        return self._opened(name, _header)

    def _opened(self, name: str, read: Callable[[IO[bytes], int], T]) -> T:
        member = self._members[name]
        try:
            with zipfile.ZipFile(self.path) as archive:
                size = archive.getinfo(member).file_size
                allowed = UNPACKED_FREE + UNPACKED_FACTOR * self._size
                if size > allowed:
                    raise ValueError(
                        f"{name} unpacks to {size:,} bytes, more than the {allowed:,} that an "
                        "archive of this size may"
                    )
                with archive.open(member) as stream:
                    return read(stream, size)
        except Exception as error:
            raise self._unreadable(error) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def _unreadable(self, error: Exception) -> InputError:
        return failure(
            self.path,
            None,
            f"got a damaged .npz file ({_reason(error)}), expected an archive of plain arrays",
            "try writing it again with numpy.savez",
        )


def read_array(path: Path, *, mapped: bool = False) -> NDArray[Any]:
    """Return the array of a `.npy`; `mapped` leaves it on the disk until it is used."""
    if not mapped:
        return _opened_array(path, _read)
    _opened_array(path, _header)
    return np.load(path, allow_pickle=False, mmap_mode="r")  # type: ignore[no-any-return]


def check_array(path: Path) -> None:
    """Refuse a `.npy` that declares more than is there, without reading the array."""
    _opened_array(path, _header)


def _opened_array(path: Path, read: Callable[[IO[bytes], int], T]) -> T:
    try:
        with path.open("rb") as stream:
            if stream.read(2) == b"PK":
                raise ValueError("an archive; its suffix is .npz")
            stream.seek(0)
            return read(stream, path.stat().st_size)
    except Exception as error:  # numpy raises whatever the bytes lead it to
        raise failure(
            path,
            None,
            f"got a damaged .npy file ({_reason(error)}), expected one array of numbers",
            "try writing it again with numpy.save",
        ) from None


def read_archive(path: Path) -> Archive:
    """Return the arrays of a `.npz`, none of them read yet."""
    return Archive(path)


def numbers(
    path: Path, name: str, array: NDArray[Any], *, whole: bool = False
) -> NDArray[np.generic]:
    """Return an array of real, or of `whole`, numbers; whole ones as int64."""
    if array.dtype.kind not in ("iu" if whole else "iuf"):
        kind = "whole" if whole else "real"
        raise failure(
            path,
            None,
            f"got {name} of type {shown(str(array.dtype))}, expected {kind} numbers",
            "try writing the file again",
        )
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise failure(
            path,
            None,
            f"got {int(array.max())} in {name}, expected numbers below 2^63",
            "try writing the file again",
        )
    return array.astype(np.int64) if array.dtype.kind in "iu" else array


def read_npy(path: Path) -> Shape:
    """Read an (N, 3) array as a cloud."""
    return Shape(points=numbers(path, "points", read_array(path)), name=path.stem)  # type: ignore[arg-type]


def read_npz(path: Path) -> Shape:
    """Read `points` and, where they are, `faces`, `colors`, `labels` and `transform`."""
    arrays = read_archive(path)
    points = pick(arrays, _POINTS)
    if points is None:
        raise failure(
            path,
            None,
            f"got the arrays {shown(', '.join(arrays))}, expected one called points",
            "try naming the (N, 3) array points",
        )
    faces, transform = pick(arrays, _FACES), arrays.get("transform")
    labels: IntArray | None = arrays.get("labels")
    return Shape(
        points=numbers(path, "points", points),  # type: ignore[arg-type]  # Shape converts
        faces=None if faces is None else numbers(path, "faces", faces, whole=True),  # type: ignore[arg-type]
        colors=pick(arrays, _COLORS),
        labels=None if labels is None else numbers(path, "labels", labels, whole=True),  # type: ignore[arg-type]
        transform=np.eye(4) if transform is None else numbers(path, "transform", transform),  # type: ignore[arg-type]
        name=path.stem,
    )


def write_npy(shape: Shape, path: Path) -> None:
    """Write the points as an (N, 3) float64 array."""
    np.save(path, shape.points, allow_pickle=False)


def write_npz(shape: Shape, path: Path, **further: NDArray[Any]) -> None:
    """Write everything the shape has, and further arrays; reading gives the same shape."""
    arrays: dict[str, Any] = {
        "points": shape.points,
        "transform": shape.transform,
    }
    for name in ("faces", "colors", "labels"):
        values = getattr(shape, name)
        if values is not None:
            arrays[name] = values
    arrays |= further
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def holds_points(path: Path) -> bool:
    """Whether an archive may be a shape; a damaged one may."""
    try:
        return not set(read_archive(path)).isdisjoint(_POINTS)
    except InputError:
        return True


def pick(arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> NDArray[Any] | None:
    """Return the first of the arrays that has one of the names."""
    return next((arrays[name] for name in names if name in arrays), None)


def _read(stream: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array of which `size` bytes, header included, are there."""
    shape, fortran, dtype = _header(stream, size)
    content = stream.read(math.prod(shape) * dtype.itemsize)
    flat = np.frombuffer(content, dtype)
    if dtype.kind == "U" and flat.view(f"{dtype.byteorder}u4").max(initial=0) > sys.maxunicode:
        raise ValueError("text beyond Unicode")
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _header(stream: IO[bytes], size: int) -> Header:
    """Read the header of an array and compare what it declares with the bytes that follow."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the format")
    first = version == (1, 0)
    start = stream.tell()
    length = int.from_bytes(stream.read(2 if first else 4), "little")
    if length > size - stream.tell():  # numpy would make room for it
        raise ValueError(f"{length:,} bytes of header declared, {size - stream.tell():,} there")
    stream.seek(start)
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("Python objects, which could run code")
    if not dtype.itemsize or any(side < 0 for side in shape):
        raise ValueError(f"{dtype} of shape {shape}")
    declared, there = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if declared > there:
        raise ValueError(f"{declared:,} bytes declared, {there:,} there")
    return Header(shape, fortran, dtype)


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
