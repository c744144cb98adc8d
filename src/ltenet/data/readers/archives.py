"""The three evaluation archives: `tosca.npz`, `shrec19.npz` and `faust.npz`.

Each holds one benchmark as plain arrays, 0-based, as its keys say. They are read at once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltenet.data.readers.common import canonical_matrix, checked_index, ordered_pairs
from ltenet.data.shapeset import GroundTruth, ShapeSet, identity_truth
from ltenet.formats.arrays import read_archive
from ltenet.formats.text import failure
from ltenet.shape import FloatArray, IntArray, Shape


class ToscaArchive(ShapeSet):
    """41 animals of TOSCA with the numbering of the public files; see `readers.tosca`.

    Keys: `verts`, `vert_offsets`, `names`, `class_ids`, `class_names`, `class_faces`,
    `class_face_offsets`, `pairs`.
    """

    error_divisor = 3.0

    def __init__(self, path: Path) -> None:
        arrays = _Arrays(path)
        self.name = "tosca"
        self.names = tuple(arrays.texts("names"))
        self._classes = arrays.whole("class_ids", (len(self.names),))
        class_names = arrays.texts("class_names")
        self.categories = tuple(class_names[number] for number in self._classes)
        self.pairs = arrays.pairs(len(self.names))
        self._offsets = arrays.whole("vert_offsets", (len(self.names) + 1,))
        self._vertices = arrays.real("verts", (int(self._offsets[-1]), 3))
        self._face_offsets = arrays.whole("class_face_offsets", (len(class_names) + 1,))
        self._faces = arrays.whole("class_faces", (int(self._face_offsets[-1]), 3))
        self._matrix = canonical_matrix("x z -y", 0.01)

    def shape(self, index: int) -> Shape:
        """Shape in the canonical frame, divided by 100."""
        index = checked_index(self, index)
        category = self._classes[index]
        return Shape(
            points=self._vertices[self._offsets[index] : self._offsets[index + 1]],
            faces=self._faces[self._face_offsets[category] : self._face_offsets[category + 1]],
            name=self.names[index],
        ).transformed(self._matrix)

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Identity inside a class."""
        if self.categories[source] != self.categories[target]:
            return None
        return identity_truth(int(self._offsets[source + 1] - self._offsets[source]))


class Shrec19Archive(ShapeSet):
    """37 of the 44 shapes of SHREC'19 and 310 of its 430 pairs, at the vertices of a template.

    Keys: `pts` (S, V, 3), `orig_vertex` (S, V), `names`, `pairs`, `surf_pts` (S, M, 3) and
    `to_yup` (S, 3, 3). Vertex v of every shape is template vertex v.
    """

    def __init__(self, path: Path) -> None:
        arrays = _Arrays(path)
        self.name = "shrec19"
        self.names = tuple(arrays.texts("names"))
        count = len(self.names)
        self.categories = ("human",) * count
        self.pairs = arrays.pairs(count)
        self._points = arrays.real("pts", (count, -1, 3))
        self._original = arrays.whole("orig_vertex", self._points.shape[:2])
        self._surface = arrays.real("surf_pts", (count, -1, 3))
        self._upright = arrays.real("to_yup", (count, 3, 3))
        self._distinct = np.stack([_first_places(row) for row in self._original])  # (S, V)

    def shape(self, index: int) -> Shape:
        """Template vertices on the shape as a cloud, turned upright."""
        index = checked_index(self, index)
        cloud = Shape(points=self._points[index], name=self.names[index])
        return cloud.rotated(self._upright[index])

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Template vertices, of which none repeats another's vertex on either shape."""
        vertices = np.flatnonzero(self._distinct[source] & self._distinct[target])  # (P,)
        return GroundTruth(vertices, vertices)

    def surface(self, index: int) -> FloatArray | None:
        """(M, 3) points spread evenly over the surface, in the frame of `shape`."""
        index = checked_index(self, index)
        upright: FloatArray = self._surface[index] @ self._upright[index].T  # (M, 3)
        return upright


class FaustArchive(ShapeSet):
    """The 100 registrations of FAUST; tested on the ordered pairs of 80 to 99.

    Keys: `verts` (100, 6890, 3), `faces`, `names`.
    """

    def __init__(self, path: Path) -> None:
        arrays = _Arrays(path)
        self.name = "faust"
        self.names = tuple(arrays.texts("names"))
        self.categories = ("human",) * len(self.names)
        self._vertices = arrays.real("verts", (len(self.names), -1, 3))
        self._faces = arrays.whole("faces", (-1, 3))
        tested = range(min(80, len(self.names)), len(self.names))
        self.pairs = ordered_pairs([0] * len(tested)) + tested.start

    def shape(self, index: int) -> Shape:
        """Registration in metres."""
        index = checked_index(self, index)
        return Shape(points=self._vertices[index], faces=self._faces, name=self.names[index])

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Identity: the registrations share one numbering."""
        return identity_truth(self._vertices.shape[1])


class _Arrays:
    """Arrays of an archive, checked as they are taken out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.arrays = read_archive(path)

    def texts(self, key: str) -> list[str]:
        return [str(text) for text in self._take(key, (-1,), "U")]

    def whole(self, key: str, shape: tuple[int, ...]) -> IntArray:
        return self._take(key, shape, "iu").astype(np.int64)

    def real(self, key: str, shape: tuple[int, ...]) -> FloatArray:
        return self._take(key, shape, "fiu").astype(np.float64)

    def pairs(self, count: int) -> IntArray:
        pairs = self.whole("pairs", (-1, 2))
        if pairs.size and (pairs.min() < 0 or pairs.max() >= count):
            raise failure(
                self.path,
                None,
                f"pairs name shapes {pairs.min()} to {pairs.max()}, there are 0 to {count - 1}",
                "the archive is damaged: copy it again",
            )
        return pairs

    def _take(self, key: str, shape: tuple[int, ...], kinds: str) -> NDArray[np.generic]:
        """Return the array; -1 in `shape` stands for any length."""
        array = self.arrays.get(key)
        fits = (
            array is not None
            and array.dtype.kind in kinds
            and array.ndim == len(shape)
            and all(want in (-1, has) for want, has in zip(shape, array.shape, strict=True))
        )
        if array is None or not fits:
            came = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise failure(
                self.path,
                None,
                f"{came} came as '{key}', shape {shape} is needed (-1: any)",
                "the archive is damaged or holds something else: copy it again",
            )
        return array


def _first_places(values: IntArray) -> NDArray[np.bool_]:
    """(V,) whether the value at this place occurs here for the first time."""
    first = np.zeros(len(values), dtype=bool)  # (V,)
    first[np.unique(values, return_index=True)[1]] = True
    return first
