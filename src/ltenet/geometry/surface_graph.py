"""Neighbours and shortest paths along a surface, as sparse graphs.

Points that are near in space may be far apart on the surface, such as a hand and the thigh it rests
on. A mesh links points by its edges, a cloud by nearest neighbours.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.neighbors import nearest_neighbors

#: Neighbours of a point in a cloud.
_CLOUD_NEIGHBORS = 8
#: How much longer paths along a cloud's graph are at most, mostly.
_DETOUR = 1.5
#: An odd number that spreads the bits of coordinates.
_MIX = np.uint64(0x9E3779B97F4A7C15)
#: Landmarks from which distances along a surface are measured.
_LANDMARKS = 32


def surface_graph(points: FloatArray, faces: IntArray | None) -> csr_array:
    """(N, N) ones between neighbours: along edges of a mesh, or nearest points of a cloud."""
    if faces is not None and len(faces):
        return mesh_graph(faces, len(points))
    return cloud_graph(points)


def mesh_graph(faces: IntArray, count: int, *, diagonals: bool = False) -> csr_array:
    """(N, N) ones where two of `count` points share an edge of (F, 3) faces.

    `diagonals` also links the two points that face each other across an edge: shortest paths come
    closer to geodesics.
    """
    start = faces[:, [0, 1, 2]].reshape(-1)  # (3 F,)
    stop = faces[:, [1, 2, 0]].reshape(-1)  # (3 F,)
    if diagonals:
        opposite = faces[:, [2, 0, 1]].reshape(-1)  # (3 F,)
        low, high = np.minimum(start, stop), np.maximum(start, stop)  # (3 F,)
        order = np.lexsort((high, low))
        low, high, opposite = low[order], high[order], opposite[order]
        shared = np.flatnonzero((low[1:] == low[:-1]) & (high[1:] == high[:-1]))  # (D,)
        start = np.concatenate([start, opposite[shared]])
        stop = np.concatenate([stop, opposite[shared + 1]])
    return _symmetric(start, stop, count)


def across_seams(graph: csr_array, points: FloatArray) -> csr_array:
    """Link the points of an (N, N) graph that have the same place.

    Files that store texture coordinates by vertex repeat vertices along seams, where no edge
    crosses.
    """
    bits = np.ascontiguousarray(points + 0.0).view(np.uint64)  # (N, 3); -0.0 becomes 0.0
    mixed = np.zeros(len(points), dtype=np.uint64)  # (N,)
    for column in bits.T:  # one number a point: sorting these is faster than sorting triples
        mixed = (mixed ^ column) * _MIX
        mixed ^= mixed >> np.uint64(29)
    _, first, group = np.unique(mixed, return_index=True, return_inverse=True)
    if len(first) == len(points):
        return graph
    start, stop = np.arange(len(points)), first[group.reshape(-1)]  # (N,), (N,)
    same = (points[start] == points[stop]).all(axis=1)  # (N,), but for a collision of the mix
    joined = graph + _symmetric(start[same], stop[same], len(points))
    joined.data[:] = 1.0
    return joined


def cloud_graph(points: FloatArray) -> csr_array:
    """(N, N) ones between each of (N, 3) points and its nearest neighbours, symmetric."""
    count = len(points)
    near = nearest_neighbors(points, points, _CLOUD_NEIGHBORS + 1).indices  # (N, k)
    return _symmetric(np.repeat(np.arange(count), near.shape[1]), near.reshape(-1), count)


def voronoi_regions(graph: csr_array, points: FloatArray, rows: IntArray) -> IntArray:
    """(N,) which of the points at `rows` is nearest along the edges of a graph; -1 if none is."""
    number = np.full(len(points) + 1, -1)  # the last one stands for -1, points out of reach
    number[rows] = np.arange(len(rows))
    regions: IntArray = number[nearest_along(graph, points, rows)]
    return regions


def region_graph(graph: csr_array, regions: IntArray) -> csr_array:
    """(n, n) ones between regions, (N,) as of `voronoi_regions`, that touch on a graph."""
    start, stop = (regions[ends] for ends in graph.nonzero())  # (E,)
    known = (start >= 0) & (stop >= 0)
    return _symmetric(start[known], stop[known], int(regions.max()) + 1)


def region_faces(faces: IntArray, regions: IntArray) -> IntArray:
    """(f, 3) triangles between regions where three of them meet on a mesh of (F, 3) faces.

    `regions` (N,) are those of `voronoi_regions`. The coarse mesh is dual to them and has the
    orientation of the faces.
    """
    corners = regions[faces]  # (F, 3)
    meet = (corners >= 0).all(axis=1) & (corners != np.roll(corners, 1, axis=1)).all(axis=1)  # (F,)
    corners = corners[meet]
    _, first = np.unique(np.sort(corners, axis=1), axis=0, return_index=True)
    found: IntArray = corners[np.sort(first)]
    return found


def edge_lengths(graph: csr_array, points: FloatArray) -> csr_array:
    """(N, N) lengths of the edges between (N, 3) points."""
    start, stop = graph.nonzero()  # (E,)
    # Zero would mean no edge: duplicates are linked by a very short one.
    lengths = np.maximum(np.linalg.norm(points[start] - points[stop], axis=1), 1e-9)
    return sparse_graph(lengths, start, stop, len(points))


def sparse_graph(values: FloatArray, start: IntArray, stop: IntArray, count: int) -> csr_array:
    """(N, N) values at (E,) pairs, with narrow indices: older scipy searches no others."""
    places = start.astype(np.int32), stop.astype(np.int32)
    return csr_array((values, places), shape=(count, count))


def distances_along(
    graph: csr_array, points: FloatArray, starts: IntArray, *, reach: float = np.inf
) -> FloatArray:
    """(N, s) lengths of shortest paths from the points at `starts`; inf beyond `reach`."""
    lengths = dijkstra(edge_lengths(graph, points), indices=starts, limit=reach)  # (s, N)
    return np.ascontiguousarray(lengths.T)


def surface_coordinates(graph: csr_array, points: FloatArray) -> FloatArray:
    """(N, L) lengths of shortest paths to landmarks spread over the largest piece; NaN off it.

    Two points are at least as far apart along the surface as any of their coordinates differ, and
    hardly farther than the one that differs most. Landmarks are the farthest from those before:
    mostly the ends of limbs first.
    """
    lengths = edge_lengths(graph, points)  # (N, N)
    _, piece = connected_components(lengths, directed=False)  # (N,)
    inside = piece == np.bincount(piece).argmax()  # (N,)
    start = int(inside.argmax())
    start = int(np.where(inside, dijkstra(lengths, indices=start), -1.0).argmax())
    coordinates = np.empty((len(points), _LANDMARKS))
    least = np.full(len(points), np.inf)  # (N,)
    for number in range(_LANDMARKS):
        coordinates[:, number] = dijkstra(lengths, indices=start)
        least = np.minimum(least, coordinates[:, number])
        start = int(np.where(inside, least, -1.0).argmax())
    coordinates[~inside] = np.nan
    return coordinates


def nearest_on_surface(points: FloatArray, k: int, faces: IntArray | None = None) -> IntArray:
    """(N, k) nearest of (N, 3) points by length of the path between them, itself first.

    A point of a piece with fewer than k points gets the nearest ones in space after its own piece.
    """
    graph = surface_graph(points, faces)
    near = nearest_neighbors(points, points, min(2 * k, len(points)))  # (N, <= 2 k)
    # Paths are longer than straight lines: most points find k others within this reach.
    reach = _DETOUR * float(near.distances[:, min(k, near.distances.shape[1]) - 1].max())
    lengths = distances_along(graph, points, np.arange(len(points)), reach=reach)  # (N, N)
    few = np.flatnonzero(np.isfinite(lengths).sum(axis=0) < k)  # (f,)
    if len(few):
        lengths[:, few] = distances_along(graph, points, few)
    for point in np.flatnonzero(np.isfinite(lengths).sum(axis=0) < k):
        gap = np.linalg.norm(points - points[point], axis=1)  # (N,)
        beyond = ~np.isfinite(lengths[:, point])  # (N,)
        lengths[beyond, point] = lengths[~beyond, point].max() + 1e-9 + gap[beyond]
    np.fill_diagonal(lengths, -1.0)  # before duplicates
    chosen = np.argpartition(lengths, k - 1, axis=0)[:k].T  # (N, k)
    own = np.take_along_axis(lengths.T, chosen, axis=1)  # (N, k)
    found: IntArray = np.take_along_axis(chosen, np.argsort(own, axis=1, kind="stable"), axis=1)
    return found


def distance_to_nearest(graph: csr_array, points: FloatArray, starts: IntArray) -> FloatArray:
    """(N,) length of the shortest path to a point at `starts`; inf if there is none."""
    if len(starts) == 0:
        return np.full(len(points), np.inf)
    lengths: FloatArray = dijkstra(edge_lengths(graph, points), indices=starts, min_only=True)
    return lengths


def nearest_along(graph: csr_array, points: FloatArray, starts: IntArray) -> IntArray:
    """(N,) the one of the points at `starts` with the shortest path; -1 if no path leads there."""
    _, _, nearest = dijkstra(
        edge_lengths(graph, points), indices=starts, min_only=True, return_predecessors=True
    )
    found: IntArray = np.maximum(nearest, -1).astype(np.int64)  # scipy has -9999 for unreachable
    return found


def _symmetric(start: IntArray, stop: IntArray, count: int) -> csr_array:
    """(N, N) symmetric ones at (E,) pairs of different points."""
    apart = start != stop  # (E,)
    graph = sparse_graph(np.ones(int(apart.sum())), start[apart], stop[apart], count)
    graph = graph + graph.T
    graph.data[:] = 1.0
    return graph
