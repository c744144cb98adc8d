"""The nearest place on a surface: on a triangle of a mesh, or on a point of a cloud."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from ltenet.shape import FloatArray, IntArray, Shape

#: Pairs of a point and a triangle compared at a time; each takes about 200 bytes.
_CHUNK = 200_000
#: Triangles this many times as large as most are found by several seeds instead of one.
_LARGE = 1.0
_MOST_SEEDS_PER_SIDE = 24


class Places(NamedTuple):
    """Places on a surface.

    Attributes
    ----------
    corners
        (N, 3) points of the shape: the corners of the triangle, or one point of a cloud thrice.
    weights
        (N, 3) barycentric weights of these.
    faces
        (N,) triangle, -1 on a cloud.
    distances
        (N,) from the point that was asked for.
    """

    corners: IntArray
    weights: FloatArray
    faces: IntArray
    distances: FloatArray

    def on(self, values: FloatArray) -> FloatArray:
        """(N, C) values at these places, of (M, C) at the points of the shape."""
        found: FloatArray = np.einsum("nk,nkc->nc", self.weights, values[self.corners])
        return found


class Surface:
    """A shape that can be asked for its nearest place.

    Triangles are found by the nearest seeds, their centroids, and each answer is exact: the search
    goes on until no triangle that was not looked at can be nearer. Large triangles have several
    seeds.
    """

    def __init__(self, shape: Shape) -> None:
        self.points = shape.points
        self.faces = shape.faces if shape.faces is not None and len(shape.faces) else None
        if self.faces is None:
            self._tree = KDTree(self.points)
            return
        corners = self.points[self.faces]  # (F, 3, 3)
        radius = np.linalg.norm(corners - corners.mean(axis=1, keepdims=True), axis=2).max(axis=1)
        common = _LARGE * max(float(np.median(radius)), 1e-3 * float(radius.max()))
        sides = np.clip(np.ceil(radius / max(common, 1e-300)), 1, _MOST_SEEDS_PER_SIDE)  # (F,)
        seeds, owners = [], []
        for side in np.unique(sides):
            members = np.flatnonzero(sides == side)
            seeds.append(np.einsum("sk,fkd->fsd", _small_centroids(int(side)), corners[members]))
            owners.append(np.repeat(members, int(side) ** 2))
        self._tree = KDTree(np.concatenate([part.reshape(-1, 3) for part in seeds]))
        self._owners = np.concatenate(owners)  # (S,) triangle of each seed
        self._reach = (radius / sides)[self._owners]  # (S,) how far its part of it reaches

    def nearest(self, points: FloatArray) -> Places:
        """Nearest place to each of (N, 3) points."""
        if self.faces is None:
            distances, found = self._tree.query(points)
            corners = np.repeat(np.asarray(found, np.int64)[:, None], 3, axis=1)
            weights = np.tile([1.0, 0.0, 0.0], (len(points), 1))
            return Places(corners, weights, np.full(len(points), -1), distances)
        faces = np.zeros(len(points), np.int64)
        weights, distances = np.zeros((len(points), 3)), np.full(len(points), np.inf)
        # Two looks: at the nearest seeds, then at those that can still be nearer.
        open_ones, seen, k = np.arange(len(points)), 0, min(8, self._tree.n)
        while len(open_ones):
            unsure = []
            for start in range(0, len(open_ones), max(1, _CHUNK // k)):
                rows = open_ones[start : start + max(1, _CHUNK // k)]
                away, seeds = self._tree.query(points[rows], k=k)
                away, seeds = away.reshape(len(rows), k), seeds.reshape(len(rows), k)
                for first, last in ((seen, seen + 2), (seen + 2, k)):
                    # Seeds farther away than their triangle reaches need no closer look.
                    possible = distances[rows, None] + self._reach[seeds[:, first:last]]
                    row, column = np.nonzero(away[:, first:last] < possible)  # (C,)
                    owners = self._owners[seeds[row, first + column]]  # (C,)
                    self._improve(points, rows[row], owners, faces, weights, distances)
                unsure.append(rows[away[:, -1] < distances[rows] + self._reach.max()])
            open_ones = np.concatenate(unsure) if k < self._tree.n else np.zeros(0, np.int64)
            seen, k = k, min(4 * k, self._tree.n)
        return Places(self.faces[faces], weights, faces, distances)

    def normals(self, places: Places) -> FloatArray:
        """(N, 3) unit normals of the triangles of places on a mesh."""
        assert self.faces is not None
        return unit(face_normals(self.points, places.corners))

    def _improve(
        self,
        points: FloatArray,
        rows: IntArray,
        candidates: IntArray,
        faces: IntArray,
        weights: FloatArray,
        distances: FloatArray,
    ) -> None:
        """Compare points at (C,) `rows` with (C,) triangles and note those that are nearer."""
        assert self.faces is not None
        corners = self.points[self.faces[candidates]]  # (C, 3, 3)
        mixtures = nearest_in_triangles(points[rows], corners)  # (C, 3)
        places = np.einsum("nk,nkd->nd", mixtures, corners)  # (C, 3)
        found = np.linalg.norm(places - points[rows], axis=1)  # (C,)
        # Of several candidates of a row the last assignment stays, so the nearest comes last.
        order = np.argsort(-found, kind="stable")
        order = order[found[order] < distances[rows[order]]]
        faces[rows[order]] = candidates[order]
        weights[rows[order]] = mixtures[order]
        distances[rows[order]] = found[order]


def nearest_in_triangles(points: FloatArray, corners: FloatArray) -> FloatArray:
    """Barycentric weights (N, 3) of the place in triangle n (N, 3, 3) nearest to point n (N, 3).

    Triangles may be degenerate.
    """
    first, second, third = corners.transpose(1, 0, 2)  # 3 x (N, 3)
    along, aside, offset = second - first, third - first, points - first
    # Normal equations of |offset - v along - w aside|^2.
    aa, ab, bb = _dot(along, along), _dot(along, aside), _dot(aside, aside)
    ap, bp = _dot(along, offset), _dot(aside, offset)
    determinant = aa * bb - ab * ab
    flat = determinant <= 1e-14 * aa * bb
    safe = np.where(flat, 1.0, determinant)
    v, w = (bb * ap - ab * bp) / safe, (aa * bp - ab * ap) / safe
    weights = np.stack([1 - v - w, v, w], axis=1)  # (N, 3)
    outside = np.flatnonzero(flat | (weights < 0).any(axis=1))
    if len(outside):
        weights[outside] = _nearest_on_edges(points[outside], corners[outside])
    return weights


def face_normals(points: FloatArray, faces: IntArray) -> FloatArray:
    """(F, 3) normals, as long as twice the triangle's area."""
    corners = points[faces]  # (F, 3, 3)
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def point_normals(points: FloatArray, faces: IntArray) -> FloatArray:
    """(N, 3) unit normals, each the mean of the triangles around by area."""
    across = face_normals(points, faces)  # (F, 3)
    flat = faces.T.reshape(-1)  # (3 F,)
    sums = [np.bincount(flat, np.tile(axis, 3), len(points)) for axis in across.T]
    return unit(np.stack(sums, axis=1))


