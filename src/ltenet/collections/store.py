"""Prepared shapes of a collection, kept on disk by content, weights, options and version."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from pathlib import Path

import numpy as np

from ltenet import __version__
from ltenet.collections.plan import TILE, Specimen
from ltenet.collections.records import ShapeRecord
from ltenet.configuration import to_dict
from ltenet.errors import InputError, LTENetError
from ltenet.geometry.rotations import rotation_degrees
from ltenet.io import load
from ltenet.io.formats.arrays import read_archive
from ltenet.lazy import lazy
from ltenet.matching.config import MatchConfig
from ltenet.matching.frame_networks import KINDS
from ltenet.matching.keeping import (
    preparation_digest,
    read_prepared,
    weights_digest,
    write_prepared,
)
from ltenet.matching.matcher import Matcher, PreparedShape
from ltenet.shape import shape_hash

#: Prepared shapes held in memory: those of a tile of pairs.
_HELD = 2 * TILE + 1


class Store:
    """Prepares each shape once and hands it out to any number of pairs.

    Parameters
    ----------
    folder
        Where prepared shapes are kept.
    config
        How shapes are matched.
    """

    def __init__(self, folder: Path, config: MatchConfig) -> None:
        self.folder, self.config = folder, config
        self.matcher = Matcher(config)
        self._held: OrderedDict[Path, PreparedShape] = OrderedDict()
        self._contents: dict[Path, str] = {}

    @lazy
    def match_digest(self) -> str:
        """Hash everything but the shapes that a map depends on."""
        options = sorted(to_dict(self.config).items())
        text = repr((__version__, options, weights_digest(self.matcher.networks)))
        return sha256(text.encode()).hexdigest()

    def prepare(self, specimen: Specimen, *, mirror: bool = False) -> Path:
        """Read, orient and embed a shape unless that is done; return the file that keeps it."""
        path = self.place(specimen, mirror=mirror)
        if not _readable(path):
            prepared = self.matcher.prepare(load(specimen.path), mirror=mirror)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_prepared(path, prepared, self.matcher.networks, mirror=mirror)
        return path

    def prepared(self, specimen: Specimen, *, mirror: bool = False) -> PreparedShape:
        """Return a prepared shape, or its mirror image, from memory or from disk."""
        path = self.prepare(specimen, mirror=mirror)
        if path not in self._held:
            try:
                self._held[path] = read_prepared(path, self.matcher.networks, name=specimen.name)
            except Exception:  # damaged since it was written, so made anew
                path.unlink(missing_ok=True)
                path = self.prepare(specimen, mirror=mirror)
                self._held[path] = read_prepared(path, self.matcher.networks, name=specimen.name)
        self._held.move_to_end(path)
        while len(self._held) > _HELD:
            self._held.popitem(last=False)
        return self._held[path]

    def key(self, source: Specimen, target: Specimen) -> str:
        """Hash everything that the map of a pair depends on."""
        parts = (self.content(source.path), self.content(target.path), self.match_digest)
        return sha256("-".join(parts).encode()).hexdigest()[:32]

    def place(self, specimen: Specimen, *, mirror: bool = False) -> Path:
        """File of a prepared shape, whether it is there or not."""
        text = self.content(specimen.path) + self._preparation + "mirror" * mirror
        return self.folder / f"{sha256(text.encode()).hexdigest()[:32]}.npz"

    def forget(self, path: Path) -> None:
        """Hash a file again that was written again."""
        self._contents.pop(path, None)

    def describe(self, specimen: Specimen) -> ShapeRecord:
        """Say what is known of a specimen, preparing it if need be."""
        file = str(specimen.path)
        try:
            arrays = read_archive(self.prepare(specimen))
        except LTENetError as error:
            return ShapeRecord(specimen.name, file, "failed", error=str(error))
        except Exception as error:  # whatever one file leads to must not stop the others
            message = f"unexpected {type(error).__name__}: {error}"
            return ShapeRecord(specimen.name, file, "failed", error=message)
        points, names = arrays["points"], set(arrays)
        kind, turned = "", None
        if "kinds_0" in names:
            kind = KINDS[int(arrays["kinds_0"][0].argmax())]
            turned = rotation_degrees(arrays["rotations_0"][0])
        return ShapeRecord(
            specimen.name,
            file,
            "ready",
            points=len(points),
            faces=arrays.header("faces").shape[0] if "faces" in names else 0,
            radius=float(np.sqrt(np.square(points - points.mean(axis=0)).sum(axis=1).mean())),
            kind=kind,
            turned=turned,
        )

    @lazy
    def _preparation(self) -> str:
        return preparation_digest(self.config, self.matcher.networks)

    def content(self, path: Path) -> str:
        """Return the hash of a file; of .gltf, whose points are in another file, of the shape."""
        if path not in self._contents:
            if not path.is_file():
                raise InputError(
                    f"{path}: got a path to no such file, expected a shape; try checking the path"
                )
            if path.suffix.lower() == ".gltf":
                content = shape_hash(load(path))
            else:
                content = sha256(path.read_bytes()).hexdigest()
            self._contents[path] = path.suffix.lower() + content
        return self._contents[path]


def _readable(path: Path) -> bool:
    """Whether a prepared shape is there, and its archive is whole."""
    try:
        return path.is_file() and "rows" in set(read_archive(path))
    except InputError:
        return False
