"""SHREC'07, watertight track, with the landmarks of Kim, Lipman and Funkhouser (2011).

Layout: `Meshes/N.off` and `Corrs/N.vts` at any depth. Line k of a `.vts` is landmark k, "vertex x y
z", the vertex counted from 0. Meshes 1 to 20 are the first class, 21 to 40 the second, and so on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ltenet.data.mesh_set import LandmarkSet, random_pairs
from ltenet.data.readers.common import FileSet, Frame, by_stem, existing, find, missing
from ltenet.data.shapeset import GroundTruth, ShapeSet
from ltenet.geometry.arrays import IntArray
from ltenet.io.formats.tables import table
from ltenet.io.formats.text import failure, read_lines

#: Random test pairs of each class.
PAIRS_PER_CLASS = 40
#: Names of the classes by number.
CLASSES = {4: "airplane", 10: "hand", 11: "plier", 12: "fish", 13: "bird", 16: "bust"}
#: Landmarks that face each other across the symmetry of a class, by number of the class.
SYMMETRIC: dict[int, tuple[tuple[int, int], ...]] = {
    4: ((1, 2), (5, 6), (9, 10)),
    10: ((0, 1), (2, 10), (3, 11), (4, 8), (5, 9), (13, 16), (14, 15)),
    11: ((0, 1), (3, 4)),
    12: ((1, 7), (2, 6), (3, 5)),
    13: ((1, 9), (2, 8), (3, 7), (4, 6)),
    16: ((0, 1), (4, 5), (8, 9)),
}
_NEEDED = "Meshes/N.off and Corrs/N.vts"


def open_shrec07(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open a folder with numbered meshes and landmark files; other classes are left out."""
    existing("shrec07", path, _NEEDED)
    meshes = by_stem(find(path, (".off",), pattern=r"\d+"))
    marks = by_stem(find(path, (".vts",), pattern=r"\d+"))
    numbers = [int(stem) for stem in meshes if stem in marks and class_of(int(stem)) in CLASSES]
    if not numbers:
        raise missing("shrec07", path, _NEEDED)
    return Shrec07Files(
        [meshes[str(number)] for number in sorted(numbers)],
        [marks[str(number)] for number in sorted(numbers)],
        frame=frame or "x y z",
    )


class Shrec07Files(FileSet, LandmarkSet):
    """Numbered meshes with a file of landmarks each.

    Parameters
    ----------
    files, marks
        Mesh and landmark file of each shape; stems are their numbers.
    frame
        How to turn the file's coordinates.
    """

    def __init__(self, files: list[Path], marks: list[Path], *, frame: Frame) -> None:
        self._classes = [class_of(int(file.stem)) for file in files]
        categories = tuple(CLASSES[number] for number in self._classes)
        pairs = random_pairs(categories, PAIRS_PER_CLASS)
        super().__init__("shrec07", files, categories=categories, pairs=pairs, frame=frame)
        self._marks = marks
        self._read_marks: dict[int, IntArray] = {}

    def landmarks(self, index: int) -> IntArray:
        """(L,) vertices of the landmarks, -1 where one is missing."""
        if index not in self._read_marks:
            self._read_marks[index] = read_landmarks(self._marks[index], len(self.shape(index)))
        return self._read_marks[index]

    def swapped(self, index: int) -> IntArray:
        """(L,) landmarks on the other side."""
        return swapping(SYMMETRIC[self._classes[index]], len(self.landmarks(index)))

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Landmarks that both shapes have."""
        return LandmarkSet.truth(self, source, target)


def class_of(number: int) -> int:
    """Class of a mesh by its number, from 1; every class has 20 meshes."""
    return (number - 1) // 20 + 1


def swapping(pairs: tuple[tuple[int, int], ...], count: int) -> IntArray:
    """(L,) permutation that exchanges the two landmarks of each pair."""
    other = np.arange(count)
    for one, two in pairs:
        if max(one, two) < count:
            other[[one, two]] = two, one
    return other


def read_landmarks(path: Path, size: int) -> IntArray:
    """(L,) vertices from 0 of the landmarks of a mesh with `size` vertices, negative ones as -1."""
    lines = read_lines(path)
    if not lines.texts:
        raise failure(
            path, None, "got an empty file, expected one landmark per line", "try copying it again"
        )
    rows = table(lines, what="a landmark")  # (L, 1 or 4)
    if not rows.shape[1]:
        raise lines.failure(
            0, "got a line without a number, expected a landmark", "try copying the file again"
        )
    numbers = rows[:, 0]  # (L,)
    wrong = (numbers != np.round(numbers)) | (numbers >= size)  # (L,)
    if wrong.any():
        first = int(wrong.argmax())
        raise failure(
            path,
            lines.numbers[first],
            f"got vertex {numbers[first]:g}, expected a whole number up to {size - 1}",
            "try landmarks that belong to the mesh",
        )
    vertices: IntArray = np.maximum(numbers, -1).astype(np.int64)
    return vertices
