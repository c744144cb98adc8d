"""FAUST and SCAPE: scans registered to one template, and their remeshed variants.

- FAUST: `tr_reg_000.ply` ... `tr_reg_099.ply`, 6890 vertices of one numbering, metres, y-up. Tested
  on the ordered pairs of 80 to 99 (380).
- SCAPE: `mesh000.ply` ... `mesh071.ply` (051 does not exist), one numbering. Tested on the ordered
  pairs of 52 to 71 (380).
- Remeshed: `off/tr_reg_000.off` or `off/mesh000.off` with `corres/*.vts`; see `readers.remeshed`.

Of a folder without any shape of the test range all ordered pairs are tested.
"""

from __future__ import annotations

from pathlib import Path

from ltenet.data.readers.common import (
    MESH_SUFFIXES,
    Frame,
    SharedNumberingSet,
    by_stem,
    existing,
    find,
    missing,
    number_of,
    ordered_pairs,
)
from ltenet.data.readers.remeshed import RemeshedSet, vts_files
from ltenet.data.shapeset import ShapeSet
from ltenet.geometry.arrays import IntArray


def open_faust(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open a folder that holds `tr_reg_*.ply`, or `tr_reg_*.off` with `.vts`, at any depth."""
    needed = "tr_reg_000.ply ... (training/registrations of MPI-FAUST), or off/ and corres/"
    return _open("faust", path, r"tr_reg_\d+", range(80, 100), needed, frame)


def open_scape(path: Path, *, frame: Frame | None = None) -> ShapeSet:
    """Open a folder that holds `mesh*.ply`, or `mesh*.off` with `.vts`, at any depth."""
    needed = "mesh000.ply ..., or off/ and corres/ of the remeshed set"
    return _open("scape", path, r"mesh_?\d+", range(52, 72), needed, frame)


def _open(
    name: str, path: Path, pattern: str, tested: range, needed: str, frame: Frame | None
) -> ShapeSet:
    existing(name, path, needed)
    files = list(by_stem(find(path, MESH_SUFFIXES, pattern=pattern)).values())
    if not files:
        raise missing(name, path, needed)
    files.sort(key=lambda file: number_of(file.stem) or 0)
    pairs = _test_pairs(files, tested)
    categories = ["human"] * len(files)
    if vts_files(path):
        return RemeshedSet(
            name, path, files, categories=categories, pairs=pairs, frame=frame or "x y z"
        )
    return SharedNumberingSet(
        name, files, categories=categories, pairs=pairs, frame=frame or "x y z"
    )


def _test_pairs(files: list[Path], tested: range) -> IntArray:
    inside = [number_of(file.stem) in tested for file in files]
    pairs = ordered_pairs(inside)
    if not any(inside):
        return pairs
    return pairs[[inside[source] for source, _ in pairs]]
