"""SHREC'19 "Matching Humans with Different Connectivity": meshes and one map per pair.

Layout: meshes `1.off` ... `44.off` (or `.obj`, `.ply`) in the folder or below it (`off/`,
`off_2/`), maps `I_J.map` below it (`corres/`, `groundtruth/`). Line v of `I_J.map` is the vertex of
mesh J, from 1, for vertex v of mesh I; 0 stands for none. The maps of the organisers,
`FARMgt_txt/I_J.txt`, count from 1 too. A list of pairs, `PAIRS_list_SHREC19_connectivity.txt` with
lines "I,J", gives the pairs and their order; without one every map is a pair. The meshes come from
many sources, and some are not upright.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ltenet.data.readers.common import (
    MESH_SUFFIXES,
    FileSet,
    Frame,
    by_stem,
    existing,
    find,
    missing,
    no_pairs,
)
from ltenet.data.shapeset import GroundTruth, ShapeSet
from ltenet.geometry.arrays import IntArray
from ltenet.io.formats.tables import whole_table
from ltenet.io.formats.text import failure, read_lines
from ltenet.io.maps import read_map

logger = logging.getLogger(__name__)

_NEEDED = "meshes 1.off ... 44.off and maps I_J.map"
_PAIR = r"\d+[_,]\d+"


def open_shrec19(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open a folder with numbered meshes and with maps, at any depth."""
    existing("shrec19", path, _NEEDED)
    meshes = by_stem(find(path, MESH_SUFFIXES, pattern=r"\d+"))
    maps = by_stem(find(path, (".map",), pattern=_PAIR) or find(path, (".txt",), pattern=_PAIR))
    if not meshes or not maps:
        raise missing("shrec19", path, _NEEDED)
    files = sorted(meshes.values(), key=lambda file: int(file.stem))
    return Shrec19Set(files, list(maps.values()), _pair_list(path), frame=frame or "x y z")


class Shrec19Set(FileSet):
    """Numbered meshes with maps between some of them.

    Parameters
    ----------
    files
        One mesh per shape; the stem is its number.
    maps
        Files `I_J.map` that count from 1.
    listed
        (T, 2) numbers of the meshes of each pair, or None for all maps.
    frame
        How to turn the file's coordinates.
    """

    def __init__(
        self, files: Sequence[Path], maps: Sequence[Path], listed: IntArray | None, *, frame: Frame
    ) -> None:
        super().__init__("shrec19", files, categories=["human"] * len(files), frame=frame)
        places = {int(file.stem): place for place, file in enumerate(files)}
        numbered = {tuple(map(int, re.split("[_,]", file.stem))): file for file in maps}
        wanted = sorted(numbered) if listed is None else [tuple(row) for row in listed.tolist()]
        kept = [
            pair for pair in wanted if pair in numbered and all(number in places for number in pair)
        ]
        if len(kept) < len(wanted):
            logger.warning(
                "shrec19: %d of %d pairs are left out, their mesh or map is not there",
                len(wanted) - len(kept),
                len(wanted),
            )
        self._maps = {
            (places[pair[0]], places[pair[1]]): numbered[pair]
            for pair in numbered
            if all(number in places for number in pair)
        }
        pairs = [[places[number] for number in pair] for pair in kept]
        self.pairs = np.array(pairs, dtype=np.int64) if pairs else no_pairs()

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Vertices with a partner in the pair's map; None for a pair without a map."""
        file = self._maps.get((source, target))
        if file is None:
            return None
        count, size = len(self.shape(source)), len(self.shape(target))
        indices = read_map(file, size=size, count=count, index_base=1)  # (N,)
        matched = np.flatnonzero(indices >= 0)
        return GroundTruth(matched, indices[matched])


def _pair_list(folder: Path) -> IntArray | None:
    files = find(folder, (".txt",), pattern=r"(?i)pairs.*")
    if not files:
        return None
    lines = read_lines(files[0])
    if not lines.texts:
        raise failure(files[0], None, "got no pair, expected lines 'I,J'", "try removing the file")
    return whole_table(lines, what="a pair", columns=2)
