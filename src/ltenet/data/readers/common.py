"""What the readers share: frames, finding files, pairs, and sets of shapes in files."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from ltenet import io
from ltenet.data.shapeset import GroundTruth, ShapeSet, identity_truth
from ltenet.errors import InputError, MissingError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.shape import Shape

logger = logging.getLogger(__name__)

#: Which axes of the file become x (body's left), y (up) and z (front).
Frame = Literal["x y z", "x z -y", "y z x"]

FRAMES: dict[Frame, FloatArray] = {
    "x y z": np.eye(3),
    "x z -y": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]),
    "y z x": np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]),
}

#: Formats in which meshes of the public benchmarks come.
MESH_SUFFIXES = (".off", ".ply", ".obj")

#: How many shapes a set keeps in memory; pairs come back to the same shapes again and again.
_KEPT_SHAPES = 64


class FileSet(ShapeSet):
    """Shapes in one file each, read when they are asked for.

    Parameters
    ----------
    name
        Name of the set.
    files
        One file per shape.
    names
        One name per shape; the stems of the files by default.
    categories
        One class per shape; the set's name for all by default.
    pairs
        (T, 2) pairs to test on.
    frame, scale
        How to turn and scale the file's coordinates to the canonical frame and unit.
    read
        What reads a file.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[Path],
        *,
        names: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        pairs: IntArray | None = None,
        frame: Frame = "x y z",
        scale: float = 1.0,
        read: Callable[[Path], Shape] = io.load,
    ) -> None:
        self.name = name
        self.files = tuple(files)
        self.names = tuple(names) if names is not None else tuple(file.stem for file in files)
        self.categories = tuple(categories) if categories is not None else (name,) * len(files)
        self.pairs = no_pairs() if pairs is None else pairs
        self._matrix = canonical_matrix(frame, scale)
        self._read = read
        self._kept: dict[int, Shape] = {}

    def shape(self, index: int) -> Shape:
        """Shape number `index` in the canonical frame; `Shape.transform` leads to the file's."""
        index = checked_index(self, index)
        shape = self._kept.get(index)
        if shape is None:
            shape = self._read(self.files[index])
            if not np.array_equal(self._matrix, np.eye(4)):
                shape = shape.transformed(self._matrix)
            if len(self._kept) >= _KEPT_SHAPES:
                self._kept.pop(next(iter(self._kept)))
            self._kept[index] = shape
        return shape

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Nothing is known about files alone."""
        return None


class SharedNumberingSet(FileSet):
    """Files whose vertices of one number correspond, inside a category."""

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Identity inside a category, None across categories."""
        if self.categories[source] != self.categories[target]:
            return None
        return shared_numbering(self, source, target)


def shared_numbering(shapes: ShapeSet, source: int, target: int) -> GroundTruth:
    """Identity of two shapes; different vertex counts are an InputError."""
    first, second = shapes.shape(source), shapes.shape(target)
    if len(first) != len(second):
        raise InputError(
            f"got {len(first)} vertices in {shapes.names[source]} and {len(second)} in "
            f"{shapes.names[target]}, expected equal counts for a shared numbering; try files in "
            "which no program merged or removed vertices"
        )
    return identity_truth(len(first))


def through_template(source: IntArray, target: IntArray, *, label: str) -> GroundTruth:
    """Ground truth of two shapes by what each knows about a common template.

    Parameters
    ----------
    source, target
        (S,) vertex of the shape for each template vertex, -1 where there is none.
    label
        The pair, for messages.

    Returns
    -------
    Pairs in the template's order; of several template vertices at one source vertex the first
    counts.
    """
    if len(source) != len(target):
        raise InputError(
            f"{label}: got correspondences with {len(source)} and {len(target)} entries, expected "
            "one per vertex of a common template; try files of the same set"
        )
    known = np.flatnonzero((source >= 0) & (target >= 0))  # (P,)
    _, first = np.unique(source[known], return_index=True)
    kept = known[np.sort(first)]
    return GroundTruth(source[kept], target[kept])


def canonical_matrix(frame: Frame, scale: float) -> FloatArray:
    """(4, 4) matrix from the file's coordinates to the canonical frame."""
    matrix = np.eye(4)
    matrix[:3, :3] = scale * FRAMES[frame]
    return matrix


def checked_index(shapes: ShapeSet, index: int) -> int:
    """Return the index if the set has such a shape."""
    if not 0 <= index < len(shapes):
        raise InputError(
            f"{shapes.name}: got shape {index}, expected 0 to {len(shapes) - 1}; try one of these"
        )
    return index


def no_pairs() -> IntArray:
    """(0, 2): a set to learn from, without pairs to test on."""
    return np.zeros((0, 2), np.int64)


def ordered_pairs(groups: Iterable[object]) -> IntArray:
    """(T, 2) ordered pairs of different members of one group, given each member's group."""
    members: dict[object, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    pairs = [(one, other) for same in members.values() for one in same for other in same]
    kept = [pair for pair in pairs if pair[0] != pair[1]]
    return np.array(sorted(kept), dtype=np.int64).reshape(-1, 2)


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort "cat2" before "cat10"."""
    parts = re.split(r"(\d+)", text)
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts)


def number_of(name: str) -> int | None:
    """Return the number at the end of a name, e.g. 80 of "tr_reg_080"."""
    found = re.search(r"(\d+)$", name)
    return int(found.group(1)) if found else None


def find(folder: Path, suffixes: Sequence[str], *, pattern: str = r".*") -> list[Path]:
    """Files under `folder` with one of the suffixes and a stem like `pattern`, sorted."""
    if not folder.is_dir():
        return []
    found = [
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in suffixes
        and re.fullmatch(pattern, path.stem)
        and not path.name.startswith(".")
        and path.is_file()
    ]
    return sorted(found, key=lambda path: natural_key(path.relative_to(folder).as_posix()))


def by_stem(files: Iterable[Path]) -> dict[str, Path]:
    """Files by stem; the first of equal stems counts, the others are named in the log."""
    result: dict[str, Path] = {}
    for file in files:
        if file.stem in result:
            logger.warning("%s is left out: %s has the same name", file, result[file.stem])
        result.setdefault(file.stem, file)
    return result


def existing(name: str, path: Path, needed: str) -> Path:
    """Return the path, or say what the set needs if there is nothing."""
    if not path.exists():
        raise missing(name, path, needed)
    return path


def missing(name: str, path: Path, needed: str) -> MissingError:
    """Return the error of a set whose data are not there."""
    return MissingError(
        f"{name}: got {path} without its data, expected {needed}; try getting the data from the "
        "authors of the set and naming its folder"
    )
