"""Meshes in files with lists of corresponding vertices in other files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ltenet.data.mesh_set import ListedSet
from ltenet.data.readers.common import FileSet, Frame, existing, find, missing
from ltenet.data.shapeset import GroundTruth
from ltenet.errors import InputError
from ltenet.geometry.arrays import IntArray
from ltenet.io.formats.text import read_lines
from ltenet.io.maps import read_map

#: (R,) vertices of the source and (R,) of the target, -1 where there is none.
Lists = tuple[IntArray, IntArray]


class ListedFiles(FileSet, ListedSet):
    """Meshes in files, and a function that reads the lists of a pair.

    Parameters
    ----------
    name, files
        Name of the set, one mesh per shape.
    lists
        Reads the (R,) vertices of the source and of the target, -1 where there is none.
    categories, pairs, frame
        As for `FileSet`.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[Path],
        lists: Callable[[ListedFiles, int, int], Lists],
        *,
        categories: Sequence[str],
        pairs: IntArray,
        frame: Frame | None,
    ) -> None:
        super().__init__(name, files, categories=categories, pairs=pairs, frame=frame or "x y z")
        self._lists = lists
        self._read_lists: dict[Path, IntArray] = {}

    def listed(self, source: int, target: int) -> GroundTruth:
        """Every listed pair with a vertex on both shapes."""
        first, second = self.lists_of(source, target)
        known = (first >= 0) & (second >= 0)  # (R,)
        return GroundTruth(first[known], second[known])

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Return the listed pairs, the first of those that share a source vertex."""
        return ListedSet.truth(self, source, target)

    def vertices(
        self, file: Path, index: int | None = None, *, count: int | None = None
    ) -> IntArray:
        """Read a list once: vertices of shape `index`, or any numbers if that is None."""
        if file not in self._read_lists:
            size = None if index is None else len(self.shape(index))
            self._read_lists[file] = read_map(file, size=size, count=count, index_base=1)
        return self._read_lists[file]

    def lists_of(self, source: int, target: int) -> Lists:
        """(R,) vertices of the source and (R,) of the target, -1 where there is none."""
        first, second = self._lists(self, source, target)
        if len(first) != len(second):
            raise InputError(
                f"{self.names[source]} and {self.names[target]}: got lists of {len(first)} and "
                f"{len(second)} points, expected equal lengths; try unpacking the set again"
            )
        return first, second


def listed_set(
    name: str,
    files: Sequence[Path],
    lists: Callable[[ListedFiles, int, int], Lists],
    categories: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    frame: Frame | None,
) -> ListedFiles:
    """Make a set of (T,) pairs of shapes."""
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return ListedFiles(name, files, lists, categories=categories, pairs=array, frame=frame)


def mesh_files(name: str, path: Path, pattern: str = r".*") -> list[Path]:
    """Find the meshes of a set, in `off/` if there is such a folder."""
    existing(name, path, "off/*.off and corres/")
    inside = path / "off" if (path / "off").is_dir() else path
    files = find(inside, (".off",), pattern=pattern)
    if not files:
        raise missing(name, path, "off/*.off")
    return files


def names_in(path: Path) -> set[str]:
    """Names in a list of shapes, one a line."""
    return {line.strip() for line in read_lines(path).texts if line.strip()}
