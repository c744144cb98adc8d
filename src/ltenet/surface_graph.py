"""Which points are neighbours along the surface, as sparse matrices: ways between points.

Points that are near in space may be far apart on the body: a hand does not belong to the thigh it
rests on. Where a shape has faces, its edges tell; a cloud has only its nearest points.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree

from ltenet.shape import FloatArray, IntArray, Shape

#: Neighbours of a point in a cloud.
_CLOUD_NEIGHBORS = 8


def surface_graph(shape: Shape) -> csr_array:
    """(N, N) ones between neighbours: along the edges of a mesh, or the nearest of a cloud."""
    if shape.faces is not None and len(shape.faces):
        return mesh_graph(shape.faces, len(shape))
    return cloud_graph(shape.points)


def mesh_graph(faces: IntArray, count: int) -> csr_array:
    """(N, N) ones where two of `count` points share an edge of (F, 3) faces."""
    start = faces[:, [0, 1, 2]].reshape(-1)  # (3 F,)
    stop = faces[:, [1, 2, 0]].reshape(-1)  # (3 F,)
    return _symmetric(start, stop, count)


def cloud_graph(points: FloatArray) -> csr_array:
    """(N, N) ones between each of (N, 3) points and its nearest ones, both ways."""
    count = len(points)
    k = min(_CLOUD_NEIGHBORS + 1, count)
    near = KDTree(points).query(points, k=k)[1].reshape(count, k)  # (N, k)
    return _symmetric(np.repeat(np.arange(count), k), near.reshape(-1), count)


def region_graph(shape: Shape, rows: IntArray) -> csr_array | None:
    """(n, n) ones between those of the points at `rows` (n,) whose regions of a mesh touch.

    The region of a point is what is nearer to it, along the edges, than to any other one. None for
    clouds: the nearest of the chosen points say no less than the whole cloud.
    """
    if shape.faces is None or len(shape.faces) == 0:
        return None
    graph = mesh_graph(shape.faces, len(shape))
    if len(rows) == len(shape):
        return graph
    lengths = edge_lengths(graph, shape.points)
    _, _, owner = dijkstra(lengths, indices=rows, min_only=True, return_predecessors=True)  # (N,)
    number = np.full(len(shape) + 1, -1)  # the last one is for points that no edge reaches
    number[rows] = np.arange(len(rows))
    owner = number[np.where(owner < 0, len(shape), owner)]  # (N,)
    start, stop = (owner[ends] for ends in graph.nonzero())  # (E,)
    known = (start >= 0) & (stop >= 0)
    return _symmetric(start[known], stop[known], len(rows))


def edge_lengths(graph: csr_array, points: FloatArray) -> csr_array:
    """(N, N) lengths of the edges between (N, 3) points."""
    start, stop = graph.nonzero()  # (E,)
    # Zero would mean that there is no edge: duplicates are joined by a very short one.
    lengths = np.maximum(np.linalg.norm(points[start] - points[stop], axis=1), 1e-9)
    return csr_array((lengths, (start, stop)), shape=graph.shape)


def distances_along(
    graph: csr_array, points: FloatArray, starts: IntArray, *, reach: float = np.inf
) -> FloatArray:
    """(N, s) ways along the graph from the points at `starts`; inf beyond `reach`."""
    ways = dijkstra(edge_lengths(graph, points), indices=starts, limit=reach)  # (s, N)
    return np.ascontiguousarray(ways.T)


def distance_to_nearest(graph: csr_array, points: FloatArray, starts: IntArray) -> FloatArray:
    """(N,) way along the graph to the nearest of the points at `starts`; inf if there is none."""
    if len(starts) == 0:
        return np.full(len(points), np.inf)
    ways: FloatArray = dijkstra(edge_lengths(graph, points), indices=starts, min_only=True)
    return ways


def _symmetric(start: IntArray, stop: IntArray, count: int) -> csr_array:
    """(N, N) ones at (E,) pairs of different points, both ways."""
    graph = csr_array((np.ones(len(start)), (start, stop)), shape=(count, count))
    graph = graph + graph.T
    graph.data[:] = 1.0
    graph.setdiag(0)
    graph.eliminate_zeros()
    return graph
