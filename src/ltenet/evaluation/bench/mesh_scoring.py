"""Maps between whole meshes, scored as the mesh literature does, and at landmarks.

Distances run along the edges of the target (Dijkstra), in units of the square root of its area: the
protocol of Cao, Roetzer and Bernard (2023). Dijkstra overestimates the geodesic distance by about a
tenth; published figures share that.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.correspondence import Correspondence
from ltenet.data.mesh_set import LandmarkSet, ListedSet
from ltenet.data.pairs import BenchmarkPair
from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.normals import face_areas
from ltenet.geometry.surface_graph import distances_along, mesh_graph
from ltenet.shape import Shape

#: Tolerances of the curve, in units of the square root of the area.
CURVE: FloatArray = np.linspace(0.0, 0.1, 40)
#: Mirror images closer than this cannot be told apart; the same unit.
_TELLABLE = 0.1
#: Share of points taken for their mirror image from which a map is a whole flip, or swaps a limb.
_WHOLE, _LIMB = 0.5, 0.05
#: Start vertices of one call of Dijkstra's algorithm.
_BLOCK = 512


class ListedScores(NamedTuple):
    """Figures of one pair at its listed points.

    Attributes
    ----------
    points
        Number of listed points.
    geodesic
        Mean distance along the edges from true to predicted vertex, % of the root of the area.
    within
        (40,) number of points within each tolerance of `CURVE`.
    identity
        Whether a shape is matched with itself.
    flipped
        Share (%) of points nearer to the mirror image of their truth; None without mirror lists.
    """

    points: int
    geodesic: float
    within: FloatArray
    identity: bool
    flipped: float | None

    @property
    def flip(self) -> bool | None:
        """Whether most points went to the other side."""
        return None if self.flipped is None else self.flipped > 100 * _WHOLE

    @property
    def limb_swap(self) -> bool | None:
        """Whether a limb's share of the points went to the other side, but not most."""
        if self.flipped is None:
            return None
        return 100 * _LIMB <= self.flipped <= 100 * _WHOLE


class LandmarkScores(NamedTuple):
    """Figures of one pair at its landmarks, % of the target's diameter.

    Attributes
    ----------
    plain
        Mean distance from true to predicted landmarks.
    symmetric
        The same up to the symmetry of the class: against the mirrored landmarks if that is less.
    """

    plain: float
    symmetric: float


class SurfaceDistances:
    """All distances along the edges of meshes of area 1, kept in files: 4 bytes a pair of vertices.

    Parameters
    ----------
    folder
        Where the files are; made when the first one is written. They may be deleted at any time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def between(self, mesh: Shape, starts: IntArray, ends: IntArray) -> FloatArray:
        """(P,) distances between (P,) vertices and (P,) others."""
        matrix = self._matrix(mesh)
        distances: FloatArray = np.asarray(matrix[starts, ends], dtype=np.float64)
        return distances

    def _matrix(self, mesh: Shape) -> NDArray[np.float32]:
        if mesh.faces is None:
            raise InputError(
                f"{mesh.name}: got a cloud, expected a mesh: distances along a surface need faces; "
                "try a set of meshes"
            )
        digest = hashlib.sha256(np.ascontiguousarray(mesh.points, dtype="<f8").tobytes())
        digest.update(np.ascontiguousarray(mesh.faces, dtype="<i8").tobytes())
        path = self.folder / f"{digest.hexdigest()[:32]}.npy"
        if not path.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_path(path, force=True) as temporary, temporary.open("wb") as stream:
                np.save(stream, edge_distances(mesh.points, mesh.faces))
        matrix: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
        return matrix


def edge_distances(points: FloatArray, faces: IntArray) -> NDArray[np.float32]:
    """(V, V) distances along the edges of a mesh, scaled to area 1.

    Parts that are not connected are as far apart as they are in space: a lower bound.
    """
    area = float(face_areas(points, faces).sum())
    if not area > 0:
        raise InputError(f"got a mesh of area {area}, expected a positive area; try repairing it")
    scaled = points / np.sqrt(area)  # (V, 3)
    graph = mesh_graph(faces, len(points))
    matrix = np.empty((len(points), len(points)), dtype=np.float32)
    for first in range(0, len(points), _BLOCK):
        rows = np.arange(first, min(first + _BLOCK, len(points)))
        block = distances_along(graph, scaled, rows).T  # (b, V)
        apart = np.nonzero(np.isinf(block))
        block[apart] = np.linalg.norm(scaled[rows[apart[0]]] - scaled[apart[1]], axis=1)
        matrix[rows] = block
    return matrix


def score_listed(
    shapes: ListedSet,
    drawn: BenchmarkPair,
    found: Correspondence,
    distances: SurfaceDistances,
    *,
    pair: int,
) -> ListedScores:
    """Score a map between all vertices at every listed point."""
    source, target = (int(index) for index in shapes.pairs[pair])
    listed, mirror = shapes.listed(source, target), shapes.mirrored(source, target)
    mesh = shapes.shape(target)
    predicted = drawn.target_vertices[found.indices[listed.source]]  # (R,)
    errors = distances.between(mesh, listed.target, predicted)  # (R,)
    flipped = None
    if mirror is not None:
        # Vertex 0 stands in for mirror images that the lists do not have.
        other = np.maximum(mirror, 0)  # (R,)
        apart = distances.between(mesh, listed.target, other) > _TELLABLE  # (R,)
        told = apart & (mirror >= 0)
        nearer = distances.between(mesh, other, predicted) < errors  # (R,)
        flipped = 100 * float(nearer[told].mean()) if told.any() else None
    return ListedScores(
        points=len(errors),
        geodesic=100 * float(errors.mean()),
        within=(errors[None, :] <= CURVE[:, None] + 1e-9).sum(axis=1).astype(np.float64),
        identity=source == target,
        flipped=flipped,
    )


def score_landmarks(
    shapes: LandmarkSet, drawn: BenchmarkPair, found: Correspondence, *, pair: int
) -> LandmarkScores:
    """Score a map between all vertices at the landmarks that both shapes have."""
    source, target = (int(index) for index in shapes.pairs[pair])
    first, second = shapes.landmarks(source), shapes.landmarks(target)  # (L,), (L,)
    points = shapes.shape(target).points  # (V, 3)

    def error(goals: IntArray) -> float:
        known = (first >= 0) & (goals >= 0)  # (L,)
        predicted = drawn.target_vertices[found.indices[first[known]]]
        lengths = np.linalg.norm(points[predicted] - points[goals[known]], axis=1)
        return 100 * float(lengths.mean()) / drawn.diameter if known.any() else np.inf

    plain = error(second)
    return LandmarkScores(plain, min(plain, error(second[shapes.swapped(target)])))
