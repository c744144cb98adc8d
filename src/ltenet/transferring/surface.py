"""Closest points on a surface: on the triangles of a mesh, or among the points of a cloud."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.normals import face_normals, unit_vectors
from ltenet.lazy import lazy
from ltenet.shape import Shape

#: Pairs of a point and a triangle compared at a time; each takes about 200 bytes.
_CHUNK = 200_000
#: Triangles larger than this multiple of the median have several seeds.
_LARGE = 1.0
_MOST_SEEDS_PER_SIDE = 24
#: Barycentric weight below which a place lies on the edge opposite to a corner.
_ON_EDGE = 1e-9


class Places(NamedTuple):
    """Points on a surface.

    Attributes
    ----------
    corners
        (N, 3) point indices: the corners of the triangle, or one point of a cloud three times.
    weights
        (N, 3) barycentric weights of these.
    faces
        (N,) triangle, -1 on a cloud.
    distances
        (N,) to the query points.
    """

    corners: IntArray
    weights: FloatArray
    faces: IntArray
    distances: FloatArray

    def on(self, values: FloatArray) -> FloatArray:
        """(N, C) values at these places, interpolated from (M, C) at the points of the shape."""
        found: FloatArray = np.einsum("nk,nkc->nc", self.weights, values[self.corners])
        return found


class Surface:
    """A shape with exact closest-point queries.

    A k-d tree holds seeds: the centroids of the triangles, several for a large one. A query visits
    seeds in order of distance until no other triangle can be closer.
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
        """Find the closest place to each of (N, 3) points."""
        if self.faces is None:
            distances, found = self._tree.query(points)
            corners = np.repeat(np.asarray(found, np.int64)[:, None], 3, axis=1)
            weights = np.tile([1.0, 0.0, 0.0], (len(points), 1))
            return Places(corners, weights, np.full(len(points), -1), distances)
        faces = np.zeros(len(points), np.int64)
        weights, distances = np.zeros((len(points), 3)), np.full(len(points), np.inf)
        # First the nearest seeds, then all that can still be closer.
        open_ones, seen, k = np.arange(len(points)), 0, min(8, self._tree.n)
        while len(open_ones):
            unsure = []
            for start in range(0, len(open_ones), max(1, _CHUNK // k)):
                rows = open_ones[start : start + max(1, _CHUNK // k)]
                away, seeds = self._tree.query(points[rows], k=k)
                away, seeds = away.reshape(len(rows), k), seeds.reshape(len(rows), k)
                for first, last in ((seen, seen + 2), (seen + 2, k)):
                    # Seeds farther away than their triangle extends are skipped.
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
        return unit_vectors(face_normals(self.points, places.corners))

    def at_border(self, places: Places) -> NDArray[np.bool_]:
        """(N,) which places lie on the border of an open mesh; none on closed ones and clouds."""
        inner = (places.weights > _ON_EDGE) & ~self._border[places.corners]  # (N, 3)
        on_edge = (places.weights <= _ON_EDGE).any(axis=1)  # (N,)
        return np.asarray(on_edge & ~inner.any(axis=1))

    @lazy
    def _border(self) -> NDArray[np.bool_]:
        """(N,) which points are ends of edges that have one triangle."""
        border = np.zeros(len(self.points), bool)
        if self.faces is not None:
            edges = np.sort(self.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
            ends, count = np.unique(edges, axis=0, return_counts=True)
            border[ends[count == 1]] = True
        return border

    def _improve(
        self,
        points: FloatArray,
        rows: IntArray,
        candidates: IntArray,
        faces: IntArray,
        weights: FloatArray,
        distances: FloatArray,
    ) -> None:
        """Compare points at (C,) `rows` with (C,) triangles and record those that are closer."""
        assert self.faces is not None
        corners = self.points[self.faces[candidates]]  # (C, 3, 3)
        mixtures = nearest_in_triangles(points[rows], corners)  # (C, 3)
        places = np.einsum("nk,nkd->nd", mixtures, corners)  # (C, 3)
        found = np.linalg.norm(places - points[rows], axis=1)  # (C,)
        # numpy keeps the last assignment to a row, so the closest candidate comes last.
        order = np.argsort(-found, kind="stable")
        order = order[found[order] < distances[rows[order]]]
        faces[rows[order]] = candidates[order]
        weights[rows[order]] = mixtures[order]
        distances[rows[order]] = found[order]


def nearest_in_triangles(points: FloatArray, corners: FloatArray) -> FloatArray:
    """(N, 3) barycentric weights of the point of triangle n (N, 3, 3) closest to point n (N, 3).

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
    """(side^2, 3) barycentric weights of the centroids of a triangle's equal parts."""
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
