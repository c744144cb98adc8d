"""The evaluation archives `tosca.npz`, `shrec19.npz`, `faust.npz`, `faust_r.npz`, `shrec07.npz`.

Each holds one benchmark as plain arrays, 0-based, and is read at once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltenet.data.mesh_set import LandmarkSet, ListedSet, all_pairs, random_pairs
from ltenet.data.readers.common import canonical_matrix, checked_index, ordered_pairs
from ltenet.data.readers.shrec07 import PAIRS_PER_CLASS, swapping
from ltenet.data.shapeset import GroundTruth, ShapeSet, identity_truth
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io.formats.arrays import read_archive
from ltenet.io.formats.text import failure
from ltenet.shape import Shape


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
        for number in self._classes:
            if not 0 <= number < len(class_names):
                raise arrays.damaged(f"class {number}, of {len(class_names)}")
        self.categories = tuple(class_names[number] for number in self._classes)
        self.pairs = arrays.pairs(len(self.names))
        self._offsets = arrays.offsets("vert_offsets", len(self.names))
        self._vertices = arrays.real("verts", (int(self._offsets[-1]), 3))
        self._face_offsets = arrays.offsets("class_face_offsets", len(class_names))
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
        self._upright = arrays.rotations("to_yup", count)
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


class FaustRemeshArchive(ListedSet):
    """The 100 remeshes of FAUST with about 5,000 vertices, each with its own triangulation.

    Keys: `verts`, `vert_offsets`, `faces`, `face_offsets`, `names`, `common` (S, R), row r of which
    names the same point on every shape, and `mirror` (S, R), the same on the other side. Tested on
    all ordered pairs of 80 to 99, each shape with itself too.
    """

    def __init__(self, path: Path) -> None:
        arrays = _Arrays(path)
        self.name = "faust_r"
        self.names = tuple(arrays.texts("names"))
        count = len(self.names)
        self.categories = ("human",) * count
        self._meshes = arrays.meshes(count)
        self._common = arrays.vertices("common", self._meshes)
        self._mirror = arrays.vertices("mirror", self._meshes)
        self.pairs = all_pairs(np.arange(min(80, count - 1), count))

    def shape(self, index: int) -> Shape:
        """Remesh of a registration."""
        points, faces = self._meshes[checked_index(self, index)]
        return Shape(points=points, faces=faces, name=self.names[index])

    def listed(self, source: int, target: int) -> GroundTruth:
        """Rows of `common`."""
        return GroundTruth(self._common[source], self._common[target])

    def mirrored(self, source: int, target: int) -> IntArray | None:
        """Rows of `mirror` on the target."""
        mirrored: IntArray = self._mirror[target]
        return mirrored


class Shrec07Archive(LandmarkSet):
    """Six classes of SHREC'07, 20 shapes each, with landmarks; see `readers.shrec07`.

    Keys: `verts`, `vert_offsets`, `faces`, `face_offsets`, `landmarks`, `landmark_offsets`,
    `class_ids`, `class_names` ("number:name"), `ids`, `symmetric` (rows class, landmark, landmark).
    """

    def __init__(self, path: Path) -> None:
        arrays = _Arrays(path)
        self.name = "shrec07"
        numbers = arrays.whole("ids", (-1,))
        self.names = tuple(str(number) for number in numbers)
        count = len(self.names)
        named = dict(text.split(":", 1) for text in arrays.texts("class_names") if ":" in text)
        self._classes = arrays.whole("class_ids", (count,))
        self.categories = tuple(named.get(str(number), str(number)) for number in self._classes)
        self._meshes = arrays.meshes(count)
        offsets = arrays.offsets("landmark_offsets", count)
        landmarks = np.maximum(arrays.whole("landmarks", (int(offsets[-1]),)), -1)
        self._landmarks = [landmarks[offsets[i] : offsets[i + 1]] for i in range(count)]
        for own, mesh in zip(self._landmarks, self._meshes, strict=True):
            if own.max(initial=-1) >= len(mesh[0]):
                raise arrays.damaged(f"landmark {own.max()} of a mesh of {len(mesh[0])} vertices")
        self._symmetric = arrays.whole("symmetric", (-1, 3))
        self.pairs = random_pairs(self.categories, PAIRS_PER_CLASS)

    def shape(self, index: int) -> Shape:
        """Mesh as it comes: any position, size and direction."""
        points, faces = self._meshes[checked_index(self, index)]
        return Shape(points=points, faces=faces, name=self.names[index])

    def landmarks(self, index: int) -> IntArray:
        """(L,) vertices of the landmarks, -1 where one is missing."""
        return self._landmarks[checked_index(self, index)]

    def swapped(self, index: int) -> IntArray:
        """(L,) landmarks on the other side."""
        own = self._symmetric[self._symmetric[:, 0] == self._classes[index], 1:]
        pairs = tuple((int(one), int(two)) for one, two in own)
        return swapping(pairs, len(self.landmarks(index)))


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

    def rotations(self, key: str, count: int) -> FloatArray:
        """(S, 3, 3) turns, perhaps with a reflection."""
        turns = self.real(key, (count, 3, 3))
        with np.errstate(all="ignore"):
            squares = turns @ turns.transpose(0, 2, 1)  # (S, 3, 3)
        if not np.allclose(squares, np.eye(3), atol=1e-3):
            raise self.damaged(f"matrices in '{key}' that do more than turn")
        return turns

    def pairs(self, count: int) -> IntArray:
        pairs = self.whole("pairs", (-1, 2))
        if pairs.size and (pairs.min() < 0 or pairs.max() >= count):
            raise self.damaged(f"pairs of shapes {pairs.min()} to {pairs.max()}, of {count}")
        return pairs

    def offsets(self, key: str, count: int) -> IntArray:
        offsets = self.whole(key, (count + 1,))
        if offsets[0] != 0 or (np.diff(offsets) < 0).any():
            raise self.damaged(f"'{key}' that does not rise from 0")
        return offsets

    def meshes(self, count: int) -> list[tuple[FloatArray, IntArray]]:
        """Vertices and faces of each of `count` shapes."""
        starts, face_starts = (self.offsets(f"{k}_offsets", count) for k in ("vert", "face"))
        points = self.real("verts", (int(starts[-1]), 3))
        faces = self.whole("faces", (int(face_starts[-1]), 3))
        found = []
        for i in range(count):
            own = faces[face_starts[i] : face_starts[i + 1]]
            if own.min(initial=0) < 0 or own.max(initial=-1) >= starts[i + 1] - starts[i]:
                raise self.damaged(f"faces of mesh {i} beyond its vertices")
            found.append((points[starts[i] : starts[i + 1]], own))
        return found

    def vertices(self, key: str, meshes: list[tuple[FloatArray, IntArray]]) -> IntArray:
        """(S, R) vertices of the shapes, checked against their sizes."""
        rows = self.whole(key, (len(meshes), -1))
        sizes = np.array([len(points) for points, _ in meshes])
        if rows.size and (rows.min() < 0 or (rows.max(axis=1) >= sizes).any()):
            raise self.damaged(f"vertices in '{key}' that no mesh has")
        return rows

    def damaged(self, got: str) -> InputError:
        return failure(
            self.path,
            None,
            f"got {got}, expected arrays that fit each other",
            "try copying the archive again",
        )

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
            got = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise failure(
                self.path,
                None,
                f"got {got} as '{key}', expected shape {shape} (-1: any)",
                "try copying the archive again",
            )
        return array


def _first_places(values: IntArray) -> NDArray[np.bool_]:
    """(V,) whether the value at this place occurs here for the first time."""
    first = np.zeros(len(values), dtype=bool)  # (V,)
    first[np.unique(values, return_index=True)[1]] = True
    return first
