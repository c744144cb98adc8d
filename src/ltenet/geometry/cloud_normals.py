"""Normals of a cloud: the direction in which the neighbours of a point vary least.

Signs follow [Hoppe et al. 1992]: the outermost point looks away from the centre, and along a
spanning tree of most parallel neighbours each normal agrees with the one before.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.geometry.normals import vertex_normals
from ltenet.geometry.surface_graph import sparse_graph

#: Neighbours of a point, itself included.
_NEIGHBORS = 16


def shape_normals(points: FloatArray, faces: IntArray | None) -> FloatArray:
    """(N, 3) unit normals of a mesh, or of a cloud; points without faces have those of a cloud."""
    if faces is None or len(faces) == 0:
        return cloud_normals(points)
    normals = vertex_normals(points, faces)  # (N, 3)
    loose = np.square(normals).sum(axis=1) < 0.5  # (N,)
    if loose.any():
        normals[loose] = cloud_normals(points)[loose]
    return normals


def cloud_normals(points: FloatArray, *, neighbors: int = _NEIGHBORS) -> FloatArray:
    """(N, 3) unit normals of (N, 3) points, pointing outwards where the cloud is closed."""
    near = nearest_neighbors(points, points, neighbors).indices  # (N, K)
    offsets = points[near] - points[near].mean(axis=1, keepdims=True)  # (N, K, 3)
    spread = np.einsum("nki,nkj->nij", offsets, offsets)  # (N, 3, 3)
    normals: FloatArray = np.linalg.eigh(spread)[1][:, :, 0]  # (N, 3)
    return _oriented(points, normals, near)


def _oriented(points: FloatArray, normals: FloatArray, near: IntArray) -> FloatArray:
    """Give (N, 3) normals consistent signs along the graph of (N, K) neighbours."""
    count = len(points)
    start, stop = np.repeat(np.arange(count), near.shape[1]), near.reshape(-1)  # (E,) each
    parallel = np.abs(np.einsum("ed,ed->e", normals[start], normals[stop]))  # (E,)
    # Zero would mean no edge.
    graph = sparse_graph(1.0 + 1e-6 - np.minimum(parallel, 1.0), start, stop, count)
    tree = minimum_spanning_tree(graph.maximum(graph.T))
    parts, part = connected_components(tree, directed=False)
    outwards = points - points.mean(axis=0)  # (N, 3)
    distance = np.square(outwards).sum(axis=1)  # (N,)
    turned: FloatArray = normals.copy()  # (N, 3)
    for number in range(parts):
        own = np.flatnonzero(part == number)
        root = own[distance[own].argmax()]
        if turned[root] @ outwards[root] < 0:
            turned[root] *= -1
        order, before = breadth_first_order(tree, root, directed=False)
        for point in order[1:]:
            if turned[point] @ turned[before[point]] < 0:
                turned[point] *= -1
    return turned
