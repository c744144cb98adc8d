"""Shapes of the user: a folder of files, or a manifest that lists them.

A folder holds shape files at any depth; the subfolder is the category. Ground truth is optional:

- `SRC_TGT.map` (from 1) or `SRC_TGT.txt` (from 0) beside or below: a map between two shapes named
  by their stems. With such files the pairs are exactly these.
- `NAME.vts` (from 1) per shape: its vertices at the vertices of a common template.
- `numbering="shared"`: vertices of one number correspond.

Without maps the pairs are all ordered pairs inside a category. A manifest is described in
`readers.manifest`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from ltenet import io
from ltenet.data.readers.common import (
    FileSet,
    Frame,
    existing,
    find,
    missing,
    ordered_pairs,
    shared_numbering,
    through_template,
)
from ltenet.data.readers.manifest import MANIFEST_SUFFIXES, read_manifest
from ltenet.data.readers.remeshed import vts_files
from ltenet.data.shapeset import GroundTruth, ShapeSet
from ltenet.geometry.arrays import IntArray
from ltenet.io.maps import read_map

#: Whether vertices of one number correspond ("shared") or nothing is known of them ("own").
Numbering = Literal["shared", "own"]

_NEEDED = f"a folder with shape files ({', '.join(io.LOADERS)}) or a manifest"


class MapFile(NamedTuple):
    """A map between two shapes and what it counts from (None: by suffix)."""

    path: Path
    index_base: int | None = None


class FolderSet(FileSet):
    """Files with whatever is known about their correspondence.

    What a pair's own map says counts first, then `.vts` files, then a shared numbering.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[Path],
        *,
        names: Sequence[str],
        categories: Sequence[str],
        pairs: IntArray,
        maps: Mapping[tuple[int, int], MapFile],
        vts: Mapping[int, Path],
        numbering: Numbering,
        frame: Frame,
    ) -> None:
        super().__init__(name, files, names=names, categories=categories, pairs=pairs, frame=frame)
        self._maps = dict(maps)
        self._vts = dict(vts)
        self._numbering = numbering

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Return what the map, the `.vts` files or the numbering say; None if there is nothing."""
        file = self._maps.get((source, target))
        if file is not None:
            indices = read_map(
                file.path,
                size=len(self.shape(target)),
                count=len(self.shape(source)),
                index_base=file.index_base,
            )  # (N,)
            matched = np.flatnonzero(indices >= 0)
            return GroundTruth(matched, indices[matched])
        if source in self._vts and target in self._vts:
            return through_template(
                read_map(self._vts[source], size=len(self.shape(source))),
                read_map(self._vts[target], size=len(self.shape(target))),
                label=f"{self._vts[source]} and {self._vts[target]}",
            )
        if self._numbering == "shared":
            return shared_numbering(self, source, target)
        return None


def open_folder(
    path: Path, *, frame: Frame | None = None, numbering: Numbering | None = None
) -> ShapeSet:
    """Open a folder of shapes, or a manifest (`.json`, `.toml` or `.csv`).

    A folder with a `manifest.json`, `.toml` or `.csv` is opened as that says.

    `numbering="shared"` says that vertices of one number correspond; a manifest may say so too.
    """
    existing("folder", path, _NEEDED)
    manifests = [path / f"manifest{suffix}" for suffix in MANIFEST_SUFFIXES]
    path = next((manifest for manifest in manifests if manifest.is_file()), path)
    if path.is_file() and path.suffix.lower() in MANIFEST_SUFFIXES:
        return _from_manifest(path, frame=frame, numbering=numbering)
    found = find(path, tuple(io.LOADERS))
    candidates = {file.stem for file in found if file.suffix.lower() != ".txt"}
    maps = {
        file: ends
        for file in find(path, (".map", ".txt"))
        if (ends := _ends(file.stem, candidates)) is not None
    }
    files = [file for file in found if file not in maps]
    if not files:
        raise missing("folder", path, _NEEDED)
    names = _names(path, files)
    categories = [
        "shape" if file.parent == path else file.parent.relative_to(path).as_posix()
        for file in files
    ]
    places = {file.stem: place for place, file in enumerate(files)}
    by_pair = {
        (places[source], places[target]): MapFile(file) for file, (source, target) in maps.items()
    }
    pairs = np.array(sorted(by_pair), np.int64) if by_pair else ordered_pairs(categories)
    vts = vts_files(path)
    return FolderSet(
        path.resolve().name or "folder",
        files,
        names=names,
        categories=categories,
        pairs=pairs,
        maps=by_pair,
        vts={place: vts[file.stem] for place, file in enumerate(files) if file.stem in vts},
        numbering=numbering or "own",
        frame=frame or "x y z",
    )


def _from_manifest(path: Path, *, frame: Frame | None, numbering: Numbering | None) -> ShapeSet:
    manifest = read_manifest(path)
    places = {entry.name: place for place, entry in enumerate(manifest.shapes)}
    categories = [entry.category for entry in manifest.shapes]
    by_pair = {
        (places[pair.source], places[pair.target]): MapFile(pair.map, pair.index_base)
        for pair in manifest.pairs
        if pair.map is not None
    }
    listed = [(places[pair.source], places[pair.target]) for pair in manifest.pairs]
    return FolderSet(
        manifest.name,
        [entry.file for entry in manifest.shapes],
        names=list(places),
        categories=categories,
        pairs=np.array(listed, np.int64) if listed else ordered_pairs(categories),
        maps=by_pair,
        vts={
            place: entry.vts for place, entry in enumerate(manifest.shapes) if entry.vts is not None
        },
        numbering=numbering or ("shared" if manifest.shared_numbering else "own"),
        frame=frame or "x y z",
    )


def _ends(stem: str, names: set[str]) -> tuple[str, str] | None:
    """Split "a_b_c" into two names of shapes, wherever the right underscore is."""
    for place, letter in enumerate(stem):
        if letter == "_" and stem[:place] in names and stem[place + 1 :] in names:
            return stem[:place], stem[place + 1 :]
    return None


def _names(folder: Path, files: Sequence[Path]) -> list[str]:
    """Stems where they differ, paths where they do not."""
    stems = [file.stem for file in files]
    if len(set(stems)) == len(stems):
        return stems
    return [file.relative_to(folder).as_posix() for file in files]