def unit(vectors: FloatArray) -> FloatArray:
    """Scale (..., 3) vectors to length 1; those of no length stay."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: FloatArray = vectors / np.maximum(length, 1e-300)
    return scaled


def _nearest_on_edges(points: FloatArray, corners: FloatArray) -> FloatArray:
    best = np.full(len(points), np.inf)
    weights = np.zeros((len(points), 3))
    for start, stop in ((0, 1), (1, 2), (2, 0)):
        along = corners[:, stop] - corners[:, start]  # (N, 3)
        square = np.maximum(_dot(along, along), 1e-300)
        share = np.clip(_dot(points - corners[:, start], along) / square, 0, 1)  # (N,)
        place = corners[:, start] + share[:, None] * along
        distance = _dot(points - place, points - place)
        nearer = np.flatnonzero(distance < best)
        best[nearer] = distance[nearer]
        weights[nearer] = 0
        weights[nearer, start] = 1 - share[nearer]
        weights[nearer, stop] = share[nearer]
    return weights


def _small_centroids(side: int) -> FloatArray:
    """Barycentric weights (side^2, 3) of the centroids of the equal parts of a triangle."""
    parts = []
    for row in range(side):
        for column in range(side - row):
            parts.append((row + 1 / 3, column + 1 / 3))
            if row + column < side - 1:
                parts.append((row + 2 / 3, column + 2 / 3))
    two = np.array(parts) / side  # (side^2, 2)
    return np.column_stack([1 - two.sum(axis=1), two])


def _dot(first: FloatArray, second: FloatArray) -> FloatArray:
    product: FloatArray = np.einsum("nd,nd->n", first, second)
    return product
