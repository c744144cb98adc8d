"""Remeshed sets: each shape has its own mesh and a `.vts` file to a common template.

Layout: `off/NAME.off` with `corres/NAME.vts`. Line t of a `.vts` is the vertex, from 1, of this
shape at template vertex t, 0 for none. `NAME.sym.vts` is the same for the mirrored template.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ltenet.data.readers.common import Frame, by_stem, find
from ltenet.data.readers.listed_files import ListedFiles, Lists
from ltenet.geometry.arrays import IntArray
from ltenet.io.formats.text import failure


class RemeshedSet(ListedFiles):
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
        categories: Sequence[str],
        pairs: IntArray,
        frame: Frame | None = None,
    ) -> None:
        vts = vts_files(folder)
        lacking = [file.stem for file in files if file.stem not in vts]
        if lacking:
            raise failure(
                folder,
                None,
                f"got no .vts file for {len(lacking)} of {len(files)} meshes, the first is "
                f"{lacking[0]}, expected one for each",
                "try unpacking the correspondences beside the meshes",
            )

        def lists(shapes: ListedFiles, source: int, target: int) -> Lists:
            first, second = (
                shapes.vertices(vts[shapes.names[index]], index) for index in (source, target)
            )
            return first, second

        super().__init__(name, files, lists, categories=categories, pairs=pairs, frame=frame)
        self._mirrored = vts_files(folder, mirrored=True)

    def mirrored(self, source: int, target: int) -> IntArray | None:
        """Target vertices on the other side, if there are lists of the mirrored template."""
        file = self._mirrored.get(self.names[target])
        if file is None:
            return None
        first, second = self.lists_of(source, target)
        mirror = self.vertices(file, target)
        return mirror[(first >= 0) & (second >= 0)] if len(mirror) == len(second) else None


def vts_files(folder: Path, *, mirrored: bool = False) -> dict[str, Path]:
    """Find `.vts` files by the stem of their mesh: to the template, or to the mirrored one."""
    files = [file for file in find(folder, (".vts",)) if file.stem.endswith(".sym") == mirrored]
    return {stem.removesuffix(".sym"): file for stem, file in by_stem(files).items()}
