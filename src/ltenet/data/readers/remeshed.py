"""Remeshed benchmarks: each shape has its own mesh and a `.vts` file to a common template.

Layout: `off/NAME.off` with `corres/NAME.vts`. Line t of a `.vts` is the vertex, from 1, of this
shape at template vertex t. Files `NAME.sym.vts` (the mirrored template) are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ltenet.data.readers.common import FileSet, Frame, by_stem, find, through_template
from ltenet.data.shapeset import GroundTruth
from ltenet.formats.text import failure
from ltenet.maps import read_map
from ltenet.shape import IntArray


class RemeshedSet(FileSet):
    """Meshes in one file each, with correspondences to a common template.

    Parameters
    ----------
    name
        Name of the set.
    folder
        Where the `.vts` files are, at any depth.
    files
        One mesh per shape; each needs a `.vts` of the same stem.
    categories, pairs, frame
        As for `FileSet`.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        files: Sequence[Path],
        *,
        categories: Sequence[str] | None = None,
        pairs: IntArray | None = None,
        frame: Frame = "x y z",
    ) -> None:
        super().__init__(name, files, categories=categories, pairs=pairs, frame=frame)
        self._vts = vts_files(folder)
        lacking = [stem for stem in self.names if stem not in self._vts]
        if lacking:
            raise failure(
                folder,
                None,
                f"{len(lacking)} of {len(self.names)} meshes have no .vts file, the first is "
                f"{lacking[0]}, one for each is needed",
                "unpack the correspondences beside the meshes",
            )
        self._template: dict[int, IntArray] = {}

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Pairs of vertices at the same template vertex."""
        return through_template(
            self._on_template(source),
            self._on_template(target),
            label=f"{self.names[source]} and {self.names[target]}",
        )

    def _on_template(self, index: int) -> IntArray:
        """(S,) vertex of the shape at each template vertex."""
        if index not in self._template:
            file = self._vts[self.names[index]]
            self._template[index] = read_map(file, size=len(self.shape(index)))
        return self._template[index]


def vts_files(folder: Path) -> dict[str, Path]:
    """Return the `.vts` files under a folder by stem, those of the mirrored template left out."""
    return by_stem(file for file in find(folder, (".vts",)) if not file.stem.endswith(".sym"))
